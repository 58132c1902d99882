"""Haplotype copying: what is computed for a panel of haplotypes, and the model's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.threads import run_tasks, usable_cpus
from ..engine.backend import Backend, on_cpu
from .copying_plan import DOSE_UNITS, LEAST_CM, SMALL_SHARE, MapWindow, cut_windows


@dataclass(frozen=True)
class Haplotypes:
    """The haplotypes of one chromosome, packed.

    Attributes
    ----------
    bits : uint64 (n_sites, n_words)
        Bit k % 64 of word k // 64: haplotype k carries ALT. Bits behind the last one are 0.
    n_haplotypes : int
    cm : float64 (n_sites)
        Position of every site on the genetic map, in centimorgans, not falling.
    """

    bits: np.ndarray
    n_haplotypes: int
    cm: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """The same bits as uint32 (n_sites, 2 n_words)."""
        return np.ascontiguousarray(self.bits).view("<u4")

    def counted(self, own: np.ndarray) -> np.ndarray:
        """Words of `rows` with a one for every haplotype but those of `own`: uint32."""
        flags = np.zeros(64 * self.bits.shape[1], np.uint8)
        flags[: self.n_haplotypes] = 1
        flags[own] = 0
        return np.packbits(flags, bitorder="little").view("<u4")


def pack_rows(alleles: np.ndarray) -> np.ndarray:
    """Pack 0 and 1, (n_sites, n_haplotypes), as rows of little-endian bits.

    Returns
    -------
    uint64 array, (n_sites, n_words)
    """
    n_sites, n_haplotypes = alleles.shape
    rows = np.zeros((n_sites, -(-n_haplotypes // 64) * 8), np.uint8)
    packed = np.packbits(alleles.astype(bool), axis=1, bitorder="little")
    rows[:, : packed.shape[1]] = packed
    return rows.view("<u8")


def haplotypes_of(alleles: np.ndarray, cm: np.ndarray) -> Haplotypes:
    """Haplotypes from alleles 0 and 1, uint8 or int8 (n_haplotypes, n_sites)."""
    return Haplotypes(pack_rows(alleles.T), len(alleles), np.asarray(cm, np.float64))


def recombination(cm: np.ndarray, ne: float, n_states: int) -> np.ndarray:
    """Probability of a new haplotype in front of each site: float64 (n_sites), 1 for the first.

    ``1 - exp(-4 ne d / n_states)``, d in morgans, from sums and products alone: libraries of
    mathematics differ in the last digit of an exponential, and results are to be the same
    everywhere.
    """
    found = np.ones(len(cm))
    if len(cm) > 1:
        steps = np.maximum(np.diff(cm), LEAST_CM)
        halved = np.minimum(steps * (0.04 * ne / n_states), 64.0) / 1024
        share = np.zeros_like(halved)
        for n in range(8, 0, -1):  # 1 - exp(-x) by its series, x <= 1/16
            share = halved / n * (1 - share)
        for _ in range(10):  # of 2x from that of x
            share = share * (2 - share)
        found[1:] = share
    return found


def impute_alleles(
    panel: Haplotypes,
    sites: np.ndarray,
    alleles: np.ndarray,
    *,
    ne: float,
    mismatch: float,
    own: np.ndarray | None = None,
    windows: Sequence[MapWindow] | None = None,
    threads: int | None = None,
    backend: Backend | None = None,
) -> np.ndarray:
    """Expected ALT alleles of haplotypes at all sites of a panel, by copying from all of it.

    The posterior of every haplotype of the panel at a haplotype's own called sites; between two of
    them linear in centimorgans. A result depends on the panel, the numbers of the model and the
    haplotype's own alleles, not on others that are imputed with it.

    Parameters
    ----------
    panel : Haplotypes
    sites : int64 (n_typed)
        Sites of the panel that are typed, rising.
    alleles : int8 (n_targets, n_typed)
        Alleles 0 and 1; -1: missing, as if the site were not typed.
    ne, mismatch : float
        Effective size, and probability that an allele differs from the copied one.
    own : int64 (n_targets, n_own), optional
        Haplotypes of the panel that a target must not copy; -1: none.
    windows : list of MapWindow, optional
        Windows that are computed; all of the panel by default. 0 outside of them.
    threads : int, optional
    backend : Backend, optional
        Of the device that computes, a CPU by default; the bytes are the same.

    Returns
    -------
    uint16 (n_targets, n_sites)
        In units of 1 / DOSE_UNITS. At called sites the called allele.
    """
    n = panel.n_haplotypes
    rows = panel.rows
    minor, flipped = minor_alleles(panel)
    loss = np.float32(mismatch / (1 - mismatch))
    windows = cut_windows(panel.cm) if windows is None else windows
    if backend is not None and backend.name == "gpu":
        from .copying_gpu import impute_on_device
        from .copying_launches_plan import DevicePanel

        given = DevicePanel(
            *(rows, panel.cm, minor, flipped, n, panel.counted),
            *(lambda cm, n_states: recombination(cm, ne, n_states), float(loss), SMALL_SHARE),
        )
        found = impute_on_device(
            given, windows, sites, alleles, own, backend.device, backend.free_bytes()
        )
        if found is not None:
            return found
        on_cpu("haplotype copying", "the device does not hold a window of the reference")
    from .copying_cpu import impute_loop, turn_rows

    columns = np.empty((-(-len(rows) // 64), 64 * panel.bits.shape[1]), np.uint64)
    turn_rows(rows, flipped, columns)
    out = np.zeros((len(alleles), len(rows)), np.uint16)
    known_alleles = np.empty((0, 2))

    def impute(target: int, window) -> None:
        masked = np.empty(0, np.int64) if own is None else own[target][own[target] >= 0]
        known = (alleles[target] >= 0) & (sites >= window.start) & (sites < window.stop)
        called = sites[known]
        n_states = n - len(masked)
        impute_loop(
            rows,
            columns,
            minor,
            flipped,
            panel.cm,
            (called, alleles[target][known]),
            (
                *(recombination(panel.cm[called], ne, n_states), np.full(len(called), loss)),
                *(known_alleles, SMALL_SHARE / n_states),
            ),
            panel.counted(masked),
            masked,
            n_states,
            (window.first, window.last),
            out[target],
        )

    tasks = [(t, window) for window in windows for t in range(len(alleles))]
    run_tasks(impute, tasks, threads or usable_cpus())
    return out


def minor_alleles(panel: Haplotypes) -> tuple[np.ndarray, np.ndarray]:
    """Haplotypes with the minor allele by site, int64, and whether this is REF, bool."""
    carriers = np.bitwise_count(panel.bits).sum(axis=1, dtype=np.int64)
    flipped = 2 * carriers > panel.n_haplotypes
    return np.where(flipped, panel.n_haplotypes - carriers, carriers), flipped


def leave_out_alleles(
    panel: Haplotypes,
    alleles: np.ndarray,
    core: slice,
    *,
    ne: float,
    mismatch: float,
    own: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """Expected ALT alleles of haplotypes at their typed sites, each from all other calls.

    What `impute_alleles` would find at a site if it were not typed in this haplotype, except that
    it takes the posterior at the site itself. One pass over the sites gives all of them. The same
    bytes alone, among others and on any number of threads.

    Parameters
    ----------
    panel : Haplotypes
        At the typed sites alone.
    alleles : int8 (n_targets, n_sites)
        Alleles 0 and 1; -1: missing.
    core : slice
        Sites that are results; the others inform them.
    ne, mismatch, own, threads
        As of `impute_alleles`.

    Returns
    -------
    uint16 (n_targets, n_sites)
        In units of 1 / DOSE_UNITS; 0 where the call is missing, and outside of the core.
    """
    from .copying_cpu import left_out_loop

    rows, loss = panel.rows, np.float32(mismatch / (1 - mismatch))
    out = np.zeros(alleles.shape, np.uint16)

    def leave_out(target: int) -> None:
        masked = np.empty(0, np.int64) if own is None else own[target][own[target] >= 0]
        called = np.flatnonzero(alleles[target] >= 0)
        bounds = tuple(np.searchsorted(called, [core.start, core.stop]).tolist())
        n_states = panel.n_haplotypes - len(masked)
        found = np.zeros(len(called), np.uint16)
        left_out_loop(
            rows,
            (called, alleles[target][called]),
            recombination(panel.cm[called], ne, n_states),
            loss,
            panel.counted(masked),
            n_states,
            bounds,
            found,
        )
        out[target, called] = found

    run_tasks(leave_out, [(target,) for target in range(len(alleles))], threads or usable_cpus())
    return out


def allele_share(units: np.ndarray) -> np.ndarray:
    """Expected ALT alleles of `impute_alleles` as float32, from 0 to 1."""
    return units.astype(np.float32) / np.float32(DOSE_UNITS)
