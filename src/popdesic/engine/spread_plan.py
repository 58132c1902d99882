"""How a symmetric matrix is spread over several GPUs: who owns which panels, and what each updates.

Panels are the blocks of samples that a closure allows as intermediate nodes one after another.
They are dealt to the devices there and back (0 1 2 2 1 0 0 1 ...), so that each device has as many
tiles of the upper triangle, to within a panel. A device stores the rows of its panels. Columns have
the order of the devices: first those of the panels of device 0, then of device 1, each in the order
of the matrix. So what one device knows of a panel lies side by side.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from .minplus import closure_panel
from .minplus_plan import BOUND_TILE, padded

#: Buffers of a panel: as it was, and two of it closed, of which one is in use while the next comes.
PANEL_BUFFERS = 3


@dataclass(frozen=True)
class SpreadPlan:
    """A matrix of n samples, in whole tiles, on some devices.

    Attributes
    ----------
    n : int
        Rows, a multiple of BOUND_TILE.
    panel : int
        Rows of a panel, a multiple of BOUND_TILE; the last panel may have fewer.
    devices : int
        At most as many as there are panels.
    """

    n: int
    panel: int
    devices: int

    @classmethod
    def of(cls, n: int, devices: int) -> SpreadPlan:
        """Of n samples: with the panels of one device, so that sums of floats are the same."""
        rows = padded(n)
        panel = closure_panel(rows)
        return cls(rows, panel, max(1, min(devices, -(-rows // panel))))

    @property
    def panels(self) -> int:
        return -(-self.n // self.panel)

    def rows(self, panel: int) -> range:
        """Samples of a panel, in the order of the matrix."""
        return range(panel * self.panel, min(self.n, (panel + 1) * self.panel))

    def owner(self, panel: int) -> int:
        """The device that stores the rows of a panel."""
        turn, place = divmod(panel, self.devices)
        return self.devices - 1 - place if turn % 2 else place

    @functools.cached_property
    def left(self) -> list[list[int]]:
        """By device and panel: rows that the device stores of panels before this one."""
        counts = np.zeros((self.devices, self.panels + 1), np.int64)
        for panel in range(self.panels):
            counts[self.owner(panel), panel + 1] = len(self.rows(panel))
        return np.cumsum(counts, axis=1).tolist()

    @functools.cached_property
    def offsets(self) -> list[int]:
        """The first column of each device, and the number of columns."""
        return [0, *np.cumsum([counts[-1] for counts in self.left]).tolist()]

    def columns(self, panel: int) -> slice:
        """Columns of the samples of a panel."""
        owner = self.owner(panel)
        start = self.offsets[owner] + self.left[owner][panel]
        return slice(start, start + len(self.rows(panel)))

    def stored(self, panel: int) -> slice:
        """Rows of a panel in what its owner stores."""
        first = self.left[self.owner(panel)][panel]
        return slice(first, first + len(self.rows(panel)))

    def before(self, device: int, panel: int) -> slice:
        """Columns of a device's panels before one."""
        start = self.offsets[device]
        return slice(start, start + self.left[device][panel])

    def since(self, device: int, panel: int) -> slice:
        """Columns of a device's panels from one on."""
        return slice(self.before(device, panel).stop, self.offsets[device + 1])

    def known(self, device: int, panel: int) -> list[slice]:
        """Columns of a panel's rows that a device computes: together all, each once.

        The owner of the panel has the rows from the diagonal on; the columns before it are those of
        other rows, by symmetry, on whichever device stores them.
        """
        own = self.before(device, panel)
        if device != self.owner(panel):
            return _filled(own)
        others = [self.since(other, panel) for other in range(self.devices) if other != device]
        return _filled(slice(own.start, self.offsets[device + 1]), *others)

    @functools.cached_property
    def order(self) -> np.ndarray:
        """int64 (n,): the sample in each column."""
        found = np.empty(self.n, np.int64)
        for panel in range(self.panels):
            found[self.columns(panel)] = self.rows(panel)
        return found

    def tiles(self, device: int, block: int) -> np.ndarray:
        """The tiles of the upper triangle that a device updates.

        Parameters
        ----------
        block : int
            Rows and columns of a tile, a divisor of BOUND_TILE.

        Returns
        -------
        uint16 array, (n_tiles, 2)
            Row of a tile in what the device stores, and column; by row.
        """
        place = self.order[::block] // block
        rows = place[self.offsets[device] // block : self.offsets[device + 1] // block]
        found = np.argwhere(rows[:, None] <= place[None, :])
        return np.ascontiguousarray(found, np.uint16)

    def tiles_of_panels(self, device: int, block: int) -> list[np.ndarray]:
        """For each panel those of the `tiles` that lie in its rows or columns."""
        tiles = self.tiles(device, block)
        of_column = self.order[::block] // self.panel
        column = of_column[tiles[:, 1]]
        row = of_column[tiles[:, 0] + self.offsets[device] // block]
        tile = np.concatenate([np.arange(len(tiles)), np.flatnonzero(row != column)])
        panel = np.concatenate([row, column[row != column]])
        by_panel = np.lexsort((tile, panel))
        ends = np.searchsorted(panel[by_panel], np.arange(1, self.panels))
        return [tiles[one] for one in np.split(tile[by_panel], ends)]

    def hole(self, device: int, panel: int, block: int) -> tuple[range, range]:
        """Rows and columns of a panel in tiles, as a device stores them; none beyond the last."""
        if panel >= self.panels:
            return range(0), range(0)
        columns, rows = self.columns(panel), slice(0, 0)
        if device == self.owner(panel):
            rows = self.stored(panel)
        return tuple(range(one.start // block, one.stop // block) for one in (rows, columns))

    def device_bytes(self, itemsize: int) -> int:
        """Device memory of a closure: the rows of one device and its panels."""
        stored = max(np.diff(self.offsets))
        buffers = PANEL_BUFFERS * self.panel * self.n + 4 * self.panel**2
        return int(stored * self.n + buffers) * itemsize


def _filled(*ranges: slice) -> list[slice]:
    return [one for one in ranges if one.stop > one.start]


assert BOUND_TILE % 64 == 0, "tiles of all number types divide those of bounds"
