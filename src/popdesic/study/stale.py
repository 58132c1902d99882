"""Results that the present configuration and sheets do not make: of other settings or cohorts.

Nothing reads them, but they hold samples: an exported panel of a format that was taken out, a
geodesic of another alpha, a cohort whose row was deleted. `popdesic audit` names them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..cohort.callable import BLOCKS, DROPPED
from ..core.errors import UserError
from ..core.files import RESULT_FOLDERS, checksum_path, record_path, result_files
from ..distance.rows import ROW
from .records import read_kept_record
from .snakemake_internals import METADATA, Job, planned_jobs, read_record, snakemake_path

#: Files that lie beside a cohort's `raw.json`; earlier versions have records of them.
DECODED = tuple(f"raw{end}" for end in (".bed", ".bim", ".fam", BLOCKS, DROPPED))


def stale_results(study: Path, jobs: Sequence[Job]) -> list[str]:
    """Results that no job of the plan makes, as paths within the study, sorted.

    An output of a rule is known by its record. What a job leaves beside its outputs has none: it is
    stale if its folder has no output of the plan, or if it is the tile of a cohort that has left.
    Files without a checksum were not written by Popdesic and are never listed.
    """
    made = {output for job in jobs for output in job.outputs}
    folders = {str(Path(output).parent) for output in made}
    cohorts = {job.wildcards["cohort"] for job in jobs if "cohort" in job.wildcards}

    def is_made(path: Path) -> bool:
        result = str(path.relative_to(study))
        folder = str(Path(result).parent)
        if result in made or (path.name in DECODED and f"{folder}/raw.json" in made):
            return True
        if read_kept_record(path) or read_record(study, result):
            return False
        of_row = f"{folder}/{ROW}" in made
        return folder in folders and not (of_row and _of_another(path, cohorts))

    found = result_files(study / "results")
    written = (path for path in found if checksum_path(path).is_file())
    return sorted(str(path.relative_to(study)) for path in written if not is_made(path))


def _of_another(tile: Path, cohorts: set[str]) -> bool:
    """Whether a tile's file is that of a cohort that is not among these.

    A name may have points. Endings begin with one, or with `__`, which no name has.
    """
    known = cohorts | {key.name[1:-4] for key in tile.parent.glob(".*.key")}
    named = [one for one in known if tile.name.startswith((f"{one}.", f"{one}__"))]
    return max(named, key=len, default="") not in cohorts


def outdated_results(study: Path, jobs: Sequence[Job]) -> list[str]:
    """Results that the next run makes again, or may, as paths within the study, sorted."""
    outputs = [output for job in jobs if job.needed for output in job.outputs]
    folders = [Path(output).parent for output in outputs if Path(output).name == "raw.json"]
    outputs += [str(folder / name) for folder in folders for name in DECODED]
    return sorted(output for output in outputs if (study / output).exists())


def leftovers(study: Path) -> list[str]:
    """Hidden files and folders that killed jobs left, as paths within the study, sorted.

    They hold samples, under no name that a reader of results would open. No job may be running.
    """
    found = []
    for folder, folders, names in os.walk(study / "results"):
        hidden = [name for name in folders if name.startswith(".")]
        hidden += [name for name in names if name.startswith(".") and name.endswith(".tmp")]
        found += [str(Path(folder, name).relative_to(study)) for name in hidden]
        folders[:] = [n for n in folders if n not in hidden and not n.endswith(RESULT_FOLDERS)]
    return sorted(found)


def delete_results(study: Path, results: Iterable[str]) -> None:
    """Delete results, what lies hidden beside them, their records and folders left empty.

    What a job keeps for its next run (``.NAME.npz``) goes with any result of its folder: it may
    hold samples, and nothing tells which.
    """
    results = list(results)
    for folder in {(study / result).parent for result in results}:
        for path in folder.glob(".*.npz"):
            path.unlink()
            checksum_path(path).unlink(missing_ok=True)
    for result in results:
        path = study / result
        if path.is_dir():
            shutil.rmtree(path)
        for left in (path, checksum_path(path), record_path(path)):
            left.unlink(missing_ok=True)
        snakemake_path(study, METADATA, result).unlink(missing_ok=True)
        _tidy(path.parent, study / "results")


def _tidy(folder: Path, top: Path) -> None:
    """Delete keys of tiles that are gone, and folders left empty, up to `top`."""
    names = [path.name for path in folder.iterdir()]
    for key in [name for name in names if name.startswith(".") and name.endswith(".key")]:
        if not any(name.startswith(f"{key[1:-4]}.") for name in names):
            (folder / key).unlink()
            names.remove(key)
    if not names and folder != top:
        folder.rmdir()
        _tidy(folder.parent, top)


def audit_stale(study: Path, *, remove: bool) -> set[str]:
    """Print the stale results of a study; with `remove`, delete them. Return those that stay."""
    try:
        found = stale_results(study, planned_jobs(study))
    except UserError as error:
        print(f"Results of other settings were not looked for: {error}")
        return set()
    for result in found:
        print(f"{result}: of other settings or of a cohort that is not in the sheet")
    if found and remove:
        delete_results(study, found)
        print(f"These {len(found)} results are deleted.")
        return set()
    if found:
        print(
            f"{len(found)} results are not made by the present configuration and sheets, and may "
            f"hold samples that have left; `popdesic audit --remove-stale {study}` deletes them."
        )
    return set(found)
