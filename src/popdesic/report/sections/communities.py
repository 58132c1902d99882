"""Section on the communities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ...communities.cline import LEAST_SPREAD
from ...communities.geodesics import HDBSCAN_SAMPLES
from ...communities.splits import MAX_P, MIN_DIP, MOST_IN_VALLEY
from ...core.files import read_json
from ...core.tables import read_table
from ..inline import describe_drawn
from ..registry import community_figures
from ..words import number
from .painting import painting_part

#: Most values of a label whose agreement with communities is on the page.
MOST_LABELS = 20


def community_section(
    results: Path, figures: Path, methods: list[str], min_cm: float | None = None
) -> dict[str, Any] | None:
    """Text, table and figures of the communities; None if `communities.methods` is empty.

    Parameters
    ----------
    min_cm : float, optional
        Shortest segment, if the block model has the graph of shared segments.

    Returns
    -------
    dict
        ``words``, ``missing`` (a sentence, or empty), ``splits`` and ``rows``: those of
        the tables of splits and of agreement, ``figures``: list of FigureText, ``painting``:
        groups by coancestry, or None.
    """
    about_path = results / "communities" / "communities.json"
    if not methods or not about_path.exists():
        return None
    about = read_json(about_path)
    rows = shown_agreement(read_table(results / "communities" / "agreement.tsv"), about)
    sizes = {"n_placed": number(about["samples"]), "n_communities": about["communities"]}
    return {
        "words": describe_structure(about) + _shared(about, min_cm),
        "missing": about.get("missing", ""),
        "splits": split_rows(about),
        "rows": rows,
        "figures": describe_drawn(community_figures(methods), figures, sizes),
        "painting": painting_part(results, figures, "painting" in methods),
    }


def shown_agreement(table: pd.DataFrame, about: dict[str, Any]) -> list[dict[str, str]]:
    """Rows of the table of agreement that the page shows.

    Left out are levels of the block model, finer communities that are the communities, and labels
    with more than MOST_LABELS values, such as ages. Labels that agree best come first.
    """
    partitions = ["community", "hdbscan"]
    if about["fine"] > about["communities"]:
        partitions.append("fine")
    few = pd.to_numeric(table.labels) <= MOST_LABELS
    table = table[few & table.partition.isin(partitions)].copy()
    scores = ["ari", "ami"]
    table[scores] = table[scores].apply(pd.to_numeric).round(3) + 0.0  # no minus before a zero
    best = table.groupby("label").ari.transform("max")
    rows = table.assign(best=best).sort_values("best", ascending=False, kind="stable")
    return [
        row | {s: f"{row[s]:.3f}" for s in scores}
        for row in rows.drop(columns="best").to_dict("records")
    ]


def split_rows(about: dict[str, Any]) -> list[dict[str, str]]:
    """Rows of the table of splits, deepest first of each components; none if nothing is split."""
    if about["structure"] != "discrete":
        return []
    among = {"all samples": about["splits"]}
    among |= {f"community {one['community']}": one["splits"] for one in about["within"]}
    return [
        {
            "components": components,
            "samples": number(split["samples"]),
            "halves": " + ".join(map(number, split["halves"])),
            "f_st": f"{split['f_st']:.4f}",
            "dip": f"{split['dip']:.3f}",
            "valley": f"{split['valley']:.2f}",
        }
        for components, splits in among.items()
        for split in sorted(splits, key=lambda split: -split["f_st"])
    ]


def describe_structure(about: dict[str, Any]) -> str:
    """What kind of structure there is, and on what evidence."""
    people, axes, used = number(about["samples"]), about["significant"], about["components"]
    components = f"principal component{'s' if axes > 1 else ''}"
    if about["structure"] == "one":
        return (
            f"No principal component is significant, so these {people} samples are shown as one "
            "community. Components are those of the founders: newcomers of other ancestry would "
            "not show." + _hdbscan(about)
        )
    gaps = about["splits"]
    if about["structure"] == "continuous":
        text = (
            f"{axes} {components} {'are' if axes > 1 else 'is'} significant, but the samples leave "
            f"no gap between groups{f' on the first {used}' if used < axes else ''}, and all are "
            f"shown as one community. {_spread(about['cline'])}"
        )
        if gaps:
            text += (
                f" The emptiest stretch between the best halves holds {gaps[0]['valley']:.2f} of "
                f"the samples beside it, with a dip of {gaps[0]['dip']:.3f} (p = "
                f"{gaps[0]['p']:.2g}). A split needs at most {MOST_IN_VALLEY:g}, at least "
                f"{MIN_DIP:g} and p < {MAX_P:g}."
            )
        return text + _hdbscan(about)
    weakest = min(gaps, key=lambda gap: gap["dip"])
    depths = [gap["f_st"] for gap in gaps]
    text = (
        f"{about['communities']} communities are separated by gaps between samples on the "
        f"{f'first {used} of {axes}' if used < axes else axes} significant {components}. "
        f"F_ST between the two halves of the deepest split is {max(depths):.3f}; each half pools "
        "several communities, so this is not the F_ST of two populations. Splits with an F_ST "
        f"below {about['coarse_f_st']:.3f} do not count here"
    )
    if about["fine"] > about["communities"]:
        text += (
            ". Components of the samples of each community alone divide these into "
            f"{about['fine']} finer communities"
        )
    text += (
        f". The weakest gap has a dip of {weakest['dip']:.3f} (p < {max(weakest['p'], 1e-3):.2g}, "
        "Hartigan's test). Communities are numbered by size; labels were not used."
    )
    return text + _between(about) + _within(about) + _hdbscan(about)


def _spread(cline: dict[str, Any] | None) -> str:
    """Whether samples spread as along a gradient, with the numbers that decide."""
    if cline is None:
        return "There are too few samples to say whether they spread as along a gradient."
    shown = (
        "on the coordinate along which they differ most, the middle 80 % of them take up "
        f"{cline['spread']:.2f} of the range (a gradient: at least {LEAST_SPREAD:g})"
    )
    if cline["passed"]:
        return f"They spread as along a gradient, or with isolation by distance: {shown}."
    if cline["spread"] >= LEAST_SPREAD:
        return (
            "This does not show a gradient: there is a deep gap, but it holds too many samples for "
            "a split, as between groups that many admixed samples connect."
        )
    return (
        f"They do not spread as along a gradient: {shown}. Families, or a few samples of another "
        "ancestry, can look like this."
    )


def _between(about: dict[str, Any]) -> str:
    """How many samples lie between which communities; empty where none does."""
    if not about["between"]:
        return ""
    own = [
        f"{number(one['samples'])} between {listed(one['communities'])}" for one in about["between"]
    ]
    count = sum(one["samples"] for one in about["between"])
    lie = "sample lies" if count == 1 else "samples lie"
    return (
        f" {number(count)} {lie} between communities, as mixed ancestry would ({', '.join(own)}). "
        "Each is counted in one community, but belongs to none alone. Column “between” of "
        "results/communities/partition.tsv names the communities, and can colour the maps."
    )


def listed(items: Sequence[Any]) -> str:
    """As in 1, 2 and 3."""
    *most, last = map(str, items)
    return f"{', '.join(most)} and {last}" if most else last


def _within(about: dict[str, Any]) -> str:
    """Which communities hold finer groups or structure without a gap, and which show nothing."""
    words = {
        "continuous": "components computed there are significant, but leave no gap between groups",
        "discrete": "components computed there separate finer groups",
        "one": "no component computed there is significant",
        "unknown": "there are too few unrelated samples to look for structure",
    }
    text = ""
    for kind, what in words.items():
        own = [str(one["community"]) for one in about["within"] if one["structure"] == kind]
        if own:
            text += f" Within communit{'ies' if len(own) > 1 else 'y'} {listed(own)}, {what}."
    return text


def _shared(about: dict[str, Any], min_cm: float | None) -> str:
    """What the block model's graph is with `communities.space: ibd`; empty otherwise."""
    if min_cm is None or about.get("missing"):
        return ""
    return (
        " The levels of the block model are not from these components: they group samples that "
        f"share segments of identity by descent of at least {min_cm:g} cM with the same others, "
        "weighted by the logarithm of the total length. Close relatives can form groups of their "
        "own. "
        "Communities, HDBSCAN and the distances of the heatmap do not use the segments."
    )


def _hdbscan(about: dict[str, Any]) -> str:
    """What density clustering says of the same samples; empty if it was not asked for."""
    if "hdbscan" not in about:
        return ""
    if about["hdbscan"] is None:
        return (
            " HDBSCAN is left out: it needs the matrix of all pairs, of at most "
            f"{number(HDBSCAN_SAMPLES)} samples."
        )
    if not about["hdbscan"]:
        return " HDBSCAN (clustering by density) finds no cluster."
    found = about["hdbscan"]
    return f" HDBSCAN (clustering by density) finds {found} cluster{'s' if found > 1 else ''}."
