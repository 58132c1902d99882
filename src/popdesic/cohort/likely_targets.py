"""Targets of imputation with genotype likelihoods, on the sites of a haplotype panel."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.errors import UserError
from ..io.frozen_haplotypes import HaplotypePanel
from ..io.genotype_likelihoods import (
    NO_PHREDS,
    ONE_COPY,
    LikelySites,
    stream_likelihoods,
)
from ..io.phased import read_phased_samples
from .phased_targets import shared_rows


@dataclass(frozen=True)
class LikelyPart:
    """Likelihoods of the targets at sites of one part of the panel.

    Attributes
    ----------
    rows : int64 array, (n_typed,)
        Sites of the part, ascending.
    phreds : uint8 array, (n_samples, n_typed, 3)
        Of 0, 1 and 2 ALT alleles of the part's site; zeros where they are missing. The third of a
        haploid sample does not count.
    haploid : bool array, (n_samples,)
    """

    rows: np.ndarray
    phreds: np.ndarray
    haploid: np.ndarray

    def told(self) -> np.ndarray:
        """Samples with likelihoods that are not all equal, at any site: bool (n_samples,)."""
        counted = np.where(self.haploid[:, None, None], [True, True, False], True)
        return ((self.phreds > 0) & counted).any(axis=(1, 2))


@dataclass(frozen=True)
class LikelyTargets:
    """Names of the samples, a LikelyPart for each part of the panel, and counts of the match."""

    samples: list[str]
    parts: list[LikelyPart]
    counts: dict[str, int]


def read_likely(path: Path, panel: HaplotypePanel, threads: int = 1) -> LikelyTargets:
    """Read genotype likelihoods of targets and place them on the panel's sites.

    Raises
    ------
    UserError
        As `phased_targets.read_targets` and `genotype_likelihoods.stream_likelihoods`.
    """
    samples = read_phased_samples(path)
    counts: Counter = Counter()

    def pick(batch: LikelySites, rows: np.ndarray) -> tuple[np.ndarray]:
        return (batch.phreds[rows],)

    batches = stream_likelihoods(path, counts, threads)
    sites, found, (phreds,) = shared_rows(path, panel, batches, counts, pick)
    parts = []
    for number, part in enumerate(panel.parts):
        here = np.flatnonzero((sites.part == number).to_numpy() & (found.row >= 0))
        shown = f"{path}, contig '{part.contig}'"
        parts.append(
            _placed(
                *(sites.row.to_numpy()[here], phreds[found.row[here]], found.swapped[here]),
                *(shown, samples),
            )
        )
    return LikelyTargets(samples, parts, dict(counts))


def _placed(
    rows: np.ndarray, phreds: np.ndarray, swapped: np.ndarray, shown: str, samples: list[str]
) -> LikelyPart:
    """A part of phreds (n_typed, n_samples, 3), which are changed."""
    missing = phreds[..., 0] == NO_PHREDS
    one = ~missing & (phreds[..., 2] == ONE_COPY)
    haploid, diploid = one.any(axis=0), (~missing & ~one).any(axis=0)
    if (mixed := haploid & diploid).any():
        sample = int(np.argmax(mixed))
        n_one, n_two = int(one[:, sample].sum()), int((~missing & ~one)[:, sample].sum())
        raise UserError(
            f"{shown}: sample '{samples[sample]}' has two likelihoods at {n_one} sites, as a "
            f"haploid sample, and three at {n_two}; write them in one way."
        )
    phreds[missing] = 0
    last = np.where(haploid, 1, 2)
    turned = np.flatnonzero(swapped)
    for sample, stop in enumerate(last):
        phreds[turned, sample, : stop + 1] = phreds[turned, sample, stop::-1]
    return LikelyPart(rows, np.ascontiguousarray(phreds.transpose(1, 0, 2)), haploid)
