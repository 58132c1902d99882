"""The CPU's bit-GEMM equals a lookup of every genotype, exactly, for all shapes."""

import os
import socket
import subprocess
import sys

import numba
import numpy as np
import pytest
from oracles.reference import LETTERS, draw_genotypes, evaluate_terms, pair_counts
from support.operands import planes_of

from popdesic.core.errors import UserError
from popdesic.engine.backend_cpu import CpuBackend, margin_coefficients
from popdesic.engine.select import select_backend
from popdesic.engine.terms import (
    KINSHIP,
    LD,
    PLANE_BITS,
    PRODUCT,
    SQUARED,
    SQUARED_IBS0,
    Planes,
    Product,
    Terms,
)

#: Sizes around a word (64), a vector (512), and a byte of a .bed row.
SITES = (1, 15, 16, 17, 33, 63, 64, 65, 511, 512, 513)
#: Sizes around a tile of 64 samples.
SAMPLES = (1, 2, 63, 64, 65, 130)

KING = Terms(("het_a", "het_b"), (Product(0, 1, "e", "c"), Product(1, 1, "c", "e")))
#: Every plane, weights of both signs, two products in one output; not a function of |a - b|.
MIXED = Terms(
    ("x", "y", "z"),
    (
        Product(0, 2, "u", "u"),
        Product(0, -1, "e", "e"),
        Product(1, -5, "h", "u"),
        Product(1, 3, "v", "z"),
        Product(2, 1, "c", "c"),
        Product(2, 7, "z", "e"),
    ),
)
TERMS = {
    "squared": SQUARED,
    "squared_ibs0": SQUARED_IBS0,
    "king": KING,
    "mixed": MIXED,
    "kinship": KINSHIP,
    "ld": LD,
    "product": PRODUCT,
}


@pytest.fixture(scope="module")
def backend():
    return CpuBackend(2)


def random_fill(rng, genotypes: np.ndarray) -> np.ndarray:
    """Arbitrary imputed values: masked products must ignore them."""
    return rng.integers(0, 3, genotypes.shape)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("n_sites", SITES)
@pytest.mark.parametrize("terms", TERMS)
def test_every_number_of_sites(backend, terms, n_sites, missing):
    rng = np.random.default_rng(n_sites)
    a, b = (draw_genotypes(rng, n, n_sites, missing) for n in (5, 7))
    found = backend.bitgemm(
        *(planes_of(g, fill=random_fill(rng, g), masked=missing > 0) for g in (a, b)),
        TERMS[terms],
    )
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, evaluate_terms(a, b, TERMS[terms]))


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("n_samples", SAMPLES)
@pytest.mark.parametrize("terms", TERMS)
def test_every_number_of_samples(backend, terms, n_samples, missing):
    rng = np.random.default_rng(n_samples)
    a, b = (draw_genotypes(rng, n, 70, missing) for n in (n_samples, 66))
    expected = evaluate_terms(a, b, TERMS[terms])
    a, b = planes_of(a, masked=missing > 0), planes_of(b, masked=missing > 0)
    np.testing.assert_array_equal(backend.bitgemm(a, b, TERMS[terms]), expected)


@pytest.mark.parametrize("n_samples", SAMPLES)
@pytest.mark.parametrize("masked", [False, True])
def test_distance_terms_are_distances(backend, n_samples, masked):
    """Squared, called and ibs0 equal their definitions, computed without the terms."""
    rng = np.random.default_rng(n_samples)
    genotypes = draw_genotypes(rng, n_samples, 200, 0.1 if masked else 0)
    found = backend.bitgemm(planes_of(genotypes, masked=masked), None, SQUARED_IBS0)
    expected = pair_counts(genotypes, genotypes)
    for name, matrix in zip(SQUARED_IBS0.outputs, found, strict=True):
        np.testing.assert_array_equal(matrix, expected[name], err_msg=name)


@pytest.mark.parametrize("n_samples", SAMPLES)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("terms", ["squared", "squared_ibs0", "king", "mixed"])
def test_block_against_itself(backend, terms, n_samples, masked):
    rng = np.random.default_rng(n_samples)
    planes = planes_of(draw_genotypes(rng, n_samples, 100, 0.1 if masked else 0), masked=masked)
    np.testing.assert_array_equal(
        backend.bitgemm(planes, None, TERMS[terms]), backend.bitgemm(planes, planes, TERMS[terms])
    )


@pytest.mark.parametrize("terms", TERMS)
def test_complete_against_masked(backend, terms):
    rng = np.random.default_rng(3)
    a, b = draw_genotypes(rng, 9, 333), draw_genotypes(rng, 6, 333, 0.3)
    for x, y in ((a, b), (b, a)):
        np.testing.assert_array_equal(
            backend.bitgemm(planes_of(x), planes_of(y), TERMS[terms]),
            evaluate_terms(x, y, TERMS[terms]),
        )


@pytest.mark.parametrize("terms", TERMS)
def test_all_missing_and_monomorphic(backend, terms):
    n_sites = 130
    rows = [np.full(n_sites, g, np.int8) for g in (-1, 0, 1, 2)]
    rows.append(np.where(np.arange(n_sites) % 2, -1, 2).astype(np.int8))
    genotypes = np.stack(rows)
    fill = np.full(n_sites, 2)
    found = backend.bitgemm(planes_of(genotypes, fill=fill), None, TERMS[terms])
    np.testing.assert_array_equal(found, evaluate_terms(genotypes, genotypes, TERMS[terms]))
    assert (found[:, 0] == 0).all(), "a sample without genotypes adds to nothing"


def test_imputed_genotypes_count_without_the_mask(backend):
    rng = np.random.default_rng(4)
    genotypes = draw_genotypes(rng, 12, 150, 0.2)
    fill = random_fill(rng, genotypes)
    planes = planes_of(genotypes, fill=fill)
    filled = np.where(genotypes < 0, fill, genotypes)
    found = backend.bitgemm(planes.without_mask(), None, SQUARED)
    np.testing.assert_array_equal(found, evaluate_terms(filled, filled, SQUARED))
    assert (found[1] == 150).all()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("terms", TERMS)
def test_long_rows(backend, terms, masked):
    """More words than one pass of the cache-blocked loop, with a remainder."""
    rng = np.random.default_rng(5)
    genotypes = draw_genotypes(rng, 6, 64 * 700 + 3, 0.05 if masked else 0)
    np.testing.assert_array_equal(
        backend.bitgemm(planes_of(genotypes, masked=masked), None, TERMS[terms]),
        evaluate_terms(genotypes, genotypes, TERMS[terms]),
    )


@pytest.mark.parametrize("terms", TERMS)
def test_threads_agree(terms):
    genotypes = draw_genotypes(np.random.default_rng(6), 200, 300, 0.1)
    planes = planes_of(genotypes)
    results = [CpuBackend(threads).bitgemm(planes, None, TERMS[terms]) for threads in (1, 2, 64)]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def misaligned(words: np.ndarray) -> np.ndarray:
    buffer = np.zeros(words.nbytes + 72, np.uint8)
    start = 8 - buffer.ctypes.data % 64 % 8 + 8  # 8-byte but not vector alignment
    start += 8 if (buffer.ctypes.data + start) % 64 == 0 else 0
    copy = buffer[start : start + words.nbytes].view(np.uint64).reshape(words.shape)
    copy[:] = words
    assert copy.ctypes.data % 64
    return copy


def strided(words: np.ndarray) -> np.ndarray:
    wide = np.full((2 * len(words), words.shape[1] + 1, 3 * words.shape[2]), 7, np.uint64)
    view = wide[::2, : words.shape[1], ::3]
    view[:] = words
    return view


def fortran(words: np.ndarray) -> np.ndarray:
    return np.asfortranarray(words)


@pytest.mark.parametrize("arrange", [misaligned, strided, fortran])
@pytest.mark.parametrize("terms", TERMS)
def test_memory_layouts(backend, terms, arrange):
    genotypes = draw_genotypes(np.random.default_rng(7), 11, 1000, 0.1)
    planes = planes_of(genotypes, n_words=24)
    other = Planes(arrange(planes.words), planes.n_sites)
    np.testing.assert_array_equal(
        backend.bitgemm(other, None, TERMS[terms]), backend.bitgemm(planes, None, TERMS[terms])
    )


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("masked", [False, True])
def test_memory_map(backend, terms, masked, tmp_path):
    genotypes = draw_genotypes(np.random.default_rng(8), 11, 500, 0.1 if masked else 0)
    planes = planes_of(genotypes, n_words=8, masked=masked)
    np.save(tmp_path / "planes.npy", planes.words)
    mapped = Planes(np.load(tmp_path / "planes.npy", mmap_mode="r"), 500)
    np.testing.assert_array_equal(
        backend.bitgemm(mapped, None, TERMS[terms]),
        evaluate_terms(genotypes, genotypes, TERMS[terms]),
    )


def test_different_numbers_of_sites_are_refused(backend):
    a, b = (planes_of(np.zeros((2, n), np.int8)) for n in (64, 65))
    with pytest.raises(ValueError, match="64 and 65 sites"):
        backend.bitgemm(a, b, SQUARED)


def test_margin_coefficients():
    """Doubled coefficients of |a-b| = 1, 2, called, then of margins if they are needed."""
    none = [0] * 4
    np.testing.assert_array_equal(
        margin_coefficients(SQUARED_IBS0), [[2, 8, 0, *none], [0, 0, 2, *none], [0, 2, 0, *none]]
    )
    manhattan = [(2, "z", "v"), (2, "v", "z"), (1, "e", "c"), (1, "c", "e"), (-2, "e", "e")]
    terms = Terms(("manhattan",), tuple(Product(0, *product) for product in manhattan))
    np.testing.assert_array_equal(margin_coefficients(terms), [[2, 4, 0, *none]])
    het_a, het_b = margin_coefficients(KING)
    np.testing.assert_array_equal([het_a, het_b], [[0, 0, 0, 2, -2, 0, 0], [0, 0, 0, 0, 0, 2, -2]])
    # 2 a b = a^2 + b^2 - (a - b)^2
    np.testing.assert_array_equal(margin_coefficients(PRODUCT), [[-1, -4, 0, 1, 3, 1, 3]])
    assert margin_coefficients(MIXED) is None
    # |a - b| alone is not enough: ibs0 of one orientation only
    assert margin_coefficients(Terms(("half",), (Product(0, 1, "z", "v"),))) is None


@pytest.mark.parametrize("masked", [False, True])
def test_asymmetric_terms_of_a_block_with_itself(backend, masked):
    """Below the diagonal, het_a and het_b are exchanged."""
    rng = np.random.default_rng(3)
    genotypes = draw_genotypes(rng, 70, 90, 0.2 if masked else 0.0)
    for terms in (KING, KINSHIP, LD):
        found = backend.bitgemm(planes_of(genotypes, masked=masked), None, terms)
        np.testing.assert_array_equal(found, evaluate_terms(genotypes, genotypes, terms))


def test_plane_letters_equal_their_definition():
    for letter, bits in PLANE_BITS.items():
        assert bits == tuple(int(g in LETTERS[letter]) for g in (0, 1, 2, -1)), letter


#: Compares kernels compiled for a CPU without the newest instructions with the oracle.
OTHER_CPU = """
from llvmlite import binding
features = binding.get_host_cpu_features()
for name in features:
    if name.startswith("avx512"):
        features[name] = False
binding.get_host_cpu_features = lambda: features

import numpy as np
from oracles import reference
from popdesic.engine.terms import (SQUARED_IBS0, Planes, Product, Terms)
from popdesic.engine import bitgemm_cpu
from popdesic.engine.backend_cpu import CpuBackend

assert bitgemm_cpu.LEVELS > 0 and bitgemm_cpu.LANES < 8
backend = CpuBackend(2)
rng = np.random.default_rng(1)
for missing in (0.0, 0.1):
    genotypes = reference.draw_genotypes(rng, 5, 64 * 8 * 17 + 5, missing)
    planes = Planes(reference.make_planes(genotypes), genotypes.shape[1])
    for terms in (SQUARED_IBS0, Terms(("x",), (Product(0, 3, "e", "c"),))):
        found = backend.bitgemm(planes, None, terms)
        assert (found == reference.evaluate_terms(genotypes, genotypes, terms)).all()
for dtype in ("int32", "float64"):
    a, b = (rng.integers(0, 1000, shape).astype(dtype) for shape in ((20, 33), (33, 70)))
    c = np.full((20, 70), 1100, dtype)
    expected = np.minimum(c, reference.minplus(a, b))
    backend.minplus().multiply(c, a, b)
    assert (c == expected).all()
"""


def test_kernels_compiled_for_older_cpus(tmp_path, pytestconfig):
    """As on many laptops: narrow vectors, no vector popcount, no three-input logic."""
    root = pytestconfig.rootpath
    path = os.pathsep.join(map(str, (root / "src", root / "tests")))
    subprocess.run(
        [sys.executable, "-c", OTHER_CPU],
        env=os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path)},
        check=True,
        timeout=300,
    )


def test_backend_describes_itself():
    backend = select_backend("cpu", 10_000)
    assert backend.name == "cpu"
    assert backend.threads == numba.config.NUMBA_NUM_THREADS
    assert backend.describe().startswith("cpu: ")


def test_gpu_is_never_replaced_silently():
    try:
        backend = select_backend("gpu")
    except UserError as error:
        assert "device is 'gpu'" in str(error)
        assert "\n" not in str(error)
        assert select_backend("auto").name == "cpu"
    else:
        assert backend.name == "gpu"


@pytest.mark.parametrize("driver", [True, False])
def test_without_cupy_auto_computes_on_the_cpu_and_says_why(tmp_path, monkeypatch, caplog, driver):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(sys.modules, "popdesic.engine.backend_gpu", raising=False)
    monkeypatch.setattr("popdesic.engine.select.DRIVER", tmp_path if driver else tmp_path / "none")
    with caplog.at_level("INFO"):
        assert select_backend("auto").name == "cpu"
    (said,) = (record.getMessage() for record in caplog.records)
    assert ("requirements-gpu.txt" in said) == driver and "cupy" in said
    with pytest.raises(UserError, match="device is 'gpu', but no GPU can be used"):
        select_backend("gpu")


def test_a_granted_gpu_that_is_not_there_is_a_warning(tmp_path, monkeypatch, caplog):
    """A scheduler promised a GPU to the job: its CPU computes, and the log of the run says so."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(sys.modules, "popdesic.engine.backend_gpu", raising=False)
    monkeypatch.setattr("popdesic.engine.select.DRIVER", tmp_path / "none")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    with caplog.at_level("WARNING"):
        assert select_backend("auto").name == "cpu"
    (said,) = (record.getMessage() for record in caplog.records)
    assert said.startswith("The scheduler granted a GPU") and socket.gethostname() in said
