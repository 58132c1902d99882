"""Steps of the states of a haplotype, which imputation and phasing share, on the CPU.

A transition, an emission and a sum over haplotypes; `copying_cpu` says why they give the same
bytes everywhere.
"""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .copying_plan import UNITS

#: Adding this rounds a float32 from 0 to below 2^23 to a whole number; its bits, as an integer.
_ROUND, _ROUND_BITS = np.float32(1 << 23), np.int32(0x4B000000)
#: A sum below this is counted again in units finer by 2^6, up to 2^18.
_COARSE, _FINER, _FINEST = np.int32(1 << 16), 6, 18
ONE = np.uint32(1)


@intrinsic
def fma(typing_context, factor, other, addend):
    """``factor * other + addend``, rounded once (IEEE 754; CUDA's __fmaf_rn)."""

    def codegen(context, builder, signature, arguments):
        kind = ir.FloatType()
        function = builder.module.declare_intrinsic(
            "llvm.fma", [kind], ir.FunctionType(kind, [kind] * 3)
        )
        return builder.call(function, arguments)

    return types.float32(types.float32, types.float32, types.float32), codegen


@intrinsic
def float_bits(typing_context, number):
    """The bits of a float32 as an int32."""

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), codegen


@intrinsic
def power_of_two(typing_context, exponent):
    """The float32 with this biased exponent: ``2.0 ** (exponent - 127)``."""

    def codegen(context, builder, signature, arguments):
        shifted = builder.shl(arguments[0], ir.Constant(ir.IntType(32), 23))
        return builder.bitcast(shifted, ir.FloatType())

    return types.float32(types.int32), codegen


@numba.njit(nogil=True, inline="always")
def whole_units(number):
    return float_bits(number + _ROUND) - _ROUND_BITS


@numba.njit(nogil=True)
def step_states(state, row, flip, counted, stay, jump, loss):
    """A transition and an emission of all states, in place; units of those that match."""
    matched = np.int32(0)
    for w in range(row.size):
        word = (row[w] ^ flip) & counted[w]
        for j in range(32):
            k = 32 * w + j
            value = fma(state[k], stay, jump)
            match = (word >> np.uint32(j)) & ONE
            matched += whole_units(value) & -np.int32(match)
            state[k] = value if match else value * loss
    return matched


@numba.njit(nogil=True)
def mass_of_states(state, row, flip, counted, loss, matched):
    """Sum of all states after the emission, in units: float64."""
    shift = 0
    while matched < _COARSE and shift < _FINEST:
        shift += _FINER
        scale = np.float32(1 << shift)
        matched = np.int32(0)
        for w in range(row.size):
            word = (row[w] ^ flip) & counted[w]
            if word:
                for j in range(32):
                    match = (word >> np.uint32(j)) & ONE
                    matched += whole_units(state[32 * w + j] * scale) & -np.int32(match)
    mass = matched / float(1 << shift)
    return mass + np.float64(loss) * max(UNITS - mass, 0.0)


@numba.njit(nogil=True, inline="always")
def next_transition(rho, mass, n_states):
    """(stay, jump) after a site whose states sum to `mass` units."""
    return np.float32((1.0 - rho) * UNITS / mass), np.float32(rho * UNITS / n_states)


@numba.njit(nogil=True, inline="always")
def allele_flip(allele):
    return np.uint32(0) if allele else np.uint32(0xFFFFFFFF)


@numba.njit(nogil=True)
def move_states(state, stay, jump):
    """A transition without an emission, in place."""
    for k in range(state.size):
        state[k] = fma(state[k], stay, jump)


@numba.njit(nogil=True)
def shared_mass(ahead, behind, row, counted):
    """Sums of products over the haplotypes with ALT and over those with REF: two float64.

    Both count whole units of 2^-22 of their largest power of two below, so that they are the same
    in any order.
    """
    most_alt, most_ref = np.int32(0), np.int32(0)
    for w in range(row.size):
        alt, ref = row[w] & counted[w], ~row[w] & counted[w]
        for j in range(32):
            bits = float_bits(ahead[32 * w + j] * behind[32 * w + j])
            most_alt = max(most_alt, bits & -np.int32((alt >> np.uint32(j)) & ONE))
            most_ref = max(most_ref, bits & -np.int32((ref >> np.uint32(j)) & ONE))
    scale_alt = power_of_two(np.int32(min(275 - (most_alt >> 23), 254)))
    scale_ref = power_of_two(np.int32(min(275 - (most_ref >> 23), 254)))
    with_alt, with_ref = 0, 0
    for w in range(row.size):
        alt, ref = row[w] & counted[w], ~row[w] & counted[w]
        part_alt, part_ref = np.int32(0), np.int32(0)
        for j in range(32):
            product = ahead[32 * w + j] * behind[32 * w + j]
            one = np.int32((alt >> np.uint32(j)) & ONE)
            other = np.int32((ref >> np.uint32(j)) & ONE)
            units = whole_units(product * (scale_alt if one else scale_ref))
            part_alt += units & -one
            part_ref += units & -other
        with_alt += part_alt
        with_ref += part_ref
    return with_alt / np.float64(scale_alt), with_ref / np.float64(scale_ref)
