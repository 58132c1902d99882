"""Laws of the kernels on random input of any shape."""

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles import reference
from support.operands import planes_of, wide

from popdesic.cohort.encode import write_planes
from popdesic.cohort.hardy_weinberg_cpu import hwe_exact
from popdesic.engine.backend_cpu import CpuBackend, margin_coefficients
from popdesic.engine.minplus import infinity
from popdesic.engine.terms import SQUARED, SQUARED_IBS0, Product, Terms
from popdesic.geodesic.closure import close_paths, insert_paths

BACKEND = CpuBackend(2)
DTYPES = st.sampled_from(["int32", "float32", "float64"])

common = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def genotypes(n_samples, n_sites=None, least: int = -1):
    """Genotype matrices (n_samples, n_sites)."""
    n_sites = st.integers(1, 200) if n_sites is None else n_sites
    return st.tuples(n_samples, n_sites).flatmap(
        lambda shape: hnp.arrays(np.int8, shape, elements=st.integers(least, 2))
    )


products = st.builds(
    Product,
    st.integers(0, 1),
    st.integers(-9, 9),
    st.sampled_from("uvczeh"),
    st.sampled_from("uvczeh"),
)


# --- bit-GEMM -----------------------------------------------------------------------------------


@common
@given(data=st.data(), terms=st.lists(products, max_size=5), masked=st.booleans())
def test_bitgemm_of_any_terms(data, terms, masked):
    least = -1 if masked else 0
    a = data.draw(genotypes(st.integers(1, 9), least=least))
    b = data.draw(genotypes(st.integers(1, 9), st.just(a.shape[1]), least=least))
    terms = Terms(("x", "y"), tuple(terms))
    found = BACKEND.bitgemm(planes_of(a, masked=masked), planes_of(b, masked=masked), terms)
    np.testing.assert_array_equal(found, reference.evaluate_terms(a, b, terms))


@common
@given(matrix=genotypes(st.integers(1, 70), st.integers(1, 90)))
def test_distances_are_counts_of_differences(matrix):
    found = BACKEND.bitgemm(planes_of(matrix), None, SQUARED_IBS0)
    expected = reference.pair_counts(matrix, matrix)
    for name, counts in zip(SQUARED_IBS0.outputs, found, strict=True):
        np.testing.assert_array_equal(counts, expected[name])


@common
@given(data=st.data(), matrix=genotypes(st.integers(1, 8), st.integers(2, 150)))
def test_sums_over_site_ranges(data, matrix):
    """Counts over all sites are the sums over any two ranges, for any order of the sites."""
    cut = data.draw(st.integers(1, matrix.shape[1] - 1))
    order = data.draw(st.permutations(range(matrix.shape[1])))
    parts = [matrix[:, order[:cut]], matrix[:, order[cut:]]]
    whole = BACKEND.bitgemm(planes_of(matrix), None, SQUARED)
    total = sum(BACKEND.bitgemm(planes_of(part), None, SQUARED) for part in parts)
    np.testing.assert_array_equal(whole, total)


@common
@given(matrix=genotypes(st.integers(1, 8)))
def test_exchanging_ref_and_alt_changes_no_distance(matrix):
    swapped = np.where(matrix < 0, -1, 2 - matrix)
    np.testing.assert_array_equal(
        BACKEND.bitgemm(planes_of(swapped), None, SQUARED_IBS0),
        BACKEND.bitgemm(planes_of(matrix), None, SQUARED_IBS0),
    )


@common
@given(terms=st.lists(products, max_size=6))
def test_margin_coefficients_equal_the_terms(terms):
    terms = Terms(("x", "y"), tuple(terms))
    coefficients = margin_coefficients(terms)
    pairs = [(x, y) for x in (0, 1, 2) for y in (0, 1, 2)]
    values = np.array(
        [[reference.term_value(terms.products, o, x, y) for x, y in pairs] for o in range(2)]
    )
    basis = np.array(
        [(abs(x - y) == 1, abs(x - y) == 2, 1, x >= 1, x == 2, y >= 1, y == 2) for x, y in pairs],
        float,
    )
    residuals = values.T - basis @ np.linalg.pinv(basis) @ values.T
    assert (coefficients is not None) == bool(np.abs(residuals).max() < 1e-9)
    if coefficients is not None:
        np.testing.assert_array_equal(basis @ coefficients.T, 2 * values.T)
        for value, found in zip(values, coefficients, strict=True):
            by_difference = {abs(x - y): v for (x, y), v in zip(pairs, value, strict=True)}
            if all(by_difference[abs(x - y)] == v for (x, y), v in zip(pairs, value, strict=True)):
                assert not found[3:].any()  # a distance needs no margins


# --- encoding -----------------------------------------------------------------------------------


@common
@given(data=st.data(), matrix=genotypes(st.integers(1, 20), st.integers(1, 150)))
def test_packing_round_trip(tmp_path, data, matrix):
    """From .bed bytes to planes and back: genotypes, missing and imputed values are preserved."""
    n_samples, n_sites = matrix.shape
    mode = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n_sites, max_size=n_sites)))
    bed = np.frombuffer(reference.bed_bytes(matrix.T)[3:], np.uint8).reshape(n_sites, -1)
    missing = write_planes(bed, n_samples, mode, "mode", tmp_path / "planes.npy")
    words = np.load(tmp_path / "planes.npy")
    bits = np.unpackbits(words.view(np.uint8), axis=2, bitorder="little")
    assert not bits[:, :, n_sites:].any()
    bits = bits[:, :, :n_sites].astype(np.int8)
    called = bits[:, 2] == 1 if bits.shape[1] == 3 else np.ones(matrix.shape, bool)
    np.testing.assert_array_equal(called, matrix >= 0)
    np.testing.assert_array_equal(bits[:, 0] + bits[:, 1], np.where(called, matrix, mode))
    np.testing.assert_array_equal(missing, (~called).sum(axis=1))


# --- shortest paths -----------------------------------------------------------------------------


def weights(n: int, dtype: str, seed: int, holes: float) -> np.ndarray:
    """Symmetric integer weights, some infinite: sums are exact in every type."""
    rng = np.random.default_rng(seed)
    drawn = np.floor(np.exp(rng.uniform(0, 11, (n, n)))).astype(dtype)
    drawn[rng.random((n, n)) < holes] = infinity(np.dtype(dtype))
    drawn = np.minimum(drawn, drawn.T)
    np.fill_diagonal(drawn, 0)
    return drawn


graphs = st.builds(
    weights,
    st.integers(1, 150),
    DTYPES,
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.5, 0.98]),
)


@common
@given(
    shape=st.tuples(*[st.integers(1, 140)] * 3),
    dtype=DTYPES,
    seed=st.integers(0, 2**32 - 1),
    transposed=st.booleans(),
)
def test_minplus_equals_its_definition(shape, dtype, seed, transposed):
    m, k, n = shape
    w = weights(max(shape), dtype, seed, 0.2)
    a, b = w[:m, :k], w[:n, :k].T if transposed else w[-k:, -n:].copy()
    c = np.full((m, n), infinity(np.dtype(dtype)), dtype)
    BACKEND.minplus().multiply(c, a, b)
    expected = reference.minplus(wide(a), wide(b))
    np.testing.assert_array_equal(wide(c), np.where(expected >= 2**30 - 1, np.inf, expected))


@common
@given(graph=graphs)
def test_closure_laws(graph):
    w = graph.copy()
    close_paths(w, BACKEND)
    lengths = wide(w)
    np.testing.assert_array_equal(w, w.T)
    assert (np.diagonal(w) == 0).all()
    assert (w <= graph).all()
    # closed: no detour is shorter; attained: the last step of every path is an edge
    np.testing.assert_array_equal(reference.minplus(lengths, lengths), lengths)
    np.testing.assert_array_equal(
        np.minimum(reference.minplus(lengths, wide(graph)), wide(graph)), lengths
    )


@common
@given(data=st.data(), graph=graphs)
def test_insertion_and_permutation_change_nothing(data, graph):
    n = len(graph)
    assume(n > 1)
    scratch = graph.copy()
    close_paths(scratch, BACKEND)
    old = data.draw(st.integers(1, n - 1))
    order = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(n)
    w = np.ascontiguousarray(graph[np.ix_(order, order)])
    close_paths(w[:old, :old], BACKEND)
    insert_paths(w, old, BACKEND)
    np.testing.assert_array_equal(w, scratch[np.ix_(order, order)])


# --- Hardy-Weinberg -----------------------------------------------------------------------------


@common
@given(
    counts=st.lists(st.tuples(*[st.integers(0, 120)] * 3), min_size=1, max_size=8),
    midp=st.booleans(),
)
def test_hwe_is_the_exact_fraction(counts, midp):
    found = hwe_exact(*np.array(counts).T, midp=midp)
    for (n_ref, n_het, n_alt), p in zip(counts, found, strict=True):
        if n_het + 2 * min(n_ref, n_alt) == 0:
            assert p == 1
        else:
            # log-gamma of hundreds: 14 digits, then up to 180 summands
            expected = float(reference.hwe_exact(n_ref, n_het, n_alt, midp))
            np.testing.assert_allclose(p, expected, rtol=1e-10)
