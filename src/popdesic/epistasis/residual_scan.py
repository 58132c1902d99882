"""Scans of pairs by the residuals of the null model, with covariates in the model.

For numbers, and for cases and controls with `epistasis.score: residuals`. The statistic is in
`epistasis.residual_cpu`; costs are written in the fixed point of the other scans.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.tables import write_table
from ..engine.backend import Backend
from .design import independent_columns
from .evidence import MainEffects, candidates_of, rescaled_cost
from .families import FamilyModel, family_model
from .finished import FinishedScan
from .loci import describe_loci, list_hits, no_hits
from .null_model import NullModel, read_levels, read_null_model
from .options import MAX_PER_SITE, kept_combinations
from .partners import partners_of
from .phantoms import mark_cis
from .relatedness import Relatives, kin_warnings
from .reorder import genotypes_of_planes, join_classes, read_reordered
from .scan_data import Hits, OneHot, ResidualData
from .scan_sites import scan_residual_pairs
from .scores import scale_bits
from .units import merge_units, rate_of_unit, read_work, unit_range, write_unit

log = logging.getLogger(__name__)


def load_residuals(
    folder: Path, null: Path, min_distance_bp: int, max_r2: float
) -> tuple[ResidualData, pd.DataFrame, pd.DataFrame]:
    """Scan data, sites and samples of results/reorder and a null model, with partners."""
    words, sites, samples = read_reordered(folder)
    n_cases = int((samples["class"] == "case").sum())
    n_controls = len(samples) - n_cases
    levels, variance = read_levels(null)
    partners = partners_of(sites, min_distance_bp, max_r2)
    planes = OneHot(join_classes(words, n_controls, n_cases), len(samples))
    rank = sites["rank"].to_numpy(np.int32)
    return ResidualData(planes, levels, variance, rank, partners), sites, samples


def scan_residual_unit(
    folder: Path,
    null: Path,
    backend: Backend,
    out: Path,
    *,
    unit: int,
    n_units: int,
    top: int,
    min_distance_bp: int,
    max_r2: float,
    device: str = "auto",
) -> dict[str, object]:
    """Run one unit of a scan of pairs and write its best `top` hits as npz (`units.write_unit`).

    Returns counts and the rate for the log, as `scan.scan_unit`.
    """
    data, _, _ = load_residuals(folder, null, min_distance_bp, max_r2)
    first = unit_range(read_work(folder, 2, device), unit, n_units)
    started = time.perf_counter()
    hits = scan_residual_pairs(backend, data, first, top)
    took = time.perf_counter() - started
    hits = replace(hits, cost=rescaled_cost(hits.cost, data.n_samples))
    rate = rate_of_unit(first, data.n_sites, data.n_samples, 2, took)
    return write_unit(out, first, hits) | rate


def rank_residual_hits(
    folder: Path,
    null: Path,
    scan: FinishedScan,
    out: Path,
    *,
    top: int,
    max_per_site: int = MAX_PER_SITE,
    loci_out: Path | None = None,
    main_effects: MainEffects | None = None,
    relatives: Relatives | None = None,
) -> dict[str, float]:
    """Merge the units' hits of a scan of numbers; write the ranked table and that of its loci.

    Parameters as of `significance.rank_hits`; `relatives` among the people of the scan, by default
    none.
    """
    words, sites, samples = read_reordered(folder)
    sizes, tests = (len(samples), 0), scan.tests
    kept = merge_units(scan.units, sites["rank"].to_numpy(), kept_combinations(top))
    prior = main_effects.prior(sites) if main_effects else None
    best = candidates_of(kept, words, sites, sizes, prior, tests=tests, top=kept_combinations(top))
    listing = list_hits(best.hits, words, sites, *sizes, top=top, max_per_site=max_per_site)
    hits, model, shared = listing.hits, read_null_model(null), best.tests[listing.chosen]
    families = None
    if relatives is not None:
        families = family_model(model, relatives)
        for warning in kin_warnings(relatives, len(samples), permutations=False):
            log.warning("%s", warning)
    unit = 2.0 ** scale_bits(len(samples))
    table = describe_residual_hits(
        hits, words, sites, model, unit, tests, shared, families=families
    )
    if len(table):
        table = mark_cis(
            table.assign(locus=listing.locus), hits, words, sites, *sizes,
            tests=shared, covariates=model.design, response=model.response,
            strength=None if prior is None else prior.strength, relatives=relatives,
        )  # fmt: skip
    write_table(out, table)
    if loci_out is not None:
        write_table(loci_out, describe_loci(listing, table, 2))
    return {"tests": tests if len(table) else 0, "hits": len(table)}


def describe_residual_hits(
    hits: Hits,
    words: np.ndarray,
    sites: pd.DataFrame,
    null: NullModel,
    unit: float,
    tests: int,
    shared: np.ndarray | None = None,
    named: tuple[str, ...] = ("id", "chrom", "pos", "ref", "alt"),
    families: FamilyModel | None = None,
) -> pd.DataFrame:
    """The ranked table of a scan of numbers; see config/README.md.

    Each hit is tested again in float64 by linear regressions with the design: `residual_tests`.

    Parameters
    ----------
    words : uint64 array
        Planes of everybody as one class (`n_controls` = all).
    unit : float
        Of a cost, per nat.
    tests : int
        Pairs of the scan, for `p_association`.
    shared : float64 array, (n_hits,), optional
        What p of each hit's interaction is multiplied by; `tests` by default.
    families : FamilyModel, optional
        Of relatives among the people.
    """
    shared = np.full(len(hits.cost), tests) if shared is None else shared
    rows, ranks = [], sites["rank"].to_numpy()
    used, local = np.unique(hits.sites, return_inverse=True)
    genotypes = genotypes_of_planes(words[used], sites.iloc[used], len(null.used), 0)
    local = local.reshape(hits.sites.shape)
    for k, members in enumerate(hits.sites):
        by_rank = np.argsort(ranks[members])
        row = {"rank": k + 1, "score": hits.cost[k] / unit}
        for number, member in enumerate(members[by_rank], 1):
            row |= {f"{name}{number}": sites.iloc[member][name] for name in named}
        row |= residual_tests(genotypes[local[k][by_rank]], null, families)
        row["tests"] = shared[k]
        row["p_interaction"] = min(1.0, shared[k] * row["lr_p"])
        row["p_association"] = min(1.0, tests * row["association_p"])
        rows.append(row)
    return pd.DataFrame(rows) if rows else no_hits(2, named)


def residual_tests(
    genotypes: np.ndarray, null: NullModel, families: FamilyModel | None = None
) -> dict[str, object]:
    """Linear regressions of one pair with the design of the null model, in float64.

    By generalised least squares where `families` are known.

    Parameters
    ----------
    genotypes : int8 array, (2, n_people)
        ALT counts, -1 missing.
    null : NullModel
        Linear.
    families : FamilyModel, optional

    Returns
    -------
    dict
        `main1`, `main2`: -F / 2 times df of each site alone, and `interaction_gain` what both
        together gain over the better one, in the same unit; `lr_chi2`, `lr_df`, `lr_p`: F test of
        all combinations of genotypes against genotypic main effects (statistic times df);
        `association_p`: against the design alone; `product_beta`, `product_se`, `product_p`: the
        product of allele counts beside genotypic main effects; `people`, `means`: number and mean
        residual of each combination, the second site varying fastest.
    """
    good = null.used & (genotypes >= 0).all(axis=0)
    if families is not None:
        good &= families.counts
    g, n = genotypes[:, good].astype(np.int64), int(good.sum())
    cell = 3 * g[0] + g[1]
    parts = [np.ones((n, 1)), null.design[good], *((row[:, None] == np.arange(3)) for row in g)]
    parts += [cell[:, None] == np.arange(9), (g[0] * g[1])[:, None], null.response[good][:, None]]
    whole = np.concatenate(parts, axis=1, dtype=float)
    if families is not None:
        whole = families.whiten(whole, good)
    ends = np.cumsum([part.shape[1] for part in parts])[:-1]
    one, design, *sites, cells, product, y = np.split(whole, ends, axis=1)
    y = y[:, 0]
    base = _more(one, design)
    both = _more(base, np.concatenate(sites, axis=1))
    whole = _more(both, cells)
    start = _residual_squares(base, y)
    found = {}
    for number, columns in enumerate(sites, 1):
        found[f"main{number}"] = -_f_test(start, _residual_squares(_more(base, columns), y))[0] / 2
    interaction = _f_test(_residual_squares(both, y), _residual_squares(whole, y))
    association = _f_test(start, _residual_squares(whole, y))
    found["interaction_gain"] = association[0] / 2 + min(found["main1"], found["main2"])
    found |= dict(zip(("lr_chi2", "lr_df", "lr_p"), interaction, strict=True))
    found["association_p"] = association[2]
    names = ("product_beta", "product_se", "product_p")
    found |= dict(zip(names, _last(both, product, y), strict=True))
    people = np.bincount(cell, minlength=9)
    mean = np.bincount(cell, null.raw_residuals[good], minlength=9) / np.maximum(people, 1)
    found["people"] = ",".join(map(str, people))
    found["means"] = ",".join(f"{m:.4g}" if n else "NA" for m, n in zip(mean, people, strict=True))
    return found


def _more(base: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return np.concatenate([base, columns[:, independent_columns(base, columns)]], axis=1)


def _residual_squares(x: np.ndarray, y: np.ndarray) -> tuple[float, int]:
    """Sum of squares that a regression leaves, and its degrees of freedom."""
    basis, _ = np.linalg.qr(x)
    rest = y - basis @ (basis.T @ y)
    return float(rest @ rest), len(y) - x.shape[1]


def _f_test(small: tuple[float, int], large: tuple[float, int]) -> tuple[float, int, float]:
    """F of a larger model times its added columns, their number, and p."""
    from scipy.special import fdtrc

    added = small[1] - large[1]
    if added < 1 or large[1] < 1:
        return 0.0, 0, 1.0
    if large[0] <= 0:
        return np.inf, added, 0.0
    statistic = max(small[0] - large[0], 0.0) / (large[0] / large[1])
    return statistic, added, float(fdtrc(added, large[1], statistic / added))


def _last(base: np.ndarray, column: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Coefficient, standard error and p of one more column; NaN if it follows from the others."""
    from scipy.special import stdtr

    x = _more(base, column)
    if x.shape[1] == base.shape[1] or len(y) <= x.shape[1]:
        return np.nan, np.nan, np.nan
    fitted = np.linalg.lstsq(x, y, rcond=None)[0]
    freedom = len(y) - x.shape[1]
    rest = y - x @ fitted
    variance = float(rest @ rest) / freedom * np.linalg.inv(x.T @ x)[-1, -1]
    t = fitted[-1] / np.sqrt(variance)
    return float(fitted[-1]), float(np.sqrt(variance)), float(2 * stdtr(freedom, -abs(t)))
