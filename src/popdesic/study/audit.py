"""Compare results with the checksums of when they were written (`popdesic audit`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ..io.errors import UserError
from ..io.files import checksum_of, checksum_path, record_path, result_files
from ..io.places import HOME, SNAKEFILE
from .records import read_kept
from .snakemake_internals import read_record

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
        Path and damage of each result that differs from what was written or has no checksum.
        Deleted results are not listed: Snakemake makes them again when they are needed.
    n_read : int
        Results that were verified.
    """
    found, n_read = [], 0
    panel = _panel_digest(study / PANEL)
    sound = bool(panel) and not _damage(study / PANEL, panel)
    for path in result_files(below or study / "results"):
        n_read += 1
        # A damaged panel file does not say which panel the results should carry.
        if reason := _damage(path, panel if sound or path == study / PANEL else ""):
            found.append((str(path.relative_to(study)), reason))
    return found, n_read


def _panel_digest(path: Path) -> str:
    """Digest in the first line of the study's panel; empty where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            words = lines.readline().replace(",", " ").split()
    except FileNotFoundError:
        return ""
    return words[2] if words[:2] == ["#", "panel"] and len(words) > 2 else ""


def _damage(path: Path, panel: str) -> str:
    """How a result is damaged, or which other panel it was made with; empty if it is sound."""
    kept = checksum_path(path)
    try:
        text = kept.read_text("utf-8", "replace")
    except FileNotFoundError:
        return f"its checksum, {kept.name}, is missing"
    now = checksum_of(path)
    written = text.split()
    if len(written) not in (2, 3):  # CRC-32, size, digest of the panel
        return f"its checksum, {kept.name}, is damaged"
    if written[1] != now.split()[1]:
        return f"{now.split()[1]} bytes where {written[1]} were written"
    if written[:2] != now.split() or not text.endswith("\n"):
        return "its content does not match its checksum"
    if panel and written[2:] not in ([], [panel]):
        return f"it was made with the panel {written[2]}, and the study has the panel {panel}"
    if record_path(path).exists() and read_kept(path) is None:
        return f"the record of what it was made of, {record_path(path).name}, is damaged"
    return ""


def audit(study: Path, repair: bool, arguments: list[str]) -> int:
    """Name damaged results; with `repair`, compute them and all that follows from them again.

    `arguments` go to Snakemake; without `--cores` or `--profile` among them it is `--cores all`.

    Raises
    ------
    UserError
        Results are damaged and nothing was asked to be done.
    """
    if not (study / "results").is_dir():
        raise UserError(f"{study} has no results yet; there is nothing to audit.")
    damaged, n_read = damaged_files(study)
    for path, reason in damaged:
        print(f"{path}: {reason}")
    if not damaged:
        print(f"{n_read} results match their checksums.")
        return 0
    if not repair:
        raise UserError(
            f"{len(damaged)} of {n_read} results of {study} are damaged, the first is "
            f"{damaged[0][0]}; `popdesic audit --repair {study}` computes them and what follows "
            "from them again."
        )
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE)]
    words += ["--directory", str(study.resolve()), *arguments]
    if not {"--cores", "-c", "--profile"} & {word.partition("=")[0] for word in arguments}:
        words += ["--cores", "all"]
    forced = [
        "--forcerun",
        *dict.fromkeys(o for path, _ in damaged for o in _made_with(study, path)),
    ]
    return subprocess.run([*words, *forced], cwd=HOME).returncode


def _made_with(study: Path, path: str) -> list[str]:
    """Outputs that Snakemake must rebuild to restore a result.

    That is the result itself if it is the output of a rule. Files that a job leaves beside its
    outputs are restored with the outputs in their folder.

    Raises
    ------
    UserError
        Snakemake knows nothing there.
    """

    def known(result: str) -> bool:
        return bool(read_record(study, result) or read_kept(study / result))

    if known(path):
        return [path]
    beside = (study / path).parent.iterdir()
    made = [o for other in sorted(beside) if known(o := str(other.relative_to(study)))]
    if not made:
        raise UserError(
            f"{path}: no rule is known to have made it; move it out of results, or delete it so "
            "that it is made again where it is needed."
        )
    return made
