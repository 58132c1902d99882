"""Painting of a haplotype by those of a panel, on the CPU.

Posteriors of the recurrence of `copying_cpu`, of which this sums two things by the haplotype that
is copied:

    length    sum over sites of P(copied at m = k) w_m
    segments  sum over sites of P(copied at m = k, copied at m - 1 != k)

w_m is the stretch of the map that is nearer to site m than to others. A segment counts where the
haplotype changes, not where the model draws the same one again:

    P(k at m, not k at m - 1) = P(k at m) jump (1 - f_{m-1}(k) / mass) / (f_{m-1}(k) stay + jump)

A posterior is whole units, as in `copying_cpu`; a length is rounded to multiples of 2^-36 cM, and
sums of these are exact.
"""

from __future__ import annotations

import numba
import numpy as np

from .copying_plan import CHECKPOINT, UNITS
from .painting_plan import WHOLE_STEPS
from .states_cpu import (
    ONE,
    allele_flip,
    float_bits,
    fma,
    mass_of_states,
    next_transition,
    power_of_two,
    step_states,
    whole_units,
)


@numba.njit(nogil=True)
def _states_between(rows, called, model, counted, n_states):
    """States before each CHECKPOINT-th called site, and sums of the states after each site."""
    sites, alleles = called
    rho, loss = model
    state = np.zeros(32 * counted.size, np.float32)
    kept = np.empty(((sites.size + CHECKPOINT - 1) // CHECKPOINT, state.size), np.float32)
    masses = np.empty(sites.size)
    mass = float(UNITS)
    for m in range(sites.size):
        if m % CHECKPOINT == 0:
            kept[m // CHECKPOINT] = state
        row, flip = rows[sites[m]], allele_flip(alleles[m])
        stay, jump = next_transition(rho[m], mass, n_states)
        matched = step_states(state, row, flip, counted, stay, jump, loss)
        mass = mass_of_states(state, row, flip, counted, loss, matched)
        masses[m] = mass
    return kept, masses


@numba.njit(nogil=True)
def _fill_block(m, block, kept, masses, rows, called, model, counted, n_states):
    """States of the forward pass from the checkpoint of site m: before it, and after each site."""
    sites, alleles = called
    rho, loss = model
    start = m - m % CHECKPOINT
    block[0] = kept[m // CHECKPOINT]
    for i in range(start, m + 1):
        stay, jump = next_transition(rho[i], masses[i - 1] if i else float(UNITS), n_states)
        block[i - start + 1] = block[i - start]
        flip = allele_flip(alleles[i])
        step_states(block[i - start + 1], rows[sites[i]], flip, counted, stay, jump, loss)


@numba.njit(nogil=True)
def _weigh(state, ahead, counted, stay, jump, units):
    """Posterior of a site in whole units; returns their sum.

    `state` is the backward pass behind the site, `stay` and `jump` the transition to it.
    """
    largest = np.int32(0)
    product = np.empty(state.size, np.float32)
    for w in range(counted.size):
        for j in range(32):
            k = 32 * w + j
            both = ahead[k] * fma(state[k], stay, jump)
            product[k] = both if (counted[w] >> np.uint32(j)) & ONE else np.float32(0)
            largest = max(largest, float_bits(product[k]))
    scale = power_of_two(np.int32(min(275 - (largest >> 23), 254)))
    total = 0
    for w in range(counted.size):
        part = np.int32(0)
        for j in range(32):
            units[32 * w + j] = whole_units(product[32 * w + j] * scale)
            part += units[32 * w + j]
        total += part
    return total


@numba.njit(nogil=True)
def _step_back(m, state, rows, called, model, counted, n_states, stay, jump):
    """Take the backward pass over a site, from the one behind it; returns the next transition."""
    sites, alleles = called
    rho, loss = model
    row, flip = rows[sites[m]], allele_flip(alleles[m])
    matched = step_states(state, row, flip, counted, stay, jump, loss)
    mass = mass_of_states(state, row, flip, counted, loss, matched)
    return next_transition(rho[m], mass, n_states)


@numba.njit(nogil=True, inline="always")
def _rounded(number):
    return (number + WHOLE_STEPS) - WHOLE_STEPS


@numba.njit(nogil=True, cache=True)
def paint_loop(rows, called, model, counted, n_states, bounds, weights, stretches, lengths, counts):
    """Add lengths and segments of one haplotype, by the haplotype that it copies.

    Parameters
    ----------
    rows : uint32 (n_sites, n_words)
        As of `copying_cpu.impute_loop`, like `counted` and `n_states`.
    called : (int64, int8) (n_called)
        Sites at which the haplotype is known, rising, and its alleles.
    model : (float64 (n_called), float32)
        Probability of a new haplotype in front of each of them (1 for the first); the emission of
        a mismatch beside that of a match.
    bounds : (int, int)
        Called sites `bounds[0] <= m < bounds[1]` are results; the others inform them.
    weights : float64 (n_called)
        Length of each, in centimorgans.
    stretches : int64 (n_called)
        Row of `lengths` that each is added to.
    lengths : float64 (n_stretches, 32 n_words)
    counts : float64 (32 n_words)
        Expected number of segments.
    """
    sites, _ = called
    rho, _ = model
    kept, masses = _states_between(rows, called, model, counted, n_states)
    padded = 32 * counted.size
    block = np.empty((CHECKPOINT + 1, padded), np.float32)
    state, units = np.zeros(padded, np.float32), np.empty(padded, np.int32)
    stay, jump = next_transition(1.0, 1.0, n_states)
    for m in range(sites.size - 1, bounds[0] - 1, -1):
        here = m % CHECKPOINT
        if m == sites.size - 1 or here == CHECKPOINT - 1:
            _fill_block(m, block, kept, masses, rows, called, model, counted, n_states)
        if m < bounds[1]:
            share = 1 / _weigh(state, block[here + 1], counted, stay, jump, units)
            before = masses[m - 1] if m else float(UNITS)
            onward, fresh = next_transition(rho[m], before, n_states)
            length, inverse = weights[m] * share, np.float32(1 / before)
            to, ahead = lengths[stretches[m]], block[here]
            for k in range(padded):
                to[k] += _rounded(units[k] * length)
                other = max(np.float32(1) - ahead[k] * inverse, np.float32(0))
                changed = fresh * other / fma(ahead[k], onward, fresh)
                counts[k] += _rounded(units[k] * (share * changed))
        stay, jump = _step_back(m, state, rows, called, model, counted, n_states, stay, jump)


@numba.njit(nogil=True, cache=True)
def label_loop(rows, called, model, counted, n_states, bounds, labels, out):
    """Posterior of the label of what one haplotype copies, at its called sites.

    Parameters
    ----------
    rows, called, model, counted, n_states, bounds
        As of `paint_loop`.
    labels : int64 (32 n_words)
        Label of each haplotype of the panel, from 0; 0 also in the padding.
    out : float32 (n_called, n_labels)
    """
    sites, _ = called
    kept, masses = _states_between(rows, called, model, counted, n_states)
    padded = 32 * counted.size
    block = np.empty((CHECKPOINT + 1, padded), np.float32)
    state, units = np.zeros(padded, np.float32), np.empty(padded, np.int32)
    sums = np.empty(out.shape[1], np.int64)
    stay, jump = next_transition(1.0, 1.0, n_states)
    for m in range(sites.size - 1, bounds[0] - 1, -1):
        here = m % CHECKPOINT
        if m == sites.size - 1 or here == CHECKPOINT - 1:
            _fill_block(m, block, kept, masses, rows, called, model, counted, n_states)
        if m < bounds[1]:
            total = _weigh(state, block[here + 1], counted, stay, jump, units)
            sums[:] = 0
            for k in range(padded):
                sums[labels[k]] += units[k]
            for label in range(sums.size):
                out[m, label] = np.float32(sums[label] / total)
        stay, jump = _step_back(m, state, rows, called, model, counted, n_states, stay, jump)
