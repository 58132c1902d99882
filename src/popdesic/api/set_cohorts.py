"""Interactions of sets between cohorts: statistics of each, and their replication."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..core.threads import usable_cpus
from ..epistasis.set_rows import set_statistics
from ..epistasis.set_store import store_sets, stored_sets
from ..epistasis.set_tables import replication_tables
from ..epistasis.sets import SetStatistics
from .arrays import ArrayLike, thread_count
from .sets import prepare_scan, warn_untested


@dataclass(frozen=True)
class CohortSets:
    """Scores and covariances of the sets of a cohort, without any genotype.

    Attributes
    ----------
    sets : dict
        Of each set its statistics, or None where it could not be tested. All cohorts must number
        sites in the same way, and count the same ALT alleles.
    """

    sets: dict[str, SetStatistics | None]

    def save(self, path: str | Path) -> None:
        """Write them to a .npz file: 8 bytes for each pair of products of a set."""
        store_sets(Path(path), self.sets)

    @classmethod
    def load(cls, path: str | Path) -> CohortSets:
        """Read what `save` wrote.

        Raises
        ------
        ValueError
            The file is another one, or cut short.
        """
        try:
            return cls(stored_sets(Path(path)))
        except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
            raise ValueError(
                f"{path} is no file of CohortSets.save, or is cut short; save it again."
            ) from None


def score_sets(
    genotypes: ArrayLike,
    phenotype: ArrayLike,
    sets: Mapping[str, Any],
    covariates: ArrayLike | None = None,
    *,
    environment: ArrayLike | None = None,
    transform: str = "none",
    dominance: bool = True,
    threads: int | None = None,
) -> CohortSets:
    """Scores of the products of each set in one cohort, for `replicate_sets`.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites)
        Of one cohort, as of `scan_sets`.
    phenotype, sets, covariates, environment, transform, dominance, threads
        As of `scan_sets`. A set may have at most 2 048 products. The environment must have the same
        unit in all cohorts.

    Returns
    -------
    CohortSets

    Raises
    ------
    ValueError
        An argument is not valid, or the covariates leave nothing to test.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> rng = np.random.default_rng(1)
    >>> genotypes = rng.binomial(2, 0.3, (400, 5))
    >>> scored = popdesic.score_sets(genotypes, rng.normal(size=400), {"A": range(5)})
    >>> scored.sets["A"].scores.shape
    (10,)
    """
    tests, array, chosen = prepare_scan(
        genotypes,
        phenotype,
        sets,
        covariates,
        environment=environment,
        transform=transform,
        dominance=dominance,
    )
    found = set_statistics(
        tests, lambda sites: array[:, sites], chosen, thread_count(threads) or usable_cpus()
    )
    named = dict(zip(chosen, found, strict=True))
    warn_untested({name: one for name, one in named.items() if isinstance(one, str)})
    return CohortSets({k: None if isinstance(one, str) else one for k, one in named.items()})


def replicate_sets(
    cohorts: Mapping[str, CohortSets], discovery: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Interactions of sets that some cohorts discover, tested in the others.

    Formulas: src/popdesic/epistasis/set_cohorts.py.

    Parameters
    ----------
    cohorts : mapping of str to CohortSets
        Of at least two cohorts, which share no people, with the same sets.
    discovery : sequence of str
        Cohorts that discover; all others replicate.

    Returns
    -------
    sets : DataFrame
        A row per set. Of the discovery: `p_discovery`, `p_quadratic` and `p_pair` as of
        `scan_sets`, and what is replicated: `tested`, the best `product` (`site1`, `site2`) or the
        whole `direction`. Of the other cohorts together: `cohorts` that could be tested, fixed
        `effect` and `se` (log-odds, or standard deviations of residuals, for one unit of the
        direction), one-sided `p_replication`; `effect_random`, `se_random`, `p_random`;
        Cochran's `q`, `p_q` and `i2`. Of all cohorts: `p_all` as of `scan_sets`; `p_without`, the
        largest p if one cohort is left out, and its name, `without` (where `p_all` is at most
        0.05).
    by_cohort : DataFrame
        A row per set and cohort: `set`, `cohort`, `role`, `n` people, `effect`, `se`, `p`. Effects
        of discovery cohorts are too large, and their p too small, as the direction is theirs.

    Raises
    ------
    ValueError
        An argument is not valid, cohorts have different sets or kinds of phenotypes, or none
        discovers or replicates.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> rng, cohorts = np.random.default_rng(1), {}
    >>> for name in ("north", "south"):
    ...     genotypes = rng.binomial(2, 0.3, (800, 5))
    ...     number = genotypes[:, 1] * genotypes[:, 3] + rng.normal(0, 1, 800)
    ...     cohorts[name] = popdesic.score_sets(genotypes, number, {"A": range(5)})
    >>> sets, by_cohort = popdesic.replicate_sets(cohorts, ["north"])
    >>> bool(sets.p_discovery[0] < 1e-6), bool(sets.p_replication[0] < 1e-6)
    (True, True)
    """
    if not isinstance(cohorts, Mapping) or not all(
        isinstance(one, CohortSets) for one in cohorts.values()
    ):
        raise ValueError("cohorts is not a mapping of names to results of score_sets; give one.")
    names = [str(name) for name in cohorts]
    if isinstance(discovery, str) or not isinstance(discovery, Sequence):
        raise ValueError(f"discovery is {discovery!r}; give a list of names of cohorts.")
    unknown = sorted(set(map(str, discovery)) - set(names))
    if unknown:
        raise ValueError(f"discovery has {unknown[0]!r}, which is not one of the cohorts {names}.")
    chosen = sorted(set(map(str, discovery)))
    if not chosen or len(chosen) == len(names):
        raise ValueError(
            f"discovery has {len(chosen)} of {len(names)} cohorts; at least one must discover, and "
            "one replicate."
        )
    scored = {str(name): one.sets for name, one in cohorts.items()}
    first = scored[names[0]]
    for name, one in scored.items():
        if different := sorted(set(one) ^ set(first)):
            raise ValueError(
                f"the cohorts {names[0]!r} and {name!r} have different sets, such as "
                f"{different[0]!r}; score the same sets in both."
            )
    kinds = {
        part.freedom is None: name for name, one in scored.items() for part in one.values() if part
    }
    if len(kinds) == 2:
        raise ValueError(
            f"the phenotype is cases and controls in cohort {kinds[True]!r}, but numbers in "
            f"{kinds[False]!r}; their effects have different units: give cohorts of one kind."
        )
    return replication_tables(scored, chosen)
