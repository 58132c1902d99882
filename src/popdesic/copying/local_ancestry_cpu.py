"""Labels of both haplotypes of a sample along the genome, on the CPU.

A hidden Markov model of ordered pairs of labels. Between two sites, in this order:

- with probability s_m the haplotypes swap their labels, as behind a phase switch;
- with probability r_m each haplotype draws a new label from the proportions mu.

Expected numbers of these events are those of the forward-backward algorithm (Baum et al. 1970).
Sums are in a fixed order.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True)
def _redraw(pairs, r, mu, out):
    """New labels of the first haplotype, then of the second; `out`: after both, and after one."""
    n = mu.size
    both, one = out
    for b in range(n):
        total = 0.0
        for a in range(n):
            total += pairs[a, b]
        for a in range(n):
            one[a, b] = (1 - r) * pairs[a, b] + r * mu[a] * total
    for a in range(n):
        total = 0.0
        for b in range(n):
            total += one[a, b]
        for b in range(n):
            both[a, b] = (1 - r) * one[a, b] + r * mu[b] * total


@numba.njit(nogil=True)
def _swap(pairs, s, out):
    for a in range(pairs.shape[0]):
        for b in range(pairs.shape[0]):
            out[a, b] = (1 - s) * pairs[a, b] + s * pairs[b, a]


@numba.njit(nogil=True)
def _scale(pairs):
    total = 0.0
    for a in range(pairs.shape[0]):
        for b in range(pairs.shape[0]):
            total += pairs[a, b]
    for a in range(pairs.shape[0]):
        for b in range(pairs.shape[0]):
            pairs[a, b] /= total
    return total


@numba.njit(nogil=True, cache=True)
def pair_loop(first, second, redrawn, swapped, mu, posterior, events):
    """Forward and backward pass over one chromosome.

    Parameters
    ----------
    first, second : float64 (n_sites, n_labels)
        How probable what was seen of each haplotype is with each label, up to a factor.
    redrawn : float64 (n_sites)
        r of each site; that of the first is not read.
    swapped : float64 (n_sites)
        s of each site, likewise.
    mu : float64 (n_labels)
    posterior : float64 (n_sites, n_labels, n_labels)
        Filled: probability of each pair.
    events : float64 (n_labels + 2)
        Added to: expected draws of each label, those at the first site counted; expected draws
        behind the first site; expected swaps.
    """
    n_sites, n = first.shape
    ahead, one, turned = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    for m in range(n_sites):
        if m:
            _swap(posterior[m - 1], swapped[m], turned)
            _redraw(turned, redrawn[m], mu, (ahead, one))
        for a in range(n):
            for b in range(n):
                before = ahead[a, b] if m else mu[a] * mu[b]
                posterior[m, a, b] = before * first[m, a] * second[m, b]
        _scale(posterior[m])
    behind = np.ones((n, n))
    seen, second_open, both_open = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    for m in range(n_sites - 1, -1, -1):
        for a in range(n):
            for b in range(n):
                seen[a, b] = behind[a, b] * first[m, a] * second[m, b]
                posterior[m, a, b] *= behind[a, b]
        _scale(posterior[m])
        if m == 0:
            break
        r, s = redrawn[m], swapped[m]
        # What is seen from here on, before the second haplotype draws, and before the first does.
        for a in range(n):
            total = 0.0
            for b in range(n):
                total += mu[b] * seen[a, b]
            for b in range(n):
                second_open[a, b] = (1 - r) * seen[a, b] + r * total
        for b in range(n):
            total = 0.0
            for a in range(n):
                total += mu[a] * second_open[a, b]
            for a in range(n):
                both_open[a, b] = (1 - r) * second_open[a, b] + r * total
        _swap(posterior[m - 1], s, turned)
        _redraw(turned, r, mu, (ahead, one))
        whole = 0.0
        for a in range(n):
            for b in range(n):
                whole += ahead[a, b] * seen[a, b]
        for b in range(n):
            total = 0.0
            for a in range(n):
                total += turned[a, b]
            for a in range(n):
                drawn = r * mu[a] * total * second_open[a, b] / whole
                events[a] += drawn
                events[n] += drawn
        for a in range(n):
            total = 0.0
            for b in range(n):
                total += one[a, b]
            for b in range(n):
                drawn = r * mu[b] * total * seen[a, b] / whole
                events[b] += drawn
                events[n] += drawn
        for a in range(n):
            for b in range(n):
                events[n + 1] += s * posterior[m - 1, b, a] * both_open[a, b] / whole
        _swap(both_open, s, behind)
        _scale(behind)
    for a in range(n):
        for b in range(n):
            events[a] += posterior[0, a, b]
            events[b] += posterior[0, a, b]
