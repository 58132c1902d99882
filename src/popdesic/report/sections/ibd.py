"""Section on segments of identity by descent: pairs that share most, and what was searched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ...cohort.map_rates import rate_words
from ...core.files import read_json
from ...core.tables import read_table
from ...ibd.definition import LD_CM, MOST_R2
from ...ibd.genotype_errors import LEAST_RATE
from ...ibd.verdict import DISTANT, relation_by_pair, surely_close
from ...ibd.windows import FEWEST_SAMPLES
from ..findings import Finding
from ..inline import describe_drawn
from ..kin_verdict import judged_relatives
from ..registry import ibd_figures
from ..words import join, number, percent, plural

#: Most pairs of the table on the page; the file has all.
MOST_PAIRS = 20


def ibd_section(results: Path, figures: Path, enabled: bool) -> dict[str, Any] | None:
    """Text, table of the closest pairs and figure; None if segments were not sought.

    Returns
    -------
    dict
        ``words`` and ``notes`` (lists of sentences), ``rows`` (at most MOST_PAIRS) and ``n`` of the
        table of pairs, ``figures``: list of FigureText; ``haploid``: whether the samples are.
    """
    path = results / "ibd/summary.json"
    if not enabled or not path.exists():
        return None
    about = read_json(path)
    if reason := about.get("not_searched"):
        return {"words": [_unsought(reason)], "notes": [], "rows": [], "n": 0, "figures": []}
    pairs = read_table(results / "ibd/pairs.tsv")
    if about.get("ploidy") == 1:
        return {
            "haploid": True,
            "words": _words(about) + _fractions(about),
            "notes": _haploid_notes(about),
            "rows": [_haploid_row(row) for row in pairs.head(MOST_PAIRS).to_dict("records")],
            "n": len(pairs),
            "figures": [],
        }
    table, judged = judged_relatives(results) or (None, {"tells": False})
    relations = relation_by_pair(table)
    sizes = {
        "n_ibd_pairs": number(about["pairs_with_segments"]),
        "n_ibd_segments": number(about["segments"]),
        "n_ibd_close": close_words(table, judged),
    }
    return {
        "haploid": False,
        "words": _words(about),
        "notes": _notes(about),
        "rows": [_row(row, relations) for row in pairs.head(MOST_PAIRS).to_dict("records")],
        "n": len(pairs),
        "figures": describe_drawn(ibd_figures(True), figures, sizes),
    }


def ibd_findings(results: Path, enabled: bool) -> list[Finding]:
    """Why segments were not sought on this panel, where they were asked for."""
    path = results / "ibd/summary.json"
    reason = read_json(path).get("not_searched") if enabled and path.exists() else ""
    return [Finding("warning", "No IBD segments", _unsought(reason))] if reason else []


def _unsought(reason: str) -> str:
    """The sentence on a panel on which no segment can be found."""
    return f"No segments of IBD were sought: {reason.removeprefix('ibd: ')}"


def _words(about: dict[str, Any]) -> list[str]:
    people = about["samples"]
    least = about["limits"]["min_cm"]
    return [
        f"Of {number(people * (people - 1) // 2)} pairs of samples, "
        f"{number(about['pairs_with_segments'])} share {plural(about['segments'], 'IBD segment')} "
        f"of at least {least:g} cM."
    ]


def error_words(about: dict[str, Any]) -> list[str]:
    """What was measured of genotyping errors; nothing where the configuration states their rate."""
    errors = about["errors"]
    if errors is None:
        return []
    rate = percent(about["limits"]["error_rate"], 1)
    if errors["rate"]:
        least = errors["rate"] <= LEAST_RATE
        return [
            f"{rate}{' or fewer' if least else ''} of the founders' genotypes are wrong. So tell "
            f"{number(errors['contradictions'])} contradictions among {number(errors['called'])} "
            f"compared genotypes inside {plural(errors['segments'], 'long segment')}; most errors "
            "contradict nothing."
        ]
    return [
        f"{rate} of the genotypes are taken to be wrong: founders share too few long segments to "
        "measure it (error_rate). If more are wrong, segments are missed."
    ]


def close_words(table: pd.DataFrame | None, about: dict[str, Any]) -> str:
    """How many pairs are surely close relatives, or that it cannot be told."""
    if not about["tells"]:
        return "degrees withheld, genome too short"
    sure = plural(len(surely_close(table)), "pair")
    return f"{sure} with the whole interval within the third degree"


def _row(row: dict[str, str], relations: dict[frozenset[str], str]) -> dict[str, str]:
    """A pair with its lengths to 0.1 cM, its kinship to three decimals, and the verdict on it."""
    lengths = {name: f"{float(row[name]):.1f}" for name in ("total_cM", "longest_cM", "ibd2_cM")}
    relation = relations.get(frozenset((row["sample1"], row["sample2"])), DISTANT)
    return row | lengths | {"kinship": f"{float(row['kinship']):.3f}", "relation": relation}


def _fractions(about: dict[str, Any]) -> list[str]:
    """What the fractions of haploids mean."""
    if not about["pairs_fitted"]:
        return ["No pair has enough sites."]
    return [
        f"Over {plural(about['pairs_fitted'], 'pair')} a mean fraction of "
        f"{about['mean_fraction']:.3f} of the genome is identical by descent. The fraction is 1 "
        "for clones, about 0.5 for a parent and its progeny or for siblings of one cross, and near "
        "0 for strangers."
    ]


def _haploid_notes(about: dict[str, Any]) -> list[str]:
    rate = about["limits"]["error_rate"]
    notes = [
        f"{number(about['used'])} of {number(about['sites'])} sites ({about['genome_cm']:.0f} cM) "
        f"were used: no two within {LD_CM:g} cM have an r² above {MOST_R2:g}, because sites that "
        "predict each other look like old common ancestors. The shortest segment allowed has a "
        f"mean LOD of {about['lod_of_shortest']:.0f}.",
        "Allele frequencies are those of all founders. So samples of one of several populations "
        "that differ much look related.",
    ]
    if about["called"]:
        notes.append(
            f"Inside the segments {percent(about['differ'] / about['called'], 2)} of the alleles "
            f"differ. The error rate of {percent(rate, 2)} (error_rate) explains "
            f"{percent(2 * rate, 2)}."
        )
    return notes + _common_notes(about)


def _haploid_row(row: dict[str, str]) -> dict[str, str]:
    """A pair of haploids, its numbers rounded."""
    digits = {"total_cM": 1, "longest_cM": 1, "fraction": 3, "generations": 1, "LOD": 0}
    # 0.0 is added so that no number is shown as -0.
    rounded = {name: round(float(row[name]), places) + 0.0 for name, places in digits.items()}
    return row | {name: f"{value:.{digits[name]}f}" for name, value in rounded.items()}


def _notes(about: dict[str, Any]) -> list[str]:
    used = about["used"]
    notes = [
        f"{number(used)} of {number(about['sites'])} sites ({about['genome_cm']:.0f} cM, of which "
        f"{about['searched_cm']:.0f} on contigs that can hold a segment) were searched in windows "
        f"of {about['window_sites']} sites. The shortest segment allowed has a mean LOD of "
        f"{about['lod_of_shortest']:.0f}."
    ]
    notes += error_words(about) + _common_notes(about)
    if count := about["sites_in_regions"]:
        share = percent(count / about["sites"], 1)
        notes.append(f"Regions of long-range LD were left out ({share} of the sites).")
    if regions := about["shared_too_often"]:
        places = [f"{name}:{first / 1e6:.1f}-{last / 1e6:.1f} Mb" for name, first, last in regions]
        notes.append(f"Regions in which too many founders share were left out: {join(places)}.")
    return notes


def _common_notes(about: dict[str, Any]) -> list[str]:
    notes = []
    if about["founders"] < FEWEST_SAMPLES:
        notes.append(
            f"Segments may have been missed: with frequencies from {about['founders']} founders, "
            f"what they share looks common. At least {FEWEST_SAMPLES} founders are needed."
        )
    if words := rate_words(about["map"]):
        notes.append(words)
    if names := about["haploid_contigs"]:
        what = "do not recombine" if about.get("ploidy") == 1 else "may be haploid"
        notes.append(f"Contigs that {what} were left out: {join(names)}.")
    return notes
