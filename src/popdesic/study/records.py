"""Records of what results were made of travel with the results.

Snakemake remembers in `.snakemake` which parameters, rows of the sheets among them, each result was
made with, and computes it again where they differ from those of today. Results that were copied
without that folder would pass for up to date whatever the sheets say. So the records are kept
beside the results as well (`.NAME.record`), and given back to Snakemake where it has none. A result
that nobody has a record of is computed again.

A record is removed when its result is written (`files.atomic_path`) and comes back when the job is
recorded, so that it always belongs to the content beside it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import zlib
from collections.abc import Callable
from pathlib import Path

from ..io.errors import UserError
from ..io.files import record_path, walk_results
from .snakemake_internals import (
    INCOMPLETE,
    METADATA,
    RecordNames,
    record_of,
    snakemake_path,
    write_record,
)

#: Instead of the parameters of a result of which nobody knows them.
UNKNOWN = ["made by an unknown run"]
#: Mark results and Snakemake's folder that belong together, by the same random number.
RESULTS_TOKEN, SNAKEMAKE_TOKEN = Path("results/.study"), Path(".snakemake/popdesic.study")


def exchange_records(study: Path, rule_of: Callable[[str], str | None]) -> list[str]:
    """Bring Snakemake's records of the results and those beside the results to one state.

    Parameters
    ----------
    study : Path
        Folder in which Snakemake runs.
    rule_of : function
        Name of the rule that makes a file of `results`, None where none does.

    Returns
    -------
    list of str
        Results that will be computed again because nobody knows what they were made of.

    Raises
    ------
    UserError
        Snakemake's folder cannot be written.
    """
    if not (study / "results").is_dir():
        return []
    try:
        known, running = RecordNames(study, METADATA), RecordNames(study, INCOMPLETE)
        strangers = _other_results(study)
        unknown, changed = [], False
        for folder, names, hidden in walk_results(study / "results"):
            place = Path(folder).relative_to(study).as_posix()
            for name in names:  # as text: there may be 100 000, and most are in order
                result = f"{place}/{name}"
                if result in known and not strangers and f".{name}.record" in hidden:
                    continue
                if result in running:  # what is known of it is about to change
                    continue
                if result in known and not strangers:
                    changed |= _keep(study, result)
                elif (text := read_kept(study / result)) is not None:
                    write_record(study, result, text)
                elif rule := rule_of(result):
                    write_record(study, result, record_of(rule, UNKNOWN))
                    unknown.append(result)
        _belong_together(study, changed)
    except OSError as error:
        raise UserError(
            f"{study / '.snakemake'} cannot be written ({error.strerror}); run as the owner of the "
            "study, or copy it."
        ) from None
    return unknown


def _keep(study: Path, result: str) -> bool:
    """Copy Snakemake's record of a result to the result; return whether there is one to copy."""
    path = record_path(study / result)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    text = snakemake_path(study, METADATA, result).read_text("utf-8")
    with contextlib.suppress(json.JSONDecodeError):  # one that is being written
        if json.loads(text).get("params") != UNKNOWN:
            # Another user's results may be read alone: their records stay as they are.
            with contextlib.suppress(PermissionError):
                temporary.write_text(f"{zlib.crc32(text.encode()):08x}\n{text}", "utf-8")
                temporary.replace(path)
                return True
    return False


def read_kept(result: Path) -> str | None:
    """The record beside a result; None where there is none or it is damaged."""
    try:
        checksum, _, text = record_path(result).read_text("utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return text if checksum == f"{zlib.crc32(text.encode()):08x}" else None


def _other_results(study: Path) -> bool:
    """Whether Snakemake's folder is there for other results than these."""
    if not (study / RESULTS_TOKEN).is_file():
        return False
    return _read(study / SNAKEMAKE_TOKEN) != _read(study / RESULTS_TOKEN)


def _belong_together(study: Path, changed: bool) -> None:
    """Note that Snakemake's records are those of these results: by a new number where they changed.

    So older results that are put back are known for what they are.
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
