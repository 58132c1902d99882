"""Time of scans of several phenotypes with shared controls over that of one.

    python tests/bench/bench_phenotypes.py [--device cpu|gpu] [--controls N] [--cases N] [--quick]

Random genotypes of 6.7, 23.7 and 69.6 %, the cases of each phenotype its own. 'one': the scan of
one phenotype, in CPU seconds (on a GPU in seconds); 'apart': all of them, one after the other;
'together': in one scan that counts the controls once (`Backend.scan_shared`), with the same hits,
which are compared. The last two are multiples of 'one'; 'people' is the multiple by people counted.
"""

import tempfile
import time
from pathlib import Path

import commandline
import numpy as np
import phenotype_scenes as scenes

from popdesic.engine.cpu.backend import CpuBackend
from popdesic.engine.select import select_backend
from popdesic.epistasis.scan import load_scan, scanner
from popdesic.epistasis.shared import read_shared

FREQUENCIES, TOP = (0.696, 0.237, 0.067), 1000
#: Controls, and cases of each phenotype.
SIZES = ((3000, 2000), (10_000, 1000), (50_000, 5000))


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--phenotypes", type=int, default=7)
    parser.add_argument("--controls", type=int, help="of all phenotypes")
    parser.add_argument("--cases", type=int, default=2000, help="of each phenotype")
    parser.add_argument("--sites", type=int, default=300, help="of triples; pairs have ten times")
    parser.add_argument("--missing", type=float, default=0.0, help="rate")
    parser.add_argument("--orders", nargs="+", type=int, default=[2, 3])
    parser.add_argument("--scores", nargs="+", default=["k2", "interaction"])
    options = commandline.parse(parser, sites=40, controls=300, cases=200)
    clock = time.process_time if options.device == "cpu" else time.perf_counter
    backend = select_backend(options.device, 1, scans=True)
    print(backend.describe())
    sizes = [(options.controls, options.cases)] if options.controls else SIZES
    print(f"{'controls + cases':>20} {'order':>6} {'score':>12} {'one, s':>8} {'apart':>7} "
          f"{'together':>9} {'people':>7}")  # fmt: skip
    for n_controls, n_cases in sizes:
        for order in options.orders:
            n_sites = options.sites * (10 if order == 2 else 1)
            with tempfile.TemporaryDirectory() as folder:
                folders = draw(Path(folder), n_sites, n_controls, n_cases, options)
                for score in options.scores:
                    measure(folders, order, score, backend, clock, f"{n_controls} + {n_cases}")


def draw(folder: Path, n_sites: int, n_controls: int, n_cases: int, options) -> list[Path]:
    """Folders of the phenotypes, as of `results/reorder`."""
    rng, n = np.random.default_rng(1), n_controls + options.phenotypes * n_cases
    genotypes = np.empty((n_sites, n), np.int8)
    for row in genotypes:
        row[:] = rng.choice(3, n, p=FREQUENCIES)
        if options.missing:
            row[rng.random(n) < options.missing] = -1
    folders = []
    for t in range(options.phenotypes):
        classes = np.full(n, -1, np.int8)
        classes[:n_controls] = 0
        classes[n_controls + t * n_cases :][:n_cases] = 1
        folders.append(folder / str(t))
        folders[-1].mkdir()
        scenes.write_phenotype(folders[-1], genotypes, classes)
    return folders


def measure(folders: list[Path], order: int, score: str, backend, clock, label: str) -> None:
    """Print one row."""
    scan = scanner(backend, order)
    data = [load_scan(folder, score, 0, 1.0)[0] for folder in folders]
    scan(data[0], range(1), 1)  # compiles
    hits, times = [], []
    for one in data:
        started = clock()
        hits.append(scan(one, range(one.n_sites), TOP))
        times.append(clock() - started)
    one, apart = float(np.median(times)), sum(times)
    together = people = "-"
    if isinstance(backend, CpuBackend):
        shared = read_shared(folders, score, 0, 1.0)
        backend.scan_shared(shared, order, range(1), 1)
        started = clock()
        found = backend.scan_shared(shared, order, range(shared.n_sites), TOP)
        together = f"{(clock() - started) / one:.2f}"
        counted = sum(group.n_samples for group in shared.groups)
        people = f"{counted / data[0].n_samples:.2f}"
        for a, b in zip(hits, found, strict=True):
            assert np.array_equal(a.cost, b.cost) and np.array_equal(a.sites, b.sites)
    print(
        f"{label:>20} {order:>6} {score:>12} {one:>8.2f} {apart / one:>7.2f} {together:>9} "
        f"{people:>7}",
        flush=True,
    )


if __name__ == "__main__":
    main()
