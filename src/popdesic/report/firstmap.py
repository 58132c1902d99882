"""Which map the report shows first, by the table of map quality, and why, in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pandas as pd

from ..core.tables import read_table
from ..maps.agreement import ERROR
from .outcome import UNSTABLE_SHARE, Outcome
from .pagedata import is_repeated, map_title
from .words import describe_way, percent

#: Maps with scores that differ by less count as equal: the simpler one is shown.
TIE = 0.005
#: Headings of the table; further columns keep their own names.
HEADINGS = {
    "against": "Compared with",
    "trustworthiness": "Trustworthiness",
    "continuity": "Continuity",
    "recall_5": "Recall of 5 nearest",
    "recall_15": "Recall of 15 nearest",
    "recall_50": "Recall of 50 nearest",
    "rank_correlation": "Rank correlation of distances",
    "silhouette": "Silhouette of the labels",
    "samples": "Samples compared",
    "instability": "Instability",
    "displacement": "Displacement",
}
#: Columns that the page shows at first; the others are shown on request.
MAIN = ("against", "trustworthiness", "continuity", "recall_15", "silhouette", "instability")
#: Stands before a standard error.
PLUS_MINUS = " ± "
AGAINST = {"distance": "plain distances", "geodesic": "own geodesics"}


@dataclass(frozen=True)
class ShownMap:
    """The map shown beside the PCA.

    Attributes
    ----------
    name : str
        Stem of its table; ``pca`` if no other map has coordinates.
    why : str
        One or two sentences.
    headings : list of str
    rows : list of list of str
        `embedding/quality.tsv`, with a map's title in place of its name, space and alpha.
    further : list of bool
        Whether a column is shown on request only.
    """

    name: str
    why: str
    headings: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)

    @property
    def further(self) -> list[bool]:
        shown = {"Map", *(HEADINGS[name] for name in MAIN)}
        return [heading not in shown for heading in self.headings]

    @property
    def sampled(self) -> bool:
        """Whether values are means over a sample, with standard errors."""
        return any(PLUS_MINUS in cell for row in self.rows for cell in row[1:])


def choose_map(outcome: Outcome, stems: list[str]) -> ShownMap:
    """The map that best preserves the neighbours of the plain distances.

    All maps are compared with the plain distances. A map's score is the mean of its
    trustworthiness (neighbours on the map are neighbours in the data) and continuity (neighbours in
    the data are neighbours on the map), as defined by Venna and Kaski (2001). Maps on which more
    than UNSTABLE_SHARE of the samples are unstable do not compete (`unstable_share`). Of the maps
    within TIE of the best, the first in the order of `stems` is chosen; if that is the PCA, the
    best other map is shown beside it.
    """
    drawn = [stem for stem in stems if stem != "pca" and not is_repeated(stem, outcome)]
    others = [stem for stem in drawn if unstable_share(stem, outcome) <= UNSTABLE_SHARE] or drawn
    path = outcome.folder / "embedding/quality.tsv"
    if not path.exists():
        return ShownMap(others[0] if others else "pca", "The quality of the maps was not measured.")
    table = read_table(path)
    table["stem"] = [_stem(row) for row in table.itertuples()]
    table = table[[not is_repeated(stem, outcome) for stem in table.stem]]
    headings, rows = _rows(table, outcome)
    shared = table[table.against == "distance"].drop_duplicates("stem").set_index("stem")
    kept = shared[["trustworthiness", "continuity"]].apply(pd.to_numeric, errors="coerce")
    scores = kept.mean(axis=1, skipna=False).dropna()
    known = [stem for stem in (*(["pca"] if "pca" in stems else []), *others) if stem in scores]
    if not known:
        name = others[0] if others else "pca"
        return ShownMap(
            name,
            "There are too few samples to measure trustworthiness and continuity.",
            headings,
            rows,
        )
    best = max(scores[stem] for stem in known)
    chosen = next(stem for stem in known if scores[stem] > best - TIE)
    left_out = [stem for stem in drawn if stem not in others]
    why = _why(chosen, known, scores, outcome, stable=bool(left_out))
    why += _unstable(left_out, scores, best, outcome)
    if chosen == "pca" and others:
        chosen = max((stem for stem in known if stem != "pca"), key=scores.get, default=others[0])
    return ShownMap(chosen, why, headings, rows)


def unstable_share(stem: str, outcome: Outcome) -> float:
    """Share of the samples that are unstable on a map.

    It is measured on UMAPs of geodesics. PCA and PCoA do not depend on chance: 0. Of the other
    maps of a space (UMAP of plain distances, densMAP, t-SNE) it is that of the space's worst UMAP.
    """
    method, _, rest = stem.partition(".")
    if method in ("pca", "pcoa", "pcoa_refit") or not rest:
        return 0.0
    for space, alpha in outcome.maps():
        if stem == f"umap.{space}.alpha{alpha}":
            return outcome.unstable_share(space, alpha)
    shares = [
        outcome.unstable_share(space, alpha)
        for space, alpha in outcome.maps()
        if space in rest.split(".")
    ]
    return max(shares, default=0.0)


def _unstable(stems: list[str], scores: pd.Series, best: float, outcome: Outcome) -> str:
    """A sentence on the best of the unstable maps, if it would have been chosen otherwise."""
    better = [stem for stem in stems if stem in scores and scores[stem] > best]
    if not better:
        return ""
    stem = max(better, key=scores.get)
    return (
        f" “{map_title(stem, outcome)}” ({scores[stem]:.3f}) is not shown first: on maps of its "
        f"kind {percent(unstable_share(stem, outcome), 0)} of the samples are unstable. With "
        "another seed, most of their neighbours are others."
    )


def _stem(row) -> str:
    if row.space == "-":
        return row.map
    return f"{row.map}.{row.space}" + ("" if row.alpha == "-" else f".alpha{row.alpha}")


def _why(chosen: str, known: list[str], scores: pd.Series, outcome: Outcome, stable: bool) -> str:
    """Why a map is shown first; `stable`: unstable maps do not compete."""
    title = map_title(chosen, outcome)
    which = "stable map" if stable else "map"
    if chosen == "pca":
        others = [stem for stem in known if stem != "pca"]
        text = (
            f"No other {which} preserves each sample’s nearest genetic neighbours better than the "
            f"PCA ({scores['pca']:.3f}) by more than {TIE:g}"
        )
        if others:
            second = max(others, key=lambda stem: scores[stem])
            text += f"; the best of the others is “{map_title(second, outcome)}” "
            text += f"({scores[second]:.3f})"
        return f"{text}. The score is the mean of trustworthiness and continuity."
    text = (
        f"Beside it, this page first shows “{title}”, the {which} that best preserves each "
        "sample’s nearest genetic neighbours. Its mean of trustworthiness and continuity is "
        f"{scores[chosen]:.3f}"
    )
    if "pca" in scores:
        text += f", that of the PCA {scores['pca']:.3f}"
    text += f". Maps within {TIE:g} of each other count as equal; of these, the simplest is shown."
    method, space, *_ = [*chosen.split("."), ""]
    twin = f"{method}.distance.{space}"
    twin = twin if twin in scores else f"{method}.distance"
    ways = {f"{s}.alpha{a}": describe_way(outcome.geodesics[s, a]) for s, a in outcome.maps()}
    is_plain = "plain distances" in ways.get(chosen.partition(".")[2], "")
    if twin in scores and twin != chosen and not is_plain:
        gain = scores[chosen] - scores[twin]
        text += f" The same method on the plain distances reaches {scores[twin]:.3f}: "
        if gain > TIE:
            text += "on these data, geodesics improve the map."
        elif gain < -TIE:
            text += "on these data, geodesics do not improve the map by this measure."
        else:
            text += "on these data, geodesics make practically no difference by this measure."
    return text


def _rows(table: pd.DataFrame, outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    shown = [
        name
        for name in table.columns
        if name not in ("map", "space", "alpha", "stem") and not name.endswith(ERROR)
    ]
    rows = []
    for row in table.to_dict("records"):
        cells = [
            AGAINST.get(row[c], row[c])
            if c == "against"
            else _short(row[c]) + _plus_minus(row.get(c + ERROR, "NA"))
            for c in shown
        ]
        rows.append([map_title(row["stem"], outcome), *cells])
    return ["Map", *(HEADINGS.get(c, c.replace("_", " ")) for c in shown)], rows


def _short(text: str) -> str:
    """A share with three decimals; whole numbers and words unchanged."""
    try:
        return f"{float(text):.3f}" if "." in text or "e" in text else text
    except ValueError:
        return text


def _plus_minus(error: str) -> str:
    """A standard error behind its value, rounded up to three decimals; none of all samples."""
    error = float(error) if error != "NA" else 0.0
    return f"{PLUS_MINUS}{math.ceil(1000 * error) / 1000:.3f}" if error > 0 else ""
