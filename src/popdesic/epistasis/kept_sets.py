"""Scores of sets by cohort, kept between runs: a cohort that arrives is the only one scored.

A cohort's scores depend on its own people: its genotypes, phenotype and covariates, and the sites
of the panel that are in sets. Normal scores of a number are of ranks within the cohort. Covariates
are centred and scaled within the cohort and rounded to
2^-32, so that no other cohort decides their bytes. Of each cohort there are two files: `.npz` as of
`set_store.store_sets` without covariances, and `.npy` with the covariances of all sets, one after
the other, 8 bytes for each two products. Beside them lie the tests of the discovery cohorts, which
a cohort that arrives does not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.phenotype import known_numbers
from ..core.errors import UserError
from ..core.files import atomic_path, content_key, digest, read_json
from ..core.row import is_intact, renew_cohorts
from ..io.bed import open_bed, read_fam
from ..io.genotypes import unpack_bed
from .null_model import NullModel, fit_null
from .set_rows import Sets, set_statistics
from .set_scores import SetStatistics
from .set_store import store_sets, stored_sets
from .sets import SetTests

#: Endings of the files of a cohort.
ENDINGS = (".npz", ".npy")
#: Sets whose covariances are in memory at a time: 17 MB each at most.
AT_ONCE = 32
#: Bits after the point of a scaled covariate.
COVARIATE_BITS = 32


@dataclass(frozen=True)
class ScoredCohort:
    """People of a cohort that are tested.

    Attributes
    ----------
    prefix : Path
        Stem of its genotypes on the panel (.bed .bim .fam).
    columns : int64 array, (n_people,)
        Their places in the .fam.
    null : NullModel or None
        Of them, with covariates of this cohort alone; None if it leaves nothing to test.
    """

    prefix: Path
    columns: np.ndarray
    null: NullModel | None

    @property
    def size(self) -> int:
        """People; of cases and controls, twice the fewer ones. 0 if they cannot be tested."""
        if self.null is None or self.null.kind == "linear":
            return 0 if self.null is None else len(self.columns)
        cases = int(self.null.response.sum())
        return 2 * min(cases, len(self.columns) - cases)

    def key(self, sets: str, code: str) -> str:
        """Digest of all that decides its scores; `sets`: of the sites of each set."""
        arrays = (self.columns, self.null.response, self.null.design)
        numbers = [np.ascontiguousarray(array).tobytes().hex() for array in arrays]
        bed = content_key(self.prefix.with_suffix(".bed"))
        return digest(repr([bed, sets, code, self.null.kind, self.null.design.shape, *numbers]))


def cohorts_of(
    prefixes: list[Path], samples: pd.DataFrame, null: NullModel, transform: str
) -> dict[str, ScoredCohort]:
    """Cohorts with people who are tested, by name.

    Parameters
    ----------
    prefixes : list of Path
        Stems of their genotypes; the folder has a cohort's name.
    samples : DataFrame
        `sample` and `phenotype` of each person of `null`.
    transform : 'none' or 'normal'
        Of a number (`null_model.fit_null`).
    """
    place, numbers = pd.Index(samples["sample"]), known_numbers(samples["phenotype"])
    found: dict[str, ScoredCohort] = {}
    for prefix in sorted(prefixes, key=lambda one: one.parent.name):
        rows = place.get_indexer(read_fam(prefix)["sample"])
        columns = np.flatnonzero((rows >= 0) & null.used[rows])
        if not len(columns):
            continue
        rows = rows[columns]
        design = own_columns(null.design[rows])
        own: NullModel | None = replace(
            null,
            design=design,
            names=[],
            response=null.response[rows],
            fitted=null.fitted[rows],
            used=np.ones(len(rows), bool),
        )
        if null.kind == "linear":
            try:
                own = fit_null(numbers[rows], design, "linear", transform=transform)
            except UserError:  # covariates explain it
                own = None
        found[prefix.parent.name] = ScoredCohort(prefix, columns, own)
    return found


def own_columns(design: np.ndarray) -> np.ndarray:
    """Covariates with mean 0 and spread 1, rounded; those that do not vary are left out."""
    spread = design.std(axis=0)
    varied = spread > 1e-9 * np.abs(design).max(axis=0, initial=0.0)
    scaled = (design - design.mean(axis=0))[:, varied] / spread[varied]
    return np.rint(scaled * 2.0**COVARIATE_BITS) / 2.0**COVARIATE_BITS


class KeptScores(Mapping):
    """Statistics of the sets of a cohort, read one by one; None for those not tested."""

    def __init__(self, paths: list[Path]):
        self._sets = stored_sets(paths[0])
        self._covariances = np.load(paths[1], mmap_mode="r")
        sizes = [_triangle(one) for one in self._sets.values()]
        self._ends = dict(zip(self._sets, np.cumsum(sizes, dtype=np.int64).tolist(), strict=True))

    def __getitem__(self, name: str) -> SetStatistics | None:
        one, end = self._sets[name], self._ends[name]
        if one is None:
            return None
        return replace(one, covariance=self._covariances[end - _triangle(one) : end])

    def __iter__(self):
        return iter(self._sets)

    def __len__(self) -> int:
        return len(self._sets)


def _triangle(one: SetStatistics | None) -> int:
    return len(one.scores) * (len(one.scores) + 1) // 2 if one else 0


def renew_scores(
    out: Path, cohorts: Mapping[str, ScoredCohort], sets: Sets, code: str, threads: int
) -> tuple[dict[str, KeptScores], list[str]]:
    """Score the cohorts of which something has changed, and open the scores of all.

    Parameters
    ----------
    out : Path
        ``row.json`` in the folder of the scores, which lists their keys.
    cohorts : dict
        Of numbers, or with cases and controls.
    sets : dict
        Sites of each set as rows of the panel, as of `set_rows.for_each_set`.
    code : str
        Digest of the code that scores.

    Returns
    -------
    dict, list of str
        Scores by cohort, and the cohorts that were scored now.
    """
    sites = digest(repr([(name, *map(_text, parts)) for name, parts in sets.items()]))

    def score(name: str, outputs: list[Path]) -> None:
        _score(cohorts[name], sets, outputs, threads)

    keys = {name: one.key(sites, code) for name, one in cohorts.items()}
    made = renew_cohorts(out, ENDINGS, keys, score, unread=ENDINGS[1:])
    opened = {
        name: KeptScores([out.parent / f"{name}{ending}" for ending in ENDINGS]) for name in keys
    }
    return opened, sorted(made)


def discovery_key(scores: Path, discovery: list[str], code: str) -> str:
    """Digest of all that decides tests of the discovery cohorts; `code`: of the tests."""
    tiles = read_json(scores)["tiles"]
    return digest(repr([code, [tile for tile in tiles if tile[0] in discovery]]))


def kept_tests(path: Path, key: str) -> dict[str, dict[str, float | int]]:
    """Tests by set that were written with this key; none if they were not, or were changed."""
    if not is_intact(path):
        return {}
    kept = read_json(path)
    return kept["tests"] if kept["key"] == key else {}


def _text(sites: np.ndarray | None) -> str:
    return "" if sites is None else sites.astype(np.int64).tobytes().hex()


def _score(cohort: ScoredCohort, sets: Sets, outputs: list[Path], threads: int) -> None:
    """Write the files of a cohort."""
    names = read_fam(cohort.prefix)["sample"]
    bed = open_bed(cohort.prefix, n_samples=len(names))
    tests = SetTests(cohort.null)

    def read(rows: np.ndarray) -> np.ndarray:
        return unpack_bed(bed[rows], len(names))[:, cohort.columns].T

    known: dict[str, SetStatistics | None] = {}
    all_names, header = list(sets), np.lib.format.write_array_header_1_0
    about = {"descr": "<f8", "fortran_order": False}
    with atomic_path(outputs[1]) as temporary, open(temporary, "wb") as file:
        header(file, about | {"shape": (0,)})
        start = file.tell()
        for first in range(0, len(all_names), AT_ONCE):
            part = {name: sets[name] for name in all_names[first : first + AT_ONCE]}
            for name, one in zip(part, set_statistics(tests, read, part, threads), strict=True):
                known[name] = None
                if isinstance(one, SetStatistics):
                    file.write(one.covariance.astype("<f8").data)
                    known[name] = replace(one, covariance=np.zeros(0))
        shape = (sum(map(_triangle, known.values())),)
        file.seek(0)
        header(file, about | {"shape": shape})  # padded by NumPy for a longer first axis
        if file.tell() != start:
            raise ValueError(f"{outputs[1]}: a header of {file.tell()} bytes in place of {start}")
    store_sets(outputs[0], known)
