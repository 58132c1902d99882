"""Power of the study's scans for penetrance models of the configuration.

The power for interaction is that of the likelihood-ratio test of `interaction.interaction_test` at
the level 0.05 / tests, less the share that goes by main effects (`priority`). In a large sample its
statistic is non-central chi-square, and the non-centrality is the statistic of the expected table:
what is left of the model's effects after the best fit without interaction (Self, Mauritsen & Ohara
1992, Biometrics 48:31). A model without interaction has none, however strong its main effects, and
passes as rarely as chance allows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..core.files import read_json
from ..core.tables import read_table, write_table
from .expected_power import (
    ALPHA,
    DRAWN,
    cell_probabilities,
    chi_square_power,
    expected_interaction,
    interaction_power,
)
from .finished import Scans
from .interaction import interaction_test
from .options import ASSOCIATION
from .priority import SHARE
from .scan_data import NAMES
from .scores import lr_bits, score_tables, table_cost
from .significance import permutation_p


def draw_tables(
    cells: np.ndarray, n_controls: int, n_cases: int, drawn: int, rng: np.random.Generator
) -> np.ndarray:
    """Tables of simulated studies, int64 (2, drawn, 3**k): controls, then cases."""
    sizes = (n_controls, n_cases)
    return np.stack(
        [rng.multinomial(n, part / part.sum(), drawn) for n, part in zip(sizes, cells, strict=True)]
    )


def association_power(cells: np.ndarray, n_controls: int, n_cases: int, alpha: float) -> float:
    """Power of Pearson's test of the whole table: non-central chi-square (Cohen 1988)."""
    n = np.array([[n_controls], [n_cases]], np.float64)
    pooled = (n * cells).sum(axis=0) / n.sum()
    there = pooled > 0
    noncentral = float((n * (cells - pooled)[:, there] ** 2 / pooled[there]).sum())
    freedom = int(there.sum()) - 1
    return chi_square_power(alpha, freedom, noncentral)


def simulated_power(
    cells: np.ndarray, n_controls: int, n_cases: int, alpha: float, seed: list[int]
) -> float:
    """Share of simulated studies in which `interaction_test` has a p of at most `alpha`.

    Unlike `interaction_power` it does not assume that counts are large.
    """
    tables = draw_tables(cells, n_controls, n_cases, DRAWN, np.random.default_rng(seed))
    sides = (3,) * round(np.log(cells.shape[1]) / np.log(3))
    tables = tables.swapaxes(0, 1).reshape(DRAWN, 2, *sides)
    return float(np.mean([interaction_test(table)[2] <= alpha for table in tables]))


def permutation_power(
    cells: np.ndarray, n_controls: int, n_cases: int, score: str, null: np.ndarray, seed: list[int]
) -> float:
    """Share of simulated studies whose score has a permutation p of at most `ALPHA`.

    Of association scores. `null` holds the best costs of permuted scans, as for
    `significance.permutation_p`; NaN if they are too few for such a small p.
    """
    if 1 / (1 + len(null)) > ALPHA:
        return float("nan")
    tables = draw_tables(cells, n_controls, n_cases, DRAWN, np.random.default_rng(seed))
    bits = lr_bits(score, n_controls + n_cases)
    cost = table_cost(tables, *score_tables(score, n_controls, n_cases), bits)
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
        Table of the permuted scans' best costs, by order, for orders that were permuted; may be
        empty.
    models : list of dict
        `name`, `maf` and `penetrance` of each model, as in the configuration.

    Returns
    -------
    dict
        Power for the interaction by model.
    """
    case = (read_table(samples)["class"] == "case").to_numpy()
    n_cases = int(case.sum())
    n = (len(case) - n_cases, n_cases)
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
        # Where too few sites allow no test, nothing can be found.
        n_tests = tests[NAMES[order]]["tests"]
        alpha = ALPHA / n_tests if n_tests else 0.0
        # Of a pair whose sites have no main effects: with them, it is larger (`priority`).
        least = alpha if score in ASSOCIATION else (1 - SHARE) * alpha
        null = drawn.get(order, np.zeros(0, np.int64))
        rows.append(
            {
                "model": model["name"],
                "scan": NAMES[order],
                "maf": ", ".join(f"{q:g}" for q in maf),
                "prevalence": prevalence,
                "heritability": variance / (prevalence * (1 - prevalence)),
                "controls": n[0],
                "cases": n[1],
                "alpha": least,
                "expected_lr": expected_interaction(cells, *n)[0],
                "power_interaction": interaction_power(cells, *n, least),
                "power_simulated": simulated_power(cells, *n, least, [seed, number]),
                "power_association": association_power(cells, *n, alpha),
                "power_permutation": permutation_power(cells, *n, score, null, [seed, number]),
                "permutations": len(null),
            }
        )
    write_table(out, pd.DataFrame(rows))
    return {row["model"]: row["power_interaction"] for row in rows}


def power_of_scans(
    scans: Scans, models: list[dict], out: Path, *, score: str, seed: int
) -> dict[str, float]:
    """`estimate_power` of finished scans."""
    nulls = {order: scans.null(order) for order in scans.permutations}
    return estimate_power(
        *(scans.reorder / "samples.tsv", scans.folder / "plan.json"),
        *(nulls, models, out),
        score=score,
        seed=seed,
    )
