"""Variant-major planes, from arrays and from .bed files."""

import numpy as np
import pytest
from support.study import Cohort, make_sites, write_raw

from popdesic.cohort.site_planes import read_site_planes, site_planes


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("missing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("sizes", [[1], [2, 1], [63, 1, 64], [65, 31, 33, 7], [130]])
def test_planes_of_files_are_those_of_the_genotypes(tmp_path, sizes, missing, threads):
    rng = np.random.default_rng(sum(sizes))
    prefixes, keep, expected = [], [], []
    rows = make_sites(17)
    for number, n in enumerate(sizes):
        genotypes = rng.integers(0, 3, (17, n)).astype(np.int8)
        genotypes[rng.random(genotypes.shape) < missing] = -1
        names = [f"C{number}_{k}" for k in range(n)]
        cohort = Cohort(f"c{number}", names, rows, genotypes)
        prefixes.append(write_raw(tmp_path / f"c{number}/genotypes", cohort))
        who = rng.random(n) < 0.7
        who[0] = True
        keep.append(who)
        expected.append(genotypes)
    chosen = [np.array([0, 3, 16]), slice(2, 15)]
    for used in (None, keep):
        read = read_site_planes(prefixes, used, threads)
        whole = [g if used is None else g[:, who] for g, who in zip(expected, keep, strict=True)]
        for bounds, which in (((chosen[0],), chosen[0]), ((2, 15), chosen[1])):
            found = read(*bounds)
            slow = site_planes(np.concatenate(whole, axis=1)[which])
            assert found.n_sites == slow.n_sites
            np.testing.assert_array_equal(found.words, slow.words)
