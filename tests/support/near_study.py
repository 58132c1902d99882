"""The nearest samples of a study without a matrix of all pairs, by the jobs of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from popdesic.cohort.planes import load_planes
from popdesic.distance.fill_rows import update_rows
from popdesic.distance.landmarks import landmarks_of_cohorts
from popdesic.distance.neighbor_lists import join_neighbors, span_founders
from popdesic.distance.neighbors import row_work
from popdesic.distance.rows import Rows
from popdesic.engine.backend import Backend


def write_neighbors(
    folders: Sequence[Path],
    out: Path,
    backend: Backend,
    *,
    founders: Sequence[str] = (),
    on_uncomparable: str = "keep",
    code: str = "",
    **options,
) -> dict[str, int]:
    """Write rows of tiles, the founders' tree and the joined lists below `out`.

    `options`: k, metric, missing, min_called. All cohorts are founders where none is named. Returns
    the counts of the last job, and sums of those of the rows.
    """
    by_name = {folder.name: folder for folder in folders}
    founders = [name for name in by_name if name in (founders or by_name)]
    sizes = {name: load_planes(by_name[name])[0].n_samples for name in founders}
    rows = Rows(out / "tiles", list(by_name), founders, ".npz")
    lists = {row: out / f"tiles/{row}/row.json" for row in by_name}
    sums: dict[str, int] = {}
    for row, path in lists.items():
        about = options | {"landmarks": landmarks_of_cohorts(sizes), "code": code}
        work = row_work(path, rows.pairs(row), by_name, **about)
        counts = update_rows([work], by_name, lambda need: backend)
        sums = {name: sums.get(name, 0) + value for name, value in counts.items()}
    tree = out / "founder_tree.npz"
    made = [lists[name] for name in founders]
    span_founders(made, by_name, founders, tree, lambda need: backend, **options)
    joined = join_neighbors(
        list(lists.values()),
        tree,
        list(by_name),
        founders,
        out / "neighbors.npz",
        out / "landmarks.npy",
        k=options["k"],
        min_called=options["min_called"],
        on_uncomparable=on_uncomparable,
        threads=2,
    )
    return sums | joined
