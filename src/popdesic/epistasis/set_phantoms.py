"""Phantoms of sets: interactions that may be those of an untyped causal site.

A purely additive site that is not typed looks like an interaction of sites of a set that are in LD
with it (`phantoms.py`). So a leading set is tested again, given the sites of its region that
explain the phenotype best beside main effects of the set: stepwise, as long as the next one passes
Bonferroni's limit within the region (LEVEL), and up to MOST_GIVEN. The region is all scanned sites
within `phantoms.REGION_BP` of a site of the set, or the nearest of them.

In sparse panels typed sites do not carry the whole effect, and much of a phantom stays. So the
genotypes themselves say what an untyped site does: sites of the region play it, those whose r2 with
the strongest typed site is at least SAME_TAG of their largest r2. One is drawn and taken out of the
region, and an additive phenotype is drawn from it. Its strength is such that the best typed site is
expected to be as strong as the strongest one of region and set is. A site that had to explain more
than MOST_SHARE of a number, or to have a deviation of more than MOST_ODDS log-odds, is not asked.
The set is tested as above, and `untyped` is p of the set among such draws, by Besag and Clifford
(1991, Biometrika 78:301): drawing ends when ENOUGH of them have a p that is as small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.errors import UserError
from .null_model import fit_null
from .phantoms import REGION_BP
from .sets import SetTests, set_p_values

#: Level of a further site of the region, and most of them.
LEVEL, MOST_GIVEN = 0.05, 10
#: Draws of an untyped site at most, and as small p at which they end.
DRAWS, ENOUGH = 100, 5
#: Share of the r2 of an untyped site with its best typed one that it has with the strongest site.
SAME_TAG = 0.5
#: Largest effect of an untyped site.
MOST_SHARE, MOST_ODDS = 0.5, 2.0


@dataclass(frozen=True)
class Phantoms:
    """What is left of a set: `conditional` p, the sites of the region `given` (places), and
    `untyped`, p among draws of an untyped site; NaN if none could explain the strongest site, or
    no draw could be tested as the set was. Draws that could not do not count."""

    conditional: float
    given: list[int]
    untyped: float


def region_of(chrom: np.ndarray, pos: np.ndarray, own: np.ndarray, most: int) -> np.ndarray:
    """Rows of the sites within `phantoms.REGION_BP` of a site of a set, `own`: the nearest ones.

    `chrom`, `pos` of all scanned sites; of as near ones the first. Ascending int64.
    """
    distance = np.full(len(pos), REGION_BP + 1, np.int64)
    for site in own:
        same = np.flatnonzero(chrom == chrom[site])
        distance[same] = np.minimum(distance[same], np.abs(pos[same] - pos[site]))
    distance[own] = REGION_BP + 1
    near = np.argsort(distance, kind="stable")[:most]
    return np.sort(near[distance[near] <= REGION_BP])


def given_region(
    tests: SetTests, genotypes: np.ndarray, region: np.ndarray
) -> tuple[SetTests, list[int]]:
    """Tests given the best sites of a region, and which these are.

    Parameters
    ----------
    tests : SetTests
    genotypes, region : int8 array, (n_people, n_sites)
        Of the set and of further sites: ALT counts, -1 missing.
    """
    from scipy.special import chdtrc

    given: list[int] = []
    found, beside = tests, tests.given(genotypes)
    while len(given) < min(MOST_GIVEN, region.shape[1]):
        chi2 = beside.single_sites(region)
        chi2[given] = 0.0
        best = int(np.argmax(chi2))
        if chdtrc(1, chi2[best]) * region.shape[1] > LEVEL:
            break
        given.append(best)
        found = tests.given(region[:, given])
        beside = beside.given(region[:, [best]])
    return found, given


def conditional_p(
    tests: SetTests,
    genotypes: np.ndarray,
    places: tuple[np.ndarray, np.ndarray | None],
    region: np.ndarray,
) -> tuple[float, list[int]]:
    """`p` of a set given the best sites of its region, and which these are.

    `places`: of the sites of the set, or of two sets, in `genotypes`; others as of `given_region`.
    """
    found, given = given_region(tests, genotypes, region)
    return float(set_p_values(found.scores(genotypes, *places))["p"]), given


def explain_set(
    tests: SetTests,
    genotypes: np.ndarray,
    places: tuple[np.ndarray, np.ndarray | None],
    region: np.ndarray,
    seed: int = 1,
) -> Phantoms:
    """Both tests of a set; parameters as of `conditional_p`.

    Raises
    ------
    UserError
        As of `SetTests.scores`.
    """
    p, given = conditional_p(tests, genotypes, places, region)
    rng, untyped = np.random.default_rng(seed), _Untyped(tests, genotypes, region)
    if np.isnan(p) or not len(untyped.asked):
        return Phantoms(p, given, float("nan"))
    small = tested = 0
    for _ in range(DRAWS):
        site = int(rng.choice(untyped.asked))
        drawn = tests.with_response(untyped.phenotype(rng, site))
        try:
            other, _ = conditional_p(drawn, genotypes, places, np.delete(region, site, axis=1))
        except UserError:  # the drawn cases are separated
            continue
        tested += not np.isnan(other)  # NaN: no product is left
        small += other <= p
        if small == ENOUGH:
            return Phantoms(p, given, ENOUGH / tested)
    return Phantoms(p, given, (small + 1) / (tested + 1) if tested else float("nan"))


class _Untyped:
    """Phenotypes of sites of a region that play the untyped one; `asked`: which of them may."""

    def __init__(self, tests: SetTests, genotypes: np.ndarray, region: np.ndarray):
        self.kind, self.n_cases = tests.kind, tests.response.sum()
        typed = np.column_stack([region, genotypes])[tests.used]
        counts = np.where(typed < 0, 0, typed).astype(np.float64)
        design, self.odds, root = tests.design, None, np.ones(len(counts))
        if self.kind == "logistic":
            columns = np.sqrt(len(design)) * design[:, 1:]
            fitted = fit_null(tests.response, columns, "logistic").fitted
            self.odds, root = np.log(fitted / (1 - fitted)), np.sqrt(fitted * (1 - fitted))
        basis, _ = np.linalg.qr(root[:, None] * design)
        weighted = counts * root[:, None]
        rest = weighted - basis @ (basis.T @ weighted)
        sizes = (rest**2).sum(axis=0)
        sizes = np.where(sizes > 1e-8 * (weighted**2).sum(axis=0), sizes, np.inf)
        shared = (rest[:, : region.shape[1]].T @ rest) ** 2
        shared /= sizes[: region.shape[1], None] * sizes
        np.fill_diagonal(shared, 0.0)
        best = np.maximum(shared.max(axis=1, initial=0.0), 1e-12)
        observed = tests.single_sites(np.column_stack([region, genotypes]))
        chi2 = observed.max() / best
        tagged = shared[:, int(np.argmax(observed))] >= SAME_TAG * best
        self.effects = np.sqrt(chi2 / sizes[: region.shape[1]])
        self.columns = rest[:, : region.shape[1]] / root[:, None]
        if self.kind == "linear":
            share = chi2 / (len(design) - design.shape[1])
            self.effects = np.sqrt(share / np.maximum(1 - share, 1e-9))
            self.columns = self.columns / np.sqrt(sizes[: region.shape[1]] / len(design))
            fit = share <= MOST_SHARE
        else:
            fit = self.effects * self.columns.std(axis=0) <= MOST_ODDS
        self.asked = np.flatnonzero(tagged & fit & np.isfinite(sizes[: region.shape[1]]))

    def phenotype(self, rng: np.random.Generator, site: int) -> np.ndarray:
        """A number with residuals of variance 1, or about as many cases as there are."""
        from scipy.special import expit

        effect = rng.choice([-1.0, 1.0]) * self.effects[site] * self.columns[:, site]
        if self.kind == "linear":
            return effect + rng.normal(size=len(effect))
        odds = self.odds + effect
        for _ in range(20):
            p = expit(odds)
            odds += np.clip((self.n_cases - p.sum()) / (p * (1 - p)).sum(), -1, 1)
        return (rng.random(len(odds)) < expit(odds)).astype(np.float64)
