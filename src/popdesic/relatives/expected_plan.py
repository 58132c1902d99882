"""Launches and memory of kinships beside expected genotypes; no CuPy."""

from __future__ import annotations

from dataclasses import dataclass

from ..engine.devices import Device
from ..engine.layout import KernelSource, divide_up
from ..engine.needs import expected_bytes
from .expected import MOST_KINSHIP, MOST_SITES, RESIDUAL_BITS, SPREAD, SQUARE_BITS

#: People a side of a tile of pairs; sites of a stage, and stages in shared memory.
PAIR_SIDE, PAIR_DEPTH, PAIR_STAGES = 64, 64, 3
EXPECTED = KernelSource.of(
    "relatives/expected", PAIR_SIDE=PAIR_SIDE, PAIR_DEPTH=PAIR_DEPTH, PAIR_STAGES=PAIR_STAGES
)
#: Threads of the kernels: persons and rows of a tile of genotypes; of products; of pairs.
EXPECT_BLOCK, PRODUCT_THREADS, PAIR_THREADS = (32, 8), 128, 256
#: Sites and people of a tile of genotypes.
TILE_SITES, TILE_PEOPLE = 64, 32
#: Bytes of a row of a stage, and of all stages.
PITCH = PAIR_DEPTH + 16
SHARED_BYTES = PAIR_STAGES * 2 * 2 * PAIR_SIDE * PITCH
#: Compute capability of `mma.sync` int8, 16 x 8 x 32, and of asynchronous copies.
LEAST_CAPABILITY = 80
#: Pairs that are listed without asking how many there are.
CLOSE_ROOM = 1 << 20


def kinship_defines() -> tuple[tuple[str, int], ...]:
    """What the kernels are compiled with, besides the layout."""
    numbers = ("SPREAD", SPREAD), ("SQUARE_BITS", SQUARE_BITS), ("MOST_KINSHIP", MOST_KINSHIP)
    return (("RESIDUAL_BITS", RESIDUAL_BITS), *numbers)


@dataclass(frozen=True)
class PaddedSizes:
    """Padded sizes: whole tiles of people, whole stages of sites."""

    n_padded: int
    row_bytes: int

    @classmethod
    def of(cls, n: int, n_sites: int) -> PaddedSizes:
        people = divide_up(n, PAIR_SIDE) * PAIR_SIDE
        return cls(people, divide_up(max(n_sites, 1), PAIR_DEPTH) * PAIR_DEPTH)

    @property
    def tiles(self) -> int:
        """Tiles of people a side."""
        return self.n_padded // PAIR_SIDE

    @property
    def grid(self) -> tuple[int, int]:
        """Thread blocks of all tiles of pairs; those of the lower triangle do nothing."""
        return self.tiles, self.tiles

    def expect_grid(self, n_sites: int) -> tuple[int, int]:
        """Thread blocks of a chunk of sites."""
        return divide_up(self.n_padded, TILE_PEOPLE), divide_up(n_sites, TILE_SITES)


def fits_expected(n: int, n_sites: int, device: Device, free_bytes: int) -> bool:
    """Whether a device can do it: its instructions and memory, the limits of the numbers."""
    enough = expected_bytes(n, n_sites, context=0) <= free_bytes
    able = device.has(LEAST_CAPABILITY) and device.shared_bytes >= SHARED_BYTES
    return able and enough and n_sites <= MOST_SITES
