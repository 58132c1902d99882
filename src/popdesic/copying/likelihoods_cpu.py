"""Alleles of one haplotype drawn from genotype likelihoods, on the CPU.

Given the other haplotype's alleles, a genotype likelihood is a likelihood of each allele, and with
the mismatch one of each allele that is copied. The larger one is a match of the steps of
`states_cpu`, the other a mismatch with a loss of the site's own.

A backward pass has all alleles unknown. The forward pass draws each by the head, which has the
alleles before it, and the tail: so the row is drawn by its likelihood, without drawing what it
copies.
"""

from __future__ import annotations

import numba
import numpy as np

from .copying_plan import DOSE_UNITS, UNITS
from .phasing_cpu import uniform_number
from .states_cpu import (
    allele_flip,
    mass_of_states,
    move_states,
    next_transition,
    shared_mass,
    step_states,
)

_STAY, _JUMP = np.float32(1), np.float32(0)


@numba.njit(nogil=True)
def _tails_through(bounds, state, change, given, kept):
    """The backward pass through a block; states in front of each site go to `kept` if it has rows.

    `change`: stay and jump in front of the block's last site. Returns those in front of the site
    before the block.
    """
    rows, sites, favored, losses, rho, counted, n_states = given
    low, high = bounds
    stay, jump = change
    for m in range(high - 1, low - 1, -1):
        if kept.shape[0]:
            move_states(state, stay, jump)
            stay, jump = _STAY, _JUMP
            kept[m - low] = state
        row, flip = rows[sites[m]], allele_flip(favored[m])
        matched = step_states(state, row, flip, counted, stay, jump, losses[m])
        mass = mass_of_states(state, row, flip, counted, losses[m], matched)
        stay, jump = next_transition(rho[m], mass, n_states)
    return stay, jump


@numba.njit(nogil=True, cache=True)
def draw_loop(rows, called, emitted, rho, counted, n_states, loss, draws, block, alleles):
    """Draw the alleles of one haplotype, all together, by their likelihood.

    Parameters
    ----------
    rows : uint32 (n_sites, n_words)
        As of `copying_cpu.impute_loop`, like `counted` and `n_states`.
    called : (int64, int64) (n_called)
        Rows of the sites with likelihoods, and the numbers of the sites in the panel, for random
        numbers.
    emitted : (int8 (n_called), float32 (n_called), float64 (n_called, 2))
        The allele whose copies emit more; the emission of the other beside it; the likelihoods of
        both alleles.
    rho : float64 (n_called)
        Probability of a new haplotype in front of each site, 1 for the first.
    loss : float32
        Emission of a mismatch beside that of a match, of a known allele.
    draws : (uint64, int64, int64)
        Key of the sample's random numbers, the number of the iteration, and the purpose.
    block : int
        Sites of a block (`phasing_plan.block_length`).
    alleles : int8 (n_called)
        Filled.
    """
    sites, numbers = called
    favored, losses, likelihoods = emitted
    lot, iteration, purpose = draws
    n_called, padded = sites.size, 32 * counted.size
    n_blocks = (n_called + block - 1) // block
    given = (rows, sites, favored, losses, rho, counted, n_states)
    nothing = np.empty((0, padded), np.float32)
    kept = np.empty((min(block, n_called), padded), np.float32)
    ends = np.zeros((n_blocks, padded), np.float32)
    changes = np.empty((n_blocks, 2), np.float32)
    state = np.zeros(padded, np.float32)
    change = next_transition(1.0, 1.0, n_states)
    for b in range(n_blocks - 1, -1, -1):
        ends[b] = state
        changes[b, 0], changes[b, 1] = change
        if b:
            bounds = (b * block, min((b + 1) * block, n_called))
            change = _tails_through(bounds, state, change, given, nothing)
    state[:] = 0
    mass, odds = float(UNITS), np.float64(loss)
    for b in range(n_blocks):
        low, high = b * block, min((b + 1) * block, n_called)
        change = (changes[b, 0], changes[b, 1])
        _tails_through((low, high), ends[b], change, given, kept)
        for m in range(low, high):
            row = rows[sites[m]]
            stay, jump = next_transition(rho[m], mass, n_states)
            move_states(state, stay, jump)
            with_alt, with_ref = shared_mass(state, kept[m - low], row, counted)
            alt = likelihoods[m, 1] * (with_alt + odds * with_ref)
            ref = likelihoods[m, 0] * (with_ref + odds * with_alt)
            u = uniform_number(lot, numbers[m], iteration, 0, purpose)
            alleles[m] = 1 if u * (alt + ref) < alt else 0
            flip = allele_flip(alleles[m])
            matched = step_states(state, row, flip, counted, _STAY, _JUMP, loss)
            mass = mass_of_states(state, row, flip, counted, loss, matched)


@numba.njit(nogil=True, cache=True)
def join_loop(doses, bounds, link, out):
    """Allele counts of a sample's two haplotypes from those of some iterations.

    At a site they are the two numbers that have the mean of the sums and the mean of the products.
    Which haplotype has the larger one: at two heterozygous sites that follow each other, both or
    one of them have changed sides if the products of the differences say so, summed.

    Parameters
    ----------
    doses : uint16 (2, n_iterations, n_sites)
        In 1 / DOSE_UNITS, as `out`.
    bounds : (int, int)
        Sites that are filled.
    link : (int, int)
        The heterozygous site before them, -1 if there is none, and which haplotype has ALT there.
    out : uint16 (2, bounds[1] - bounds[0])

    Returns
    -------
    (int, int)
        As `link`, of the last heterozygous site.
    """
    first, last = bounds
    at, side = link
    n = doses.shape[1]
    for site in range(first, last):
        total, both, straight = np.int64(0), np.int64(0), np.int64(0)
        for i in range(n):
            a, b = np.int64(doses[0, i, site]), np.int64(doses[1, i, site])
            total += a + b
            both += a * b
            if at >= 0:
                straight += (a - b) * (np.int64(doses[0, i, at]) - np.int64(doses[1, i, at]))
        mean, product = total / n, both / n
        spread = np.sqrt(max(mean * mean - 4.0 * product, 0.0))
        less = np.int64(np.rint(0.5 * (mean - spread)))
        more = min(np.int64(np.rint(mean)) - less, np.int64(DOSE_UNITS))
        here = side if straight >= 0 else 1 - side
        out[here, site - first] = np.uint16(more)
        out[1 - here, site - first] = np.uint16(less)
        if 2 * more >= DOSE_UNITS and 2 * less < DOSE_UNITS:
            at, side = site, here
    return at, side
