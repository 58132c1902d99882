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

from ..components.pca import Axes
from ..core.files import beside, content_key
from ..core.row import is_intact
from ..core.tables import read_table, write_npz
from ..io.bed import read_fam

#: The file beside a job's results; hidden, as keys of tiles are.
KEPT = ".founders.npz"


@dataclass(frozen=True, eq=False)
class Seen:
    """What was seen in some samples of a community.

    Attributes
    ----------
    significant : int or None
        Significant components of their own; None for too few samples.
    splits : list of dict
        On these components.
    groups : int64 array, (n,), optional
        Of each sample, where there are several.
    axes : Axes, optional
        Of these samples, on which others are placed.
    af : float64 array, (n_sites,), optional
        ALT frequencies; 0 at sites that do not count.
    """

    significant: int | None
    splits: list[dict[str, Any]] = field(default_factory=list)
    groups: np.ndarray | None = None
    axes: Axes | None = None
    af: np.ndarray | None = None

    def told(self) -> tuple[list, dict[str, np.ndarray]]:
        """What `Seen.of` makes the same of: values of JSON, and arrays."""
        if self.axes is None:
            return [self.significant, self.splits, None], {}
        numbers = {name: getattr(self.axes, name) for name in ("trace", "k", "significant")}
        arrays = {name: getattr(self.axes, name) for name in ("values", "vectors", "own")}
        return [self.significant, self.splits, numbers], arrays | {
            "groups": self.groups,
            "af": self.af,
        }

    @classmethod
    def of(cls, told: list, arrays: dict[str, np.ndarray]) -> Seen:
        """From what `told` gives."""
        significant, splits, numbers = told
        if numbers is None:
            return cls(significant, splits)
        groups, af = arrays.pop("groups"), arrays.pop("af")
        return cls(significant, splits, groups, Axes(**arrays, **numbers), af)


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
        self.load()

    def load(self) -> None:
        """Read what was kept under `key`, if it is intact."""
        if is_intact(self.path):
            with np.load(self.path) as kept:
                if str(kept["key"]) == self.key:
                    self.labels = list(kept["labels"])
                    for number, (key, told) in enumerate(json.loads(str(kept["within"])).items()):
                        start = f"{number}."
                        own = [name for name in kept.files if name.startswith(start)]
                        arrays = {name.removeprefix(start): kept[name] for name in own}
                        self.within[key] = Seen.of(told, arrays)

    def keep(self) -> None:
        """Write what is known for the next run."""
        if self.path is None:
            return
        told, arrays = {}, {}
        for number, key in enumerate(sorted(self.within)):
            told[key], own = self.within[key].told()
            arrays |= {f"{number}.{name}": values for name, values in own.items()}
        write_npz(
            self.path,
            key=np.array(self.key),
            labels=np.array(self.labels, np.int32),
            within=np.array(json.dumps(told)),
            **arrays,
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


def group_key(members: np.ndarray) -> str:
    """Digest of the numbers of some samples.

    Founders come first, so that they have the same numbers in all runs.
    """
    return _digest(members.astype(np.int64))


def genotype_keys(prefixes: Sequence[Path], names: set[str]) -> list[str]:
    """Content of the genotypes that have some of these samples."""
    return [
        content_key(beside(prefix, ".bed"))
        for prefix in prefixes
        if not names.isdisjoint(read_fam(prefix)["sample"])
    ]
