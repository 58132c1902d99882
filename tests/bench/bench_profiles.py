"""Search of a standing database of profiles, beside the memory's rate and NumPy.

    python tests/bench/bench_profiles.py [--profiles 1000000] [--sites 1024] [--queries 1 32 1000]
        [--threads 2] [--folder DIR] [--complete] [--quick]

Writes planes of random people to DIR (a temporary folder by default), with missing genotypes or
(`--complete`) without, and searches the five best matches of each query as `popdesic profiles
search` does, from the page cache. "read" is the time in which the threads read the planes' bytes
at the rate of this machine's memory, measured here as the rate of summing them where they are
mapped: no search that looks at every profile can take less. "checked" is the check of the
database's checksum, which every search begins with. NumPy counts NUMPY_QUERIES queries in blocks
of profiles and is scaled to all. CPU seconds hardly depend on what else runs.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import commandline
import numpy as np
from bench_place import write_planes
from timing import best_of, print_table

from popdesic.core.files import checksum_of
from popdesic.core.threads import run_tasks
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.terms import Planes
from popdesic.relatives.find_matches import top_matches

TOP = 5
#: Queries that NumPy counts, and profiles that it takes at a time: they stay in the cache.
NUMPY_QUERIES, NUMPY_PROFILES = 4, 1024


def by_numpy(queries: np.ndarray, words: np.ndarray, mixed: bool = False) -> np.ndarray:
    """Numbers of the TOP profiles of each query, or of each mixture, by counts of all pairs."""
    n, masked = len(words), words.shape[1] == 3
    found = []
    for query in queries:
        share = np.empty(n)
        for first in range(0, n, NUMPY_PROFILES):
            part = words[first : first + NUMPY_PROFILES]
            if mixed:  # an allele that the mixture lacks: r & ~m, of ALT and of REF
                differ = (part[:, 0] & ~query[0]) | (query[1] & ~part[:, 1])
            else:
                differ = (part[:, 0] ^ query[0]) | (part[:, 1] ^ query[1])
            called = np.full(len(part), 1)
            if masked:
                both = part[:, 2] & query[2]
                differ &= both
                called = np.bitwise_count(both).sum(axis=1, dtype=np.int64)
            wrong = np.bitwise_count(differ).sum(axis=1, dtype=np.int64)
            share[first : first + len(part)] = wrong / called
        found.append(np.argsort(share, kind="stable")[:TOP])
    return np.array(found)


def timed(work) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def memory_rate(words: np.ndarray, threads: int) -> float:
    """Bytes per second at which threads sum the words of an array."""
    flat = words.reshape(-1)
    step = 1 << 18
    tasks = [(flat[i : i + step],) for i in range(0, len(flat), step)]
    return flat.nbytes / best_of(3, lambda: run_tasks(np.bitwise_xor.reduce, tasks, threads))


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--profiles", type=int, default=1_000_000)
    parser.add_argument("--sites", type=int, default=1024)
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 32, 1000])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--complete", action="store_true", help="no genotype is missing")
    options = commandline.parse(parser, profiles=3000, queries=[1, 9])
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        folder = Path(scratch) / "planes"
        masked = not options.complete
        one = write_planes(folder, options.profiles, options.sites, masked)
        path = folder / "planes.npy"
        words = np.load(path, mmap_mode="r")
        database = Planes(words, options.sites)
        rate = memory_rate(words, options.threads)
        check = best_of(3, lambda: checksum_of(path))
        rng = np.random.default_rng(3)
        chosen = np.sort(rng.permutation(options.profiles)[: max(options.queries) - 1])
        queries = Planes(np.concatenate([one.words, words[chosen]]), options.sites)
        backend = CpuBackend(options.threads)
        few = Planes(queries.words[:NUMPY_QUERIES], options.sites)
        ours = top_matches(backend, few, database, TOP)  # compiles
        slow = []
        numpy_time, _ = timed(lambda: slow.append(by_numpy(few.words, words)))
        assert (ours.index[:, 0] == slow[0][:, 0]).all(), "another best match"
        rows = []
        for n in options.queries:
            asked = Planes(queries.words[:n], options.sites)
            wall, cpu = min(
                timed(lambda asked=asked: top_matches(backend, asked, database, TOP))
                for _ in range(3)
            )
            pairs = n * options.profiles * options.sites
            by_array = numpy_time / few.n_samples * n
            row = (n, f"{wall:.3f}", f"{cpu:.3f}", f"{words.nbytes / rate:.3f}")
            rows.append((*row, f"{pairs / wall / 1e9:.0f}", f"{by_array:.1f}"))
    print(
        f"{options.profiles} profiles x {options.sites} sites, {words.nbytes / 1e9:.2f} GB, "
        f"{options.threads} threads; memory {rate / 1e9:.1f} GB/s; checked in {check:.2f} s"
    )
    header = ("queries", "s", "CPU-s", "read, s", "10^9 pairs of genotypes/s", "NumPy, s")
    print_table(f"the best {TOP} of each query", header, rows)


if __name__ == "__main__":
    main()
