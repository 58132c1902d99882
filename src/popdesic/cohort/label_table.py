"""The table of labels of the samples of a phased reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..copying.local_ancestry_plan import MOST_LABELS
from ..core.errors import UserError
from ..core.tables import read_columns
from ..io.frozen_haplotypes import HaplotypePanel


def read_labels(path: Path, panel: HaplotypePanel, fewest: int = 2) -> tuple[list[str], np.ndarray]:
    """Labels in order, and the number of that of each sample of the reference; -1: none.

    Raises
    ------
    UserError
        The table is not valid, or has fewer than `fewest` labels or more than `MOST_LABELS`.
    """
    if not path.is_file():
        raise UserError(f"there is no table of labels {path}; give one with sample and label.")
    columns = read_columns(path)
    for name in ("sample", "label"):
        if name not in columns:
            raise UserError(
                f"{path} lacks the column '{name}'; give a table, separated by tabs, with the "
                "columns sample and label."
            )
    number = {name: k for k, name in enumerate(panel.samples)}
    given: dict[str, str] = {}
    for row, (sample, label) in enumerate(zip(columns["sample"], columns["label"], strict=True), 2):
        if sample not in number:
            raise UserError(
                f"{path}, row {row}: sample '{sample}' is not in the reference {panel.path}; "
                "remove it from the table, or correct its name."
            )
        if not label or label == "NA" or given.get(sample, label) != label:
            raise UserError(
                f"{path}, row {row}: sample '{sample}' has the label '{label}'; give each sample "
                "one label, or leave it out."
            )
        given[sample] = label
    names = sorted(set(given.values()))
    if not fewest <= len(names) <= MOST_LABELS:
        raise UserError(
            f"{path} has {len(names)} labels; this command needs {fewest} to {MOST_LABELS}."
        )
    order = {name: k for k, name in enumerate(names)}
    return names, np.array(
        [order[given[sample]] if sample in given else -1 for sample in panel.samples]
    )
