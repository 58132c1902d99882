"""Keep Snakemake's records beside the results, so that both are copied together.

Snakemake records in `.snakemake` with which parameters each result was made, including digests of
sheet rows, and recomputes the result if they have changed. Without that folder, copied results
would look up to date whatever the sheets say. Each record is therefore also stored beside its
result (`.NAME.record`) and restored to `.snakemake` if it is missing there. A result without any
record is recomputed.

`files.atomic_path` removes the record when it writes a result, and the record is stored again after
Snakemake has recorded the job. A record therefore always describes the content beside it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import zlib
from collections.abc import Callable
from pathlib import Path

from ..core.errors import UserError
from ..core.files import record_path, walk_results
from .snakemake_internals import (
    INCOMPLETE,
    METADATA,
    RecordNames,
    record_of,
    snakemake_path,
    write_record,
)

#: Stands for the parameters of a result that has no record.
UNKNOWN = ["made by an unknown run"]
#: The same random number in both files marks results and a .snakemake folder as belonging together.
RESULTS_TOKEN, SNAKEMAKE_TOKEN = Path("results/.study"), Path(".snakemake/popdesic.study")


#: Folders of a study that a run writes to, where they are there already.
WRITTEN = ("", ".snakemake", ".snakemake/locks", "results", "logs", "benchmarks")


def require_writable(study: Path) -> None:
    """Refuse to plan or run a study whose folder this user cannot write.

    Raises
    ------
    UserError
        The study lies on a read-only file system, or a folder of it belongs to another user.
    """
    for name in WRITTEN:
        folder = (study / name).resolve()
        if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            raise UserError(
                f"{folder} cannot be written, but a run and its plan keep records there; work on "
                "a copy of the study that is yours (`cp -r`), or ask its owner for permission."
            )


def exchange_records(study: Path, rule_of: Callable[[str], str | None]) -> list[str]:
    """Synchronise Snakemake's records with those beside the results.

    Parameters
    ----------
    study : Path
        Folder in which Snakemake runs.
    rule_of : function
        Maps a file in `results` to the name of the rule that makes it, or None.

    Returns
    -------
    list of str
        Results that will be recomputed because they have no record.

    Raises
    ------
    UserError
        Snakemake's folder cannot be written.
    """
    if not (study / "results").is_dir():
        return []
    try:
        known, running = RecordNames(study, METADATA), RecordNames(study, INCOMPLETE)
        foreign = _belongs_to_other_results(study)
        unknown, changed = [], False
        for folder, names, hidden in walk_results(study / "results"):
            place = Path(folder).relative_to(study).as_posix()
            for name in names:  # strings, not Paths: there may be 100 000, most need no change
                result = f"{place}/{name}"
                if result in known and not foreign and f".{name}.record" in hidden:
                    continue
                if result in running:  # its record is about to change
                    continue
                if result in known and not foreign:
                    # A rule of an earlier version may have made what is now written beside results.
                    changed |= rule_of(result) is not None and _copy_record(study, result)
                elif (text := read_kept_record(study / result)) is not None:
                    write_record(study, result, text)
                elif rule := rule_of(result):
                    write_record(study, result, record_of(rule, UNKNOWN))
                    unknown.append(result)
        _write_tokens(study, changed)
    except OSError as error:
        raise UserError(
            f"{study / '.snakemake'} cannot be written ({error.strerror}); run as the owner of the "
            "study, or work on a copy of it."
        ) from None
    return unknown


def forget_record(study: Path, result: str, rule: str) -> None:
    """Replace the record of a result by that of an unknown run, so that it is made again."""
    write_record(study, result, record_of(rule, UNKNOWN))


def _copy_record(study: Path, result: str) -> bool:
    """Store Snakemake's record of a result beside the result; return whether it was stored."""
    path = record_path(study / result)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    text = snakemake_path(study, METADATA, result).read_text("utf-8")
    with contextlib.suppress(json.JSONDecodeError):  # Snakemake may be writing it just now
        if json.loads(text).get("params") != UNKNOWN:
            # Another user's results may be read-only; their records stay as they are.
            with contextlib.suppress(PermissionError):
                temporary.write_text(f"{zlib.crc32(text.encode()):08x}\n{text}", "utf-8")
                temporary.replace(path)
                return True
    return False


def read_kept_record(result: Path) -> str | None:
    """The record beside a result; None if it is missing or damaged."""
    try:
        checksum, _, text = record_path(result).read_text("utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return text if checksum == f"{zlib.crc32(text.encode()):08x}" else None


def _belongs_to_other_results(study: Path) -> bool:
    """Whether the .snakemake folder belongs to other results than these."""
    if not (study / RESULTS_TOKEN).is_file():
        return False
    return _read(study / SNAKEMAKE_TOKEN) != _read(study / RESULTS_TOKEN)


def _write_tokens(study: Path, changed: bool) -> None:
    """Mark the results and the .snakemake folder as belonging together.

    If records have changed, both get a new number. Older results that a user puts back then have
    another number than .snakemake, and their own records are restored.
    """
    token = _read(study / RESULTS_TOKEN)
    if changed:
        try:
            token = secrets.token_hex(8)
            (study / RESULTS_TOKEN).write_text(token)
        except PermissionError:
            return
    if token and _read(study / SNAKEMAKE_TOKEN) != token:
        (study / SNAKEMAKE_TOKEN).parent.mkdir(exist_ok=True)
        (study / SNAKEMAKE_TOKEN).write_text(token)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
