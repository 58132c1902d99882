"""Power of the study's scans for penetrance models of the configuration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from ..io.files import read_json
from ..io.tables import read_table, write_table
from .options import NAMES
from .scores import lr_bits, score_tables, table_cost
from .significance import permutation_p

#: Family-wise error rate of a scan.
ALPHA = 0.05
#: Studies simulated for each model.
DRAWN = 2000


def cell_probabilities(maf: list[float], penetrance: list[float]) -> np.ndarray:
    """Shares of the genotype combinations among controls and among cases, float64 (2, 3**k).

    Sites are independent and in Hardy-Weinberg proportions. `penetrance` is the probability of
    being a case, by minor allele counts, the last site varying fastest.
    """
    shares = np.ones(1)
    for q in maf:
        shares = np.multiply.outer(shares, [(1 - q) ** 2, 2 * q * (1 - q), q * q]).ravel()
    risk = np.asarray(penetrance, np.float64)
    by_class = np.stack([shares * (1 - risk), shares * risk])
    return by_class / by_class.sum(axis=1, keepdims=True)


def chi2_power(cells: np.ndarray, n_controls: int, n_cases: int, alpha: float) -> float:
    """Power of Pearson's test of the whole table: non-central chi-square (Cohen 1988)."""
    n = np.array([[n_controls], [n_cases]], np.float64)
    pooled = (n * cells).sum(axis=0) / n.sum()
    there = pooled > 0
    noncentral = float((n * (cells - pooled)[:, there] ** 2 / pooled[there]).sum())
    freedom = int(there.sum()) - 1
    return float(stats.ncx2.sf(stats.chi2.isf(alpha, freedom), freedom, noncentral))


def score_power(
    cells: np.ndarray, n_controls: int, n_cases: int, score: str, null: np.ndarray, seed: list[int]
) -> float:
    """Share of simulated studies whose score has a permutation p of at most `ALPHA`.

    `null` holds the best costs of permuted scans, as for `significance.permutation_p`; NaN if
    they are too few for such a small p.
    """
    if 1 / (1 + len(null)) > ALPHA:
        return float("nan")
    rng = np.random.default_rng(seed)
    tables = np.stack(
        [
            rng.multinomial(n, part / part.sum(), DRAWN)
            for n, part in zip((n_controls, n_cases), cells, strict=True)
        ]
    )
    n = n_controls + n_cases
    cost = table_cost(tables, *score_tables(score, n_controls, n_cases), lr_bits(score, n))
    return float((permutation_p(cost, null) <= ALPHA).mean())


def estimate_power(
    samples: Path,
    plan: Path,
    nulls: dict[int, Path],
    models: list[dict],
    out: Path,
    *,
    score: str,
    seed: int,
) -> dict[str, float]:
    """Write one row per model; columns are described in config/README.md.

    Parameters
    ----------
    samples : Path
        `results/reorder/samples.tsv`: numbers of controls and cases.
    plan : Path
        `results/epistasis/plan.json`: number of tests of each scan.
    nulls : dict
        Table of the permuted scans' best costs, by order, for orders that were permuted.
    models : list of dict
        `name`, `maf` and `penetrance` of each model, as in the configuration.

    Returns
    -------
    dict
        Power (chi-square) by model.
    """
    case = (read_table(samples)["class"] == "case").to_numpy()
    n_cases = int(case.sum())
    n_controls = len(case) - n_cases
    tests = read_json(plan)
    drawn = {order: read_table(path)["cost"].to_numpy(np.int64) for order, path in nulls.items()}
    rows = []
    for number, model in enumerate(models):
        maf, risk = model["maf"], np.asarray(model["penetrance"], np.float64)
        order = len(maf)
        cells = cell_probabilities(maf, risk)
        shares = cell_probabilities(maf, np.full(len(risk), 0.5))[0]
        prevalence = float(shares @ risk)
        variance = float(shares @ (risk - prevalence) ** 2)
        alpha = ALPHA / tests[NAMES[order]]["tests"]
        null = drawn.get(order, np.zeros(0, np.int64))
        rows.append(
            {
                "model": model["name"],
                "scan": NAMES[order],
                "maf": ", ".join(f"{q:g}" for q in maf),
                "prevalence": prevalence,
                "heritability": variance / (prevalence * (1 - prevalence)),
                "controls": n_controls,
                "cases": n_cases,
                "alpha": alpha,
                "power_chi2": chi2_power(cells, n_controls, n_cases, alpha),
                "power_score": score_power(cells, n_controls, n_cases, score, null, [seed, number]),
                "permutations": len(null),
            }
        )
    write_table(out, pd.DataFrame(rows))
    return {row["model"]: row["power_chi2"] for row in rows}
