"""Many small cohorts are read as a few batches, which every later rule treats as a cohort.

A cohort costs jobs, files and a row of tiles however few samples it has. So small cohorts that
enter a study together share batches. A batch keeps its members when others arrive: a run writes
who is read with whom into a hidden file, which later runs and all jobs look up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pandas as pd

from ..core.files import read_json, write_json
from ..core.limits import BATCH_SAMPLES, MANY_COHORTS, SMALL_COHORT

#: Members of each batch, and the cohorts that are read alone, in a study that has batches.
BATCHES = Path("results/cohorts/.batches.json")
#: Columns of the cohort sheet in which all members of a batch are alike.
ALIKE = ["founder", "absent"]


def batches_of(
    folder: Path, cohorts: pd.DataFrame, counts: Mapping[str, int]
) -> dict[str, list[str]]:
    """Who is read together in a study: `group_cohorts` with what its results say.

    A cohort that was decoded alone stays alone.

    Parameters
    ----------
    folder : Path
        The study.
    cohorts : DataFrame
        Of the checked sheet: index `cohort`, in sample order; `ALIKE` and `callable`.
    counts : dict
        Number of samples of each cohort.
    """
    held = held_batches(folder)
    decoded = folder / "results/cohorts"
    few = len(cohorts) <= MANY_COHORTS and not held
    alone = {} if few else {c: [c] for c in cohorts.index if (decoded / c / "raw.json").is_file()}
    return group_cohorts(cohorts, counts, alone | held)


def group_cohorts(
    cohorts: pd.DataFrame, counts: Mapping[str, int], held: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Who is read together: the cohorts of each unit, units in sample order.

    Cohorts of fewer than SMALL_COHORT samples share batches where more than MANY_COHORTS of them
    are new, alike in `ALIKE`, and without a mask. A batch has at most BATCH_SAMPLES samples.

    Parameters
    ----------
    cohorts : DataFrame
        Index `cohort`; `ALIKE` and `callable`.
    counts : dict
        Number of samples of each cohort.
    held : dict
        Cohorts of each unit that there is. Those that left, or are no longer like the
        first one, leave the unit; nobody enters it.

    Returns
    -------
    dict
        Cohorts by unit, founders first, each by name. A cohort that is read alone is a unit of its
        own name.
    """
    names = cohorts.index
    alike = dict(zip(names, cohorts[ALIKE].itertuples(index=False, name=None), strict=True))
    masked = set(names[cohorts["callable"] != ""])
    units: dict[str, list[str]] = {}
    for unit, members in held.items():
        if unit in alike and unit not in members:
            continue  # a cohort of the sheet has taken the name of a batch
        left = [cohort for cohort in members if cohort in alike]
        left = [cohort for cohort in left if alike[cohort] == alike[left[0]]]
        if len(members) > 1 or unit not in members:
            left = [cohort for cohort in left if _may_share(cohort, alike, masked)]
        if left:
            units[unit] = left
    placed = {cohort for members in units.values() for cohort in members}
    new: dict[tuple, list[str]] = {}
    for cohort in sorted(set(names) - placed):
        small = counts[cohort] < SMALL_COHORT and _may_share(cohort, alike, masked)
        if small and cohort not in held:
            new.setdefault(alike[cohort], []).append(cohort)
        else:
            units[cohort] = [cohort]
    taken = {*names, *held, *units}
    for _, arrived in sorted(new.items(), reverse=True):  # founders first
        if len(arrived) <= MANY_COHORTS:
            units |= {cohort: [cohort] for cohort in arrived}
            continue
        for members in _parts(arrived, counts):
            units[_free_name(taken)] = members
    return {
        unit: units[unit] for unit in sorted(units, key=lambda u: (not alike[units[u][0]][0], u))
    }


def _may_share(cohort: str, alike: Mapping[str, tuple], masked: Collection[str]) -> bool:
    """Whether absent sites are read in a way that holds for several cohorts at once."""
    return alike[cohort][1] in ("auto", "missing") and cohort not in masked


def _parts(cohorts: Sequence[str], counts: Mapping[str, int]) -> list[list[str]]:
    """Cohorts in order, in parts of at most BATCH_SAMPLES samples."""
    parts: list[list[str]] = []
    n_samples = BATCH_SAMPLES
    for cohort in cohorts:
        if n_samples + counts[cohort] > BATCH_SAMPLES:
            parts.append([])
            n_samples = 0
        parts[-1].append(cohort)
        n_samples += counts[cohort]
    return parts


def _free_name(taken: set[str]) -> str:
    """The first name of a batch that nothing has, in any case of letters; it is taken now."""
    lower = {name.casefold() for name in taken}
    number = next(k for k in range(1, len(taken) + 2) if f"batch{k:03d}" not in lower)
    taken.add(name := f"batch{number:03d}")
    return name


def held_batches(folder: Path) -> dict[str, list[str]]:
    """Cohorts of each unit as the last run of a study had them; none if all were alone."""
    path = folder / BATCHES
    return read_json(path) if path.is_file() else {}


def hold_batches(folder: Path, units: Mapping[str, Sequence[str]]) -> None:
    """Write who is read together, if anybody is or was, before any job of a run looks."""
    path, found = folder / BATCHES, {unit: list(members) for unit, members in units.items()}
    if held_batches(folder) != (found if is_batched(found) else {}):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, found)


def is_batched(units: Mapping[str, Sequence[str]]) -> bool:
    """Whether any cohort is read as part of a batch."""
    return any([*members] != [unit] for unit, members in units.items())


def remark_on_batches(units: Mapping[str, Sequence[str]], counts: Mapping[str, int]) -> list[str]:
    """Return one sentence that says which cohorts are read together; none where none are.

    `counts`: samples of each unit.
    """
    batches = [unit for unit, members in units.items() if [*members] != [unit]]
    if not batches:
        return []
    n_cohorts, n_samples = (
        sum(sizes) for sizes in ([len(units[b]) for b in batches], [counts[b] for b in batches])
    )
    many = f"{len(batches)} batches" if len(batches) > 1 else "1 batch"
    return [
        f"{n_cohorts} small cohorts with {n_samples} samples are read as {many} "
        f"({', '.join(batches[:3])}{', …' * (len(batches) > 3)}), which results treat as cohorts."
    ]
