"""PCA of many samples: components and their noise from passes over the genotypes.

The matrix of all pairs costs n**2 products a site; here a site costs n times the number of vectors
of all passes. Axes are those of `pca.decompose` (`krylov` says how near). Noise is drawn as in
`noise_null`: the largest eigenvalue after signs were flipped, in DRAWS draws, by Lanczos steps of
all draws together.

The test of Tracy and Widom needs the sum of all squared eigenvalues, and its scale hangs on the
small difference from that of equal ones. Random signs estimate that difference for the samples,
until its error moves the scale by CENTRE_ERROR units of the law; for the draws, one pass gives it
with next to no error (`flipped_excess`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.laps import Laps
from ..core.limits import MOST_MATRIX
from ..core.random_numbers import columns_of_signs, lots_of, mix
from ..core.threads import one_blas_thread, run_tasks
from ..engine.backend import Backend
from ..engine.columns import NARROW, Bases, own_lengths
from ..engine.genotype_products import Flips, GenotypeProducts
from ..io.sites import chunks
from .krylov import COLUMNS, Krylov
from .noise_null import ROUNDS, deviation_of, stretches
from .pca import FEWEST, Axes, choose_components, with_signs
from .projection import FURTHER
from .relationship_products import MOST_MISFIT, RelationshipProducts
from .significance import (
    LEVEL,
    MEAN,
    MOST_TESTED,
    SPREAD,
    Noise,
    Significance,
    centre_and_unit,
    largest_without_structure,
)
from .stretch_squares import counts_pairs, squares_between

log = logging.getLogger(__name__)
#: Largest change by missing genotypes that more than MOST_MATRIX samples may have.
WORST_MISFIT = 1e-2
#: Passes before anything is concluded.
FIRST_PASSES = 8
#: Draws of signs: as many columns as a pass sums at once.
DRAWS = NARROW
#: Lanczos steps of the draws between two looks, and at most. They end where the largest eigenvalues
#: have gained on average less than LEAST_GAIN of the law's standard deviation since the last look.
#: Of n samples that takes 3 to 4 n**(1/3) steps: in the basis of all steps, the first vector fades
#: beyond n**(1/3) (the stochastic Airy operator: Ramirez, Rider and Virag 2011).
LOOK, MOST_STEPS, LEAST_GAIN = 4, 200, 0.05
#: Steps of the first draws, which only find what is plainly structure: PLAIN times their limit.
#: Six steps come to within 5 % of the edge of the noise.
ROUGH_STEPS, PLAIN = 6, 1.1
#: Error of the scale's centre that is aimed at, in units of the law, and random vectors at most.
CENTRE_ERROR, MOST_PROBES = 0.5, 1024
#: Components of which eigenvalues are given at least.
SHOWN = 20
#: Stretches whose signs one task draws.
STRETCHES = 32
#: Number of the first random vectors, apart from those of the draws and stretches.
START = 1 << 32


def products_of_many(products: GenotypeProducts, names: Sequence) -> RelationshipProducts | None:
    """The relationship by its products; None where its matrix is to be made.

    That is where missing genotypes change the products by more than MOST_MISFIT and there are
    MOST_MATRIX samples at most. `names` of the samples, as in `significant_axes_of_many`.

    Raises
    ------
    UserError
        There are more samples, and the change is more than WORST_MISFIT.
    """
    found = RelationshipProducts(products)
    misfit = found.misfit(lots_of(names))
    if misfit <= MOST_MISFIT:
        return found
    about = f"missing genotypes change eigenvalues of the PCA by about {misfit:.1e}"
    if found.n <= MOST_MATRIX:
        log.info("The matrix of all %d samples is made, because %s.", found.n, about)
        return None
    if misfit <= WORST_MISFIT:
        log.warning("No matrix is made of so many samples, although %s of their size.", about)
        return found
    raise UserError(
        f"config/cohorts.tsv: {about} of their size, because samples of one cohort lack different "
        "sites; make a cohort of each array or sequencing batch, or raise qc.min_sample_call_rate."
    )


def loadings_of_many(relationship: RelationshipProducts, axes: Axes) -> np.ndarray:
    """`loadings.site_loadings`, float64 (n_sites, k)."""
    values, vectors = axes.values[: axes.k], axes.vectors[:, : axes.k]
    found = relationship.products.project(vectors)
    return found / np.sqrt(values * len(relationship.products.calls.af))


@dataclass(frozen=True)
class Draws:
    """What is left without structure, once `known` components are taken out.

    Attributes
    ----------
    largest : float64 array, (DRAWS,)
        Largest eigenvalue of each draw.
    squares : float
        Sum of all squared eigenvalues, estimated.
    left : float
        Sum of all eigenvalues.
    flips : Flips
        The signs of the draws.
    """

    known: int
    largest: np.ndarray
    squares: float
    left: float
    flips: Flips

    @property
    def scale(self) -> tuple[float, float]:
        """Centre and unit of the largest eigenvalue."""
        return centre_and_unit(self.left, self.squares, len(self.flips.known))

    @property
    def limit(self) -> float:
        deviation = max(self.scale[1] * SPREAD, deviation_of(self.largest))
        quantile = (largest_without_structure(LEVEL) - MEAN) / SPREAD
        limit = float(self.largest.mean()) + deviation * quantile
        return limit if np.isfinite(limit) else np.inf

    @property
    def noise(self) -> Noise:
        centre, unit = self.scale
        statistic = (self.largest - centre) / unit
        if not np.isfinite(statistic).all():
            return Noise(limit=self.limit)
        spread = max(1.0, deviation_of(statistic) / SPREAD)
        return Noise(float(statistic.mean()) - spread * MEAN, spread, self.limit)


@one_blas_thread
def significant_axes_of_many(
    relationship: RelationshipProducts,
    sites: pd.DataFrame,
    *components: int | str,
    names: Sequence,
    backend: Backend,
    stored: int = 0,
) -> tuple[Axes, Significance, Noise]:
    """`noise_null.significant_axes` of samples whose relationship is known by its products.

    Parameters
    ----------
    relationship : RelationshipProducts
    sites : DataFrame
        `chrom`, `pos` of the sites that define the axes.
    components : int or 'auto'
        As in `pca.axes_of`.
    names : sequence of str
        Names of the samples, which draw the first vectors and the signs.
    backend : Backend
        Of the CPU, to count pairs of sites.
    stored : int
        Components to find at least, whether or not they are chosen.

    Raises
    ------
    UserError
        The samples do not differ at any site.
    """
    n, lots = relationship.n, lots_of(names)
    if n < 2 or not relationship.trace > 0:
        raise UserError(
            f"results/panel/sites.tsv: the {n} founder samples have no component of variation "
            "(PCA needs two that differ); add samples or sites."
        )
    laps = Laps()
    start = first_vectors(lots, relationship.products.threads)
    space = Krylov(relationship, start, relationship.products.columns)
    space.search(1, 1)
    while not space.exhausted and space.passes < FIRST_PASSES:
        space.step()
    laps.end("first passes")
    draws = _draw_noise(space, relationship, stretches(sites), lots)
    laps.end("noise")
    beyond = int((space.values > draws.limit).sum())
    asked = [int(size) for size in components if size != "auto"]
    space.search(min(max([*asked, beyond, FEWEST]), n - 1))
    wanted = min(max([*asked, beyond, stored, SHOWN]) + FURTHER, n - 1)
    values, vectors, _ = space.pairs(wanted)
    laps.end("further passes")
    positive = values > 1e-9 * values[:1]
    vectors = with_signs(vectors[:, positive])
    own = relationship.squares / np.maximum(relationship.called, 1)
    axes = Axes(values[positive], vectors, relationship.trace, len(vectors), own)
    draws, squares = _refined(draws, space, relationship, lots, backend)
    squares += float((axes.values[: draws.known] ** 2).sum())
    axes, tests = choose_components(axes, squares, n, *components, noise=draws.noise)
    laps.end("squares")
    laps.log(log, f"axes of {n} samples by {space.passes} passes")
    return axes, tests, draws.noise


def first_vectors(lots: np.ndarray, threads: int = 1) -> np.ndarray:
    """Where the search begins: random signs of the samples, float64 (n, COLUMNS)."""
    return columns_of_signs(lots, range(START, START + COLUMNS), threads).astype(np.float64)


def _draw_noise(
    space: Krylov, relationship: RelationshipProducts, stretch: np.ndarray, lots: np.ndarray
) -> Draws:
    """Draws without the components that are beyond them, which are found on the way."""
    signs = signs_of_draws(stretch, lots, relationship.products.threads)
    rough = draw_largest(space, relationship, stretch, 0, lots, ROUGH_STEPS, signs)
    known = int((space.values > PLAIN * rough.limit).sum())
    for _ in range(ROUNDS):
        known = min(known, MOST_TESTED)
        space.search(known)
        draws = draw_largest(space, relationship, stretch, known, lots, signs=signs)
        more = int((space.values > draws.limit).sum())
        if more == known:
            break
        known = more
    return draws


def _refined(
    draws: Draws,
    space: Krylov,
    relationship: RelationshipProducts,
    lots: np.ndarray,
    backend: Backend,
) -> tuple[Draws, float]:
    """Draws, and the sum of squared eigenvalues of the samples beyond the known components."""
    n, left, known = relationship.n, draws.left, draws.known
    _, vectors, _ = space.pairs(known)

    def among(probes: np.ndarray) -> np.ndarray:
        inside = probes - vectors @ (vectors.T @ probes)
        image = relationship(inside)
        return image - vectors @ (vectors.T @ image) - left / (n - known) * inside

    excess = flipped_excess(relationship, draws.flips, left, lots, backend)
    draws = replace(draws, squares=left**2 / n + excess)
    return draws, left**2 / (n - known) + _mean_square(among, left, n, lots)


def flipped_excess(
    relationship: RelationshipProducts,
    flips: Flips,
    left: float,
    lots: np.ndarray,
    backend: Backend,
) -> float:
    """Sum of squared eigenvalues after signs were flipped, less that of equal eigenvalues.

    Its mean over all signs. Products of two different stretches have random signs, so that squares
    of people with others add up stretch by stretch; the diagonal is exact. Of short stretches pairs
    of sites give them (`stretch_squares`); else random signs (`spread_by_person`). Many independent
    sites need one pass or two; few, or sites in LD, more signs, until the error is a quarter of
    CENTRE_ERROR: LD leaves fewer directions than are counted here.
    """
    products, known, along = relationship.products, flips.known, flips.projections
    diagonal = relationship.squares.astype(np.float64)
    if known.shape[1]:
        diagonal = diagonal - 2 * (known * products.normal(known)).sum(axis=1)
        diagonal += (known @ (along.T @ along) * known).sum(axis=1)
    scale = left / float(diagonal.sum())
    fixed = float(((diagonal - diagonal.mean()) ** 2).sum())
    if counts_pairs(products.calls, flips.stretch):
        between = squares_between(products.calls, flips, lots, backend)
        return scale**2 * (fixed + between)
    found: list[float] = []
    while True:
        found.append(float(products.spread_by_person(flips).sum()))
        excess = scale**2 * (fixed + float(np.mean(found)))
        # The products of all stretches have about left**2 / excess independent directions.
        probes = DRAWS * len(found)
        error = np.sqrt(2 * excess / probes) / left
        if probes >= MOST_PROBES or not _moves_centre(left, excess, 4 * error, relationship.n):
            return excess
        signs = signs_of_draws(
            flips.stretch, mix(lots + np.uint64(START + len(found))), products.threads
        )
        flips = replace(flips, signs=signs)


def _moves_centre(left: float, excess: float, error: float, n: int) -> bool:
    """Whether a relative error of the excess moves the scale by more than CENTRE_ERROR units."""
    centre, unit = centre_and_unit(left, left**2 / n + excess, n)
    beyond, _ = centre_and_unit(left, left**2 / n + excess * (1 + error), n)
    return abs(beyond - centre) > CENTRE_ERROR * unit


def _mean_square(
    product: Callable[[np.ndarray], np.ndarray], left: float, n: int, lots: np.ndarray
) -> float:
    """Squared Frobenius norm of a matrix by random signs (Hutchinson 1990), to CENTRE_ERROR."""
    found: list[float] = []
    while len(found) < MOST_PROBES:
        numbers = range(START * 2 + len(found), START * 2 + len(found) + COLUMNS)
        probes = columns_of_signs(lots, numbers)
        found += (product(probes.astype(np.float64)) ** 2).sum(axis=0).tolist()
        excess, error = float(np.mean(found)), np.sqrt(2 / (n * len(found)))
        if not _moves_centre(left, excess, error, n):
            break
    return excess


def draw_largest(
    space: Krylov,
    relationship: RelationshipProducts,
    stretch: np.ndarray,
    known: int,
    lots: np.ndarray,
    most_steps: int = MOST_STEPS,
    signs: np.ndarray | None = None,
) -> Draws:
    """Largest eigenvalues after signs were flipped, without the leading `known` components.

    By Lanczos iteration with full orthogonalisation: eigenvalues at the edge of a crowd take about
    as many steps as its width has gaps, to the power 1/2.
    """

    products, n = relationship.products, relationship.n
    values, vectors, _ = space.pairs(known)
    flips = flips_of(products, vectors, stretch, lots, signs)
    left = relationship.trace - float(values.sum())
    total = float(relationship.squares.sum()) - float((flips.projections**2).sum())
    scale = left / max(total, np.finfo(float).tiny)
    numbers = range(START + COLUMNS, START + COLUMNS + DRAWS)
    first = columns_of_signs(lots, numbers, products.threads)
    most_steps = min(most_steps, n)
    columns = products.columns_for(8 * DRAWS * n * most_steps + 2 * flips.signs.nbytes)
    basis = Bases(columns, columns.xp.asarray(first / np.sqrt(n)), most_steps)
    diagonal, beside = [], []
    largest, unit, squares = np.full(DRAWS, -np.inf), np.nan, np.nan
    for step in range(1, most_steps + 1):
        image = scale * products.flipped(basis.last, flips)
        if step == 1:
            # tr((M - c)^2) by random signs: c alone would leave few digits of it.
            beyond = own_lengths(columns, image - left / n * basis.last)
            excess = n * float((beyond**2).mean())
            squares = left**2 / n + excess
            unit = centre_and_unit(left, squares, n)[1]
        diagonal.append(columns.own_products(basis.last[None], image)[0])
        basis.subtract(image)
        size = own_lengths(columns, image)
        beside.append(size)
        small = size <= 1e-10 * np.abs(diagonal[0])
        if step % LOOK == 0 or step == most_steps or small.any():
            found = _largest_ritz(np.array(diagonal), np.array(beside))
            done = float((found - largest).mean()) <= LEAST_GAIN * SPREAD * unit
            largest = found
            if done or small.any() or step == most_steps:
                break
        basis.add(image / columns.xp.asarray(size))
    return Draws(known, largest, squares, left, flips)


def flips_of(
    products: GenotypeProducts,
    vectors: np.ndarray,
    stretch: np.ndarray,
    lots: np.ndarray,
    signs: np.ndarray | None = None,
) -> Flips:
    """The signs of all draws, as `noise_null` draws them, and components to take out first.

    `signs`: these of `signs_of_draws`, if they are drawn already.
    """
    if signs is None:
        signs = signs_of_draws(stretch, lots, products.threads)
    return Flips(signs, stretch, vectors, products.project(vectors))


def signs_of_draws(stretch: np.ndarray, lots: np.ndarray, threads: int) -> np.ndarray:
    """Signs of all draws, int8 (n_stretches, n, DRAWS), as `signs_of` draws them."""
    from ..engine.flipped_sums_cpu import draw_signs

    signs = np.empty((int(stretch.max()) + 1, len(lots), DRAWS), np.int8)
    own = np.stack([mix(lots + np.uint64(draw)) for draw in range(DRAWS)], axis=1)
    tasks = [(own, first, last, signs) for first, last in chunks(len(signs), STRETCHES)]
    run_tasks(draw_signs, tasks, threads)
    return signs


def _largest_ritz(diagonal: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """Largest eigenvalue of each column's tridiagonal matrix, (k,) of (steps, k)."""
    from scipy.linalg import eigh_tridiagonal

    steps = len(diagonal)
    return np.array(
        [
            eigh_tridiagonal(
                own, next_to[:-1], eigvals_only=True, select="i", select_range=(steps - 1,) * 2
            )[0]
            for own, next_to in zip(diagonal.T, beside.T, strict=True)
        ]
    )
