"""What founders alone tell of communities, kept from run to run.

Subsamples that show how stable communities are, and samples that show what is within one, are drawn
from the founders. A cohort that arrives changes none of them, so the run that adds it reads what an
earlier run found. What is read has the bytes of what would be found anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..core.files import beside, content_key
from ..core.row import is_intact
from ..core.tables import read_table, write_npz
from ..io.bed import read_fam

#: What was seen in some samples: the count of significant components (None for too few samples),
#: and whether there are finer groups or a gap.
Seen = tuple[int | None, bool]
#: The file beside a job's results; hidden, as keys of tiles are.
KEPT = ".founders.npz"


@dataclass
class Founders:
    """Samples that are drawn from, and what is known of them.

    Attributes
    ----------
    among : bool array, (n,)
    path : Path, optional
        The file of what is known; None keeps nothing.
    code : str
        Digest of the code that finds it.
    key : str
        Digest of all that decides it.
    labels : list of int arrays, optional
        Coarse groups of each subsample.
    within : dict
        What was seen in some samples, by `group_key`.
    """

    among: np.ndarray
    path: Path | None = None
    code: str = ""
    key: str = ""
    labels: list[np.ndarray] | None = None
    within: dict[str, Seen] = field(default_factory=dict)

    def recall(self, *decide: Any) -> None:
        """Read what an earlier run kept, if all that decides it is as it was."""
        if self.path is None:
            return
        self.key = _digest(self.code, *decide)
        if is_intact(self.path):
            with np.load(self.path) as kept:
                if str(kept["key"]) == self.key:
                    self.labels = list(kept["labels"])
                    self.within = json.loads(str(kept["within"]))

    def keep(self) -> None:
        """Write what is known for the next run."""
        if self.path is not None:
            write_npz(
                self.path,
                key=np.array(self.key),
                labels=np.array(self.labels, np.int32),
                within=np.array(json.dumps(self.within, sort_keys=True)),
            )


def founders_of(order: Path, cohorts: Sequence[str], out: Path, code: str) -> Founders:
    """The founders of a study (`is_founder`), of which a job keeps a file beside its result."""
    return Founders(is_founder(order, cohorts), out.with_name(KEPT), code)


def is_founder(order: Path, cohorts: Sequence[str]) -> np.ndarray:
    """The samples that show the communities of all, bool (n,).

    Where fewer than half of the samples are founders everyone counts as one: few founders cannot
    show the communities of many others.

    Parameters
    ----------
    order : Path
        `distance/samples.tsv`.
    cohorts : sequence of str
        Those of the founders.
    """
    among = read_table(order).cohort.isin(cohorts).to_numpy()
    few = 2 * np.count_nonzero(among) < len(among)
    return np.ones_like(among) if few else among


def _digest(*parts: Any) -> str:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        is_array = isinstance(part, np.ndarray)
        found.update(part.tobytes() if is_array else f"{part}\0".encode())
    return found.hexdigest()


def group_key(members: np.ndarray, finer: bool) -> str:
    """Digest of the numbers of some samples, and of whether there are finer groups among them.

    Founders come first, so that they have the same numbers in all runs.
    """
    return _digest(members.astype(np.int64), finer)


def genotype_keys(prefixes: Sequence[Path], names: set[str]) -> list[str]:
    """Content of the genotypes that have some of these samples."""
    return [
        content_key(beside(prefix, ".bed"))
        for prefix in prefixes
        if not names.isdisjoint(read_fam(prefix)["sample"])
    ]
