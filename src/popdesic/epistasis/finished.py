"""Files of the finished scans of a phenotype."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..core.files import read_json
from .options import LOCI_NAMES, NAMES


class FinishedScan(NamedTuple):
    """One finished scan: its units' files, its order, score and number of tests.

    `null`: best costs of its permutations, if any.
    """

    units: list[Path]
    order: int
    score: str
    tests: int
    null: Path | None = None


class Scans(NamedTuple):
    """Finished scans of one phenotype.

    Attributes
    ----------
    reorder, folder : Path
        `results/reorder` and `results/epistasis`, of several phenotypes this one's folders in them.
    orders : dict
        Score of each scanned order, and whether main effects share its tests.
    units : tuple of int
        Numbers of units of a scan and of the permuted scans of an order.
    permutations : dict
        Number of permuted scans of the orders that have any.
    """

    reorder: Path
    folder: Path
    orders: dict[int, tuple[str, bool]]
    units: tuple[int, int]
    permutations: dict[int, int]

    def units_of(self, order: int, kind: str = "") -> list[Path]:
        """Files of the units of an order; kind ``null.`` for permuted scans."""
        count = self.units[1] if kind else self.units[0]
        return [self.folder / f"units/{kind}order{order}.{unit}.npz" for unit in range(count)]

    def null(self, order: int) -> Path | None:
        """Best costs of the permuted scans of an order, if any."""
        return self.folder / f"null.order{order}.tsv" if order in self.permutations else None

    def scan(self, order: int) -> FinishedScan:
        """The scan of an order."""
        score, _ = self.orders[order]
        return FinishedScan(self.units_of(order), order, score, self.tests[order], self.null(order))

    def hits(self, order: int) -> Path:
        """Ranked table of an order."""
        return self.folder / f"{NAMES[order]}.tsv"

    def loci(self, order: int) -> Path:
        """Loci of that table."""
        return self.folder / f"{LOCI_NAMES[order]}.tsv"

    @property
    def model(self) -> Path:
        """The null model."""
        return self.folder / "null_model.npz"

    @property
    def tests(self) -> dict[int, int]:
        """Tests of each scan, from the plan."""
        plan = read_json(self.folder / "plan.json")
        return {order: plan[NAMES[order]]["tests"] for order in self.orders}
