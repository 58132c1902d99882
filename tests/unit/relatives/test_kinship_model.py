"""Whether the model of KING-robust kinship holds: groups of known mating, and missing at random."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.operands import planes_of

from popdesic.engine.select import cpu_backend
from popdesic.relatives import independence
from popdesic.relatives.independence import FEW_HETEROZYGOTES, NO_PEDIGREE, kinship_fault
from popdesic.relatives.kinship import COLUMNS, SAME
from popdesic.relatives.resolution import resolve
from popdesic.report.figures.relatives import draw_kinship
from popdesic.report.sections.relatives import amount_of_sites

BACKEND = cpu_backend(1)
N_SITES = 800


def draw(rng, n: int, inbreeding: float = 0.0, af: np.ndarray | None = None) -> np.ndarray:
    """Genotypes (n, n_sites) of unrelated samples."""
    af = rng.uniform(0.1, 0.9, N_SITES) if af is None else af
    one, two = (rng.random((n, N_SITES)) < af for _ in range(2))
    two = np.where(rng.random(one.shape) < inbreeding, one, two)
    return one.astype(np.int8) + two


def fault(genotypes: np.ndarray) -> str | None:
    called = genotypes >= 0
    af = np.where(called, genotypes, 0).sum(axis=0) / np.maximum(2 * called.sum(axis=0), 1)
    return kinship_fault([planes_of(genotypes)], af, BACKEND)


def family(rng, n_families: int) -> np.ndarray:
    """Parents and two children each."""
    parents = draw(rng, 2 * n_families)
    rows = [parents]
    for k in range(n_families):
        for _ in range(2):
            gametes = rng.random((2, N_SITES)) < parents[2 * k : 2 * k + 2] / 2
            rows.append(gametes.sum(axis=0, dtype=np.int8)[None])
    return np.concatenate(rows)


def structured(rng) -> np.ndarray:
    af = rng.uniform(0.1, 0.9, N_SITES)
    drift = np.clip(af + rng.normal(0, 0.2, (2, N_SITES)), 0.02, 0.98)
    return np.concatenate([draw(rng, 15, af=one) for one in drift])


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize(
    "scene", [lambda rng: draw(rng, 16), lambda rng: family(rng, 5), structured]
)
def test_the_model_is_not_doubted_where_it_holds(scene, missing):
    """100 draws in all with genotypes missing at random, and 100 without, stay silent."""
    for seed in range(34):
        rng = np.random.default_rng(seed)
        genotypes = scene(rng)
        genotypes[rng.random(genotypes.shape) < missing] = -1
        assert fault(genotypes) is None, seed


def clones(rng, n=25) -> np.ndarray:
    """Lineages of one ancestor: each has its own mutations beside the ancestor's."""
    genotypes = np.zeros((n, N_SITES), np.int8)
    genotypes[:, :40] = 1
    genotypes[rng.integers(0, n, N_SITES - 40), np.arange(40, N_SITES)] = 1
    return genotypes


def variants_only(rng, n=16) -> np.ndarray:
    """Homozygous reference is missing, as in a merge of files of variants."""
    genotypes = draw(rng, n)
    genotypes[genotypes == 0] = -1
    return genotypes


@pytest.mark.parametrize(
    ("scene", "words"),
    [
        (lambda rng: draw(rng, 20, 0.97), FEW_HETEROZYGOTES),
        (lambda rng: draw(rng, 20, 1.0), FEW_HETEROZYGOTES),
        (lambda rng: draw(rng, 20, 0.7), FEW_HETEROZYGOTES),
        (clones, NO_PEDIGREE),
        (variants_only, NO_PEDIGREE),
    ],
    ids=["lines", "haploid", "selfing", "clones", "variants only"],
)
def test_the_model_is_refused_where_it_fails(scene, words):
    for seed in range(20):
        assert fault(scene(np.random.default_rng(seed))) == words, seed


def test_copies_of_a_line_are_found_by_their_genotypes():
    """Nobody has a heterozygote, so kinship tells nothing."""
    lines = draw(np.random.default_rng(1), 20, 1.0)
    lines[7] = lines[3]
    contigs = np.repeat([str(k) for k in range(20)], N_SITES // 20)
    planes = [planes_of(lines)]
    found = independence.measure_variances(planes, contigs, BACKEND, kinship=False)
    about = {"panel": "x", "sites": N_SITES, "founders": 20, "max_mismatch": 0.02}
    resolution = resolve(*found, fault=FEW_HETEROZYGOTES, **about)
    assert resolution.smallest_kinship is None
    assert resolution.degrees == ["duplicate"]
    assert amount_of_sites(resolution) == FEW_HETEROZYGOTES
    mismatches = (lines[:, None] != lines[None]).sum(axis=2)
    same = resolution.same(mismatches, np.full(mismatches.shape, N_SITES))
    assert np.argwhere(np.triu(same, 1)).tolist() == [[3, 7]]


def test_copies_without_a_kinship_are_in_the_figure():
    row = ["a", "b", "x", "x", "100", "0", "0", "0", "0", "NA", SAME]
    draw_kinship(pd.DataFrame([row], columns=COLUMNS), {})
