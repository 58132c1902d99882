"""Error of geodesics by number type: closures of real distances, compared with float64 SciPy.

python tests/bench/bench_number_formats.py [SHARED] [--quick]

SHARED (default: POPDESIC_SHARED, else ../shared) holds the real genotype data. Errors are
relative: the largest over all pairs whose geodesic is above zero.
"""

from __future__ import annotations

import os
from pathlib import Path

import commandline
import numpy as np
from cyvcf2 import VCF
from scipy.sparse.csgraph import floyd_warshall
from timing import print_table

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.geodesic.closure import close_paths
from popdesic.geodesic.weights import choose_number, power_weights

SETS = ("hapmap3_957", "hapmap279", "kg1_chr22_564", "mice1814")
ALPHAS = (1, 2, 4, 8)


def read_distances(folder: Path) -> np.ndarray:
    """Euclidean distances over jointly called biallelic SNPs, float64 (n, n)."""
    genotypes = [
        record.gt_types.astype(np.int8)
        for record in VCF(str(next(folder.glob("*.vcf.gz"))), gts012=True)
        if record.is_snp and len(record.ALT) == 1
    ]
    matrix = np.array(genotypes).T
    called = (matrix < 3).astype(np.float64)
    values = np.where(matrix < 3, matrix, 0).astype(np.float64)
    squares = (values**2) @ called.T
    joint = called @ called.T
    squared = squares + squares.T - 2 * values @ values.T
    return np.sqrt(np.maximum(squared, 0) * len(genotypes) / joint)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    here = Path(os.environ.get("POPDESIC_SHARED", "../shared"))
    parser.add_argument("shared", nargs="?", type=Path, default=here)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--alphas", type=int, nargs="*", default=ALPHAS)
    options = commandline.parse(parser, sets=["hapmap279"], alphas=[2])
    if not (options.shared / "data").is_dir():
        raise SystemExit(
            f"Error: {options.shared}/data is not there; name the folder of real data."
        )
    backend = CpuBackend(os.cpu_count() or 1)
    rows = []
    for name in options.sets:
        distances = read_distances(options.shared / "data" / name)
        founders = np.ones(len(distances), bool)
        upper = np.triu_indices(len(distances), 1)
        for alpha in options.alphas:
            weights = power_weights(distances, alpha)
            scale = weights.max()  # SciPy treats weights within 1e-8 of zero as missing edges
            exact = floyd_warshall(np.ma.masked_array(weights / scale * 1e12, np.eye(len(weights))))
            exact = exact[upper] * (scale / 1e12)
            indirect = (exact < weights[upper] * (1 - 1e-9)).mean()
            cells = []
            for wanted in ("int32", "int64", "float32"):
                number = choose_number(weights, founders, wanted)
                w = number.store(weights)
                close_paths(w, backend)
                off = np.abs(number.value(w)[upper] - exact) / np.where(exact > 0, exact, np.inf)
                cells.append(f"{off.max():.0e}")
            taken = choose_number(weights, founders, "auto").dtype
            rows.append((name, alpha, f"{indirect:.1%}", *cells, taken))
    print_table(
        "largest relative error of all pairs",
        ("set", "alpha", "indirect", "int32", "int64", "float32", "auto takes"),
        rows,
    )


if __name__ == "__main__":
    main()
