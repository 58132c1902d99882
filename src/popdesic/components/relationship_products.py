"""The relationship matrix of many samples as an operator, without the matrix.

The relationship of two samples is the sum of products of their standardised genotypes over the
number of sites called in both, C. Without missing genotypes this is X X' over the number of sites.
With them, C of two samples of cohorts A and B is taken as c c' / M, with c the called sites of each
sample and M a number for each pair of cohorts that makes the sum of C over their pairs exact: so
sites that a cohort lacks as a whole, and samples with much missing, count as they do. The diagonal
and the trace are exact. What C differs by from this is measured (`misfit`); where it is more than
MOST_MISFIT, callers make the matrix.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..core.random_numbers import columns_of_signs
from ..engine.genotype_products import GenotypeProducts

#: Spectral norm of what C differs by, relative to the mean of C times the number of samples: so
#: much do eigenvalues change.
MOST_MISFIT = 1e-4
#: Vectors and steps of the power iteration that measures it.
PROBES, STEPS = 4, 4


class RelationshipProducts:
    """Products of the relationship of n samples with vectors.

    Attributes
    ----------
    trace : float
        Sum of all eigenvalues.
    n_sites : int
        Sites that count.
    complete : bool
        Whether no genotype is missing.
    """

    def __init__(self, products: GenotypeProducts) -> None:
        self.products = products
        sums = products.sample_sums()
        sizes = np.array([who.sum() for who in products.calls.keep])
        self.part = np.repeat(np.arange(len(sizes)), sizes)
        self.n = len(self.part)
        af = products.calls.af
        self.n_sites = int(((af > 0) & (af < 1)).sum())
        self.squares, self.called = sums.squares, sums.called
        own = np.maximum(sums.called, 1).astype(np.float64)
        self.trace = float((sums.squares / own).sum())
        self.complete = bool((sums.called == self.n_sites).all())
        self.weights = 1 / own
        if self.complete:
            self.factors, self.scale = None, float(max(self.n_sites, 1))
            self.extra = np.zeros(self.n)
            return
        total = np.bincount(self.part, own, len(sizes))
        pairs = np.outer(total, total) - np.diag(np.bincount(self.part, own**2, len(sizes)))
        joint = sums.joint - np.diag(np.bincount(self.part, sums.called, len(sizes)).astype(int))
        # Parts that share no site, and a sample with itself, have no pairs.
        self.factors = np.divide(pairs, joint, out=np.zeros(pairs.shape), where=joint > 0)
        self.scale = 1.0
        within = np.diag(self.factors)[self.part]
        self.extra = sums.squares * self.weights * (1 - within * self.weights)

    def __call__(self, vectors: Any) -> Any:
        """The relationship times vectors, float64 (n, k), which lie where the given ones lie."""
        weights, extra = self.weights, self.extra
        if isinstance(vectors, self.products.xp.ndarray):
            weights, extra = self._there
        weights, extra = weights[:, None], extra[:, None]
        found = self.products.normal(weights * vectors, self.factors)
        return self.scale * weights * found + extra * vectors

    @cached_property
    def _there(self) -> tuple[Any, Any]:
        """`weights` and `extra` where the products are made."""
        xp = self.products.xp
        return xp.asarray(self.weights), xp.asarray(self.extra)

    def misfit(self, lots: np.ndarray) -> float:
        """How much C differs from what it is taken as, of the mean of C; see MOST_MISFIT.

        `lots`: uint64 (n,), random numbers of the samples (`lots.lots_of`).
        """
        if self.complete or self.n < 2:
            return 0.0
        own = self.called.astype(np.float64)
        known = self.factors > 0
        rates = np.divide(1.0, self.factors, out=np.zeros(known.shape), where=known)
        joint = own[:, None] * rates[self.part]
        within = own - own * own * np.diag(rates)[self.part]
        probes = columns_of_signs(lots, range(PROBES)).astype(np.float64)
        size = 0.0
        for _ in range(STEPS):
            probes = np.linalg.qr(probes)[0]
            model = np.stack([np.bincount(self.part, own * one) for one in probes.T], axis=1)
            differs = self.products.joint(probes) - joint @ model - within[:, None] * probes
            size = float(np.linalg.norm(differs, axis=0).max())
            if not size > 0:
                break
            probes = differs
        return size / (self.n * max(float(own.mean()), 1.0))
