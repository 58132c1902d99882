"""Identity by descent of two haploid samples, slowly: the model of `ibd.haploid`, word for word."""

from __future__ import annotations

import itertools

import numpy as np

IBD, NONE = 0, 1


def emissions(one, two, af, error) -> np.ndarray:
    """Probability of the alleles read of two samples in each state, float64 (n_sites, 2)."""
    out = np.ones((len(af), 2))
    for site, (x, y, alt) in enumerate(zip(one, two, af, strict=True)):
        if x < 0 or y < 0:
            continue
        frequency = {0: 1 - alt, 1: alt}

        def read(allele, true):
            return 1 - error if allele == true else error

        out[site, IBD] = sum(frequency[a] * read(x, a) * read(y, a) for a in (0, 1))
        out[site, NONE] = sum(
            frequency[a] * frequency[b] * read(x, a) * read(y, b) for a in (0, 1) for b in (0, 1)
        )
    return out


def transitions(steps, share, age) -> np.ndarray:
    """From each state to each, before each site, (n_sites, 2, 2)."""
    drawn = np.array([share, 1 - share])
    same = np.exp(-age * np.asarray(steps))[:, None, None]
    return same * np.eye(2) + (1 - same) * drawn


def by_all_paths(emitted, steps, share, age):
    """Marginals (n, 2), of pairs of neighbours (n, 2, 2), log likelihood, the best path."""
    n, moves = len(steps), transitions(steps, share, age)
    marginal, joint, total, best = np.zeros((n, 2)), np.zeros((n, 2, 2)), 0.0, (-1.0, ())
    for path in itertools.product((IBD, NONE), repeat=n):
        weight = 1.0
        for site, state in enumerate(path):
            before = path[site - 1] if site else IBD  # the first step is infinite
            weight *= moves[site, before, state] * emitted[site, state]
        total += weight
        best = max(best, (weight, path), key=lambda pair: pair[0])
        for site, state in enumerate(path):
            marginal[site, state] += weight
            if site:
                joint[site, path[site - 1], state] += weight
    return marginal / total, joint / total, np.log(total), np.array(best[1])


def by_logarithms(emitted, steps, share, age):
    """The same by the forward, backward and Viterbi recurrences, in logarithms."""
    n = len(steps)
    with np.errstate(divide="ignore"):
        moves, seen = np.log(transitions(steps, share, age)), np.log(emitted)
    forward, backward = np.zeros((n, 2)), np.zeros((n, 2))
    highest, back = np.zeros((n, 2)), np.zeros((n, 2), int)
    for site in range(n):
        before, top = (forward[site - 1], highest[site - 1]) if site else (np.log([0.5, 0.5]),) * 2
        for state in (IBD, NONE):
            into = moves[site, :, state]
            forward[site, state] = np.logaddexp(*(before + into)) + seen[site, state]
            back[site, state] = np.argmax(top + into)
            highest[site, state] = np.max(top + into) + seen[site, state]
    for site in range(n - 2, -1, -1):
        for state in (IBD, NONE):
            behind = moves[site + 1, state] + seen[site + 1] + backward[site + 1]
            backward[site, state] = np.logaddexp(*behind)
    total = np.logaddexp(*forward[-1])
    marginal, joint = np.exp(forward + backward - total), np.zeros((n, 2, 2))
    for site in range(1, n):
        behind = seen[site] + backward[site] - total
        joint[site] = np.exp(forward[site - 1][:, None] + moves[site] + behind)
    path = np.zeros(n, int)
    path[-1] = np.argmax(highest[-1])
    for site in range(n - 1, 0, -1):
        path[site - 1] = back[site, path[site]]
    return marginal, joint, total, path


def fit(states, one, two, af, steps, error, most=np.inf, iterations=100):
    """(share of sites, generations, log10 likelihood ratio, iterations, changes), IBD by site."""
    emitted = emissions(one, two, af, error)
    share, age, settled = 0.5, 1.0, False
    for iteration in range(1, iterations + 1):
        marginal, joint, total, path = states(emitted, steps, share, age)
        moves, found = transitions(steps, share, age), marginal[:, IBD].mean()
        changes = expected = 0.0
        for site in range(1, len(steps)):
            if np.isfinite(steps[site]):
                changes += joint[site, IBD, NONE] + joint[site, NONE, IBD]
                for state, other in ((IBD, NONE), (NONE, IBD)):
                    expected += marginal[site - 1, state] * moves[site, state, other]
        if settled or iteration == iterations:
            break
        new = np.clip(found, 1e-5, 1 - 1e-5)
        older = max(min(age * changes / expected, most), 1e-5) if expected else age
        settled = abs(new - share) < 1e-3 and (
            abs(older - age) < 1e-2 or abs(older - age) / older < 1e-3
        )
        share, age = new, older
    lod = (total - np.log(emitted[:, NONE]).sum()) / np.log(10)
    return (found, age, lod, iteration, changes), path == IBD
