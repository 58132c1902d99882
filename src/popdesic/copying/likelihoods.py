"""Haplotypes of samples whose genotypes are not known, only their likelihoods: low coverage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..core.phreds import likelihoods_of_phreds
from ..core.threads import run_tasks, usable_cpus
from .copying import Haplotypes, minor_alleles, recombination
from .copying_plan import SMALL_SHARE, MapWindow, cut_windows
from .phasing_plan import BURNT_LIKELY, KEPT_LIKELY, block_length


class Likely(NamedTuple):
    """Genotype likelihoods of samples at typed sites of a panel.

    Attributes
    ----------
    sites : int64 array, (n_typed,)
        Sites of the panel, rising.
    phreds : uint8 array, (n_samples, n_typed, 3)
        Of 0, 1 and 2 ALT alleles (`core.phreds`); of a haploid sample the third does not count.
        Where all are equal, the site is as one that is not typed.
    haploid : bool array, (n_samples,)
        Samples with one haplotype.
    lots : uint64 array, (n_samples,)
        Keys of the random numbers: a function of seed and name.
    """

    sites: np.ndarray
    phreds: np.ndarray
    haploid: np.ndarray
    lots: np.ndarray


def no_links(n_samples: int) -> np.ndarray:
    """`links` before the first window: the first ALT is to be on the second haplotype."""
    return np.tile(np.array([-1, 1], np.int64), (n_samples, 1))


def impute_likely_window(
    panel: Haplotypes,
    window: MapWindow,
    given: Likely,
    links: np.ndarray,
    *,
    ne: float,
    mismatch: float,
    own: Sequence[np.ndarray] | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """Expected ALT alleles of both haplotypes of samples in a window, from likelihoods.

    Either haplotype is drawn given the other one, and phases by a sweep (`phasing_cpu`), by turns.
    After iterations that are not counted, the posterior of each haplotype given the other is
    averaged. A result depends on the panel, the numbers of the model, the sample's own likelihoods
    and its lot, not on others that are imputed with it.

    Parameters
    ----------
    panel : Haplotypes
        At the window's sites, from `start` to `stop`.
    window : MapWindow
    given : Likely
        `sites` are numbers of the whole panel; those outside of the window do not count.
    links : int64 (n_samples, 2)
        The last heterozygous site before the window, and which haplotype has ALT there; then those
        of the window.
    ne, mismatch, threads
        As in `impute_alleles`.
    own : sequence of int64 arrays, optional
        Haplotypes of the panel that each sample must not copy.

    Returns
    -------
    uint16 (n_samples, 2, window.last - window.first)
        In 1 / DOSE_UNITS; the second haplotype of a haploid sample is 0.
    """
    from .copying_cpu import turn_rows

    low, high = np.searchsorted(given.sites, [window.start, window.stop])
    sites = given.sites[low:high] - window.start
    minor, flipped = minor_alleles(panel)
    columns = np.empty((-(-len(panel.bits) // 64), 64 * panel.bits.shape[1]), np.uint64)
    turn_rows(panel.rows, flipped, columns)
    tables = (panel.rows, columns, minor, flipped, np.ascontiguousarray(panel.cm, np.float64))
    core = (window.first - window.start, window.last - window.start)
    out = np.zeros((len(given.phreds), 2, core[1] - core[0]), np.uint16)

    def impute(target: int) -> None:
        phreds = given.phreds[target, low:high]
        if given.haploid[target]:
            phreds = phreds[:, :2]
        told = (phreds != phreds[:, :1]).any(axis=1)
        masked = np.empty(0, np.int64) if own is None else own[target]
        model = _Model(panel, sites[told], masked, ne, mismatch)
        likelihoods = likelihoods_of_phreds()[phreds[told]]
        if given.haploid[target]:
            whole = np.zeros(len(panel.bits), np.uint16)
            model.impute(tables, _emission(likelihoods, mismatch), core, whole)
            out[target, 0] = whole[core[0] : core[1]]
            return
        link = tuple(links[target].tolist())
        at = link[0] - window.start if link[0] >= window.start else -1
        bounds = (core[0] if at < 0 else at, core[1])
        doses = _draw_doses(model, tables, likelihoods, bounds, given.lots[target], window.start)
        from .likelihoods_cpu import join_loop

        at, side = join_loop(doses, core, (at, link[1]), out[target])
        links[target] = (at + window.start if at >= 0 else link[0], side)

    run_tasks(impute, [(k,) for k in range(len(out))], threads or usable_cpus())
    return out


def impute_windows(
    panel: Haplotypes, given: Likely, *, ne: float, mismatch: float, threads: int | None = None
) -> np.ndarray:
    """`impute_likely_window` of all windows of a panel: uint16 (n_samples, 2, n_sites)."""
    links = no_links(len(given.phreds))
    found = []
    for window in cut_windows(panel.cm):
        part = slice(window.start, window.stop)
        few = Haplotypes(panel.bits[part], panel.n_haplotypes, panel.cm[part])
        how = {"ne": ne, "mismatch": mismatch, "threads": threads}
        found.append(impute_likely_window(few, window, given, links, **how))
    return np.concatenate(found, axis=2)


class _Model:
    """The copying model of one sample at the sites with likelihoods."""

    def __init__(
        self, panel: Haplotypes, sites: np.ndarray, own: np.ndarray, ne: float, mismatch: float
    ) -> None:
        self.sites, self.own, self.mismatch = sites, own, mismatch
        self.n_states = panel.n_haplotypes - len(own)
        self.rho = recombination(panel.cm[sites], ne, self.n_states)
        self.loss = np.float32(mismatch / (1 - mismatch))
        self.counted = panel.counted(own)
        words = panel.rows[sites] & self.counted
        self.frequency = np.bitwise_count(words).sum(axis=1, dtype=np.int64) / self.n_states

    def impute(self, tables: tuple, emitted: tuple, bounds: tuple[int, int], out) -> None:
        """Expected ALT alleles of one haplotype (`copying_cpu.impute_loop`)."""
        from .copying_cpu import impute_loop

        favored, losses, chances = emitted
        impute_loop(
            *(*tables, (self.sites, favored)),
            (self.rho, losses, chances, SMALL_SHARE / self.n_states),
            *(self.counted, self.own, self.n_states, bounds, out),
        )


def _draw_doses(
    model: _Model,
    tables: tuple,
    likelihoods: np.ndarray,
    bounds: tuple[int, int],
    lot: np.uint64,
    offset: int,
) -> np.ndarray:
    """Posteriors of both haplotypes of the iterations that count: uint16 (2, n_kept, n_sites)."""
    from .likelihoods_cpu import draw_loop
    from .phasing_cpu import phase_loop

    rows, numbers = tables[0], model.sites + offset
    n = len(model.sites)
    block = block_length(n, 32 * model.counted.size)
    doses = np.zeros((2, KEPT_LIKELY, len(rows)), np.uint16)
    alleles = np.zeros((2, n), np.int8)
    frequency = model.frequency
    every = np.arange(n)
    for iteration in range(BURNT_LIKELY + KEPT_LIKELY):
        for h in range(2):
            if iteration or h:
                other = alleles[1 - h]
                both = np.stack([likelihoods[every, other], likelihoods[every, other + 1]], axis=1)
            else:  # the other haplotype has the frequencies of the panel
                less, more = likelihoods[:, :2], likelihoods[:, 1:]
                both = less * (1 - frequency)[:, None] + more * frequency[:, None]
                both = np.ascontiguousarray(both)
            emitted = _emission(both, model.mismatch)
            if iteration >= BURNT_LIKELY:
                model.impute(tables, emitted, bounds, doses[h, iteration - BURNT_LIKELY])
            draw_loop(
                *(rows, (model.sites, numbers), (*emitted[:2], both), model.rho),
                *(model.counted, model.n_states, model.loss),
                *((lot, iteration, 1 + h), block, alleles[h]),
            )
        genotypes = alleles.sum(axis=0, dtype=np.int8)
        drawn = np.zeros((1, int((genotypes == 1).sum())), np.int8)
        if drawn.size > 1:
            phase_loop(
                *(rows, model.sites, numbers, genotypes, model.rho, model.counted, model.n_states),
                *(model.loss, (lot, 0, iteration), block, alleles, drawn),
            )
    return doses


def _emission(likelihoods: np.ndarray, mismatch: float) -> tuple[np.ndarray, ...]:
    """What copies of REF and ALT emit, from the likelihoods of both alleles (n_sites, 2).

    Returns
    -------
    int8, float32 (n_sites), float64 (n_sites, 2)
        The allele whose copies emit more; the emission of the other's beside it; the probability of
        ALT in a copy of REF and of ALT.
    """
    kept, changed = (1 - mismatch) * likelihoods, mismatch * likelihoods
    of_ref, of_alt = kept[:, 0] + changed[:, 1], kept[:, 1] + changed[:, 0]
    favored = (of_alt >= of_ref).astype(np.int8)
    losses = (np.minimum(of_ref, of_alt) / np.maximum(of_ref, of_alt)).astype(np.float32)
    chances = np.stack([changed[:, 1] / of_ref, kept[:, 1] / of_alt], axis=1)
    return favored, losses, np.ascontiguousarray(chances)
