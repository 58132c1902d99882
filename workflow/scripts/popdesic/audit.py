"""Compare results with the checksums of when they were written (`popdesic audit`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .errors import UserError
from .store import checksum_of

ROOT = Path(__file__).resolve().parents[3]
SUFFIX = ".crc32"


def damaged_files(study: Path) -> tuple[list[tuple[str, str]], int]:
    """Results that are not what was written, each with what is wrong; and how many were read.

    A result that is gone is none of them: Snakemake makes it again where it is needed.
    """
    found, n_read = [], 0
    for kept in sorted((study / "results").rglob(f".*{SUFFIX}")):
        path = kept.with_name(kept.name[1 : -len(SUFFIX)])
        if not path.is_file():
            continue
        n_read += 1
        written, now = kept.read_text().split(), checksum_of(path).split()
        if len(written) != 2:
            continue  # a checksum that was cut off says nothing of its file
        shown = str(path.relative_to(study))
        if written[1] != now[1]:
            found.append((shown, f"{now[1]} bytes where {written[1]} were written"))
        elif written != now:
            found.append((shown, "its content is not what was written"))
    return found, n_read


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
        print(f"{n_read} results are what was written.")
        return 0
    if not repair:
        raise UserError(
            f"{len(damaged)} of {n_read} results of {study} are damaged, the first is "
            f"{damaged[0][0]}; `popdesic audit --repair {study}` computes them and what follows "
            "from them again."
        )
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    words += ["--directory", str(study.resolve()), *arguments]
    if not {"--cores", "-c", "--profile"} & {word.partition("=")[0] for word in arguments}:
        words += ["--cores", "all"]
    forced = ["--forcerun", *(path for path, _ in damaged)]
    return subprocess.run([*words, *forced], cwd=ROOT).returncode
