"""Rows of tiles on a GPU: the same bytes as on a CPU, several jobs on one device."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cupy")

import cupy
import numpy as np
from scenes.random_cohorts import make_planes

from popdesic.distance import neighbors
from popdesic.distance.fill_rows import RowWork, fill_rows, update_rows
from popdesic.distance.measure_row import row_work
from popdesic.engine import backend_gpu
from popdesic.engine.backend_gpu import GpuBackend
from popdesic.engine.lease import SHARES, shares_of
from popdesic.engine.select import select_backend
from popdesic.relatives import cohorts
from popdesic.relatives.resolution import resolve

pytestmark = pytest.mark.gpu

PACKAGE = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize("metric", ["euclidean", "normalized"])
def test_a_row_is_the_same_bytes(gpu_device, tmp_path, metric):
    """The row's own planes stay on the device; complete and masked cohorts, either first."""
    folders = {
        "a": make_planes(tmp_path / "a", 70, 3_300, 0.05),
        "b": make_planes(tmp_path / "b", 131, 3_300, 0.0),
        "c": make_planes(tmp_path / "c", 257, 3_300, 0.02),
    }
    pairs = [("a", "b"), ("b", "c"), ("b", "b")]
    options = {"metric": metric, "missing": "pairwise", "code": "1"}
    gpu, kept = GpuBackend(), []
    keep = gpu.keep_planes
    gpu.keep_planes = lambda planes: kept.append(keep(planes)) or kept[-1]
    for device, backend in (("cpu", select_backend("cpu", 2)), ("gpu", gpu)):
        work = row_work(tmp_path / device / "b/row.json", pairs, folders, **options)
        update_rows([work], folders, lambda _, chosen=backend: chosen)
    for other in "abc":
        cpu, found = (
            (tmp_path / device / f"b/{other}.npz").read_bytes() for device in ("cpu", "gpu")
        )
        assert cpu == found, other
    assert all(isinstance(planes.words, cupy.ndarray) for planes in kept)


def works_of(results: Path, folders: dict[str, Path], panel: Path) -> list[RowWork]:
    """Neighbours and comparisons of the cohorts c and d with all."""
    resolution = resolve(1e-6, 0.5, 1e-4, panel="P", sites=900, founders=12, max_mismatch=0.02)
    limits = cohorts.Limits(-0.5, 0.005, 1, resolution, top=2)
    options = {"k": 5, "metric": "euclidean", "missing": "pairwise", "min_called": 1}
    works = []
    for row in "cd":
        pairs = [(other, row) for other in "abcd" if other <= row]
        landmarks = {"a": np.arange(0, 70, 9), "d": np.array([1])}
        path = results / f"distance/tiles/{row}/row.json"
        works.append(
            neighbors.row_work(path, pairs, folders, **options, landmarks=landmarks, code="1")
        )
        path = results / f"compare/tiles/{row}/row.json"
        works.append(cohorts.row_work(path, pairs, folders, panel, limits, "1"))
    return works


@pytest.mark.parametrize("share", [0.6, 0.0])
def test_rows_that_are_filled_together_are_the_same_bytes(gpu_device, tmp_path, monkeypatch, share):
    """Whether planes stay on the device or not."""
    monkeypatch.setattr(backend_gpu, "KEPT_SHARE", share)
    sizes = {"a": 70, "b": 131, "c": 257, "d": 300}
    folders = {
        name: make_planes(tmp_path / name, n, 900, 0.03 * (n % 2)) for name, n in sizes.items()
    }
    lines = [f"1\t{k}\trs{k}\tA\tG\t0.3\t0\t9\n" for k in range(900)]
    panel = tmp_path / "sites.tsv"
    head = "# panel P, drawn\nchrom\tpos\tid\tref\talt\taf\tmode\tn_called\n"
    panel.write_text(head + "".join(lines))
    found = {}
    for name, backend in (("cpu", select_backend("cpu", 2)), ("gpu", GpuBackend())):
        results = tmp_path / name / "results"
        works = works_of(results, folders, panel)
        counts = fill_rows(works, folders, lambda _, chosen=backend: chosen)
        assert counts["tiles computed"] == 14
        found[name] = {
            str(path.relative_to(results)): path.read_bytes()
            for ending in ("npz", "tsv")
            for path in results.rglob(f"*.{ending}")
        }
    assert len(found["cpu"]) == 7 + 3 * 7
    assert found["cpu"] == found["gpu"]


JOB = """
import sys
import cupy
import numpy as np
from popdesic.engine.select import select_backend
from popdesic.engine.terms import SQUARED, Planes
backend = select_backend("gpu", 1, device_bytes=int(sys.argv[1]))
print("in", backend.device_bytes, cupy.get_default_memory_pool().get_limit(), flush=True)
sys.stdin.readline()
words = np.random.default_rng(1).integers(0, 2**63, (2000, 2, 4000), np.uint64)
words[:, 1] &= words[:, 0]
planes = Planes(words, 4000 * 64)
found = backend.bitgemm(planes, None, SQUARED)
kept = backend.bitgemm(backend.keep_planes(planes), None, SQUARED)
assert np.array_equal(found, kept)
print(int(found[0].sum()), cupy.get_default_memory_pool().total_bytes(), flush=True)
sys.stdin.readline()
"""


def test_two_small_jobs_share_a_device_and_a_large_one_waits(gpu_device, tmp_path):
    total = cupy.cuda.runtime.getDeviceProperties(0)["totalGlobalMem"]
    small, large = total // 4, total * 3 // 4
    assert shares_of(small, total) * 2 + shares_of(large, total) > SHARES
    started = []

    def start(need: int) -> subprocess.Popen:
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", JOB, str(need)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": f"{PACKAGE}:{os.environ.get('PYTHONPATH', '')}"}
                | {"TMPDIR": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0"},
            )
        )
        return started[-1]

    def said(process: subprocess.Popen, seconds: float = 120) -> list[str]:
        ready, _, _ = select.select([process.stdout], [], [], seconds)
        return process.stdout.readline().split() if ready else []

    def go_on(process: subprocess.Popen) -> None:
        process.stdin.write("\n")
        process.stdin.flush()

    try:
        one, two = start(small), start(small)
        for process in (one, two):
            word, budget, limit = said(process)
            assert word == "in"
            assert 0 < int(budget) < int(limit) < small + total // SHARES
        third = start(large)
        go_on(one), go_on(two)
        sums = [said(process) for process in (one, two)]
        assert sums[0][0] == sums[1][0]
        assert all(int(taken) <= int(limit) for _, taken in sums)
        assert said(third, 3) == []
        go_on(one), go_on(two)
        assert said(third)[0] == "in"
        go_on(third)
        assert said(third)[0] == sums[0][0]
        go_on(third)
    finally:
        for process in started:
            process.kill()
            process.wait()
