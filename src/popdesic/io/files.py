"""Files on disk: atomic writing, and the PLINK 1 files that hold genotypes."""

import hashlib
import json
import os
import secrets
import socket
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from .errors import UserError

# Bytes of a file taken at a time for its checksum.
CHECKSUM_BYTES = 1 << 22
# Results that are folders, by the ends of their names.
RESULT_FOLDERS = (".vcz",)
# What Snakemake puts into a folder that is a result.
FOLDER_STAMP = ".snakemake_timestamp"


def is_file(path: Path | str) -> bool:
    """Whether a regular file is there; no for a name that no file can have (too long, NUL)."""
    return os.path.isfile(path)  # noqa: PTH113 - the method of Path raises for such names


def path_exists(path: Path | str) -> bool:
    """Whether anything is there; as `is_file`."""
    return os.path.exists(path)  # noqa: PTH110 - as in is_file


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path` that becomes `path` if the block succeeds.

    On success the file is flushed to disk and renamed, so that readers see all of it or none, and
    the checksum of a result is kept beside it for `popdesic audit`; on any exception it is removed
    and an older `path` stays as it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_orphans(path)
    unique = f"{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}"
    temporary = path.with_name(f".{path.name}.{unique}.tmp")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        with checksum_kept(path, temporary):
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def checksum_kept(path: Path, temporary: Path) -> Iterator[None]:
    """Keep the checksum of `temporary`, which becomes `path` in the block, beside `path`."""
    kept = "results" in path.absolute().parts  # of a study; nothing else is audited
    checksum = checksum_of(temporary) if kept else ""
    for about in (checksum_path(path), record_path(path)):
        about.unlink(missing_ok=True)  # never that of another content
    yield
    if kept:
        checksum_path(path).write_text(f"{checksum} {_panel}".rstrip() + "\n")


#: Digest of the panel that this job's inputs were made with; what it writes carries it on.
_panel = ""


@contextmanager
def carrying_panel(digest: str) -> Iterator[None]:
    """Results that are written inside carry this panel's digest, in the file of their checksum."""
    global _panel  # not one a thread: threads of a job write for it
    before, _panel = _panel, digest
    try:
        yield
    finally:
        _panel = before


def panel_of(path: Path | str) -> str:
    """Digest of the panel that a result was made with; empty where it carries none."""
    try:
        words = checksum_path(Path(path)).read_text("utf-8", "replace").split()
    except OSError:
        return ""
    return words[2] if len(words) == 3 else ""


def one_panel(paths: Iterable[Path | str]) -> str:
    """The one digest that results carry, empty where none does.

    Raises
    ------
    UserError
        Two of them were made with different panels.
    """
    first: dict[str, Path | str] = {}
    for path in paths:
        if digest := panel_of(path):
            first.setdefault(digest, path)
    if len(first) > 1:
        (one, path), (other, another) = list(first.items())[:2]
        raise UserError(
            f"{path} was made with the panel {one}, {another} with the panel {other}: results of "
            "different panels cannot be combined; delete those of the old panel and run again."
        )
    return next(iter(first), "")


def checksum_path(path: Path) -> Path:
    """Where the checksum of a result lies: a hidden file beside it."""
    return path.with_name(f".{path.name}.crc32")


def record_path(path: Path) -> Path:
    """Where the record of what a result was made of lies (`popdesic.study.records`)."""
    return path.with_name(f".{path.name}.record")


def result_files(results: Path) -> Iterator[Path]:
    """All results below a folder; a folder that is one result (`RESULT_FOLDERS`) counts as one."""
    for folder, names, _ in walk_results(results):
        yield from (Path(folder, name) for name in names)


def walk_results(results: Path) -> Iterator[tuple[str, list[str], set[str]]]:
    """Give each folder of results, its results in order of their names, and its hidden files."""
    for folder, folders, names in os.walk(results):
        whole = [name for name in folders if name.endswith(RESULT_FOLDERS)]
        folders[:] = sorted(n for n in folders if n not in whole and not n.startswith("."))
        hidden = {name for name in names if name.startswith(".")}
        yield folder, sorted({*whole, *names} - hidden), hidden


def checksum_of(path: Path) -> str:
    """CRC-32 and size in text, of a file or of all files of a folder with their names.

    It finds accidents, not forgeries, at 10 GB/s.
    """
    from isal import isal_zlib  # what only plans does without

    value, size = 0, 0
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file() and file.name != FOLDER_STAMP:
                about = checksum_of(file)
                line = f"{file.relative_to(path).as_posix()} {about}\n"
                value = isal_zlib.crc32(line.encode(), value)
                size += int(about.split()[1])
        return f"{value:08x} {size}"
    with open(path, "rb") as file:
        while block := file.read(CHECKSUM_BYTES):
            value = isal_zlib.crc32(block, value)
            size += len(block)
    return f"{value:08x} {size}"


def _remove_orphans(path: Path) -> None:
    """Remove temporaries of `path` that a killed process of this machine has left."""
    prefix = f".{path.name}.{socket.gethostname()}."
    for left in path.parent.iterdir():
        if left.name.startswith(prefix) and left.name.endswith(".tmp"):
            pid = left.name.removeprefix(prefix).split(".")[0]
            if pid.isdigit() and not _is_alive(int(pid)):
                left.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # signal 0 only asks
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def digest(text: str) -> str:
    """A short content key for file names and metadata."""
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def write_json(path: Path | str, content: Any) -> None:
    """Write `content` as indented JSON, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")


def read_json(path: Path | str) -> Any:
    """Read a JSON file."""
    return json.loads(Path(path).read_text("utf-8"))


#: What a path may lead to that is no file, by the bits of its mode.
_NO_FILES = {stat.S_IFIFO: "a FIFO (a pipe)", stat.S_IFSOCK: "a socket"}
_NO_FILES |= dict.fromkeys((stat.S_IFCHR, stat.S_IFBLK), "a device")


def open_regular(path: Path | str) -> BinaryIO:
    """Open a file for reading bytes.

    Raises
    ------
    FileNotFoundError
        It is not there: what that means is the caller's to say.
    UserError
        It is a FIFO, which would wait for a writer, a socket, a device or a folder, or cannot be
        read.
    """
    try:
        kind = stat.S_IFMT(Path(path).stat().st_mode)
        if kind in _NO_FILES:
            raise UserError(
                f"{path} is {_NO_FILES[kind]} and not a file; write its content into a file and "
                "name that."
            )
        return open(path, "rb")
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        shown = str(path).replace("\0", "\\0")
        raise UserError(
            f"{shown} cannot be read ({reason}); correct its path or its permissions."
        ) from None
