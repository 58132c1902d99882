"""Which groups of samples are tested for Hardy-Weinberg proportions, and for what.

The test finds genotyping errors where samples mate at random. Structure, inbreeding, selfing and
haploid calls give every site too few heterozygotes; copies of one genotype, families and hybrids
give many sites too many. So a deficit counts only within labelled populations, and neither counts
in a group whose typical sites depart themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

#: Fewest samples of a labelled population: with fewer, no deficit reaches the default limit 1e-6
#: (20 samples, half of them homozygous for either allele: 1.3e-6).
LEAST_SAMPLES = 20
#: Sites that judge a group: autosomal, of at least this minor allele frequency in it, and at most
#: this many at equal steps. With fewer than LEAST_SITES of them the group is not judged.
COMMON, MOST_SITES, LEAST_SITES = 0.05, 50_000, 20
#: A group departs if the inbreeding coefficients of a fifth of its sites are more than this many
#: standard errors, 1 / sqrt(samples), from 0 in one direction: twice what random mating gives.
FIFTH, DEPARTS = 0.2, 2 * 0.8416
#: Label of the samples without a population, or of one with fewer than LEAST_SAMPLES.
REST = "NA"
UNLABELLED = f"no population label, or one with fewer than {LEAST_SAMPLES} samples in their cohort"
FEW = (
    "too few heterozygotes at many sites, as with inbreeding, selfing, haploid samples or several "
    "populations under one label"
)
MANY = "too many heterozygotes at many sites, as with clones, copies, large families or hybrids"

POLYPLOID = "samples are polyploid: double reduction changes the proportions"


@dataclass(frozen=True)
class HweGroup:
    """Samples that are tested together (a row of `qc/{cohort}.populations.tsv`).

    Attributes
    ----------
    population : str
        Or REST.
    samples, sites : int
        Samples, and sites that judged them.
    inbreeding : float
        1 - observed / expected heterozygotes over these sites; NaN without one.
    tested : {'both', 'excess', 'none'}
        Departures that count: ``excess`` of heterozygotes alone, or ``both`` directions.
    reason : str
        Why not both: UNLABELLED, FEW, MANY or POLYPLOID. Empty for ``both``.
    """

    population: str
    samples: int
    sites: int
    inbreeding: float
    tested: str
    reason: str


def group_samples(populations: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Labels of the groups, REST last, and each sample's group: int64 (n,)."""
    labels = pd.Series(populations, dtype=str)
    sizes = labels[labels != "NA"].value_counts()
    large = sorted(sizes.index[sizes >= LEAST_SAMPLES])
    number = {label: k for k, label in enumerate(large)}
    group = labels.map(number).fillna(len(large)).to_numpy(np.int64)
    rest = bool((group == len(large)).any())
    return [*large, *[REST] * rest], group


def judge_groups(
    rows: np.ndarray, autosomal: np.ndarray, group: np.ndarray, labels: list[str]
) -> list[HweGroup]:
    """What is tested in each group.

    Parameters
    ----------
    rows : uint8 array, (n_sites, n_bytes)
        Genotypes as in a .bed.
    autosomal : int array
        Numbers of the autosomal sites.
    group : int64 array, (n_samples,)
        Group of each sample, -1: none.
    """
    from .genotypes_cpu import count_by_group

    m = min(len(autosomal), MOST_SITES)
    chosen = autosomal[np.arange(m) * len(autosomal) // max(m, 1)]
    counts = count_by_group(np.ascontiguousarray(rows[chosen]), group, len(labels))
    sizes = np.bincount(group[group >= 0], minlength=len(labels))
    return [
        _judge(label, int(sizes[k]), counts[:, k, :3].astype(np.float64))
        for k, label in enumerate(labels)
    ]


def untested_groups(group: np.ndarray, labels: list[str]) -> list[HweGroup]:
    """The groups of polyploids, none of which is tested; as `judge_groups` takes them."""
    sizes = np.bincount(group[group >= 0], minlength=len(labels)).tolist()
    return [
        HweGroup(label, size, 0, np.nan, "none", POLYPLOID)
        for label, size in zip(labels, sizes, strict=True)
    ]


def _judge(label: str, samples: int, counts: np.ndarray) -> HweGroup:
    n = counts.sum(axis=1)
    p = (counts[:, 1] + 2 * counts[:, 2]) / np.maximum(2 * n, 1)
    common = (np.minimum(p, 1 - p) >= COMMON) & (n > 1)
    n, p, het = n[common], p[common], counts[common, 1]
    expected = 2 * p * (1 - p) * n * 2 * n / (2 * n - 1)  # unbiased
    inbreeding = 1 - het.sum() / expected.sum() if len(n) else np.nan
    tested, reason = ("excess", UNLABELLED) if label == REST else ("both", "")
    if len(n) >= LEAST_SITES:
        errors = (1 - het / expected) * np.sqrt(n)
        low, high = np.quantile(errors, [FIFTH, 1 - FIFTH])
        if low < -DEPARTS:
            tested, reason = "none", MANY
        elif high > DEPARTS and tested == "both":
            tested, reason = "excess", FEW
    return HweGroup(label, samples, len(n), inbreeding, tested, reason)
