"""Time of scans of several phenotypes with shared controls over that of one.

    python tests/bench/bench_phenotypes.py [--device cpu|gpu] [--controls N] [--cases N] [--quick]

Random genotypes of 6.7, 23.7 and 69.6 %, the cases of each phenotype its own. 'one': the scan of
one phenotype, in CPU seconds (on a GPU in seconds); 'all': all of them, one after the other, as a
multiple of 'one'. `--bound` scans nothing: it prints how far counting shared controls once could
lower that multiple, by counting alone and with what each phenotype's tables take on an H200.
"""

import tempfile
import time
from pathlib import Path

import commandline
import numpy as np
import pandas as pd

from popdesic.core.tables import write_npy, write_table
from popdesic.engine.select import select_backend
from popdesic.epistasis.reorder import reorder_sites
from popdesic.epistasis.scan_sites import scanner
from popdesic.epistasis.scores import load_scan

FREQUENCIES, TOP = (0.696, 0.237, 0.067), 1000
#: Controls, and cases of each phenotype.
SIZES = ((3000, 2000), (10_000, 1000), (50_000, 5000))
LARGE = (500_000, 50_000)
#: Triples x samples a second of an H200, by samples: two rates of kernels/README.md.
FEW, MANY = (5_120, 391e12), (524_288, 4_279e12)
#: Picoseconds of a triple that follow from them: counting 1 000 people, table and bound.
COUNT_PS = (MANY[0] / MANY[1] - FEW[0] / FEW[1]) / (MANY[0] - FEW[0]) * 1e15
TABLE_PS = FEW[0] / FEW[1] * 1e12 - COUNT_PS * FEW[0] / 1000


def lower_bound(controls: int, cases: int, phenotypes: int, table_ps: float = TABLE_PS) -> float:
    """Least time of all phenotypes over that of one if shared controls are counted once.

    `table_ps` is what a table costs beside its counts; 0: by counting alone.
    """
    one = table_ps + COUNT_PS * (controls + cases) / 1000
    return (phenotypes * table_ps + COUNT_PS * (controls + phenotypes * cases) / 1000) / one


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--phenotypes", type=int, default=7)
    parser.add_argument("--controls", type=int, help="of all phenotypes")
    parser.add_argument("--cases", type=int, default=2000, help="of each phenotype")
    parser.add_argument("--sites", type=int, default=300, help="of triples; pairs have ten times")
    parser.add_argument("--missing", type=float, default=0.0, help="rate")
    parser.add_argument("--orders", nargs="+", type=int, default=[2, 3])
    parser.add_argument("--scores", nargs="+", default=["k2_excess", "interaction"])
    parser.add_argument("--bound", action="store_true", help="print the bounds alone")
    options = commandline.parse(parser, sites=40, controls=300, cases=200)
    if options.bound:
        print(f"{'controls + cases':>20} {'counting':>9} {'tables':>7}")
        for controls, cases in (*SIZES, LARGE):
            bounds = [lower_bound(controls, cases, options.phenotypes, ps) for ps in (0, TABLE_PS)]
            print(f"{f'{controls} + {cases}':>20} {bounds[0]:>9.2f} {bounds[1]:>7.2f}")
        return
    clock = time.process_time if options.device == "cpu" else time.perf_counter
    backend = select_backend(options.device, 1, scans=True)
    print(backend.describe())
    sizes = [(options.controls, options.cases)] if options.controls else SIZES
    print(f"{'controls + cases':>20} {'order':>6} {'score':>12} {'one, s':>8} {'all':>7}")
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
        write_phenotype(folders[-1], genotypes, classes)
    return folders


def write_phenotype(folder: Path, genotypes: np.ndarray, classes: np.ndarray) -> None:
    """Files of `reorder.build_onehot` of one phenotype, from people and sites of a whole study."""
    order = np.concatenate([np.flatnonzero(classes == 0), np.flatnonzero(classes == 1)])
    n_controls = int((classes == 0).sum())
    words, sites, _ = reorder_sites(
        lambda part: genotypes[part][:, order], np.arange(len(genotypes)), n_controls
    )
    rank = sites["rank"].to_numpy()
    names = [f"rs{k}" for k in rank]
    panel = {"chrom": "1", "pos": 1000 * (rank + 1), "id": names, "ref": "A", "alt": "C"}
    write_npy(folder / "onehot.npy", words)
    write_table(folder / "sites.tsv", pd.concat([pd.DataFrame(panel), sites], axis=1))
    own = classes[order]
    table = {"sample": [f"p{k}" for k in order], "cohort": "a", "stratum": "all"}
    table |= {"class": np.where(own == 1, "case", "control"), "phenotype": own}
    write_table(folder / "samples.tsv", pd.DataFrame(table))


def measure(folders: list[Path], order: int, score: str, backend, clock, label: str) -> None:
    """Print one row."""
    scan = scanner(backend, order)
    data = [load_scan(folder, score, 0, 1.0)[0] for folder in folders]
    scan(data[0], range(1), 1)  # compiles
    times = []
    for one in data:
        started = clock()
        scan(one, range(one.n_sites), TOP)
        times.append(clock() - started)
    one = float(np.median(times))
    print(
        f"{label:>20} {order:>6} {score:>12} {one:>8.2f} {sum(times) / one:>7.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
