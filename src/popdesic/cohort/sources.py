"""Genotype files of a cohort: one, a list, a pattern, or one per chromosome; and their keys.

The column `genotypes` of the cohort sheet names sources: VCF or BCF files, prefixes of
PLINK or EIGENSTRAT files, or VCF-Zarr, also by an address in an object store (`io.remote`).
Nothing compiled is imported here, because each job of the workflow reads the sheets.
"""

from __future__ import annotations

import difflib
import functools
import glob
import os
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..core.errors import UserError
from ..core.files import FOLDER_STAMP, digest
from ..io.formats import PREFIXES, TREES, find_format, is_zarr, read_sample_names
from ..io.remote import Remote, is_remote, list_anew, list_objects, located
from ..io.trees import names_contig
from .impute import no_file, uses_method

#: Placeholder for a chromosome name in a path: letters, digits, `_` and `-`.
CONTIG = "{contig}"
#: Wildcards of a glob.
GLOB = re.compile(r"[*?]|\[[^\]]+\]")
#: Suffixes of index files, which contain no genotypes.
INDEXES = (".tbi", ".csi")
#: Suffixes that a prefix may lack.
PREFIX_ENDS = tuple(end for end, *_ in PREFIXES.values())
#: PLINK's numbers of chromosomes named by letters.
LETTERS = {"X": "23", "Y": "24", "XY": "25", "M": "26", "MT": "26"}
_LETTER = re.compile(r"(?:(?<=chr)|(?<![A-Za-z0-9]))(XY|MT|X|Y|M)(?![A-Za-z0-9])", re.IGNORECASE)
#: A folder that changed within this many nanoseconds is listed again.
RECENT_NS = 2 * 10**9
#: Most names that an error about a missing file lists.
N_NEARBY = 3


def natural_order(path: str) -> tuple:
    """Return a natural sort key: chr2 before chr10, then chrX, chrY, chrMT."""
    numbered = _LETTER.sub(lambda found: LETTERS[found[1].upper()], path)
    pieces = re.split(r"(\d+)", numbered)
    return tuple(int(p) if k % 2 else p for k, p in enumerate(pieces)), path


def expand_sources(text: str, folder: Path = Path()) -> list[str]:
    """Return the sources named by `genotypes` in the cohort sheet, in natural order.

    A file (or prefix) with exactly this name takes precedence. Otherwise commas separate
    sources, `{contig}` stands for a chromosome name (the same at each place in a path), and `*`,
    `?` and `[...]` are shell wildcards. Files of a prefix match by their .bed, .pgen or .geno;
    index files (.tbi, .csi) never match.

    Parameters
    ----------
    text : str
        The cell of the sheet.
    folder : Path
        The study folder; paths are relative to it.

    Returns
    -------
    list of str
        At least one source, relative to `folder`. A path without a pattern is returned unchanged,
        whether it exists or not.

    Raises
    ------
    UserError
        A pattern matches no file, or a path before or after a comma is empty.
    """
    if _exists(folder / text):
        return [text]
    found: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        if not part:
            raise UserError(
                f"genotypes '{text}' has a comma without a path on both sides; remove it."
            )
        if _exists(folder / part) or not (CONTIG in part or GLOB.search(part)):
            found.append(part)
            continue
        if is_remote(part):
            raise UserError(
                f"genotypes '{part}' is a pattern, and these are only for files on disk; list the "
                "addresses, separated by commas."
            )
        matched = _matching(part, folder)
        if not matched:
            raise UserError(f"genotypes '{part}' matches no file{nearby(folder, part)}")
        found += matched
    return sorted(dict.fromkeys(found), key=natural_order)


def copied_files(impute: dict, folder: Path = Path()) -> list[str]:
    """Files of the reference that a study copies from, relative to its folder; else none.

    Raises
    ------
    UserError
        No file is there.
    """
    if not (uses_method(impute, "copying") and impute["reference"]):
        return []
    try:
        return expand_sources(impute["reference"], folder)
    except UserError:
        raise no_file("impute.reference", impute["reference"]) from None


def _exists(path: Path) -> bool:
    try:
        return path.exists() or any(Path(f"{path}{end}").exists() for end in PREFIX_ENDS)
    except (OSError, ValueError):  # the name is too long or has a zero byte
        return False


def _matching(pattern: str, folder: Path) -> list[str]:
    """Return the sources that match a pattern; a prefix by its file of genotypes."""
    for tried in (pattern, *(f"{pattern}{end}" for end in PREFIX_ENDS)):
        names = _candidates(tried, folder)
        whole = re.compile(_regex(tried))
        names = [name for name in names if whole.fullmatch(name)]
        listed = set(names)
        names = [
            name
            for name in names
            if not name.endswith(INDEXES)
            and not any(
                name.endswith(end) and f"{name.removesuffix(end)}{main}" in listed
                for main, *others in PREFIXES.values()
                for end in others
            )
            and (is_zarr(folder / name) or not (folder / name).is_dir())
        ]
        if names:
            return names
    return []


def _candidates(pattern: str, folder: Path) -> list[str]:
    """Return a superset of the paths that match a pattern."""
    parent, slash, name = pattern.rpartition("/")
    if CONTIG in parent or GLOB.search(parent):
        # Path.glob refuses absolute patterns and matches hidden files.
        return glob.glob(pattern.replace(CONTIG, "*"), root_dir=folder)  # noqa: PTH207
    at = folder / (parent + slash)
    try:
        changed = at.stat().st_mtime_ns
    except OSError:
        return []
    # Many cohorts may share one large folder. One that has just changed may change again.
    listing = _sorted_names if time.time_ns() - changed > RECENT_NS else _sorted_names.__wrapped__
    names = listing(at, changed)
    start = re.split(r"[{*?[]", name, maxsplit=1)[0]
    first, last = bisect_left(names, start), bisect_right(names, start + chr(0x10FFFF))
    return [f"{parent}{slash}{other}" for other in names[first:last]]


@functools.lru_cache(maxsize=64)
def _sorted_names(folder: Path, changed: int) -> list[str]:
    """Return the names in a folder, without hidden ones; `changed` keys the cache."""
    try:
        return sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError:
        return []


def _regex(pattern: str) -> str:
    """Convert a shell pattern with `{contig}` to a regular expression."""
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
    """Return the end of a sentence about a missing path: similar names, or what is there.

    Looks in the deepest existing folder of the path.
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
    """Return the files of one source: a VCF or BCF, three of a prefix, or a folder of VCF-Zarr."""
    kind, path = find_format(source)
    return [f"{path}{end}" for end in PREFIXES.get(kind, ())] or [str(source)]


def files_within(paths: Iterable[str | Path]) -> list[str | Path]:
    """Replace each folder (of VCF-Zarr) by the files in it, in order of their names.

    Addresses stay as they are.
    """
    return [
        file
        for path in paths
        for file in (
            sorted(_files_below(path)) if is_zarr(path) and not is_remote(path) else [path]
        )
    ]


def stamp_of(file: str | Path | Remote, *, anew: bool = False) -> tuple[int, int | str]:
    """Size and date of a file, or bytes and digest of ETags below an address.

    They change when one is replaced. `anew` lists objects that this process has listed before.

    Raises
    ------
    OSError
        The file is missing.
    UserError
        The objects cannot be listed.
    """
    if is_remote(file):
        found = (list_anew if anew else list_objects)(located(file))
        return found.n_bytes, found.key()
    about = Path(file).stat()
    return about.st_size, about.st_mtime_ns


def _files_below(folder: str | Path) -> list[str]:
    return [
        f"{where}/{name}"
        for where, _, names in os.walk(folder)
        for name in names
        if name != FOLDER_STAMP
    ]


def read_names(sources: Sequence[str], folder: Path = Path()) -> list[str]:
    """Return the sample names, in file order, of sources that must all have the same samples.

    Raises
    ------
    UserError
        A source is missing, has braces in its name, cannot be read, does not have the samples of
        the first source in the same order, or is one of several and a tree sequence whose name
        does not name its contig.
    """
    names: list[str] = []
    for source in sources:
        if not is_remote(source) and not _exists(folder / source):
            raise UserError(f"{source} does not exist{nearby(folder, source)}")
        if "{" in source or "}" in source:
            raise UserError(
                f"genotypes '{source}' has braces in its name, which Snakemake reads as a "
                "wildcard; rename the file, or link to it under a name without braces."
            )
        found = read_sample_names(located(source, folder))
        tree = find_format(source).kind == TREES
        if len(sources) > 1 and tree and not names_contig(Path(source)):
            raise UserError(
                f"{source} is one of {len(sources)} files of a cohort, but its name does not end "
                "in a chromosome, which a tree sequence needs; rename it, as north_chr2.trees."
            )
        if source != sources[0]:
            require_same_samples(sources[0], names, source, found)
        names = names or found
    return names


def require_same_samples(
    first: str | Path | Remote,
    expected: Sequence[str],
    source: str | Path | Remote,
    found: Sequence[str],
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
        f"{source} {what}, but all files of a cohort must have the same samples in the same "
        "order; subset or reorder its samples, or make it a separate cohort."
    )


def names_key(names: Iterable[str]) -> str:
    """Return a digest of a set of sample names, independent of their order."""
    return digest("\n".join(sorted(names)))


def source_key(sources: Sequence[str]) -> str:
    """Return a digest of sizes, dates and sample names of sources; it changes if one is replaced.

    The content is not read, which would take as long as decoding it. A file with the same content
    but another date counts as replaced. Objects have ETags in place of dates.
    """
    return digest("\n".join([file_key(_files(sources)), *read_names(sources)]))


def file_key(paths: Iterable[str | Path]) -> str:
    """Return a digest of sizes and dates of files; empty if there are no files."""
    found = [stamp_of(path) for path in files_within(paths)]
    return digest("\n".join(f"{size} {date}" for size, date in found)) if found else ""


def _files(sources: Sequence[str]) -> list[str]:
    return [path for source in sources for path in source_files(source)]
