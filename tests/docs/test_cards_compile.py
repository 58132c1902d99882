"""On every card, each kernel that plans launch compiles and fits; no GPU is needed."""

from __future__ import annotations

import pytest
from card_variants import USUAL_THREADS, Compiled, variants_of
from compiling import Usage, compile_kernel, require_compiler

from popdesic.engine.gpu.cards import (
    CARDS,
    REGISTERS,
    REGISTERS_OF_THREAD,
    RESERVED_BYTES,
    STATIC_BYTES,
    THREADS_OF_BLOCK,
    Card,
)

VARIANTS = [(card, one) for card in CARDS.values() for one in variants_of(card)]
#: Registers are given to warps in such runs.
REGISTER_RUN = 256


def arch_of(card: Card) -> str:
    """What the kernels are compiled for (compile.py)."""
    return "90a" if card.capability == 90 else str(card.capability)


def is_typical(card: Card, one: Compiled) -> bool:
    """Whether the variant is compiled without --slow: the largest of each kind on its own card."""
    kind, *rest = one.label.split()
    return True


def check_fits(card: Card, one: Compiled, name: str, usage: Usage) -> None:
    threads = one.threads.get(name, USUAL_THREADS)
    asked, resident = one.shared.get(name, 0), one.resident.get(name, 1)
    of_warp = -(-usage.registers * 32 // REGISTER_RUN) * REGISTER_RUN
    assert usage.registers <= REGISTERS_OF_THREAD
    assert threads <= THREADS_OF_BLOCK
    assert resident * threads <= card.threads_of_processor
    assert resident * threads // 32 * of_warp <= REGISTERS
    assert usage.shared <= STATIC_BYTES
    assert usage.shared + asked <= card.shared_bytes
    reserved = RESERVED_BYTES if card.capability >= 80 else 0
    assert resident * (usage.shared + asked + reserved) <= card.shared_of_processor


@pytest.mark.parametrize(
    ("card", "one"),
    [
        pytest.param(
            *(card, one),
            id=f"{card.capability} {one.label}",
            marks=[] if is_typical(card, one) else pytest.mark.slow,
        )
        for card, one in VARIANTS
    ],
)
def test_kernels_compile_for_a_card_and_fit_it(card, one):
    require_compiler(arch_of(card))
    found = compile_kernel(one.file, arch_of(card), one.defines)
    assert set(one.threads) <= set(found)
    for name, usage in found.items():
        check_fits(card, one, name, usage)
