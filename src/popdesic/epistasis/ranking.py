"""Hits of all scans of a phenotype: merged permutations, ranked tables."""

from __future__ import annotations

from typing import Any

from ..core.threads import one_blas_thread, run_forked
from ..engine.select import cpu_backend
from .evidence import MainEffects
from .finished import Scans
from .null_model import read_levels, read_null_model
from .options import MAX_PER_SITE, NAMES
from .permutations import merge_permutations
from .relatedness import Relatives
from .residual_scan import rank_residual_hits
from .significance import rank_hits


@one_blas_thread
def rank_scans(
    scans: Scans,
    relatives: Relatives,
    *,
    limits: dict[str, Any],
    quantitative: bool,
    top: int,
    max_per_site: int = MAX_PER_SITE,
    processes: int = 1,
) -> list[dict[str, Any]]:
    """Merge the units of all scans and write null.order{order}.tsv, hits and loci of each order.

    Parameters
    ----------
    limits : dict
        `min_distance_bp` and `max_r2` of the scans.
    quantitative : bool
        The phenotype is a number.
    top, max_per_site
        As of `significance.rank_hits`.
    processes : int
        Orders are ranked side by side; changes no byte.

    Returns
    -------
    list of dict
        Counts of each order for the log.
    """
    for order, count in scans.permutations.items():
        units = scans.units_of(order, "null.")
        merge_permutations(units, scans.null(order), permutations=count)

    def rank(order: int) -> dict[str, Any]:
        score, shared = scans.orders[order]
        by_residuals = quantitative or score == "residuals"
        levels = read_levels(scans.model) if by_residuals else None
        table, backend = scans.folder / "sites.tsv", cpu_backend(1)
        options = {
            "main_effects": MainEffects(table, backend, **limits, levels=levels)
            if shared
            else None,
            "top": top,
            "max_per_site": max_per_site,
            "loci_out": scans.loci(order),
            "relatives": relatives,
        }
        scan, out = scans.scan(order), scans.hits(order)
        if quantitative:
            counts = rank_residual_hits(scans.reorder, scans.model, scan, out, **options)
        else:
            design = read_null_model(scans.model).design
            counts = rank_hits(scans.reorder, scan, out, design=design, **options)
        return {"scan": NAMES[order]} | counts

    return run_forked(rank, [(order,) for order in scans.orders], processes)
