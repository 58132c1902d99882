"""On every card, each kernel that plans launch compiles and fits; no GPU is needed."""

from __future__ import annotations

import functools
import os

import pytest
from support.card_variants import USUAL_THREADS, Compiled, variants_of
from support.cards import (
    CARDS,
    REGISTERS,
    REGISTERS_OF_THREAD,
    STATIC_BYTES,
    THREADS_OF_BLOCK,
    Card,
)
from support.compiling import (
    LIBRARY_VARIABLE,
    Usage,
    compile_kernel,
    compile_source,
    library_version,
    require_compiler,
)

from popdesic.engine.minplus_plan import RESERVED_BYTES

VARIANTS = [(card, one) for card in CARDS.values() for one in variants_of(card)]
#: Variants that are compiled without --slow: each of the usual ones for one card, by turns, those
#: of all cards for the oldest, and the scans (order, states, ...) by each core on the card that has
#: no better one. --slow compiles every variant for every card.
USUAL = (
    *("scan mma 3 2 k2 1", "scan mma 3 3 k2 1", "minplus int32", "search 2", "sums 1", "umap"),
    "ibd 128",
    "expected kinship",
    *("popc BLOCKS_PER_SM=2", "mma B_TILES=2 LOCKSTEP=16", "wgmma CLUSTER=2 LOCKSTEP=2"),
)
OF_ALL_CARDS = (
    *("pack", "rare", "minplus float32", "minplus float64", "minplus int64"),
    *("copying 5008 copy_forward", "copying 5008 copy_backward"),
    *("scores 2 0 1 k2", "scores 3 1 2 interaction", "scores 2 1 1 residuals"),
)
CORES_OF = {75: ("popc",), 86: ("mma",), 90: ("deep", "middle", "wgmma")}
SCANS = (
    *(
        "2 2 interaction 1",
        "2 2 residuals cells 1",
        "2 3 residuals cells 1",
        "2 3 k2 1",
        "2 2 k2 table 1",
    ),
    *("3 2 k2 1", "3 2 interaction cells 1", "3 2 k2 2", "3 3 k2 1", "3 3 interaction cells 1"),
    *("3 2 k2_excess 1", "3 3 k2_excess 1"),
    *("3 2/3 k2 1", "3 2/3 k2 2", "2 2/3 k2 1", "2 2/3 interaction cells accumulators 1"),
)
#: Registers are given to warps in such runs.
REGISTER_RUN = 256


def arch_of(card: Card) -> str:
    """What the kernels are compiled for (compile.py)."""
    return "90a" if card.capability == 90 else str(card.capability)


def is_usual(card: Card, one: Compiled) -> bool:
    """Whether a variant is a usual one and this is the card that it is compiled for."""
    if one.label.endswith(("False 0", "False 1", "1 True 0")):
        return False
    for number, start in enumerate(USUAL):
        if one.label.startswith(start):
            return card is cards_of(start)[number % len(cards_of(start))]
    return False


@functools.cache
def cards_of(start: str) -> tuple[Card, ...]:
    """Cards that launch a variant whose label has this start."""
    return tuple(dict.fromkeys(card for card, one in VARIANTS if one.label.startswith(start)))


def is_typical(card: Card, one: Compiled) -> bool:
    """Whether a variant is compiled without --slow."""
    kind, *form = one.label.split(maxsplit=2)
    if kind == "scan" and form[0] in CORES_OF.get(card.capability, ()):
        return form[1] in SCANS
    if card.capability == 75 and one.label in OF_ALL_CARDS:
        return True
    return is_usual(card, one)


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


def check(card: Card, one: Compiled) -> None:
    """Compile a variant for a card, and compare what its kernels take with the card's limits."""
    found = compile_kernel(one.file, arch_of(card), one.defines)
    assert set(one.threads) <= set(found)
    for name, usage in found.items():
        check_fits(card, one, name, usage)
        assert not one.file.startswith("maps/") or not usage.spilled


@pytest.mark.parametrize(
    ("card", "one"),
    [
        pytest.param(card, one, id=f"{card.capability} {one.label}")
        for card, one in VARIANTS
        if is_typical(card, one)
    ],
)
def test_typical_kernels_compile_for_a_card_and_fit_it(card, one):
    require_compiler(arch_of(card))
    check(card, one)


@pytest.mark.slow
@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: str(card.capability))
def test_all_kernels_compile_for_a_card_and_fit_it(card):
    require_compiler(arch_of(card))
    for other, one in VARIANTS:
        if other is card and not is_typical(card, one):
            check(card, one)


def test_a_given_library_compiles_for_all_cards():
    """CUDA 12: its NVRTC is named by an environment variable, and all tests here compile by it."""
    if not os.environ.get(LIBRARY_VARIABLE):
        pytest.skip(f"{LIBRARY_VARIABLE} names no NVRTC")
    major, minor = library_version()
    wanted = f"__CUDACC_VER_MAJOR__ == {major} && __CUDACC_VER_MINOR__ == {minor}"
    source = f'#if !({wanted})\n#error "another compiler"\n#endif\n'
    source += 'extern "C" __global__ void nothing() {}\n'
    for card in CARDS.values():
        assert set(compile_source(source, arch_of(card))) == {"nothing"}


def test_one_scan_of_each_core_is_typical():
    for capability, cores in CORES_OF.items():
        typical = [
            one.label
            for card, one in VARIANTS
            if is_typical(card, one) and card is CARDS[capability]
        ]
        for core in cores:
            assert any(label.startswith(f"scan {core} 3 2") for label in typical)
