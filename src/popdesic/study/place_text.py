"""What `popdesic place` says: numbers and what they mean, in plain sentences."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ..relatives.kinship import UNTOLD

#: Nearest people, components and axes of a map that are printed; the files have all.
SHOWN, AXES = 5, 4
#: Relation of a pair below the limit.
UNDETERMINED = "undetermined"


def describe_place(about: dict, table: pd.DataFrame, out: Path) -> str:
    """The text for the terminal.

    Parameters
    ----------
    about, table
        What `place.place_sample` writes.
    out : Path
        Where it is.
    """
    paragraphs = [
        f"Sample '{about['sample']}' of {about['file']}, placed among {about['people']} samples.",
        _sites(about["sites"]),
        _nearest(about, table),
        _relatives(about, table),
        _communities(about["communities"]),
        _maps(about),
        *about["remarks"],
        f"All numbers: {out / 'place.json'}; nearest samples and relatives: {out / 'place.tsv'}.",
    ]
    return "\n\n".join(filter(None, paragraphs))


def _sites(sites: dict) -> str:
    heterozygous = ""
    if sites["heterozygosity"] is not None:
        heterozygous = (
            f"{sites['heterozygosity']:.4f} of the called genotypes are heterozygous "
            f"({sites['expected_heterozygosity']:.4f} expected from the panel's frequencies). "
        )
    return (
        f"Sites: {sites['found']} of the panel's {sites['panel_sites']} sites are in the file "
        f"({sites['share_present']:.1%}), {sites['call_rate']:.1%} of them called. "
        f"{heterozygous}Allele frequencies of this sample differ from the panel's by "
        f"{sites['af_difference']:.4f} on average ({sites['expected_af_difference']:.4f} expected "
        "of a sample from the population of the founders as a whole)."
    )


def _nearest(about: dict, table: pd.DataFrame) -> str:
    lines = [
        f"Nearest samples ({about['metric']} distance; the median to everyone is "
        f"{_number(about['median_distance'])}):"
    ]
    for row in table.head(SHOWN).itertuples():
        label = f", {row.population}" if "population" in table and row.population != "NA" else ""
        lines.append(f"  {row.rank}. {row.sample} ({row.cohort}{label}): {_number(row.distance)}")
    return "\n".join(lines)


def _relatives(about: dict, table: pd.DataFrame) -> str:
    if about["relatives"] is None:
        return (
            "Relatives: not judged, because the study has not measured kinship "
            "(compare.analyses without kinship)."
        )
    limit = about["kinship_limit"]
    told = "too few sites for any but duplicates"
    if limit:
        told = f"limit: a kinship of {limit:.4f}"
    untold = [
        f"Kinship does not hold in cohort {cohort}, so {n} of its samples above the limit are not "
        "listed."
        for cohort, n in about["untold"].items()
    ]
    if not about["relatives"]:
        return " ".join([f"Relatives: none ({told}; KING-robust).", *untold])
    lines = [f"Relatives ({about['relatives']}; {told}; KING-robust):"]
    hidden = (table.relation == UNDETERMINED) | table.relation.str.startswith(UNTOLD)
    close = table[~hidden].sort_values("kinship", ascending=False)
    lines += [
        f"  {row.sample} ({row.cohort}): {row.relation}, kinship {_number(row.kinship)}"
        for row in close.itertuples()
    ]
    return "\n".join([*lines, *untold])


def _communities(found: dict | None) -> str:
    if not found or not found["nearest"]:
        return ""
    parts = [f"{n} in community {name}" for name, n in found["counts"].items()]
    return (
        f"Communities: of the {found['nearest']} nearest samples, {', '.join(parts)}. Communities "
        "are groups of this study's samples by their genotypes; they are not ancestries."
    )


def _maps(about: dict) -> str:
    if not about["pca"]:
        return ""
    shown = list(about["pca"].items())[:AXES]
    lines = [
        "Place on the axes of the founders: "
        + ", ".join(f"{name} {_number(value)}" for name, value in shown)
        + "."
    ]
    for place in about["maps"]:
        axes = [(k, v) for k, v in place.items() if isinstance(v, float)][:2]
        how = (
            "projected as a newcomer"
            if place["projected"]
            else "weighted mean of the nearest samples, because this map was fitted to everyone"
        )
        where = ", ".join(f"{name} {_number(value)}" for name, value in axes)
        lines.append(
            f"  {place['method']} ({place['space']}, alpha {place['alpha']}): {where} ({how})."
        )
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "NA" if value is None or value != value else f"{value:.5g}"
