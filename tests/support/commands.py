"""Extract the commands that the documentation shows.

A command is a line of a code block (fenced, or indented by four spaces) in which some line begins
with a program name, or inline code that begins with a program name and has arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: First words that make a line a command. Programs that pages only mention are listed too: they
#: need an entry in the tests' table like all others.
PROGRAMS = (
    *("make", "snakemake", "popdesic", "python", "python3", "pytest", "pip", "uv", "conda"),
    *("snakedeploy", "buildah", "apptainer"),
    *("apt-get", "sudo", "git", "ruff", "snakefmt", "bash", "sh", "nvcc", "chromium"),
    *("export", "cd", "mkdir", "ln", "cp", "mv", "rm", "cat", "head", "tail", "grep", "awk", "sed"),
    *("cut", "sort", "column", "less", "zcat", "gunzip", "open"),
    *("sbatch", "srun", "squeue", "scontrol", "scancel", "sinfo"),
    *("plink", "plink1.9", "plink2", "bcftools", "bgzip", "tabix", "beagle", "vcztools"),
)
STARTS = re.compile(
    rf"(?:\$ )?(?:\.venv/bin/\S+|envs/\S+\.sh|(?:tests/bench/)?bench_\w+\.py|"
    rf"[A-Z_]+=\S+ \S+|{'|'.join(map(re.escape, PROGRAMS))})(?= |$)"
)
#: Languages of fenced blocks that hold commands.
SHELLS = ("", "sh", "bash", "shell", "console")
FENCE = re.compile(r" {0,3}```(.*)")
INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")


@dataclass(frozen=True)
class Shown:
    """A command as shown on a page: where, its text, and whether it is in a block."""

    page: str
    line: int
    text: str
    block: bool

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def pages(root: Path = ROOT) -> list[Path]:
    """The pages that show commands, in reading order."""
    named = ["README.md", "config/README.md", "CONTRIBUTING.md", "kernels/README.md"]
    named += ["tests/bench/README.md", "resources/example/README.md"]
    return [*(root / name for name in named), *sorted((root / "docs").glob("*.md"))]


def without_comment(line: str) -> str:
    """A line of shell without its trailing comment."""
    return re.sub(r"(^|\s)#\s.*$", "", line).strip().removeprefix("$ ")


def commands_of_block(lines: list[tuple[int, str]], page: str) -> list[Shown]:
    """All lines of a block if one of them begins with a program: such a block is run whole."""
    typed = [(number, without_comment(line)) for number, line in lines]
    if not any(STARTS.match(line) for _, line in typed):
        return []
    return [Shown(page, number, line, True) for number, line in typed if line]


def split(text: str) -> tuple[list[list[tuple[int, str]]], list[tuple[int, str]]]:
    """Blocks that may hold commands, each with its numbered lines, and the lines of running text.

    Fenced blocks qualify without a language or with a shell's name, indented ones after an empty
    line.
    """
    blocks: list[list[tuple[int, str]]] = [[]]
    prose: list[tuple[int, str]] = []
    language: str | None = None  # of the current fenced block
    above, indented = "", False
    for number, line in enumerate(text.splitlines(), 1):
        if fence := FENCE.match(line):
            language = fence[1].strip() if language is None else None
            blocks.append([])
            indented = False
        elif language is not None:
            if language in SHELLS:
                blocks[-1].append((number, line))
        elif line.startswith("    ") and (indented or not above.strip()):
            blocks[-1].append((number, line))
            indented = True
        else:
            blocks.append([])
            prose.append((number, line))
            indented = False
        above = line
    return blocks, prose


def extract(text: str, page: str) -> list[Shown]:
    """All commands of one page of Markdown, from top to bottom."""
    blocks, prose = split(text)
    found = [shown for block in blocks for shown in commands_of_block(block, page)]
    # Inline code may continue on the next line, so each line's number is appended to it.
    joined = "".join(f"{line}\0{number}\n" for number, line in prose)
    for match in INLINE.finditer(joined):
        words = re.sub(r"\0\d+\n", " ", match[1]).split()
        command, number = " ".join(words), joined[: match.start()].count("\n")
        if len(words) > 1 and STARTS.match(command):
            found.append(Shown(page, prose[number][0], command, False))
    return sorted(found, key=lambda shown: (shown.line, not shown.block))


def shown_commands(root: Path = ROOT) -> list[Shown]:
    """All commands of all pages."""
    return [
        shown
        for path in pages(root)
        for shown in extract(path.read_text("utf-8"), str(path.relative_to(root)))
    ]


if __name__ == "__main__":
    print(*shown_commands(), sep="\n")
