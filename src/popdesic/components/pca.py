"""PCA of genotypes, with axes defined by the unrelated founders."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..cohort.samples import describe_samples
from ..cohort.site_alleles import names_once, read_cohorts
from ..core.errors import UserError
from ..core.files import read_json, write_json
from ..core.tables import write_npy
from ..core.threads import one_blas_thread
from ..engine.backend import Backend
from .cohort_shifts import find_cohort_shifts
from .eigen import leading_eigenpairs
from .loading_scores import score_by_weights
from .projection import FURTHER, project, relatives_in
from .relationship import alleles_of, calls_of, groups_of_others, relationship_to
from .significance import EVEN_NOISE, MOST_TESTED, Noise, Significance, assess_components
from .tables import write_embedding

#: Components with `auto` where fewer are significant: a map needs two.
FEWEST = 2
#: Scores that are stored at least with `geodesic.pcs: auto`: the choice of geodesics compares them.
STORED = 8
#: Member of `axes.npz`: `loading_scores.site_weights`, of very many samples that define axes.
WEIGHTS = "weights"


@dataclass(frozen=True)
class Axes:
    """Principal axes of the samples that define them, n in number.

    Attributes
    ----------
    values : float64 array, (q,)
        Leading positive eigenvalues of their relationship, largest first: more than `k`, because
        projections use them.
    vectors : float64 array, (n, q)
        Signs make the largest absolute entry of each positive.
    trace : float
        Sum of all eigenvalues.
    k : int
        Number of components.
    own : float64 array, (n,), optional
        Relationship of each to itself: it tells relatives among the samples that are projected.
    significant : int, optional
        Components that show structure, where it is known.
    """

    values: np.ndarray
    vectors: np.ndarray
    trace: float
    k: int
    own: np.ndarray | None = None
    significant: int | None = None

    @property
    def explained(self) -> np.ndarray:
        """Share of the total variance, float64 (q,)."""
        return self.values / self.trace

    def place(self, founders: np.ndarray, rows: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Scores of everyone, float64 (len(founders), k).

        Parameters
        ----------
        founders : bool array
            Those who define the axes: their scores are U sqrt(L).
        rows, own
            Of all others, as in `project`.
        """
        return self.with_scores(founders, self.project(rows, own))

    def with_scores(self, founders: np.ndarray, others: np.ndarray) -> np.ndarray:
        """`place` where the scores of the others are known, float64 (m, k)."""
        scores = np.empty((len(founders), self.k))
        scores[founders] = self.vectors[:, : self.k] * np.sqrt(self.values[: self.k])
        scores[~founders] = others
        return scores

    def project(self, rows: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Scores of samples that do not define the axes (`projection.project`)."""
        axes = self.values, self.vectors, self.trace, self.k
        return project(rows, own, *axes, self.own, self.significant)

    def has_relatives(self, rows: np.ndarray) -> np.ndarray:
        """Which samples are relatives of those who define the axes, bool (m,); rows as above."""
        axes = self.values, self.vectors, self.k, self.own
        return np.array([len(relatives_in(row, *axes)[0]) > 0 for row in rows], bool)


@one_blas_thread
def axes_of(
    relationship: np.ndarray, *components: int | str, noise: Noise = EVEN_NOISE
) -> tuple[Axes, Significance]:
    """Decompose the relationship of the samples that define the axes.

    Parameters
    ----------
    relationship : float64 array, (n, n)
        With frequencies of these samples.
    components : int or 'auto'
        Numbers of components that are asked for: there are as many as the largest, or as there can
        be. ``auto`` is as many as are significant, at least FEWEST.
    noise : Noise
        As in `assess_components`.

    Raises
    ------
    UserError
        The samples do not differ at any site.
    """
    axes, squares = decompose(relationship, *components), float((relationship**2).sum())
    return choose_components(axes, squares, len(relationship), *components, noise=noise)


@one_blas_thread
def decompose(relationship: np.ndarray, *components: int | str) -> Axes:
    """All axes that `axes_of` can need for these numbers of components, all of them chosen."""
    n = len(relationship)
    asked = [int(size) for size in components if size != "auto"]
    values, vectors = leading_eigenpairs(
        relationship, min(max([*asked, MOST_TESTED]) + FURTHER, n - 1)
    )
    positive = values > 1e-9 * values[:1]
    if not positive.any():
        raise UserError(
            f"results/panel/sites.tsv: the {n} founder samples have no component of variation "
            "(PCA needs two that differ); add samples or sites."
        )
    values, vectors = values[positive], vectors[:, positive]
    own = np.diag(relationship).copy()
    return Axes(values, with_signs(vectors), float(own.sum()), len(values), own)


def with_signs(vectors: np.ndarray) -> np.ndarray:
    """Vectors (n, q) whose largest absolute entry is positive."""
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.sign(largest)


def choose_components(
    axes: Axes, squares: float, n: int, *components: int | str, noise: Noise = EVEN_NOISE
) -> tuple[Axes, Significance]:
    """`axes_of` where the axes of n samples and the sum of all squared eigenvalues are known."""
    tests = assess_components(axes.values, axes.trace, squares, n, noise)
    asked = [max(tests.count, FEWEST) if size == "auto" else int(size) for size in components]
    k = min(max(asked), len(axes.values))
    return replace(axes, k=k, significant=tests.count), tests


def place_everyone(
    prefixes: list[Path], definition: Path, backend: Backend
) -> tuple[list[str], np.ndarray, np.ndarray, Axes, np.ndarray]:
    """Scores of all samples of some cohorts on a study's axes.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the cohorts' genotypes on the panel, in sample order.
    definition : Path
        `axes.npz` of `define_axes`.
    backend : Backend
        Makes the products with weights of sites, where axes are those of very many samples.

    Returns
    -------
    everyone : list of str
    founders : bool array, (n,)
        Those who define the axes.
    scores : float64 array, (n, k)
        Of several ploidies as `Alleles.as_shares` has them.
    axes : Axes
    related : bool array, (n,)
        Those who were placed as relatives of who defines the axes; none by weights of sites.
    """
    stored, axes = read_axes(definition)
    names = [names_once(prefix).tolist() for prefix in prefixes]
    everyone = [name for own in names for name in own]
    defining = set(stored["samples"].tolist())
    founders = np.array([name in defining for name in everyone], bool)
    related = np.zeros(len(everyone), bool)
    alleles = alleles_of(prefixes)
    if has_weights(definition):
        keep = np.split(~founders, np.cumsum([len(own) for own in names])[:-1])
        others = place_by_weights(prefixes, keep, definition, backend)
    else:  # group by group, so that memory does not grow with all pairs
        read, sizes = read_cohorts(prefixes, stored["sites"])
        given = read, sizes, founders, stored["af"]
        groups, told = [np.empty((0, axes.k))], [np.zeros(0, bool)]
        for blocks in groups_of_others(sizes, founders):
            rows, own = relationship_to(
                *given, backend.threads, blocks, alleles.most, alleles.weights
            )
            groups.append(axes.project(rows, own))
            told.append(axes.has_relatives(rows))
        others, related[~founders] = np.concatenate(groups), np.concatenate(told)
    scores = alleles.as_shares(axes.with_scores(founders, others))
    return everyone, founders, scores, axes, related


def place_by_weights(
    prefixes: list[Path], keep: list[np.ndarray], definition: Path, backend: Backend
) -> np.ndarray:
    """Scores of some samples by the weights of `axes.npz`, float64 (m, k); others are not read.

    `keep`: which samples of each cohort, bool arrays.
    """
    some = [(prefix, who) for prefix, who in zip(prefixes, keep, strict=True) if who.any()]
    with np.load(definition) as found:
        values, trace, k = (found[name] for name in ("values", "trace", "k"))
        if not some:
            return np.empty((0, int(k)))
        calls = calls_of(
            [prefix for prefix, _ in some], found["sites"], [w for _, w in some], found["af"]
        )
        about = {"values": values, "n": len(found["samples"]), "trace": float(trace)}
        weights = found[WEIGHTS]
    products = backend.genotype_products(calls)
    return score_by_weights(products, weights, **about, n_components=int(k))


def has_weights(definition: Path) -> bool:
    """Whether `axes.npz` has weights of sites, by which others are placed."""
    with np.load(definition) as found:
        return WEIGHTS in found.files


def read_axes(definition: Path) -> tuple[dict[str, np.ndarray], Axes]:
    """The arrays of `axes.npz` but the weights of sites, and the axes."""
    with np.load(definition) as found:
        stored = {name: found[name] for name in found.files if name != WEIGHTS}
    values, vectors = stored["values"], stored["vectors"]
    known = stored.get("own"), stored.get("significant")
    of_structure = None if known[1] is None else int(known[1])
    axes = Axes(values, vectors, float(stored["trace"]), int(stored["k"]), known[0], of_structure)
    return stored, axes


def compute_pca(
    prefixes: list[Path],
    definition: Path,
    about: Path,
    order: Path,
    sheet: Path,
    *,
    table_out: Path,
    scores_out: Path,
    statistics_out: Path,
    backend: Backend,
) -> dict:
    """PCA of a study: table, full-precision scores (float64 (n, k)), statistics.

    There may be more scores than `components` in the table: geodesics choose among them.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the cohorts' genotypes on the panel, in sample order.
    definition, about : Path
        `axes.npz` and `axes.json`, which `define_axes` wrote.
    order : Path
        `distance/samples.tsv`: the samples to give, in this order.
    backend : Backend
        See `place_everyone`.

    Returns
    -------
    dict
        `about` with `samples`, `variance_explained` of each component, `related` (samples that
        were placed as relatives of those who define the axes), and `shifts`
        (`find_cohort_shifts` of those who define the axes).
    """
    everyone, founders, scores, axes, related = place_everyone(prefixes, definition, backend)
    samples = describe_samples(order, sheet)
    place = {name: i for i, name in enumerate(everyone)}
    kept = np.array([place[name] for name in samples["sample"]])
    scores = scores[kept]
    write_npy(scores_out, scores)
    described = read_json(about)
    shown = described["components"]
    scores = scores[:, :shown]
    write_embedding(table_out, samples, scores, "PC")
    on_axes = founders[kept]
    statistics = {
        **described,
        "samples": len(samples),
        "related": int(related[kept].sum()),
        "variance_explained": [round(float(x), 8) for x in axes.explained[:shown]],
        "shifts": find_cohort_shifts(scores[on_axes], samples[on_axes]),
    }
    write_json(statistics_out, statistics)
    return statistics
