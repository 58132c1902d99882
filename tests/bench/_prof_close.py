"""Where the host's time goes in close_paths: `python prof_close.py n device [space]`."""

import sys, time, tempfile, cProfile, pstats, logging
from pathlib import Path
import numpy as np, pandas as pd

logging.basicConfig(level=logging.WARNING)
n, device = int(sys.argv[1]), sys.argv[2]
from popdesic.engine.select import select_backend
from popdesic.engine.needs import closure_bytes
from popdesic.geodesic.graph import Graph
from popdesic.geodesic import measure, closure

t0 = time.perf_counter()
backend = select_backend(device, int(sys.argv[3]), device_bytes=closure_bytes(n))
print("backend", round(time.perf_counter() - t0, 2))
rng = np.random.default_rng(1)
points = rng.normal(size=(n, 8)) * np.array([5, 4, 3, 2, 0.1, 0.1, 0.1, 0.1])
points[: n // 100] = points[n // 100 : 2 * (n // 100)] + 0.001
sq = (points**2).sum(1)
d = np.sqrt(np.maximum(sq[:, None] + sq - 2 * points @ points.T, 0))
np.fill_diagonal(d, 0)
d = np.maximum(d, d.T)
integers = np.rint(d * d * 3000 + 40000)
np.fill_diagonal(integers, 0)
integers = np.sqrt(integers)
names = [f"p{i}" for i in range(n)]
samples = pd.DataFrame({"sample": names, "cohort": np.repeat(["a", "b", "c", "d"], n // 4)})
for label, dist, alpha, pts in (("genotypes 2", integers, 2.0, False), ("pcs 2", d, 2.0, True)):
    with tempfile.TemporaryDirectory() as f:
        f = Path(f)
        pr = cProfile.Profile()
        t = time.perf_counter()
        c = time.process_time()
        pr.enable()
        measure.measure_geodesics(
            dist,
            samples,
            {"a", "b", "c", "d"},
            backend,
            alpha=f"{alpha:g}",
            value=alpha,
            number="auto",
            ends=set(),
            graph=Graph(),
            dense_limit=40000,
            of_points=pts,
            audit=False,
            code="x",
            lengths_out=f / "l.npy",
            statistics_out=f / "s.json",
            record_out=f / "r.json",
            closure_out=f / "c/alpha.x.npy",
            closure_about_out=f / "c/alpha.x.json",
        )
        pr.disable()
        print(
            "==",
            label,
            "wall",
            round(time.perf_counter() - t, 2),
            "CPU",
            round(time.process_time() - c, 2),
        )
        pstats.Stats(pr).sort_stats("tottime").print_stats(16)
        pstats.Stats(pr).sort_stats("cumtime").print_stats(34)
from popdesic.distance.matrix import point_distances

with tempfile.TemporaryDirectory() as f:
    np.save(f + "/pca.npy", points)
    for threads in (1, 8):
        t = time.perf_counter()
        point_distances(Path(f) / "pca.npy", 8, threads)
        print("point_distances", threads, round(time.perf_counter() - t, 2))
