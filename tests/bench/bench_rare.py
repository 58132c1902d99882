"""Rare variants as lists of carriers: bytes beside rows and .pgen, products beside dense ones.

A population that has grown is drawn (`drawn_genomes.py`). Its sites are written as a plain .bed, as
`raw.bed` of a study, and by PLINK 2 where it is installed. Classes are by carriers of the rarer
allele.

python tests/bench/bench_rare.py              bytes, and rates of writing, reading and counting
python tests/bench/bench_rare.py --products   products of all samples on the CPU, as the model
                                              chooses, with all sites dense, and with none rare
python tests/bench/bench_rare.py --passes     the same for passes of the PCA over the genotypes
python tests/bench/bench_rare.py --axes       20 components of a file of lists, on --device; the
                                              sites are written --copies times, and a pass is also
                                              timed as where no genotypes stay on the device
"""

from __future__ import annotations

import math
import subprocess
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import commandline
import numpy as np
from bench_pca import by_passes, timed
from drawn_genomes import draw_haplotypes
from timing import print_table

from popdesic.cohort.encode import place_rows, planes_in_memory
from popdesic.cohort.genotypes_cpu import count_by_group
from popdesic.cohort.site_counts import count_groups_at, count_placed
from popdesic.components.krylov import COLUMNS
from popdesic.components.relationship_products import RelationshipProducts
from popdesic.engine import carrier_sums_plan, genotype_products_cpu
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.genotype_products import Calls
from popdesic.engine.genotype_products_cpu import CpuProducts
from popdesic.engine.select import select_backend
from popdesic.engine.terms import KINSHIP, SQUARED
from popdesic.io import listed_rows
from popdesic.io.bed import open_bed
from popdesic.io.genotypes import BED_MAGIC, pack_bed
from popdesic.io.listed_rows import ListedRows, RowsFile
from popdesic.io.sites import chunks

#: First number of carriers of each class; shares of the samples above 20.
CLASSES = (1, 2, 3, 6, 20)
SHARES = (0.01, 0.05)
#: Components of --axes, and device memory with which genotypes do not stay there.
COMPONENTS, SMALL_ROOM = 20, 1 << 30
#: Populations whose genotypes are counted, and sites at a time.
POPULATIONS, COUNTED_SITES = 10, 1024


def draw_rows(n_samples: int, length: int, missing: float, seed: int) -> tuple[np.ndarray, ...]:
    """Rows of a .bed, and the carriers of the rarer allele of each site."""
    rng = np.random.default_rng(seed)
    rows, carriers = [], []
    for _, alleles in draw_haplotypes(n_samples, length, seed):
        genotypes = alleles[0::2] + alleles[1::2]
        carriers.append(min(np.count_nonzero(genotypes), np.count_nonzero(genotypes < 2)))
        genotypes[rng.integers(0, n_samples, rng.binomial(n_samples, missing))] = -1
        rows.append(pack_bed(genotypes[None])[0])
    kept = np.array(carriers) > 0
    return np.array(rows)[kept], np.array(carriers)[kept]


def write_rows(path: Path, rows: np.ndarray, n_samples: int) -> None:
    with RowsFile(path, n_samples) as file:
        for first in range(0, len(rows), 64):
            file.add(rows[first : first + 64])


def pgen_bytes(folder: Path, n_samples: int, n_sites: int) -> int | None:
    """Size of the .pgen that PLINK 2 makes of plain.bed."""
    program = commandline.find_peer("plink2")
    if program is None:
        return None
    sites = "".join(f"1\ts{k}\t0\t{k + 1}\tA\tC\n" for k in range(n_sites))
    (folder / "plain.bim").write_text(sites)
    names = "".join(f"0\ti{k}\t0\t0\t0\t-9\n" for k in range(n_samples))
    (folder / "plain.fam").write_text(names)
    command = [program, "--bfile", "plain", "--make-pgen", "--out", "peer", "--threads", "2"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return (folder / "peer.pgen").stat().st_size


def time_products(rows: np.ndarray, carriers: np.ndarray, n: int, threads: int) -> None:
    """Products with rare sites by carriers beside dense ones, in CPU seconds.

    Common sites alone (minor allele carried by a tenth of the samples) show what the choice costs.
    The first products are also divided by the time in which the file of all sites is read once.
    """
    backend, table = CpuBackend(threads), []
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "raw.bed")
        write_rows(path, rows, n)
        listed = ListedRows(path, n, len(rows))
        (reading,) = cpu_in_turn(
            3, lambda: [listed[first:last] for first, last in chunks(len(rows))]
        )
    least = carrier_sums_plan.LEAST_NS
    common = np.ascontiguousarray(rows[carriers >= n / 10])
    for sites, own in (("all", rows), ("common", common)):
        complete = planes_in_memory(own, n, threads)
        for name, planes, terms in (
            ("squared", complete, SQUARED),
            ("squared, called", complete.with_mask(), SQUARED),
            ("kinship, called", complete.with_mask(), KINSHIP),
        ):

            def dense(planes=planes, terms=terms) -> np.ndarray:
                carrier_sums_plan.LEAST_NS = math.inf
                try:
                    return backend.bitgemm(planes, None, terms)
                finally:
                    carrier_sums_plan.LEAST_NS = least

            def chosen(planes=planes, terms=terms) -> np.ndarray:
                return backend.bitgemm(planes, None, terms)

            assert (chosen() == dense()).all()
            by_carriers, all_dense = cpu_in_turn(3, chosen, dense)
            cells = f"{by_carriers:.3f}", f"{all_dense:.3f}", f"{all_dense / by_carriers:.2f}"
            times = f"{by_carriers / reading:.1f}" if sites == "all" else "-"
            table.append((sites, len(own), name, *cells, times))
    print_table(
        f"{n} samples with themselves, {threads} threads: CPU seconds of products; lists are read "
        f"in {reading:.3f}",
        ("sites", "number", "terms", "as chosen", "dense", "ratio", "as chosen / reading"),
        table,
    )


def time_passes(rows: np.ndarray, carriers: np.ndarray, n: int, threads: int) -> None:
    """One pass X X' V of 24 columns with rare sites as lists beside one without, in CPU seconds.

    The first pass also reads and sorts the genotypes, as every pass does where memory is short.
    """
    vectors, table = np.random.default_rng(1).normal(size=(n, 24)), []
    least = genotype_products_cpu.LEAST_LISTED
    for sites, kept in (("all", carriers > 0), ("common", carriers >= n / 10)):
        calls = Calls((rows[kept],), None, (np.ones(n, bool),), np.full(kept.sum(), 0.4))
        times, found = [], []
        for share in (least, 2):  # no share of rare sites is so large
            genotype_products_cpu.LEAST_LISTED = share
            products = CpuProducts(calls, threads)
            found.append(products.normal(vectors).tobytes())
            times += cpu_in_turn(
                3,
                lambda calls=calls: CpuProducts(calls, threads).normal(vectors),
                lambda products=products: products.normal(vectors),
            )
        genotype_products_cpu.LEAST_LISTED = least
        assert found[0] == found[1]
        for name, lists, dense in (("first", *times[::2]), ("further", *times[1::2])):
            cells = f"{lists:.3f}", f"{dense:.3f}", f"{dense / lists:.2f}"
            table.append((sites, kept.sum(), name, *cells))
    print_table(
        f"{n} samples, {threads} threads: CPU seconds of a pass of 24 columns",
        ("sites", "number", "pass", "lists", "dense", "ratio"),
        table,
    )


def time_axes(rows: np.ndarray, n: int, folder: Path, options) -> None:
    """COMPONENTS of a file of lists, and single passes of COLUMNS vectors.

    The copies of a site are one site of a larger weight, so the components stay as they are.
    """
    threads = options.threads
    backend = select_backend(options.device, threads)
    everyone, n_sites = np.zeros(n, np.int64), len(rows) * options.copies

    def write() -> None:
        with RowsFile(folder / "axes.bed", n) as file:
            for _ in range(options.copies):
                for first in range(0, len(rows), 64):
                    file.add(rows[first : first + 64])

    timed("written", write)
    listed = open_bed(folder / "axes", n_samples=n, n_sites=n_sites)
    size = (folder / "axes.bed").stat().st_size
    print(f"{n} samples, {n_sites} sites: {size} bytes, rows {n_sites * rows.shape[1]}")
    count_groups_at(listed, 0, 64, everyone, 1)  # compiled
    counts = timed("counted as lists", lambda: count_groups_at(listed, 0, n_sites, everyone, 1))[
        :, 0, :3
    ]
    called = counts.sum(axis=1)
    calls = Calls((listed,), None, (np.ones(n, bool),), (counts @ [0, 1, 2]) / (2 * called))
    few = Calls((listed[:64],), None, calls.keep, calls.af[:64])
    RelationshipProducts(backend.genotype_products(few))(np.ones((n, 1)))  # compiled, warm
    held = timed("lists to where they are multiplied", lambda: backend.genotype_products(calls))
    relationship = timed("called genotypes and squares", lambda: RelationshipProducts(held))
    names = [f"S{k}" for k in range(n)]
    space = timed(f"{COMPONENTS} components", lambda: by_passes(relationship, names, COMPONENTS))
    print(f"  {space.passes} passes of {COLUMNS} vectors")
    vectors = np.random.default_rng(1).normal(size=(n, COLUMNS))
    once = timed("one pass", lambda: held.normal(vectors))
    if options.device == "cpu":
        return
    from popdesic.engine.genotype_products_gpu import GpuProducts

    streamed = GpuProducts(calls, backend.device, SMALL_ROOM, threads)
    assert (timed("one pass, read from the lists", lambda: streamed.normal(vectors)) == once).all()


def count_populations(listed: ListedRows, n: int, lists: bool) -> np.ndarray:
    """Counts as statistics of populations read them, from lists or from rows made of them."""
    group, everyone = np.arange(n) % POPULATIONS, np.arange(n)
    found = []
    for first, last in chunks(len(listed), COUNTED_SITES):
        sites, turned = np.arange(first, last), np.zeros(last - first, bool)
        if lists:
            found.append(count_placed(listed, sites, turned, group, POPULATIONS))
        else:
            rows = place_rows(listed, n, everyone, sites, turned)
            found.append(count_by_group(rows, group, POPULATIONS))
    return np.concatenate(found)


def cpu_in_turn(repeats: int, *works: Callable[[], object]) -> list[float]:
    """Least CPU time of each work, of all threads: other load changes wall time more."""
    rounds = []
    for _ in range(repeats):
        times = []
        for work in works:
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
        rounds.append(times)
    return [min(times) for times in zip(*rounds, strict=True)]


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--length", type=int, default=400_000, help="base pairs")
    parser.add_argument("--missing", type=float, default=0.0, help="share of calls")
    parser.add_argument("--products", action="store_true", help="products on the CPU, no bytes")
    parser.add_argument("--passes", action="store_true", help="passes of the PCA, no bytes")
    parser.add_argument("--axes", action="store_true", help="20 components of lists, no bytes")
    parser.add_argument("--copies", type=int, default=1, help="of each site, with --axes")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="of --axes")
    parser.add_argument("--threads", type=int, default=1, help="of products, passes, axes")
    options = commandline.parse(parser, samples=2_000, length=50_000)
    n = options.samples
    rows, carriers = draw_rows(n, options.length, options.missing, 1)
    n_sites = len(rows)
    # The choice of the file, whatever the size of this region.
    listed_rows.LEAST_LISTED = min(listed_rows.LEAST_LISTED, rows.size)
    if options.axes:
        with tempfile.TemporaryDirectory() as name:
            time_axes(rows, n, Path(name), options)
        return
    if options.products or options.passes:
        if options.products:
            time_products(rows, carriers, n, options.threads)
        if options.passes:
            time_passes(rows, carriers, n, options.threads)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plain.bed").write_bytes(BED_MAGIC + rows.tobytes())
        write_rows(folder / "raw.bed", rows, n)
        sizes = {kind: (folder / f"{kind}.bed").stat().st_size for kind in ("plain", "raw")}
        if (pgen := pgen_bytes(folder, n, n_sites)) is not None:
            sizes["pgen"] = pgen
        bounds = [*CLASSES, *(max(round(share * n), 21) for share in SHARES), n + 1]
        table = []
        for first, last in pairwise(bounds):
            own = np.ascontiguousarray(rows[(carriers >= first) & (carriers < last)])
            if len(own):
                listed_rows.LEAST_LISTED = own.size
                write_rows(folder / "class.bed", own, n)
                size = (folder / "class.bed").stat().st_size
                of_class = f"{first} to {last - 1}" if last - first > 1 else str(first)
                table.append((of_class, len(own), f"{len(own) / n_sites:.3f}", own.size, size,
                              f"{own.size / size:.1f}"))  # fmt: skip
        print_table(
            f"{n} samples, {n_sites} sites, missing {options.missing}: bytes by carriers",
            ("carriers", "sites", "share", "rows", "raw.bed", "rows / raw.bed"),
            table,
        )
        print_table(
            "Bytes of all sites",
            ("file", "bytes", "rows / it"),
            [(kind, size, f"{sizes['plain'] / size:.1f}") for kind, size in sizes.items()],
        )
        listed = ListedRows(folder / "raw.bed", n, n_sites)
        plain = open_bed(folder / "plain", n_samples=n, n_sites=n_sites)
        assert (listed[:] == plain).all()
        everyone = np.zeros(n, np.int64)
        counts = [count_groups_at(kind, 0, n_sites, everyone, 1) for kind in (listed, plain)]
        assert (counts[0] == counts[1]).all()
        by_population = [count_populations(listed, n, lists) for lists in (True, False)]
        assert (by_population[0] == by_population[1]).all()
        times = cpu_in_turn(
            3,
            lambda: write_rows(folder / "again.bed", rows, n),
            lambda: [listed[k : k + 256] for k in range(0, n_sites, 256)],
            lambda: [np.array(plain[k : k + 256]) for k in range(0, n_sites, 256)],
            lambda: count_groups_at(listed, 0, n_sites, everyone, 1),
            lambda: count_groups_at(plain, 0, n_sites, everyone, 1),
            lambda: count_populations(listed, n, True),
            lambda: count_populations(listed, n, False),
        )
        work = ("write lists", "read lists as rows", "copy rows", "count lists", "count rows")
        work += (f"count {POPULATIONS} populations: lists", "the same by rows made of lists")
        rates = [
            (what, f"{n * n_sites / seconds / 1e9:.2f}")
            for what, seconds in zip(work, times, strict=True)
        ]
        print_table("G genotypes a CPU second, one thread", ("work", "rate"), rates)


if __name__ == "__main__":
    main()
