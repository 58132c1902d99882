"""Run fuzz targets: random cases from seeds, each in a worker process that may die.

A target is an object with

- ``name``: a short word, used in the table, in the corpus and on the command line;
- ``generate(rng) -> case``: a literal of Python (bytes, str, numbers, None, tuples, lists, dicts)
  that depends only on `rng`, a `random.Random`, so that a seed determines the case;
- ``check(case, folder) -> outcome``: works in `folder`, which belongs to the target and is not
  emptied between cases, and returns one word for the table, such as 'equal'. A `UserError` that it
  raises is checked to be one sentence and counted as 'refused'. Any other exception is a failure:
  an AssertionError is a mismatch, all others are defects.
- ``prepare(folder)`` (optional): work before the first case, such as compiling.

A module `fuzz_*.py` of this folder lists its targets in ``TARGETS``. The worker prints one line per
case, so that the parent knows which seed caused a crash or a hang.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
import random
import resource
import selectors
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
#: Time limits in seconds of a case, and of a worker's start, in which kernels are compiled.
CASE_SECONDS, START_SECONDS = 60, 600
#: Memory limit of a worker, so that a wrong length cannot exhaust the machine.
MEMORY_BYTES = 8 << 30
#: Outcomes that are failures.
MISMATCH, DEFECT, CRASH, HANG = "MISMATCH", "DEFECT", "CRASH", "HANG"
FAILURES = (MISMATCH, DEFECT, CRASH, HANG)
#: Number of failures after which the run of a target ends.
ENOUGH = 20


class Target(Protocol):
    """See the module's docstring."""

    name: str

    def generate(self, rng: random.Random) -> Any: ...

    def check(self, case: Any, folder: Path) -> str: ...


@dataclass
class Outcome:
    """Result of running one target: cases by outcome, seconds, failures (seed, kind, detail)."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    failures: list[tuple[int | str, str, str]] = field(default_factory=list)

    @property
    def cases(self) -> int:
        return sum(self.counts.values())


def find_targets() -> dict[str, Target]:
    """All targets by name."""
    for folder in (HERE.parents[1] / "src", HERE.parent):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    modules = [importlib.import_module(f"fuzz.{path.stem}") for path in HERE.glob("fuzz_*.py")]
    targets = [target for module in modules for target in module.TARGETS]
    return {target.name: target for target in sorted(targets, key=lambda target: target.name)}


def case_of(target: Target, seed: int) -> Any:
    """The case of a seed: the same in every process."""
    return target.generate(random.Random(f"{target.name} {seed}"))


def check_case(target: Target, case: Any, folder: Path) -> tuple[str, str]:
    """Return the outcome of one case and, for a failure, its details."""
    from popdesic.core.errors import UserError

    try:
        return target.check(case, folder), ""
    except UserError as error:
        sentence = str(error)
        if "\n" in sentence or not sentence.endswith((".", "?")) or len(sentence) > 2000:
            return DEFECT, f"not one sentence: {sentence[:3000]!r}"
        return "refused", ""
    except AssertionError:
        return MISMATCH, traceback.format_exc(limit=-4)
    except (Exception, SystemExit):
        return DEFECT, traceback.format_exc(limit=-6)


# --- the corpus: every case that ever failed ------------------------------------------------------


def corpus_of(target: Target) -> list[Path]:
    """Files of a target's corpus."""
    return sorted(CORPUS.glob(f"{target.name}.*.txt"))


def load_case(path: Path) -> Any:
    return ast.literal_eval(path.read_text("utf-8"))


def save_case(target: Target, case: Any) -> Path:
    """Add a case to the corpus; its name is a digest of its content."""
    text = repr(case)
    if ast.literal_eval(text) != case:
        raise ValueError(f"the cases of {target.name} must be literals of Python")
    path = CORPUS / f"{target.name}.{hashlib.blake2b(text.encode(), digest_size=5).hexdigest()}.txt"
    path.write_text(text + "\n", "utf-8")
    return path


# --- workers --------------------------------------------------------------------------------------


def run_corpus(target: Target) -> Outcome:
    """Check all cases of a target's corpus; failures name the file."""
    files = corpus_of(target)
    outcome = run_target(target, float("inf"), n_cases=len(files), corpus=True)
    outcome.failures = [(files[n].name, kind, detail) for n, kind, detail in outcome.failures]
    return outcome


def run_target(
    target: Target,
    seconds: float,
    *,
    first: int = 0,
    step: int = 1,
    n_cases: int | None = None,
    corpus: bool = False,
) -> Outcome:
    """Check the seeds first, first + step, ... for some time, not counting the start of a worker.

    A worker that dies or hangs is replaced, and the run continues after its seed. With `corpus` a
    seed is the index of a file in the corpus.
    """
    outcome = Outcome(target.name)
    seed = first
    last = None if n_cases is None else first + step * n_cases
    while outcome.seconds < seconds and len(outcome.failures) < ENOUGH:
        if last is not None and seed >= last:
            break
        count = -1 if last is None else (last - seed) // step
        source = "corpus" if corpus else "random"
        arguments = [target.name, source, seed, step, count, seconds - outcome.seconds]
        for line in _lines_of_worker(arguments, outcome):
            word, _, detail = line.partition("\t")
            outcome.counts[word] += 1
            if word in FAILURES:
                outcome.failures.append((seed, word, ast.literal_eval(detail)))
            seed += step
            if len(outcome.failures) >= ENOUGH:
                break
        else:
            continue
        break
    return outcome


def _lines_of_worker(arguments: list, outcome: Outcome) -> Iterator[str]:
    """Yield the worker's lines, and one more if it died or hung; count its seconds."""
    with tempfile.TemporaryFile() as said:
        worker = subprocess.Popen(
            [sys.executable, str(HERE / "runner.py"), *map(str, arguments)],
            env=worker_environment(),
            stdout=subprocess.PIPE,
            stderr=said,
        )
        started = None
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(worker.stdout, selectors.EVENT_READ)
                pending = b""
                while True:
                    patience = START_SECONDS if started is None else CASE_SECONDS
                    if not selector.select(patience):
                        yield f"{HANG}\t{f'no end within {patience} s'!r}"
                        return
                    if not (data := os.read(worker.stdout.fileno(), 1 << 16)):
                        break
                    *lines, pending = (pending + data).split(b"\n")
                    if lines and started is None:
                        started = time.perf_counter()
                        lines = lines[1:]  # the first line: the worker is ready
                    yield from (line.decode() for line in lines)
            status = worker.wait()
            if status != 0:
                said.seek(0)
                about = said.read()[-3000:].decode(errors="replace")
                if started is None:
                    raise RuntimeError(f"the worker of {outcome.name} did not start:\n{about}")
                yield f"{CRASH}\t{f'exit status {status}; {about}'!r}"
        finally:
            worker.kill()
            worker.wait()
            worker.stdout.close()
            if started is not None:
                outcome.seconds += time.perf_counter() - started


def worker_environment() -> dict[str, str]:
    """Numba with bounds checks and a separate cache, because its cache key ignores them."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    path = [str(HERE.parents[1] / "src"), str(HERE.parent)]
    path += [entry for entry in (os.environ.get("PYTHONPATH"),) if entry]
    return os.environ | {
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(cache / "popdesic" / "fuzz-numba"),
        "NUMBA_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(path),
    }


def fast_folder() -> str | None:
    """A folder in memory for the files of cases if there is one, else the temporary folder."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _work(name: str, source: str, seed: int, step: int, count: int, seconds: float) -> None:
    """Main function of a worker; its standard output is reserved for the lines."""
    out = os.dup(1)
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    target = find_targets()[name]
    files = corpus_of(target)
    with tempfile.TemporaryDirectory(prefix="popdesic_fuzz_", dir=fast_folder()) as made:
        folder = Path(made)
        if hasattr(target, "prepare"):
            target.prepare(folder)
        os.write(out, b"ready\n")
        end = time.perf_counter() + seconds
        while count != 0 and time.perf_counter() < end:
            case = load_case(files[seed]) if source == "corpus" else case_of(target, seed)
            word, detail = check_case(target, case, folder)
            os.write(out, f"{word}\t{detail!r}\n".encode() if detail else f"{word}\n".encode())
            seed += step
            count -= 1


if __name__ == "__main__":
    _work(*sys.argv[1:3], *map(int, sys.argv[3:6]), float(sys.argv[6]))
