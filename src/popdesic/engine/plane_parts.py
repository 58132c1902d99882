"""Planes of several cohorts over the same sites, their samples numbered through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .terms import Planes


@dataclass(frozen=True)
class PlaneParts:
    """Planes of some cohorts over the same sites, their samples numbered through.

    Attributes
    ----------
    parts : tuple of Planes
        Memory maps will do: blocks are read as they are needed. For a GPU, one part may be on it
        already (`Backend.keep_planes`).
    """

    parts: tuple[Planes, ...]
    starts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        if len({part.n_sites for part in self.parts}) != 1:
            raise ValueError("the cohorts' planes are over different numbers of sites")
        ends = np.cumsum([part.n_samples for part in self.parts]).tolist()
        object.__setattr__(self, "starts", (0, *ends))

    @classmethod
    def of(cls, parts: Sequence[Planes]) -> PlaneParts:
        return cls(tuple(parts))

    @property
    def n_samples(self) -> int:
        return self.starts[-1]

    @property
    def n_sites(self) -> int:
        return self.parts[0].n_sites

    @property
    def n_words(self) -> int:
        return -(-self.n_sites // 64)

    @property
    def n_planes(self) -> int:
        """Of every block: 3 if any cohort has missing genotypes."""
        return 2 if all(part.complete for part in self.parts) else 3

    @property
    def n_bytes(self) -> int:
        return self.n_samples * self.n_planes * self.n_words * 8

    def pieces(self, first: int, last: int) -> list[Planes]:
        """Samples first ... last - 1, cohort by cohort, `n_planes` planes each."""
        found = []
        for start, part in zip(self.starts, self.parts, strict=False):
            words = part.words[max(0, first - start) : max(0, last - start), :, : self.n_words]
            if len(words):
                piece = Planes(words, self.n_sites)
                found.append(piece if self.n_planes == 2 else piece.with_mask())
        return found

    def block(self, first: int, last: int) -> Planes:
        """Samples first ... last - 1: a view where they are of one cohort, else a copy."""
        pieces = self.pieces(first, last)
        if len(pieces) == 1:
            return pieces[0]
        return Planes(np.concatenate([piece.words for piece in pieces]), self.n_sites)
