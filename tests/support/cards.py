"""Limits of NVIDIA devices by compute capability.

Source: CUDA C++ Programming Guide, section "Compute Capabilities", table "Technical
Specifications per Compute Capability"; `cuda/__device/arch_traits.h` of NVIDIA's CCCL has the same
numbers. `docs/devices.md` says what runs on each card.
"""

from __future__ import annotations

from dataclasses import dataclass

from popdesic.engine.devices import Device


@dataclass(frozen=True)
class Card:
    """What a multiprocessor of one compute capability has.

    Attributes
    ----------
    capability : int
        Ten times the major number, plus the minor one.
    names : str
        Some cards.
    shared_bytes, shared_of_processor : int
        Most shared memory of a thread block, and of all thread blocks of a multiprocessor; each
        block takes RESERVED_BYTES more, from compute capability 8.0 on.
    threads_of_processor : int
        Most threads that are resident.
    multiprocessors : int
        Of the first of these cards.
    """

    capability: int
    names: str
    shared_bytes: int
    shared_of_processor: int
    threads_of_processor: int
    multiprocessors: int

    def device(self) -> Device:
        """The first of these cards, for plans."""
        name = self.names.split(",")[0]
        return Device(0, name, self.capability, self.multiprocessors, self.shared_bytes, 0)


#: Registers of a multiprocessor and most of a thread, threads of a block: the same on all cards.
REGISTERS, REGISTERS_OF_THREAD, THREADS_OF_BLOCK = 65536, 255, 1024
#: Shared memory that a kernel may declare without asking for more at its launch.
STATIC_BYTES = 48 << 10
CARDS = {
    card.capability: card
    for card in (
        Card(75, "T4, RTX 20", 64 << 10, 64 << 10, 1024, 40),
        Card(80, "A100, A30", 163 << 10, 164 << 10, 2048, 108),
        Card(86, "A10, A40, RTX A6000, RTX 30", 99 << 10, 100 << 10, 1536, 72),
        Card(89, "L4, L40S, RTX 40", 99 << 10, 100 << 10, 1536, 58),
        Card(90, "H100, H200, GH200", 227 << 10, 228 << 10, 2048, 132),
        Card(100, "B200, GB200", 227 << 10, 228 << 10, 2048, 148),
        Card(103, "B300, GB300", 227 << 10, 228 << 10, 2048, 148),
        Card(120, "RTX PRO 6000 Blackwell, RTX 50", 99 << 10, 100 << 10, 1536, 188),
    )
}
