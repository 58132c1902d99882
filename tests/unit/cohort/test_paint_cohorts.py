"""Painting of a study's cohorts: rows are those of the function for arrays, and what is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scenes.mosaics import make_haplotypes, make_sites
from support.phased_files import write_vcf

import popdesic
from popdesic.cohort import paint_batches, phased_targets
from popdesic.cohort.haplotype_panel import freeze_haplotypes
from popdesic.cohort.paint_cohorts import ENDINGS, choose_donors, paint_cohorts
from popdesic.copying.copying import pack_rows
from popdesic.copying.painting import joined_stretches
from popdesic.core.errors import UserError
from popdesic.core.tables import write_npz, write_table
from popdesic.io.bed import FAM_COLUMNS, write_fam
from popdesic.io.frozen_haplotypes import open_haplotypes

#: Sites of the reference on two contigs; the study's panel lacks some of them.
N_SITES, FIRST, LACKED = 420, 260, slice(4, None, 9)
#: Two cohorts of founders and two of newcomers.
SIZES = {"a": 5, "b": 4, "new": 3, "v": 2}
FOUNDERS = ["a", "b"]
#: The only founder who is a relative of another.
RELATED = "a2"


@pytest.fixture(autouse=True)
def few_sites(monkeypatch):
    monkeypatch.setattr(phased_targets, "MIN_SHARED_SITES", 1)


def write_haplotypes(path: Path, sites: np.ndarray, alleles: np.ndarray) -> None:
    write_npz(path, sites=sites, haplotypes=pack_rows(alleles))


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> dict:
    """Files of a study, and its haplotypes (n_sites, n) at the sites that it shares."""
    folder = tmp_path_factory.mktemp("painted")
    sites = make_sites(N_SITES, step=60_000)
    sites.loc[FIRST:, "chrom"] = "2"
    reference = make_haplotypes(N_SITES, 8, 50)
    records = [
        f"{s.chrom} {s.pos} . {s.ref} {s.alt} "
        + " ".join(f"{a}|{b}" for a, b in zip(row[::2], row[1::2], strict=True))
        for s, row in zip(sites.itertuples(), reference, strict=True)
    ]
    freeze_haplotypes(
        write_vcf(folder / "r.vcf", [f"r{k}" for k in range(4)], records), folder / "r.npz"
    )
    shown = np.ones(N_SITES, bool)
    shown[LACKED] = False
    panel = sites[shown].reset_index(drop=True).assign(id=".", af=0.5, mode=0, n_called=9)
    rows = panel[["chrom", "pos", "id", "ref", "alt", "af", "mode", "n_called"]]
    (folder / "sites.tsv").write_text(
        f"# panel abc123, {len(panel)} sites\n" + rows.to_csv(sep="\t", index=False)
    )
    haplotypes, fams, alleles = {}, {}, {}
    for seed, (cohort, size) in enumerate(SIZES.items()):
        fam = pd.DataFrame("0", index=range(size), columns=FAM_COLUMNS)
        fam["sample"] = [f"{cohort}{k}" for k in range(size)]
        write_fam(folder / cohort, fam)
        fams[cohort], haplotypes[cohort] = folder / f"{cohort}.fam", folder / f"{cohort}.npz"
        alleles[cohort] = make_haplotypes(N_SITES, 2 * size, seed)[shown]
        write_haplotypes(haplotypes[cohort], np.arange(len(panel)), alleles[cohort])
    names = [name for one in FOUNDERS for name in (f"{one}{k}" for k in range(SIZES[one]))]
    told = ["no" if name == RELATED else "yes" for name in names]
    write_table(folder / "unrelated.tsv", pd.DataFrame({"sample": names, "unrelated": told}))
    return {
        "folder": folder,
        "haplotypes": haplotypes,
        "fams": fams,
        "alleles": alleles,
        "contigs": panel.chrom.to_numpy(),
    }


def paint(scene: dict, out: Path, cohorts=tuple(SIZES), code: str = "c", **changed):
    """Paint some cohorts, and what was made: donors, counts."""
    folder = scene["folder"]
    files = {"unrelated": folder / "unrelated.tsv", "threads": 2} | changed
    return paint_cohorts(
        {name: scene["haplotypes"][name] for name in cohorts},
        {name: scene["fams"][name] for name in cohorts},
        FOUNDERS,
        out / "row.json",
        panel=folder / "sites.tsv",
        reference=folder / "r.npz",
        code=code,
        **files,
    )


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.glob("*.npy")}


def test_rows_are_those_of_the_function_for_arrays(scene, tmp_path):
    donors, counts = paint(scene, tmp_path)
    listed = [f"{c}{k}" for c in FOUNDERS for k in range(SIZES[c]) if f"{c}{k}" != RELATED]
    assert donors["sample"].tolist() == listed
    assert counts["painted"] == sum(SIZES.values()) and counts["cohorts_kept"] == 0
    alleles, frozen = scene["alleles"], open_haplotypes(scene["folder"] / "r.npz")
    columns = [
        alleles[c][:, 2 * k : 2 * k + 2] for c, k in zip(donors.cohort, donors.row, strict=True)
    ]
    copied = np.concatenate(columns, axis=1).T
    expected: dict[str, list] = {"among": [], "new": [], RELATED: []}
    maps = []
    for part, contig in zip(frozen.parts, ("1", "2"), strict=True):
        here = scene["contigs"] == contig
        on_panel = np.isin(np.arange(len(part.pos)), np.flatnonzero(~lacked(contig)))
        maps.append(np.asarray(part.cm)[on_panel])
        how = {"ne": part.ne, "mismatch": part.mismatch, "threads": 1}
        given = np.ascontiguousarray(copied[:, here]).astype(np.int8)
        expected["among"].append(popdesic.paint(given, maps[-1], **how).lengths.sum(axis=0))
        for name, rows in (("new", alleles["new"]), (RELATED, alleles["a"][:, 4:6])):
            target = np.ascontiguousarray(rows.T[:, here]).astype(np.int8)
            lengths = popdesic.paint(given, maps[-1], target, **how).lengths
            expected[name].append(lengths.sum(axis=0))
    among, new, related = (np.sum(one, axis=0) for one in expected.values())
    a, b, found = (np.load(tmp_path / f"{name}.npy") for name in ("a", "b", "new"))
    is_donor = np.arange(SIZES["a"]) != int(RELATED[1:])
    np.testing.assert_array_equal(np.concatenate([a[is_donor], b]), among)
    np.testing.assert_array_equal(found, new)
    np.testing.assert_array_equal(a[~is_donor], related)
    n_stretches, _ = joined_stretches(maps)
    stretches = np.load(tmp_path / "new__stretches.npy")
    assert stretches.shape == (SIZES["new"], n_stretches, len(donors))
    assert counts["stretches"] == n_stretches > 3
    np.testing.assert_allclose(stretches.sum(axis=1), found, rtol=1e-6)
    length = sum(cm[-1] - cm[0] for cm in maps)
    by_stretch = stretches.sum(axis=2)  # both haplotypes; sites lie 0.06 cM apart
    np.testing.assert_allclose(by_stretch, 2 * length / n_stretches, atol=0.3)
    np.testing.assert_allclose(by_stretch.sum(axis=1), 2 * length, rtol=1e-5)


def lacked(contig: str) -> np.ndarray:
    """Which sites of a contig the panel lacks."""
    every = np.zeros(N_SITES, bool)
    every[LACKED] = True
    return every[:FIRST] if contig == "1" else every[FIRST:]


def test_cohorts_are_painted_again_only_where_something_has_changed(scene, tmp_path, monkeypatch):
    out = tmp_path / "results/painting/coancestry"
    own = dict(scene, haplotypes=dict(scene["haplotypes"]), fams=dict(scene["fams"]))
    first = ["a", "b", "new"]
    assert paint(own, out, first)[1]["painted"] == 12
    before = contents(out)
    assert len(before) == len(first) * len(ENDINGS)
    assert paint(own, out, first)[1] == paint(own, out, first)[1] | {"painted": 0}
    # A newcomer costs its own samples and changes no byte of others; so does its own change.
    assert paint(own, out)[1]["painted"] == SIZES["v"]
    after = contents(out)
    assert {name: after[name] for name in before} == before and len(after) == len(before) + 2
    sites = np.arange(len(scene["contigs"]))

    def change(cohort: str) -> int:
        path = tmp_path / f"{cohort}.npz"
        write_haplotypes(path, sites, 1 - scene["alleles"][cohort])
        own["haplotypes"][cohort] = path
        return paint(own, out)[1]["painted"]

    assert change("v") == SIZES["v"]
    assert contents(out)["v.npy"] != after["v.npy"]
    # Names of samples, which say who is a donor.
    fam = pd.DataFrame("0", index=range(SIZES["v"]), columns=FAM_COLUMNS)
    fam["sample"] = ["v0", "other"]
    write_fam(tmp_path / "v", fam)
    own["fams"]["v"] = tmp_path / "v.fam"
    assert paint(own, out)[1]["painted"] == SIZES["v"]
    # What decides the donors decides everyone.
    everyone = sum(SIZES.values())
    assert paint(own, out, code="d")[1]["painted"] == everyone
    assert paint(own, out, code="d", unrelated=None)[1]["painted"] == everyone
    assert paint(own, out)[1]["painted"] == everyone
    assert change("b") == everyone
    assert paint(own, out, first)[1]["painted"] == 0
    assert not list(out.glob("v*.npy")), "files of a cohort that left"
    # Any batches give the same bytes.
    monkeypatch.setattr(paint_batches, "BATCH_BYTES", 1)
    assert paint(scene, tmp_path / "other", threads=1)[1]["painted"] == everyone
    assert contents(tmp_path / "other") == after


def test_donors_are_unrelated_founders_evenly_spaced(scene, tmp_path, monkeypatch):
    fams = {name: scene["fams"][name] for name in FOUNDERS}
    names = [f"a{k}" for k in range(5)] + [f"b{k}" for k in range(4)]
    assert choose_donors(fams, None)["sample"].tolist() == names
    found = choose_donors(fams, scene["folder"] / "unrelated.tsv")
    assert found["sample"].tolist() == [name for name in names if name != RELATED]
    assert found.cohort.tolist() == ["a"] * 4 + ["b"] * 4
    assert found.row.tolist() == [0, 1, 3, 4, 0, 1, 2, 3]
    monkeypatch.setattr("popdesic.cohort.paint_cohorts.MOST_FOUNDERS", 3)
    found = choose_donors(fams, scene["folder"] / "unrelated.tsv")
    assert found["sample"].tolist() == ["a0", "a4", "b3"]
    write_table(tmp_path / "all", pd.DataFrame({"sample": names, "unrelated": "no"}))
    with pytest.raises(UserError, match="only 0 unrelated founders"):
        choose_donors(fams, tmp_path / "all")
