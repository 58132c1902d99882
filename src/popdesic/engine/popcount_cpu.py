"""The number of ones of a word, for compiled loops."""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic


@intrinsic
def popcount(typing_context, word):
    """Ones of a uint64, as int64: one instruction where the CPU has it."""

    def codegen(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), codegen
