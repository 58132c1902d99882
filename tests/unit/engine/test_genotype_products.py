"""X X' V of packed genotypes: right, and the same bytes for any threads and blocks in memory."""

import numpy as np
import pytest

from popdesic.engine import flipped_sums_cpu, genotype_products, genotype_sums_cpu
from popdesic.engine import genotype_products_cpu as cpu_products
from popdesic.engine.genotype_products import Calls, Flips, GenotypeProducts, site_blocks
from popdesic.engine.genotype_products_cpu import CpuProducts
from popdesic.engine.sample_sums import sample_sums
from popdesic.io.genotypes import pack_bed, unpack_bed


def drawn(rng, sizes, n_sites, missing=0.1, drop=True) -> tuple[Calls, np.ndarray]:
    """Cohorts of these sizes, some samples left out; standardised genotypes (n, n_sites)."""
    af = rng.uniform(0.05, 0.95, n_sites)
    parts, keep, kept = [], [], []
    for size in sizes:
        genotypes = rng.binomial(2, af[:, None], (n_sites, size)).astype(np.int8)
        genotypes[rng.random(genotypes.shape) < missing] = -1
        who = rng.random(size) < 0.8 if drop else np.ones(size, bool)
        who[0] = True
        parts.append(pack_bed(np.ascontiguousarray(genotypes)))
        keep.append(who)
        kept.append(genotypes[:, who])
    together = np.concatenate(kept, axis=1)
    af[:2] = [0.0, np.nan][: len(af[:2])]
    with np.errstate(invalid="ignore", divide="ignore"):
        x = (together - 2 * af[:, None]) / np.sqrt(2 * af * (1 - af))[:, None]
    x[(together < 0) | ~np.isfinite(x)] = 0
    return Calls(tuple(parts), None, tuple(keep), af), x.T


SHAPES = [([1], 1), ([2], 15), ([15, 3], 16), ([16], 17), ([33, 1, 5], 64), ([64, 65], 65)]


@pytest.mark.parametrize(("sizes", "n_sites"), [*SHAPES, ([90, 17], 5000)])
@pytest.mark.parametrize("missing", [0.0, 0.1, 1.0])
def test_products_are_those_of_the_standardised_genotypes(sizes, n_sites, missing):
    rng = np.random.default_rng(n_sites)
    calls, x = drawn(rng, sizes, n_sites, missing)
    vectors = rng.normal(size=(len(x), 9))
    products = CpuProducts(calls)
    scale = np.abs(x).sum() + 1
    np.testing.assert_allclose(products.project(vectors), x.T @ vectors, atol=1e-6 * scale**0.5)
    expected = x @ (x.T @ vectors)
    size = np.abs(expected).max() + 1e-9
    np.testing.assert_allclose(products.normal(vectors), expected, atol=3e-6 * size)
    weights = products.project(vectors)
    np.testing.assert_allclose(products.combine(weights), expected, atol=3e-6 * size)
    assert products.combine(weights).tobytes() == products.normal(vectors).tobytes()
    assert products.project(vectors[:, :0]).shape == (n_sites, 0)
    assert products.normal(vectors[:, :0]).shape == (len(x), 0)
    factors = rng.uniform(0.5, 1.5, (len(sizes), len(sizes)))
    cohort = np.repeat(np.arange(len(sizes)), [who.sum() for who in calls.keep])
    expected = (x @ x.T * factors[np.ix_(cohort, cohort)]) @ vectors
    size = np.abs(expected).max() + 1e-9
    np.testing.assert_allclose(products.normal(vectors, factors), expected, atol=3e-6 * size)


@pytest.mark.parametrize(("sizes", "n_sites"), [*SHAPES, ([90, 17], 5000)])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_sums_of_samples_and_jointly_called_sites(sizes, n_sites, missing):
    rng = np.random.default_rng(n_sites)
    calls, x = drawn(rng, sizes, n_sites, missing)
    pair = calls.parts, calls.keep
    codes = [unpack_bed(part, len(who))[:, who] for part, who in zip(*pair, strict=True)]
    called = (np.concatenate(codes, axis=1) >= 0) & ((calls.af > 0) & (calls.af < 1))[:, None]
    products = CpuProducts(calls, threads=2)
    found = sample_sums(calls, threads=2)
    np.testing.assert_allclose(found.squares, (x**2).sum(axis=1), rtol=1e-9)
    np.testing.assert_array_equal(found.called, called.sum(axis=0))
    joint = called.T.astype(np.int64) @ called
    cohort = np.repeat(np.arange(len(sizes)), [who.sum() for who in calls.keep])
    own = np.eye(len(sizes), dtype=np.int64)[cohort]
    np.testing.assert_array_equal(found.joint, own.T @ joint @ own)
    vectors = rng.normal(size=(len(x), 3))
    atol = 1e-5 * (np.abs(joint) @ np.abs(vectors)).max() + 1e-12
    np.testing.assert_allclose(products.joint(vectors), joint @ vectors, atol=atol)


@pytest.mark.parametrize("held_blocks", [0, 2, 99])
def test_further_passes_give_the_same_bytes_with_blocks_in_memory_or_not(monkeypatch, held_blocks):
    monkeypatch.setattr(genotype_products, "BLOCK_SITES", 64)
    rng = np.random.default_rng(6)
    calls, x = drawn(rng, [33, 31], 300)
    monkeypatch.setattr(cpu_products, "HELD_BYTES", 3 * 64 * held_blocks * calls.spans[-1][1])
    vectors, factors = rng.normal(size=(len(x), 3)), np.ones((2, 2))
    products = CpuProducts(calls, threads=2)
    flips = flips_of(rng, x, products, 3)
    once = CpuProducts(calls).normal(vectors), CpuProducts(calls).flipped(vectors, flips)
    for _ in range(2):
        assert products.normal(vectors).tobytes() == once[0].tobytes()
        assert products.flipped(vectors, flips).tobytes() == once[1].tobytes()
        assert products.normal(vectors, factors).shape == vectors.shape
    products.normal(vectors)
    assert len(products._held) == min(held_blocks, 5)


def test_chosen_sites_are_those_rows():
    rng = np.random.default_rng(2)
    calls, x = drawn(rng, [40, 9], 300)
    rows = np.flatnonzero(rng.random(300) < 0.5)
    some = Calls(calls.parts, rows, calls.keep, calls.af[rows])
    vectors = rng.normal(size=(len(x), 3))
    expected = x[:, rows] @ (x[:, rows].T @ vectors)
    np.testing.assert_allclose(CpuProducts(some).normal(vectors), expected, rtol=1e-4, atol=1e-2)
    run = Calls(calls.parts, np.arange(20, 130), calls.keep, calls.af[20:130])
    expected = x[:, 20:130] @ (x[:, 20:130].T @ vectors)
    np.testing.assert_allclose(CpuProducts(run).normal(vectors), expected, rtol=1e-4, atol=1e-2)


def flips_of(rng, x, products, columns, k=2) -> Flips:
    n, n_sites = x.shape
    known = np.linalg.qr(rng.normal(size=(n, k)))[0]
    signs = rng.choice(np.array([1, -1], np.int8), (4, n, columns))
    stretch = np.sort(rng.integers(0, 4, n_sites))
    return Flips(signs, stretch, known, products.project(known))


@pytest.mark.parametrize("k", [0, 2])
def test_flipped_genotypes_are_those_after_signs_and_without_known_components(k):
    rng = np.random.default_rng(3)
    calls, x = drawn(rng, [50, 20], 700)
    products = CpuProducts(calls)
    flips = flips_of(rng, x, products, 3, k)
    vectors = rng.normal(size=(len(x), 3))
    left = x - flips.known @ (flips.known.T @ x)
    for column in range(3):
        turned = left * flips.signs[flips.stretch, :, column].T
        expected = turned @ (turned.T @ vectors[:, column])
        found = products.flipped(vectors, flips)[:, column]
        np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("block_sites", [64, 4096])
def test_spread_is_the_variance_of_signed_products_of_each_stretch(monkeypatch, block_sites):
    """Several blocks a stretch count as one; with many columns it is the sum of squares."""
    monkeypatch.setattr(genotype_products, "BLOCK_SITES", block_sites)
    rng = np.random.default_rng(5)
    calls, x = drawn(rng, [30, 20], 700)
    products = CpuProducts(calls)
    flips = flips_of(rng, x, products, 400)
    left = x - flips.known @ (flips.known.T @ x)
    spread, squares = np.zeros(len(x)), np.zeros(len(x))
    for name, signs in enumerate(flips.signs):
        own = left[:, flips.stretch == name]
        among = own @ own.T
        spread += (signs * (among @ signs)).var(axis=1, ddof=1)
        squares += (among**2).sum(axis=1) - np.diag(among) ** 2
    found = products.spread_by_person(flips)
    np.testing.assert_allclose(found, spread, rtol=1e-4)
    assert found.sum() == pytest.approx(squares.sum(), rel=0.03)


def test_bytes_do_not_depend_on_threads_or_on_how_cohorts_are_cut(monkeypatch):
    monkeypatch.setattr(genotype_products, "BLOCK_SITES", 64)
    rng = np.random.default_rng(4)
    calls, x = drawn(rng, [33, 31], 900, drop=False)
    vectors = rng.normal(size=(64, 9))
    one, three = CpuProducts(calls), CpuProducts(calls, threads=3)
    flips = flips_of(rng, x, one, 9)
    assert one.normal(vectors).tobytes() == three.normal(vectors).tobytes()
    assert one.flipped(vectors, flips).tobytes() == three.flipped(vectors, flips).tobytes()
    assert one.spread_by_person(flips).tobytes() == three.spread_by_person(flips).tobytes()
    sizes = zip(calls.parts, (33, 31), strict=True)
    whole = np.concatenate([unpack_bed(part, size) for part, size in sizes], axis=1)
    together = Calls((pack_bed(whole),), None, (np.ones(64, bool),), calls.af)
    assert CpuProducts(together).normal(vectors).tobytes() == one.normal(vectors).tobytes()


def test_blocks_end_where_labels_change(monkeypatch):
    monkeypatch.setattr(genotype_products, "BLOCK_SITES", 3)
    assert site_blocks(7) == [(0, 3), (3, 6), (6, 7)]
    assert site_blocks(7, np.array([0, 0, 0, 0, 1, 2, 2])) == [(0, 3), (3, 4), (4, 5), (5, 7)]
    assert site_blocks(0) == []


@pytest.mark.parametrize(("sizes", "n_sites"), [*SHAPES, ([90, 17], 700)])
@pytest.mark.parametrize("missing", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("k", [0, 3])
def test_compiled_passes_give_the_bytes_of_the_general_ones(
    monkeypatch, sizes, n_sites, missing, k
):
    monkeypatch.setattr(genotype_products, "BLOCK_SITES", 64)
    rng = np.random.default_rng(n_sites)
    calls, x = drawn(rng, sizes, n_sites, missing)
    products = CpuProducts(calls, threads=2)
    for columns in (1, 8):
        flips = flips_of(rng, x, products, columns, min(k, len(x)))
        vectors = rng.normal(size=(len(x), columns)) * 10.0 ** rng.integers(-9, 9, columns)
        vectors[:, 0] *= rng.integers(0, 2)
        found = products.flipped(vectors, flips)
        with monkeypatch.context() as plain:
            plain.setattr(CpuProducts, "_flipped", GenotypeProducts._flipped)
            expected = CpuProducts(calls).flipped(vectors, flips)
        assert (found + 0.0).tobytes() == (expected + 0.0).tobytes()


def test_lists_of_missing_people_give_the_sums_of_a_search(monkeypatch):
    rng = np.random.default_rng(11)
    for missing in (0.001, 0.02, 0.5):
        calls, x = drawn(rng, [90, 65, 40], 300, missing)
        vectors, factors = rng.normal(size=(len(x), 17)), rng.uniform(0.5, 1.5, (3, 3))
        rows = calls.block(0, 300)
        listed = cpu_products.Block(rows).listed
        # Code 01 is missing; a list is kept while it takes no more bytes than the words.
        count = ((rows & ~(rows >> 1)) & 0x55).astype(bool).sum() if missing < 0.01 else None
        assert (listed is not None) == (missing < 0.1)
        assert count is None or len(listed[1]) == count
        found = CpuProducts(calls).normal(vectors, factors)
        with monkeypatch.context() as plain:
            plain.setattr(
                flipped_sums_cpu,
                "list_missing_of_words",
                lambda words, starts, items: starts.fill(1 << 40),
            )
            assert CpuProducts(calls).normal(vectors, factors).tobytes() == found.tobytes()
    assert flipped_sums_cpu.COLUMNS == genotype_sums_cpu.COLUMNS


@pytest.mark.parametrize(("sizes", "n_sites"), [([1], 1), ([33, 1, 5], 64), ([120, 70], 700)])
@pytest.mark.parametrize("missing", [0.0, 0.01])
def test_rare_sites_as_lists_give_the_same_bytes(monkeypatch, sizes, n_sites, missing):
    """Sites that few carry, of either homozygote, between common ones; also of all sites."""
    rng = np.random.default_rng(n_sites)
    calls, x = drawn(rng, sizes, n_sites, 0.0)
    parts = []
    for part, size in zip(calls.parts, sizes, strict=True):
        genotypes = unpack_bed(part, size)
        rare = rng.random(n_sites) < 0.7
        genotypes[rare] = rng.choice(np.array([0, 2], np.int8), (rare.sum(), 1))
        genotypes[(rng.random(genotypes.shape) < 0.02) & rare[:, None]] = 1
        genotypes[rng.random(genotypes.shape) < missing] = -1
        parts.append(pack_bed(np.ascontiguousarray(genotypes)))
    calls = Calls(tuple(parts), None, calls.keep, calls.af)
    vectors, factors = rng.normal(size=(len(x), 11)), rng.random((len(sizes), len(sizes)))
    weights = rng.normal(size=(n_sites, 3))

    def passes() -> list[bytes]:
        products = CpuProducts(calls, threads=2)
        found = [products.normal(vectors), products.normal(vectors), products.joint(vectors)]
        found += [products.normal(vectors, factors), products.combine(weights)]
        return [one.tobytes() for one in (*found, products.project(vectors))]

    listed = []
    split = cpu_products.SplitBlock.__init__

    def noted(self, *given) -> None:
        split(self, *given)
        listed.append(len(self.listed))

    monkeypatch.setattr(cpu_products.SplitBlock, "__init__", noted)
    for share, block_sites in ((0.15, 64), (1.0, 4096)):
        monkeypatch.setattr(cpu_products, "LISTED_SHARE", share)
        monkeypatch.setattr(genotype_products, "BLOCK_SITES", block_sites)
        monkeypatch.setattr(cpu_products, "LEAST_LISTED", 2)  # no share is so large
        expected, before = passes(), len(listed)
        monkeypatch.setattr(cpu_products, "LEAST_LISTED", 0)
        assert passes() == expected
        assert before < len(listed)
    if n_sites == 700:
        assert listed[-1] == 700 and 0 < listed[0] < 64
