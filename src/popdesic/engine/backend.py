"""The protocol that every backend implements.

Two semiring products carry all heavy work: `bitgemm` sums weighted popcounts of ANDed bit-planes,
`minplus` hands out the (min, +) matrix product. What a room computes besides lies in its own
modules: `x_cpu` and `x_gpu`, behind a function of `x` that takes the backend.
"""

from __future__ import annotations

import logging
from typing import Protocol

import numpy as np

from .genotype_products import Calls, GenotypeProducts
from .minplus import MinPlus
from .terms import Planes, Terms

log = logging.getLogger(__name__)


def on_cpu(what: str, why: str) -> None:
    """Log that a job with a GPU computes something on the CPU."""
    log.info("On the CPU: %s; %s.", what, why)


class Backend(Protocol):
    """The array primitives that one kind of device provides. Results are numpy arrays."""

    #: Of the device: ``cpu`` or ``gpu``.
    name: str
    #: CPU threads that the job may use, for what the host computes as well.
    threads: int

    def describe(self) -> str:
        """One line for the log: which device and which kernels will do the work."""
        ...

    def bitgemm(self, a: Planes, b: Planes | None, terms: Terms) -> np.ndarray:
        """Weighted AND+popcount products between all samples of `a` and of `b`.

        Parameters
        ----------
        a, b : Planes
            Blocks of m and n samples over the same sites. ``b=None`` means `a` against itself:
            only one triangle is computed, then mirrored.
        terms : Terms
            Letters are evaluated over called genotypes. Where a block is complete its c is all
            ones. With ``b=None`` and terms that are not symmetric, a GPU computes all pairs.

        Returns
        -------
        int64 array, (n_outputs, m, n)
            Exact. Missing genotypes add nothing.
        """
        ...

    def keep_planes(self, planes: Planes) -> Planes:
        """The same planes where products read them fastest: those of a block used many times.

        On the device if they are small beside its memory, otherwise as they are. Only `bitgemm`
        reads them.
        """
        ...

    def minplus(self) -> MinPlus:
        """(min, +) products: shortest paths."""
        ...

    def genotype_products(self, calls: Calls) -> GenotypeProducts:
        """Products of standardised genotypes with vectors; the same bytes from every backend."""
        ...
