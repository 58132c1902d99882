"""`popdesic paint`: the numbers of the function for arrays, targets alone, refusals."""

from __future__ import annotations

import resource

import numpy as np
import pandas as pd
import pytest
from support.phased_files import phased_records, write_vcf

import popdesic
from popdesic.__main__ import main
from popdesic.cohort import paint_batches, phased_targets
from popdesic.io.frozen_haplotypes import open_haplotypes

N_SITES, N = 400, 12
POS = 25_000 * np.arange(1, N_SITES + 1)


@pytest.fixture(autouse=True)
def few_sites(monkeypatch):
    monkeypatch.setattr(phased_targets, "MIN_SHARED_SITES", 1)


def mosaics(n: int, seed: int) -> np.ndarray:
    """Haplotypes (n_sites, n) that copy six ancestors."""
    ancestors = np.random.default_rng(9).random((N_SITES, 6)) < 0.4
    rng = np.random.default_rng(seed)
    at = np.repeat(rng.integers(0, 6, (N_SITES // 20, n)), 20, axis=0)
    return np.take_along_axis(ancestors, at, axis=1).astype(int)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    names = [f"r{k}" for k in range(N)]
    vcf = write_vcf(folder / "r.vcf", names, phased_records(mosaics(2 * N, 1), POS))
    assert main(["freeze", str(vcf), "-o", str(folder / "r.npz")]) == 0
    return folder


def test_lengths_are_those_of_the_function(reference, tmp_path):
    out = tmp_path / "c.npy"
    assert main(["paint", str(reference / "r.npz"), "-o", str(out)]) == 0
    (part,) = open_haplotypes(reference / "r.npz").parts
    model = {"ne": part.ne, "mismatch": part.mismatch}
    found = popdesic.paint(mosaics(2 * N, 1).T, part.cm, **model)
    np.testing.assert_array_equal(np.load(out), found.lengths.sum(axis=0))
    np.testing.assert_array_equal(np.load(tmp_path / "c.segments.npy"), found.segments)
    assert (np.diag(np.load(out)) == 0).all()
    samples = pd.read_csv(tmp_path / "c.samples.tsv", sep="\t")
    assert samples["sample"].tolist() == [f"r{k}" for k in range(N)]
    assert samples.group.tolist() == [0] * N
    # A VCF, as a table, on two threads.
    text = tmp_path / "t.tsv"
    assert main(["paint", str(reference / "r.vcf"), "-o", str(text), "--threads", "2"]) == 0
    table = pd.read_csv(text, sep="\t", index_col="sample")
    np.testing.assert_allclose(table.to_numpy(), np.load(out), rtol=1e-5, atol=1e-5)


def test_haploids_leave_out_one_haplotype_of_their_own(tmp_path):
    names, haplotypes = [f"r{k}" for k in range(N)], mosaics(N, 3)
    records = [
        f"1 {at} s A C " + " ".join(map(str, row)) for at, row in zip(POS, haplotypes, strict=True)
    ]
    vcf = write_vcf(tmp_path / "h.vcf", names, records)
    assert main(["freeze", str(vcf), "-o", str(tmp_path / "h.npz")]) == 0
    assert main(["paint", str(tmp_path / "h.npz"), "-o", str(tmp_path / "c.npy")]) == 0
    (part,) = open_haplotypes(tmp_path / "h.npz").parts
    model = {"ne": part.ne, "mismatch": part.mismatch}
    found = popdesic.paint(haplotypes.T, part.cm, ploidy=1, **model)
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), found.lengths.sum(axis=0))
    np.testing.assert_array_equal(np.load(tmp_path / "c.segments.npy"), found.segments)


def test_a_newcomer_is_painted_alone_as_among_others(reference, tmp_path):
    haplotypes, names = mosaics(6, 2), ["a", "r3", "b"]
    rows = {}
    for some in ([0, 1, 2], [2], [1, 0]):
        columns = np.concatenate([[2 * k, 2 * k + 1] for k in some])
        records = phased_records(haplotypes[::2, columns], POS[::2])
        vcf = write_vcf(tmp_path / "t.vcf", [names[k] for k in some], records)
        out = tmp_path / "p.npy"
        command = ["paint", str(reference / "r.npz"), "--target", str(vcf), "-o", str(out)]
        assert main(command) == 0
        for k, row in zip(some, np.load(out), strict=True):
            assert rows.setdefault(k, row.tobytes()) == row.tobytes()
        assert row.sum() == pytest.approx(2 * (POS[-1] - POS[0]) / 1e6)
    own = np.frombuffer(rows[1])
    assert own[3] == 0  # the sample of the same name
    assert (np.delete(own, 3) > 0).all()
    assert len(pd.read_csv(tmp_path / "p.donors.tsv", sep="\t")) == N


@pytest.mark.parametrize(
    ("words", "said"),
    [(["-o", "x.txt"], ".npy or .tsv"), (["-o", "x.npy", "--map", "m"], "frozen with its own map")],
)
def test_mistakes_get_one_sentence(reference, tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    assert main(["paint", str(reference / "r.npz"), *words]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", ["paint", "impute"])
def test_sentences_name_the_reference_that_was_given(tmp_path, capsys, command):
    """It is frozen in a temporary folder."""
    head = '##fileformat=VCFv4.2\n##FORMAT=<ID=GT,Number=1,Type=String,Description="">\n'
    keys = "#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT s1 s2".replace(" ", "\t")
    files = [tmp_path / name for name in ("two.vcf", "other.vcf")]
    for contig, path in enumerate(files, start=1):
        rows = [f"{contig} {10_000 * k + 1} . A C . . . GT 0|1 {k % 2}|0" for k in range(60)]
        lines = [f"##contig=<ID={contig}>", keys, *(row.replace(" ", "\t") for row in rows), ""]
        path.write_text(head + "\n".join(lines))
    out = tmp_path / {"paint": "x.npy", "impute": "x.vcf.gz"}[command]
    given = {"paint": [files[0], "--target", files[1]]}
    given["impute"] = [files[1], "--reference", files[0]]
    assert main([command, *map(str, given[command]), "-o", str(out)]) == 1
    said = capsys.readouterr().err
    assert f"no contig with the reference {files[0]}: its" in said and ".frozen" not in said


def test_files_beside_the_output_are_no_inputs_and_nobody_elses(reference, tmp_path, capsys):
    mine = tmp_path / "c.samples.tsv"
    command = ["paint", str(reference / "r.npz"), "-o", str(tmp_path / "c.npy")]
    mine.write_text("mine\n")
    assert main(command) == 1
    assert f"{mine} is there already" in capsys.readouterr().err
    assert mine.read_text() == "mine\n" and not (tmp_path / "c.npy").exists()
    (tmp_path / "c.npy").write_text("of an earlier run")
    assert main([*command, "--target", str(mine)]) == 1
    assert "is the input" in capsys.readouterr().err and mine.read_text() == "mine\n"
    assert main(command) == 0
    assert "mine" not in mine.read_text()


def test_any_batches_give_the_same_bytes(reference, tmp_path, monkeypatch):
    found = set()
    for n_bytes in (1, 1 << 28):
        monkeypatch.setattr(paint_batches, "BATCH_BYTES", n_bytes)
        assert main(["paint", str(reference / "r.npz"), "-o", str(tmp_path / "c.npy")]) == 0
        found.add((tmp_path / "c.npy").read_bytes())
    assert len(found) == 1


def test_no_room_for_stretches_is_told_before_the_work(reference, tmp_path, capsys):
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, usual[1]))
    try:
        assert main(["paint", str(reference / "r.npz"), "-o", str(tmp_path / "c.npy")]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    said = capsys.readouterr().err
    assert f"by stretch of {N} samples" in said and "--target" in said
    assert not [*tmp_path.iterdir()]
    vcf = str(reference / "r.vcf")
    assert main(["paint", vcf, "--target", vcf, "-o", str(tmp_path / "c.npy")]) == 0
    assert "group" not in (tmp_path / "c.samples.tsv").read_text()
