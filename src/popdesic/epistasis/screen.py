"""Screen: extend the best pairs by every third site. Not an exhaustive scan of triples."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..cohort.site_planes import site_planes
from ..engine.backend import Backend
from ..engine.terms import Planes, Product, Terms
from ..io.sites import chunks
from .partners import far_enough, hardly_correlated
from .reorder import genotypes_of_planes, read_reordered
from .scan_data import Hits, merge_hits
from .scores import load_scan, table_cost
from .units import merge_units, write_unit

#: Pairs and third sites whose tables are computed at once; most genotypes of these sites, and of
#: the nine masks of each of these pairs.
PAIRS, SITES, GENOTYPES = 32, 2048, 1 << 27
#: Products of a mask (genotype 1 inside, 0 outside) and a site: people inside the mask who carry
#: ALT, who are homozygous for it, who are called.
INSIDE = Terms(
    ("carriers", "homozygotes", "called"),
    tuple(Product(k, 1, "u", plane) for k, plane in enumerate("uvc")),
)


def extend_pairs(
    folder: Path,
    units: list[Path],
    backend: Backend,
    out: Path,
    *,
    pairs: int,
    score: str,
    top: int,
    min_distance_bp: int,
    max_r2: float,
) -> dict[str, int]:
    """Score the best `pairs` pairs with every third site; write the best `top` (cost, sites).

    Parameters
    ----------
    folder : Path
        `results/reorder`.
    units : list of Path
        All units of the scan of pairs.

    Returns
    -------
    dict
        Numbers of pairs and of kept triples.
    """
    words, _, _ = read_reordered(folder)
    data, sites, _ = load_scan(folder, score, min_distance_bp, max_r2)
    n = [one.n_samples for one in data.classes]
    best = merge_units(units, data.rank, pairs).sites
    limits = (slice(0, n[0]), slice(n[0], None))

    def genotypes(rows) -> np.ndarray:
        return genotypes_of_planes(words[rows], sites.iloc[rows], *n)

    kept = Hits(np.zeros(0, np.int64), np.zeros((0, 3), np.int32))
    few = max(1, GENOTYPES // max(1, sum(n)))
    for first, last in chunks(data.n_sites, min(SITES, few)):
        third = genotypes(np.arange(first, last))
        columns = [site_planes(third[:, part]) for part in limits]
        for start, stop in chunks(len(best), min(PAIRS, max(1, few // 9))):
            chosen = best[start:stop]
            states = genotypes(chosen.ravel()).reshape(len(chosen), 2, -1)
            tables = np.stack(
                [
                    tables_of_thirds(states[:, :, part], planes, backend)
                    for part, planes in zip(limits, columns, strict=True)
                ]
            )
            cost = table_cost(tables, data.total, data.part, data.lr_bits)
            may = _permitted(chosen, first, last, data.partners)
            rows, where = np.nonzero(may & hardly_correlated(tables, max_r2))
            members = np.column_stack([chosen[rows], first + where]).astype(np.int32)
            kept = _best_of(kept, cost[rows, where], np.sort(members, axis=1), data.rank, top)
    write_unit(out, range(data.n_sites), kept)
    return {"pairs": len(best), "triples": len(kept.cost)}


def tables_of_thirds(pairs: np.ndarray, third: Planes, backend: Backend) -> np.ndarray:
    """Tables of each pair with each third site in one class: int64 (n_pairs, n_sites, 27).

    `pairs`: ALT counts, int8 (n_pairs, 2, n_samples), -1 missing. The third site's genotype
    varies fastest.
    """
    inside = np.stack(
        [(pairs[:, 0] == a) & (pairs[:, 1] == b) for a in range(3) for b in range(3)], axis=1
    )
    masks = site_planes(inside.reshape(-1, inside.shape[-1]).astype(np.int8))
    carriers, homozygotes, called = backend.bitgemm(masks, third, INSIDE)
    table = np.stack([called - carriers, carriers - homozygotes, homozygotes], axis=-1)
    table = table.reshape(len(pairs), 9, -1, 3)
    return np.ascontiguousarray(table.swapaxes(1, 2)).reshape(len(pairs), -1, 27)


def _permitted(pairs: np.ndarray, first: int, last: int, partners) -> np.ndarray:
    """Whether sites first ... last - 1 are others, and far enough: bool (n_pairs, last - first)."""
    sites = np.arange(first, last)
    of_pairs = pairs[:, :, None]
    return ((of_pairs != sites) & far_enough(partners, of_pairs, sites)).all(axis=1)


def _best_of(kept: Hits, cost, sites, rank, top: int) -> Hits:
    """The best `top` of both; a triple found from several pairs counts once."""
    if len(kept.cost) == top:  # most new triples are worse than all kept ones
        close = cost <= kept.cost[-1]
        cost, sites = cost[close], sites[close]
    sites, which = np.unique(np.concatenate([kept.sites, sites]), axis=0, return_index=True)
    return merge_hits([Hits(np.concatenate([kept.cost, cost])[which], sites)], rank, top)
