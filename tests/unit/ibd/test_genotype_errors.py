"""The error rate that is measured inside long segments, and what it is used for."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scenes.ibd_people import read_with_errors
from support.study import Cohort, encode_cohorts

from popdesic.cohort.encode import planes_in_memory
from popdesic.core.files import read_json
from popdesic.engine.select import cpu_backend
from popdesic.ibd import model
from popdesic.ibd.definition import SegmentLimits
from popdesic.ibd.genome import founders_errors, load_limits, prepare_genome
from popdesic.ibd.genotype_errors import LEAST_RATE, tolerance_of
from popdesic.ibd.windows import genetic_sites, sites_per_window
from popdesic.io.genotypes import pack_bed
from popdesic.report.sections.ibd import error_words

PER_CM, CONTIGS, LENGTH = 100, 2, 50
N_SITES = PER_CM * CONTIGS * LENGTH
SITES = pd.DataFrame(
    {
        "chrom": np.repeat([str(k + 1) for k in range(CONTIGS)], PER_CM * LENGTH),
        "pos": np.tile(1 + np.arange(PER_CM * LENGTH) * (1_000_000 // PER_CM), CONTIGS),
    }
)


def family(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """True genotypes int8 (n, n_sites), and frequencies: ten pairs of a kind among 30 strangers."""
    af = rng.uniform(0.1, 0.9, N_SITES)
    strangers = (rng.random((60, N_SITES)) < af).astype(np.int8).reshape(30, 2, N_SITES)
    parents = strangers[:10]
    if kind == "children":
        others = (rng.random((10, N_SITES)) < af).astype(np.int8)
        later = parents[:, 0] + others
    else:
        later = parents.sum(axis=1) if kind == "duplicates" else parents[:0, 0]
    return np.concatenate([strangers.sum(axis=1), later]).astype(np.int8), af


def measured(genotypes: np.ndarray, af: np.ndarray):
    planes = planes_in_memory(pack_bed(np.ascontiguousarray(genotypes.T)), len(genotypes))
    sites = genetic_sites(SITES, None)
    return founders_errors(planes, sites, af, SegmentLimits(), cpu_backend(1))


@pytest.mark.parametrize("af", [0.02, 0.5, 0.8])
@pytest.mark.parametrize("rate", [0.001, 0.03])
def test_chances_of_contradictions(af, rate):
    """Beside sums over all alleles of two samples and all misreadings of both genotypes."""
    read = [[1 - rate, rate, 0], [rate / 2, 1 - rate, rate / 2], [0, rate, 1 - rate]]
    found = [0.0, 0.0]
    for one, two, three in itertools.product((0, 1), repeat=3):
        chance = np.prod([af if x else 1 - af for x in (one, two, three)])
        for a, b in itertools.product(range(3), repeat=2):
            found[0] += chance * (abs(a - b) == 2) * read[one + two][a] * read[one + three][b]
            alike = chance * (a != b) * read[one + two][a] * read[one + two][b]
            found[1] += alike
    linear, square = model.contradictions(np.array([af, np.nan]))
    np.testing.assert_allclose(linear[0] * rate + square[0] * rate**2, found, rtol=1e-9)
    assert not linear[1].any() and not square[1].any()


@pytest.mark.parametrize("kind", ["children", "duplicates"])
@pytest.mark.parametrize("rate", [0.001, 0.005, 0.02])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_rate_is_measured_in_relatives(kind, rate, seed):
    rng = np.random.default_rng([seed, round(1e4 * rate)])
    true, af = family(kind, rng)
    found = measured(read_with_errors(true, rng, rate, 0.02), af)
    assert found.segments >= 10 and found.called > 10 * 0.7 * N_SITES
    assert abs(found.rate - rate) <= 0.25 * rate + 1e-9


def test_nothing_is_measured_among_strangers():
    rng = np.random.default_rng(3)
    true, af = family("strangers", rng)
    found = measured(read_with_errors(true, rng, 0.02, 0.02), af)
    assert found.rate is None and found.segments == 0


def test_genotypes_without_errors_have_the_least_rate():
    rng = np.random.default_rng(4)
    true, af = family("children", rng)
    found = measured(true, af)
    assert found.contradictions == 0 and found.rate == LEAST_RATE


def test_a_bad_sample_does_not_count():
    """A child of whom a sixth of the genotypes is wrong, among nine with 0.5 %."""
    rng = np.random.default_rng(5)
    true, af = family("children", rng)
    read = read_with_errors(true, rng, 0.005, 0.0)
    read[-1] = read_with_errors(true[-1:], rng, 0.05, 0.0)
    found = measured(read, af)
    assert found.segments < 20 and found.rate in (0.004, 0.005, 0.006)


@pytest.mark.parametrize(("rate", "most"), [(0.001, 1), (0.01, 2), (0.03, 4)])
def test_windows_may_have_the_errors_of_the_rate(rate, most):
    """Windows with as many sites are drawn: at most one in 200 has more contradictions."""
    af, sites = np.full(N_SITES, 0.5), genetic_sites(SITES, None)
    tolerance = tolerance_of(sites, af, SegmentLimits(), rate)
    linear, square = model.contradictions(np.array([0.5]))
    chance = float(linear[0, 0] * rate + square[0, 0] * rate**2)
    size = sites_per_window(sites, 0)
    drawn = np.random.default_rng(6).binomial(size, chance, 200_000)
    assert tolerance == most and np.mean(drawn > tolerance) < 0.006
    assert tolerance == 1 or np.mean(drawn > tolerance - 1) > 0.004


@pytest.mark.parametrize("measure", [True, False])
def test_the_stage_takes_what_it_measures(tmp_path, measure):
    rng = np.random.default_rng(7)
    true, _ = family("children", rng)
    names = [f"S{k}" for k in range(len(true))]
    sites = [
        (chrom, int(pos), f"s{k}", *(("A", "C"), ("G", "T"))[k % 2])
        for k, (chrom, pos) in enumerate(zip(SITES.chrom, SITES.pos, strict=True))
    ]
    cohort = Cohort("north", names, sites, read_with_errors(true, rng, 0.01, 0.0).T)
    folders = encode_cohorts(tmp_path, [cohort])
    limits, genome = SegmentLimits(error_rate=0.002), tmp_path / "genome.npz"
    about = prepare_genome(
        *(folders, tmp_path / "panel.tsv", genome, tmp_path / "genome.json", cpu_backend(1)),
        **{"limits": limits, "genetic_map": None, "x_contigs": [], "regions": []},
        max_sharing=0,
        measure=measure,
    )
    assert about == read_json(tmp_path / "genome.json")
    used = load_limits(genome)
    assert used.min_cm == limits.min_cm and used.window == about["window_sites"]
    words = error_words(about)
    if not measure:
        assert (used.error_rate, used.tolerance, about["errors"], words) == (0.002, 1, None, [])
        return
    assert used.error_rate == about["errors"]["rate"] and 0.008 <= used.error_rate <= 0.012
    assert used.tolerance == 2
    said = f"{100 * used.error_rate:.1f} % of the founders' genotypes are wrong. So tell "
    assert len(words) == 1 and words[0].startswith(said)
    assert f"{about['errors']['contradictions']} contradictions" in words[0]


def test_the_page_says_when_nothing_was_measured():
    about = {"errors": {"rate": None}, "limits": {"error_rate": 0.001}}
    (words,) = error_words(about)
    assert words.startswith("0.1 % of the genotypes are taken to be wrong")
    assert "too few long segments" in words
