"""Local ancestry: which of the user's labels each haplotype has along the genome.

Each haplotype copies from the labelled haplotypes, and the posteriors are summed by label. These
say too little alone, as lineages of a source often join those of another before their own.
So they are what a second model sees: labels along both haplotypes of a sample, which change at
recombinations since the admixture, and swap at phase switches. Neighbouring sites say the same, as
they are in one copied segment. So a site counts by the probability that a segment begins there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .copying import Haplotypes, recombination
from .copying_plan import cut_windows
from .local_ancestry_plan import (
    ADDED_DRAWS,
    ADDED_EVENTS,
    FIRST_GENERATIONS,
    FIRST_SWITCHES,
    GENERATIONS,
    LEAST_SHARE,
    ROUNDS,
    SWITCHES,
)
from .painting import nearest_lengths


class Sources(NamedTuple):
    """Labelled haplotypes of one chromosome.

    Attributes
    ----------
    panel : Haplotypes
        Of the labelled samples alone.
    labels : int64 array, (n_haplotypes,)
        Label of each, from 0; each label occurs.
    ne, mismatch : float
    """

    panel: Haplotypes
    labels: np.ndarray
    ne: float
    mismatch: float


class Mixed(NamedTuple):
    """Local ancestry of one sample.

    Attributes
    ----------
    pairs : list of float64 array, (n_sites, n_labels, n_labels)
        Probability of the labels of both haplotypes (of one: marginals over the second), by
        chromosome.
    proportions : float64 array, (n_labels,)
        Mean over both haplotypes and the length of the map.
    generations : float
        Since the admixture: draws of a label a morgan of one haplotype.
    switch_rate : float
        Phase switches per heterozygous site.
    """

    pairs: list[np.ndarray]
    proportions: np.ndarray
    generations: float
    switch_rate: float


def label_posteriors(
    sources: Sources, alleles: np.ndarray, own: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Likelihood of each label at each site of one haplotype, and what its sites count.

    Parameters
    ----------
    alleles : int8 (n_sites,)
        -1: missing.
    own : int64 array, optional
        Haplotypes of the sources that are not copied.

    Returns
    -------
    float64 (n_sites, n_labels)
        Posterior over prior, to the power of the probability that a copied segment begins; 1
        where the allele is missing.
    """
    from .painting_cpu import label_loop

    panel = sources.panel
    n_labels = int(sources.labels.max()) + 1
    masked = np.empty(0, np.int64) if own is None else own[own >= 0]
    kept = np.ones(panel.n_haplotypes, bool)
    kept[masked] = False
    n_states = int(kept.sum())
    prior = np.bincount(sources.labels[kept], minlength=n_labels) / n_states
    padded = np.zeros(32 * panel.rows.shape[1], np.int64)
    padded[: panel.n_haplotypes] = sources.labels
    called = np.flatnonzero(alleles >= 0)
    found = np.empty((len(called), n_labels), np.float32)
    loss = np.float32(sources.mismatch / (1 - sources.mismatch))
    for window in cut_windows(panel.cm):
        begin, end = np.searchsorted(called, [window.start, window.stop])
        core = np.searchsorted(called, [window.first, window.last])
        sites = called[begin:end]
        if core[0] == core[1]:
            continue
        out = np.empty((len(sites), n_labels), np.float32)
        label_loop(
            panel.rows,
            (sites, alleles[sites]),
            (recombination(panel.cm[sites], sources.ne, n_states), loss),
            panel.counted(masked),
            n_states,
            tuple((core - begin).tolist()),
            padded,
            out,
        )
        found[core[0] : core[1]] = out[core[0] - begin : core[1] - begin]
    begins = recombination(panel.cm[called], sources.ne, n_states)
    shares = found / np.where(prior > 0, prior, 1) + LEAST_SHARE
    likelihood = np.ones((len(alleles), n_labels))
    likelihood[called] = shares ** begins[:, None]
    return likelihood


def mix_sample(
    sources: Sequence[Sources],
    alleles: Sequence[np.ndarray],
    own: Sequence[np.ndarray | None] | None = None,
) -> Mixed:
    """Local ancestry of one sample over all chromosomes.

    A result depends on the sources and the sample's own alleles alone.

    Parameters
    ----------
    sources : list of Sources
        A chromosome each.
    alleles : list of int8 array, (1 or 2, n_sites)
        The sample's haplotypes; -1: missing.
    own : list of int64 array, optional
        Haplotypes of the sources that are the sample's own.

    Returns
    -------
    Mixed
    """
    from .local_ancestry_cpu import pair_loop

    own = [None] * len(sources) if own is None else own
    n_labels = max(int(one.labels.max()) + 1 for one in sources)
    seen, hets, maps = [], [], []
    for source, rows, masked in zip(sources, alleles, own, strict=True):
        both = [label_posteriors(source, row, masked) for row in rows]
        both += [np.ones_like(both[0])] * (2 - len(both))
        seen.append(both)
        het = np.zeros(rows.shape[1], bool)
        if len(rows) == 2:
            het = (rows >= 0).all(axis=0) & (rows[0] != rows[1])
        hets.append(het)
        maps.append(source.panel.cm)
    morgans = sum(float(cm[-1] - cm[0]) for cm in maps) * 0.01
    mu = np.full(n_labels, 1 / n_labels)
    generations, switches = FIRST_GENERATIONS, FIRST_SWITCHES
    pairs = [np.empty((len(cm), n_labels, n_labels)) for cm in maps]
    for _ in range(ROUNDS):
        events = np.zeros(n_labels + 2)
        for cm, (first, second), het, found in zip(maps, seen, hets, pairs, strict=True):
            redrawn = recombination(cm, generations / 4, 1)
            pair_loop(first, second, redrawn, np.where(het, switches, 0.0), mu, found, events)
        drawn = events[:n_labels] + ADDED_DRAWS
        mu = drawn / drawn.sum()
        date = (events[n_labels] + ADDED_EVENTS) / (2 * morgans + ADDED_EVENTS / FIRST_GENERATIONS)
        generations = float(np.clip(date, *GENERATIONS))
        switches = float(np.clip(events[-1] / max(sum(het.sum() for het in hets), 1), *SWITCHES))
    total = np.zeros(n_labels)
    for cm, rows, found in zip(maps, alleles, pairs, strict=True):
        lengths = nearest_lengths(cm, np.arange(len(cm))) if cm[-1] > cm[0] else np.ones(len(cm))
        for row in range(len(rows)):
            total += lengths @ found.sum(axis=2 - row)
    return Mixed(pairs, total / total.sum(), generations, switches)


def by_haplotype(pairs: np.ndarray) -> np.ndarray:
    """Probabilities of labels of both haplotypes, float32 (2, n_sites, n_labels), from pairs."""
    return np.stack([pairs.sum(axis=2), pairs.sum(axis=1)]).astype(np.float32)
