"""Interactions within sets of sites and between two of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.threads import usable_cpus
from ..engine.select import backend_for
from ..epistasis.design import evened
from ..epistasis.set_numbers import NumberTests
from ..epistasis.set_products import HOST, Arrays
from ..epistasis.set_rows import Sets, rows_of_numbers, set_rows
from ..epistasis.sets import SetTests, prepare_sets
from .arrays import ArrayLike, genotype_array, require_choice, thread_count
from .responses import known_covariates, number_array, response_kind

#: Columns of the table of `scan_sets`.
COLUMNS = ["set", "sites", "products", "p", "p_quadratic", "p_pair", "p_burden", "site1", "site2"]


def scan_sets(
    genotypes: ArrayLike,
    phenotype: ArrayLike,
    sets: Mapping[str, Any],
    covariates: ArrayLike | None = None,
    *,
    environment: ArrayLike | None = None,
    transform: str = "none",
    dominance: bool = True,
    device: str = "cpu",
    threads: int | None = None,
) -> pd.DataFrame:
    """Test each set of sites, such as a gene, for interactions of any two of its sites.

    The null model has the covariates and the main effects of all sites of the set, linear for
    numbers, logistic for cases and controls. The scores of all products of two sites' minor-allele
    counts are tested together (src/popdesic/epistasis/sets.py).

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites)
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing, which counts as the
        site's most frequent genotype.
    phenotype : array-like, (n_samples,) or (n_samples, n_phenotypes)
        1 case, 0 control; or numbers, of which there are more than two. Samples with NaN or a
        masked entry are left out of that phenotype. Quantitative phenotypes of the same samples
        share everything but their scores, so that 50 take little longer than a few.
    sets : mapping of str to array-like of int, or to a pair of them
        Name of each set and its columns of `genotypes`. A pair stands for two sets: products of a
        site of the first with one of the second are tested, main effects of both are in the null.
    covariates : array-like, (n_samples, n_columns), optional
        As in `scan_sites`.
    environment : array-like, (n_samples,), optional
        Such as age, or 1 for smokers and 0 for others. Then the products of each site with it are
        tested, instead of those of two sites: gene-environment interactions. The null model also
        has the environment, its square, and its products with the covariates.
    transform : {'none', 'normal'}
        Of numbers: ``normal`` takes the normal scores of the ranks of their residuals. P-values of
        numbers hold for normal residuals.
    dominance : bool
        Whether main effects have a column for minor homozygotes too. Without it, dominance of one
        site looks like an interaction of two sites in LD.
    device : {'cpu', 'gpu', 'auto'}
        Where products of quantitative phenotypes are summed; ``auto`` uses a GPU if there is a
        usable one. p of a GPU differs by rounding, below 1e-9 of it. Cases and controls, sets with
        more products than samples, and environments are tested on the CPU.
    threads : int, optional
        Number of CPU threads; all CPUs by default. Results do not depend on it.

    Returns
    -------
    DataFrame
        A row per set, in the order given, of each column of `phenotype` if it has two dimensions
        (`phenotype`: the number of the column, or its name in a DataFrame): `set`; `sites` and
        `products` that are tested (those in fewer than five samples are left out, and those in
        which fewer than five of the smaller class, cases or controls, are expected among the
        carriers); `p`, twice the smaller of `p_quadratic` (sum of squares of all scores) and
        `p_pair` (best product, times their number); `p_burden` (sum of all scores); `site1`,
        `site2` of the best product (-1 is the environment). P is for one set, and NaN where nothing
        can be tested.

    Raises
    ------
    ValueError
        An argument is not valid, or the covariates leave nothing to test.
    RuntimeError
        `device` is ``gpu`` and there is no usable GPU.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> rng = np.random.default_rng(1)
    >>> genotypes = rng.binomial(2, 0.3, (800, 12))
    >>> height = 0.5 * genotypes[:, 1] * genotypes[:, 3] + rng.normal(0, 1, 800)
    >>> found = popdesic.scan_sets(genotypes, height, {"A": [0, 1, 2, 3, 4], "B": range(6, 12)})
    >>> found[["set", "products", "site1", "site2"]].values.tolist()[0]
    ['A', 10, 1, 3]
    """
    require_choice(device, ("cpu", "gpu", "auto"), "device")
    array, chosen = checked_sets(genotypes, sets, transform, dominance)
    several = np.ndim(phenotype) == 2
    names, responses = _columns_of(phenotype, len(array))
    outside = _environment_of(environment, len(array))
    tests, people = [], []
    for name, response in zip(names, responses, strict=True):
        try:
            one, used = tests_of(response, covariates, transform, dominance, outside)
        except ValueError as error:
            if several:
                raise ValueError(f"column {name} of phenotype: {error}") from None
            raise
        tests.append(one)
        people.append(used)
    cpus, found = thread_count(threads) or usable_cpus(), {}
    numbers = outside is None and any(one.kind == "linear" for one in tests)
    arrays = _arrays_of(device) if numbers else HOST
    for group, together in _groups(tests, people, several or arrays is not HOST):
        read = _reader(array, people[group[0]])
        if together:
            shared = NumberTests([tests[k] for k in group], arrays)
            found |= zip(group, rows_of_numbers(shared, read, chosen, cpus), strict=True)
        else:
            found[group[0]] = set_rows(tests[group[0]], read, chosen, cpus)
    rows = [{"phenotype": names[k]} | row for k in range(len(names)) for row in found[k]]
    warn_untested({row["set"]: row["problem"] for row in rows if "problem" in row})
    return pd.DataFrame(rows, columns=["phenotype", *COLUMNS] if several else COLUMNS)


def _columns_of(phenotype: ArrayLike, n_samples: int) -> tuple[list, np.ndarray]:
    """Names and values of the phenotypes, float64 (n_phenotypes, n_samples)."""
    if np.ndim(phenotype) != 2:
        return [None], number_array(phenotype, (n_samples,), "phenotype")[None]
    names = list(getattr(phenotype, "columns", range(np.shape(phenotype)[1])))
    if not names:
        raise ValueError("phenotype has no column; give at least one.")
    return names, number_array(phenotype, (n_samples, len(names)), "phenotype").T


def _environment_of(environment: ArrayLike | None, n_samples: int) -> np.ndarray | None:
    return None if environment is None else number_array(environment, (n_samples,), "environment")


def _groups(
    tests: list[SetTests], people: list[np.ndarray], together: bool
) -> list[tuple[list[int], bool]]:
    """Places of phenotypes, and whether their tests are made together: those of numbers of the same
    people, if `together`."""
    alike: dict[bytes, list[int]] = {}
    groups: list[tuple[list[int], bool]] = []
    for k, (one, used) in enumerate(zip(tests, people, strict=True)):
        if not together or one.kind != "linear" or one.environment is not None:
            groups.append(([k], False))
        elif used.tobytes() in alike:
            alike[used.tobytes()].append(k)
        else:
            groups.append((alike.setdefault(used.tobytes(), [k]), True))
    return groups


def _reader(array: np.ndarray, used: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A function that gives the genotypes of the people used at some sites."""
    if used.all():
        return lambda sites: array[:, sites]
    return lambda sites: array[:, sites][used]


def _arrays_of(device: str) -> Arrays:
    """Where products of numbers are summed."""
    backend = backend_for(device) if device != "cpu" else None
    if backend is not None and backend.name == "gpu":
        from ..epistasis.set_numbers_gpu import gpu_arrays

        return gpu_arrays(backend.device.index)
    return HOST


def warn_untested(problems: Mapping[str, str]) -> None:
    """Warn of sets that are not tested; `problems`: why, by name."""
    if problems:
        first = next(iter(problems))
        warnings.warn(
            f"Sets that are not tested: {len(problems)}, the first of them {first!r}: "
            f"{problems[first]}",
            stacklevel=3,
        )


def prepare_scan(
    genotypes: ArrayLike,
    phenotype: ArrayLike,
    sets: Mapping[str, Any],
    covariates: ArrayLike | None,
    *,
    environment: ArrayLike | None,
    transform: str,
    dominance: bool,
) -> tuple[SetTests, np.ndarray, Sets]:
    """The tests, genotypes of the people tested, and sites of each set, of checked arguments."""
    array, chosen = checked_sets(genotypes, sets, transform, dominance)
    response = number_array(phenotype, (len(array),), "phenotype")
    outside = _environment_of(environment, len(array))
    tests, used = tests_of(response, covariates, transform, dominance, outside)
    return tests, array if used.all() else array[used], chosen


def checked_sets(
    genotypes: ArrayLike, sets: Mapping[str, Any], transform: str, dominance: bool
) -> tuple[np.ndarray, Sets]:
    """Genotypes, and sites of each set, of checked arguments."""
    require_choice(transform, ("none", "normal"), "transform")
    if not isinstance(dominance, (bool, np.bool_)):
        raise ValueError(f"dominance is {dominance!r}; give True or False.")
    if not isinstance(sets, Mapping):
        raise ValueError(f"sets is {type(sets).__name__}; give a mapping of names to columns.")
    if len({str(name) for name in sets}) < len(sets):
        raise ValueError("sets has two names that are the same as text, such as 1 and '1'.")
    array = genotype_array(genotypes)
    return array, {
        str(name): set_sites(given, str(name), array.shape[1]) for name, given in sets.items()
    }


def tests_of(
    response: np.ndarray,
    covariates: ArrayLike | None,
    transform: str,
    dominance: bool,
    environment: np.ndarray | None = None,
) -> tuple[SetTests, np.ndarray]:
    """Tests of a phenotype float64 (n_samples,), and the samples that they use."""
    known = np.isfinite(response)
    if environment is not None:
        known &= np.isfinite(environment)
    design = known_covariates(covariates, known)
    used = known & np.isfinite(design).all(axis=1)
    kind, outside = response_kind(response[used]), None
    if environment is not None:
        outside = environment[used]
        if not evened(outside)[0].any():
            raise ValueError("environment is constant over the samples tested; leave it out.")
    given = response[used], design[used], kind, transform, bool(dominance), outside
    try:
        tests = prepare_sets(*given)
    except UserError as error:
        raise ValueError(str(error)) from None
    return tests, used


def set_sites(given: Any, name: str, n_sites: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Columns of a set, or of two sets, as int64; the second is None for one set.

    Raises
    ------
    ValueError
        They are no columns of the genotypes, or too few.
    """
    pair = isinstance(given, (tuple, list)) and len(given) == 2 and np.ndim(given[0]) == 1
    parts = []
    for part in given if pair else (given,):
        sites = np.asarray(part)
        if sites.ndim != 1 or (sites.size and sites.dtype.kind not in "iu"):
            raise ValueError(
                f"sets[{name!r}] is {sites.dtype} of the shape {sites.shape}; give columns of the "
                "genotypes, or a pair of two such lists."
            )
        wrong = (sites < 0) | (sites >= n_sites)
        if wrong.any():
            raise ValueError(
                f"sets[{name!r}] has the site {sites[wrong][0]}; give columns from 0 to "
                f"{n_sites - 1}."
            )
        parts.append(sites.astype(np.int64))
    return parts[0], parts[1] if pair else None
