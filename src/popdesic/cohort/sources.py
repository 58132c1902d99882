"""Files of a cohort: one, a list, a pattern, or one a chromosome; and what identifies them.

`genotypes` of a sheet of cohorts names sources: VCF or BCF files, or prefixes of PLINK files.
Nothing compiled is imported here, because each job of the workflow reads the sheets.
"""

from __future__ import annotations

import difflib
import functools
import glob
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..io.errors import UserError
from ..io.files import digest

#: What stands for a chromosome's name in a path: letters, digits, `_` and `-`.
CONTIG = "{contig}"
#: What a glob is recognised by.
GLOB = re.compile(r"[*?]|\[[^\]]+\]")
#: Files that lie beside others of the same name and hold no genotypes.
INDEXES = (".tbi", ".csi")
PLINK_ENDS = (".bed", ".bim", ".fam")
#: Chromosomes without a number, in the order and by the numbers that PLINK gives them.
LETTERS = {"X": "23", "Y": "24", "XY": "25", "M": "26", "MT": "26"}
_LETTER = re.compile(r"(?:(?<=chr)|(?<![A-Za-z0-9]))(XY|MT|X|Y|M)(?![A-Za-z0-9])", re.IGNORECASE)
#: A folder that changed so many nanoseconds ago is listed again.
RECENT_NS = 2 * 10**9
#: Names of a folder that a sentence about a missing file lists at most.
N_NEARBY = 3


def natural_order(path: str) -> tuple:
    """Key that sorts paths by the numbers in them: chr2 before chr10, then chrX, chrY, chrMT."""
    numbered = _LETTER.sub(lambda found: LETTERS[found[1].upper()], path)
    pieces = re.split(r"(\d+)", numbered)
    return tuple(int(p) if k % 2 else p for k, p in enumerate(pieces)), path


def expand_sources(text: str, folder: Path = Path()) -> list[str]:
    """The sources that `genotypes` of a sheet of cohorts names, in natural order.

    A file (or PLINK prefix) of exactly this name is meant before anything else; then commas
    separate sources, `{contig}` stands for a chromosome's name (the same wherever it comes again
    in a path), and `*`, `?` and `[...]` are those of a shell. Of PLINK files the .bed stands for
    all three; indexes (.tbi, .csi) match no pattern.

    Parameters
    ----------
    text : str
        As in the sheet.
    folder : Path
        The study's folder, which paths are relative to.

    Returns
    -------
    list of str
        At least one; relative to `folder` as the text is. A path without a pattern is given as it
        stands, whether it exists or not.

    Raises
    ------
    UserError
        A pattern matches no file, or a comma has nothing before or after it.
    """
    if _exists(folder / text):
        return [text]
    found: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        if not part:
            raise UserError(
                f"genotypes '{text}' has a comma without a path on both sides; take it out."
            )
        if _exists(folder / part) or not (CONTIG in part or GLOB.search(part)):
            found.append(part)
            continue
        matched = _matching(part, folder)
        if not matched:
            raise UserError(f"genotypes '{part}' matches no file{nearby(folder, part)}")
        found += matched
    return sorted(dict.fromkeys(found), key=natural_order)


def _exists(path: Path) -> bool:
    try:
        return path.exists() or Path(f"{path}.bed").exists()
    except (OSError, ValueError):  # longer than a name may be, or with a zero byte
        return False


def _matching(pattern: str, folder: Path) -> list[str]:
    """Sources of a folder that a pattern matches; PLINK files by their .bed."""
    for tried in (pattern, f"{pattern}.bed"):
        names = _candidates(tried, folder)
        whole = re.compile(_regex(tried))
        names = [name for name in names if whole.fullmatch(name)]
        beds = {name.removesuffix(".bed") for name in names if name.endswith(".bed")}
        names = [
            name
            for name in names
            if not name.endswith(INDEXES)
            and not (name.endswith(PLINK_ENDS[1:]) and name[:-4] in beds)
            and not (folder / name).is_dir()
        ]
        if names:
            return names
    return []


def _candidates(pattern: str, folder: Path) -> list[str]:
    """Paths among which are all that a pattern matches."""
    parent, slash, name = pattern.rpartition("/")
    if CONTIG in parent or GLOB.search(parent):
        # Path.glob takes no absolute pattern, and hidden files.
        return glob.glob(pattern.replace(CONTIG, "*"), root_dir=folder)  # noqa: PTH207
    at = folder / (parent + slash)
    try:
        changed = at.stat().st_mtime_ns
    except OSError:
        return []
    # Many cohorts share a folder of very many files. One that has just changed may change again.
    listing = _sorted_names if time.time_ns() - changed > RECENT_NS else _sorted_names.__wrapped__
    names = listing(at, changed)
    start = re.split(r"[{*?[]", name, maxsplit=1)[0]
    first, last = bisect_left(names, start), bisect_right(names, start + chr(0x10FFFF))
    return [f"{parent}{slash}{other}" for other in names[first:last]]


@functools.lru_cache(maxsize=64)
def _sorted_names(folder: Path, changed: int) -> list[str]:
    """Names in a folder that was last changed then, without hidden ones."""
    try:
        return sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError:
        return []


def _regex(pattern: str) -> str:
    """A pattern of a shell with `{contig}` as a regular expression."""
    text, contig = "", "(?P<contig>[A-Za-z0-9_-]+)"
    for piece in re.split(r"(\{contig\}|[*?]|\[[^\]]+\])", pattern):
        if piece == CONTIG:
            text, contig = text + contig, "(?P=contig)"
        elif piece in ("*", "?"):
            text += "[^/]*" if piece == "*" else "[^/]"
        elif GLOB.fullmatch(piece):
            text += "[" + piece[1:-1].replace("\\", r"\\").replace("!", "^", piece[1] == "!") + "]"
        else:
            text += re.escape(piece)
    return text


def nearby(folder: Path, path: str) -> str:
    """The end of a sentence about a missing path: what there is in its place.

    Looks in the folder of the path; where that is missing too, in the first one above it that
    exists.
    """
    *parents, name = Path(path).parts or (path,)
    at = Path(*parents[:1]) if Path(path).is_absolute() else Path()
    for parent in parents[1:] if Path(path).is_absolute() else parents:
        if not (folder / at / parent).is_dir():
            name = parent
            break
        at = at / parent
    try:
        names = (entry.name for entry in (folder / at).iterdir())
        there = sorted(name for name in names if not name.startswith("."))
    except OSError:
        there = []
    if not there:
        return "; correct the path (relative to the study folder)."
    near = difflib.get_close_matches(name, there, n=N_NEARBY, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(repr(str(at / word)) for word in sorted(near))}?"
    more = ", …" if len(there) > N_NEARBY else ""
    listed = ", ".join(map(repr, there[:N_NEARBY]))
    place = f"the folder '{at}'" if at.parts else "the study folder"
    return f"; {place} holds {listed}{more}, so correct the path."


def source_files(source: str | Path) -> list[str]:
    """Files of one source: a VCF or BCF, or the three of PLINK."""
    from ..io.plink import plink_prefix  # jobs that only plan do without it

    source = str(source)
    prefix = plink_prefix(source)
    return [source] if prefix is None else [f"{prefix}{end}" for end in PLINK_ENDS]


def read_names(sources: Sequence[str], folder: Path = Path()) -> list[str]:
    """The sample names of sources that hold the same ones, in the order of the files.

    Raises
    ------
    UserError
        A source is missing, has braces in its name or cannot be read, or does not hold the first
        one's samples in the same order.
    """
    from ..io.vcf_header import read_sample_names

    names: list[str] = []
    for source in sources:
        if not _exists(folder / source):
            raise UserError(f"{source} does not exist{nearby(folder, source)}")
        if "{" in source or "}" in source:
            raise UserError(
                f"genotypes '{source}' is a file with braces in its name, which Snakemake takes "
                "for a placeholder; rename it, or give a link to it that has none."
            )
        found = read_sample_names(folder / source)
        if source != sources[0]:
            require_same_samples(sources[0], names, source, found)
        names = names or found
    return names


def require_same_samples(
    first: str | Path, expected: Sequence[str], source: str | Path, found: Sequence[str]
) -> None:
    """Raise a UserError that names the first sample by which two files of a cohort differ."""
    if list(expected) == list(found):
        return
    pairs = enumerate(zip(expected, found, strict=False), start=1)
    differing = next(((k, a, b) for k, (a, b) in pairs if a != b), None)
    if differing is None:
        what = f"has {len(found)} samples where {first} has {len(expected)}"
    else:
        number, wanted, given = differing
        what = f"has '{given}' as sample {number} where {first} has '{wanted}'"
    raise UserError(
        f"{source} {what}, but all files of a cohort hold the same samples in the same order; "
        "subset or reorder its samples, or make it a cohort of its own."
    )


def names_key(names: Iterable[str]) -> str:
    """Changes exactly when a set of sample names changes."""
    return digest("\n".join(sorted(names)))


def source_key(sources: Sequence[str]) -> str:
    """Changes when a source is replaced: sizes, dates and sample names of its files.

    The content itself is not read, which would take as long as decoding it. A file with the same
    content under another date counts as replaced.
    """
    return digest("\n".join([file_key(_files(sources)), *read_names(sources)]))


def file_key(paths: Iterable[str | Path]) -> str:
    """Changes when one of these files is replaced: sizes and dates; empty where there is none."""
    found = [Path(path).stat() for path in paths]
    return digest("\n".join(f"{f.st_size} {f.st_mtime_ns}" for f in found)) if found else ""


def _files(sources: Sequence[str]) -> list[str]:
    return [path for source in sources for path in source_files(source)]
