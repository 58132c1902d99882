"""Stages that a job runs on its share of a GPU, by the functions that their scripts call.

python tests/support/device_stages.py STAGE DEVICE FOLDER

`write_inputs` fills the folder. Every stage is a process of its own, as a job is: it takes a share
of the device by what it says that it needs (`device_bytes`), prints the backend's memory limit, and
writes its results below FOLDER/DEVICE.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scenes.random_cohorts import make_planes

from popdesic.cohort.planes import load_planes
from popdesic.core.tables import write_npy, write_npz, write_table
from popdesic.engine.backend import Backend
from popdesic.engine.needs import layout_bytes, points_bytes, product_bytes
from popdesic.engine.select import select_backend
from popdesic.maps.further_maps import compute_further_map
from popdesic.maps.near_maps import write_component_neighbors
from popdesic.maps.umap_maps import UmapSettings, compute_umap
from support.near_study import write_neighbors

SIZES, N_SITES, NEIGHBORS, AXES = {"ann": 260, "bea": 1, "cho": 350}, 700, 12, 5
#: Lists of maps, longer than a map's neighbours: members of the ensemble ask for more.
LISTED = 30


def write_inputs(folder: Path) -> None:
    """Planes of three cohorts, scores, lists and geodesics of their samples."""
    for name, size in SIZES.items():
        make_planes(folder / "cohorts" / name, size, N_SITES, 0.05)
    n, rng = sum(SIZES.values()), np.random.default_rng(1)
    cohorts = np.repeat(list(SIZES), list(SIZES.values()))
    names = [f"{cohort}{i}" for cohort, size in SIZES.items() for i in range(size)]
    people = pd.DataFrame({"sample": names, "cohort": cohorts})
    write_table(folder / "samples.tsv", people)
    write_table(folder / "sheet.tsv", people)
    points = rng.normal(size=(n, AXES)) + 3 * rng.integers(0, 3, (n, 1))
    write_npy(folder / "scores.npy", points)
    lengths = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    write_npy(folder / "lengths.npy", lengths)
    order = np.argsort(lengths, axis=1, kind="stable")[:, 1 : LISTED + 1]
    far = np.take_along_axis(lengths, order, axis=1)
    write_npz(folder / "lists.npz", index=order.astype(np.int32), distance=far)


def _backend(device: str, need: int) -> Backend:
    backend = select_backend(device, 2, device_bytes=need)
    print("limit", getattr(backend, "device_bytes", None), "need", need)
    return backend


def near_samples(device: str, folder: Path, out: Path) -> None:
    """`measure_row.py`, `span_founders.py` and `join_rows.py`, with a newcomer."""
    folders = [folder / "cohorts" / name for name in SIZES]
    planes = load_planes(folders[-1])[0].words.shape
    backend = _backend(device, product_bytes(planes, [planes]))
    options = {"metric": "euclidean", "missing": "pairwise", "min_called": 10}
    founders = list(SIZES)[:2]
    for some in (folders[:2], folders):
        write_neighbors(some, out, backend, k=NEIGHBORS, **options, founders=founders)
    for tile in (out / "tiles").rglob("*.npz"):
        tile.rename(out / f"{tile.parent.name}.{tile.name}")
    shutil.rmtree(out / "tiles")


def near_points(device: str, folder: Path, out: Path) -> None:
    """`find_component_neighbors.py`."""
    scores = np.load(folder / "scores.npy")
    write_component_neighbors(
        scores,
        folder / "samples.tsv",
        set(SIZES),
        _backend(device, points_bytes(*scores.shape, NEIGHBORS)),
        k=NEIGHBORS,
        out=out / "neighbors.npz",
        landmarks_out=out / "landmarks.npy",
    )


def near_umap(device: str, folder: Path, out: Path) -> None:
    """`compute_maps.py` of the nearest."""
    lists = folder / "lists.npz"
    compute_umap(
        {"2": lists},
        lists,
        *(folder / name for name in ("scores.npy", "samples.tsv", "sheet.tsv")),
        UmapSettings(NEIGHBORS, seed=1, ensemble=2),
        tables={"2": out / "umap.tsv", "plain": out / "plain.tsv"},
        instability_out=out / "instability.tsv",
        threads=2,
        backend=_backend(device, layout_bytes(sum(SIZES.values()), NEIGHBORS)),
    )


def densmap(device: str, folder: Path, out: Path) -> None:
    """`compute_maps.py` with densMAP."""
    compute_further_map(
        "densmap",
        *(folder / name for name in ("lengths.npy", "scores.npy", "samples.tsv", "sheet.tsv")),
        neighbors=NEIGHBORS,
        seed=1,
        out=out / "densmap.tsv",
        threads=2,
        backend=_backend(device, layout_bytes(sum(SIZES.values()), NEIGHBORS)),
    )


STAGES: dict[str, Callable[[str, Path, Path], None]] = {
    stage.__name__: stage for stage in (near_samples, near_points, near_umap, densmap)
}


def results_of(stage: str, device: str, folder: Path) -> dict[str, bytes]:
    """Bytes of what a stage wrote, by name; hidden files hold checksums."""
    out = folder / device / stage
    return {path.name: path.read_bytes() for path in sorted(out.iterdir()) if path.is_file()}


def run_stage(stage: str, device: str, folder: Path) -> None:
    out = folder / device / stage
    out.mkdir(parents=True)
    STAGES[stage](device, folder, out)


if __name__ == "__main__":
    run_stage(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
