"""How `kernels/epistasis/multistage.cu` fits the shared memory of a device.

The form that is fastest where memory suffices comes first; the others take less memory and give
the same records. `docs/devices.md` has their rates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

#: Combinations of a thread that are scored from shared memory together.
CHUNKS = (4, 2, 1)
#: Most chunks of a thread (`stash_chunk` in the kernels).
MOST_CHUNKS = 8
#: For the alignment of the slots, and for barriers.
SPARE_BYTES = 2048


@dataclass(frozen=True)
class SharedNeeds:
    """Bytes of shared memory that the parts of one scan kernel take.

    Attributes
    ----------
    slot : int
        Rows of y and z of one stage.
    stash : int
        Counts of one combination of each thread.
    margins : int
        One set of margins; triples.
    scratch : int
        Partial sums, which may also lie in global memory.
    stages : int
        Slots of the pipeline where memory suffices.
    overlapped : int
        Combinations of a thread that are scored while stages are on their way; 0 if none are.
    resident : int
        Bytes of partial sums where other sums stay in accumulators (RESIDENT_SUMS in the kernels),
        which doubles `stash`; 0 if they cannot.
    """

    slot: int
    stash: int
    margins: int
    scratch: int
    stages: int
    overlapped: int
    resident: int = 0


@dataclass(frozen=True)
class SharedLayout:
    """One way to lay out the shared memory, with the bytes that it takes."""

    stages: int
    chunk: int
    margin_sets: int
    stash_in_slots: int
    scratch_shared: int
    shared_bytes: int
    resident: int = 0

    @property
    def defines(self) -> dict[str, int]:
        """What the kernel is compiled with."""
        return {
            "STAGES": self.stages,
            "CHUNK": self.chunk,
            "MARGIN_SETS": self.margin_sets,
            "STASH_IN_SLOTS": self.stash_in_slots,
            "SCRATCH_SHARED": self.scratch_shared,
            "RESIDENT_SUMS": self.resident,
        }


def forms(needs: SharedNeeds) -> Iterator[SharedLayout]:
    """All forms, the fastest first; the last one takes least."""
    fewer = min(2, needs.stages)
    if needs.resident:
        resident = replace(needs, stash=2 * needs.stash, scratch=needs.resident)
        for chunk in CHUNKS[:2]:
            yield replace(_layout(resident, needs.stages, chunk, 2, 0, 1), resident=1)
    for scratch in (1, 0):
        yield _layout(needs, needs.stages, CHUNKS[0], 2, 0, scratch)
    if needs.overlapped:  # no slot is free while a thread block scores
        for chunk in CHUNKS:
            if needs.overlapped <= MOST_CHUNKS * chunk:
                yield _layout(needs, fewer, chunk, 1, 0, 0)
        return
    for stages in sorted({needs.stages, fewer}, reverse=True):
        yield _layout(needs, stages, CHUNKS[0], 2, 1, 0)
    yield _layout(needs, fewer, CHUNKS[1], 2, 1, 0)


def choose_layout(needs: SharedNeeds, shared_bytes: int) -> SharedLayout:
    """The fastest form that fits; if none does, the smallest one, which does not fit."""
    for form in forms(needs):
        if form.shared_bytes <= shared_bytes:
            break
    return form


def _layout(
    needs: SharedNeeds, stages: int, chunk: int, sets: int, in_slots: int, scratch: int
) -> SharedLayout:
    slots, stash = stages * needs.slot, chunk * needs.stash
    # pairs lay the counts over all slots, triples over the last one, which they fill
    counted = max(slots, stash) if in_slots else slots + stash
    inside = int(scratch or not needs.scratch)
    shared = SPARE_BYTES + counted + sets * needs.margins + inside * needs.scratch
    return SharedLayout(stages, chunk, sets, in_slots, inside, shared)
