"""Li and Stephens' recurrence over all haplotypes of a panel, on the CPU.

    forward    f_m(k) = (f_{m-1}(k) stay_m + jump_m) e_m(k)
    backward   b_m(k) = b_{m+1}(k) e_{m+1}(k) stay + jump
    posterior  f_m(k) b_m(k) / sum over k

e is 1 where haplotype k has the target's allele and mismatch / (1 - mismatch) elsewhere. The two
passes are the same steps in opposite order: a transition, then an emission (Li and Stephens 2003,
Genetics 165:2213).

The same bytes on every processor, from any number of threads: a cell is one fused multiply-add and
one product in float32, both IEEE operations. A sum over haplotypes counts whole units, of which all
states have 2^22 together: adding 2^23 rounds a float32 to a whole number, which its lowest bits are
then, so that a sum is one of integers, in any order. Only haplotypes that match are summed, before
the emission; the others have what is left. A small sum is counted again in finer units.

Haplotypes that do not count (padding, and the target's own) match nothing and are in no sum.
"""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .copying_plan import CHECKPOINT, DOSE_UNITS, UNITS
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

_WORD_ONE = np.uint64(1)
_LOW, _RAISE = 2.0**-64, 2.0**64


@intrinsic
def _lowest(typing_context, word):
    """Number of the lowest one of a uint64 that is not 0."""

    def codegen(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@numba.njit(nogil=True)
def _step_beside(state, row, flip, counted, stay, jump, loss, ahead, product):
    """`step_states` of the backward pass; `product`: posterior by haplotype, up to a common factor.

    `ahead` has the forward states of this site. Returns the units that match and the bits of the
    largest product, which are in the same order as the products.
    """
    matched, largest = np.int32(0), np.int32(0)
    for w in range(row.size):
        word = (row[w] ^ flip) & counted[w]
        for j in range(32):
            k = 32 * w + j
            value = fma(state[k], stay, jump)
            match = (word >> np.uint32(j)) & ONE
            matched += whole_units(value) & -np.int32(match)
            state[k] = value if match else value * loss
            both = ahead[k] * value if (counted[w] >> np.uint32(j)) & ONE else np.float32(0)
            product[k] = both
            largest = max(largest, float_bits(both))
    return matched, largest


@numba.njit(nogil=True)
def _forward(rows, sites, alleles, rho, counted, n_states, losses, kept):
    """The forward pass; every CHECKPOINT-th state goes to `kept` if that has rows.

    Returns the likelihood up to (1 - mismatch) per site, as a float64 and a power of two, and the
    sums of the states after each site.
    """
    state = np.zeros(32 * counted.size, np.float32)
    masses = np.empty(sites.size)
    mass, number, exponent = float(UNITS), 1.0, 0
    for m in range(sites.size):
        if kept.shape[0] and m % CHECKPOINT == 0:
            kept[m // CHECKPOINT] = state
        row, flip = rows[sites[m]], allele_flip(alleles[m])
        stay, jump = next_transition(rho[m], mass, n_states)
        matched = step_states(state, row, flip, counted, stay, jump, losses[m])
        mass = mass_of_states(state, row, flip, counted, losses[m], matched)
        masses[m] = mass
        number *= mass / UNITS
        if number < _LOW:
            number *= _RAISE
            exponent -= 64
    return number, exponent, masses


@numba.njit(nogil=True)
def _refill(m, ahead, block, passed, before):
    """Forward states of a site and of those up to it since a checkpoint, whose states are `ahead`.

    They are those after the emission or, with `before`, in front of it. `passed`: rows, sites,
    alleles, rho, masses, counted, n_states, losses of the forward pass.
    """
    rows, sites, alleles, rho, masses, counted, n_states, losses = passed
    start = m - m % CHECKPOINT
    for i in range(start, m + 1):
        stay, jump = next_transition(rho[i], masses[i - 1] if i else float(UNITS), n_states)
        if before:
            for k in range(ahead.size):
                block[i - start, k] = fma(ahead[k], stay, jump)
        flip = allele_flip(alleles[i])
        step_states(ahead, rows[sites[i]], flip, counted, stay, jump, losses[i])
        if not before:
            block[i - start] = ahead


@numba.njit(nogil=True, cache=True)
def likelihood_loop(rows, sites, alleles, rho, counted, n_states, loss):
    """Likelihood of one haplotype up to (1 - mismatch) per site: float64 and a power of two."""
    nothing = np.empty((0, 32 * counted.size), np.float32)
    losses = np.full(sites.size, loss)
    number, exponent, _ = _forward(rows, sites, alleles, rho, counted, n_states, losses, nothing)
    return number, exponent


@numba.njit(nogil=True)
def _list_large(product, largest, small, states, units):
    """Haplotypes with a posterior above `small`, and their units.

    Returns their number, the units of all haplotypes and those of haplotypes that are not listed.
    """
    scale = power_of_two(np.int32(min(275 - (largest >> 23), 254)))
    total = 0
    for w in range(product.size // 32):
        part = np.int32(0)
        for j in range(32):
            part += whole_units(product[32 * w + j] * scale)
        total += part
    limit = np.int32(total * small)
    count, rest = 0, total
    for w in range(product.size // 32):
        most = np.int32(0)
        for j in range(32):
            most = max(most, whole_units(product[32 * w + j] * scale))
        if most > limit:
            for j in range(32):
                value = whole_units(product[32 * w + j] * scale)
                if value > limit:
                    states[count], units[count] = 32 * w + j, value
                    count += 1
                    rest -= value
    return count, total, rest


@numba.njit(nogil=True)
def _add_carriers(columns, mask, states, units, count, sums):
    """Units of the listed haplotypes that carry the minor allele, by site of 64."""
    for i in range(count):
        word = columns[states[i]] & mask
        while word:
            sums[_lowest(word)] += units[i]
            word &= word - _WORD_ONE


@numba.njit(nogil=True)
def _fill_between(begin, end, panel, sides, lists, out):
    """Allele counts of the sites from `begin` to `end`, between two sites with posteriors.

    `panel`: arguments of `impute_loop`. `lists`: of both sites the haplotypes, their units, sums of
    units and the place in cM; `sides` says which is left and which right.
    """
    if begin >= end:
        return
    columns, minor, flipped, own, n_states, cm = panel
    states, units, sizes, places = lists
    left, right = sides
    sums = np.empty((2, 64), np.int64)
    span = places[right] - places[left]
    for part in range(begin // 64, (end + 63) // 64):
        low, high = max(begin - 64 * part, 0), min(end - 64 * part, 64)
        mask = (~np.uint64(0) >> np.uint64(64 - high + low)) << np.uint64(low)
        sums[:] = 0
        for side in range(min(left, right), max(left, right) + 1):
            _add_carriers(
                columns[part], mask, states[side], units[side], sizes[side, 0], sums[side]
            )
        for j in range(low, high):
            site = 64 * part + j
            carriers = minor[site]
            for k in own:
                carriers -= np.int64((columns[part, k] >> np.uint64(j)) & _WORD_ONE)
            before = (sums[left, j] + sizes[left, 2] * carriers / n_states) / sizes[left, 1]
            after = (sums[right, j] + sizes[right, 2] * carriers / n_states) / sizes[right, 1]
            weight = (cm[site] - places[left]) / span if span > 0 else 0.0
            share = before + weight * (after - before)
            dose = np.int64(np.rint(share * DOSE_UNITS))
            out[site] = np.uint16(DOSE_UNITS - dose if flipped[site] else dose)


@numba.njit(nogil=True)
def _share_that_matches(product, largest, row, flip, counted):
    """Share of the haplotypes that match in the sum of `product`, in whole units: float64."""
    scale = power_of_two(np.int32(min(275 - (largest >> 23), 254)))
    total, matched = 0, 0
    for w in range(row.size):
        word = (row[w] ^ flip) & counted[w]
        part, matching = np.int32(0), np.int32(0)
        for j in range(32):
            value = whole_units(product[32 * w + j] * scale)
            part += value
            matching += value & -np.int32((word >> np.uint32(j)) & ONE)
        total += part
        matched += matching
    return matched / total


@numba.njit(nogil=True, cache=True)
def impute_loop(
    rows, columns, minor, flipped, cm, called, model, counted, own, n_states, bounds, out
):
    """Allele counts of one haplotype at the panel's sites ``bounds[0] <= site < bounds[1]``.

    Parameters
    ----------
    rows : uint32 (n_sites, n_words)
        Alleles by site, bit k % 32 of word k // 32 that of haplotype k.
    columns : uint64 (n_parts, n_padded)
        By haplotype, whether it carries the minor allele at each of 64 sites.
    minor, flipped : int64, bool (n_sites)
        Haplotypes with the minor allele; whether this is REF.
    cm : float64 (n_sites)
        Genetic positions.
    called : (int64, int8) (n_called)
        Sites at which the haplotype is known, rising, and its alleles: of likelihoods, those of the
        states that emit more.
    model : (float64 (n_called), float32 (n_called), float64 (n_called or 0, 2), float64)
        Probability of a new haplotype in front of each of them (1 for the first); the emission of
        a mismatch beside that of a match; of likelihoods, the probability of ALT in a copy of REF
        and in one of ALT, and no rows if alleles are called; posteriors up to the last number are
        shared evenly.
    counted : uint32 (n_words)
        Haplotypes that may be copied.
    own : int64 (n_own)
        Haplotypes of the panel that may not.
    n_states : int
        Number of those that may.
    bounds : (int, int)
    out : uint16 (n_sites)
        Filled between the bounds: the expected number of ALT alleles, in 1 / DOSE_UNITS.
    """
    sites, alleles = called
    rho, losses, chances, small = model
    first, last = bounds
    n_called, padded = sites.size, 32 * counted.size
    # Lists of a site and of the one behind it, by turns.
    states, units = np.empty((2, padded), np.int64), np.empty((2, padded), np.int64)
    sizes, places = np.zeros((2, 3), np.int64), np.zeros(2)
    lists = (states, units, sizes, places)
    panel = (columns, minor, flipped, own, n_states, cm)
    if not n_called:
        sizes[:, 1:] = 1  # every haplotype alike
        _fill_between(first, last, panel, (0, 0), lists, out)
        return
    kept = np.empty(((n_called + CHECKPOINT - 1) // CHECKPOINT, padded), np.float32)
    masses = _forward(rows, sites, alleles, rho, counted, n_states, losses, kept)[2]
    passed = (rows, sites, alleles, rho, masses, counted, n_states, losses)
    block = np.empty((CHECKPOINT, padded), np.float32)
    state, product = np.zeros(padded, np.float32), np.empty(padded, np.float32)
    stay, jump = next_transition(1.0, 1.0, n_states)
    for m in range(n_called - 1, -1, -1):
        if m == n_called - 1 or m % CHECKPOINT == CHECKPOINT - 1:
            _refill(m, kept[m // CHECKPOINT], block, passed, False)
        row, flip = rows[sites[m]], allele_flip(alleles[m])
        matched, largest = _step_beside(
            state, row, flip, counted, stay, jump, losses[m], block[m % CHECKPOINT], product
        )
        mass = mass_of_states(state, row, flip, counted, losses[m], matched)
        stay, jump = next_transition(rho[m], mass, n_states)
        behind = sites[m + 1] if m + 1 < n_called else last
        if m and sites[m - 1] >= last:
            continue  # in the margin behind the window
        if behind < first:
            break  # in the margin before it
        here, there = m & 1, (m + 1 if m + 1 < n_called else m) & 1
        sizes[here] = _list_large(product, largest, small, states[here], units[here])
        places[here] = cm[sites[m]]
        _fill_between(max(sites[m] + 1, first), min(behind, last), panel, (here, there), lists, out)
        if first <= sites[m] < last:
            out[sites[m]] = DOSE_UNITS * alleles[m]
            if chances.shape[0]:
                share = _share_that_matches(product, largest, row, flip, counted)
                share = share if alleles[m] else 1.0 - share
                share = chances[m, 0] + share * (chances[m, 1] - chances[m, 0])
                out[sites[m]] = np.uint16(np.int64(np.rint(share * DOSE_UNITS)))
        if m == 0:
            _fill_between(first, min(sites[0], last), panel, (here, here), lists, out)


@numba.njit(nogil=True, cache=True)
def left_out_loop(rows, called, rho, loss, counted, n_states, bounds, out):
    """Allele counts of one haplotype at each of its called sites, from all its other calls.

    The posterior before the emission of the site: the forward and backward states, each after the
    transition to it.

    Parameters
    ----------
    rows, called, counted, n_states
        As of `impute_loop`.
    rho : float64 (n_called)
    loss : float32
    bounds : (int, int)
        Called sites `bounds[0] <= m < bounds[1]` are results; the others inform them.
    out : uint16 (n_called)
    """
    sites, alleles = called
    n_called, padded = sites.size, 32 * counted.size
    kept = np.empty(((n_called + CHECKPOINT - 1) // CHECKPOINT, padded), np.float32)
    losses = np.full(n_called, loss)
    masses = _forward(rows, sites, alleles, rho, counted, n_states, losses, kept)[2]
    passed = (rows, sites, alleles, rho, masses, counted, n_states, losses)
    block = np.empty((CHECKPOINT, padded), np.float32)
    state, product = np.zeros(padded, np.float32), np.empty(padded, np.float32)
    stay, jump = next_transition(1.0, 1.0, n_states)
    for m in range(n_called - 1, bounds[0] - 1, -1):
        if m == n_called - 1 or m % CHECKPOINT == CHECKPOINT - 1:
            _refill(m, kept[m // CHECKPOINT], block, passed, True)
        row, flip = rows[sites[m]], allele_flip(alleles[m])
        matched, largest = _step_beside(
            state, row, flip, counted, stay, jump, loss, block[m % CHECKPOINT], product
        )
        mass = mass_of_states(state, row, flip, counted, loss, matched)
        stay, jump = next_transition(rho[m], mass, n_states)
        if m < bounds[1]:
            share = _share_that_matches(product, largest, row, flip, counted)
            dose = np.int64(np.rint(share * DOSE_UNITS))
            out[m] = np.uint16(dose if alleles[m] else DOSE_UNITS - dose)


@numba.njit(nogil=True, cache=True)
def turn_rows(rows, flipped, columns):
    """Fill the columns of `impute_loop` from its rows."""
    columns[:] = 0
    for site in range(rows.shape[0]):
        flip = np.uint32(0xFFFFFFFF) if flipped[site] else np.uint32(0)
        part, bit = site // 64, np.uint64(site % 64)
        for w in range(rows.shape[1]):
            word = rows[site, w] ^ flip
            for j in range(32):
                one = np.uint64((word >> np.uint32(j)) & ONE)
                columns[part, 32 * w + j] |= one << bit
