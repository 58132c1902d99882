"""Tables of maps with the columns of the sheet: the map's own text, then the labels."""

from __future__ import annotations

import numpy as np
import pytest

from popdesic.cohort.samples import describe_samples
from popdesic.components.tables import write_embedding
from popdesic.core.tables import read_table, write_table
from popdesic.maps.labels import label_maps


@pytest.mark.parametrize("columns", [[], ["population", "note"]])
def test_maps_have_the_columns_of_the_sheet_behind_their_own(tmp_path, columns):
    """A map's own text stays, and the whole is as if it was written at once."""
    rng = np.random.default_rng(1)
    names = [f"s{k}" for k in rng.permutation(12)]
    sheet, order = tmp_path / "sheet.tsv", tmp_path / "order.tsv"
    labels = [["µ", "Ōsaka", "", "NA"][k % 4] + "x" * (k % 2) for k in range(12)]
    rows = [[s, "ab"[k % 2], *[labels[k]] * len(columns)] for k, s in enumerate(sorted(names))]
    lines = ["\t".join(row) for row in [["sample", "cohort", *columns], *rows]]
    sheet.write_text("\n".join(lines) + "\n", "utf-8")
    known = read_table(sheet)[["sample", "cohort"]].set_index("sample").loc[names].reset_index()
    write_table(order, known)
    samples = describe_samples(order, sheet)
    tables = {tmp_path / f"{k}.tsv": tmp_path / f"labelled{k}.tsv" for k in range(3)}
    for k, path in enumerate(tables):
        coordinates = rng.normal(size=(12, k + 1)) if k < 2 else np.full((12, 3), np.nan)
        write_embedding(path, samples, coordinates, "UMAP")
    label_maps(tables, order, sheet)
    for path, out in tables.items():
        plain, found = read_table(path), read_table(out)
        assert found.columns.tolist() == [*plain, *columns]
        assert found[plain.columns.tolist()].equals(plain)
        assert found[columns].equals(samples[columns])
        assert (out.read_bytes() == path.read_bytes()) == (not columns)
        write_table(tmp_path / "at_once.tsv", found)
        assert (tmp_path / "at_once.tsv").read_bytes() == out.read_bytes()
