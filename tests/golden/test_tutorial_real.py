"""Numbers of docs/tutorial_real.md that follow from its first data set, by other code."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cyvcf2 import VCF

PAGE = Path(__file__).resolve().parents[2] / "docs/tutorial_real.md"
#: Least KING-robust kinship of the first and of the second degree (Manichaikul et al. 2010).
FIRST, SECOND = 0.177, 0.0884

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def people(shared_data):
    """Genotypes (n_sites, n), NaN where missing, and the label of each sample."""
    folder = shared_data / "hapmap3_957"
    reader = VCF(str(folder / "hapmap3_957.vcf.gz"), gts012=True)
    sheet = pd.read_table(folder / "samples.tsv").set_index("sample_id")
    genotypes = np.array([record.gt_types.copy() for record in reader], np.float32)
    genotypes[genotypes == 3] = np.nan
    return genotypes, sheet.population[reader.samples].to_numpy()


@pytest.fixture(scope="module")
def text() -> str:
    return " ".join(PAGE.read_text("utf-8").split())


@pytest.fixture(scope="module")
def kinship(people) -> np.ndarray:
    """KING-robust kinship of all pairs, 0 on the diagonal, by products of indicators."""
    ref, het, alt = ((people[0] == value).astype(np.float32) for value in (0, 1, 2))
    both, opposite = het.T @ het, ref.T @ alt
    own = het.T @ (ref + het + alt)  # heterozygous, where the other one is called
    found = 0.5 - (own + own.T - 2 * both + 4 * (opposite + opposite.T)) / (
        4 * np.minimum(own, own.T)
    )
    np.fill_diagonal(found, 0)
    return found


@pytest.fixture(scope="module")
def unrelated(kinship) -> np.ndarray:
    """Who is left if the sample with most relatives leaves until nobody has one."""
    pairs, keep = kinship > SECOND, np.ones(len(kinship), bool)
    while pairs.any():
        worst = pairs.sum(axis=0).argmax()
        pairs[worst], pairs[:, worst], keep[worst] = False, False, False
    return keep


def hudson(first: np.ndarray, second: np.ndarray) -> float:
    """F_ST as a ratio of averages (Bhatia et al. 2013)."""
    (p, n), (q, m) = (
        (np.nanmean(g, axis=1) / 2, 2.0 * (~np.isnan(g)).sum(axis=1)) for g in (first, second)
    )
    between = (p - q) ** 2 - p * (1 - p) / (n - 1) - q * (1 - q) / (m - 1)
    whole = p * (1 - q) + q * (1 - p)
    both = np.isfinite(between) & np.isfinite(whole)
    return float(between[both].sum() / whole[both].sum())


def test_samples_sites_and_labels(people, text):
    genotypes, labels = people
    n_sites = f"{len(genotypes):,}".replace(",", " ")
    assert f"{len(labels)} samples of 1 cohort were compared at {n_sites} sites." in text
    assert f"the {len(set(labels))} values of column" in text


def test_relatives(kinship, unrelated, text):
    """The page's degrees also rest on shared segments and PC-Relate."""
    upper = kinship[np.triu_indices(len(kinship), 1)]
    pairs, children, siblings = re.search(
        r"(\d+) pairs of relatives \((\d+) parent–child, (\d+) full-sibling", text
    ).groups()
    assert int(children) + int(siblings) == (upper > FIRST).sum()
    assert int(pairs) == (upper > SECOND).sum()
    assert f"So {unrelated.sum()} of the {len(kinship)} define the axes" in text


def test_f_st_of_the_most_and_the_least_different(people, unrelated, text):
    """Within the standard error: who is left of a pair of relatives may differ."""
    genotypes, labels = people
    parts = {name: genotypes[:, unrelated & (labels == name)] for name in sorted(set(labels))}
    found = {(a, b): hudson(parts[a], parts[b]) for a, b in combinations(parts, 2)}
    most, least = max(found, key=found.get), min(found, key=found.get)
    said = re.search(
        r"(\w+) and (\w+) differ most \(F_ST ([\d.]+) ± ([\d.]+)\), (\w+) and (\w+) least "
        r"\(([\d.]+) ± ([\d.]+)\)",
        text,
    ).groups()
    assert (said[:2], said[4:6]) == (most, least)
    for pair, value, error in ((most, *said[2:4]), (least, *said[6:8])):
        assert abs(found[pair] - float(value)) <= float(error), (pair, found[pair])


def test_shares_of_the_variance(people, unrelated, text):
    """Of all sites with two alleles; the page's axes leave out those in long-range LD."""
    genotypes = people[0][:, unrelated]
    p = np.nanmean(genotypes, axis=1, keepdims=True) / 2
    varies = (p[:, 0] > 0) & (p[:, 0] < 1)
    z = ((genotypes - 2 * p)[varies] / np.sqrt(2 * p * (1 - p))[varies]).astype(np.float32)
    z[np.isnan(z)] = 0
    values = np.linalg.eigvalsh(z.T @ z)
    shares = 100 * values[::-1] / values.sum()
    said = re.search(r"PC1 explains ([\d.]+) % of the variance, PC2 ([\d.]+) %", text).groups()
    np.testing.assert_allclose(shares[:2], [float(share) for share in said], atol=0.05)
