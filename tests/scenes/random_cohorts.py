"""Random genotypes: folders of planes, and packed codes."""

from pathlib import Path

import numpy as np

from popdesic.cohort.encode import write_planes
from popdesic.core.files import write_json
from popdesic.engine.genotype_products import Calls
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
    about = {"cohort": folder.name, "panel": "P", "n_sites": n_sites, "samples": names}
    write_json(folder / "planes.json", about)
    return folder


def random_calls(rng, sizes, n_sites: int, missing: float, rare: float = 0) -> Calls:
    """Packed genotypes of cohorts of some sizes, of which a fifth of the people are left out.

    Of a share `rare` of the sites, 1 % of the alleles are ALT.
    """
    af = rng.uniform(0.05, 0.95, n_sites)
    if rare:
        af[rng.random(n_sites) < rare] = 0.01
    parts, keep = [], []
    for size in sizes:
        genotypes = rng.binomial(2, af[:, None], (n_sites, size)).astype(np.int8)
        genotypes[rng.random(genotypes.shape) < missing] = -1
        parts.append(pack_bed(np.ascontiguousarray(genotypes)))
        keep.append(rng.random(size) < 0.8)
        keep[-1][0] = True
    return Calls(tuple(parts), None, tuple(keep), af)
