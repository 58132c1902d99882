"""Phase of one sample by sweeps of two haploid copying models, on the CPU.

A sweep takes all heterozygous sites in order. Both haplotypes have a head, the alleles up to the
site, and a tail, those behind it. At a site there are four ways on: which head has ALT, and which
head goes on in which tail. Their weights are the likelihoods of both haplotypes that result; one
is drawn. So a sweep is a Gibbs step over every phase of the sample, for a backward and a forward
pass of both haplotypes.

The start: heterozygous sites are unknown to the backward pass, and only which head has ALT is
drawn.

A missing genotype emits nothing. Both of its alleles are drawn from the head and the tail of their
haplotype, for those who copy from this sample.

States and sums are those of `copying_cpu`, and sums of products those of `states_cpu`.
"""

from __future__ import annotations

import numba
import numpy as np

from .copying_plan import UNITS
from .states_cpu import (
    allele_flip,
    mass_of_states,
    move_states,
    next_transition,
    shared_mass,
    step_states,
)

_LOW_WORD = np.uint64(0xFFFFFFFF)
_FACTORS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_HALF = np.uint64(32)
#: What is drawn with a random number: a way on, or an allele of the first or second haplotype.
_WAY, _ALLELES = 0, (1, 2)
#: Kinds of sites: both haplotypes have the same allele, heterozygous, missing.
_HET, _MISSING = 1, 2


@numba.njit(nogil=True)
def philox_words(counter, key):
    """Two of the four words of Philox4x32-10 (Salmon et al. 2011, SC11), as one uint64.

    `counter`: four uint32, the last two as the high and low half of a uint64 each; `key`: uint64.
    """
    a, b = counter[0] & _LOW_WORD, counter[0] >> _HALF
    c, d = counter[1] & _LOW_WORD, counter[1] >> _HALF
    low, high = key & _LOW_WORD, key >> _HALF
    for _ in range(10):
        one, other = _FACTORS[0] * a, _FACTORS[1] * c
        a, c = (other >> _HALF) ^ b ^ low, (one >> _HALF) ^ d ^ high
        b, d = other & _LOW_WORD, one & _LOW_WORD
        low, high = (low + _WEYL[0]) & _LOW_WORD, (high + _WEYL[1]) & _LOW_WORD
    return (b << _HALF) | a


@numba.njit(nogil=True)
def uniform_number(lot, site, iteration, chain, purpose):
    """A number from 0 to below 1 that belongs to these: float64."""
    counter = (
        np.uint64(site) | (np.uint64(iteration) << _HALF),
        np.uint64(chain) | (np.uint64(purpose) << _HALF),
    )
    return (philox_words(counter, lot) >> np.uint64(11)) * 2.0**-53


@numba.njit(nogil=True)
def _draw(heads, tails, row, counted, loss, start, u):
    """One of the four ways on: head 0 has ALT or not, the tails stay; the same, they cross."""
    loss = np.float64(loss)
    a, b = shared_mass(heads[0], tails[0], row, counted)
    c, d = shared_mass(heads[1], tails[1], row, counted)
    w0 = (a + loss * b) * (d + loss * c)
    w1 = (b + loss * a) * (c + loss * d)
    w2, w3 = 0.0, 0.0
    if not start:
        a, b = shared_mass(heads[0], tails[1], row, counted)
        c, d = shared_mass(heads[1], tails[0], row, counted)
        w2 = (a + loss * b) * (d + loss * c)
        w3 = (b + loss * a) * (c + loss * d)
    u *= w0 + w1 + w2 + w3
    if u < w0:
        return 0
    if u < w0 + w1:
        return 1
    return 2 if u < w0 + w1 + w2 else 3


@numba.njit(nogil=True)
def _draw_allele(head, tail, row, counted, loss, u):
    """The allele of a haplotype where the genotype is missing."""
    a, b = shared_mass(head, tail, row, counted)
    loss = np.float64(loss)
    alt, ref = a + loss * b, b + loss * a
    return 1 if u * (alt + ref) < alt else 0


@numba.njit(nogil=True)
def _back_through(bounds, state, change, calls, model, kept):
    """The backward pass through a block; states in front of what is drawn go to `kept`.

    `change`: stay and jump in front of the block's last site. Returns those in front of the site
    before the block. An allele of -1 is not known.
    """
    rows, sites, alleles, kinds = calls
    rho, counted, n_states, loss = model
    low, high = bounds
    stay, jump = change
    place = 0
    for m in range(low, high):
        place += kinds[m] > 0
    for m in range(high - 1, low - 1, -1):
        if kinds[m]:
            move_states(state, stay, jump)
            stay, jump = np.float32(1), np.float32(0)
            if kept.shape[0]:
                place -= 1
                kept[place] = state
        mass = float(UNITS)
        if alleles[m] >= 0 and kinds[m] != _MISSING:
            row, flip = rows[sites[m]], allele_flip(alleles[m])
            matched = step_states(state, row, flip, counted, stay, jump, loss)
            mass = mass_of_states(state, row, flip, counted, loss, matched)
        stay, jump = next_transition(rho[m], mass, n_states)
    return stay, jump


@numba.njit(nogil=True)
def _forward_through(bounds, states, masses, calls, model, kept, draws):
    """The forward pass of both haplotypes through a block, with draws.

    Returns whether the tails are crossed behind it, as `draws` says of the site before it.
    """
    rows, sites, alleles, kinds = calls
    rho, counted, n_states, loss = model
    low, high = bounds
    lot, numbers, iteration, chain, start, crossed = draws
    place = 0
    for m in range(low, high):
        row = rows[sites[m]]
        changes = (
            next_transition(rho[m], masses[0], n_states),
            next_transition(rho[m], masses[1], n_states),
        )
        if kinds[m]:
            for h in range(2):
                move_states(states[h], changes[h][0], changes[h][1])
            changes = ((np.float32(1), np.float32(0)), (np.float32(1), np.float32(0)))
            tails = (kept[crossed, place], kept[1 - crossed, place])
            place += 1
            if kinds[m] == _MISSING:
                for h in range(2):
                    u = uniform_number(lot, numbers[m], iteration, chain, _ALLELES[h])
                    alleles[h, m] = _draw_allele(states[h], tails[h], row, counted, loss, u)
                masses[:] = UNITS
                continue
            u = uniform_number(lot, numbers[m], iteration, chain, _WAY)
            way = _draw((states[0], states[1]), tails, row, counted, loss, start, u)
            crossed ^= way >> 1
            alleles[0, m] = 1 - (way & 1)
            alleles[1, m] = way & 1
        for h in range(2):
            flip = allele_flip(alleles[h, m])
            matched = step_states(states[h], row, flip, counted, changes[h][0], changes[h][1], loss)
            masses[h] = mass_of_states(states[h], row, flip, counted, loss, matched)
    return crossed


@numba.njit(nogil=True, cache=True)
def phase_loop(
    rows, sites, numbers, genotypes, rho, counted, n_states, loss, draws, block, alleles, drawn
):
    """Draw the phase of one sample by sweeps, of which the first can be a start.

    Parameters
    ----------
    rows : uint32 (n_sites, n_words)
        Alleles of the panel by site, bit k % 32 of word k // 32 that of haplotype k.
    sites, numbers : int64 (n_called)
        Rows of the called sites, and the numbers of the sites in the panel, for random numbers.
    genotypes : int8 (n_called)
        Number of ALT alleles, 0 to 2; -1: missing, and both alleles are drawn.
    rho : float64 (n_called)
        Probability of a new haplotype in front of each site, 1 for the first.
    counted : uint32 (n_words)
        Haplotypes that may be copied.
    n_states : int
        Number of those.
    loss : float32
        Emission of a mismatch beside that of a match.
    draws : (uint64, int64, int64)
        Key of the sample's random numbers, and the numbers of the chain and of the first sweep.
    block : int
        Sites of a block (`phasing_plan.block_length`).
    alleles : int8 (2, n_called)
        Those of both haplotypes before the first sweep, -1 at heterozygous sites for a start; then
        those after the last.
    drawn : int8 (n_iterations, n_het)
        Filled: the allele of the first haplotype at heterozygous sites after each sweep.
    """
    lot, chain, first = draws
    n_called, padded = sites.size, 32 * counted.size
    n_blocks = (n_called + block - 1) // block
    kinds = np.zeros(n_called, np.int8)
    for m in range(n_called):
        kinds[m] = _MISSING if genotypes[m] < 0 else (_HET if genotypes[m] == 1 else 0)
    most = 0
    for b in range(n_blocks):
        most = max(most, (kinds[b * block : (b + 1) * block] > 0).sum())
    kept = np.empty((2, most, padded), np.float32)
    nothing = np.empty((0, padded), np.float32)
    ends = np.zeros((n_blocks, 2, padded), np.float32)
    changes = np.empty((n_blocks, 2, 2), np.float32)
    model = (rho, counted, n_states, loss)
    states, masses = np.empty((2, padded), np.float32), np.empty(2)
    for iteration in range(drawn.shape[0]):
        tails = alleles.copy()
        start = False
        for m in range(n_called):
            start |= kinds[m] == _HET and alleles[0, m] < 0
        for h in range(2):
            calls = (rows, sites, tails[h], kinds)
            states[h] = 0
            change = next_transition(1.0, 1.0, n_states)
            for b in range(n_blocks - 1, -1, -1):
                ends[b, h] = states[h]
                changes[b, h, 0], changes[b, h, 1] = change
                if b:
                    bounds = (b * block, min((b + 1) * block, n_called))
                    change = _back_through(bounds, states[h], change, calls, model, nothing)
        states[:] = 0
        masses[:] = UNITS
        crossed = 0
        for b in range(n_blocks):
            bounds = (b * block, min((b + 1) * block, n_called))
            for h in range(2):
                calls = (rows, sites, tails[h], kinds)
                change = (changes[b, h, 0], changes[b, h, 1])
                _back_through(bounds, ends[b, h], change, calls, model, kept[h])
            both = (rows, sites, alleles, kinds)
            given = (lot, numbers, first + iteration, chain, start, crossed)
            crossed = _forward_through(bounds, states, masses, both, model, kept, given)
        place = 0
        for m in range(n_called):
            if kinds[m] == _HET:
                drawn[iteration, place] = alleles[0, m]
                place += 1
