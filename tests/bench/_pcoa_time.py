import numpy as np, time
from popdesic.embedding import eigen, pcoa

rng = np.random.default_rng(1)
n = 8000
x = np.hstack(
    [rng.normal(size=(n, 4)) * np.array([20, 16, 11, 7]), rng.normal(size=(n, 3000))]
).astype(np.float32)
q = (x * x).sum(1)
d = np.sqrt(np.maximum(q[:, None] + q - 2 * x @ x.T, 0))
np.fill_diagonal(d, 0)
d = np.maximum(d, d.T)
y = rng.normal(size=(n, 8)) * np.array([9, 7, 5, 3, 0.3, 0.3, 0.3, 0.3])
q = (y * y).sum(1)
e = np.sqrt(np.maximum(q[:, None] + q - 2 * y @ y.T, 0)).astype(np.float32)
np.fill_diagonal(e, 0)
e = np.maximum(e, e.T)
many = eigen.MANY_ROWS
for label, m in (("genotypes", d), ("eight components", e)):
    for rows, threads in ((many, 8), (many, 2), (10**9, 2)):
        eigen.MANY_ROWS = rows
        t = time.perf_counter()
        c = time.process_time()
        found = pcoa.principal_coordinates(m, 10, threads)
        print(
            label,
            "blocks" if rows == many else "single vectors",
            threads,
            "threads: wall",
            round(time.perf_counter() - t, 2),
            "CPU",
            round(time.process_time() - c, 2),
            np.round(found[1], 6),
            flush=True,
        )
