"""Tables of maps with the columns of the sample sheet, for users, which the report's job writes."""

from __future__ import annotations

import io
from pathlib import Path

from ..cohort.samples import describe_samples
from ..core.files import atomic_path
from ..core.tables import open_lines, write_rows


def label_maps(tables: dict[Path, Path], order: Path, sheet: Path) -> None:
    """Write each map again with the columns of the sheet behind its own, which keep their text.

    Parameters
    ----------
    tables : dict
        Where to write each map of `write_embedding`.
    order, sheet : Path
        `distance/samples.tsv`, whose order all maps have, and the sample sheet.
    """
    labels = describe_samples(order, sheet).drop(columns=["sample", "cohort"])
    behind = [""] * (1 + len(labels))
    if len(labels.columns):
        text = io.StringIO()
        write_rows(text, labels, header=True)
        behind = [f"\t{line}" for line in text.getvalue().split("\n")[:-1]]
    for path, out in tables.items():
        with (
            open(path, encoding="utf-8") as own,
            atomic_path(out) as temporary,
            open_lines(temporary) as file,
        ):
            rows = zip(own, behind, strict=True)
            file.writelines(f"{line[:-1]}{further}\n" for line, further in rows)
