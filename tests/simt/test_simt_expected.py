"""Kinships beside expected genotypes by the kernels' source: the bytes of the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from popdesic.relatives.expect_kinship import expected_kinship
from popdesic.relatives.expected_cpu import CpuExpected
from popdesic.relatives.pc_relate import ancestry_of, pc_relate


def draw(rng, n: int, n_sites: int, missing: float = 0.05):
    genotypes = rng.integers(0, 3, (n_sites, n)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    basis = np.column_stack([np.ones(n), rng.normal(size=(n, 2)) / 8])
    coefficients = rng.uniform(-0.1, 1.1, (n_sites, 3)) * [1, 0.4, 0.4]
    coefficients[:: max(1, n_sites // 3), 0] = np.nan
    return genotypes, basis, coefficients


@pytest.mark.parametrize(
    ("n", "n_sites"), [(1, 1), (2, 15), (63, 63), (64, 64), (65, 65), (130, 200), (33, 129)]
)
def test_kinships_are_those_of_the_cpu(schedule, rng, n, n_sites):
    from popdesic.engine.backend_gpu import GpuBackend

    genotypes, basis, coefficients = draw(rng, n, n_sites)
    backend = GpuBackend()
    found = expected_kinship(backend, basis, n_sites)
    expected = CpuExpected(basis, n_sites, 2)
    right, shares = rng.normal(size=(2, 3, n)) / 100
    roots, marked = rng.uniform(0.8, 1.0, n), rng.random(n) < 0.7
    listed = []
    for one in (found, expected):
        for first in range(0, n_sites, 64):
            part = slice(first, first + 64)
            one.add(first, genotypes[part], coefficients[part])
        one.divide()
        listed.append([one.block(0, n)[np.triu_indices(n)], one.squares(marked)])
        one.subtract(right, shares)
        one.scale(roots)
        rows, columns, values = one.close(0.05)
        assert (rows < columns).all() and (values >= 0.05).all()
        places = np.arange(n)
        listed[-1] += [rows, columns, values, one.own(), one.of(places, places[::-1].clip(places))]
        listed[-1] += [one.matrix()]
    for one, other in zip(*listed, strict=True):
        np.testing.assert_array_equal(one, other)
    assert n < 10 or len(listed[0][2]) > 3


def test_extreme_digits_do_not_overflow(schedule, rng):
    """The largest residuals and spreads, of both signs, at whole and at broken stages."""
    from popdesic.engine.backend_gpu import GpuBackend

    genotypes = np.where(rng.random((300, 70)) < 0.5, 0, 2).astype(np.int8)
    basis, coefficients = np.ones((70, 1)), rng.choice([0.0100001, 0.5, 0.9899999], (300, 1))
    found, expected = (expected_kinship(one, basis, 300) for one in (GpuBackend(), _cpu()))
    for one in (found, expected):
        one.add(0, genotypes[:256], coefficients[:256])
        one.add(256, genotypes[256:], coefficients[256:])
        one.divide()
    np.testing.assert_array_equal(found.matrix(), expected.matrix())


def _cpu():
    from popdesic.engine.backend_cpu import CpuBackend

    return CpuBackend(1)


def test_pc_relate_has_the_same_bytes(machine, rng):
    from popdesic.engine.backend_gpu import GpuBackend

    genotypes, *_ = draw(rng, 90, 1_100)
    genotypes[:, 80:] = genotypes[:, :10]
    scores, training = rng.normal(size=(90, 2)), np.arange(90) < 80
    ancestry = ancestry_of(scores, training, 2)
    found, expected = (
        pc_relate(lambda first, last: genotypes[first:last], 1_100, ancestry, backend)
        for backend in (GpuBackend(), _cpu())
    )
    assert found.matrix().tobytes() == expected.matrix().tobytes()
    assert found.own.tobytes() == expected.own.tobytes()
    assert "multiply_digits" in machine.launched
    assert len(found.close(0.4)[0]) == 10


def test_what_does_not_fit_is_left_to_the_cpu(machine, rng, monkeypatch):
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.relatives import expected_gpu as expected
    from popdesic.relatives import expected_plan

    basis = np.ones((70, 1))
    assert isinstance(expected_kinship(GpuBackend(device_bytes=1000), basis, 9), CpuExpected)
    assert isinstance(expected_kinship(GpuBackend(), basis, (1 << 17) + 1), CpuExpected)
    assert not machine.launched
    # Lists that are longer than the first room for them.
    monkeypatch.setattr(expected, "CLOSE_ROOM", 3)
    assert expected_plan.CLOSE_ROOM > 3
    genotypes, basis, coefficients = draw(rng, 40, 64)
    found = expected_kinship(GpuBackend(), basis, 64)
    found.add(0, genotypes, coefficients)
    found.divide()
    assert len(found.close(0.0)[0]) > 100
