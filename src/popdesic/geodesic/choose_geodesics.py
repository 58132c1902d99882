"""The choice of geodesics for a study, from its unrelated founders alone: no arrival changes it."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from ..cohort.panel import load_panel
from ..cohort.site_alleles import read_cohorts
from ..components.pca import FEWEST
from ..core.files import read_json, write_json
from ..engine.select import cpu_backend
from ..io.bed import read_fam
from ..io.layers import Reader
from .held_out import SEED, genome_parts, weigh_ways
from .metrics import COMPONENTS, PLAIN, Choice, Evidence, Way, choose_way, name_of_way

#: People who judge: more would take longer and change little.
MOST_PEOPLE = 1_000
#: With fewer people or sites nothing is judged.
FEWEST_PEOPLE, FEWEST_SITES = 50, 100
#: Most components of the space `pcs` that are taken without being asked for.
MOST_COMPONENTS = 20


def choose_geodesics(
    prefixes: list[Path],
    axes: Path,
    about: Path,
    panel: Path,
    *,
    spaces: list[str],
    pcs: int | str,
    metric: str,
    out: Path,
    threads: int = 1,
) -> dict:
    """Choose graph, alpha and number of components of the geodesics of each space.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the founders' genotypes on the panel.
    axes, about : Path
        `axes.npz` and `axes.json` of `define_axes`: whose genotypes count, at which sites, and how
        many components are significant.
    spaces : list of str
        ``genotypes``, ``pcs``.
    pcs : int or 'auto'
        `geodesic.pcs`; a number is not changed.
    metric : str
        `distance.metric`, of the space ``genotypes``.
    out : Path
        JSON that is returned.

    Returns
    -------
    dict
        By space: `graph`, `neighbors`, `alpha` and `pcs` (None for genotypes) of the chosen way;
        `reason` (`metrics.Choice`, or ``too few`` people or sites) and a sentence, `why`;
        `rank_correlation` at held-out sites, `plain` that of plain distances of the same
        components, `best` that of the best geodesics of these, `agreement` of these geodesics with
        plain distances, and `chance`, the most that any way reaches after people changed places;
        `held_out`, the same of every way; `people`, `sites`, `seed`.
    """
    with np.load(axes) as found:
        rows, defining = found["sites"], set(found["samples"].tolist())
        held = int(found["k"])
    sites, _ = load_panel(panel, ["chrom", "pos"])
    sites = sites.iloc[rows]
    people = draw_people(defining)
    parts = genome_parts(sites)
    read = _reader(prefixes, people, rows)
    few = _too_few(len(people), len(sites), int(parts.max(initial=0)) + 1)
    significant = read_json(about)["significant"]
    evidence = Evidence({}, {}, {})
    if not few:
        evidence = weigh_ways(
            read,
            len(people),
            parts,
            cpu_backend(),
            components=components_to_try(pcs, significant, held) if "pcs" in spaces else (),
            metric=metric if "genotypes" in spaces else None,
            threads=threads,
        )
    chosen = {}
    for space in spaces:
        usual = default_components(pcs, significant, held) if space == "pcs" else None
        if few:
            choice = _record(replace(PLAIN, pcs=usual), evidence)
            choice |= {"reason": "too few", "why": few}
        else:
            choice = describe_choice(evidence.of(space), usual)
        chosen[space] = choice | {"people": len(people), "sites": len(sites), "seed": SEED}
    write_json(out, chosen)
    return chosen


def draw_people(names: set[str]) -> list[str]:
    """At most MOST_PEOPLE of these samples, sorted; the order and the cohorts play no role."""

    def lot(name: str) -> bytes:
        return hashlib.blake2b(f"{SEED} {name}".encode(), digest_size=16).digest()

    return sorted(sorted(names, key=lot)[:MOST_PEOPLE])


def _reader(prefixes: list[Path], people: list[str], rows: np.ndarray):
    """Reader of these people, in this order, at chosen sites of `rows`."""
    wanted = set(people)
    names = [read_fam(prefix)["sample"] for prefix in prefixes]
    keep = [own.isin(wanted).to_numpy() for own in names]
    given = [name for own, who in zip(names, keep, strict=True) for name in own[who]]
    order = np.argsort(np.array(given, str), kind="stable")

    def read(chosen: np.ndarray) -> Reader:
        whole, _ = read_cohorts(prefixes, rows[chosen], keep)
        return lambda first, last: np.take(whole(first, last), order, axis=1)

    return read


def _too_few(people: int, sites: int, parts: int) -> str:
    """Why nothing can be judged, or an empty string."""
    if people < FEWEST_PEOPLE:
        return (
            f"{people} unrelated founders are too few to compare ways to measure distances "
            f"(at least {FEWEST_PEOPLE}), so plain distances are taken."
        )
    if sites < FEWEST_SITES or parts < 2:
        return (
            f"{sites} sites are too few, or too close together, to hold half of them out "
            f"(at least {FEWEST_SITES}), so plain distances are taken."
        )
    return ""


def components_to_try(pcs: int | str, significant: int, held: int) -> list[int]:
    """Numbers of components that are compared; `held` is how many the PCA has."""
    if pcs != "auto":
        return [min(int(pcs), held)]
    numbers = {*COMPONENTS, min(max(significant, COMPONENTS[-1]), MOST_COMPONENTS)}
    return sorted({min(k, held) for k in numbers})


def default_components(pcs: int | str, significant: int, held: int) -> int:
    """Components where nothing can be judged: the significant ones, at least two."""
    if pcs != "auto":
        return min(int(pcs), held)
    return min(max(significant, FEWEST), MOST_COMPONENTS, held)


def describe_choice(evidence: Evidence, usual: int | None) -> dict:
    """The record of a choice, with the `usual` components where there is no evidence."""
    choice = choose_way(evidence)
    plain = replace(PLAIN, pcs=choice.way.pcs)
    found = {
        "rank_correlation": _rounded(evidence.held_out[choice.way]),
        "plain": _rounded(evidence.held_out[plain]),
        "best": _rounded(evidence.held_out[choice.best]),
        "agreement": _rounded(evidence.agreement[choice.best]),
        "chance": _rounded(max(evidence.chance.values())),
    }
    way = choice.way
    if choice.reason == "no evidence":
        way = replace(way, pcs=usual)
    return {
        **_record(way, evidence),
        **found,
        "reason": choice.reason,
        "why": _sentence(choice, found),
    }


def _record(way: Way, evidence: Evidence) -> dict:
    rows = [
        asdict(one)
        | {"rank_correlation": _rounded(value), "agreement": _rounded(evidence.agreement[one])}
        for one, value in evidence.held_out.items()
    ]
    empty = dict.fromkeys(("rank_correlation", "plain", "best", "agreement", "chance"))
    return asdict(way) | empty | {"held_out": rows}


def _sentence(choice: Choice, found: dict) -> str:
    plain, best = f"{found['plain']:.3f}", f"{found['best']:.3f}"
    bent = name_of_way(choice.best)
    if choice.reason == "no evidence":
        return (
            "Distances from one half of the sites say next to nothing about the other half "
            f"(rank correlation at most {max(found['plain'], found['best']):.3f}, by chance up to "
            f"{found['chance']:.3f}), so plain distances are taken."
        )
    if choice.reason == "same order":
        return (
            f"{bent.capitalize()} would order pairs as plain distances do (rank correlation "
            f"{found['agreement']:.3f}; with distances at held-out sites {best} and {plain})."
        )
    if choice.reason == "plain":
        return (
            f"Plain distances order pairs at held-out sites best (rank correlation {plain}; "
            f"{bent} {best})."
        )
    if found["best"] > found["plain"]:
        return (
            f"{bent.capitalize()} order pairs at held-out sites better than plain distances "
            f"(rank correlation {best} instead of {plain})."
        )
    return (
        f"{bent.capitalize()} order pairs at held-out sites practically as well as plain distances "
        f"(rank correlation {best} and {plain}), and where landscapes are known they do better."
    )


def _rounded(number: float) -> float:
    return round(number, 6)
