"""The null model of a scan: phenotype regressed on strata, covariates and principal components.

Logistic for cases and controls, linear for numbers, fitted once. Scans of residuals, the scan of
single sites and refits of hits all start from it. People with an unknown value in the design say
nothing about the phenotype given the design: their residual is zero and they do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.errors import UserError
from ..core.tables import write_npz
from ..engine.ranks import average_ranks
from .scan_data import ZERO_LEVEL

#: Steps of Newton's method, and the decrement at which it has converged.
STEPS, TOLERANCE = 50, 1e-10
#: A fitted log-odds of this size means that the design separates cases from controls.
SEPARATED = 15.0
KINDS = ("logistic", "linear")


@dataclass(frozen=True)
class NullModel:
    """A fitted null model.

    Attributes
    ----------
    kind : 'logistic' or 'linear'
    design : float64 array, (n_people, n_columns)
        Without the constant, NaN where unknown (`design.design_matrix`).
    names : list of str
        Of the columns.
    response : float64 array, (n_people,)
        1 case, 0 control; or the number, after the transformation.
    fitted : float64 array, (n_people,)
        Probability of being a case, or expected number; NaN where not used.
    used : bool array, (n_people,)
    variance : float
        Of the residuals of a linear model, unbiased; 1 for logistic.
    """

    kind: str
    design: np.ndarray
    names: list[str]
    response: np.ndarray
    fitted: np.ndarray
    used: np.ndarray
    variance: float

    @property
    def weights(self) -> np.ndarray:
        """Variance of each person's response under the model, float64 (n_people,); 0: not used."""
        if self.kind == "linear":
            return np.where(self.used, self.variance, 0.0)
        return np.where(self.used, self.fitted * (1 - self.fitted), 0.0)

    @property
    def raw_residuals(self) -> np.ndarray:
        """Response less fitted, float64 (n_people,); 0 where not used."""
        return np.where(self.used, self.response - self.fitted, 0.0)

    @property
    def residuals(self) -> np.ndarray:
        """Residuals of variance 1 (Pearson's), float64 (n_people,); 0 where not used."""
        weights = np.where(self.used, self.weights, 1.0)
        return self.raw_residuals / np.sqrt(weights)


def fit_null(
    response: np.ndarray,
    design: np.ndarray,
    kind: str,
    *,
    names: list[str] | None = None,
    transform: str = "none",
) -> NullModel:
    """Fit the null model.

    Parameters
    ----------
    response : float64 array, (n_people,)
        1 case, 0 control (``logistic``), or numbers; all known.
    design : float64 array, (n_people, n_columns)
        Independent columns without the constant, NaN where unknown.
    kind : 'logistic' or 'linear'
    names : list of str, optional
        Of the columns.
    transform : 'none' or 'normal'
        Of numbers: ``normal`` takes the normal scores of the ranks of their residuals (McCaw et al.
        2020, Biometrics 76:1262), so that a few extreme people cannot make an interaction of rare
        genotypes.

    Raises
    ------
    UserError
        Only one class is left, the numbers do not vary given the design, or the design separates
        cases from controls.
    """
    response, design = np.asarray(response, float), np.asarray(design, float)
    used = np.isfinite(design).all(axis=1)
    x = np.column_stack([np.ones(int(used.sum())), _scaled(design[used])])
    y = response[used]
    fitted, variance = np.full(len(response), np.nan), 1.0
    if kind == "logistic":
        if len(np.unique(y)) < 2:
            raise UserError(
                "epistasis: no samples of both classes are left whose strata have both classes and "
                "whose covariates are known; set epistasis.strata to 'none' or leave covariates "
                "out."
            )
        fitted[used] = _logistic(y, x)
    else:
        if transform == "normal":
            y = normal_scores(y - _project(y, x))
            response = response.copy()
            response[used] = y
        fitted[used] = _project(y, x)
        freedom = len(y) - np.linalg.matrix_rank(x)
        rest = float(((y - fitted[used]) ** 2).sum())
        if freedom < 1 or rest <= 1e-20 * max(float((y**2).sum()), 1e-300):
            raise UserError(
                "epistasis: strata and covariates explain the phenotype completely, so nothing is "
                "left to scan; leave covariates out, or give a phenotype that varies."
            )
        variance = rest / freedom
    return NullModel(kind, design, list(names or []), response, fitted, used, variance)


def normal_scores(values: np.ndarray) -> np.ndarray:
    """Quantiles of the normal distribution at the ranks of values; ties share their mean rank."""
    from scipy.special import ndtri

    return ndtri((average_ranks(values) - 0.5) / len(values))


def residual_levels(
    null: NullModel, seed: int = 1, residuals: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """Residuals rounded to levels, uint8 (n_people,), and the levels' variance.

    A level is 1 / 127 of the largest residual. Rounding is up or down at random, so that the mean
    of any group of people stays right: the many small residuals of controls of a rare disease would
    otherwise all be rounded one way.

    `residuals`: float64 (n_people,), 0 where not used; those of variance 1 by default.
    """
    residuals = null.residuals if residuals is None else residuals
    steps = residuals * (127.0 / np.abs(residuals).max())
    drawn = np.random.default_rng(seed).random(len(steps))
    levels = np.floor(steps + np.where(null.used, drawn, 0.0))
    levels = np.clip(levels, -127, 127)
    squares = float(((levels - levels.mean()) ** 2).sum())
    columns = 1 + null.design.shape[1]
    return (levels + ZERO_LEVEL).astype(np.uint8), squares / (len(levels) - columns)


def write_null_model(path: Path, null: NullModel, levels: np.ndarray, variance: float) -> None:
    """Write a model and the levels of its residuals as npz."""
    write_npz(
        path,
        kind=np.array(KINDS.index(null.kind)),
        design=null.design,
        names=np.array(null.names, "U"),
        response=null.response,
        fitted=null.fitted,
        used=null.used,
        variance=np.array(null.variance),
        levels=levels,
        level_variance=np.array(variance),
    )


def read_null_model(path: Path) -> NullModel:
    """The model that `write_null_model` wrote."""
    with np.load(path) as file:
        return NullModel(
            KINDS[int(file["kind"])],
            file["design"],
            file["names"].tolist(),
            file["response"],
            file["fitted"],
            file["used"],
            float(file["variance"]),
        )


def read_levels(path: Path) -> tuple[np.ndarray, float]:
    """Levels and their variance, as `residual_levels` gave them."""
    with np.load(path) as file:
        return file["levels"], float(file["level_variance"])


def _scaled(columns: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and spread 1: the same fit, better conditioned."""
    if not columns.size:
        return columns
    spread = columns.std(axis=0)
    return (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _project(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    return x @ np.linalg.lstsq(x, y, rcond=None)[0]


def _logistic(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Fitted probabilities of a logistic regression, by Newton's method with halved steps."""
    from scipy.special import expit

    beta = np.zeros(x.shape[1])
    beta[0] = np.log(y.mean() / (1 - y.mean()))
    value = _likelihood(y, x @ beta)
    for _ in range(STEPS):
        eta = x @ beta
        p = expit(eta)
        gradient = x.T @ (y - p)
        step = np.linalg.lstsq((x * (p * (1 - p))[:, None]).T @ x, gradient, rcond=None)[0]
        length = 1.0
        while length > 1e-4:
            now = _likelihood(y, x @ (beta + length * step))
            if now >= value:
                break
            length /= 2
        beta, value = beta + length * step, max(now, value)
        if gradient @ step < TOLERANCE:
            break
        if np.abs(x @ beta).max() > SEPARATED:
            raise UserError(
                "epistasis: strata, covariates and principal components separate cases from "
                "controls perfectly, so nothing is left to scan; leave out the covariate that "
                "does, or lower epistasis.pcs."
            )
    return expit(x @ beta)


def _likelihood(y: np.ndarray, eta: np.ndarray) -> float:
    from scipy.special import log1p

    return float((y * eta - np.maximum(eta, 0) - log1p(np.exp(-np.abs(eta)))).sum())
