"""A standing database of profiles: cohorts are added once, and searched without their files.

A folder with `sites.tsv`, the sites in genome order, as the first file that was added lists them
(a panel for `load_panel`, without frequencies); for each cohort `cohorts/NAME/planes.npy` and
`planes.json`; and `profiles.json`, which names the cohorts with the checksums of their files. What
`profiles.json` does not name is not in the database: it is replaced last, as a whole.
"""

from __future__ import annotations

import fcntl
import logging
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.absent import Absent
from ..cohort.encode import encode_cohort
from ..cohort.ingest import ingest_cohort
from ..cohort.match import match, require_one_build
from ..cohort.panel import genome_order, load_panel
from ..cohort.planes import load_planes
from ..core.errors import UserError, shorten
from ..core.files import (
    atomic_path,
    checksum_of,
    digest,
    read_json,
    require_output,
    write_json,
)
from ..core.tables import write_table
from ..core.threads import run_tasks
from ..distance.tiles import load_cohorts, within_panel
from ..engine.backend import Backend
from ..engine.terms import Planes
from ..io.bed import read_bim, read_fam
from ..io.sites import canonical_contigs
from .find_matches import top_matches
from .matches import TopMatches

log = logging.getLogger("popdesic")

#: What `profiles.json` says of the form of the folder.
FORM = 1
#: Fewest sites at which two profiles are compared, unless given; of fewer sites half suffice.
MIN_CALLED = 100
COLUMNS = ["query", "rank", "match", "match_cohort", "compared", "differing", "share"]
#: Folders of files that are being added.
_SCRATCH = ".adding."


def add_profiles(
    folder: Path, files: Sequence[tuple[str, Path]], threads: int = 1
) -> dict[str, dict[str, int]]:
    """Add genotype files to a database, which is created by the first one: all of them, or none.

    Parameters
    ----------
    folder : Path
        The database.
    files : list of (name, Path)
        Name of each cohort, and VCF, BCF, VCF-Zarr or prefix of other files. Calls of one allele
        count as two.

    Returns
    -------
    dict
        For each cohort its counts, as of `encode_cohort`.

    Raises
    ------
    UserError
        A name of a cohort or profile is there already; a file lacks sites of the database, or has
        other alleles there; a profile has no called genotype; the folder is no database.
    """
    _require_place(folder)
    folder.mkdir(parents=True, exist_ok=True)
    counts: dict[str, dict[str, int]] = {}
    with _locked(folder), tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=folder) as scratch:
        about = _read_about(folder)
        known = _profile_names(folder, about["cohorts"])
        sites = folder / "sites.tsv"
        if not about["cohorts"]:
            sites = Path(scratch) / "sites.tsv"
        for name, file in files:
            if name in about["cohorts"] or name in counts:
                raise UserError(
                    f"{folder} has a cohort '{name}' already; give {file} another name "
                    f"(NAME={file})."
                )
            counts[name] = _encode(name, file, sites, Path(scratch) / name, threads)
            for profile in read_json(Path(scratch) / name / "planes.json")["samples"]:
                if profile in known:
                    raise UserError(
                        f"{file}: profile '{profile}' is in {folder} already (cohort "
                        f"'{known[profile]}'); rename it, or leave it out."
                    )
                known[profile] = name
        table, key = load_panel(sites)
        about |= {"sites": key, "n_sites": len(table)}
        for name in counts:
            place = folder / "cohorts" / name
            shutil.rmtree(place, ignore_errors=True)  # of an add that was interrupted
            place.mkdir(parents=True)
            for kept in ("planes.npy", "planes.json"):
                (Path(scratch) / name / kept).rename(place / kept)
            planes, told = load_planes(place)
            about["cohorts"][name] = {
                "profiles": len(told["samples"]),
                "complete": planes.complete,
                "planes": checksum_of(place / "planes.npy"),
                "names": checksum_of(place / "planes.json"),
            }
        if sites.parent != folder:
            sites.replace(folder / "sites.tsv")
        about["cohorts"] = dict(sorted(about["cohorts"].items()))
        write_json(folder / "profiles.json", about)
    return counts


def search_database(
    folder: Path,
    query: Path,
    out: Path,
    backend: Backend,
    *,
    top: int,
    min_called: int = MIN_CALLED,
) -> pd.DataFrame:
    """The best matches of each profile of a file in a database.

    Profiles of the database are in the order of their cohorts' names, then of their files: in this
    order ties are listed. So neither the order of adding nor threads nor devices change a byte.

    Parameters
    ----------
    query : Path
        As a file of `add_profiles`; sites that it lacks are not compared. Queries without a match
        are left out and named in the log, as are those without a called genotype.
    out : Path
        Table of COLUMNS, `top` rows per query, best first: sites called in both, and those of them
        with different genotypes. Shares are compared as whole numbers of 2**-20.
    min_called : int
        Pairs with fewer sites are no match; of fewer sites in the database, half suffice.

    Raises
    ------
    UserError
        The folder is no database, or a file of it has changed; or no query has a match.
    """
    require_output(out, query, folder / "sites.tsv", folder / "profiles.json")
    about = _read_about(folder)
    if not about["cohorts"]:
        raise UserError(
            f"{folder} holds no profiles; add some first: popdesic profiles add {folder} FILE."
        )
    folders = [folder / "cohorts" / name for name in about["cohorts"]]
    _require_unchanged(folder, about, folders, backend.threads)
    parts, people = load_cohorts(folders)
    with tempfile.TemporaryDirectory(prefix="popdesic.") as scratch:
        _encode("", query, folder / "sites.tsv", Path(scratch), backend.threads)
        planes, told = load_planes(Path(scratch))
        least = within_panel(min_called, planes.n_sites)
        best = _best_of(backend, planes, parts.parts, top, least)
    lost = [told["samples"][k] for k in np.flatnonzero(best.index[:, 0] < 0)]
    if lost:
        names = ", ".join(f"'{name}'" for name in lost[:5]) + " …" * (len(lost) > 5)
        said = (
            f"{query}: {len(lost)} of {len(told['samples'])} profiles have fewer than {least} "
            f"called sites in common with any of {len(people.samples)} profiles: {names}; lower "
            "--min-called, or genotype them at more sites."
        )
        if len(lost) == len(told["samples"]):
            raise UserError(said)
        log.warning("%s They are left out.", said)
    number, rank = np.nonzero(best.index >= 0)
    index, compared, differing = (
        values[number, rank] for values in (best.index, best.called, best.mismatches)
    )
    columns = (
        [told["samples"][k] for k in number],
        rank + 1,
        [people.samples[k] for k in index],
        [people.cohorts[k] for k in index],
        compared,
        differing,
        differing / compared,
    )
    table = pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))
    write_table(out, table)
    return table


def _best_of(
    backend: Backend, queries: Planes, parts: Sequence[Planes], top: int, least: int
) -> TopMatches:
    """The best matches in all parts, numbered as they follow each other."""
    best, start = TopMatches(queries.n_samples, top), 0
    for part in parts:
        best.merge(top_matches(backend, queries, part, top, least), start)
        start += part.n_samples
    return best


def _encode(name: str, file: Path, sites: Path, out: Path, threads: int) -> dict[str, int]:
    """Write the planes of a file's profiles at the sites, which the first file defines.

    A file of a cohort (`name`) must list all sites, and each profile must have a call; a file of
    queries, without a name, need not.
    """
    raw = out / "raw"
    ingest_cohort(file, raw, haploid="diploidize", threads=threads)
    listed = read_bim(raw)
    if not sites.is_file():
        _write_sites(sites, listed, file)
    if name:
        _require_sites(file, listed, sites)
    profiles = pd.DataFrame({"sample": read_fam(raw)["sample"], "keep": "yes"})
    write_table(out / "samples.tsv", profiles)
    options = {"impute": "none", "absent": Absent("missing"), "keep_all": bool(name)}
    shown = name or file.name  # errors name it
    try:
        return encode_cohort(
            raw, out / "samples.tsv", sites, out, cohort=shown, threads=threads, **options
        )
    except UserError as error:  # which names the decoded files
        named = re.escape(str(raw)) + r"(\.bed|\.bim|\.fam)?"
        raise UserError(re.sub(named, lambda _: str(file), str(error))) from None


def _write_sites(path: Path, listed: pd.DataFrame, file: Path) -> None:
    known = listed[listed.ref.isin([*"ACGT"]) & listed.alt.isin([*"ACGT"])]
    if known.empty:
        raise UserError(f"{file} has no site with two known alleles; give a file of SNPs.")
    known = known.assign(chrom=canonical_contigs(known.chrom))
    pairs = known.assign(
        ref=known[["ref", "alt"]].min(axis=1), alt=known[["ref", "alt"]].max(axis=1)
    )
    again = pairs.duplicated(["chrom", "pos", "ref", "alt"])  # would be compared twice
    table = genome_order(known[~again])
    table = table.assign(id=".", mode=0)[["chrom", "pos", "id", "ref", "alt", "mode"]]
    text = table.to_csv(sep="\t", index=False, lineterminator="\n")
    with atomic_path(path) as temporary:
        temporary.write_text(f"# panel {digest(text)}, {len(table)} sites\n{text}")


def _require_sites(file: Path, listed: pd.DataFrame, sites: Path) -> None:
    """Raise a UserError unless a file lists all sites of the database with their alleles."""
    panel, _ = load_panel(sites)
    found = match(listed, panel)
    require_one_build(found, str(file), "the database")
    lacking = np.flatnonzero(found.row < 0)
    if len(lacking):
        first = panel.iloc[lacking[0]]
        there = "with other alleles there" if found.listed[lacking[0]] else "not listed"
        raise UserError(
            f"{file} lacks {len(lacking)} of the {len(panel)} sites of the database, the first "
            f"being {first.chrom}:{first.pos} {first.ref}/{first.alt} ({there}); a cohort must "
            "list all of them: start the database with files of the sites that all have (bcftools "
            "isec)."
        )


def _require_place(folder: Path) -> None:
    own = {"sites.tsv", "cohorts", "profiles.json"}
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; name a folder for the database.")
    if folder.is_dir() and not (folder / "profiles.json").is_file():
        strange = [p.name for p in folder.iterdir() if p.name not in own and p.name[0] != "."]
        if strange:
            raise UserError(
                f"{folder} holds other files (such as {shorten(min(strange))}) and no "
                "profiles.json; name a database, or a folder that is not there yet."
            )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Add alone, and remove what adds that were killed left behind."""
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.glob(f"{_SCRATCH}*"):
            shutil.rmtree(left)
        yield


def _read_about(folder: Path) -> dict:
    path = folder / "profiles.json"
    if not path.is_file():
        return {"form": FORM, "sites": "", "n_sites": 0, "cohorts": {}}
    try:
        about = read_json(path)
        if about["form"] != FORM:
            raise KeyError
        return about | {"cohorts": dict(about["cohorts"])}
    except (ValueError, KeyError, TypeError):
        raise UserError(
            f"{path} is damaged or of another version of Popdesic; restore it, or add the files "
            "to a new database."
        ) from None


def _profile_names(folder: Path, cohorts: Sequence[str]) -> dict[str, str]:
    """The cohort of every profile of the database."""
    return {
        profile: name
        for name in cohorts
        for profile in read_json(folder / "cohorts" / name / "planes.json")["samples"]
    }


def _require_unchanged(folder: Path, about: dict, folders: Sequence[Path], threads: int) -> None:
    """Raise a UserError if a file of the database is not as it was written."""
    head, _, text = (folder / "sites.tsv").read_text().partition("\n")
    changed = [] if digest(text) == about["sites"] and about["sites"] in head else ["sites.tsv"]
    files = [(place / name,) for place in folders for name in ("planes.npy", "planes.json")]
    sums = run_tasks(lambda path: checksum_of(path) if path.is_file() else "", files, threads)
    known = [told.get(kind) for told in about["cohorts"].values() for kind in ("planes", "names")]
    for (path,), found, told in zip(files, sums, known, strict=True):
        if found != told:
            changed.append(str(path.relative_to(folder)))
    if changed:
        raise UserError(
            f"{folder}: {changed[0]} is not as it was written; restore it, or add the files to a "
            "new database."
        )
