"""Sets of sites in LD and an environment that has no interaction with any of them.

The environment goes with a covariate and with the first site of every fifth set, has an effect, and
one of its square. Genotypes and covariates are those of `sets.null_study`; ten sites have effects.

    number x age             normal residuals, an environment of many values
    number x exposed         three in ten people are exposed
    structure x age          two populations, with other environments and other effects of it
    cases 1:1, 1:20 x age    one case for each 1 or 20 controls
    number x age, spread     the spread of the residuals grows with the environment: by half for
                             each standard deviation
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from .sets import EFFECTS, MAIN, ODDS, SHARES, SetStudy, null_study

SCENES = (
    *("number x age", "number x exposed", "structure x age"),
    *("cases 1:1 x age", "cases 1:20 x age", "number x age, spread"),
)
#: Effect of a standard deviation of the environment, and of its square; how much more it is in one
#: of two populations; spread of residuals for each standard deviation.
EFFECT, SQUARE, MORE, SPREAD = 0.4, 0.2, 0.4, 1.5


def environment_study(
    scene: str, seed: int, n: int, sets: int, sites: int
) -> tuple[SetStudy, np.ndarray]:
    """A study, and its environment float64 (n,)."""
    name = scene.split(" x ")[0]
    study = null_study("structure" if name == "structure" else "number", seed, n, sets, sites)
    rng = np.random.default_rng([seed, SCENES.index(scene), 7])
    g, age = study.genotypes.astype(float), study.covariates[:, 0]
    north = study.covariates[:, 1] if name == "structure" else np.zeros(n)
    near = g[:, :: 5 * sites]
    e = 0.5 * age + north + rng.normal(size=n)
    e += 0.3 * (near - near.mean(axis=0)).sum(axis=1) / near.shape[1] ** 0.5
    e = (e - e.mean()) / e.std()
    if "exposed" in scene:
        e = (e > np.quantile(e, 0.7)).astype(float)
    many = min(EFFECTS, g.shape[1])
    main = g[:, rng.choice(g.shape[1], many, replace=False)] @ rng.normal(size=many)
    mean = np.sqrt(MAIN) * main / main.std() + 0.3 * age + north
    mean += (EFFECT + MORE * north) * e + SQUARE * e**2
    if name not in SHARES:
        noise = rng.normal(size=n) * (SPREAD**e if "spread" in scene else 1)
        return replace(study, phenotype=mean + noise), e
    odds = ODDS * mean
    constant = brentq(lambda c: expit(odds + c).mean() - SHARES[name], -30, 30)
    return replace(study, phenotype=(rng.random(n) < expit(odds + constant)).astype(float)), e
