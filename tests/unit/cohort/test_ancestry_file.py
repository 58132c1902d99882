"""`popdesic ancestry`: tracts of a joined sample, the same alone, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.phased_files import phased_records, write_vcf

from popdesic.__main__ import main
from popdesic.cohort import phased_targets

N_SITES, N = 500, 8
POS = 40_000 * np.arange(1, N_SITES + 1)
HALF = N_SITES // 2


@pytest.fixture(autouse=True)
def few_sites(monkeypatch):
    monkeypatch.setattr(phased_targets, "MIN_SHARED_SITES", 1)


def mosaics(label: int, n: int, seed: int) -> np.ndarray:
    """Haplotypes (n_sites, n) that copy six ancestors of a source."""
    ancestors = np.random.default_rng(label).random((N_SITES, 6)) < 0.4
    rng = np.random.default_rng(seed)
    at = np.repeat(rng.integers(0, 6, (N_SITES // 20, n)), 20, axis=0)
    return np.take_along_axis(ancestors, at, axis=1).astype(int)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    names = [f"r{k}" for k in range(2 * N + 2)]
    rows = [mosaics(0, 2 * N, 1), mosaics(1, 2 * N, 2), mosaics(0, 4, 3)]
    vcf = write_vcf(folder / "r.vcf", names, phased_records(np.concatenate(rows, axis=1), POS))
    assert main(["freeze", str(vcf), "-o", str(folder / "r.npz")]) == 0
    labels = ["west"] * N + ["east"] * N
    lines = [f"{name}\t{label}\n" for name, label in zip(names, labels, strict=False)]
    (folder / "labels.tsv").write_text("sample\tlabel\n" + "".join(lines))
    joined = mosaics(0, 2, 4)
    joined[HALF:] = mosaics(1, 2, 5)[HALF:]
    rows = np.concatenate([joined, mosaics(1, 2, 6)], axis=1)
    write_vcf(folder / "two.vcf", ["joined", "pure"], phased_records(rows, POS))
    write_vcf(folder / "one.vcf", ["joined"], phased_records(joined, POS))
    return folder


def ancestry(folder, target: str, out, labels="labels.tsv"):
    words = ["--reference", str(folder / "r.npz"), "--labels", str(folder / labels)]
    return main(["ancestry", str(folder / target), *words, "-o", str(out)])


def test_tracts_and_proportions(folder, tmp_path):
    assert ancestry(folder, "two.vcf", tmp_path / "t.tsv") == 0
    tracts = pd.read_csv(tmp_path / "t.tsv", sep="\t")
    one = tracts[(tracts["sample"] == "joined") & (tracts.haplotype == 1)]
    assert one.label.tolist() == ["west", "east"]
    assert one.start.iloc[0] == POS[0]
    assert abs(one.end.iloc[0] - POS[HALF]) < 20 * 40_000
    assert one.end.iloc[1] == POS[-1]
    assert one.sites.sum() == N_SITES
    assert (tracts[tracts["sample"] == "pure"].label == "east").all()
    found = pd.read_csv(tmp_path / "t.proportions.tsv", sep="\t", index_col="sample")
    assert found.west.tolist() == pytest.approx([0.5, 0], abs=0.03)
    np.testing.assert_allclose(found.west + found.east, 1, atol=1e-5)
    bed = [line.split("\t") for line in (tmp_path / "t.bed").read_text().splitlines()]
    assert [int(row[1]) + 1 for row in bed] == tracts.start.tolist()
    assert bed[0][3] == "joined:1:west"
    # Alone: the same tracts.
    assert ancestry(folder, "one.vcf", tmp_path / "alone.tsv") == 0
    text = (tmp_path / "t.tsv").read_text().splitlines()
    alone = (tmp_path / "alone.tsv").read_text().splitlines()
    assert alone == [line for line in text if not line.startswith("pure")]


def test_files_beside_the_output_are_no_inputs_and_nobody_elses(folder, tmp_path, capsys):
    mine = tmp_path / "t.proportions.tsv"
    mine.write_text((folder / "labels.tsv").read_text())
    assert ancestry(folder, "one.vcf", tmp_path / "t.tsv") == 1
    assert f"{mine} is there already" in capsys.readouterr().err
    assert ancestry(folder, "one.vcf", tmp_path / "t.tsv", mine) == 1
    assert f"{mine} is the input" in capsys.readouterr().err
    assert mine.read_text() == (folder / "labels.tsv").read_text()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("sample\tname\nr0\tA\n", "lacks the column 'label'"),
        ("sample\tlabel\nr0\tA\nzz\tB\n", "row 3: sample 'zz' is not in the reference"),
        ("sample\tlabel\nr0\tA\nr0\tB\n", "row 3: sample 'r0' has the label 'B'"),
        ("sample\tlabel\nr0\tA\nr1\tA\n", "has 1 labels"),
        ("sample\tlabel\nr0\tsample\nr1\tA\n", "is a column of the results"),
    ],
)
def test_mistakes_in_labels_get_one_sentence(folder, tmp_path, capsys, table, said):
    (folder / "wrong.tsv").write_text(table)
    assert ancestry(folder, "one.vcf", tmp_path / "t.tsv", "wrong.tsv") == 1
    assert said in capsys.readouterr().err
