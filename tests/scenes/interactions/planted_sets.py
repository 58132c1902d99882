"""Power of tests of a set: many phenotypes with planted products for shared genotypes.

Some products of two sites have effects of equal size and random sign on a number. Together they
explain a share of its variance, beside what main effects and minor homozygotes explain. Genotypes
are those of `sets.genotypes_in_ld`. Each phenotype has the p-values of `set_p_values`; scores of
the first one are compared with `SetTests`.

`quadkast` is QuadKAST's test (Fu et al. 2024, Genome Res 34:1294) from its definition: products of
standardised counts, standardised, given the counts alone, without minor homozygotes; the sum of
squared scores over the residual variance is compared with a sum of weighted chi-squares.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from popdesic.epistasis.null_model import fit_null
from popdesic.epistasis.quadratic_forms import weighted_chi_square_tail
from popdesic.epistasis.set_products import LEAST_CARRIERS
from popdesic.epistasis.sets import SetTests, set_p_values

from .sets import genotypes_in_ld

TESTS = ("p", "p_quadratic", "p_pair", "quadkast")


def planted_p_values(
    rng, n: int, sites: int, cells: list[tuple[int, float]], many: int
) -> np.ndarray:
    """P-values of `TESTS`, float64 (n_cells, many, 4); cells: numbers of products, shares."""
    genotypes = genotypes_in_ld(rng, n, sites, rng.uniform(0.05, 0.5, sites))
    g = np.where(genotypes.mean(axis=0) > 1, 2 - genotypes, genotypes).astype(float)
    homozygous = (g == 2)[:, (g == 2).sum(axis=0) >= LEAST_CARRIERS]
    i, j = np.triu_indices(sites, 1)
    left = _without(np.column_stack([np.ones(n), g, homozygous]), g[:, i] * g[:, j])
    known = np.flatnonzero((left**2).mean(axis=0) > 1e-3)
    y = np.stack(
        [_phenotype(rng, left, known, *cell) for cell in cells for _ in range(many)], axis=1
    )
    r = _without(np.column_stack([np.ones(n), g, homozygous]), y)
    null = fit_null(y[:, 0], np.zeros((n, 0)), "linear")
    first = SetTests(null).scores(genotypes, np.arange(sites))
    r *= np.sqrt(first.freedom / (r**2).sum(axis=0))
    place = {pair: k for k, pair in enumerate(zip(i.tolist(), j.tolist(), strict=True))}
    tested = [place[pair] for pair in zip(first.first.tolist(), first.second.tolist(), strict=True)]
    scores = left[:, tested].T @ r
    np.testing.assert_allclose(scores[:, 0], first.scores, rtol=1e-6, atol=1e-4)
    found = [set_p_values(replace(first, scores=one)) for one in scores.T]
    own = np.array([[one[name] for name in TESTS[:3]] for one in found])
    peer = quadkast(genotypes, y)
    return np.column_stack([own, peer]).reshape(len(cells), many, len(TESTS))


def quadkast(genotypes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """P of phenotypes (n_people, many), by genotypes (n_people, n_sites): float64 (many,)."""
    x = (genotypes - genotypes.mean(axis=0)) / genotypes.std(axis=0)
    i, j = np.triu_indices(x.shape[1], 1)
    z = x[:, i] * x[:, j]
    null = np.column_stack([np.ones(len(x)), x])
    z = _without(null, (z - z.mean(axis=0)) / z.std(axis=0))
    r = _without(null, y)
    variance = (r**2).sum(axis=0) / (len(x) - np.linalg.matrix_rank(null))
    sizes = np.linalg.eigvalsh(z.T @ z)
    sizes = sizes[sizes > 1e-9 * sizes[-1]]
    sums = ((z.T @ r) ** 2).sum(axis=0) / variance
    return np.array([weighted_chi_square_tail(sizes, np.ones(len(sizes)), q) for q in sums])


def _phenotype(rng, left: np.ndarray, known: np.ndarray, products: int, share: float):
    """A number with residuals of variance 1; `left`: products beside main effects."""
    z = left[:, rng.choice(known, products, replace=False)]
    effect = (z / z.std(axis=0)) @ rng.choice([-1.0, 1.0], products)
    effect *= np.sqrt(share / (1 - share)) / effect.std()
    return effect + rng.normal(size=len(effect))


def _without(design: np.ndarray, columns: np.ndarray) -> np.ndarray:
    basis, sizes, _ = np.linalg.svd(design, full_matrices=False)
    basis = basis[:, sizes > 1e-9 * sizes[0]]
    return columns - basis @ (basis.T @ columns)
