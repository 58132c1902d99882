"""Axes of the PCA: sites, frequencies, number and loadings, all from the unrelated founders."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..cohort.panel import load_panel
from ..cohort.prune_options import parse_pruning
from ..cohort.samples import unrelated_founders
from ..cohort.site_alleles import names_once, read_cohorts
from ..cohort.site_planes import read_site_planes
from ..core.files import write_json
from ..core.laps import Laps
from ..core.limits import MOST_DENSE
from ..core.tables import write_npz
from ..engine.backend import Backend
from ..engine.genotype_products import GenotypeProducts
from ..engine.needs import by_weights
from ..engine.select import cpu_backend
from ..engine.team import Team
from .axis_sites import AxisSites, choose_sites
from .large_pca import (
    loadings_of_many,
    products_of_many,
    significant_axes_of_many,
)
from .loading_scores import site_weights
from .loadings import find_regions, site_loadings, write_loadings
from .noise_null import significant_axes
from .one_family import axes_of_families, drop_families
from .pca import STORED, WEIGHTS
from .relationship import alleles_of, calls_of, relationship_among
from .significance import LEVEL

log = logging.getLogger(__name__)
#: Components that the scree figure shows.
SHOWN = 20
#: Samples that define axes are not left out for their family if fewer than this many would be left.
FEWEST_LEFT = 20


def define_axes(
    prefixes: list[Path],
    panel: Path,
    *,
    unrelated: Path | None,
    components: int | str,
    pcs: int | str,
    ld_prune: list,
    regions: list,
    out: Mapping[str, Path],
    threads: int = 1,
    backend: Backend | None = None,
    most_dense: int = MOST_DENSE,
    team: Team | None = None,
) -> dict:
    """Define the axes of a study from its founders; no later cohort takes part.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the founders' genotypes on the panel, in sample order.
    unrelated : Path, optional
        `panel/unrelated.tsv`: only its unrelated founders define the axes.
    components, pcs : int or 'auto'
        `embedding.components` and `geodesic.pcs`: the larger is the number of components. With
        ``auto`` for `pcs`, as many more are stored as the choice of geodesics compares.
    ld_prune : list
        `embedding.ld_prune`; empty for none.
    regions : list
        Regions of long-range LD to leave out (`long_range_ld.regions_of`).
    out : dict
        ``axes``, .npz with `values` (q,), `vectors` (n, q), `trace`, `k` (components to store),
        `own` (n,) and `significant` (`Axes`); `samples` (n,); `sites` (rows of the panel) and their
        `af`; of very many samples (`by_weights`) `weights` (`site_weights`). ``about``, JSON that
        is returned too. ``loadings`` (`loadings.write_loadings`).
    backend : Backend, optional
        The CPU by default. The bytes are the same from every backend.
    most_dense : int
        Of more samples no matrix of all pairs is made (`large_pca`).
    team : Team, optional
        Processes among which contigs, and passes over genotypes, are shared, all on the CPU. This
        one leads them.

    Returns
    -------
    dict
        `axis_samples`; `sites` (counts of `AxisSites`), `ld_r2` in use, `ld_window`,
        `ld_beyond` (`AxisSites.r2_beyond`); `significant`
        components, `level`, `noise` (`Noise`) and `components`; of the leading SHOWN
        `scree` and `threshold` (shares of the variance; None where none can be given) and `p`;
        `regions` (`find_regions`); `families`: axes of one family that were found on the way
        (`one_family.drop_families`), whose samples no longer define axes.
    """
    laps = Laps()
    sites, _ = load_panel(panel)
    laps.end("panel")
    names = [names_once(prefix) for prefix in prefixes]
    keep = unrelated_founders(names, unrelated)
    backend = backend or cpu_backend(threads)
    stored = STORED if pcs == "auto" else 0
    families: list[dict] = []
    while True:
        most, _, layered = alleles = alleles_of(prefixes, keep)
        among = prefixes, keep, sites, layered, ld_prune, regions, threads
        if team is None:
            chosen_sites = _choose(backend, None, *among)
        else:
            chosen_sites = team.call(_choose_together, *among)
        laps.end("choosing sites")
        used = sites.iloc[chosen_sites.rows]
        defining = [s for own, who in zip(names, keep, strict=True) for s in own[who]]
        many = None
        given = prefixes, chosen_sites.rows, keep, chosen_sites.af
        if len(defining) > most_dense and not layered:
            many = products_of_many(_products(given, backend, team), defining)
            laps.end("genotypes and their sums")
        if many is not None:
            axes, tests, noise = significant_axes_of_many(
                many,
                used,
                components,
                pcs,
                names=defining,
                backend=cpu_backend(threads),
                stored=stored,
            )
            laps.end("axes")
        else:
            read, sizes = read_cohorts(prefixes, chosen_sites.rows, keep)
            axes, tests, noise = significant_axes(
                relationship_among(read, sizes, chosen_sites.af, threads, most, alleles.weights),
                read,
                sizes,
                chosen_sites.af,
                used,
                components,
                pcs,
                threads=threads,
                names=defining,
                most=most,
                weights=alleles.weights,
            )
            laps.end("axes")
        found = (
            []
            if unrelated is None
            else axes_of_families(
                axes.vectors[:, : tests.count],
                prefixes,
                chosen_sites.rows,
                keep,
                chosen_sites.af,
                used,
            )
        )
        laps.end("families")
        left, told = drop_families(keep, defining, found)
        if not found or sum(int(who.sum()) for who in left) < FEWEST_LEFT:
            break
        keep, families = left, families + told
    if many is not None:
        loadings = loadings_of_many(many, axes)
    else:
        leading = axes.values[: axes.k], axes.vectors[:, : axes.k]
        loadings = site_loadings(read, chosen_sites.af, *leading, most, alleles.weights)
    laps.end("loadings")
    weights = {}
    if by_weights(len(defining)) and not layered:
        products = many.products if many else _products(given, backend, team)
        called = many.called if many else products.sample_sums().called
        weights[WEIGHTS] = site_weights(products, called, defining, axes.vectors)
        laps.end("weights")
    stored = min(max(axes.k, stored), len(axes.values))
    write_loadings(out["loadings"], used, loadings)
    write_npz(
        out["axes"],
        values=axes.values,
        vectors=axes.vectors,
        trace=np.array(axes.trace),
        k=np.array(stored),
        own=axes.own,
        significant=np.array(axes.significant),
        samples=np.array(defining, str),
        sites=chosen_sites.rows,
        af=chosen_sites.af,
        **weights,
    )
    laps.end("writing")
    about = {
        "axis_samples": len(defining),
        "sites": chosen_sites.counts,
        "ld_r2": chosen_sites.r2,
        "ld_window": ld_prune[0] if ld_prune else None,
        "ld_beyond": chosen_sites.r2_beyond,
        "significant": tests.count,
        "level": LEVEL,
        "noise": {name: float(f"{x:.6g}") for name, x in asdict(noise).items()},
        "components": axes.k,
        "scree": _rounded(axes.explained[:SHOWN]),
        "threshold": _rounded(tests.threshold[:SHOWN] / axes.trace),
        "p": _rounded(tests.p[:SHOWN]),
        "families": families,
        "regions": find_regions(used.reset_index(drop=True), loadings),
    }
    write_json(out["about"], about)
    laps.end("regions")
    laps.log(log, "axes")
    return about


def _choose(
    backend: Backend,
    run: Callable[..., list] | None,
    prefixes: list[Path],
    keep: list[np.ndarray],
    sites: pd.DataFrame,
    layered: bool,
    ld_prune: list,
    regions: list,
    threads: int,
) -> AxisSites:
    """`choose_sites` among the samples to keep."""
    return choose_sites(
        read_site_planes(prefixes, keep, threads),
        sites,
        backend,
        n_samples=sum(int(who.sum()) for who in keep),
        read_alone=read_site_planes(prefixes, keep),
        read_alleles=read_cohorts(prefixes, None, keep)[0] if layered else None,
        pruning=parse_pruning(ld_prune, "embedding.ld_prune") if ld_prune else None,
        regions=regions,
        run=run,
    )


def _choose_together(team: Team, *among: Any) -> AxisSites:
    return _choose(cpu_backend(among[-1]), team.run_tasks, *among)


def _products(given: tuple, backend: Backend, team: Team | None) -> GenotypeProducts:
    """Products of the genotypes that `calls_of` takes; those of a team are its own."""
    if team is None:
        return backend.genotype_products(calls_of(*given))
    team.call(_share_products, given, backend.threads)
    return team.products


def _share_products(team: Team, given: tuple, threads: int) -> None:
    from ..engine.shared_products_cpu import SharedProducts  # numba starts slowly

    SharedProducts(calls_of(*given), threads, team)


def _rounded(numbers: np.ndarray) -> list[float | None]:
    return [float(f"{x:.6g}") if np.isfinite(x) else None for x in numbers.tolist()]
