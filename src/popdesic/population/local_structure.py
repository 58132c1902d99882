"""Local structure: principal components of windows of sites (Li and Ralph 2019, Genetics 211).

Along most of a genome the same ancestry orders people. Where another order holds, something local
does: an inversion, whose arrangements hardly recombine, introgression, selection, or a region of
low recombination. For each window the leading AXES principal components of the founders are
computed, windows are compared by what their components say, and classical scaling places them on
two axes. A region is a run of windows that are more like each other, also beyond the reach of LD,
than chance has it in random orders of the windows. The map itself is no test: even in one
population without any inversion its axes show neighbours that share haplotypes.

With v_i the components of a window (unit vectors over people) and l_i their variances, divided by
their sum, the distance of two windows is the Frobenius norm of sum l_i v_i v_i' - sum m_j w_j w_j':

    d^2 = sum l_i^2 + sum m_j^2 - 2 sum_ij l_i m_j (v_i . w_j)^2

as `pc_dist(normalize="L1")` of lostruct has it. Signs of components and REF or ALT do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..cohort.panel import load_panel
from ..core.files import write_json
from ..core.random_numbers import lots_of
from ..core.tables import read_table, write_table
from ..core.threads import one_blas_thread
from ..io.bed import open_bed, read_fam
from ..io.genotypes import MISSING
from ..io.sites import contig_runs
from .local_regions import LEAST_WINDOWS, find_alike_regions
from .options import used_sites

#: Sites of a window.
WINDOW_SITES = 200

#: Components of a window, and axes of the map of windows.
AXES = 2
#: Most people: a random part of the founders, so that cost does not grow with them.
MOST_PEOPLE = 1000
#: Most windows; with more sites, windows grow.
MOST_WINDOWS = 2000
#: Fewer people say nothing.
LEAST_PEOPLE = 20
#: Genotypes of the four samples of each byte of a .bed file, int8 (256, 4). A table, because a job
#: that only reads a few founders does not earn back the time that numba takes to start.
GENOTYPES_OF_BYTE = np.array([2, MISSING, 1, 0], np.int8)[
    np.arange(256)[:, None] >> np.array([0, 2, 4, 6]) & 3
]

#: Returns the genotypes int8 (last - first, n_people) of sites [first, last).
Reader = Callable[[int, int], np.ndarray]


def genome_windows(chrom: np.ndarray, sites: int) -> np.ndarray:
    """Windows of about `sites` sites, int64 (n_windows, 2): first site, and end.

    A contig is divided into windows of equal size; one of less than half a window has none.
    """
    found = []
    for first, last in contig_runs(chrom):
        count = round((last - first) / sites)
        if count:
            edges = np.rint(np.linspace(first, last, count + 1)).astype(np.int64)
            found.append(np.column_stack([edges[:-1], edges[1:]]))
    return np.concatenate(found) if found else np.empty((0, 2), np.int64)


def window_components(genotypes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Leading principal components of the people in a window.

    Parameters
    ----------
    genotypes : int8 array, (n_sites, n)
        0, 1, 2; -1 where missing, which counts as the mean of the site.

    Returns
    -------
    values : float64 array, (AXES,)
        Their variances, divided by their sum; NaN if fewer than AXES + 1 sites vary.
    vectors : float64 array, (n, AXES)
    """
    known = genotypes >= 0
    called = known.sum(axis=1)
    x = np.maximum(genotypes, 0).astype(np.float64)
    x -= (x.sum(axis=1) / np.maximum(called, 1))[:, None]
    x *= known
    x = x[np.einsum("ij,ij->i", x, x) > 1e-9]
    nothing = np.full(AXES, np.nan), np.zeros((genotypes.shape[1], AXES))
    if len(x) <= AXES:
        return nothing
    wide = len(x) < x.shape[1]
    values, vectors = np.linalg.eigh(x @ x.T if wide else x.T @ x)
    values, vectors = values[: -AXES - 1 : -1], vectors[:, : -AXES - 1 : -1]
    if not values[-1] > 1e-9 * values[0]:
        return nothing
    if wide:
        vectors = (x.T @ vectors) / np.sqrt(values)
    return values / values.sum(), vectors


def window_distances(values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Distances of windows.

    Parameters
    ----------
    values : float64 array, (n_windows, AXES)
    vectors : float64 array, (n_windows, n, AXES)

    Returns
    -------
    float64 array, (n_windows, n_windows)
        From 0 to sqrt(2).
    """
    n_windows, n, axes = vectors.shape
    flat = (vectors * np.sqrt(values)[:, None]).transpose(0, 2, 1).reshape(-1, n)
    products = flat @ flat.T
    joint = (products * products).reshape(n_windows, axes, n_windows, axes).sum(axis=(1, 3))
    own = (values**2).sum(axis=1)
    squared = own[:, None] + own - 2 * joint
    np.fill_diagonal(squared, 0.0)
    return np.sqrt(np.maximum(squared, 0.0))


def centred(distances: np.ndarray) -> np.ndarray:
    """Inner products behind a matrix of distances, from their centre: how like windows are."""
    squared = distances**2
    squared -= squared.mean(axis=0)
    squared -= squared.mean(axis=1)[:, None]
    return -0.5 * squared


def likeness_of(distances: np.ndarray) -> np.ndarray:
    """Correlations of what windows have of their own: `centred`, its diagonal scaled to 1."""
    products = centred(distances)
    own = np.sqrt(np.maximum(np.diagonal(products), 1e-12))
    return products / own[:, None] / own


def scale_windows(distances: np.ndarray) -> np.ndarray:
    """Classical scaling to AXES axes, float64 (n_windows, AXES); the largest value is positive."""
    values, vectors = np.linalg.eigh(centred(distances))
    values, vectors = values[: -AXES - 1 : -1], vectors[:, : -AXES - 1 : -1]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(AXES)]
    return vectors * np.sign(largest) * np.sqrt(np.maximum(values, 0.0))


@one_blas_thread
def local_table(
    read: Reader, sites: pd.DataFrame, n_people: int, size: int, seed: int = 1
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Components of windows, their map, and regions that differ.

    Parameters
    ----------
    read : callable
        `Reader` of the people's genotypes.
    sites : DataFrame
        `chrom`, `pos`, in order.
    size : int
        Sites of a window; more where there would be more than MOST_WINDOWS.

    Returns
    -------
    table : DataFrame
        A row a window: `window`, `chrom`, `start`, `end`, `sites`, `mds1`, `mds2`, `outlier` (yes,
        no; NA where nothing could be said), `region`, `p` (family-wise; NA outside of regions).
    about : dict
        `people`, `windows`, `window_sites`, `regions` and, where nothing could be said, `reason`.
    """
    size = max(size, -(-len(sites) // MOST_WINDOWS))
    chrom, pos = sites.chrom.to_numpy(), sites.pos.to_numpy(np.int64)
    windows = genome_windows(chrom, size)
    n = len(windows)
    table = pd.DataFrame(
        {
            "window": np.arange(1, n + 1),
            "chrom": chrom[windows[:, 0]],
            "start": pos[windows[:, 0]],
            "end": pos[windows[:, 1] - 1],
            "sites": windows[:, 1] - windows[:, 0],
            "mds1": np.nan,
            "mds2": np.nan,
            "outlier": "NA",
            "region": "NA",
            "p": np.nan,
        }
    )
    about: dict[str, Any] = {"people": n_people, "windows": n, "window_sites": size, "regions": 0}
    if n_people < LEAST_PEOPLE or n < LEAST_WINDOWS:
        return table, about | {"reason": _too_few(n_people, n)}
    values, vectors = np.empty((n, AXES)), np.empty((n, n_people, AXES))
    for k, (first, last) in enumerate(windows):
        values[k], vectors[k] = window_components(read(int(first), int(last)))
    known = np.flatnonzero(np.isfinite(values[:, 0]))
    about["windows"] = len(known)
    if len(known) < LEAST_WINDOWS:
        return table, about | {"reason": _too_few(n_people, len(known))}
    distances = window_distances(values[known], vectors[known])
    table.loc[known, ["mds1", "mds2"]] = scale_windows(distances)
    table.loc[known, "outlier"] = "no"
    regions = find_alike_regions(likeness_of(distances), table.chrom.to_numpy()[known], seed)
    for name, (first, end, p) in enumerate(regions, start=1):
        rows = known[first:end]
        table.loc[rows, "outlier"] = "yes"
        table.loc[rows, "region"] = str(name)
        table.loc[rows, "p"] = p
    return table, about | {"regions": len(regions)}


def _too_few(people: int, windows: int) -> str:
    """Why nothing can be said."""
    if people < LEAST_PEOPLE:
        return f"{people} unrelated founders are too few (at least {LEAST_PEOPLE} are needed)"
    return f"{windows} windows are too few (at least {LEAST_WINDOWS} are needed)"


def measure_local_structure(
    prefixes: Sequence[Path],
    panel: Path,
    unrelated: Path | None,
    *,
    sites: int = WINDOW_SITES,
    x_contigs: list[str],
    seed: int,
    table_out: Path,
    summary_out: Path,
) -> dict[str, Any]:
    """Write `local_pca.tsv` and its summary, from the unrelated founders alone.

    So nothing changes, and no genotype is read, when a cohort arrives.

    Parameters
    ----------
    prefixes : sequence of Path
        `results/cohorts/{cohort}/genotypes` of the founder cohorts.
    panel : Path
        `panel/sites.tsv`.
    unrelated : Path, optional
        `panel/unrelated.tsv`; without it all founders count.
    sites : int
        Sites of a window.
    x_contigs : list of str
        As in `counts.count_cohort`.

    Returns
    -------
    dict
        `local_table`'s summary.
    """
    all_sites, _ = load_panel(panel)
    used = np.flatnonzero(used_sites(all_sites, x_contigs))
    names = [read_fam(prefix)["sample"] for prefix in prefixes]
    chosen = {name for own in names for name in own}
    if unrelated is not None:
        rows = read_table(unrelated)
        chosen &= set(rows["sample"][rows.unrelated == "yes"])
    if len(chosen) > MOST_PEOPLE:
        sorted_names = sorted(chosen)
        first = np.argsort(lots_of(sorted_names), kind="stable")[:MOST_PEOPLE]
        chosen = {sorted_names[k] for k in first}
    keep = [np.flatnonzero(own.isin(chosen).to_numpy()) for own in names]
    parts = [
        (open_bed(prefix, n_samples=len(own), n_sites=len(all_sites)), who)
        for prefix, own, who in zip(prefixes, names, keep, strict=True)
        if len(who)
    ]

    def read(first: int, last: int) -> np.ndarray:
        rows = used[first:last]
        return np.concatenate(
            [GENOTYPES_OF_BYTE[bed[rows]].reshape(len(rows), -1)[:, who] for bed, who in parts],
            axis=1,
        )

    table, about = local_table(read, all_sites.iloc[used], sum(map(len, keep)), sites, seed)
    write_table(table_out, table)
    write_json(summary_out, about)
    return about
