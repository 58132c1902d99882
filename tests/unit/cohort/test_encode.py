"""A cohort on the panel: planes, .bed files and counts equal a site-by-site computation."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles.reference import bed_bytes, draw_genotypes, make_planes, plane_words
from support.study import Cohort, make_cohorts, write_raw

from popdesic.cohort import encode
from popdesic.cohort.encode import encode_cohort, write_planes
from popdesic.cohort.impute import fill_words
from popdesic.cohort.match import match_sites
from popdesic.cohort.planes import load_planes
from popdesic.core.errors import UserError
from popdesic.io.bed import open_bed, read_bim, read_fam
from popdesic.io.genotypes import SWAPPED, unpack_bed

COMPLEMENT = {"A": "T", "T": "A", "C": "G", "G": "C"}


def write_panel(path: Path, sites: list[tuple], mode: list[int], digest: str = "abc123") -> Path:
    rows = [
        f"{chrom}\t{pos}\t{name}\t{ref}\t{alt}\t0.5\t{m}\t10\n"
        for (chrom, pos, name, ref, alt), m in zip(sites, mode, strict=True)
    ]
    header = f"# panel {digest}, {len(sites)} sites\n"
    path.write_text(header + "chrom\tpos\tid\tref\talt\taf\tmode\tn_called\n" + "".join(rows))
    return path


def write_keep(path: Path, samples: list[str], dropped: set[str] = frozenset()) -> Path:
    rows = [f"{name}\t{'no' if name in dropped else 'yes'}\n" for name in samples]
    path.write_text("sample\tkeep\n" + "".join(rows))
    return path


def run(folder: Path, cohort: Cohort, sites, mode, *, dropped=frozenset(), impute="mode"):
    """Encode a cohort; return counts, planes.npy, planes.json and the .bed content."""
    counts = encode_cohort(
        write_raw(folder / "in" / "raw", cohort),
        write_keep(folder / "keep.tsv", cohort.samples, dropped),
        write_panel(folder / "sites.tsv", sites, mode),
        folder / "out",
        impute=impute,
        cohort=cohort.name,
    )
    about = json.loads((folder / "out/planes.json").read_text())
    return (
        counts,
        np.load(folder / "out/planes.npy"),
        about,
        (folder / "out/genotypes.bed").read_bytes(),
    )


def on_panel(cohort: Cohort, sites, dropped=frozenset()) -> np.ndarray:
    """Genotypes (n_panel_sites, n_kept) by the rules of the design, site by site."""
    kept = [k for k, name in enumerate(cohort.samples) if name not in dropped]
    rows = []
    for chrom, pos, _, ref, alt in sites:
        row = [-1] * len(kept)
        for (c, p, _, r, a), genotypes in zip(cohort.sites, cohort.genotypes, strict=True):
            if (c, p) == (chrom, pos) and {r.upper(), a.upper()} == {ref.upper(), alt.upper()}:
                if (r.upper(), a.upper()) == (ref.upper(), alt.upper()):
                    row = [int(genotypes[k]) for k in kept]
                elif COMPLEMENT[ref.upper()] != alt.upper():
                    row = [2 - int(genotypes[k]) if genotypes[k] >= 0 else -1 for k in kept]
                break  # the first of repeated sites is used
        rows.append(row)
    return np.array(rows, np.int8)


@pytest.mark.parametrize("impute", ["mode", "none"])
@pytest.mark.parametrize("n_samples", [1, 2, 3, 4, 5, 63, 64, 65])
@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 33, 63, 64, 65, 511, 512, 513])
def test_planes_of_every_size(tmp_path, n_sites, n_samples, impute):
    rng = np.random.default_rng(n_sites + n_samples)
    genotypes = draw_genotypes(rng, n_samples, n_sites, 0.2)
    mode = rng.integers(0, 3, n_sites)
    bed = np.frombuffer(bed_bytes(genotypes.T)[3:], np.uint8).reshape(n_sites, -1)
    missing = write_planes(bed, n_samples, mode, impute, tmp_path / "planes.npy")
    planes = np.load(tmp_path / "planes.npy")
    assert planes.dtype == np.dtype("<u8")
    assert planes.shape[2] % encode.WORDS_MULTIPLE == 0
    fill = mode if impute == "mode" else None
    np.testing.assert_array_equal(
        planes, make_planes(genotypes, fill=fill, n_words=planes.shape[2])
    )
    np.testing.assert_array_equal(missing, (genotypes < 0).sum(axis=1))


@pytest.mark.parametrize("genotype", [-1, 0, 1, 2])
def test_one_genotype_everywhere(tmp_path, genotype):
    genotypes = np.full((3, 70), genotype, np.int8)
    bed = np.frombuffer(bed_bytes(genotypes.T)[3:], np.uint8).reshape(70, -1)
    write_planes(bed, 3, np.ones(70, np.int64), "mode", tmp_path / "planes.npy")
    planes = np.load(tmp_path / "planes.npy")
    np.testing.assert_array_equal(planes, make_planes(genotypes, fill=np.ones(70), n_words=8))
    assert planes.shape[1] == (3 if genotype < 0 else 2), "the called plane only where it is needed"


def test_several_passes(tmp_path, monkeypatch):
    monkeypatch.setattr(encode, "CHUNK_SITES", 128)
    genotypes = draw_genotypes(np.random.default_rng(1), 6, 300)
    genotypes[2, 290] = -1  # missing in the last pass alone
    bed = np.frombuffer(bed_bytes(genotypes.T)[3:], np.uint8).reshape(300, -1)
    write_planes(bed, 6, np.zeros(300, np.int64), "mode", tmp_path / "planes.npy")
    np.testing.assert_array_equal(
        np.load(tmp_path / "planes.npy"), make_planes(genotypes, n_words=8)
    )


def test_fill_words():
    mode = np.array([0, 1, 2] * 30)
    carrier, hom = fill_words(mode, "mode")
    assert carrier.tolist() == plane_words(mode >= 1, 2)
    assert hom.tolist() == plane_words(mode == 2, 2)
    assert not any(words.any() for words in fill_words(mode, "none"))


@pytest.mark.parametrize("dropped", [frozenset(), {"N01", "N05"}])
@pytest.mark.parametrize("n_samples", [7, 8])
def test_cohort_on_a_panel(tmp_path, n_samples, dropped):
    """Absent, swapped, ambiguous, lower-case, repeated and unknown sites in one cohort."""
    cohort = make_cohorts((n_samples,), n_sites=40, missing=0.1)[0]
    panel_sites = [*cohort.sites[::-1], ("9", 5, "absent", "A", "C"), ("1", 7, "gone", "A", "T")]
    sites, rows = list(cohort.sites), [cohort.genotypes]
    for k in (0, 1, 2, 9, 19):  # 9 and 19 are A/T: a swap there cannot be told from a strand flip
        chrom, pos, name, ref, alt = sites[k]
        sites[k] = (chrom, pos, name, alt, ref)
    sites[3] = (*sites[3][:3], sites[3][3].lower(), sites[3][4].lower())
    sites[4] = (*sites[4][:3], "C", "G")  # other alleles, so not the panel's site
    sites += [sites[5], ("7", 1, "unknown", "A", "C")]
    rows += [2 - np.abs(cohort.genotypes[5:6]), cohort.genotypes[:1]]
    cohort = replace(cohort, sites=sites, genotypes=np.concatenate(rows))
    mode = [k % 3 for k in range(len(panel_sites))]

    counts, planes, about, bed = run(tmp_path, cohort, panel_sites, mode, dropped=dropped)

    expected = on_panel(cohort, panel_sites, dropped)
    assert bed == bed_bytes(expected)
    np.testing.assert_array_equal(planes, make_planes(expected.T, fill=np.array(mode), n_words=8))
    kept = [name for name in cohort.samples if name not in dropped]
    assert counts == about["counts"]
    assert counts == {
        "panel_sites_found": 37,
        "panel_sites_absent": 3,
        "swapped_turned": 3,
        "swapped_ambiguous_dropped": 2,
        "sites_not_on_panel": 3,
        "samples": len(kept),
        "missing_genotypes": int((expected < 0).sum()),
    }
    assert about["samples"] == kept
    assert (about["panel"], about["n_sites"], about["cohort"]) == ("abc123", 42, "north")
    assert list(read_fam(tmp_path / "out/genotypes")["sample"]) == kept
    bim = read_bim(tmp_path / "out/genotypes")[["chrom", "pos", "id", "ref", "alt"]]
    assert list(bim.itertuples(index=False, name=None)) == panel_sites
    loaded, _ = load_planes(tmp_path / "out")
    assert (loaded.n_sites, loaded.n_samples) == (42, len(kept))


def test_swapped_cohort_gives_the_same_planes(tmp_path):
    cohort = make_cohorts((9,), n_sites=60)[0]
    cohort = replace(
        cohort,
        sites=[s if s[3] != "A" or s[4] != "T" else (*s[:3], "A", "G") for s in cohort.sites],
    )
    mode = [1] * 60
    _, plain, _, bed = run(tmp_path / "a", cohort, cohort.sites, mode)
    swapped = replace(
        cohort,
        sites=[(c, p, name, alt, ref) for c, p, name, ref, alt in cohort.sites],
        genotypes=np.where(cohort.genotypes < 0, -1, 2 - cohort.genotypes).astype(np.int8),
    )
    counts, turned, _, turned_bed = run(tmp_path / "b", swapped, cohort.sites, mode)
    assert counts["swapped_turned"] == 60
    np.testing.assert_array_equal(turned, plain)
    assert turned_bed == bed


def test_homozygotes_are_exchanged_in_every_byte():
    """The table that exchanges homozygotes equals exchanging four genotypes one by one."""
    for byte in range(256):
        codes = [byte >> shift & 3 for shift in (0, 2, 4, 6)]
        turned = [{0b00: 0b11, 0b11: 0b00}.get(code, code) for code in codes]
        assert SWAPPED[byte] == sum(code << 2 * k for k, code in enumerate(turned))


def test_match_sites_keeps_rows():
    bim = pd.DataFrame(
        [("1", 5, "A", "C"), ("1", 5, "A", "G"), ("2", 5, "A", "C")],
        columns=["chrom", "pos", "ref", "alt"],
    )
    panel = bim.iloc[[2, 1]].reset_index(drop=True)
    row, swapped, counts = match_sites(bim, panel)
    assert row.tolist() == [2, 1]
    assert not swapped.any()
    assert counts["sites_not_on_panel"] == 1


def test_no_overlap(tmp_path):
    cohort = make_cohorts((4,), n_sites=10)[0]
    panel = [(f"Chr_{s[0]}", *s[1:]) for s in cohort.sites]
    with pytest.raises(UserError, match="its contigs are 1, 2 …, the panel's are Chr_1, Chr_2 …"):
        run(tmp_path, cohort, panel, [0] * 10)
    elsewhere = [(s[0], s[1] + 1, *s[2:]) for s in cohort.sites]
    with pytest.raises(UserError, match="genome build"):
        run(tmp_path, cohort, elsewhere, [0] * 10)
    assert not (tmp_path / "out").exists()


def test_samples_without_genotypes_on_the_panel_are_left_out(tmp_path, caplog):
    cohort = make_cohorts((4,), n_sites=20, missing=0)[0]
    cohort.genotypes[:10, 2] = -1
    counts, *_ = run(tmp_path, cohort, cohort.sites[:10], [0] * 10)
    assert (counts["samples"], counts["samples_without_calls"]) == (3, 1)
    planes, about = load_planes(tmp_path / "out")
    left = [name for name in cohort.samples if name != "N02"]
    assert about["samples"] == left and planes.words.shape[0] == 3
    assert read_fam(tmp_path / "out/genotypes")["sample"].tolist() == left
    found = unpack_bed(open_bed(tmp_path / "out/genotypes"), 3)
    assert np.array_equal(found, np.delete(cohort.genotypes[:10], 2, axis=1))
    assert "1 of 4 samples of cohort north have no called genotype" in caplog.text
    cohort.genotypes[:10] = -1
    with pytest.raises(UserError, match="sample 'N00' of cohort 'north' has no called genotype"):
        run(tmp_path / "none", cohort, cohort.sites[:10], [0] * 10)
    assert not (tmp_path / "none/out/planes.json").exists()


@pytest.mark.parametrize("damage", ["text", "shape"])
def test_damaged_planes(tmp_path, damage):
    cohort = make_cohorts((4,), n_sites=20)[0]
    run(tmp_path, cohort, cohort.sites, [0] * 20)
    path = tmp_path / "out/planes.npy"
    if damage == "text":
        path.write_text("no array")
    else:
        np.save(path, np.zeros((3, 2, 8), np.uint64))
    with pytest.raises(UserError, match=r"planes\.npy .*rerun") as error:
        load_planes(tmp_path / "out")
    assert "\n" not in str(error.value)
