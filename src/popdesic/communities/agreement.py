"""The table of partitions, and their agreement with the labels of the sample sheet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.samples import UNKNOWN, describe_samples
from ..core.tables import read_table, write_table

#: Columns of the sheet with more labels than this are not compared.
MOST_LABELS = 100
#: Columns of `communities/partition.tsv` that are no partition.
NO_PARTITION = ["sample", "stability", "f_st", "between"]


def agreement(partition: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """Adjusted Rand index and adjusted mutual information of partitions with labels.

    Samples without a label are left out; HDBSCAN's noise is one more group. Columns of the sheet
    with one label, more than MOST_LABELS labels, or more labels than half the samples are skipped.

    Returns
    -------
    DataFrame
        `label`, `partition`, `samples`, `labels`, `groups`, `noise`, `ari`, `ami`.
    """
    from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

    rows = []
    for column in (c for c in samples.columns if c != "sample"):
        known = ~samples[column].isin(UNKNOWN).to_numpy()
        labels = samples[column].to_numpy()[known]
        if not 2 <= len(set(labels)) <= min(MOST_LABELS, len(labels) // 2):
            continue
        for name in partition.columns.drop(NO_PARTITION):
            groups = partition[name].to_numpy()[known]
            rows.append(
                {
                    "label": column,
                    "partition": name,
                    "samples": len(labels),
                    "labels": len(set(labels)),
                    "groups": len(set(groups) - {0}),
                    "noise": int((groups == 0).sum()),
                    "ari": adjusted_rand_score(labels, groups),
                    "ami": adjusted_mutual_info_score(labels, groups),
                }
            )
    columns = ["label", "partition", "samples", "labels", "groups", "noise", "ari", "ami"]
    return pd.DataFrame(rows, columns=columns)


def compare_labels(partition: Path, order: Path, sheet: Path, out: Path) -> None:
    """Write the `agreement` of `communities/partition.tsv` with every column of the sheet.

    `order`: `distance/samples.tsv`, whose order the partition has.
    """
    write_table(out, agreement(load_partition(partition), describe_samples(order, sheet)))


def load_partition(path: Path) -> pd.DataFrame:
    """`communities/partition.tsv`: text, float64 `stability` and `f_st`, others int64."""
    table = read_table(path)
    numbers = ["stability", "f_st"]
    table[numbers] = table[numbers].apply(pd.to_numeric, errors="coerce")
    whole = table.columns.drop(NO_PARTITION)
    table[whole] = table[whole].astype(np.int64)
    return table
