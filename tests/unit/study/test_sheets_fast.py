"""The quick ways to read and digest large sheets give what the careful ways give."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from popdesic.cohort import sheet_text
from popdesic.cohort.sheet_text import read_sheet
from popdesic.core.errors import UserError
from popdesic.core.files import digest
from popdesic.study.sheets import Study

PLAIN = "sample\tcohort\tplate\na1\tone\tp 1\na2\tone\t\na3\ttwo\tp 1\n"


def read_both(path, text, monkeypatch):
    """What is read of a text with the quick way and without, or the error; whether it was quick."""
    path.write_bytes(text.encode())
    found = []
    for quick in (True, False):
        with monkeypatch.context() as patch:
            if not quick:
                patch.setattr(sheet_text, "_split_plain", lambda text: None)
            try:
                table = read_sheet(path, "sheet")
                found.append((list(table), [list(map(str, table[c])) for c in table]))
            except UserError as error:
                found.append(str(error))
    return found, sheet_text._split_plain(text) is not None


@pytest.mark.parametrize(
    ("text", "quick"),
    [
        (PLAIN, True),
        (PLAIN.rstrip("\n"), True),
        (PLAIN + "\n\n", False),
        (PLAIN.replace("\n", "\r\n"), False),
        (PLAIN.replace("a2\t", "a2 \t"), False),
        (PLAIN.replace("a2\t", "é2\t"), False),
        (PLAIN.replace("a2\tone", '"a2"\tone'), False),
        (PLAIN.replace("a2\tone\t", "\t\t"), False),
        (PLAIN.replace("a1\tone\tp 1", "a1\tone"), False),
        # One column too many in one row and one too few in another.
        (PLAIN.replace("a1\tone\tp 1", "a1\tone\tp\t1").replace("a3\ttwo\tp 1", "a3\ttwo"), False),
        (PLAIN.replace("plate", ""), False),
        (PLAIN.replace("plate", "cohort"), True),
        ("sample\tcohort\n", False),
        ("sample\nx\ny\n", True),
        ("", False),
    ],
)
def test_the_quick_way_reads_the_same(tmp_path, monkeypatch, text, quick):
    found, was_quick = read_both(tmp_path / "sheet.tsv", text, monkeypatch)
    assert found[0] == found[1]
    assert was_quick == quick


def test_random_sheets_are_read_alike(tmp_path, monkeypatch):
    rng = np.random.default_rng(8)
    cells = ["a", "b c", "", "NA", "x,y", "7"]
    for _ in range(200):
        width, height = rng.integers(1, 5), rng.integers(0, 6)
        lines = [["s", "t", "u", "v"][:width]]
        lines += [list(rng.choice(cells, width)) for _ in range(height)]
        text = "\n".join("\t".join(line) for line in lines) + "\n"
        found, _ = read_both(tmp_path / "sheet.tsv", text, monkeypatch)
        assert found[0] == found[1], text


@pytest.mark.parametrize("odd", ["p", "p,1", 'p"1', "", None])
def test_digests_are_those_of_the_csv(odd):
    """The digest is a parameter of rules: another one would run whole studies again."""
    cohorts = pd.DataFrame({"founder": [True, False]}, index=["one", "two"])
    samples = pd.DataFrame(
        {"sample": ["a", "b", "c"], "cohort": ["one", "one", "two"], "plate": ["x", odd, "y"]}
    )
    study = Study(cohorts, samples)
    for cohort, rows in ((None, samples), ("one", samples[:2]), ("two", samples[2:])):
        expected = digest(rows.to_csv(index=False))
        assert study.digest_of(cohort) == expected
        expected = digest(rows[["sample", "plate"]].to_csv(index=False))
        assert study.digest_of(cohort, "plate") == expected
        assert study.digest_of(cohort, "sample") == digest(rows[["sample"]].to_csv(index=False))
    nobody = Study(cohorts, samples[:0])
    assert nobody.digest_of("one") == digest(samples[:0].to_csv(index=False))
