"""Matrices, components and trees for other tools."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ..core.errors import UserError
from ..core.files import atomic_path
from ..core.tables import read_table
from ..core.triangle import open_symmetric
from ..distance.matrix import Distances
from ..distance.neighbor_joining import neighbor_joining
from ..distance.tiles import load_of_one_panel
from ..engine.backend import Backend
from ..relatives.kinship import king_robust, kinship_counts
from .panel import sample_names


def export_mibs(folder: Path, out: Path) -> None:
    """PLINK's `.mibs` with `.mibs.id`: the share of alleles identical by state, text, square.

    Parameters
    ----------
    folder : Path
        `results/distance`, with a metric that writes `ibs0.npy`.
    """
    squared, called, ibs0 = (
        open_symmetric(folder / f"{n}.npy")[:] for n in ("squared", "called", "ibs0")
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        shared = 1 - (squared - 2 * ibs0) / (2 * called)
    np.fill_diagonal(shared, 1.0)
    from ..core.number_text_cpu import write_matrix

    write_matrix(out, shared)
    names = read_table(folder / "samples.tsv")["sample"]
    with atomic_path(Path(f"{out}.id")) as temporary:
        temporary.write_text("".join(f"0\t{name}\n" for name in names))


def export_king(folders: list[Path], out: Path, backend: Backend) -> None:
    """PLINK 2's square `.king` with `.king.id`: KING-robust kinship of all pairs, text.

    Parameters
    ----------
    folders : list of Path
        `cohorts/{cohort}` in sample order, all on the same panel.
    """
    loaded = load_of_one_panel(folders)
    starts = np.cumsum([0, *(planes.n_samples for planes, _ in loaded)])
    matrix = np.empty((starts[-1], starts[-1]))
    for i, (a, _) in enumerate(loaded):
        for j, (b, _) in enumerate(loaded[i:], i):
            block = king_robust(kinship_counts(a, None if i == j else b, backend))
            matrix[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = block
            matrix[starts[j] : starts[j + 1], starts[i] : starts[i + 1]] = block.T
    np.fill_diagonal(matrix, 0.5)
    from ..core.number_text_cpu import write_matrix

    write_matrix(out, matrix, backend.threads, digits=6)
    names = sample_names([folder / "genotypes" for folder in folders])
    with atomic_path(Path(f"{out}.id")) as temporary:
        temporary.write_text("#IID\n" + "".join(f"{name}\n" for name in names))


def export_eigenvec(pca: Path, out: Path) -> None:
    """PLINK's `.eigenvec` (with a header) from the coordinates of the PCA, for --covar."""
    table = read_table(pca)
    components = [c for c in table.columns if c.startswith("PC") and c[2:].isdigit()]
    rows = table[["sample", *components]].assign(family="0")
    with atomic_path(out) as temporary:
        rows[["family", "sample", *components]].to_csv(
            temporary,
            sep="\t",
            index=False,
            header=["#FID", "IID", *components],
            quoting=csv.QUOTE_NONE,
        )


def export_phylip(distances: np.ndarray, names: list[str], out: Path) -> None:
    """A square PHYLIP matrix; names padded to ten characters, longer ones kept (relaxed)."""
    with atomic_path(out) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write(f"{len(names)}\n")
        for name, row in zip(names, distances, strict=True):
            file.write(f"{name:<10} {' '.join(f'{d:.9g}' for d in row)}\n")


def export_newick(distances: np.ndarray, names: list[str], out: Path) -> None:
    """The unrooted neighbour-joining tree in Newick format."""
    with atomic_path(out) as temporary:
        temporary.write_text(neighbor_joining(distances, names) + "\n", "utf-8")


def export_trees_and_matrices(
    folder: Path, formats: list[str], out: Path, *, metric: str, n_sites: int, min_called: int
) -> None:
    """Write the requested formats of ``phylip``, ``newick`` and ``mibs`` into `out`.

    Raises
    ------
    UserError
        A pair has too few jointly called sites, so its distance is unknown.
    """
    names = list(read_table(folder / "samples.tsv")["sample"])
    if "mibs" in formats:
        export_mibs(folder, out / "distance.mibs")
    if not {"phylip", "newick"} & set(formats):
        return
    wanted = " and ".join(f"'{name}'" for name in ("phylip", "newick") if name in formats)
    distances = known_distances(folder, names, wanted, metric, n_sites, min_called)
    if "phylip" in formats:
        export_phylip(distances, names, out / "distance.phylip")
    if "newick" in formats:
        export_newick(distances, names, out / "distance.nwk")


def known_distances(
    folder: Path, names: list[str], wanted: str, metric: str, n_sites: int, min_called: int
) -> np.ndarray:
    """Distances of all pairs, float64 (n, n), for a format that cannot say unknown.

    Raises
    ------
    UserError
        A pair has too few jointly called sites, so its distance is unknown.
    """
    source = Distances(folder, metric, n_sites, min_called)
    distances = np.concatenate([block for _, block in source.blocks()])
    if not np.isfinite(distances).all():
        i, j = np.argwhere(~np.isfinite(distances))[0]
        raise UserError(
            f"{folder}: samples '{names[i]}' and '{names[j]}' share fewer than "
            f"distance.min_called = {min_called} called sites, so their distance is unknown and "
            f"{wanted} of export.formats cannot be written; set distance.on_uncomparable to "
            "'drop'."
        )
    return distances
