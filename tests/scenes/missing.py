"""Unrelated samples whose calls are missing by genotype, and what kinship then concludes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from support.operands import planes_of

from popdesic.engine.backend import Backend
from popdesic.relatives.independence import judge_cohort, measure_variances
from popdesic.relatives.kinship import king_robust, kinship_counts
from popdesic.relatives.resolution import FIRST, SECOND, THIRD, resolve


def missing_by_genotype(n: int, n_sites: int, rates: tuple, seed: int) -> np.ndarray:
    """Genotypes int8 (n, n_sites) of strangers; those with 0, 1, 2 ALT missing at `rates`."""
    rng = np.random.default_rng(seed)
    af = rng.uniform(0.05, 0.95, n_sites)
    genotypes = sum((rng.random((n, n_sites)) < af).astype(np.int8) for _ in range(2))
    genotypes[rng.random(genotypes.shape) < np.array(rates)[genotypes]] = -1
    return genotypes


def missing_up_to_a_limit(n: int, n_sites: int, worst: float, limit: float, seed: int):
    """Strangers whose homozygotes are missing at a rate of each site; a limit chooses the sites.

    Rates are uniform up to `worst`; sites that miss more than `limit` of all calls are left out. So
    frequent and rare sites miss as many calls.
    """
    rng = np.random.default_rng(seed)
    parts: list[np.ndarray] = []
    while sum(part.shape[1] for part in parts) < n_sites:
        af = rng.uniform(0.05, 0.95, n_sites)
        genotypes = sum((rng.random((n, n_sites)) < af).astype(np.int8) for _ in range(2))
        missing = rng.random(genotypes.shape) < rng.uniform(0, worst, n_sites)
        genotypes[missing & (genotypes != 1)] = -1
        parts.append(genotypes[:, (genotypes < 0).mean(axis=0) <= limit])
    return np.concatenate(parts, axis=1)[:, :n_sites]


def siblings(n: int, n_sites: int, families: int, rates: tuple, seed: int) -> np.ndarray:
    """Genotypes int8 (n, n_sites) of some families of full siblings; missing at `rates`."""
    rng = np.random.default_rng(seed)
    af, rows = rng.uniform(0.05, 0.95, n_sites), []
    for k in range(families):
        parents = sum((rng.random((2, n_sites)) < af).astype(np.int8) for _ in range(2))
        children = n * (k + 1) // families - n * k // families
        rows.append(
            sum((rng.random((children, n_sites)) < one / 2).astype(np.int8) for one in parents)
        )
    genotypes = np.concatenate(rows)
    genotypes[rng.random(genotypes.shape) < np.array(rates)[genotypes]] = -1
    return genotypes


@dataclass(frozen=True)
class Told:
    """Fault and shift of `judge_cohort`, median kinship, and false pairs by their degree.

    `unjudged`: false pairs of any degree if the cohort were not judged.
    """

    missing: float
    fault: str | None
    shift: float
    median: float
    unjudged: int
    third: int
    second: int
    first: int
    pairs: int


def judge_strangers(genotypes: np.ndarray, backend: Backend) -> Told:
    """What a study of these samples alone says of their pairs; all are unrelated."""
    called = genotypes >= 0
    af = np.where(called, genotypes, 0).sum(axis=0) / np.maximum(2 * called.sum(axis=0), 1)
    planes, (n, sites) = planes_of(genotypes), genotypes.shape
    fault, shift = judge_cohort(planes, af, backend)
    contigs = (np.arange(sites) * 22 // sites).astype(str)
    variances = measure_variances([planes], contigs, backend)
    about = {"panel": "scene", "sites": sites, "founders": n, "max_mismatch": 0.02}
    counts = kinship_counts(planes, None, backend)
    upper = np.triu_indices(n, 1)
    phi, jointly = king_robust(counts)[upper], counts["called"][upper]

    def reported(shift: float) -> np.ndarray:
        least = resolve(*variances, shifts=[shift], **about).least_kinship(jointly)
        return phi[phi >= np.maximum(least, THIRD)]

    told = np.empty(0) if fault else reported(shift)
    degree = np.digitize(told, [THIRD, SECOND, FIRST])
    false = [int((degree == k).sum()) for k in (1, 2, 3)]
    return Told(
        float(1 - called.mean()),
        fault,
        shift,
        float(np.nanmedian(phi)),
        len(reported(0.0)),
        *false,
        len(phi),
    )
