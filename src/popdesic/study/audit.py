"""Verify results against the checksums stored when they were written (`popdesic audit`)."""

from __future__ import annotations

from pathlib import Path

from ..core.errors import UserError
from ..core.files import checksum_of, checksum_path, kept_checksum, record_path, result_files
from ..io.bed import changed_source
from .records import read_kept_record
from .run import run_study
from .snakemake_internals import read_record
from .stale import DECODED, audit_stale

PANEL = "results/panel/sites.tsv"


def damaged_files(study: Path, below: Path | None = None) -> tuple[list[tuple[str, str]], int]:
    """Verify results against their checksums.

    Parameters
    ----------
    below : Path, optional
        Verify only the results in this folder.

    Returns
    -------
    damaged : list of (str, str)
        Path of each result that has changed since it was written or has no checksum, and what is
        wrong with it. Deleted results are not listed: Snakemake recreates them when needed.
    n_read : int
        Number of results verified.
    """
    found, n_read = [], 0
    panel_file = study / PANEL
    panel = _panel_digest(panel_file)
    panel_damage = _damage(panel_file, panel) if panel else ""
    # A damaged panel file does not say which panel the results should carry.
    expected = "" if panel_damage else panel
    for path in result_files(below or study / "results"):
        n_read += 1
        is_panel = panel and path == panel_file
        if reason := panel_damage if is_panel else _damage(path, expected):
            found.append((str(path.relative_to(study)), reason))
    return found, n_read


def _panel_digest(path: Path) -> str:
    """Digest in the first line of the panel file; empty if there is no file or no digest."""
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            words = lines.readline().replace(",", " ").split()
    except FileNotFoundError:
        return ""
    return words[2] if words[:2] == ["#", "panel"] and len(words) > 2 else ""


def _damage(path: Path, panel: str) -> str:
    """Describe what is wrong with a result, or with which other panel it was made; else ""."""
    kept, written = checksum_path(path), kept_checksum(path)
    if not written:
        return f"its checksum, {kept.name}, is {'damaged' if kept.exists() else 'missing'}"
    now = checksum_of(path).split()
    if written[1] != now[1]:
        return f"it has {now[1]} bytes, but {written[1]} were written"
    if written[:2] != now:
        return "its content does not match its checksum"
    if panel and written[2:] not in ([], [panel]):
        return f"it was made with the panel {written[2]}, but the study has the panel {panel}"
    if record_path(path).exists() and read_kept_record(path) is None:
        return f"its record, {record_path(path).name}, is damaged"
    if path.suffix == ".bed" and (wrong := changed_source(path, read=True)):
        return f"it {wrong}"
    return ""


def audit(study: Path, repair: bool, arguments: list[str], *, remove_stale: bool = False) -> int:
    """Print damaged results; with `repair`, recompute them and everything that depends on them.

    Results of other settings are printed too, and deleted with `remove_stale`. `arguments` are
    passed to Snakemake, as in `run_study`.

    Raises
    ------
    UserError
        There are no results, or some are damaged and `repair` is false.
    """
    if not (study / "results").is_dir():
        raise UserError(f"{study} has no results yet, so there is nothing to audit.")
    stale = audit_stale(study.resolve(), remove=remove_stale)
    damaged, n_read = damaged_files(study)
    # Nothing reads these, and nothing can make them again: they may be of an older panel.
    damaged, n_read = [one for one in damaged if one[0] not in stale], n_read - len(stale)
    for path, reason in damaged:
        print(f"{path}: {reason}")
    if not damaged:
        print(f"{n_read} results match their checksums.")
        return 0
    if not repair:
        raise UserError(
            f"{len(damaged)} of {n_read} results of {study} are damaged, the first is "
            f"{damaged[0][0]}; `popdesic audit --repair {study}` recomputes them and everything "
            "that depends on them."
        )
    forced = dict.fromkeys(o for path, _ in damaged for o in _made_with(study, path))
    return run_study(study, (), [*arguments, "--forcerun", *forced])


def _made_with(study: Path, path: str) -> list[str]:
    """Outputs that Snakemake must rebuild to restore a result.

    If the result is a rule's output, that is the result itself. Otherwise a job left it beside its
    outputs, and all outputs in the same folder are rebuilt.

    Raises
    ------
    UserError
        Neither the result nor any file in its folder is the output of a rule.
    """

    def known(result: str) -> bool:
        return bool(read_record(study, result) or read_kept_record(study / result))

    about = str(Path(path).with_name("raw.json"))
    if Path(path).name in DECODED and known(about):  # its own record is of an earlier version
        return [about]
    if known(path):
        return [path]
    beside = (study / path).parent.iterdir()
    made = [o for other in sorted(beside) if known(o := str(other.relative_to(study)))]
    if not made:
        raise UserError(
            f"{path}: no record says which rule made it; move it out of results, or delete it so "
            "that it is recreated if needed."
        )
    return made
