"""CPU seconds of the units of a scan, cut by equal work and by equal numbers of combinations.

    python tests/bench/bench_units.py [--device cpu|gpu] [--units 32] [--quick]

Sites in Hardy-Weinberg proportions with minor alleles of 5 to 50 %, best 1 000, one thread; on a
GPU seconds by the wall, with the set-up of each unit.
Columns: the slowest unit over the mean, by the model of `scan_work` and as measured, and
the error of the model: the root mean square of measured over modelled work of units, less one.
"""

import itertools
import time

import commandline
import numpy as np
from bench_epistasis_cpu import by_interaction

from popdesic.engine.select import select_backend
from popdesic.epistasis.reorder import reorder_sites
from popdesic.epistasis.scan_sites import scanner
from popdesic.epistasis.scan_work import first_site_work
from popdesic.epistasis.scores import make_scan_data
from popdesic.epistasis.units import count_stored, unit_bounds

TOP, CUTS = 1000, ("work", "number")


def draw(n_sites: int, n_samples: int, missing: float) -> tuple[np.ndarray, object]:
    """Planes and scan data by K2; half of the samples are cases."""
    rng, controls = np.random.default_rng(1), n_samples // 2
    frequency = rng.uniform(0.05, 0.5, n_sites)
    genotypes = rng.binomial(2, frequency[:, None], (n_sites, n_samples)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    words, sites, _ = reorder_sites(lambda part: genotypes[part], np.arange(n_sites), controls)
    return words, make_scan_data(words, sites, controls, n_samples - controls, "k2_excess")


def equal_counts(n_sites: int, n_units: int, order: int) -> np.ndarray:
    """Bounds of units with about equal numbers of combinations."""
    rest = (1 - np.arange(n_units + 1) / n_units) ** (1 / order)
    return np.round(n_sites * (1 - rest)).astype(int)


def seconds_of(data, order: int, bounds: np.ndarray, backend, clock) -> np.ndarray:
    """Seconds of each unit, the better of two."""
    scan, spent = scanner(backend, order), []
    scan(data, range(1), TOP)  # compiles
    for _ in range(2):
        spent.append([])
        for start, stop in itertools.pairwise(bounds.tolist()):
            started = clock()
            scan(data, range(start, stop), TOP)
            spent[-1].append(clock() - started)
    return np.min(spent, axis=0)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--units", type=int, default=32)
    parser.add_argument("--sites", type=int, default=1000, help="of triples; of pairs 10 times")
    parser.add_argument("--samples", type=int, nargs="+", default=[2048, 16384])
    parser.add_argument("--missing", type=float, nargs="+", default=[0.0, 0.01])
    parser.add_argument("--orders", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--scores", nargs="+", default=["k2_excess", "interaction"])
    parser.add_argument("--cuts", nargs="+", choices=CUTS, default=list(CUTS))
    options = commandline.parse(parser, sites=40, samples=[128], missing=[0.0], units=4)
    clock = time.process_time if options.device == "cpu" else time.perf_counter
    backend = select_backend(options.device, 1, scans=True)
    print(backend.describe())
    print(
        f"{'order':>5} {'sites':>6} {'samples':>8} {'missing':>8} {'score':>12} {'cut by':>8} "
        f"{'model':>6} {'measured':>9} {'error':>6} {'s':>7}  slowest"
    )
    for order, samples, missing in itertools.product(
        options.orders, options.samples, options.missing
    ):
        n_sites = options.sites * (10 if order == 2 else 1)
        words, data = draw(n_sites, samples, missing)
        work = first_site_work(count_stored(words), words.shape[2], order, options.device)
        cuts = {
            "work": unit_bounds(work, options.units),
            "number": equal_counts(n_sites, options.units, order),
        }
        for score, name in itertools.product(options.scores, options.cuts):
            bounds = cuts[name]
            one = data if score == "k2_excess" else by_interaction(data)
            spent = seconds_of(one, order, bounds, backend, clock)
            modelled = np.array([work[a:b].sum() for a, b in itertools.pairwise(bounds)])
            ratio = spent / spent.mean() / (modelled / modelled.mean())
            print(
                f"{order:>5} {n_sites:>6} {samples:>8} {missing:>8.0%} {score:>12} {name:>8} "
                f"{modelled.max() / modelled.mean():>6.2f} {spent.max() / spent.mean():>9.2f} "
                f"{np.sqrt(np.mean((ratio - 1) ** 2)):>6.1%} {spent.sum():>7.1f}  "
                f"unit {spent.argmax() + 1} of {len(spent)}, first {spent[0]:.3f} s, last "
                f"{spent[-1]:.3f} s, mean {spent.mean():.3f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
