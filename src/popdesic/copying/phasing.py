"""Phase of unphased samples by copying from the haplotypes of a panel."""

from __future__ import annotations

import numpy as np

from ..core.threads import run_tasks, usable_cpus
from .copying import Haplotypes, recombination
from .copying_plan import MapWindow, cut_windows
from .phasing_plan import BURN_IN, VOTING, block_length


def phase_alleles(
    panel: Haplotypes,
    sites: np.ndarray,
    genotypes: np.ndarray,
    lots: np.ndarray,
    *,
    ne: float,
    mismatch: float,
    own: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """Haplotypes of samples whose genotypes are known, by copying from all haplotypes of a panel.

    Phases are drawn by sweeps (`phasing_cpu`), and whether two heterozygous genotypes that follow
    each other have ALT on the same haplotype is what most sweeps say. The first one's ALT is on the
    second haplotype. A result depends on the panel, the numbers of the model, the sample's own
    genotypes and its lot, not on others that are phased with it.

    Parameters
    ----------
    panel : Haplotypes
    sites : int64 (n_typed)
        Sites of the panel that are typed, rising.
    genotypes : int8 (n_targets, n_typed)
        Number of ALT alleles; -1: missing, as if the site were not typed.
    lots : uint64 (n_targets)
        Keys of the random numbers: a function of seed and name.
    ne, mismatch, own, threads
        As in `impute_alleles`; `own` of a sample.

    Returns
    -------
    int8 (n_targets, 2, n_typed)
        Alleles; -1 where the genotype is missing.
    """
    from .phasing_cpu import phase_loop

    rows = np.ascontiguousarray(panel.bits[sites]).view("<u4")
    windows = cut_windows(panel.cm)
    tasks = [(target, window) for window in windows for target in range(len(genotypes))]
    cm = np.asarray(panel.cm[sites])

    def sweep(target: int, window: MapWindow) -> tuple[np.ndarray, np.ndarray]:
        masked = np.empty(0, np.int64) if own is None else own[target][own[target] >= 0]
        known = (genotypes[target] >= 0) & (sites >= window.start) & (sites < window.stop)
        called = np.flatnonzero(known)
        own_calls = genotypes[target][called]
        hets = called[own_calls == 1]
        drawn = np.zeros((1 + BURN_IN + VOTING, len(hets)), np.int8)
        counted = panel.counted(masked)
        n_states = panel.n_haplotypes - len(masked)
        if len(hets) > 1:
            alleles = unphased_alleles(own_calls)
            phase_loop(
                *(rows, called, sites[called], own_calls),
                recombination(cm[called], ne, n_states),
                *(counted, n_states, np.float32(mismatch / (1 - mismatch)), (lots[target], 0, 0)),
                *(block_length(len(called), 32 * counted.size), alleles, drawn),
            )
        core = (sites[hets] >= window.first) & (sites[hets] < window.last)
        return hets[core], _crossed(drawn[1 + BURN_IN :])[core]

    found = run_tasks(sweep, tasks, threads or usable_cpus())
    alleles = np.repeat((genotypes // 2)[:, None], 2, axis=1).astype(np.int8)
    for target, row in enumerate(alleles):
        parts = [found[k] for k in range(target, len(tasks), len(genotypes))]
        hets = np.concatenate([part[0] for part in parts])
        crossed = np.concatenate([part[1] for part in parts])
        row[0, hets] = np.cumsum(crossed) % 2
        row[1, hets] = 1 - row[0, hets]
    return alleles


def unphased_alleles(genotypes: np.ndarray) -> np.ndarray:
    """Alleles (2, n_sites) with which `phasing_cpu.phase_loop` starts: -1 where heterozygous."""
    alleles = np.where(genotypes == 1, np.int8(-1), genotypes // 2).astype(np.int8)
    return np.stack([alleles, alleles])


def _crossed(votes: np.ndarray) -> np.ndarray:
    """Whether ALT is on the other haplotype than at the heterozygous site before, by vote."""
    changed = np.diff(votes, axis=1, prepend=votes[:, :1]) != 0
    return 2 * changed.sum(axis=0) > len(votes)
