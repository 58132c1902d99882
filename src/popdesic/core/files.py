"""Files on disk: atomic writes, checksums, panel digests, JSON."""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from .errors import UserError

# Bytes read at a time for a checksum.
CHECKSUM_BYTES = 1 << 22
# Files from this size on are flushed to disk while their checksum is computed.
LARGE_BYTES = 1 << 26
# Suffixes of results that are folders.
RESULT_FOLDERS = (".vcz",)
# File that Snakemake adds to a result folder.
FOLDER_STAMP = ".snakemake_timestamp"


def is_file(path: Path | str) -> bool:
    """Whether `path` is a regular file; False for an impossible name (too long, with NUL)."""
    return os.path.isfile(path)  # noqa: PTH113 - the method of Path raises for such names


def path_exists(path: Path | str) -> bool:
    """Whether `path` exists; False for an impossible name, as in `is_file`."""
    return os.path.exists(path)  # noqa: PTH110 - as in is_file


def beside(prefix: Path | str, suffix: str) -> Path:
    """Return prefix + suffix; unlike `Path.with_suffix` this keeps dots in the prefix."""
    return Path(f"{prefix}{suffix}")


def require_output(out: Path, *inputs: Path, others: Sequence[Path] = ()) -> None:
    """Refuse an output of a command that is one of its inputs, a folder, or in no folder.

    Parameters
    ----------
    others : sequence of Path
        Files that the command writes beside the output, without being told so. They are replaced
        where the output is: then they are of an earlier run.

    Raises
    ------
    UserError
        Before anything is read, so that a slip of the command line costs no file and no time.
    """
    for one in (out, *others):
        _require_one(one, inputs)
    for one in others:
        if path_exists(one) and not path_exists(out):
            raise UserError(
                f"{one} is there already, and it is written beside the output {out}, which is not; "
                "move the file, or give the output another name."
            )


def _require_one(out: Path, inputs: Sequence[Path]) -> None:
    if out.is_dir():
        raise UserError(f"the output {out} is a folder; name a file in it.")
    for folder in out.parents:
        if path_exists(folder):
            if not folder.is_dir():
                raise UserError(
                    f"the output {out} cannot be written: {folder} is a file; name a folder."
                )
            break
    for one in inputs:
        if path_exists(out) and path_exists(one) and out.samefile(one):
            raise UserError(
                f"the output {out} is the input {one}, which would be lost; give it another name."
            )


#: errno of a write to a full disk, over the quota or beyond the file size limit.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: What numpy says of a write to a full disk: it sets no errno and only counts the items written.
SHORT = re.compile(r"\d+ requested and \d+ written")
#: A temporary file of `atomic_path`; its groups are folder and name of the path that it stands for.
HOST = re.escape(socket.gethostname())
TEMPORARY = re.compile(rf"((?:.*/)?)\.([^/]+)\.{HOST}\.\d+\.[0-9a-f]{{8}}\.tmp")
#: The same, of any machine.
ANY_TEMPORARY = re.compile(r"\..+\.\d+\.[0-9a-f]{8}\.tmp")


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path` that becomes `path` if the block succeeds.

    On success the file is flushed to disk and renamed, so that readers see the whole file or none,
    and the checksum of a result is stored beside it for `popdesic audit`. On an exception the
    temporary file is removed and an existing `path` stays unchanged.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_orphans(path)
    unique = f"{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}"
    temporary = path.with_name(f".{path.name}.{unique}.tmp")
    try:
        yield temporary
        with _flushing(temporary, path) as flushed, checksum_kept(path, temporary):
            flushed()
            temporary.replace(path)
    except OSError as error:
        if error.filename is None and (error.errno in FULL or SHORT.fullmatch(str(error))):
            code = error.errno or errno.ENOSPC
            raise OSError(code, error.strerror or os.strerror(code), str(path)) from None
        raise
    finally:
        temporary.unlink(missing_ok=True)


def require_space(path: Path | str, n_bytes: int) -> None:
    """Raise the OSError of a full disk if there is no room for so many bytes beside `path`."""
    usage = shutil.disk_usage(Path(path).parent)
    if usage.total and n_bytes > usage.free:  # a few file systems do not tell their size
        words = f"{os.strerror(errno.ENOSPC)}, {n_bytes / 1e6:,.1f} MB are needed"
        raise OSError(errno.ENOSPC, words, str(path))


#: Small files that are flushed at the end of `flushing_together`; None outside.
_unflushed: list[Path] | None = None


@contextmanager
def flushing_together() -> Iterator[None]:
    """Flush the small files that are written in the block to disk at its end, not one by one.

    For many of which a list that is written afterwards says that they are whole.
    """
    global _unflushed  # not thread-local: a job's threads write its results
    before, _unflushed = _unflushed, []
    try:
        yield
        for path in _unflushed:
            _flush(path)
    finally:
        _unflushed = before


def _flush(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


@contextmanager
def _flushing(path: Path, final: Path) -> Iterator[Callable[[], None]]:
    """Flush a file to disk, a large one while the block begins; yields a call that waits for it.

    `final` is the name that it gets.
    """
    if path.stat().st_size < LARGE_BYTES:
        if _unflushed is None:
            _flush(path)
        else:
            _unflushed.append(final)
        yield lambda: None
        return
    from concurrent.futures import ThreadPoolExecutor  # not needed for planning

    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(_flush, path).result


@contextmanager
def checksum_kept(path: Path, temporary: Path) -> Iterator[None]:
    """Store the checksum of `temporary`, which the block renames to `path`, beside `path`."""
    kept = "results" in path.absolute().parts  # only results are audited
    checksum = checksum_of(temporary) if kept else ""
    for about in (checksum_path(path), record_path(path)):
        about.unlink(missing_ok=True)  # stale once the content changes
    yield
    if kept:
        checksum_path(path).write_text(f"{checksum} {_panel}".rstrip() + "\n")


#: Panel digest of this job's inputs, which is recorded with every result that it writes.
_panel = ""


@contextmanager
def carrying_panel(digest: str) -> Iterator[None]:
    """Record this panel digest in the checksum file of every result written in the block."""
    global _panel  # not thread-local: a job's threads write its results
    before, _panel = _panel, digest
    try:
        yield
    finally:
        _panel = before


def panel_of(path: Path | str) -> str:
    """Return the panel digest recorded with a result; empty if there is none."""
    return (kept_checksum(Path(path))[2:] or [""])[0]


def one_panel(paths: Iterable[Path | str]) -> str:
    """Return the panel digest that results share; empty if none is recorded.

    Raises
    ------
    UserError
        Two results were made with different panels.
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
    """Path of a result's checksum: a hidden file beside it."""
    return path.with_name(f".{path.name}.crc32")


def kept_checksum(path: Path) -> list[str]:
    """CRC-32, size and, if it is known, panel digest that are kept of a result.

    Empty if they are missing or damaged.
    """
    try:
        text = checksum_path(path).read_text("utf-8", "replace")
    except OSError:
        return []
    words = text.split()
    return words if len(words) in (2, 3) and text.endswith("\n") else []


def content_key(path: Path) -> str:
    """CRC-32 and size of a result: those kept beside it, if they are not older than the file."""
    return " ".join(kept_checksum(path)[:2]) if is_dated(path) else checksum_of(path)


def is_dated(path: Path) -> bool:
    """Whether a file has the size of the checksum beside it, which is not older than the file."""
    kept, now = kept_checksum(path), path.stat()
    same = bool(kept) and kept[1] == str(now.st_size)
    return same and checksum_path(path).stat().st_mtime_ns >= now.st_mtime_ns


def record_path(path: Path) -> Path:
    """Path of the record of a result's inputs (`popdesic.study.records`)."""
    return path.with_name(f".{path.name}.record")


def result_files(results: Path) -> Iterator[Path]:
    """Yield all results below a folder; a folder of `RESULT_FOLDERS` is one result."""
    for folder, names, _ in walk_results(results):
        yield from (Path(folder, name) for name in names)


def walk_results(results: Path) -> Iterator[tuple[str, list[str], set[str]]]:
    """Yield each folder of results, its results sorted by name, and its hidden files."""
    for folder, folders, names in os.walk(results):
        whole = [name for name in folders if name.endswith(RESULT_FOLDERS)]
        folders[:] = sorted(n for n in folders if n not in whole and not n.startswith("."))
        hidden = {name for name in names if name.startswith(".")}
        yield folder, sorted({*whole, *names} - hidden), hidden


def resized_results(results: Path) -> Iterator[Path]:
    """Yield result files that have another size than when they were written."""
    for path in result_files(results):
        kept = kept_checksum(path)
        if kept and path.is_file() and kept[1] != str(path.stat().st_size):
            yield path


def checksum_of(path: Path) -> str:
    """Return CRC-32 and size as text, of a file or of all files of a folder with their names.

    It detects accidental damage, not tampering, at 10 GB/s.
    """
    from isal import isal_zlib  # not needed for planning

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
    """Remove temporary files of `path` that dead processes of this machine left behind."""
    prefix = f".{path.name}.{socket.gethostname()}."
    for name in os.listdir(path.parent):  # noqa: PTH208 - a folder may hold thousands of tiles
        if name.startswith(prefix) and name.endswith(".tmp"):
            pid = name.removeprefix(prefix).split(".")[0]
            if pid.isdigit() and not _is_alive(int(pid)):
                path.with_name(name).unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # signal 0 only tests for existence
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def remove_temporaries(folder: Path) -> int:
    """Remove temporary files of `atomic_path` below a folder; return their number.

    A machine that lost its power leaves some, which jobs of other machines do not touch. Nobody may
    be writing there.
    """
    found = [
        Path(place, name)
        for place, _, hidden in walk_results(folder)
        for name in hidden
        if ANY_TEMPORARY.fullmatch(name)
    ]
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)


def digest(text: str) -> str:
    """Return a short content hash for file names and metadata."""
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def write_json(path: Path | str, content: Any) -> None:
    """Write `content` as indented JSON, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")


def read_json(path: Path | str) -> Any:
    """Read a JSON file."""
    return json.loads(Path(path).read_text("utf-8"))


#: First line of a .bed that names rows of another one (`popdesic.io.bed.name_rows`).
NAMED_ROWS = b"popdesic rows\n"
#: First line of a .bed of lists (`popdesic.io.listed_rows`); then what its rows take as bytes.
LISTED_ROWS = b"popdesic lists\n"


def bytes_meant(path: Path | str) -> int:
    """Size of a file; of a .bed that names rows of another one or lists, what rows would take."""
    size = Path(path).stat().st_size
    if Path(path).suffix != ".bed":
        return size
    if has_lists(path):
        with open(path, "rb") as file:
            file.seek(len(LISTED_ROWS))
            meant = file.read(8)
        return int.from_bytes(meant, "little") if len(meant) == 8 else size
    return (named_rows(path) or {}).get("bytes", size)


def has_lists(path: Path | str) -> bool:
    """Whether a .bed has lists of carriers."""
    with open(path, "rb") as file:
        return file.read(len(LISTED_ROWS)) == LISTED_ROWS


def named_rows(path: Path | str) -> dict[str, Any] | None:
    """What a .bed that names rows of another one says of it.

    None of other files; nothing of one that is cut or damaged.
    """
    with open(path, "rb") as file:
        if file.read(len(NAMED_ROWS)) != NAMED_ROWS:
            return None
        try:
            about = json.loads(file.readline())
        except ValueError:
            return {}
    return about if isinstance(about, dict) else {}


#: Kinds of path that are not files, by the file type in the mode.
_NO_FILES = {stat.S_IFIFO: "a FIFO (a pipe)", stat.S_IFSOCK: "a socket"}
_NO_FILES |= dict.fromkeys((stat.S_IFCHR, stat.S_IFBLK), "a device")


def open_regular(path: Path | str) -> BinaryIO:
    """Open a file for reading bytes.

    Raises
    ------
    FileNotFoundError
        It does not exist; the caller reports this.
    UserError
        It is a FIFO (which would block), a socket, a device or a folder, or cannot be read.
    """
    try:
        kind = stat.S_IFMT(Path(path).stat().st_mode)
        if kind in _NO_FILES:
            raise UserError(
                f"{path} is {_NO_FILES[kind]}, not a file; write its content to a file and give "
                "the path of that file."
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
