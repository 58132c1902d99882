"""The exact pass of segments against its oracle, and its model of genotype pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from oracles import ibd_segments as reference
from support.operands import planes_of

from popdesic.engine.select import cpu_backend
from popdesic.ibd import model, ratios_cpu, segments_cpu
from popdesic.ibd.definition import SegmentLimits
from popdesic.ibd.find_candidates import find_candidates
from popdesic.ibd.segments import (
    LIKELY_SHARE,
    ScoreTables,
    SearchGenome,
    least_run,
    segments_between,
)
from popdesic.ibd.windows import genetic_sites


def related(rng, n: int, n_sites: int, missing: float) -> np.ndarray:
    """Genotypes int8 (n, n_sites) of mosaics of few haplotypes, which share many stretches."""
    pool = (rng.random((6, n_sites)) < rng.uniform(0.2, 0.8, n_sites)).astype(np.int8)
    who = np.repeat(rng.integers(0, 6, (2 * n, n_sites // 40 + 1)), 40, axis=1)[:, :n_sites]
    haplotypes = pool[who, np.arange(n_sites)]
    genotypes = haplotypes[::2] + haplotypes[1::2]
    genotypes[rng.random(genotypes.shape) < 0.002] = 1
    genotypes[rng.random(genotypes.shape) < missing] = -1
    return genotypes


@pytest.mark.parametrize("shared", [1, 2])
@pytest.mark.parametrize("p", [0.0, 0.07, 0.5, 0.93, np.nan])
def test_ratios_are_those_of_all_alleles(shared, p):
    table = model.log_ratios(np.array([p]), 0.004, shared).reshape(4, 4)
    ends = model.end_scores(np.array([p]), 0.004, shared)[0]
    least = model.LEAST_FREQUENCY
    for a in range(4):
        for b in range(4):
            if np.isnan(p):
                assert table[a, b] == 0
                continue
            want = reference.ratio(a, b, p, 0.004, shared, model.SCALE, least)
            assert table[a, b] == want
            if 3 not in (a, b):
                against = int(reference.contradicts(a, b, shared))
                want = reference.end_score(
                    *(a, b, p, 0.004, shared, model.SCALE, least, model.GAIN_SHARE)
                )
                assert ends[against] == want


def test_a_shared_allele_is_worth_its_expected_lod():
    rng = np.random.default_rng(1)
    p, n = 0.3, 200_000
    alleles = rng.random((3, n)) < p
    a, b = alleles[0] + alleles[1].astype(int), alleles[0] + alleles[2].astype(int)
    table = model.log_ratios(np.array([p]), 1e-9, 1).reshape(4, 4) / model.SCALE
    assert table[a, b].mean() == pytest.approx(model.expected_lod(np.array([p]), 1e-9)[0], rel=0.02)


@pytest.mark.parametrize("error_rate", [1e-4, 0.001, 0.03, 0.1])
@pytest.mark.parametrize("shared", [1, 2])
def test_no_gain_is_negative_and_no_loss_positive(shared, error_rate):
    """The search of ends looks at contradictions alone, because of this."""
    ends = model.end_scores(np.linspace(0, 1, 501), error_rate, shared)
    assert ends[:, 0].min() >= 0 and ends[:, 1].max() <= 0


def expected(genotypes, other, genome, af, limits):
    """Rows (a, b, first, last, score, called, errors, shared) of the oracle."""
    same = other is None
    seen = [np.where(g < 0, 3, g) for g in (genotypes, genotypes if same else other)]
    windows, rows = genome.windows, []
    scores = limits.drop, limits.min_lod, limits.min_lod, limits.trim, limits.split
    scale = [round(model.SCALE * x) for x in scores]
    found = find_candidates(
        cpu_backend(1),
        planes_of(genotypes),
        None if same else planes_of(other),
        windows,
        tolerance=limits.tolerance,
        min_length=least_run(limits, windows),
        most=limits.most,
    )
    least = limits.min_cm, limits.min_ibd2_cm, LIKELY_SHARE * limits.min_cm
    places: dict = {}
    for i, j, first, last in zip(*map(np.ndarray.tolist, found), strict=True):
        end = int(windows.first[last] + windows.sites[last])
        one = int(windows.contig[first]), int(windows.first[first]), end
        places.setdefault((i, j), []).append(one)
    for (i, j), candidates in places.items():
        found = reference.find(
            *(seen[0][i].tolist(), seen[1][j].tolist(), candidates, af, limits.error_rate),
            *(model.SCALE, model.LEAST_FREQUENCY, model.GAIN_SHARE, genome.sites.contigs, scale),
            *(genome.sites.cm, [x - 1e-9 for x in least]),
        )
        rows += [(i, j, *row) for row in found]
    return rows


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 63, 64, 65, 300])
@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_segments_are_those_of_the_oracle(n_sites, missing):
    rng = np.random.default_rng(n_sites)
    for n in (1, 2, 9):
        genotypes = related(rng, n, n_sites, missing)
        if n == 9:
            genotypes[4] = genotypes[2]
            genotypes[7] = -1
        sites = pd.DataFrame(
            {"chrom": "1", "pos": 1 + np.cumsum(rng.integers(1, 200_000, n_sites))}
        )
        sites.loc[n_sites // 3 :, "chrom"] = "2"
        left_out = np.arange(n_sites) // 25 == 4
        limits = SegmentLimits(
            min_cm=1.0,
            min_ibd2_cm=0.5,
            min_lod=0.5,
            error_rate=0.01,
            window=16,
            drop=2.5,
            split=1.5,
        )
        af = np.clip(np.where(genotypes < 0, 0.5, genotypes / 2).mean(axis=0), 0.01, 0.99)
        used = np.where(left_out, np.nan, af).tolist()
        genome = SearchGenome.of(genetic_sites(sites, None, left_out), af, limits)
        for other in (None, related(rng, 4, n_sites, missing)):
            b = None if other is None else planes_of(other)
            results = [
                segments_between(planes_of(genotypes), b, genome, limits, cpu_backend(threads))
                for threads in (1, 3)
            ]
            found = [
                list(
                    zip(
                        *(one.a, one.b, one.first, one.last, one.lod * model.SCALE),
                        *(one.called, one.errors, one.shared),
                        strict=True,
                    )
                )
                for one in results
            ]
            assert found[0] == found[1] == expected(genotypes, other, genome, used, limits)
            if n == 9 and n_sites == 300 and other is None:
                assert {1, 2} == set(results[0].shared.tolist()) and len(found[0]) > 20


@pytest.mark.parametrize("beside", [0, 5, 10, 40, 200])
def test_ends_that_look_unrelated_are_cut_off(beside):
    """Beside a shared stretch one person is heterozygous where the other has the common allele.

    Nothing there contradicts sharing, but each such site is 1.4 times likelier without.
    """
    rng = np.random.default_rng(3)
    inside, p = 700, 0.3
    shared, one, two = (rng.random((3, inside)) < p).astype(np.int8)
    genotypes = np.zeros((2, inside + 2 * beside), np.int8)
    genotypes[1] = 1
    genotypes[:, beside : beside + inside] = shared + one, shared + two
    pos = 1 + 10_000 * np.arange(genotypes.shape[1])
    sites = genetic_sites(pd.DataFrame({"chrom": "1", "pos": pos}), None)
    limits = SegmentLimits(min_cm=6.0)
    genome = SearchGenome.of(sites, np.full(len(pos), p), limits)
    found = segments_between(planes_of(genotypes), None, genome, limits, cpu_backend(1))
    cut = beside * -np.log10(1 / (2 * (1 - p))) >= limits.trim
    own = 0, len(pos) - 1
    assert len(found) == 1 and cut == (beside >= 40)
    if cut:
        own = beside, beside + inside - 1
    off = np.array([found.first[0] - own[0], own[1] - found.last[0]])
    assert (off >= 0).all() and (off < (60 if cut else 1)).all()
    if beside == 200:  # 7 cM are shared, and nothing of 8
        longer = SegmentLimits(min_cm=8.0)
        assert not len(segments_between(planes_of(genotypes), None, genome, longer, cpu_backend(1)))


def test_ends_lie_nearer_than_the_next_contradiction():
    """Of a segment with neighbours that are not shared: before the true end as well as behind."""
    rng = np.random.default_rng(6)
    n_pairs, n_sites, shared = 150, 2200, slice(600, 1600)
    p = rng.uniform(0.1, 0.5, n_sites)
    drawn = (rng.random((n_pairs, 4, n_sites)) < p).astype(np.int8)
    drawn[:, 2, shared] = drawn[:, 0, shared]
    drawn[:, 0, :9], drawn[:, 1, :9], drawn[:, 2:, :9] = 1, 1, 0  # no segment of the whole contig
    genotypes = drawn.reshape(n_pairs, 2, 2, n_sites).sum(axis=2).reshape(-1, n_sites)
    cm = np.arange(n_sites) / 100
    sites = genetic_sites(
        pd.DataFrame({"chrom": "1", "pos": np.rint(1e6 * cm).astype(int) + 1}), None
    )
    limits = SegmentLimits()
    genome = SearchGenome.of(sites, p, limits)
    found = segments_between(planes_of(genotypes), None, genome, limits, cpu_backend(2))
    own = (found.shared == 1) & (found.a % 2 == 0) & (found.b == found.a + 1)
    assert own.sum() == n_pairs
    left, right = cm[shared.start] - cm[found.first[own]], cm[found.last[own]] - cm[shared.stop - 1]
    far = np.concatenate([left, right])
    opposite = np.abs(genotypes[::2] - genotypes[1::2]) == 2
    after = np.argmax(opposite[:, shared.stop :], axis=1) / 100
    assert abs(np.mean(far)) < 0.3 * np.mean(after)
    assert np.quantile(np.abs(far), 0.9) < 0.8 * np.quantile(after, 0.9)


@pytest.mark.parametrize("seed", range(3))
def test_cut_ends_are_those_of_the_oracle(seed):
    rng = np.random.default_rng(seed)
    n_sites, n_cut = 64 * 5, 0
    for _ in range(100):
        genotypes = rng.integers(0, 3, (2, n_sites)).astype(np.int8)
        genotypes[rng.random(genotypes.shape) < 0.1] = -1
        words = planes_of(genotypes).words
        table = rng.integers(-9, 11, (n_sites, 16)).astype(np.int32)
        table.reshape(-1, 4, 4)[:, 3] = table.reshape(-1, 4, 4)[:, :, 3] = 0
        seen = np.where(genotypes < 0, 3, genotypes)
        ratios = table[np.arange(n_sites), 4 * seen[0] + seen[1]].tolist()
        first, last = np.sort(rng.integers(0, n_sites, 2)).tolist()
        trim = int(rng.integers(1, 60))
        cut = ratios_cpu.trimmed(
            *(words[0], words[1], ratios_cpu.by_bits(table), first, last, trim)
        )
        wanted = reference.trimmed(ratios, first, last, trim)
        if wanted[0] <= wanted[1]:
            assert cut[:3] == (*wanted, sum(ratios[wanted[0] : wanted[1] + 1]))
            n_cut += wanted != (first, last)
        else:
            assert cut[1] < cut[0]
    assert n_cut > 5


@pytest.mark.parametrize("seed", range(3))
def test_parts_are_those_of_the_oracle(seed):
    """And none of them has a stretch inside that speaks against sharing."""
    rng = np.random.default_rng(seed)
    n_sites, n_split = 64 * 5, 0
    for _ in range(100):
        genotypes = rng.integers(0, 3, (2, n_sites)).astype(np.int8)
        genotypes[rng.random(genotypes.shape) < 0.1] = -1
        words = planes_of(genotypes).words
        table = rng.integers(-9, 11, (n_sites, 16)).astype(np.int32)
        table[np.repeat(rng.random(n_sites // 20) < 0.2, 20)] -= 4
        table.reshape(-1, 4, 4)[:, 3] = table.reshape(-1, 4, 4)[:, :, 3] = 0
        seen = np.where(genotypes < 0, 3, genotypes)
        ratios = table[np.arange(n_sites), 4 * seen[0] + seen[1]].tolist()
        first, last = np.sort(rng.integers(0, n_sites, 2)).tolist()
        split, given = int(rng.integers(20, 120)), (*words[:2], ratios_cpu.by_bits(table))
        found, site = [], first
        if ratios_cpu.sum_ratios(*given, first, last)[3] > -split:
            found, site = [(first, last)], last + 1
        while site <= last:
            begin, end, total, site = ratios_cpu.next_part(*given, site, last, split, site > first)
            if begin <= end:
                found.append((begin, end))
                assert total == sum(ratios[begin : end + 1])
        assert found == reference.parts(ratios, (first, last), first, last, split)
        n_split += len(found) > 1
        for begin, end in found if len(found) > 1 else ():
            sums = np.concatenate([[0], np.cumsum(ratios[begin : end + 1])])
            assert (np.maximum.accumulate(sums) - sums).max() < split
    assert n_split > 20


@pytest.mark.parametrize(("between", "parts"), [(0, 1), (10, 1), (15, 1), (60, 2), (150, 2)])
def test_two_segments_that_nothing_between_contradicts_are_two(between, parts):
    """Between them one person is heterozygous where the other has the common allele.

    Nothing there contradicts sharing, but each such site is 1.4 times likelier without. The parts
    are 7 and 8 cM, and with a segment of at least 10 cM asked for there is none.
    """
    rng = np.random.default_rng(5)
    p, lengths = 0.3, (700, 800)
    n_sites = sum(lengths) + between
    shared, one, two = (rng.random((3, n_sites)) < p).astype(np.int8)
    genotypes = np.stack([shared + one, shared + two])
    gap = slice(lengths[0], lengths[0] + between)
    genotypes[:, gap] = [[0], [1]]
    sites = genetic_sites(
        pd.DataFrame({"chrom": "1", "pos": 1 + 10_000 * np.arange(n_sites)}), None
    )
    for least in (6.0, 10.0):
        limits = SegmentLimits(min_cm=least)
        genome = SearchGenome.of(sites, np.full(n_sites, p), limits)
        found = segments_between(planes_of(genotypes), None, genome, limits, cpu_backend(1))
        assert len(found) == (parts if least == 6 or parts == 1 else 0)
        if parts == 2 and least == 6:
            own = np.array([[0, lengths[0] - 1], [gap.stop, n_sites - 1]])
            assert (np.abs(np.column_stack([found.first, found.last]) - own) < 60).all()


def test_siblings_at_many_sites_are_as_of_the_oracle():
    """Stretches of both alleles among words full of differing genotypes, and places without."""
    rng = np.random.default_rng(8)
    n_sites = 2600
    pool = (rng.random((4, n_sites)) < rng.uniform(0.2, 0.8, n_sites)).astype(np.int8)
    step = (rng.random((2, 5, n_sites)) < 1 / 330).cumsum(axis=2)
    which = (step + rng.integers(0, 2, (2, 5, 1))) % 2
    genotypes = sum(pool[2 * k + which[k], np.arange(n_sites)] for k in (0, 1)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.001] = 1
    genotypes[rng.random(genotypes.shape) < 0.02] = -1
    sites = pd.DataFrame({"chrom": "1", "pos": 1 + np.cumsum(rng.integers(1, 16_000, n_sites))})
    left_out = (np.arange(n_sites) // 150) % 7 == 3
    af = np.clip(np.where(genotypes < 0, 0.5, genotypes / 2).mean(axis=0), 0.05, 0.95)
    limits = SegmentLimits(min_cm=2.0, min_ibd2_cm=1.0, min_lod=1.0)
    both = 0
    for hidden in (None, left_out):
        used = af if hidden is None else np.where(hidden, np.nan, af)
        genome = SearchGenome.of(genetic_sites(sites, None, hidden), af, limits)
        found = segments_between(planes_of(genotypes), None, genome, limits, cpu_backend(1))
        rows = zip(
            *(found.a, found.b, found.first, found.last, found.lod * model.SCALE),
            *(found.called, found.errors, found.shared),
            strict=True,
        )
        assert list(rows) == expected(genotypes, None, genome, used.tolist(), limits)
        both += int((found.shared == 2).sum())
    assert both > 15


@pytest.mark.parametrize("seed", range(4))
def test_chunks_that_are_leapt_over_hold_no_stretch(seed):
    """Both alleles from first to last site, with scores that forget slowly where they began."""
    rng = np.random.default_rng(seed)
    n_sites, drop, found_any = 32 * 60, 40, 0
    no_ratios, cm = np.zeros((n_sites, 16), np.int32), np.arange(n_sites) / 1.0
    for _ in range(40):
        ends = np.stack([rng.integers(0, 4, n_sites), -rng.integers(8, 14, n_sites)], axis=1)
        ends = np.ascontiguousarray(ends, np.int32)
        ends[rng.random(n_sites) < 0.02] = 0  # left out
        often = np.repeat(rng.choice([0.01, 0.1, 0.3, 0.5], n_sites // 16), rng.integers(9, 60))
        often = np.resize(often, n_sites)
        differ = rng.random(n_sites) < often
        planes = np.zeros((2, 3, n_sites // 64), np.uint64)
        planes[1, 0] = np.packbits(differ, bitorder="little").view(np.uint64)
        called = rng.random(n_sites) < 0.97
        planes[:, 2] = np.packbits(called, bitorder="little").view(np.uint64)
        first, last, least = int(rng.integers(90)), n_sites - 1 - int(rng.integers(90)), 70.0
        out = np.empty((200, 7), np.int64)
        scored = ends, segments_cpu.running_sums(ends), no_ratios
        tables = ScoreTables(*scored, *scored, segments_cpu.chunk_losses(ends), cm)
        n = segments_cpu._both_alleles(
            *(planes[0], planes[1], 0, tables, cm, np.array([drop, 0, 0]), least),
            *(first, last, out, 0),
        )
        scores = np.where(called, np.where(differ, ends[:, 1], ends[:, 0]), 0).tolist()
        wanted, _ = reference.segments(scores, first, last + 1, last + 1, drop)
        wanted = [(a, b) for a, b in wanted if b - a >= least]
        assert [tuple(row) for row in out[:n, 1:3].tolist()] == wanted
        found_any += n
    assert found_any > 40
