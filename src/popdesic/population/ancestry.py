"""Ancestry proportions: people as mixtures of K components, fitted to the unrelated founders.

The founders and sites are those of the PCA: unrelated people, sites without LD. K is given, or
chosen from a range by cross-validation as in ADMIXTURE (Alexander and Lange 2011, BMC
Bioinformatics 12): genotypes are hidden at random in `folds` parts, the model is fitted to the
rest, and the error is the mean deviance residual of the hidden genotypes g under their expected
frequency h = sum over k of q_k p_k,

    g log(g / 2h) + (2 - g) log((2 - g) / (2 - 2h)),    0 log 0 = 0.

K = 1 is one population: h is the frequency of the site among the genotypes that are not hidden.
Where K is chosen from a range, every other K of it is fitted once, quickly, and its components are
numbered like the most similar ones of the neighbouring K (`number_components`).

Everyone else is projected: frequencies stay as they are, only the proportions are estimated. So
nothing changes for anybody when a cohort arrives.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..cohort.panel import load_panel
from ..core.files import write_json
from ..core.tables import read_table, write_npz, write_table
from ..core.threads import one_blas_thread, run_tasks
from ..io.bed import open_bed, read_fam
from .counts import labels_of
from .fastmixture import Fit, fit, why_missing
from .local_structure import GENOTYPES_OF_BYTE
from .options import used_sites

#: Parts of the cross-validation, and fits of the chosen K from different seeds.
FOLDS, STARTS = 5, 3

#: Fewer founders or sites say nothing, and fastmixture's first guess needs more than 20 people.
LEAST_PEOPLE, LEAST_SITES = 40, 500
#: Frequencies are kept this far from 0 and 1, as fastmixture keeps them.
EDGE = 1e-5
#: A projection ends when no proportion changes by more, or after so many rounds.
CHANGE, MOST_ROUNDS = 1e-7, 5000
#: Least correlation of all components of two solutions that count as the same.
SAME = 0.99


def deviance(genotypes: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Deviance residuals of genotypes 0, 1, 2 under ALT frequencies `expected`; one shape."""
    g, h = genotypes.astype(np.float64), np.clip(expected, EDGE, 1 - EDGE)
    with np.errstate(divide="ignore", invalid="ignore"):
        ref = np.where(g < 2, (2 - g) * np.log((2 - g) / (2 - 2 * h)), 0.0)
        return ref + np.where(g > 0, g * np.log(g / (2 * h)), 0.0)


def frequency(genotypes: np.ndarray) -> np.ndarray:
    """ALT frequency of each site, NaN where nobody is called: float64 (n_sites,)."""
    called = (genotypes >= 0).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.maximum(genotypes, 0).sum(axis=1) / np.where(called, 2.0 * called, np.nan)


def varies(genotypes: np.ndarray) -> np.ndarray:
    """Sites with both alleles: bool (n_sites,)."""
    p = frequency(genotypes)
    return (p > 0) & (p < 1)


def held_out_error(genotypes: np.ndarray, hidden: np.ndarray, k: int, seed: int) -> float:
    """Mean deviance residual of hidden genotypes under the model fitted to the others.

    Parameters
    ----------
    genotypes : int8 array, (n_sites, n)
    hidden : bool array, (n_sites, n)
        Missing genotypes do not count. Sites that do not vary among the others are left out.
    """
    shown = np.where(hidden, np.int8(-1), genotypes)
    used = varies(shown)
    shown, own = shown[used], genotypes[used]
    if k == 1:
        expected = np.repeat(frequency(shown)[:, None], own.shape[1], axis=1)
    else:
        found = fit(shown, k, seed, quick=True)
        expected = found.frequencies @ found.proportions.T
    asked = hidden[used] & (own >= 0)
    return float(deviance(own[asked], expected[asked]).mean())


def cross_validate(
    genotypes: np.ndarray, candidates: Sequence[int], folds: int, seed: int, threads: int = 1
) -> pd.DataFrame:
    """Error of each number of components: `k`, `error`, `standard_deviation` (over the folds)."""
    part = np.random.default_rng(seed).integers(0, folds, genotypes.shape).astype(np.int8)
    tasks = list(product(candidates, range(folds)))
    found = run_tasks(
        lambda k, fold: held_out_error(genotypes, part == fold, k, seed), tasks, threads
    )
    errors = np.array(found).reshape(len(candidates), folds)
    return pd.DataFrame(
        {
            "k": list(candidates),
            "error": errors.mean(axis=1),
            "standard_deviation": errors.std(axis=1, ddof=1),
        }
    )


@one_blas_thread
def project_proportions(genotypes: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """Proportions of people in components of known frequencies, by EM: float64 (n, k).

    The likelihood is concave, so that there is one best answer, and each person has it alone:
    fastmixture's own projection sometimes stopped far from it (0.02 instead of 0.41).

    Parameters
    ----------
    genotypes : int8 array, (n_sites, n)
        Everyone has a genotype.
    frequencies : float64 array, (n_sites, k)
    """
    p_all = np.clip(frequencies, EDGE, 1 - EDGE)
    found = np.full((genotypes.shape[1], p_all.shape[1]), 1 / p_all.shape[1])
    for i, q in enumerate(found):
        known = genotypes[:, i] >= 0
        g, p = genotypes[known, i].astype(np.float64), p_all[known]
        for _ in range(MOST_ROUNDS):
            h = p @ q
            new = q * ((g / h) @ p + ((2 - g) / (1 - h)) @ (1 - p))
            new /= new.sum()
            change = np.abs(new - q).max()
            q[:] = new
            if change < CHANGE:
                break
    return found


def similarity(first: np.ndarray, second: np.ndarray) -> float:
    """Lowest correlation of the components of two solutions (n, k), matched to agree best."""
    from scipy.optimize import linear_sum_assignment

    k = first.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.nan_to_num(np.corrcoef(first.T, second.T)[:k, k:])
    rows, columns = linear_sum_assignment(-each)
    return float(each[rows, columns].min())


def number_components(solutions: dict[int, np.ndarray], chosen: int) -> dict[int, list[int]]:
    """Numbers of the components of each K, so that alike ones of neighbouring K have the same.

    Components are matched from `chosen` upwards and downwards, so that the squared differences of
    matched proportions have the smallest sum. A component that has no match gets a new number.

    Parameters
    ----------
    solutions : dict of int to float64 array, (n, k)
        Proportions of the same people for each K of a range without gaps.
    chosen : int
        The K whose components have the numbers 1 to K, in their order.
    """
    from scipy.optimize import linear_sum_assignment

    numbers = {chosen: list(range(1, chosen + 1))}
    for step in (1, -1):
        k = chosen
        while (k := k + step) in solutions:
            old, new = solutions[k - step], solutions[k]
            apart = ((new[:, :, None] - old[:, None, :]) ** 2).sum(axis=0)
            found = dict(
                zip(*(side.tolist() for side in linear_sum_assignment(apart)), strict=True)
            )
            own = numbers[k - step]
            numbers[k] = [own[found[j]] if j in found else max(own) + 1 for j in range(k)]
    return numbers


def table_over_k(
    names: np.ndarray, solutions: dict[int, np.ndarray], chosen: int, high: int
) -> pd.DataFrame:
    """Rows `sample`, `k` and the proportions `K1` to `K{high}` of the people of a fit, by K.

    A component keeps its number over K (`number_components`). It is missing where no component of
    this K is like it.
    """
    numbers = number_components(solutions, chosen) if solutions else {}
    parts = []
    for k in sorted(numbers):
        part = pd.DataFrame({"sample": names, "k": k})
        wide = np.full((len(names), high), np.nan)
        wide[:, np.array(numbers[k]) - 1] = solutions[k]
        part[[f"K{j + 1}" for j in range(high)]] = wide
        parts.append(part)
    empty = pd.DataFrame(columns=["sample", "k", *(f"K{j + 1}" for j in range(high))])
    return pd.concat(parts, ignore_index=True) if parts else empty


def best_fit(
    genotypes: np.ndarray, k: int, seeds: Sequence[int], threads: int = 1
) -> tuple[Fit, list[dict[str, Any]]]:
    """The fit of the highest likelihood, components by falling mean proportion, and all runs."""
    if k == 1:
        p = frequency(genotypes)[:, None]
        return Fit(np.ones((genotypes.shape[1], 1)), p, float("nan"), True), []
    fits = run_tasks(lambda seed: fit(genotypes, k, seed), [(seed,) for seed in seeds], threads)
    best = fits[int(np.argmax([found.log_likelihood for found in fits]))]
    runs = [
        {
            "seed": int(seed),
            "log_likelihood": found.log_likelihood,
            "converged": found.converged,
            "similarity": round(similarity(best.proportions, found.proportions), 6),
        }
        for seed, found in zip(seeds, fits, strict=True)
    ]
    order = np.argsort(-best.proportions.mean(axis=0), kind="stable")
    ordered = best._replace(
        proportions=best.proportions[:, order], frequencies=best.frequencies[:, order]
    )
    return ordered, runs


def fit_ancestry(
    prefixes: Sequence[Path],
    panel: Path,
    axes: Path,
    *,
    components: int | Sequence[int],
    folds: int = FOLDS,
    x_contigs: list[str],
    seed: int,
    model_out: Path,
    validation_out: Path,
    over_k_out: Path,
    summary_out: Path,
    threads: int = 1,
) -> dict[str, Any]:
    """Fit the components to the founders that define the axes of the PCA.

    Parameters
    ----------
    prefixes : sequence of Path
        `results/cohorts/{cohort}/genotypes` of the founder cohorts. Imputed genotypes do not count.
    panel : Path
        `panel/sites.tsv`.
    axes : Path
        `embedding/axes.npz`: samples and sites.
    components : int or two ints
        K, or the first and last one of the range to choose from.
    folds : int
        Parts of the cross-validation.
    x_contigs : list of str
        As in `counts.count_cohort`.
    model_out : Path
        .npz: `samples`, `proportions`, `sites` (rows of the panel, which has `panel_sites`),
        `frequencies`. All are empty if nothing could be fitted.
    validation_out : Path
        `cross_validate`'s table, and `chosen` (yes, no).
    over_k_out : Path
        `table_over_k` of the founders; without rows where K is given.
    summary_out : Path
        What is returned.

    Returns
    -------
    dict
        `people`, `sites`, `k`, `range`, `folds`, `runs` (`best_fit`), `same`: runs with the best
        one's solution, and `reason` if nothing was fitted: a sentence, also without fastmixture.
    """
    with np.load(axes) as arrays:
        names, rows = arrays["samples"], arrays["sites"]
    sites, _ = load_panel(panel)
    rows = rows[used_sites(sites, x_contigs)[rows]]
    low, high = (components, components) if isinstance(components, int) else components
    about: dict[str, Any] = {"people": len(names), "sites": len(rows), "range": [low, high]}
    about |= {"folds": folds, "seed": seed}
    columns = ["k", "error", "standard_deviation", "chosen"]
    validation = pd.DataFrame(columns=columns)
    found = Fit(np.empty((0, 0)), np.empty((0, 0)), float("nan"), False)
    solutions: dict[int, np.ndarray] = {}
    reason = why_missing()
    if not reason and (len(names) < LEAST_PEOPLE or len(rows) < LEAST_SITES):
        reason = (
            f"{len(names)} unrelated founders at {len(rows)} sites are too few for ancestry "
            f"proportions (at least {LEAST_PEOPLE} at {LEAST_SITES} are needed)"
        )
    if not reason:
        genotypes = _of_samples(prefixes, len(sites), rows, names)
        called = (genotypes >= 0).any(axis=0)
        genotypes, names = genotypes[:, called], names[called]
        use = varies(genotypes)
        genotypes, rows = genotypes[use], rows[use]
        k = low
        if high > low:
            candidates = range(low, min(high, len(names) // 4) + 1)
            validation = cross_validate(genotypes, candidates, folds, seed, threads)
            k = int(validation.k[validation.error.argmin()])
            validation["chosen"] = np.where(validation.k == k, "yes", "no")
        found, runs = best_fit(genotypes, k, range(seed, seed + STARTS), threads)
        others = [(other,) for other in validation.k.tolist() if other != k]
        quick = run_tasks(lambda other: _quick(genotypes, other, seed), others, threads)
        if others:
            solutions = {k: found.proportions}
            solutions |= {other: q for (other,), q in zip(others, quick, strict=True)}
        about |= {"k": k, "people": len(names), "sites": len(rows), "runs": runs}
        about["same"] = sum(run["similarity"] >= SAME for run in runs)
    else:
        about |= {"reason": reason, "k": 0}
        names, rows = names[:0], rows[:0]
    write_npz(
        model_out,
        samples=np.array(names, dtype=np.str_),
        proportions=found.proportions,
        panel_sites=np.array(len(sites)),
        sites=rows,
        frequencies=found.frequencies,
    )
    write_table(validation_out, validation)
    write_table(over_k_out, table_over_k(names, solutions, about["k"], max(solutions, default=0)))
    write_json(summary_out, about)
    return about


def project_cohort(
    prefix: Path, model: Path, sheet: Path, *, cohort: str, column: str, out: Path
) -> dict[str, Any]:
    """Ancestry proportions of a cohort: those of the fit, the others by projection.

    Parameters
    ----------
    prefix : Path
        `results/cohorts/{cohort}/genotypes`.
    model : Path
        `fit_ancestry`'s.
    sheet : Path
        The sample sheet; `column` has the populations.
    out : Path
        `sample`, `cohort`, `population`, `estimate` (fitted, projected; NA without genotypes),
        `sites` called, and the proportions `K1`, `K2`, …; none if nothing was fitted.
    """
    from ..cohort.samples import read_samples

    with np.load(model) as arrays:
        rows, frequencies = arrays["sites"], arrays["frequencies"]
        n_sites = int(arrays["panel_sites"])
        known = dict(zip(arrays["samples"].tolist(), arrays["proportions"], strict=True))
    names = read_fam(prefix)["sample"].tolist()
    labels = labels_of(read_samples(sheet), names, column)
    k = frequencies.shape[1]
    genotypes = _genotypes(prefix, len(names), n_sites, rows)
    called = (genotypes >= 0).sum(axis=0)
    fitted = np.array([name in known for name in names], bool)
    new = ~fitted & (called > 0)
    proportions = np.full((len(names), k), np.nan)
    for i in np.flatnonzero(fitted):
        proportions[i] = known[names[i]]
    if new.any():
        proportions[new] = project_proportions(genotypes[:, new], frequencies)
    estimate = np.where(fitted, "fitted", np.where(new, "projected", "NA"))
    table = pd.DataFrame({"sample": names, "cohort": cohort})
    table["population"] = [label or "NA" for label in labels]
    table["estimate"], table["sites"] = estimate, called
    for j in range(k):
        table[f"K{j + 1}"] = proportions[:, j]
    write_table(out, table)
    return {"samples": len(names), "fitted": int(fitted.sum()), "projected": int(new.sum())}


def join_cohorts(tables: Sequence[Path], out: Path) -> None:
    """Write the proportions of all cohorts to one table."""
    write_table(out, pd.concat([read_table(path) for path in tables], ignore_index=True))


def _quick(genotypes: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Proportions of one quick fit; of one component, all are 1."""
    return np.ones((genotypes.shape[1], 1)) if k == 1 else fit(genotypes, k, seed, quick=True)[0]


def _genotypes(prefix: Path, n: int, n_sites: int, rows: np.ndarray) -> np.ndarray:
    """Genotypes of a cohort at some of the panel's `n_sites` sites: int8 (n_rows, n)."""
    bed = open_bed(prefix, n_samples=n, n_sites=n_sites)
    codes = np.asarray(bed[rows])
    return GENOTYPES_OF_BYTE[codes].reshape(len(rows), 4 * codes.shape[1])[:, :n]


def _of_samples(
    prefixes: Sequence[Path], n_sites: int, rows: np.ndarray, names: np.ndarray
) -> np.ndarray:
    """Genotypes of some samples of cohorts, in the order of `names`: int8 (n_rows, n_names)."""
    wanted, parts, order = set(names.tolist()), [], []
    for prefix in prefixes:
        own = read_fam(prefix)["sample"].tolist()
        keep = np.flatnonzero([name in wanted for name in own])
        if len(keep):
            parts.append(_genotypes(prefix, len(own), n_sites, rows)[:, keep])
            order += [own[i] for i in keep]
    place = {name: i for i, name in enumerate(order)}
    return np.concatenate(parts, axis=1)[:, [place[name] for name in names.tolist()]]
