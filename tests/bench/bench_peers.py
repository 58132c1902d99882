"""Programs and libraries of the CPU beside Popdesic: one table, all of it from one run.

    python tests/bench/bench_peers.py [--size small|large] [--threads 2] [--only plink bitepi]
                                      [--graph-tool /usr/bin/python3] [--out peers.tsv] [--quick]

`make peers` runs it. PLINK 1.9 and 2, SciPy and OpenBLAS come with the tests' set-up; BitEpi,
MPI3SNP and Fiuncho are found on the PATH, under the names that their own builds give them. A peer
that is not there has a row that says so. Each row compares the same work with the same number of
threads: both begin with the same files (arrays for SciPy, OpenBLAS and graph-tool) and end with the
same result, which is compared. Programs are processes; we run in this process, with compiled
kernels. Best of several runs, in turn. A ratio below 1 means that the peer is faster.
"""

from __future__ import annotations

import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields
from functools import partial
from pathlib import Path

import bench_compare
import bench_distance
import bench_minplus
import bench_pca
import commandline
import numpy as np
import pandas as pd
import scipy
from peer_programs import (
    blas_version,
    equal,
    graph_tool_version,
    program_version,
    run,
    same_axes,
    same_hits,
)
from scipy.linalg.blas import ssyrk
from scipy.sparse.csgraph import floyd_warshall
from scipy.spatial.distance import pdist, squareform
from threadpoolctl import threadpool_limits
from timing import best_in_turn, write_random_plink

from popdesic.cohort.site_alleles import read_cohorts
from popdesic.components.relationship import alt_frequency
from popdesic.components.relationship_products import RelationshipProducts
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.genotype_products import Calls
from popdesic.engine.terms import ALLELES, SQUARED, Planes
from popdesic.epistasis.reorder import reorder_sites
from popdesic.epistasis.scan_sites import scan_pairs, scan_triples
from popdesic.epistasis.scores import make_scan_data
from popdesic.io.bed import open_bed, read_fam
from popdesic.io.genotypes import BED_MAGIC, unpack_bed
from popdesic.relatives.kinship import king_robust, kinship_counts

#: Components, and hits of a scan that are listed and compared.
COMPONENTS, TOP = 10, 10
#: Samples and sites of each comparison; of closures, nodes. Halves of the samples of a scan are no
#: multiple of 32: MPI3SNP and Fiuncho count such classes otherwise (their lists of hits differ).
SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    "tiny": {
        "distances": (120, 2_000),
        "pdist": (60, 2_000),
        "ld": (200, 300),
        "pca": (220, 2_000),
        "scan": (500, 60),
        "closure": (128,),
    },
    "small": {
        "distances": (2_000, 30_000),
        "pdist": (500, 30_000),
        "ld": (2_000, 5_000),
        "pca": (1_000, 20_000),
        "scan": (4_090, 300),
        "closure": (1_024,),
    },
    "large": {
        "distances": (8_000, 100_000),
        "pdist": (2_000, 30_000),
        "ld": (4_000, 20_000),
        "pca": (4_000, 50_000),
        "scan": (4_090, 1_000),
        "closure": (4_096,),
    },
}


@dataclass(frozen=True)
class Row:
    """A line of the table; seconds as text, or why there are none."""

    task: str
    peer: str
    version: str
    threads: int
    peer_s: str
    ours_s: str
    ratio: str
    results: str


class Kept:
    """A work that keeps its last result."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work, self.result = work, None

    def __call__(self) -> None:
        self.result = self.work()


@dataclass
class Bench:
    """What all rows share; `only`: words of the names of peers to compare with."""

    threads: int
    repeats: int
    sizes: dict[str, tuple[int, ...]]
    folder: Path
    only: list[str]
    graph_tool: str

    def row(
        self,
        task: str,
        peer: str,
        find: Callable[[], str],
        ours: Callable[[int], object],
        theirs: Callable[[], object],
        agree: Callable[[object, object], str],
        threads: int | None = None,
    ) -> Iterator[Row]:
        """Measure one peer; `find` gives its version, `ours` takes a number of threads."""
        if self.only and not any(word.lower() in peer.lower() for word in self.only):
            return
        threads = threads or self.threads
        try:
            version = find()
        except LookupError as reason:
            yield Row(task, peer, "-", threads, "not available", "-", "-", reason.args[0])
            return
        mine, peers = Kept(partial(ours, threads)), Kept(theirs)
        mine()  # compile kernels, load the files into the page cache
        try:
            own, other = best_in_turn(self.repeats, mine, peers)
        except (subprocess.CalledProcessError, FileNotFoundError) as error:  # some exit with 0
            reason = f"ended with an error: {error}"
            yield Row(task, peer, version, threads, "not available", "-", "-", reason)
            return
        same = agree(mine.result, peers.result)
        ratio = f"{other / own:.2g}" if other < 10 * own else f"{other / own:.0f}"
        yield Row(task, peer, version, threads, f"{other:.3g}", f"{own:.3g}", ratio, same)


# --------------------------------------------------------------------------- distances, kinship


def syrk_distances(genotypes: np.ndarray, threads: int) -> np.ndarray:
    """Squared distances from the inner products of float32 genotypes (samples, sites), upper."""
    with threadpool_limits(threads):
        products = ssyrk(1.0, genotypes)
    squares = np.diagonal(products).astype(np.int64)
    return np.triu(squares[:, None] + squares - 2 * products.astype(np.int64))


def packed(genotypes: np.ndarray) -> Planes:
    """Planes of genotypes (samples, sites) without missing ones, in memory."""
    padded = np.pad(genotypes, ((0, 0), (0, -genotypes.shape[1] % 512)))
    planes = [np.packbits(padded == value, axis=1, bitorder="little") for value in (1, 2)]
    first, second = (plane.view(np.uint64) for plane in planes)
    return Planes(np.stack([first | second, second], axis=1), padded.shape[1])


def squared(planes: Planes, threads: int) -> np.ndarray:
    return CpuBackend(threads).bitgemm(planes, None, SQUARED)[0]


def distance_rows(bench: Bench) -> Iterator[Row]:
    """PLINK from a .bed; OpenBLAS and SciPy from arrays."""
    n, n_sites = bench.sizes["distances"]
    prefix = bench.folder / "distances"
    write_random_plink(prefix, n, n_sites)
    size = f"{n} samples × {n_sites} sites"

    def plink() -> np.ndarray:
        bench_distance.plink(prefix, bench.threads)
        return np.fromfile(prefix.with_name("plink.dist.bin")).reshape(n, n)

    yield from bench.row(
        f"alleles that differ, {size}", "PLINK 1.9 --distance",
        partial(program_version, "plink1.9", "--version"),
        lambda threads: bench_distance.bed_to_matrix(prefix, threads, ALLELES), plink, equal,
    )  # fmt: skip
    genotypes = np.ascontiguousarray(unpack_bed(open_bed(prefix)[:], n).T)
    wide = np.asfortranarray(genotypes.astype(np.float32))
    planes = packed(genotypes)
    yield from bench.row(
        f"squared distances, {size}", "OpenBLAS SYRK, float32", blas_version,
        lambda threads: np.triu(squared(planes, threads)),
        partial(syrk_distances, wide, bench.threads), equal,
    )  # fmt: skip
    few = bench.sizes["pdist"][0]
    doubles, few_planes = genotypes[:few].astype(np.float64), packed(genotypes[:few])
    yield from bench.row(
        f"squared distances, {few} samples × {n_sites} sites", "SciPy pdist, sqeuclidean",
        lambda: scipy.__version__, partial(squared, few_planes),
        lambda: squareform(pdist(doubles, "sqeuclidean")), equal, threads=1,
    )  # fmt: skip

    def king(*form: str) -> Path:
        base = prefix.with_name("king")
        start = ("plink2", "--bfile", prefix, "--threads", bench.threads)
        run(*start, *form, "--out", base)
        return base

    def ours(threads: int) -> np.ndarray:
        read = bench_compare.planes_in_memory(open_bed(prefix), n, threads)
        return king_robust(kinship_counts(read, None, CpuBackend(threads)))

    def matrix() -> np.ndarray:
        found = np.fromfile(king("--make-king", "square", "bin").with_suffix(".king.bin"))
        return found.reshape(n, n)

    yield from bench.row(
        f"KING-robust kinship of all pairs, {size}", "PLINK 2 --make-king",
        partial(program_version, "plink2", "--version"), ours, matrix, equal,
    )  # fmt: skip


def ld_rows(bench: Bench) -> Iterator[Row]:
    """r² of all pairs of sites, from a .bed."""
    n, n_sites = bench.sizes["ld"]
    prefix = bench.folder / "ld"
    write_random_plink(prefix, n, n_sites)

    def plink() -> np.ndarray:
        start = ("plink1.9", "--bfile", prefix, "--threads", bench.threads, "--r2")
        run(*start, "square", "bin", "--out", prefix)
        return np.fromfile(prefix.with_suffix(".ld.bin")).reshape(n_sites, n_sites)

    yield from bench.row(
        f"r² of all pairs, {n_sites} sites × {n} samples", "PLINK 1.9 --r2",
        partial(program_version, "plink1.9", "--version"),
        lambda threads: bench_compare.ld_matrix(prefix, CpuBackend(threads)), plink, equal,
    )  # fmt: skip


def pca_rows(bench: Bench) -> Iterator[Row]:
    """Leading components of a structured population, from a .bed to vectors."""
    n, n_sites = bench.sizes["pca"]
    prefix = bench.folder / "pca"
    write_random_plink(prefix, n, n_sites)  # its .bim and .fam
    rows, _ = bench_pca.drawn(n, n_sites, COMPONENTS + 1, np)
    prefix.with_suffix(".bed").write_bytes(BED_MAGIC + rows.tobytes())
    names = read_fam(prefix)["sample"].tolist()

    def ours(threads: int) -> np.ndarray:
        bed = np.ascontiguousarray(open_bed(prefix)[:])
        af = alt_frequency(unpack_bed(bed, n))
        calls = Calls((bed,), None, (np.ones(n, bool),), af)
        relationship = RelationshipProducts(CpuBackend(threads).genotype_products(calls))
        return bench_pca.by_passes(relationship, names, COMPONENTS).pairs(COMPONENTS)[1]

    def plink(program: str, *form: object) -> np.ndarray:
        run(program, "--bfile", prefix, "--threads", bench.threads, *form, "--out", prefix)
        header = 0 if program == "plink2" else None
        table = pd.read_csv(prefix.with_suffix(".eigenvec"), sep=r"\s+", header=header)
        return table.iloc[:, -COMPONENTS:].to_numpy(np.float64)

    for program, peer, form in (
        ("plink1.9", "PLINK 1.9 --pca", ("--pca", COMPONENTS)),
        ("plink2", "PLINK 2 --pca", ("--pca", COMPONENTS)),
        ("plink2", "PLINK 2 --pca approx", ("--pca", COMPONENTS, "approx")),
    ):
        yield from bench.row(
            f"{COMPONENTS} components, {n} samples × {n_sites} sites", peer,
            partial(program_version, program, "--version"),
            ours, partial(plink, program, *form), same_axes,
        )  # fmt: skip


# --------------------------------------------------------------------------- epistasis


def write_study(prefix: Path, n: int, n_sites: int) -> None:
    """Random genotypes of `n` // 2 controls, then cases, as .bed and as text (.tped)."""
    write_random_plink(prefix, n, n_sites)
    status = ["1"] * (n // 2) + ["2"] * (n - n // 2)
    people = "".join(f"0 i{i} 0 0 1 {one}\n" for i, one in enumerate(status))
    prefix.with_suffix(".fam").write_text(people)
    prefix.with_suffix(".tfam").write_text(people)
    letters = np.array(["G G", "A G", "A A"])
    with open(prefix.with_suffix(".tped"), "w") as file:
        for i, genotypes in enumerate(unpack_bed(open_bed(prefix)[:], n)):
            file.write(f"1 s{i} 0 {i + 1} {' '.join(letters[genotypes])}\n")


def scan_rows(bench: Bench) -> Iterator[Row]:
    """Exhaustive scans of pairs and triples, from the files to the best combinations."""
    n, n_sites = bench.sizes["scan"]
    prefix, out = bench.folder / "scan", bench.folder / "hits"
    write_study(prefix, n, n_sites)

    def ours(order: int, score: str, threads: int) -> set[frozenset[int]]:
        genotypes = read_cohorts([prefix])[0](0, None)
        words, sites, _ = reorder_sites(lambda part: genotypes[part], np.arange(n_sites), n // 2)
        data = make_scan_data(words, sites, n // 2, n - n // 2, score)
        scan = scan_pairs if order == 2 else scan_triples
        hits = scan(CpuBackend(threads), data, range(data.n_sites), TOP)
        return {frozenset(map(int, row)) for row in data.rank[hits.sites]}

    def bitepi() -> set[frozenset[int]]:
        run(
            *("BitEpi", "-i", prefix, "-bfile", "-t", bench.threads, "-sort", "-b3", TOP),
            *("-o", out),
        )
        table = pd.read_csv(f"{out}.Beta.3.csv").head(TOP)
        return {frozenset(int(name[1:]) for name in row) for row in table.to_numpy()[:, 1:]}

    def of_text(order: int, *command: object) -> set[frozenset[int]]:
        files = prefix.with_suffix(".tped"), prefix.with_suffix(".tfam"), out
        run(*command, *files)
        found = np.loadtxt(out, ndmin=2)[:, :order]
        return {frozenset(row) for row in found.astype(int).tolist()}

    size = f"{n_sites} sites × {n} samples"
    flags = ("-t", bench.threads, "-n", TOP)
    information, fiuncho = "mutual_information", ("fiuncho", ("--version",))
    for order, score, program, version, theirs in (
        (3, "gini", "BitEpi", (), bitepi),
        (3, information, "MPI3SNP", ("-V",), partial(of_text, 3, "MPI3SNP", *flags)),
        (3, information, *fiuncho, partial(of_text, 3, "fiuncho", *flags, "-o", 3)),
        (2, information, *fiuncho, partial(of_text, 2, "fiuncho", *flags, "-o", 2)),
    ):
        yield from bench.row(
            f"{'pairs' if order == 2 else 'triples'} by {score.replace('_', ' ')}, {size}",
            "Fiuncho" if program == "fiuncho" else program,
            partial(program_version, program, *version),
            partial(ours, order, score),
            theirs,
            same_hits,
        )


# --------------------------------------------------------------------------- shortest paths


def closure_rows(bench: Bench) -> Iterator[Row]:
    """All shortest paths of a complete graph, float64."""
    (n,) = bench.sizes["closure"]
    weights = bench_minplus.draw_weights(n)

    def ours(threads: int) -> np.ndarray:
        return bench_minplus.close_once(weights, np.float64, threads)

    task = f"all shortest paths, {n} nodes, float64"
    yield from bench.row(
        task, "SciPy floyd_warshall", lambda: scipy.__version__, ours,
        lambda: floyd_warshall(weights, directed=False), equal, threads=1,
    )  # fmt: skip
    yield from graph_tool_row(bench, task, weights, ours)


def graph_tool_row(bench: Bench, task: str, weights: np.ndarray, ours: Callable) -> Iterator[Row]:
    """One run of graph-tool, in a Python of its own that times its search alone.

    Its Floyd-Warshall uses one thread.
    """
    if bench.only and not any(word.lower() in "graph-tool" for word in bench.only):
        return
    try:
        version = graph_tool_version(bench.graph_tool)
    except LookupError as reason:
        yield Row(task, "graph-tool", "-", 1, "not available", "-", "-", reason.args[0])
        return
    mine = Kept(partial(ours, 1))
    own = best_in_turn(bench.repeats, mine)[0]
    other, found = bench_minplus.graph_tool_closure(bench.graph_tool, weights, 1)
    times = f"{other:.3g}", f"{own:.3g}", f"{other / own:.0f}"
    yield Row(task, "graph-tool", version, 1, *times, equal(mine.result, found))


# --------------------------------------------------------------------------- the table


def markdown(rows: list[Row]) -> str:
    """The table as it stands on the page."""
    titles = ("task", "peer", "version", "threads", "peer, s", "here, s", "ratio", "results")
    lines = [titles, ("---",) * len(titles), *map(astuple, rows)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def commit() -> str:
    """The commit of this clone, if it is one."""
    command = ["git", "-C", commandline.ROOT, "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[], help="peers whose names hold a word")
    parser.add_argument("--graph-tool", metavar="PYTHON", default="/usr/bin/python3")
    parser.add_argument("--out", type=Path, default=commandline.ROOT / "build/peers.tsv")
    options = commandline.parse(parser, size="tiny", repeats=1)
    started = time.perf_counter()
    print(
        f"{CpuBackend(options.threads).describe()}; {platform.machine()}; "
        f"{time.strftime('%d %B %Y')}; commit {commit()}\n",
        flush=True,
    )
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(
            options.threads, options.repeats, SIZES[options.size], Path(folder),
            options.only, options.graph_tool,
        )  # fmt: skip
        for part in (distance_rows, ld_rows, pca_rows, scan_rows, closure_rows):
            rows += part(bench)
    print(markdown(rows))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    names = [field.name for field in fields(Row)]
    pd.DataFrame([astuple(row) for row in rows], columns=names).to_csv(
        options.out, sep="\t", index=False
    )
    print(f"\n{options.out}; {time.perf_counter() - started:.0f} s in all")


if __name__ == "__main__":
    main()
