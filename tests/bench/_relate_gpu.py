import time, sys, numpy as np

t0 = time.perf_counter()
from popdesic.compare.pc_relate import pc_relate, ancestry_of
from popdesic.engine.select import select_backend, cpu_backend
from popdesic.engine.needs import expected_bytes

rng = np.random.default_rng(1)


def case(n, m, backend, threads, check=False):
    g = rng.integers(0, 3, (1024, n)).astype(np.int8)
    g[rng.random(g.shape) < 0.005] = -1
    g[:, 1:n-1:50] = g[:, :n-2:50]
    sc = rng.normal(size=(n, 4))
    tr = np.arange(n) < n * 0.98
    anc = ancestry_of(sc, tr, 4)
    roll = lambda a, b: np.roll(g, a // 1024 * 7, axis=0)[: b - a]
    t = time.perf_counter()
    c = time.process_time()
    found = pc_relate(roll, m, anc, backend)
    close = found.close(0.05)
    w = time.perf_counter() - t
    print(
        n,
        m,
        backend.name,
        "wall",
        round(w, 2),
        "CPU",
        round(time.process_time() - c, 2),
        "close",
        len(close[0]),
        flush=True,
    )
    return found, close, (roll, m, anc)


print("imports", round(time.perf_counter() - t0, 2))
b = select_backend("gpu", 8, device_bytes=expected_bytes(30000, 50000))
print("backend", round(time.perf_counter() - t0, 2))
f, c, (roll, m, anc) = case(1501, 3000, b, 8)
f2 = pc_relate(roll, m, anc, cpu_backend(8))
c2 = f2.close(0.05)
print(
    "same bytes:",
    f.matrix().tobytes() == f2.matrix().tobytes(),
    all(x.tobytes() == y.tobytes() for x, y in zip(c, c2)),
)
del f, f2
import cupy
from popdesic.engine.gpu import expected as E

for n in (8000, 30000):
    x = E.GpuExpected(np.ones((n, 1)), 50000, b.device)
    cupy.cuda.runtime.deviceSynchronize()
    t = time.perf_counter()
    x.divide()
    cupy.cuda.runtime.deviceSynchronize()
    w = time.perf_counter() - t
    print(n, "products", round(w, 3), "s", round(8 * n * n / 2 * 50000 / w / 1e12, 1), "T MAC/s")
    del x
case(8000, 50000, b, 8)
case(8000, 50000, b, 8)
if len(sys.argv) > 1:
    case(30000, 50000, b, 8)
f, c, _ = case(3000, 20000, cpu_backend(8), 8)
