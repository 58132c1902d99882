"""Power for interaction: excess over main effects, compared with simulated studies."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

from popdesic.core.files import write_json
from popdesic.epistasis import power
from popdesic.epistasis.interaction import interaction_test

XOR = [0.25 + 0.25 * ((a > 0) != (b > 0)) for a in range(3) for b in range(3)]


def log_odds(order: int, effect) -> list[float]:
    """Penetrances of a model whose log-odds are `effect` of the minor allele counts."""
    return [float(expit(effect(*cell))) for cell in itertools.product(range(3), repeat=order)]


@pytest.mark.parametrize(
    ("order", "effect"),
    [
        (2, lambda a, b: 0.9 * a - 1.2 * (b > 0)),
        (3, lambda a, b, c: 1.5 * (a > 0) * (b > 0) - 0.8 * b * c + 0.5 * a - 1),
    ],
)
def test_a_model_without_interaction_passes_as_rarely_as_chance(order, effect):
    """However strong its main effects (of triples, its pairs): association is all but certain."""
    cells = power.cell_probabilities([0.3, 0.4, 0.25][:order], log_odds(order, effect))
    assert power.association_power(cells, 1500, 1000, 1e-6) > 0.99
    excess, freedom = power.expected_interaction(cells, 1500, 1000)
    assert excess == pytest.approx(0, abs=1e-5) and freedom == 2**order
    assert power.interaction_power(cells, 1500, 1000, 1e-6) == pytest.approx(1e-6, rel=1e-3)
    assert power.simulated_power(cells, 1500, 1000, 1e-6, [1, 1]) == 0
    assert power.simulated_power(cells, 1500, 1000, 0.05, [1, 1]) == pytest.approx(0.05, abs=0.025)


@pytest.mark.parametrize(
    ("n", "maf", "risk", "alpha"),
    [
        ((300, 250), [0.3, 0.4], XOR, 1e-5),
        ((200, 600), [0.4, 0.4], XOR, 1e-5),
        ((1200, 900), [0.3, 0.2], log_odds(2, lambda a, b: 0.7 * a * b + 0.5 * a - 1), 1e-4),
        ((900, 900), [0.4, 0.4, 0.4], log_odds(3, lambda a, b, c: 1.6 * (a * b * c > 0)), 0.001),
    ],
)
def test_power_equals_that_of_simulated_studies(n, maf, risk, alpha):
    cells = power.cell_probabilities(maf, risk)
    found = power.interaction_power(cells, *n, alpha)
    assert 0.2 < found < 0.95
    assert found == pytest.approx(power.simulated_power(cells, *n, alpha, [2, 0]), abs=0.05)


def test_excess_is_the_statistic_of_a_large_study():
    """As many people as a table has on average, a thousand times over."""
    cells, n = power.cell_probabilities([0.3, 0.4], XOR), (400, 600)
    rng = np.random.default_rng(3)
    table = power.draw_tables(cells, 1000 * n[0], 1000 * n[1], 1, rng)[:, 0].reshape(2, 3, 3)
    excess, freedom = power.expected_interaction(cells, *n)
    assert interaction_test(table)[0] / 1000 == pytest.approx(excess, rel=0.02)
    want = stats.ncx2.sf(stats.chi2.isf(1e-4, 4), 4, excess)
    assert power.interaction_power(cells, *n, 1e-4) == pytest.approx(want) and freedom == 4


def test_combinations_that_nobody_carries_do_not_count():
    """A recessive lethal: penetrance only matters where there are people."""
    cells = power.cell_probabilities([0.3, 0.4], XOR)
    cells[:, 8] = 0
    assert power.expected_interaction(cells / cells.sum(axis=1, keepdims=True), 500, 500)[1] == 3


def test_the_table_needs_no_permuted_scans(tmp_path):
    classes = pd.DataFrame({"class": ["control"] * 700 + ["case"] * 500})
    classes.to_csv(tmp_path / "samples.tsv", sep="\t", index=False)
    write_json(tmp_path / "plan.json", {"pairs": {"tests": 4950}, "triples": {"tests": 161_700}})
    additive = log_odds(2, lambda a, b: a + b - 2)
    models = [
        {"name": "xor", "maf": [0.4, 0.4], "penetrance": XOR},
        {"name": "additive", "maf": [0.3, 0.3], "penetrance": additive},
    ]
    files = (tmp_path / "samples.tsv", tmp_path / "plan.json")
    out = tmp_path / "power.tsv"
    found = power.estimate_power(*files, {}, models, out, score="interaction", seed=1)
    table = pd.read_csv(out, sep="\t").set_index("model")
    assert table.power_interaction.to_dict() == pytest.approx(found, abs=1e-6)
    assert table.power_interaction["xor"] > 0.5
    assert table.power_interaction["additive"] == pytest.approx(0.9 * 0.05 / 4950, rel=1e-3)
    assert table.power_association["additive"] > 0.9
    assert table.power_permutation.isna().all() and (table.permutations == 0).all()
