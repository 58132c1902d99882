"""Cohorts of known ancestry, without and with sites that one of them was genotyped wrongly at.

Unlike those of `landscapes`: cohorts of unequal size and ancestry, admixture along a gradient,
families, populations with cohorts of their own, inbreeding, and calls missing by site.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

#: Ways to be wrong, each at a share of the sites of one cohort.
KINDS = ("depth", "array", "strand", "build", "dropout")
DESIGNS = ("one", "admixed", "two", "own", "families", "inbred", "gradient", "linked")


@dataclass
class Cohorts:
    """Genotypes int8 (n_sites, n_samples), -1 missing; cohorts in order; what was planted."""

    genotypes: np.ndarray
    sizes: dict[str, int]
    sites: pd.DataFrame
    founders: list[str]
    cohort: str = ""
    planted: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def read(self, first: int, last: int) -> np.ndarray:
        return self.genotypes[first:last]

    def columns(self, cohort: str) -> slice:
        first = 0
        for name, size in self.sizes.items():
            if name == cohort:
                return slice(first, first + size)
            first += size
        raise KeyError(cohort)


def draw_cohorts(
    design: str, seed: int, n_sites: int = 8_000, sizes: list[int] | None = None
) -> Cohorts:
    """A study without artefacts: founders `c00`, `c01`, ..., the last third are newcomers."""
    rng = np.random.default_rng(seed)
    if sizes is None:
        count = int(rng.integers(2, 7))
        sizes = np.exp(rng.uniform(np.log(30), np.log(250), count)).astype(int).tolist()
    count = len(sizes)
    ancestral = rng.beta(0.8, 0.8, n_sites) * 0.96 + 0.02
    drifts = {"one": [0.0], "families": [0.0], "inbred": [0.01], "linked": [0.0]}
    drift = drifts.get(design, rng.uniform(0.01, 0.12, 3).tolist())
    if design == "own":
        drift = rng.uniform(0.005, 0.1, count).tolist()
    af = np.stack([_drifted(rng, ancestral, f) for f in drift])
    parts = []
    for k, n in enumerate(sizes):
        shares = _shares(rng, design, n, len(drift), k)
        parts.append(_draw(rng, shares, af, design))
    genotypes = np.concatenate(parts, axis=1)
    names = [f"c{k:02d}" for k in range(count)]
    founders = names[: max(1, count - count // 3)]
    in_founders = genotypes[:, : sum(sizes[: len(founders)])]
    rate = in_founders.mean(axis=1) / 2
    kept = np.minimum(rate, 1 - rate) >= 0.01
    genotypes = genotypes[kept]
    _hide(rng, genotypes, sizes)
    m = int(kept.sum())
    alleles = np.array(["AC", "AG", "AT", "CG", "CT", "GT"])[rng.integers(0, 6, m)]
    sites = pd.DataFrame(
        {
            "chrom": np.sort(rng.integers(1, 23, m)).astype(str),
            "pos": 1 + np.arange(m) * 1000,
            "id": ".",
            "ref": [a[0] for a in alleles],
            "alt": [a[1] for a in alleles],
        }
    )
    return Cohorts(genotypes, dict(zip(names, sizes, strict=True)), sites, founders)


def plant(study: Cohorts, kind: str, share: float, seed: int, newcomer: bool) -> Cohorts:
    """Spoil a share of the sites of a founder cohort, or of a newcomer where there is one."""
    rng = np.random.default_rng(seed)
    names = list(study.sizes)
    later = [name for name in names if name not in study.founders]
    cohort = str(rng.choice(later if newcomer and later else study.founders))
    m = len(study.genotypes)
    chosen = np.sort(rng.choice(m, max(int(share * m), 1), replace=False))
    own = study.genotypes[chosen, study.columns(cohort)].copy()
    called = own >= 0
    if kind == "depth":  # few reads: one of two alleles is seen at half to all heterozygotes
        lost = (own == 1) & (rng.random(own.shape) < rng.uniform(0.5, 1.0, (len(chosen), 1)))
        own[lost] = np.where(rng.random(int(lost.sum())) < 0.7, 0, 2)
    elif kind == "array":  # a probe that reads one allele as the other
        towards = np.where(rng.random((len(chosen), 1)) < 0.5, 0, 1)
        rate = rng.uniform(0.2, 0.6, (len(chosen), 1))
        for _ in range(2):
            turned = called & (rng.random(own.shape) < rate)
            own += np.where(turned & (towards == 1) & (own < 2), 1, 0).astype(np.int8)
            own -= np.where(turned & (towards == 0) & (own > 0), 1, 0).astype(np.int8)
    elif kind == "strand":
        own = np.where(called, 2 - own, own)
    elif kind == "build":  # genotypes of another site
        other = rng.choice(m, len(chosen))
        own = study.genotypes[other, study.columns(cohort)].copy()
    elif kind == "dropout":  # an allele that does not amplify: no call, or a homozygote
        rate = rng.uniform(0.3, 0.8, (len(chosen), 1))
        lost = rng.random(own.shape) < rate
        own[lost & (own == 1)] = 0
        own[lost & (own == 2) & (rng.random(own.shape) < 0.7)] = -1
    study.genotypes[chosen, study.columns(cohort)] = own
    study.cohort, study.planted = cohort, chosen
    return study


def _drifted(rng: np.random.Generator, af: np.ndarray, f: float) -> np.ndarray:
    if not f:
        return af
    scale = (1 - f) / f
    return np.clip(rng.beta(scale * af, scale * (1 - af)), 1e-4, 1 - 1e-4)


def _shares(rng, design: str, n: int, k: int, cohort: int) -> np.ndarray:
    """Ancestry of each sample: (n, k)."""
    if design == "own":
        return np.eye(k)[np.full(n, cohort)]
    if design == "admixed":
        return rng.dirichlet(rng.uniform(0.3, 4, k), n)
    if design == "two":  # two cohorts share a population, others have their own or both
        first = [0, 0, 1, 2][cohort % 4]
        return np.eye(k)[np.full(n, first)]
    if design == "gradient":
        place = rng.beta(*rng.uniform(0.7, 3, 2), n)
        return np.column_stack([place, 1 - place, np.zeros((n, k - 2))])
    return np.ones((n, 1))


def _draw(rng, shares: np.ndarray, af: np.ndarray, design: str) -> np.ndarray:
    n, m = len(shares), af.shape[1]
    if design == "linked":
        return _copied(rng, n, af[0])
    expected = (shares @ af).T
    haplotypes = [(rng.random((m, n)) < expected).astype(np.int8) for _ in range(2)]
    if design == "families":
        for first in range(0, n - 3, 8):  # four unrelated, then two sibs of the first two
            for child in (first + 2, first + 3):
                for which, parent in enumerate((first, first + 1)):
                    pick = rng.random(m) < 0.5
                    both = haplotypes[0][:, parent], haplotypes[1][:, parent]
                    haplotypes[which][:, child] = np.where(pick, *both)
    if design == "inbred":
        level = rng.uniform(0, 0.15, n)
        same = rng.random((m, n)) < level
        haplotypes[1] = np.where(same, haplotypes[0], haplotypes[1])
    return haplotypes[0] + haplotypes[1]


def _copied(rng, n: int, af: np.ndarray) -> np.ndarray:
    """Mosaics of 200 haplotypes that are the same for all cohorts: neighbours are in LD."""
    m = len(af)
    pool = (np.random.default_rng(m).random((m, 200)) < af[:, None]).astype(np.int8)
    pool = pool[:, np.random.default_rng(m + 1).integers(0, 200, 200)]
    total = np.zeros((m, n), np.int8)
    for _ in range(2):
        jump = rng.random((m, n)) < 0.02
        jump[0] = True
        source = np.where(jump, rng.integers(0, 200, (m, n)), 0)
        last = np.maximum.accumulate(np.where(jump, np.arange(m)[:, None], 0), axis=0)
        total += pool[np.arange(m)[:, None], np.take_along_axis(source, last, axis=0)]
    return total


def _hide(rng, genotypes: np.ndarray, sizes: list[int]) -> None:
    """Missing calls: some sites are hard for all, some cohorts miss more, heterozygotes most."""
    m = len(genotypes)
    hard = rng.gamma(rng.uniform(0.5, 3), 1, m)
    hard /= hard.mean()
    first = 0
    for n in sizes:
        part = genotypes[:, first : first + n]
        rate = np.minimum(hard * np.exp(rng.uniform(np.log(0.001), np.log(0.02))), 0.2)
        part[rng.random(part.shape) < rate[:, None] * np.where(part == 1, 1.4, 0.8)] = -1
        first += n
