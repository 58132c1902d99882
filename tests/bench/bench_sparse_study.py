"""A study with and without matrices of all pairs: are nearest samples, relatives, geodesics equal?

    python tests/bench/bench_sparse_study.py [--samples 20000] [--sites 2000] [--cohorts 4]
        [--cores N] [--quick]

Draws one study, runs it twice, and compares what both have: nearest samples of everyone in both
spaces, geodesics among nearest neighbours (`geodesic.graph: knn`) to landmarks and to the nearest
by path, and the table of relatives, byte by byte. "equal" counts rows, or bytes, that are so. The
second table has how many of the drawn parents, children and duplicates are in the table of
relatives, also with the right relation, and how many other pairs are. It ends with an error where
anything differs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import commandline
import numpy as np
import yaml
from drawn_study import draw_people, write_study
from timing import print_table

from popdesic.core.files import read_json
from popdesic.core.tables import read_table
from popdesic.distance.matrix import load_distances, point_distances
from popdesic.geodesic.lengths import open_lengths
from popdesic.maps.knn import nearest_neighbors

NEIGHBORS, PCS = 50, 4
TARGETS = ("distance", "geodesic", "results/compare/kinship.tsv")
#: By what share rounding lets distances differ.
ROUNDING = 1e-12


def settings(dense_limit: int) -> dict:
    return {
        "device": "cpu",
        "distance": {"dense_limit": dense_limit},
        "geodesic": {"alpha": [2], "graph": "knn", "pcs": PCS, "space": ["genotypes", "pcs"]},
        "compare": {"analyses": ["kinship"]},
    }


def run(study: Path, dense_limit: int, cores: int) -> float:
    (study / "config/config.yaml").write_text(yaml.safe_dump(settings(dense_limit)))
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(commandline.ROOT / "Snakefile")]
    words += ["--directory", str(study), "--cores", str(cores), *TARGETS]
    start = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"Error: the run of {study} failed:\n{done.stderr[-2000:]}")
    return time.perf_counter() - start


def compare_lists(matrix, found: Path, threads: int) -> tuple[int, int, int]:
    """Lists beside those sorted out of a matrix: how many, with equal distances, equal samples."""
    with np.load(found) as lists:
        index, far = lists["index"], lists["distance"]
    n, k = index.shape
    near, distances = nearest_neighbors(matrix.__getitem__, n, k, threads)
    close = np.isclose(far, distances, rtol=ROUNDING, atol=0).all(axis=1)
    return n, int(close.sum()), int((index == near).all(axis=1).sum())


def compare(sparse: Path, dense: Path, threads: int) -> list[tuple]:
    n_sites = read_json(dense / "panel/counts.json")["n_sites"]
    distances = load_distances(
        dense / "distance", n_sites=n_sites, metric="euclidean", min_called=100
    )
    points = point_distances(dense / "embedding/pca.npy", PCS)
    rows = []
    for name, folder, matrix in (
        ("genotypes", "distance", distances),
        ("pcs", "embedding", points),
    ):
        n, equal, same = compare_lists(matrix, sparse / folder / "neighbors.npz", threads)
        rows.append((f"nearest {NEIGHBORS}, {name}", n, equal, same))
        closure = open_lengths(dense / "geodesic" / name / "alpha2.json")
        paths = sparse / "geodesic" / name
        with np.load(paths / "neighbors.alpha2.npz") as found:
            landmarks, far = found["landmarks"], found["distance"].astype(np.float32)
        own = (np.load(paths / "landmarks.alpha2.npy") == closure[landmarks]).all(axis=1)
        rows.append((f"geodesics of landmarks, {name}", len(own), int(own.sum()), "-"))
        _, expected = nearest_neighbors(closure.__getitem__, n, far.shape[1], threads)
        own = (far == expected.astype(np.float32)).all(axis=1)
        rows.append((f"nearest by path, {name}", n, int(own.sum()), "-"))
    one, other = ((study / "compare/kinship.tsv").read_bytes() for study in (sparse, dense))
    rows.append(("bytes of kinship.tsv", len(other), len(one) if one == other else 0, "-"))
    return rows


def count_planted(table: Path, n_samples: int, n_cohorts: int) -> list[tuple]:
    """Drawn pairs of each kind: how many there are, and how many have this relation."""
    people = draw_people(n_samples, n_cohorts, np.random.default_rng([1]))
    names, found = np.array(people.names), read_table(table)
    told = {
        frozenset(pair): relation
        for *pair, relation in zip(found.sample_a, found.sample_b, found.relation, strict=True)
    }
    parents = np.concatenate([people.children[:, [0, 1]], people.children[:, [0, 2]]])
    rows = []
    for kind, pairs, word in (
        ("parents and children", parents, "parent"),
        ("duplicates", people.duplicates, "duplicate"),
    ):
        own = [told.pop(frozenset(names[pair]), "") for pair in pairs]
        right = sum(word in relation.lower() for relation in own)
        rows.append((kind, len(own), sum(map(bool, own)), right))
    return [*rows, ("other pairs", 0, len(told), "-")]


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--sites", type=int, default=2_000)
    parser.add_argument("--cohorts", type=int, default=4)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    options = commandline.parse(parser, samples=400, sites=400)
    with tempfile.TemporaryDirectory() as temporary:
        studies = [Path(temporary) / name for name in ("sparse", "dense")]
        sizes = options.samples, options.sites, options.cohorts
        write_study(studies[0], *sizes, device="cpu", together=False)
        shutil.copytree(*studies)
        limits = 100, options.samples
        seconds = [run(*pair, options.cores) for pair in zip(studies, limits, strict=True)]
        results = [study / "results" for study in studies]
        rows = compare(*results, options.cores)
        table = results[0] / "compare/kinship.tsv"
        planted = count_planted(table, options.samples, options.cohorts)
    title = f"{options.samples} people, {options.sites} sites"
    print_table(title, ("", "rows", "equal", "the same samples"), rows)
    print_table("relatives", ("", "drawn", "in the table", "with this relation"), planted)
    print("runs without and with matrices: {:.0f} and {:.0f} s".format(*seconds))
    if any(equal != n for _, n, equal, _ in rows):
        raise SystemExit("Error: results without matrices of all pairs differ.")


if __name__ == "__main__":
    main()
