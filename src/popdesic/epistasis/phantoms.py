"""Phantoms: pairs and triples in LD whose interaction may be that of an untyped causal site.

Two typed sites that are imperfect tags of one causal site predict its genotype together better than
each alone, and not by a sum: a purely additive effect of the untyped site then looks like an
interaction of its tags (Wood et al. 2014, Nature 514:E3; de los Campos et al. 2019, G3 9:1429;
Hemani et al. 2014, retracted 2021). More people make this worse, not better.

A hit is in cis if two of its sites are on one chromosome less than CIS_BP apart, or have an r2
above CIS_R2 that chance rarely makes. It is tested again, given the sites of its region that
explain the phenotype best: the main effect of the untyped site is then in the model as far as any
typed site carries it. The region is all scanned sites within REGION_BP of a site of the hit. The
site with the best score test, given the hit's own effects, is added, and up to MOST_GIVEN in all
while the next one passes Bonferroni's limit within the region. Measured on real haplotypes
(tests/bench/bench_phantoms.py), this removes most phantoms, not all, so near partners are not
scanned at all by default (`epistasis.min_distance_bp`).

Families make phantoms in trans as well. A typed site tells the causal genotype in some families and
not in others, and sites of other chromosomes tell the families apart. So every significant hit, in
cis or in trans, is also tested given the sites that explain the phenotype best together, of all
that were scanned (`leading_sites`), and its statistic is divided by what relatives add to its
variance (`relatedness`), with the resemblance that is left given all these sites
(tests/bench/bench_one_locus.py).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd

from ..io.sites import chunks
from .design import independent_columns
from .priority import ranks_of_main_effects
from .relatedness import Relatives, score_variance
from .reorder import genotypes_of_planes
from .scan_data import Hits

#: Sites of one chromosome closer than this are in cis, and so are sites of a larger r2 ...
CIS_BP, CIS_R2 = 2_000_000, 0.02
#: ... that chance rarely makes: n r2 above this has p = 1e-4 for independent sites.
CIS_CHI2 = 15.1
#: Farthest site of a hit's region from a site of the hit.
REGION_BP = 500_000
#: Sites of the region that enter the model, at most.
MOST_GIVEN = 3
#: Sites of the strongest main effects among which the best ones of the genome are sought, how many
#: of them enter the model at most, and people of the smaller class for each of their columns.
STRONGEST, MOST_LEADING, PEOPLE_A_COLUMN = 1000, 5, 10
#: A model that leaves less of the phenotype open, in people, takes no further site: what is left is
#: a handful of people, whom any rare site may seem to explain.
LEAST_OPEN = 10.0
#: Genotypes that are looked at at once.
CHUNK = 1 << 24
#: Level of a further site in the region, and of the hits that are tested again.
LEVEL = 0.05
#: Newton's steps, and the gain in log-likelihood below which they end.
_STEPS, _GAIN = 50, 1e-7


def mark_cis(
    table: pd.DataFrame,
    hits: Hits,
    words: np.ndarray,
    sites: pd.DataFrame,
    n_controls: int,
    n_cases: int,
    *,
    tests: float | np.ndarray,
    covariates: np.ndarray | None = None,
    response: np.ndarray | None = None,
    strength: np.ndarray | None = None,
    relatives: Relatives | None = None,
) -> pd.DataFrame:
    """The ranked table with the columns `cis` (yes, no) and `p_conditional`.

    If the table has a column `locus`, only the first significant hit of a locus is tested, and p of
    the others is at least that of their lead: they are the same signal.

    Parameters
    ----------
    table : DataFrame
        One row per hit of `hits`, with `lr_p` and, if there is one, `p_interaction`.
    words, sites
        Of `reorder.read_reordered`: `sites` has `chrom` and `pos`.
    tests : float or float64 array, (n_hits,)
        What p of each hit is multiplied by for `p_conditional`, as for `p_interaction`. It is never
        below that, and is computed where that is at most LEVEL; elsewhere NaN.
    covariates : float64 array, (n_samples, n_columns), optional
        As `NullModel.design`: no constant, NaN where unknown, controls first.
    response : float64 array, (n_samples,), optional
        Numbers, which are tested in linear models; by default cases and controls.
    strength : float64 array, (n_sites,), optional
        Of main effects (`priority.strength_of`). Without it, as with scores of association, hits in
        cis alone are tested, given their region.
    relatives : Relatives, optional
    """
    chosen = hits.sites
    tests = np.broadcast_to(tests, len(chosen))
    case = np.arange(n_controls + n_cases) >= n_controls if response is None else response
    p_scan = np.minimum(table["lr_p"].to_numpy(float) * tests, 1.0)
    if "p_interaction" in table:
        p_scan = pd.to_numeric(table["p_interaction"], errors="coerce").to_numpy(float)
    further = np.zeros((len(case), 0)) if covariates is None else covariates
    chrom, pos = sites.chrom.to_numpy(), sites.pos.to_numpy(np.int64)
    cis, conditional = np.zeros(len(chosen), bool), np.full(len(chosen), np.nan)
    locus = table["locus"].to_numpy() if "locus" in table else np.arange(len(chosen))
    leads: dict[int, float] = {}

    def read(rows: np.ndarray) -> np.ndarray:
        return genotypes_of_planes(words[rows], sites.iloc[rows], n_controls, n_cases)

    best = np.zeros(0, np.int64)
    if strength is not None and (p_scan <= LEVEL).any():
        best = leading_sites(read, strength, case, further)
    leading = read(best)
    used, rows = np.unique(chosen, return_inverse=True)
    listed, rows = read(used), rows.reshape(chosen.shape)
    for k, members in enumerate(chosen):
        genotypes = listed[rows[k]]
        cis[k] = in_cis(chrom[members], pos[members], genotypes)
        if not ((cis[k] or strength is not None) and p_scan[k] <= LEVEL):
            continue
        if locus[k] not in leads:
            near = np.zeros(len(sites), bool)
            for member in members if cis[k] else []:
                near |= (chrom == chrom[member]) & (np.abs(pos - pos[member]) <= REGION_BP)
            near[members] = False
            given = leading[~np.isin(best, members)]
            region = read(np.flatnonzero(near))
            p, _ = conditional_test(genotypes, region, case, further, given, relatives)
            leads[locus[k]] = min(1.0, p * tests[k])
        conditional[k] = max(leads[locus[k]], p_scan[k])
    return table.assign(cis=np.where(cis, "yes", "no"), p_conditional=conditional)


def in_cis(chrom: np.ndarray, pos: np.ndarray, genotypes: np.ndarray) -> bool:
    """Whether two of the sites are near each other or correlated; `genotypes`: -1 missing."""
    for a, b in combinations(range(len(chrom)), 2):
        if chrom[a] == chrom[b] and abs(int(pos[a]) - int(pos[b])) < CIS_BP:
            return True
        both = (genotypes[a] >= 0) & (genotypes[b] >= 0)
        x, y = genotypes[a, both].astype(float), genotypes[b, both].astype(float)
        if not (x.size and np.ptp(x) and np.ptp(y)):
            continue
        if np.corrcoef(x, y)[0, 1] ** 2 > max(CIS_R2, CIS_CHI2 / len(x)):
            return True
    return False


def conditional_test(
    genotypes: np.ndarray,
    region: np.ndarray,
    phenotype: np.ndarray,
    covariates: np.ndarray,
    leading: np.ndarray | None = None,
    relatives: Relatives | None = None,
) -> tuple[float, list[int]]:
    """p of the interaction given the best sites of the region, and which these are.

    Likelihood-ratio test of all combinations of genotypes against all of fewer sites, both with the
    covariates and each given site's genotypes: in a logistic model, of numbers in a linear one.

    Parameters
    ----------
    genotypes : int8 array, (order, n_samples)
        ALT counts of the hit's sites; people with a missing one (-1) are left out.
    region : int8 array, (n_region, n_samples)
        Further sites; a missing genotype is a genotype of its own.
    phenotype : bool or float64 array, (n_samples,)
        Whether a case; or a number.
    covariates : float64 array, (n_samples, n_columns)
        People with an unknown one (NaN) are left out.
    leading : int8 array, (n_leading, n_samples), optional
        Sites that are given in any case, as those of `region` otherwise.
    relatives : Relatives, optional
    """
    from scipy.special import chdtrc

    used = (genotypes >= 0).all(axis=0) & np.isfinite(covariates).all(axis=1)
    fit = fit_logistic if phenotype.dtype == bool else fit_linear
    y, sites = phenotype[used].astype(float), genotypes[:, used].astype(np.int64)
    order = len(sites)
    smaller = [_classes(sites[list(group)]) for group in combinations(range(order), order - 1)]
    base = [np.ones((len(y), 1)), covariates[used], *smaller]
    given_sites = region[:0] if leading is None else leading
    base += [_classes(row[None, used].astype(np.int64) + 1) for row in given_sites]
    others = region[:, used]
    dosage = _filled(others)
    given: list[int] = []
    while len(given) < min(MOST_GIVEN, len(others)):
        design = _independent(np.concatenate(base, axis=1))
        chi2 = score_statistics(dosage, design, *fit(design, y)[1:])
        chi2[given] = 0
        best = int(chi2.argmax())
        if given and chdtrc(1, chi2[best]) * len(others) > LEVEL:
            break
        given.append(best)
        base.append(_classes(others[best : best + 1].astype(np.int64) + 1))
    reduced = _independent(np.concatenate(base, axis=1))
    whole = _independent(np.concatenate([reduced, _classes(sites)], axis=1))
    freedom = whole.shape[1] - reduced.shape[1]
    if not freedom:
        return 1.0, given
    value, residuals, weights = fit(reduced, y)
    chi2 = 2 * (fit(whole, y)[0] - value)
    if relatives is not None and len(relatives):
        related = relatives if used.all() else relatives.among(used)
        added = whole[:, reduced.shape[1] :]
        chi2 /= _widening(related, reduced, added, residuals, weights)
    return float(chdtrc(freedom, max(chi2, 0.0))), given


def leading_sites(
    read: Callable[[np.ndarray], np.ndarray],
    strength: np.ndarray,
    phenotype: np.ndarray,
    covariates: np.ndarray,
) -> np.ndarray:
    """Rows of the sites of a scan that explain the phenotype best together, the best first.

    Stepwise: the site of the best score test given the covariates and the genotypes of those before
    it, as long as it passes Bonferroni's limit for all sites.

    Parameters
    ----------
    read : callable
        Genotypes int8 (n, n_samples) of rows, -1 missing.
    strength : float64 array, (n_sites,)
        Of main effects; the `STRONGEST` sites are looked at.
    phenotype, covariates
        As of `conditional_test`.
    """
    from scipy.special import chdtrc

    used = np.isfinite(covariates).all(axis=1)
    fit = fit_logistic if phenotype.dtype == bool else fit_linear
    y = phenotype[used].astype(float)
    strong = np.flatnonzero(ranks_of_main_effects(strength) <= STRONGEST)
    smaller = min(y.sum(), len(y) - y.sum()) if phenotype.dtype == bool else len(y)
    parts = [slice(*ends) for ends in chunks(len(strong), max(CHUNK // max(len(y), 1), 1))]
    base, found = [np.ones((len(y), 1)), covariates[used]], []
    while len(strong) and len(found) < min(MOST_LEADING, smaller // (2 * PEOPLE_A_COLUMN)):
        design = _independent(np.concatenate(base, axis=1))
        _, residuals, weights = fit(design, y)
        if phenotype.dtype == bool and weights.sum() < LEAST_OPEN:
            break
        chi2 = [
            score_statistics(_filled(read(strong[part])[:, used]), design, residuals, weights)
            for part in parts
        ]
        chi2 = np.concatenate(chi2)
        chi2[np.isin(strong, found)] = 0
        best = int(chi2.argmax())
        if chdtrc(1, chi2[best]) * len(strength) > LEVEL:
            break
        found.append(int(strong[best]))
        base.append(_classes(read(strong[best : best + 1])[:, used].astype(np.int64) + 1))
    return np.array(found, np.int64)


def _widening(
    relatives: Relatives,
    reduced: np.ndarray,
    added: np.ndarray,
    residuals: np.ndarray,
    weights: np.ndarray,
) -> float:
    """What relatives multiply the statistic of the added columns with on average, at least 1.

    The share that relatives have in common is that of the residuals of the reduced model.
    """
    root = np.sqrt(weights)
    twice = 2 * relatives.kinship
    expected = twice * root[relatives.first] * root[relatives.second]
    products = residuals[relatives.first] * residuals[relatives.second]
    squares = float(expected @ expected)
    shared = float(np.clip((expected @ products) / squares, 0.0, 1.0)) if squares > 0 else 0.0
    weighted = root[:, None] * reduced
    basis, sizes, _ = np.linalg.svd(weighted, full_matrices=False)
    basis = basis[:, sizes > 1e-9 * sizes[0]]
    rest = root[:, None] * added
    rest = rest - basis @ (basis.T @ rest)
    scores, sizes, _ = np.linalg.svd(rest, full_matrices=False)
    scores = scores[:, sizes > 1e-9 * max(sizes[0], 1e-300)]
    if not scores.shape[1]:
        return 1.0
    variance = score_variance(relatives, scores, np.ones(len(root)), shared)
    return max(1.0, float(np.trace(variance)) / len(variance))


def _filled(genotypes: np.ndarray) -> np.ndarray:
    """ALT counts, a missing one as the mean of the others: float64 (n_sites, n_samples)."""
    known = genotypes >= 0
    dosage = np.where(known, genotypes, 0).astype(float)
    mean = dosage.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return np.where(known, dosage, mean[:, None])


def _classes(genotypes: np.ndarray) -> np.ndarray:
    """One column of 0 and 1 for each combination of genotypes that occurs, but the first."""
    cell = np.zeros(genotypes.shape[1], np.int64)
    for row in genotypes:
        cell = 4 * cell + row
    return (cell[:, None] == np.unique(cell)[None, 1:]).astype(float)


def _independent(design: np.ndarray) -> np.ndarray:
    """Columns, from the left, that are linearly independent of those before."""
    return design[:, independent_columns(design[:, :0], design)]


def fit_linear(design: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """As `fit_logistic`, of a linear regression: residuals divided by their variance."""
    fitted = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    variance = max(float(((y - fitted) ** 2).mean()), 1e-300)
    weights = np.full(len(y), 1 / variance)
    return -len(y) / 2 * np.log(variance), (y - fitted) * weights, weights


def fit_logistic(design: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Log-likelihood, residuals and their variances, by Newton's method.

    Where some combination has only cases or only controls, the likelihood has no maximum at finite
    parameters; the steps then end when it no longer grows.
    """

    def evaluate(b: np.ndarray) -> tuple[float, np.ndarray]:
        eta = np.clip(design @ b, -35, 35)
        return float(y @ eta - np.logaddexp(0, eta).sum()), 1 / (1 + np.exp(-eta))

    b = np.zeros(design.shape[1])
    value, p = evaluate(b)
    for _ in range(_STEPS):
        weights = np.maximum(p * (1 - p), 1e-12)
        information = (design * weights[:, None]).T @ design
        step = np.linalg.lstsq(information, design.T @ (y - p), rcond=None)[0]
        for _ in range(30):
            after, p_after = evaluate(b + step)
            if after >= value:
                break
            step = step / 2
        else:
            break
        gain, b, value, p = after - value, b + step, after, p_after
        if gain < _GAIN:
            break
    return value, y - p, p * (1 - p)


def score_statistics(
    dosage: np.ndarray, design: np.ndarray, residuals: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Score test (1 df) of each further site in a fitted model: float64 (n_sites,).

    dosage : float64 array, (n_sites, n_samples). 0 where the site adds nothing to `design`.
    """
    weighted = design * weights[:, None]
    cross = dosage @ weighted
    explained = np.einsum("ij,ij->i", cross @ np.linalg.pinv(weighted.T @ design), cross)
    total = (dosage**2) @ weights
    variance = total - explained
    score = dosage @ residuals
    there = variance > 1e-8 * np.maximum(total, 1e-300)
    return np.where(there, score**2 / np.where(there, variance, 1.0), 0.0)
