"""Remove a sample, or a cohort, that has left the study from its results (`popdesic forget`).

Results lose an excluded sample when the study runs again, but `raw.bed` and `raw.fam` keep it, so
that its cohort need not be decoded again. They are rewritten here with their dates kept, so that
nothing reruns. Results of other settings (`stale`) never lose it, so they are deleted, as is all
that is left of a cohort. Files that belong to the user are named, never edited.
"""

from __future__ import annotations

import contextlib
import gzip
import html
import json
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from markupsafe import escape

from ..cohort.callable import BLOCKS, load_beside
from ..cohort.ingest import write_about
from ..cohort.samples import departed_cohorts
from ..cohort.sources import source_files
from ..core.errors import UserError, suggestion
from ..core.files import CHECKSUM_BYTES, atomic_path, beside, read_json, record_path
from ..core.tables import read_table
from ..io.bed import open_cohort, read_fam, write_fam
from ..io.listed_rows import RowsFile
from ..io.sites import chunks
from .batches import held_batches, hold_batches
from .configuration import read_config
from .crate import CRATE
from .sheets import Study, cohort_sources
from .snakemake_internals import Job, planned_jobs
from .stale import delete_results, leftovers, outdated_results, stale_results
from .validation import validate_study

#: Folders of a study that may hold names of samples, and files.
SEARCHED = ("results", "logs", "benchmarks", ".snakemake", CRATE)
#: Said before the results that would be deleted, and of them.
STALE = "Results of other settings, which may hold the sample ({count}):"
LISTED = ", and the results listed above would be deleted"
#: Results that name a cohort that was deleted from the sheet.
PAGES = tuple(
    f"results/report/{name}" for name in ("report.html", "summary.json", ".last_summary.json")
)
#: Folders of programs within them.
PROGRAMS = ("conda", "conda-archive", "singularity")
#: Files without text: genotypes as bits. Other arrays are searched if they hold text.
BITS = (".bed", "planes.npy")


def forget_sample(study: Path, name: str, *, yes: bool) -> str:
    """Rewrite the decoded files of a sample's cohort without it; return what was done, as text.

    Parameters
    ----------
    study : Path
    name : str
        A sample whose row of the sheet has ``exclude`` = yes, in a study that has run since.
    yes : bool
        Whether the user has agreed; otherwise nothing is written.

    Raises
    ------
    UserError
        The sample is unknown or not excluded, results still hold it, a run is in progress, or `yes`
        is false, with what would be done.
    """
    study = study.resolve()
    jobs = planned_jobs(study)
    with contextlib.chdir(study):
        config, sheets, _ = validate_study(read_config(), files=False)
        cohort = _cohort_of(sheets, name, config["samples"])
        unit = sheets.unit_of[cohort]
        prefix = Path(f"results/cohorts/{unit}/raw")
        _require_idle(study)
        held = prefix.with_suffix(".fam").is_file() and name in set(read_fam(prefix)["sample"])
        if held and not prefix.with_suffix(".json").is_file():
            raise UserError(
                f"{prefix}.json does not exist, so the cohort is not decoded to its end; run the "
                f"study first (`popdesic run {study}`), which leaves the sample out."
            )
        stale = sorted([*stale_results(Path(), jobs), *leftovers(Path())])
        if held or stale:
            _require_left(unit, name, study, jobs)
        if stale and not yes:
            print("\n".join([STALE.format(count=len(stale)), *(f"  {path}" for path in stale)]))
        if held and not yes:
            raise UserError(
                f"{prefix}.bed would be rewritten without sample '{name}', which only its cohort's "
                f"own file could bring back{LISTED * bool(stale)}; add --yes to do so."
            )
        if stale and not yes:
            raise UserError("the results listed above would be deleted; add --yes to do so.")
        if held:
            rewrite_without(prefix, name)
        delete_results(Path(), stale)
        done = (
            f"Sample '{name}' is removed from {prefix}.bed and .fam."
            if held
            else f"{prefix}.bed does not hold sample '{name}'."
        )
        if stale:
            done += f" {len(stale)} results of other settings, which may hold it, are deleted."
        return "\n".join([done, *_remains(sheets, cohort, name, config["samples"])])


def forget_cohort(study: Path, name: str, *, yes: bool) -> str:
    """Delete all results that hold a cohort whose row was deleted; return what was done, as text.

    These are its own, those that the present sheets do not make, and those of several cohorts that
    the next run makes again. Decoded genotypes of other cohorts stay.

    Raises
    ------
    UserError
        The cohort is in the sheet, nothing of it is left, a run is in progress, or `yes` is false,
        with what would be deleted.
    """
    study = study.resolve()
    with contextlib.chdir(study):
        config, sheets, _ = validate_study(read_config(), files=False)
        shown = config["cohorts"]
        if name in sheets.listed:
            raise UserError(
                f"{shown}: cohort '{name}' is part of the study; delete its row there and those of "
                f"its samples in {config['samples']}, then forget it."
            )
        _require_idle(study)
        held = held_batches(Path())
        unit_of = {cohort: unit for unit, cohorts in held.items() for cohort in cohorts}
        batch = unit_of.get(name, name)
        known = departed_cohorts(Path(), sheets.order)
        known += sorted(set(unit_of) - {*sheets.listed, *known})
        jobs = planned_jobs(study)
        doomed = stale_results(Path(), jobs)
        if (
            batch == name
            and name not in known
            and not any(name in Path(path).parts for path in doomed)
        ):
            raise UserError(f"results hold no cohort '{name}'{suggestion(name, known)}")
        others = tuple(f"results/cohorts/{cohort}/" for cohort in sheets.order if cohort != batch)
        doomed += leftovers(Path())
        doomed += [path for path in outdated_results(Path(), jobs) if not path.startswith(others)]
        doomed += [path for path in PAGES if Path(path).is_file()]  # they name the cohort
        doomed = sorted(set(doomed))
        if not yes:
            print("\n".join(f"  {path}" for path in doomed))
            raise UserError(
                f"the {len(doomed)} results listed above would be deleted, because they may hold "
                f"cohort '{name}'; add --yes to do so."
            )
        delete_results(Path(), doomed)
        hold_batches(Path(), sheets.units)  # without it
        done = (
            f"{len(doomed)} results are deleted, among them all of cohort '{name}'; the next run "
            "makes again what the present sheets ask for."
        )
        return "\n".join([done, *_named(name)])


def _cohort_of(sheets: Study, name: str, shown: str) -> str:
    found = sheets.excluded.cohort[sheets.excluded["sample"] == name]
    if len(found):
        return found.iloc[0]
    if name in set(sheets.samples["sample"]):
        raise UserError(
            f"{shown}: sample '{name}' is part of the study; write yes in the column exclude of "
            "its row, run the study (`popdesic run`), then forget it."
        )
    known = [*sheets.excluded["sample"], *sheets.samples["sample"]]
    raise UserError(f"{shown}: sample '{name}' is not in the sheet{suggestion(name, known)}")


def _require_idle(study: Path) -> None:
    locks = Path(".snakemake/locks")
    if locks.is_dir() and any(locks.iterdir()):
        raise UserError(
            f"a run of {study} is in progress (or was killed: `popdesic run {study} -- --unlock`); "
            "wait until it has ended."
        )


def _require_left(cohort: str, name: str, study: Path, jobs: Sequence[Job]) -> None:
    """Raise if results may still hold the sample: quality control, planes, those of older runs."""
    places = (
        (Path(f"results/qc/{cohort}.samples.tsv"), lambda p: read_table(p)["sample"].tolist()),
        (Path(f"results/cohorts/{cohort}/planes.json"), lambda p: read_json(p)["samples"]),
    )
    for path, names_in in places:
        if path.is_file() and name in names_in(path):
            raise UserError(
                f"{path} still holds sample '{name}': run the study first (`popdesic run "
                f"{study}`), which computes the results without it."
            )
    if old := outdated_results(Path(), jobs):
        raise UserError(
            f"{len(old)} results are out of date and may hold sample '{name}', the first is "
            f"{old[0]}: run the study first (`popdesic run {study}`)."
        )


def rewrite_without(prefix: Path, name: str) -> None:
    """Rewrite what ingest wrote of a cohort without a sample; dates and records are kept.

    That is {prefix}.bed, .fam and .json, and the reference blocks of a gVCF, which are by sample.

    A crash leaves no .json, which a run takes as a cohort that is still to be decoded.
    """
    files = [beside(prefix, end) for end in (".bed", ".fam", ".json")]
    dates = [(path, path.stat()) for path in files]
    records = [(r, r.read_bytes()) for path in files if (r := record_path(path)).is_file()]
    about = read_json(files[2])
    samples = read_fam(prefix)["sample"].drop_duplicates().tolist()  # of polyploids once a layer
    kept = [other for other in samples if other != name]
    blocks = load_beside(prefix, BLOCKS)
    rows, fam = open_cohort(prefix, kept)
    with atomic_path(files[0]) as bed:
        with RowsFile(bed, len(fam)) as file:
            for first, last in chunks(len(rows)):
                file.add(rows[first:last])
        files[2].unlink()  # until it is written again, the cohort counts as not decoded
    write_fam(prefix, fam)
    if blocks is not None:
        blocks = blocks.without_sample(samples.index(name))
        blocks.save(beside(prefix, BLOCKS)) if len(blocks) else beside(prefix, BLOCKS).unlink()
    about.get("removed_calls", {}).pop(name, None)
    write_about(prefix, about)
    for path, content in records:
        path.write_bytes(content)
    for path, before in dates:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _remains(sheets: Study, cohort: str, name: str, shown: str) -> Iterator[str]:
    """Sentences about files that still hold the name of a sample."""
    yield from _named(name)
    sources = ", ".join(f for one in cohort_sources(sheets, cohort) for f in source_files(one))
    yield (
        f"Your own files are not changed. {sources} still has the sample: write it again without "
        f"it (bcftools view --samples ^{name}; plink2 --remove), then delete its row in {shown}; "
        "the cohort is then decoded again. Until then the row keeps the sample out of every run."
    )


def _named(name: str) -> Iterator[str]:
    """Sentences about files that hold a name."""
    found = files_with(Path(), name)
    if found:
        yield f"These files of the study still hold the name; delete or edit them ({len(found)}):"
        yield from (f"  {path}" for path in found)
    else:
        yield f"No file below {', '.join(SEARCHED)} holds the name."


def files_with(study: Path, name: str) -> list[Path]:
    """Files below `SEARCHED` whose name or content has a sample's name, sorted.

    In text the name counts where no letter, digit, `_` or `-` adjoins it, nor a point that a letter
    or digit follows, so that S1 is not found in S10 or S1.2; in file names a point may follow. Text
    within gzip and zip files is searched too, and arrays of text by their entries.
    """
    named, text = _patterns(name)
    found = []
    for top in SEARCHED:
        for path in sorted([study / top, *(study / top).rglob("*")]):
            inside = path.relative_to(study).parts[1:2]
            if set(inside) & set(PROGRAMS) or not path.is_file() or path.is_symlink():
                continue
            if named.search(path.name.encode()) or _holds(path, name, text):
                found.append(path)
    return found


def spellings(name: str) -> list[bytes]:
    """A name as it stands in text, in HTML and in JSON, which escape some letters; longest first.

    HTML is escaped by Python and by Jinja, JSON with and without letters beyond ASCII.
    """
    texts = [html.escape(name), html.escape(name, quote=False), str(escape(name))]
    texts += [json.dumps(name)[1:-1], json.dumps(name, ensure_ascii=False)[1:-1]]
    found = {name.encode(), *(text.encode() for text in texts)}
    return sorted(found, key=lambda text: (-len(text), text))


def _patterns(name: str) -> tuple[re.Pattern, re.Pattern]:
    """Patterns of a name within file names and within text, as bytes."""
    letter = rb"[\w\x80-\xff]"
    whole = b"(?:%b)" % b"|".join(map(re.escape, spellings(name)))
    before, after = rb"(?<!%b)(?<!-)" % letter, rb"(?!%b)(?!-)" % letter
    text = rb"(?<!%b\.)%b%b%b(?!\.%b)" % (letter, before, whole, after, letter)
    return re.compile(before + re.escape(name.encode()) + after), re.compile(text)


def _holds(path: Path, name: str, text: re.Pattern) -> bool:
    if path.name.endswith(BITS):
        return False
    with open(path, "rb") as file:
        start = file.peek(4)[:4]
        if start.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(file) as members:
                return any(_stream_holds(members.open(m), name, text) for m in members.namelist())
        if start.startswith(b"\x1f\x8b"):
            with gzip.open(file) as inner:
                return _stream_holds(inner, name, text)
        return _stream_holds(file, name, text)


def _stream_holds(file: BinaryIO, name: str, text: re.Pattern) -> bool:
    """Whether a stream has the name: as an entry of an array of text, or in any other bytes."""
    before = file.read(len(np.lib.format.MAGIC_PREFIX))
    if before == np.lib.format.MAGIC_PREFIX:
        file.seek(0)
        return _array_holds(file, name)
    # A match counts once what follows it is known; what precedes it is in the overlap.
    overlap, first, more = len(spellings(name)[0]) + 8, True, True
    while more:
        block = file.read(CHECKSUM_BYTES)
        more, known = bool(block), before + block
        last = len(known) - 4 if more else len(known)
        if any((first or m.start() > 1) and m.end() <= last for m in text.finditer(known)):
            return True
        first, before = first and len(known) <= overlap, known[-overlap:]
    return False


def _array_holds(file: BinaryIO, name: str) -> bool:
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0}.get(
        version, np.lib.format.read_array_header_2_0
    )
    if read(file)[2].kind not in "US":
        return False
    file.seek(0)
    entries = np.lib.format.read_array(file)
    return bool((entries == (name if entries.dtype.kind == "U" else name.encode())).any())
