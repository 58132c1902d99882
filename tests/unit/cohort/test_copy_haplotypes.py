"""Imputation by copying: phase, windows, masks, output, and bytes of a sample alone."""

from __future__ import annotations

from pathlib import Path

import cyvcf2
import numpy as np
import pandas as pd
import pytest
from support.phased_files import phased_records, write_vcf

from popdesic.__main__ import main
from popdesic.api.haplotypes import impute_haplotypes
from popdesic.cohort import copy_haplotypes, phased_targets
from popdesic.cohort.copy_haplotypes import accuracy_path
from popdesic.copying import copying_plan
from popdesic.io.frozen_haplotypes import open_haplotypes

N_SITES, N_REFERENCE = 600, 40
POS = 20_000 * np.arange(1, N_SITES + 1)
TYPED = np.arange(1, N_SITES, 3)


@pytest.fixture(autouse=True)
def few_sites(monkeypatch):
    monkeypatch.setattr(phased_targets, "MIN_SHARED_SITES", 1)
    monkeypatch.setattr(copying_plan, "WINDOW_CM", 4.0)
    monkeypatch.setattr(copying_plan, "MARGIN_CM", 1.0)


def mosaics(n: int, seed: int) -> np.ndarray:
    """Haplotypes (n_sites, n) that copy eight ancestors, with a switch in 100 sites or so."""
    rng = np.random.default_rng(9)
    ancestors = rng.random((N_SITES, 8)) < rng.beta(0.8, 0.8, (N_SITES, 1))
    rng = np.random.default_rng(seed)
    copied = np.empty((N_SITES, n), int)
    for k in range(n):
        change = np.cumsum(rng.random(N_SITES) < 0.01)
        copied[:, k] = rng.integers(0, 8, N_SITES)[change]
    return np.take_along_axis(ancestors, copied, axis=1).astype(int)


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    names = [f"r{k}" for k in range(N_REFERENCE)]
    records = phased_records(mosaics(2 * N_REFERENCE, 1), POS)
    vcf = write_vcf(folder / "r.vcf", names, records)
    assert main(["freeze", str(vcf), "-o", str(folder / "r.npz")]) == 0
    return folder / "r.npz"


def impute(folder: Path, reference: Path, names: list[str], haplotypes: np.ndarray, *more: str):
    """Impute samples from their typed sites; returns the VCF."""
    folder.mkdir(exist_ok=True)
    vcf = write_vcf(folder / "t.vcf", names, phased_records(haplotypes[TYPED], POS[TYPED]))
    out = folder / "out.vcf.gz"
    command = ["impute", str(vcf), "--reference", str(reference), "-o", str(out), *more]
    assert main(command) == 0
    return out


def columns(vcf: Path) -> dict[str, list]:
    """The text of each sample's column."""
    reader = cyvcf2.VCF(str(vcf))
    lines = [str(record).rstrip("\n").split("\t")[9:] for record in reader]
    return dict(zip(reader.samples, map(list, zip(*lines, strict=True)), strict=True))


def test_a_sample_alone_has_the_bytes_that_it_has_among_others(tmp_path, reference):
    haplotypes = mosaics(14, 2)
    haplotypes[TYPED[::7], 4] = -1
    names = [f"t{k}" for k in range(7)]
    together = columns(impute(tmp_path / "all", reference, names, haplotypes))
    order = [5, 2, 6, 0]
    both = np.array([[2 * k, 2 * k + 1] for k in order]).ravel()
    names = [f"t{k}" for k in order]
    some = impute(tmp_path / "some", reference, names, haplotypes[:, both], "--threads", "2")
    some = columns(some)
    for k in order:
        assert some[f"t{k}"] == together[f"t{k}"]
    alone = columns(impute(tmp_path / "one", reference, ["other"], haplotypes[:, 4:6]))
    assert alone["other"] == together["t2"]


def test_batches_and_what_waits_in_a_file_change_no_byte(tmp_path, reference, monkeypatch):
    haplotypes, names = mosaics(10, 12), ["a", "r3", "c", "d", "e"]
    whole = impute(tmp_path / "whole", reference, names, haplotypes)
    sizes = set()
    copied = copy_haplotypes.impute_alleles

    def counted(*given, **options):
        sizes.add(len(given[2]))
        return copied(*given, **options)

    monkeypatch.setattr(copy_haplotypes, "impute_alleles", counted)
    monkeypatch.setattr(copy_haplotypes, "BATCH_BYTES", 2 * 3 * 300)  # at most three haplotypes
    monkeypatch.setattr(copy_haplotypes, "HELD_BYTES", 0)
    monkeypatch.setattr(copy_haplotypes, "WRITTEN_SITES", 7)
    parts = impute(tmp_path / "parts", reference, names, haplotypes)
    assert sizes == {1, 3}
    for one, other in ((whole, parts), (accuracy_path(whole), accuracy_path(parts))):
        assert one.read_bytes() == other.read_bytes()
    assert not [path for path in (tmp_path / "parts").iterdir() if path.name[0] == "."]


def test_what_waits_in_a_file_has_its_space_on_the_disk_first(tmp_path, monkeypatch):
    """A disk that fills up later would be a bus error."""
    monkeypatch.setattr(copy_haplotypes, "HELD_BYTES", 0)
    with copy_haplotypes._held((500, 1000), tmp_path) as units:
        files = [*Path("/proc/self/fd").iterdir()]
        files = [file for file in files if tmp_path in file.resolve().parents]
        sizes = [file.stat().st_blocks * 512 for file in files]
    assert sizes and min(sizes) >= units.nbytes


def test_what_is_imputed_is_nearly_right_and_calls_stay(tmp_path, reference):
    truth = mosaics(20, 3)
    given = truth.copy()
    given[TYPED[5], 0] = -1
    out = impute(tmp_path, reference, [f"t{k}" for k in range(10)], given)
    records = list(cyvcf2.VCF(str(out)))
    assert [record.POS for record in records] == POS.tolist()
    dosage = np.array([record.format("DS")[:, 0] for record in records])
    right = truth.reshape(N_SITES, 10, 2).sum(axis=2)
    untyped = np.setdiff1d(np.arange(N_SITES), TYPED)
    assert np.corrcoef(dosage[untyped].ravel(), right[untyped].ravel())[0, 1] ** 2 > 0.9
    called = np.setdiff1d(TYPED, TYPED[5])
    assert (dosage[called] == right[called]).all()
    calls = np.array([record.genotype.array() for record in records])
    assert (calls[called, :, :2].reshape(-1, 20) == truth[called]).all()
    assert calls[..., 2].all()  # phased
    flags = np.array([record.INFO.get("IMP") is not None for record in records])
    assert flags.tolist() == np.isin(np.arange(N_SITES), untyped).tolist()
    for record, typed in zip(records, ~flags, strict=True):
        assert (record.INFO.get("R2") is None) == typed


def test_the_command_has_the_doses_of_the_function(tmp_path, reference):
    """Both are cut into the same windows, of which the map has three."""
    haplotypes = mosaics(4, 11)
    out = impute(tmp_path, reference, ["a", "b"], haplotypes)
    part = open_haplotypes(reference).parts[0]
    assert len(copying_plan.cut_windows(part.cm)) == 3
    panel = mosaics(2 * N_REFERENCE, 1).T
    model = {"ne": part.ne, "mismatch": part.mismatch}
    doses = impute_haplotypes(panel, part.cm, haplotypes[TYPED].T, TYPED, **model)
    steps = np.rint(doses.astype(float) * 1000)
    expected = (steps[0::2] + steps[1::2]).T / 1000
    found = np.array([record.format("DS")[:, 0] for record in cyvcf2.VCF(str(out))])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_accuracy_is_measured_at_every_call_without_it(tmp_path, reference):
    truth = mosaics(20, 4)
    truth[TYPED[::9], 7] = -1
    names = [f"t{k}" for k in range(10)]
    out = impute(tmp_path, reference, names, truth)
    table = pd.read_csv(accuracy_path(out), sep="\t")
    assert table.typed.sum() == len(TYPED) and table.imputed.sum() == N_SITES - len(TYPED)
    assert table.hidden.sum() == 10 * len(TYPED) - len(TYPED[::9])
    common = table.set_index("maf").loc["0.2-0.5"]
    assert common.dosage_r2 > 0.8 and common.concordance > 0.85
    # A wrong call is not what the other sites say: its site alone has a lower ER2.
    site = TYPED[np.argmin(np.abs(truth[TYPED].mean(axis=1) - 0.5))]
    wrong = truth.copy()
    wrong[site, :10] ^= 1
    before, after = (
        {record.POS: record.INFO.get("ER2") for record in cyvcf2.VCF(str(vcf))}
        for vcf in (out, impute(tmp_path / "wrong", reference, names, wrong))
    )
    assert after[POS[site]] < 0.3 and before[POS[site]] > 0.7


def unphased(vcf: Path, samples: set[int]) -> None:
    """Take the phase from the calls of samples, and put all their alleles in order."""
    lines = vcf.read_text().splitlines()
    for k, line in enumerate(lines):
        if not line.startswith("#"):
            words = line.split("\t")
            for sample in samples:
                words[9 + sample] = "/".join(sorted(words[9 + sample].split("|")))
            lines[k] = "\t".join(words)
    vcf.write_text("\n".join([*lines, ""]))


def copied(folder: Path, reference: Path, vcf: Path, *more: str) -> Path:
    """Impute a file; returns the VCF."""
    out = folder / f"{vcf.stem}.out.vcf.gz"
    assert main(["impute", str(vcf), "--reference", str(reference), "-o", str(out), *more]) == 0
    return out


def test_unphased_samples_are_phased_and_have_their_bytes_among_others(tmp_path, reference):
    truth = mosaics(12, 2)
    given = truth[TYPED]
    given[7, 2:4] = -1
    names = [f"t{k}" for k in range(6)]
    vcf = write_vcf(tmp_path / "t.vcf", names, phased_records(given, POS[TYPED]))
    told = columns(copied(tmp_path, reference, vcf))
    unphased(vcf, {1, 2, 5})
    together = columns(copied(tmp_path, reference, vcf, "--threads", "2"))
    for k in (0, 3, 4):
        assert together[f"t{k}"] == told[f"t{k}"]  # their phase was given
    alone = write_vcf(tmp_path / "one.vcf", ["t5"], phased_records(given[:, 10:], POS[TYPED]))
    unphased(alone, {0})
    assert columns(copied(tmp_path, reference, alone))["t5"] == together["t5"]
    seeded = columns(copied(tmp_path, reference, alone, "--seed", "2"))
    reader = cyvcf2.VCF(str(tmp_path / "t.out.vcf.gz"))
    calls = np.array([record.genotype.array() for record in reader])
    assert calls[..., 2].all()
    right = truth.reshape(N_SITES, 6, 2)
    for k in (1, 2, 5):
        shown = calls[TYPED, k, :2]
        called = given[:, 2 * k] >= 0
        assert (shown.sum(axis=1) == right[TYPED, k].sum(axis=1))[called].all()
        hets = called & (given[:, 2 * k] != given[:, 2 * k + 1])
        straight = shown[hets, 0] == given[hets, 2 * k]
        assert (straight[1:] != straight[:-1]).mean() < 0.1
        assert (np.diff(straight.astype(int)) != 0).sum() < hets.sum() / 4
    assert seeded.keys() == {"t5"}
    header = cyvcf2.VCF(str(tmp_path / "one.out.vcf.gz")).raw_header
    assert "##popdesic_seed=2\n" in header
    dosage = np.array([r.format("DS")[:, 0] for r in cyvcf2.VCF(str(tmp_path / "t.out.vcf.gz"))])
    untyped = np.setdiff1d(np.arange(N_SITES), TYPED)
    both = dosage[untyped][:, [1, 2, 5]], right[untyped][:, [1, 2, 5]].sum(axis=2)
    assert np.corrcoef(both[0].ravel(), both[1].ravel())[0, 1] ** 2 > 0.85


def test_a_sample_of_the_reference_does_not_copy_itself(tmp_path, reference):
    """It has the bytes that it gets from a reference without it."""
    haplotypes = mosaics(2 * N_REFERENCE, 1)
    both = columns(impute(tmp_path / "a", reference, ["r3", "t"], haplotypes[:, [6, 7, 6, 7]]))
    kept = [k for k in range(2 * N_REFERENCE) if k not in (6, 7)]
    names = [f"r{k}" for k in range(N_REFERENCE) if k != 3]
    less = write_vcf(tmp_path / "less.vcf", names, phased_records(haplotypes[:, kept], POS))
    alone = columns(impute(tmp_path / "b", less, ["r3"], haplotypes[:, 6:8]))
    assert both["r3"] == alone["r3"]
    assert both["t"] != both["r3"]


def test_a_male_has_one_allele_on_x(tmp_path, reference):
    records = phased_records(mosaics(2 * N_REFERENCE, 1), POS, "X")
    names = [f"r{k}" for k in range(N_REFERENCE)]
    vcf = write_vcf(tmp_path / "r.vcf", names, records)
    woman = mosaics(2, 5)
    rows = [
        f"X {at} . A C {a}|{b} {a}" for at, (a, b) in zip(POS[TYPED], woman[TYPED], strict=True)
    ]
    target = write_vcf(tmp_path / "t.vcf", ["woman", "man"], rows)
    out = tmp_path / "out.vcf.gz"
    assert main(["impute", str(target), "--reference", str(vcf), "-o", str(out)]) == 0
    calls = np.array([record.genotype.array() for record in cyvcf2.VCF(str(out))])
    assert (calls[:, 1, 1] == -2).all() and (calls[:, 1, 0] == calls[:, 0, 0]).all()


def test_far_from_any_call_the_frequency_in_the_reference_is_imputed(tmp_path, reference):
    """A window of 4 cM without a call within 1 cM of it."""
    haplotypes = mosaics(4, 7)
    begin = TYPED[POS[TYPED] < 3_500_000]
    vcf = write_vcf(tmp_path / "t.vcf", ["a", "b"], phased_records(haplotypes[begin], POS[begin]))
    out = tmp_path / "out.vcf.gz"
    assert main(["impute", str(vcf), "--reference", str(reference), "-o", str(out)]) == 0
    far = POS > 8_000_000
    dosage = np.array([record.format("DS")[:, 0] for record in cyvcf2.VCF(str(out))])
    frequency = mosaics(2 * N_REFERENCE, 1).mean(axis=1)
    assert np.abs(dosage[far] - 2 * frequency[far, None]).max() < 0.002
    assert np.abs(dosage[~far] - 2 * frequency[~far, None]).max() > 0.2


def test_a_target_without_any_call_is_named_and_gets_frequencies(
    tmp_path, reference, caplog, capsys
):
    haplotypes = mosaics(6, 8)
    haplotypes[:, 2:4] = -1
    caplog.set_level("INFO")
    out = impute(tmp_path, reference, ["a", "empty", "c"], haplotypes)
    assert "1 target has no call at any site of the reference (empty)" in caplog.text
    dosage = np.array([record.format("DS")[:, 0] for record in cyvcf2.VCF(str(out))])
    frequency = mosaics(2 * N_REFERENCE, 1).mean(axis=1)
    assert np.abs(dosage[:, 1] - 2 * frequency).max() < 0.002
    assert np.abs(dosage[:, 0] - 2 * frequency).max() > 0.2
    assert "panel_sites_found\t200" in capsys.readouterr().out  # once
    assert "panel_sites_found" not in caplog.text


def test_an_output_that_is_an_input_or_a_folder_is_refused(tmp_path, reference, capsys):
    vcf = write_vcf(tmp_path / "t.vcf.gz", ["a"], phased_records(mosaics(2, 5)[TYPED], POS[TYPED]))
    link = tmp_path / "link.vcf.gz"
    link.symlink_to(vcf)
    (tmp_path / "folder.vcf.gz").mkdir()
    (tmp_path / "mine.accuracy.tsv").write_text("")
    before = vcf.read_bytes()
    start = ["impute", str(vcf), "--reference", str(reference), "-o"]
    for command, said in (
        ([*start, str(vcf)], "which would be lost"),
        ([*start, str(link)], "which would be lost"),
        ([*start, str(tmp_path / "folder.vcf.gz")], "is a folder"),
        ([*start, str(vcf / "out.vcf.gz")], "is a file; name a folder"),
        ([*start, str(tmp_path / "mine.vcf.gz")], "mine.accuracy.tsv is there already"),
        (["freeze", str(vcf), "-o", str(vcf)], "which would be lost"),
        (["freeze", str(vcf), "-o", str(tmp_path)], "is a folder"),
    ):
        assert main(command) == 1
        assert said in capsys.readouterr().err
        assert vcf.read_bytes() == before and link.is_symlink()
    assert len([*tmp_path.iterdir()]) == 4


def test_bad_calls_of_the_command_are_refused(tmp_path, reference, capsys):
    vcf = write_vcf(tmp_path / "t.vcf", ["t"], phased_records(mosaics(2, 6)[TYPED], POS[TYPED]))
    command = ["impute", str(vcf), "--reference", str(reference), "-o"]
    assert main([*command, str(tmp_path / "out.bcf")]) == 1
    assert "give it a name that ends in .vcf.gz" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "out.vcf.gz"), "--map", "a.map"]) == 1
    assert "is frozen with its own map" in capsys.readouterr().err
    only = write_vcf(tmp_path / "r.vcf", ["t"], phased_records(mosaics(2, 6), POS))
    out = str(tmp_path / "out.vcf.gz")
    assert main(["impute", str(vcf), "--reference", str(only), "-o", out]) == 1
    assert "the reference has no sample but 't', which is a target" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.vcf", "t.vcf"]
