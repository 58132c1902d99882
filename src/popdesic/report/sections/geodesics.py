"""Findings about the geodesics and about the maps made from them."""

from __future__ import annotations

from typing import Any

from ...components.tables import FEWEST, FEWEST_COMPONENTS, is_drawn
from ..findings import Finding
from ..outcome import UNSTABLE_SHARE, Outcome
from ..words import METHODS, SPACES, describe_way, join, number, percent, plural

#: A single duplicate can be a bridge between its twin and every other sample. Fewer indirect pairs
#: than this many times the number of samples, and a smaller share than FEW_SHARE, can therefore
#: result from a handful of duplicates.
FEW_BRIDGES = 5
FEW_SHARE = 0.05
#: Share of the variance on the first coordinate above which it alone makes a map.
DOMINANT = 0.9
#: Reasons of a choice (`geodesic.metrics.Choice`) by which plain distances serve.
PLAIN_SERVES = ("plain", "same order")
#: At most this share of the samples are outliers; more are a group.
MOST_OUTLIERS = 0.05


def geodesic_findings(outcome: Outcome) -> list[Finding]:
    """Choice of geodesics, unreachable pairs, approximations, shorter paths, few bridges, types."""
    found = [_choice(space, choice, outcome) for space, choice in outcome.choice.items()]
    floats: list[str] = []
    for space, alpha in outcome.maps():
        about = outcome.geodesics[space, alpha]
        name = f"{SPACES[space]}, {describe_way(about)}"
        if outcome.is_repeated(space, alpha):  # the same closure, listed under the number
            continue
        found += _computation(about, name) + _bridges(about, name, len(outcome.samples))
        if about["number"]["dtype"] == "float64" and not about["plain"]:
            floats.append(name)
    if floats:
        found.append(
            Finding(
                "note",
                "Number type",
                "Fixed-point numbers would have been too coarse, so 64-bit floating-point numbers "
                f"were used: {'; '.join(dict.fromkeys(floats))}.",
            )
        )
    return found


def _computation(about: dict, name: str) -> list[Finding]:
    """Pairs without a path, errors of approximate paths, effects of an insertion."""
    found = _unconnected(about, name) if about["graph"]["kind"] == "shared" else []
    if about["unreachable_pairs"] and not found:
        pairs = plural(about["unreachable_pairs"], "pair of samples has", "pairs of samples have")
        found.append(
            Finding(
                "warning",
                "Unreachable pairs",
                f"{pairs} no finite geodesic ({name}).",
            )
        )
    if about["approximate"]:
        error = about["approximate"]
        found.append(
            Finding(
                "warning",
                "Approximate geodesics",
                f"Paths were restricted to the {error['neighbors']} nearest neighbours of each "
                f"sample ({name}). In {error['checked_rows']} rows that were also computed "
                f"exactly, lengths are too long by {percent(error['median_excess'], 2)} (median) "
                f"and by at most {percent(error['largest_excess'], 2)}.",
            )
        )
    if rows := about.get("sampled_rows"):
        text = f"Shares of indirect pairs ({name}) are those of {plural(rows, 'founder')}."
        if about["graph"]["kind"] == "complete" and not about["plain"]:
            text += (
                " Paths run among the nearest neighbours of each sample and along the founders' "
                "minimum spanning tree, so lengths can be too long, never too short."
            )
        if about["short_lists"]:
            text += (
                f" {plural(about['short_lists'], 'sample')} may lack edges, because lists of "
                "neighbours end before the radius of the graph: lower neighbors."
            )
        found.append(Finding("note", "Geodesics among nearest neighbours", text))
    record = about["record"]
    if record.get("old_pairs_shortened"):
        found.append(
            Finding(
                "note",
                "Shorter paths through newcomers",
                f"{plural(record['inserted'], 'sample')} joined {record['closed_before']} existing "
                f"ones: {number(record['old_pairs_shortened'])} of {number(record['old_pairs'])} "
                f"existing pairs became closer, by {percent(record['median_shortening'], 2)} "
                f"(median) and by at most {percent(record['largest_shortening'], 2)} ({name}).",
            )
        )
    if about["number"]["rescaled"]:
        found.append(
            Finding(
                "note",
                "Scale",
                "A newcomer is more distant than the fixed-point scale of the founders' weights "
                f"allows, so the scale was set from all samples ({name}).",
            )
        )
    return found


def _unconnected(about: dict, name: str) -> list[Finding]:
    """People whom no chain of shared segments connects."""
    if not about["unreachable_pairs"]:
        return []
    pairs = about["unreachable_pairs"]
    text = (
        f"No chain of shared segments connects {plural(pairs, 'pair')} of samples ({name}); "
        f"{plural(about['alone'], 'sample')} share with nobody. Maps draw such pairs at least "
        f"{about['apart']:.0f} degrees apart, at random: their positions mean nothing."
    )
    return [Finding("note", "Unconnected samples", text)]


def _choice(space: str, choice: dict, outcome: Outcome) -> Finding:
    """What `auto` stands for in a space, and why."""
    text = f"{SPACES[space].capitalize()}: {choice['why']}"
    if "auto" in outcome.alphas:
        if choice["graph"] == "knn" or choice["alpha"] > 1:
            text += (
                " These geodesics order pairs differently: their rank correlation with plain "
                f"distances is {choice['agreement']:.3f}."
            )
        elif choice["reason"] in PLAIN_SERVES:
            text += f" Geodesics are {_compared(choice)}: plain distances are shown."
    if choice["pcs"] is not None:
        text += f" Distances are of {plural(choice['pcs'], 'component')}."
    return Finding("note", f"Choice of geodesics ({space})", text)


def plain_spaces(outcome: Outcome) -> set[str]:
    """Spaces in which the choice says that plain distances order pairs as well as geodesics."""
    reasons = {space: choice["reason"] for space, choice in outcome.choice.items()}
    return {space for space, reason in reasons.items() if reason in PLAIN_SERVES}


def needless_maps(outcome: Outcome) -> set[str]:
    """Maps of geodesics of a listed α where plain distances serve, by the stem of their files."""
    return {
        f"{method}.{space}.alpha{alpha}"
        for method in ("pcoa", "umap", *outcome.further)
        for space in plain_spaces(outcome)
        for alpha in outcome.alphas
        if alpha != "auto" and not outcome.geodesics[space, alpha]["plain"]
    }


def _compared(choice: dict) -> str:
    """How the best geodesics do beside plain distances, at held-out sites."""
    gain = round(choice["best"], 3) - round(choice["plain"], 3)
    if abs(gain) < 0.0005:
        return "neither better nor worse here"
    return f"{'better' if gain > 0 else 'worse'} by {abs(gain):.3f} here"


def _bridges(about: dict, name: str, n_samples: int) -> list[Finding]:
    """Geodesics that hardly differ from the plain distances."""
    if about["plain"]:
        return []
    if about["value"] == 1 and about["graph"]["kind"] == "complete":
        return []  # by the triangle inequality
    if about["indirect_pairs"] == 0:
        return [
            Finding(
                "note",
                "Plain distances",
                f"No pair is indirect ({name}): the geodesics are the plain distances to the "
                "power of α.",
            )
        ]
    if about["indirect_pairs"] < FEW_BRIDGES * n_samples and about["indirect_share"] < FEW_SHARE:
        return [
            Finding(
                "note",
                "Few bridges",
                f"Only {plural(about['indirect_pairs'], 'pair')} "
                f"({percent(about['indirect_share'], 2)}) are indirect ({name}). A few duplicates "
                "or close relatives are enough for this: each can connect its twin with up to "
                f"{number(max(n_samples - 2, 0))} other samples. Treat these geodesics as plain "
                "distances.",
            )
        ]
    return []


def map_findings(outcome: Outcome, communities: dict[str, Any] | None = None) -> list[Finding]:
    """Maps left out, maps of one coordinate, and UMAPs that depend on chance.

    `communities`: `communities/communities.json`, if there are any.
    """
    found = _undrawn(outcome)
    for space, alpha in outcome.maps():
        if outcome.is_repeated(space, alpha):
            continue
        variance = outcome.variance[f"pcoa.{space}.alpha{alpha}"]
        way = describe_way(outcome.geodesics[space, alpha])
        enough = len(outcome.samples) >= FEWEST
        if enough and variance and variance[0] > DOMINANT:
            words = f"One coordinate explains {percent(variance[0])} of the PCoA of the "
            words += f"{SPACES[space]} ({way})"
            name, gap = f"pcoa.{space}.alpha{alpha}", True
            if communities:
                gap = communities["structure"] == "discrete"
            found.append(_one_coordinate(outcome, name, words, gap))
    return found + _instability(outcome)


def _one_coordinate(outcome: Outcome, name: str, words: str, gap: bool) -> Finding:
    """A map of one coordinate: few outliers dominate it, or two groups separate.

    `gap`: whether one may separate groups.
    """
    place = outcome.embedding(name).PCo1.to_numpy()
    middle = (place.min() + place.max()) / 2
    fewer = min(int((place < middle).sum()), int((place >= middle).sum()))
    if fewer <= max(MOST_OUTLIERS * len(place), 1):
        verb = "dominates" if fewer == 1 else "dominate"
        return Finding(
            "warning",
            "Map dominated by outliers",
            f"{words}: {plural(fewer, 'distant sample')} {verb} the map, and all others lie on top "
            "of each other.",
        )
    if not gap:
        text = f"{words}, and no gap separates groups: read positions along it alone."
        return Finding("note", "Map of one coordinate", text)
    return Finding(
        "warning",
        "Map of one split",
        f"{words}: {number(fewer)} samples lie apart from the other "
        f"{number(len(place) - fewer)}. Differences within these two groups are hardly visible on "
        "this map.",
    )


def _undrawn(outcome: Outcome) -> list[Finding]:
    """Maps that were left out because too few samples or components define them."""
    folder, keys = outcome.folder / "embedding/coordinates", outcome.maps()
    undrawn = {
        method: {s for s, a in keys if not is_drawn(folder / f"{method}.{s}.alpha{a}.tsv")}
        for method in ("umap", *outcome.further)
    }
    found = []
    enough = outcome.samples.cohort.isin(outcome.founders).sum() >= FEWEST
    if enough and undrawn["umap"] == {"pcs"}:
        undrawn["umap"] = set()
        found.append(
            Finding(
                "note",
                "UMAP of few components",
                f"The UMAP of the {SPACES['pcs']} is left out: these are of fewer than "
                f"{FEWEST_COMPONENTS} components. The PCA shows them as they are; UMAP would bend "
                "them into rings and threads.",
            )
        )
    left_out = [METHODS[method] for method, spaces in undrawn.items() if spaces]
    if left_out:
        found.append(
            Finding(
                "warning",
                "Too few samples",
                f"{join(left_out)} {'is' if len(left_out) == 1 else 'are'} left out: a map of "
                f"neighbours needs at least {FEWEST} samples that define it. Everything else was "
                "computed.",
            )
        )
    return found


def _instability(outcome: Outcome) -> list[Finding]:
    if outcome.instability is None:
        return []
    unstable = []
    for space, alpha in outcome.maps():
        share = outcome.unstable_share(space, alpha)
        if share > UNSTABLE_SHARE and not outcome.is_repeated(space, alpha):
            way = describe_way(outcome.geodesics[space, alpha])
            unstable.append(f"{SPACES[space]}, {way} ({percent(share, 0)})")
    if not unstable:
        return []
    return [
        Finding(
            "warning",
            "Unstable maps",
            "The UMAP depends on the seed and the number of neighbours for "
            f"{join(unstable)}. In brackets: share of the samples with more than half of their "
            "nearest neighbours replaced when these are changed. Groups on such a map can be real, "
            "but which samples lie side by side within them is chance.",
        )
    ]
