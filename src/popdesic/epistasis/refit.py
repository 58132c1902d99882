"""Refit the best hits by logistic regression with covariates.

Scans by tables use genotypes alone. Here the phenotype is regressed on the ALT counts of a hit's
sites, their products, and the strata, covariates and principal components of the null model
(statsmodels' binomial GLM). The product
of all sites is the interaction on the log-odds scale, if effects grow linearly with the count. In
addition, a likelihood-ratio test covers interactions of any shape: every genotype combination
against all lower-order terms, with the same covariates.
"""

from __future__ import annotations

import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.tables import read_table, write_table
from ..core.threads import one_blas_thread
from .adjusted import cells_of
from .design import independent_columns
from .null_model import read_null_model
from .reorder import genotypes_of_planes, read_reordered, sites_of_hits
from .scan_data import NAMES

#: Best hits of each scan that are refitted.
REFIT_HITS = 100
#: A fit with a larger log-odds or standard error is on its way to infinity.
LARGEST_LOG_ODDS, LARGEST_SE = 15.0, 100.0
#: Half the width of a 95 % interval in standard errors: the normal quantile of 0.975.
_WIDTH = 1.9599639845400545


@one_blas_thread
def refit_hits(folder: Path, tables: dict[int, Path], null: Path, out: Path) -> dict[str, int]:
    """Refit the best `REFIT_HITS` hits of each scan.

    Parameters
    ----------
    folder : Path
        `results/reorder`.
    tables : dict
        Table of hits by order.
    null : Path
        `results/epistasis/null_model.npz`; people with an unknown covariate are left out.
    out : Path
        One row per term; columns are described in config/README.md.

    Returns
    -------
    dict
        Number of terms, and of hits whose regression did not converge.
    """
    words, sites, samples = read_reordered(folder)
    case = (samples["class"] == "case").to_numpy()
    model = read_null_model(null)
    n_controls, rows, failed = int((~case).sum()), [], 0
    for order, path in tables.items():
        hits = read_table(path).head(REFIT_HITS)
        for k, members in enumerate(sites_of_hits(hits, sites, order)):
            genotypes = genotypes_of_planes(
                words[members], sites.iloc[members], n_controls, len(case) - n_controls
            )
            found = refit(genotypes, case, model.design, model.names)
            failed += found[0]["converged"] == "no"
            rows += [{"scan": NAMES[order], "rank": k + 1} | row for row in found]
    write_table(out, pd.DataFrame(rows))
    return {"terms": len(rows), "not_converged": failed}


def refit(
    genotypes: np.ndarray, case: np.ndarray, further: np.ndarray, names: list[str]
) -> list[dict]:
    """Regression of one hit, one row per term.

    Parameters
    ----------
    genotypes : int8 array, (k, n_samples)
        ALT counts, -1 missing; people with a missing genotype are left out.
    case : bool array, (n_samples,)
    further : float64 array, (n_samples, n_columns)
        Strata and covariates, NaN where unknown; `names` are the names of the columns.
    """
    used = (genotypes >= 0).all(axis=0) & np.isfinite(further).all(axis=1)
    dosage, y = genotypes[:, used].astype(float), case[used].astype(float)
    k, n = dosage.shape
    constant = np.ones((n, 1))
    kept = independent_columns(constant, further[used])
    base = np.concatenate([constant, further[used][:, kept]], axis=1)
    groups = [group for size in range(1, k + 1) for group in combinations(range(k), size)]
    products = np.stack([dosage[list(group)].prod(axis=0) for group in groups], axis=1)
    possible = independent_columns(base, products)
    design = np.concatenate([base, products[:, possible]], axis=1)
    kinds = ["constant"] + ["covariate"] * len(kept)
    terms = ["constant"] + [names[column] for column in kept]
    for group in (groups[column] for column in possible):
        kinds.append({1: "main", k: "interaction"}.get(len(group), "lower"))
        terms.append(" x ".join(f"site{site + 1}" for site in group))
    fitted = _fit(y, design)
    chi2, freedom, p = _shape_test(genotypes[:, used].astype(np.int64), y, base)
    rows = []
    order = sorted(range(len(terms)), key=lambda i: (kinds[i] != "interaction", i))
    for i in order:
        if kinds[i] == "constant":
            continue
        value, se = float(fitted.params[i]), float(fitted.bse[i])
        whole = kinds[i] == "interaction"
        ratio, low, high = odds_ratio(value, se, design[:, i], y)
        rows.append(
            {
                "kind": kinds[i],
                "term": terms[i],
                "n": n,
                "log_odds": value,
                "se": se,
                "odds_ratio": ratio,
                "or_low": low,
                "or_high": high,
                "p": float(fitted.pvalues[i]),
                "shape_chi2": chi2 if whole else np.nan,
                "shape_df": str(freedom) if whole else "NA",
                "shape_p": p if whole else np.nan,
                "converged": "yes" if fitted.converged else "no",
            }
        )
    return rows


def odds_ratio(
    log_odds: float, se: float, column: np.ndarray, y: np.ndarray
) -> tuple[str, str, str]:
    """Odds ratio and its 95 % interval with four digits; in words where it is not finite.

    column: float64 (n,), the term; y: 1 case, 0 control. If no control has a value other than 0,
    the likelihood rises with the odds ratio for ever.
    """
    carriers = y[column != 0]
    if not carriers.any() or carriers.all():
        said = "infinite (no controls carry it)" if carriers.any() else "0 (no cases carry it)"
        return said, "NA", "NA"
    if not abs(log_odds) < LARGEST_LOG_ODDS or not se < LARGEST_SE:
        return "not finite (genotypes separate cases from controls)", "NA", "NA"
    with np.errstate(over="ignore"):
        ratios = np.exp([log_odds, log_odds - _WIDTH * se, log_odds + _WIDTH * se])
    return tuple(f"{ratio:.4g}" for ratio in ratios)


def _fit(y: np.ndarray, design: np.ndarray):
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM

    with warnings.catch_warnings():
        # Cells with only cases have no finite odds; a huge standard error shows this.
        warnings.simplefilter("ignore")
        return GLM(y, design, family=Binomial()).fit(maxiter=50)


def _cells(genotypes: np.ndarray) -> np.ndarray:
    """One column of 0 and 1 per genotype combination that occurs."""
    cell = cells_of(genotypes)
    return (cell[:, None] == np.unique(cell)[None]).astype(float)


def _shape_test(genotypes, y, base) -> tuple[float, int, float]:
    """Likelihood-ratio test of all cells against all lower-order terms: chi2, df, p."""
    from scipy.special import chdtrc

    k = len(genotypes)
    lower = np.concatenate(
        [_cells(genotypes[list(group)]) for group in combinations(range(k), k - 1)], axis=1
    )
    reduced = np.concatenate([base, lower[:, independent_columns(base, lower)]], axis=1)
    cells = _cells(genotypes)
    added = cells[:, independent_columns(reduced, cells)]
    freedom = added.shape[1]
    if not freedom:
        return 0.0, 0, 1.0
    whole = np.concatenate([reduced, added], axis=1)
    chi2 = max(float(_fit(y, reduced).deviance - _fit(y, whole).deviance), 0.0)
    return chi2, freedom, float(chdtrc(freedom, chi2))
