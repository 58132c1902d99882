"""Phase of samples by copying from each other, without a panel.

Every sample is phased from the present haplotypes of all others, all at once, and again from those
that result. In the first iterations it starts afresh: a sample that goes on from its own last phase
keeps its errors, and others copy them. Later ones go on, and the last ones vote on the relation of
heterozygous sites that follow each other. So do several chains with other random numbers.
Iterations run through the sites in both directions by turns. Missing alleles are drawn in every
iteration; in the result they are the more probable ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.random_numbers import mix
from ..core.threads import run_tasks, usable_cpus
from .copying import Haplotypes, haplotypes_of, impute_alleles, recombination
from .copying_plan import DOSE_UNITS, MapWindow, cut_windows
from .fit import fit_model
from .phasing import unphased_alleles
from .phasing_plan import (
    AFRESH,
    BURNT_TOGETHER,
    CHAINS,
    FIRST_MODEL,
    TOGETHER,
    block_length,
)


def phase_together(
    genotypes: np.ndarray,
    cm: np.ndarray,
    lots: np.ndarray,
    *,
    kin: Sequence[np.ndarray] | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """Haplotypes of samples, by copying from each other.

    Parameters
    ----------
    genotypes : int8 (n_samples, n_sites)
        Number of ALT alleles; -1: missing.
    cm : float64 (n_sites)
        Genetic positions of one chromosome, in centimorgans, not falling.
    lots : uint64 (n_samples)
        Keys of the random numbers: a function of seed and name.
    kin : list of int arrays, optional
        Of each sample, the numbers of others from which it does not copy.
    threads : int, optional
        The bytes do not depend on their number.

    Returns
    -------
    int8 (n_samples, 2, n_sites)
        Alleles, none missing.
    """
    n, n_sites = genotypes.shape
    threads = threads or usable_cpus()
    own = [np.array([k], np.int64) for k in range(n)]
    if kin is not None:
        own = [np.union1d(one, other).astype(np.int64) for one, other in zip(own, kin, strict=True)]
    masked = [np.sort(np.concatenate([2 * one, 2 * one + 1])) for one in own]
    found = np.empty((n, 2, n_sites), np.int8)
    before = np.zeros(n, np.int8)  # the first haplotype's allele at the last heterozygous site
    for window in cut_windows(cm):
        part = slice(window.start, window.stop)
        core = slice(window.first - window.start, window.last - window.start)
        cohort = _Cohort(genotypes[:, part], cm[part], lots, masked, window.start, threads)
        found[:, :, window.first : window.last] = cohort.phased(before, core)
        before = _last_alleles(found, genotypes, window, before)
    return found


def _last_alleles(found, genotypes, window: MapWindow, before: np.ndarray) -> np.ndarray:
    """The first haplotype's allele at the last heterozygous site so far, by sample."""
    after = before.copy()
    for k, row in enumerate(genotypes[:, window.first : window.last]):
        hets = np.flatnonzero(row == 1)
        if len(hets):
            after[k] = found[k, 0, window.first + hets[-1]]
    return after


class _Cohort:
    """Samples in a window, phased from each other."""

    def __init__(self, genotypes, cm, lots, masked, start: int, threads: int) -> None:
        self.genotypes, self.cm = np.ascontiguousarray(genotypes), np.asarray(cm, np.float64)
        self.lots, self.masked, self.threads = lots, masked, threads
        n, n_sites = self.genotypes.shape
        self.owner = np.arange(2 * n) // 2
        self.hets = [np.flatnonzero(row == 1) for row in self.genotypes]
        self.numbers = start + np.arange(n_sites)
        self.crossed = [np.zeros(len(one), np.int64) for one in self.hets]
        self.model = FIRST_MODEL

    def _begin(self, chain: int) -> np.ndarray:
        """Alleles (n, 2, n_sites): random phase, missing genotypes the more frequent allele."""
        genotypes = self.genotypes
        called = genotypes >= 0
        alt = np.where(called, genotypes, 0).sum(axis=0)
        common = (alt > called.sum(axis=0)).astype(np.int8)
        seeds = self.lots[:, None] + self.numbers.astype(np.uint64) * np.uint64(2 * chain + 1)
        first = (mix(seeds) & np.uint64(1)).astype(np.int8)
        one = np.where(genotypes == 1, first, np.where(called, genotypes // 2, common))
        other = np.where(genotypes == 1, 1 - first, one)
        return np.stack([one, other], axis=1).astype(np.int8)

    def _packed(self, alleles: np.ndarray) -> Haplotypes:
        return haplotypes_of(alleles.reshape(-1, alleles.shape[2]), self.cm)

    def _iterate(self, alleles: np.ndarray, chain: int, iteration: int) -> np.ndarray:
        """Alleles of all samples after an iteration."""
        from .phasing_cpu import phase_loop

        panel = self._packed(alleles)
        rows, n_sites = panel.rows, len(self.cm)
        afresh = iteration < AFRESH
        turn = slice(None, None, -1) if iteration % 2 else slice(None)
        sites = np.ascontiguousarray(np.arange(n_sites)[turn])
        cm = self.cm if iteration % 2 == 0 else -self.cm[::-1]
        ne, mismatch = self.model
        out = np.empty_like(alleles)
        loss = np.float32(mismatch / (1 - mismatch))

        def sweep(k: int) -> None:
            n_states = panel.n_haplotypes - len(self.masked[k])
            genotypes = np.ascontiguousarray(self.genotypes[k, turn])
            given = unphased_alleles(genotypes) if afresh else alleles[k][:, turn].copy()
            drawn = np.zeros((1 + afresh, len(self.hets[k])), np.int8)
            counted = panel.counted(self.masked[k])
            phase_loop(
                *(rows, sites, np.ascontiguousarray(self.numbers[turn]), genotypes),
                recombination(cm, ne, n_states),
                *(counted, n_states, loss, (self.lots[k], chain, 2 * iteration)),
                *(block_length(n_sites, 32 * counted.size), given, drawn),
            )
            out[k] = given[:, turn]
            if iteration >= BURNT_TOGETHER:
                first = out[k, 0, self.hets[k]]
                self.crossed[k] += np.diff(first, prepend=first[:1]) != 0

        run_tasks(sweep, [(k,) for k in range(len(alleles))], self.threads)
        return out

    def phased(self, before: np.ndarray, core: slice) -> np.ndarray:
        """Alleles (n, 2, n_core) by vote, with the phase going on from `before`."""
        for chain in range(CHAINS):
            alleles = self._begin(chain)
            for iteration in range(TOGETHER):
                if iteration == AFRESH and chain == 0:
                    self.model = fit_model(self._packed(alleles), self.owner, threads=self.threads)
                alleles = self._iterate(alleles, chain, iteration)
        voted = self._voted(alleles, before, core)
        return self._filled(voted)[:, :, core]

    def _voted(self, last: np.ndarray, before: np.ndarray, core: slice) -> np.ndarray:
        """Alleles with the phase that most sweeps gave; drawn ones follow it."""
        votes = CHAINS * (TOGETHER - BURNT_TOGETHER)
        found = last.copy()
        for k, hets in enumerate(self.hets):
            if not len(hets):
                continue
            first = np.cumsum(2 * self.crossed[k] > votes) % 2
            inside = int(np.searchsorted(hets, core.start))
            if inside < len(hets):  # relation of the first one here to the last one before
                crossed = 2 * self.crossed[k][inside] > votes
                first ^= int(first[inside]) ^ int(before[k]) ^ int(crossed)
            turned = first != last[k, 0, hets]
            place = np.maximum(np.searchsorted(hets, np.arange(last.shape[2]), "right") - 1, 0)
            found[k] = np.where(turned[place], last[k, ::-1], last[k])
        return found

    def _filled(self, alleles: np.ndarray) -> np.ndarray:
        """Alleles where the missing ones are the more probable ones, given all others."""
        rows = alleles.reshape(-1, alleles.shape[2])
        missing = np.repeat(self.genotypes < 0, 2, axis=0)
        if not missing.any():
            return alleles
        shown = np.where(missing, np.int8(-1), rows)
        most = max(len(one) for one in self.masked)
        own = np.full((len(rows), most), -1, np.int64)
        for k, one in enumerate(self.masked):
            own[2 * k : 2 * k + 2, : len(one)] = one
        units = impute_alleles(
            *(self._packed(alleles), np.arange(rows.shape[1]), shown),
            ne=self.model[0],
            mismatch=self.model[1],
            own=own,
            windows=[MapWindow(0, rows.shape[1], 0, rows.shape[1])],
            threads=self.threads,
        )
        filled = np.where(missing, (2 * units.astype(np.int64) > DOSE_UNITS), rows)
        return filled.astype(np.int8).reshape(alleles.shape)
