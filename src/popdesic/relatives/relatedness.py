"""PC-Relate of a study: the table of close pairs, inbreeding of every sample, and a check."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.panel import load_panel
from ..core.errors import UserError
from ..core.files import read_json, write_json
from ..core.tables import read_table, write_table
from ..engine.backend import Backend
from ..io.bed import open_bed, read_fam
from ..io.genotypes import take_samples, unpack_bed
from .kinship import RELATED, SAME, king_robust
from .options import MOST_SITES
from .pc_relate import Kinships, PairCounts, Reader, ancestry_of, count_pairs, pc_relate
from .resolution import THIRD, Resolution

PAIRS = ["sample_a", "sample_b", "cohort_a", "cohort_b", "sites", "kinship", "king", "k0"]
PAIRS += ["relation"]
#: People of each cohort who show what kinship strangers have.
STRANGERS = 512


def genotype_reader(prefixes: list[Path], chosen: np.ndarray, kept: np.ndarray) -> Reader:
    """Reader of the chosen sites and kept samples of cohorts on the panel.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the cohorts' .bed files, in sample order.
    chosen : int array
        Numbers of the sites.
    kept : int array
        Numbers of the samples among those of all cohorts.

    Returns
    -------
    callable
        ``read(first, last)`` gives all kept samples, ``read(first, last, people)`` some of them.
    """
    beds = [open_bed(prefix) for prefix in prefixes]
    ends = np.cumsum([len(read_fam(prefix)) for prefix in prefixes])

    def read(first: int, last: int, people: np.ndarray | None = None) -> np.ndarray:
        rows, asked = chosen[first:last], kept if people is None else kept[people]
        sorted_samples, place = np.unique(asked, return_inverse=True)
        parts = []
        for bed, end, start in zip(beds, ends, [0, *ends[:-1]], strict=True):
            own = sorted_samples[(sorted_samples >= start) & (sorted_samples < end)] - start
            part = np.ascontiguousarray(bed[rows])
            if len(own) < end - start:
                part = take_samples(part, own)
            parts.append(unpack_bed(part, len(own)))
        found = np.concatenate(parts, axis=1)
        ordered = bool((place == np.arange(len(place))).all())
        return found if ordered else np.take(found, place, axis=1)

    return read


def relate_samples(
    prefixes: list[Path],
    files: Mapping[str, Path],
    out: dict[str, Path],
    *,
    founders: set[str],
    unrelated: Path | None,
    resolution: Resolution,
    components: int | None = None,
    max_sites: int = MOST_SITES,
    min_kinship: float,
    backend: Backend,
) -> dict[str, int | float]:
    """PC-Relate kinship of a study's samples, with the frequencies of the unrelated founders.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the cohorts' genotypes on the panel, in sample order.
    files : dict
        ``panel`` (`panel/sites.tsv`); ``scores`` (`embedding/pca.npy`) and their ``samples``
        (`distance/samples.tsv`); ``axes`` (`embedding/axes.json`), which says how many components
        are significant; ``king`` (`compare/kinship.tsv`), whose pairs are listed too, and whose
        duplicates are duplicates here.
    out : dict
        Paths of ``pairs`` (`compare/pc_relate.tsv`), ``samples`` (`compare/pc_relate.samples.tsv`)
        and ``about`` (`compare/pc_relate.json`).
    founders : set of str
        Cohorts whose samples are fitted, if `unrelated` is None.
    unrelated : Path or None
        `panel/unrelated.tsv`: its unrelated founders are fitted.
    components : int or None
        Components used; None: the significant ones among those in `scores`. With 0 everyone is
        taken for one population.
    max_sites : int
        With more sites on the panel, this many at equal steps are used.
    min_kinship : float
        Pairs with less by both methods are not listed.
    backend : Backend
        See `pc_relate`.

    Returns
    -------
    dict
        Numbers for the log.

    Raises
    ------
    UserError
        Fewer than two unrelated founders.
    """
    n_panel = len(load_panel(files["panel"], ["pos"])[0])
    n_sites = min(n_panel, max_sites)
    chosen = np.arange(n_sites) * n_panel // max(n_sites, 1)
    people = read_table(files["samples"])
    everyone = [name for prefix in prefixes for name in read_fam(prefix)["sample"]]
    place = {name: i for i, name in enumerate(everyone)}
    read = genotype_reader(prefixes, chosen, people["sample"].map(place).to_numpy())
    training = people.cohort.isin(founders).to_numpy()
    if unrelated is not None:
        table = read_table(unrelated)
        kept = people["sample"].isin(table["sample"][table.unrelated == "yes"]).to_numpy()
        training = training & kept
    significant = int(read_json(files["axes"])["significant"])
    try:
        ancestry = ancestry_of(
            np.load(files["scores"]), training, significant if components is None else components
        )
    except ValueError as error:
        raise UserError(f"results/compare/pc_relate.tsv: {error}") from None
    sizes = people.groupby("cohort", sort=False).size()
    found = pc_relate(read, n_sites, ancestry, backend)

    limit = float(resolution.least_pc_relate(np.array(n_sites)))
    rows, columns, values = found.close(max(min_kinship, limit))
    listed = read_table(files["king"])
    rows, columns, values, same = _with_listed(rows, columns, values, listed, people, found)
    counts = count_pairs(read, ancestry, found.coefficients, rows, columns, backend.threads)
    least = resolution.least_pc_relate(counts.sites)
    by_king = _is_listed(rows, columns, listed, people)
    table = _pair_table(people, rows, columns, values, counts, same, least)
    table = table[(values >= np.maximum(least, min_kinship)) | by_king]
    order = np.lexsort((table.sample_b, table.sample_a, -table.kinship))
    write_table(out["pairs"], table.iloc[order])
    write_table(
        out["samples"],
        pd.DataFrame(
            {
                "sample": people["sample"],
                "cohort": people.cohort,
                "inbreeding": 2 * found.own - 1,
                "fitted": np.where(training, "yes", "no"),
            }
        ),
    )
    strangers = _strangers(found, sizes)
    about = {
        "components": ancestry.basis.shape[1] - 1,
        "significant": significant,
        "fitted": int(training.sum()),
        "sites": n_sites,
        "smallest_kinship": None if np.isinf(limit) else _rounded(limit),
        "median_kinship": {name: _rounded(value) for name, value in strangers.items()},
        "related_fitted": int((training[rows] & training[columns] & (values >= least)).sum()),
    }
    write_json(out["about"], about)
    return {name: about[name] for name in ("components", "fitted", "sites")} | {"pairs": len(table)}


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _positions(listed: pd.DataFrame, people: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of the listed pairs among the samples, smaller first; -1 if not among them."""
    place = {name: i for i, name in enumerate(people["sample"])}
    a, b = (
        np.array([place.get(name, -1) for name in listed[column]], np.int64)
        for column in ("sample_a", "sample_b")
    )
    return np.minimum(a, b), np.maximum(a, b)


def _is_listed(rows, columns, listed: pd.DataFrame, people: pd.DataFrame) -> np.ndarray:
    known = set(zip(*(part.tolist() for part in _positions(listed, people)), strict=True))
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return np.array([pair in known for pair in pairs], bool)


def _with_listed(rows, columns, values, listed, people, found):
    """The pairs together with those of KING-robust, and which of them are one person."""
    a, b = _positions(listed, people)
    there = a >= 0
    a, b, same = a[there], b[there], (listed.relation == SAME).to_numpy()[there]
    close = dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), values, strict=True))
    for i, j, value in zip(a.tolist(), b.tolist(), found.pairs.of(a, b).tolist(), strict=True):
        close.setdefault((i, j), value)
    pairs = np.array(sorted(close), np.int64).reshape(-1, 2)
    twins = set(zip(a[same].tolist(), b[same].tolist(), strict=True))
    return (
        pairs[:, 0],
        pairs[:, 1],
        np.array([close[i, j] for i, j in pairs.tolist()], np.float64),
        np.array([(i, j) in twins for i, j in pairs.tolist()], bool),
    )


def _pair_table(
    people: pd.DataFrame,
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    counts: PairCounts,
    same: np.ndarray,
    least: np.ndarray,
) -> pd.DataFrame:
    labels = pair_labels(values, same, least)
    name, cohort = people["sample"].to_numpy(), people.cohort.to_numpy()
    parts = [name[rows], name[columns], cohort[rows], cohort[columns], counts.sites]
    parts += [values, king_robust(counts.counts), counts.k0, labels]
    return pd.DataFrame(dict(zip(PAIRS, parts, strict=True)))


def pair_labels(values: np.ndarray, same: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Labels of pairs by PC-Relate: the same person, related, or distant.

    Parameters
    ----------
    values : float64 array
        Kinship of the pairs.
    same : bool array
        Pairs who are one person by their genotypes.
    least : float64 array
        Kinship that is not reached by chance; below, people are distant.
    """
    close = values >= np.maximum(least, THIRD)
    return np.select([same, close], [SAME, RELATED], "distant")


def _strangers(found: Kinships, sizes: pd.Series) -> dict[str, float]:
    """Median kinship of the first STRANGERS of each cohort: 0 unless the axes miss its ancestry."""
    medians = {}
    for cohort, end, size in zip(sizes.index, np.cumsum(sizes), sizes, strict=True):
        if size > 1:
            m = min(size, STRANGERS)
            above = found.pairs.block(end - size, end - size + m)[np.triu_indices(m, 1)]
            medians[cohort] = float(np.nanmedian(above)) if np.isfinite(above).any() else 0.0
    return medians
