"""Bits of a word that a mask selects (PEXT), for compiled loops."""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_HAS_PEXT = bool(binding.get_host_cpu_features().get("bmi2"))
_I64 = ir.IntType(64)


@intrinsic
def _pext(typing_context, word, mask):
    """The bits of `word` selected by `mask`, packed into the low bits (PEXT)."""

    def codegen(context, builder, signature, arguments):
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_I64, [_I64, _I64]), "llvm.x86.bmi.pext.64"
        )
        return builder.call(function, arguments)

    return types.uint64(types.uint64, types.uint64), codegen


@numba.njit(nogil=True)
def extract_by_loop(word, mask):
    """`extract_bits` on a CPU that has no such instruction."""
    out, bit = np.uint64(0), np.uint64(0)
    while mask != np.uint64(0):
        lowest = mask & (~mask + np.uint64(1))
        if word & lowest:
            out |= np.uint64(1) << bit
        bit += np.uint64(1)
        mask ^= lowest
    return out


@numba.njit(nogil=True)
def _extract_by_instruction(word, mask):
    return _pext(word, mask)


#: The bits of a uint64 that a mask selects, packed into the low bits.
extract_bits = _extract_by_instruction if _HAS_PEXT else extract_by_loop
