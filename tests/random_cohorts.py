"""Folders of planes of random genotypes."""

from pathlib import Path

import numpy as np

from popdesic.cohort.encode import write_planes
from popdesic.io.files import write_json
from popdesic.io.genotypes import pack_bed


def make_planes(folder: Path, n_samples: int, n_sites: int, missing: float) -> Path:
    """Write the planes of a cohort on the panel P; return its folder."""
    rng = np.random.default_rng(n_samples)
    genotypes = rng.integers(0, 3, (n_sites, n_samples)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    folder.mkdir(parents=True)
    mode = rng.integers(0, 3, n_sites)
    write_planes(pack_bed(genotypes), n_samples, mode, "mode", folder / "planes.npy")
    names = [f"{folder.name}{i}" for i in range(n_samples)]
    write_json(folder / "planes.json", {"panel": "P", "n_sites": n_sites, "samples": names})
    return folder
