"""Section on the epistasis scans: tests, best hits, warnings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...core.files import read_json
from ...core.tables import read_table
from ...epistasis.options import LOCI_NAMES
from ...epistasis.p_values import p_of_hits
from ...epistasis.relatedness import kin_warnings, related_pairs
from ...epistasis.reorder import too_few_sites
from ...epistasis.scan_data import NAMES
from ...epistasis.scores import SCORES
from ...epistasis.single_sites import genomic_control, genomic_control_error
from ...epistasis.structure import strata_warnings, structure_warnings
from ..figures.epistasis import SIGNIFICANT, read_hits
from ..findings import Finding
from ..inline import describe_drawn
from ..registry import epistasis_figures, power_figures, site_scan_figures
from ..words import join, number
from .sets import p_text, set_section

#: Most rows of a table on the page; the files have all.
MOST_ROWS = 15
#: Odds ratios beyond this, or below its inverse, come from cells with nobody in them.
MOST_ODDS = 1000
#: Table of loci of each table of hits.
LOCI = {NAMES[order]: f"{name}.tsv" for order, name in LOCI_NAMES.items()}


def epistasis_section(
    results: Path,
    figures: Path,
    orders: list[int],
    score: str = SCORES[0],
    phenotype: str = "",
    *,
    sets: str | dict = "",
    several: bool = True,
    replicated: str = "none",
    kinship: bool = True,
) -> dict[str, Any] | None:
    """Tables and figures of the scans by `score`; None if there was none.

    Parameters
    ----------
    sets : str or dict
        `epistasis.sets`.
    several : bool
        Whether there are several cohorts, as of `set_section`.
    replicated : str
        `epistasis.replication`; if it is ``none``, a table of a former run may be there.
    kinship : bool
        Whether relatives are sought by KING-robust kinship, likewise.
    phenotype : str
        As in `figures.epistasis.draw_epistasis`.

    Returns
    -------
    dict
        ``id``, ``heading``, ``path``: of the section, and its folder; ``score``: as given;
        ``controls``, ``cases``, ``sites``: counts; ``warnings`` and ``relatives``: sentences;
        ``quantitative``: whether the phenotype is a number; ``main``: the scan of single sites;
        ``scans``: for each order its ``name``, ``tests``, their ``work`` (times samples),
        ``permutations``, ``significant`` hits by the p of their interaction and their
        ``significant_loci``, ``associated`` hits, those by
        ``permuted`` phenotypes, hits in ``cis``, ``loci`` and ``rows`` (at most MOST_ROWS each,
        formatted), ``lead`` (the first significant hit as such a row, or None), ``n_loci`` and
        ``figures`` (FigureText);
        ``power`` and ``refit``: rows, empty if not requested; ``power_figures``: FigureText;
        ``screen``: as a scan, or None; ``sets``: of `set_section`, or None.
    """
    folder = results / "epistasis" / phenotype
    if not (orders or sets) or not (folder / "plan.json").exists():
        return None
    plan = read_json(folder / "plan.json")
    samples = read_table(results / "reorder" / phenotype / "samples.tsv")
    cases = int((samples["class"] == "case").sum())
    section: dict[str, Any] = {
        "id": f"epistasis-{phenotype}" if phenotype else "epistasis",
        "heading": f"Epistasis: {phenotype}" if phenotype else "Epistasis",
        "path": f"results/epistasis/{phenotype}" if phenotype else "results/epistasis",
        "score": score,
        "controls": len(samples) - cases,
        "cases": cases,
        "sites": plan["sites"],
        "warnings": _warnings(folder / "structure.tsv", samples),
        "relatives": [],
        "most": MOST_ROWS,
        "scans": [],
        "screen": None,
        "sets": set_section(folder / "sets.tsv", figures, sets, phenotype, several),
    }
    if kinship:
        permuted = any(plan[NAMES[order]]["scans"] > 1 for order in orders)
        section["relatives"] = _relatives(results, samples, permuted)
    section["quantitative"] = bool((samples["class"] == "quantitative").all())
    section["main"] = _main_effects(folder / "sites.tsv", figures, orders, phenotype)
    sizes = {"n_controls": number(section["controls"]), "n_cases": number(cases)}
    for order in orders:
        name = NAMES[order]
        scan = _scan(folder, name, order, name, plan[name])
        scan["work"] = scan["tests"] * len(samples)
        of_scan = sizes | {"n_tests": number(scan["tests"]), "scan": name}
        scan["figures"] = describe_drawn(epistasis_figures([order], phenotype), figures, of_scan)
        section["scans"].append(scan)
    if 2 in orders and not section["quantitative"] and (folder / "screen.tsv").exists():
        section["screen"] = _scan(
            folder, "screen", 3, "triples", {"tests": plan["screen"]["tests"], "scans": 1}
        )
    for extra in ("power", "refit"):
        path = folder / f"{extra}.tsv"
        section[extra] = read_table(path).to_dict("records") if path.exists() else []
    section["power"] = [_rounded(row) for row in section["power"]]
    section["power_figures"] = describe_drawn(power_figures(True, phenotype), figures, sizes)
    whole = [row for row in section["refit"] if row["kind"] == "interaction"][:MOST_ROWS]
    section["refit"] = [_refit(row, _sites_of(section["scans"], row)) for row in whole]
    path = folder / "replication.tsv"
    shown = replicated != "none" and bool(orders) and path.exists()
    confirmed = read_table(path) if shown else pd.DataFrame()
    section["replication"] = [_replication(row) for _, row in confirmed.iterrows()]
    section["replicated"] = replicated if shown else ""
    return section


def _main_effects(
    path: Path, figures: Path, orders: list[int], phenotype: str
) -> dict[str, Any] | None:
    """Number of tested sites, how many are significant, λ and figures."""
    if not path.exists():
        return None
    columns = ["chi2", "p", "p_adjusted"]
    table = pd.read_csv(path, sep="\t", usecols=columns, na_values="NA")
    tested = int(table.p.notna().sum())
    error = genomic_control_error(tested)
    factor = f"{genomic_control(table.chi2.to_numpy(float)):.2f} ± {error:.2f}"
    sizes = {"n_tested_sites": number(tested), "lambda_gc": factor}
    return {
        "tested": tested,
        "significant": int((table.p_adjusted <= SIGNIFICANT).sum()),
        "lambda": factor,
        "figures": describe_drawn(site_scan_figures(orders, phenotype), figures, sizes),
    }


def _warnings(structure: Path, samples: pd.DataFrame) -> list[str]:
    return strata_warnings(samples) + (structure_warnings(structure) if structure.exists() else [])


def epistasis_findings(section: dict[str, Any] | None) -> list[Finding]:
    """Warnings about strata, relatives and too few sites, and notes about hits in cis."""
    if section is None:
        return []
    found = [
        Finding(
            "warning",
            f"{section['heading']}: strata",
            f"{sentence[0].upper()}{sentence[1:]}.",
        )
        for sentence in section["warnings"]
    ]
    few = [scan["order"] for scan in section["scans"] if section["sites"] < scan["order"]]
    found += [
        Finding(
            "warning",
            f"{section['heading']}: too few sites",
            f"{too_few_sites(section['sites'], order)}.",
        )
        for order in few
    ]
    found += [
        Finding("warning", f"{section['heading']}: relatives", f"{sentence}.")
        for sentence in section["relatives"]
    ]
    if cis := _shares(section["scans"], "cis"):
        found.append(
            Finding(
                "note",
                f"{section['heading']}: hits in cis",
                f"{join(cis)} have sites near each other or correlated. A causal site that is not "
                "typed can make its neighbours look like an interaction; these hits count by p "
                "given the best sites of their region.",
            )
        )
    if explained := _shares(section["scans"], "explained"):
        found.append(
            Finding(
                "note",
                f"{section['heading']}: explained by single sites",
                f"{join(explained)} are significant by their table alone. They are not, given the "
                "sites that explain the phenotype best. Imperfect tags of one locus look like an "
                "interaction, above all in families.",
            )
        )
    return found


def _shares(scans: list[dict[str, Any]], key: str) -> list[str]:
    """How many of the listed hits of each scan `key` counts; nothing of scans without any."""
    return [
        f"{number(scan[key])} of the {number(scan['hits'])} listed {scan['name']}"
        for scan in scans
        if scan[key]
    ]


def _relatives(results: Path, samples: pd.DataFrame, permutations: bool) -> list[str]:
    """What relatives in the scan mean for its p-values."""
    table = results / "compare" / "kinship.tsv"
    if not table.exists():
        return []
    relatives = related_pairs(samples["sample"].tolist(), read_table(table))
    return kin_warnings(relatives, len(samples), permutations)


def _scan(folder: Path, stem: str, order: int, name: str, plan: dict[str, int]) -> dict[str, Any]:
    """A scan's tables: `stem` is that of its file of hits."""
    hits = read_hits(folder / f"{stem}.tsv")
    permutations, tests = plan["scans"] - 1, plan["tests"]
    p = p_of_hits(hits, tests) if len(hits) else np.zeros(0)
    good = p <= SIGNIFICANT
    path = folder / LOCI.get(stem, "none")
    loci = read_table(path) if path.exists() else pd.DataFrame()
    rows = [
        _row(row, order, value, permutations, tests)
        for (_, row), value in zip(hits.head(MOST_ROWS).iterrows(), p, strict=False)
    ]
    first = int(good.argmax()) if good.any() else None
    return {
        "name": name,
        "order": order,
        "tests": tests,
        "permutations": permutations,
        "hits": len(hits),
        "lead": None
        if first is None
        else _row(hits.iloc[first], order, p[first], permutations, tests),
        "significant": int(good.sum()),
        "significant_loci": hits.locus[good].nunique() if "locus" in hits else 0,
        "associated": int((_column(hits, "p_association") <= SIGNIFICANT).sum()),
        "permuted": int((_column(hits, "p_permutation") <= SIGNIFICANT).sum()),
        "cis": int((hits.cis == "yes").sum()) if "cis" in hits else 0,
        "explained": int(((_column(hits, "p_interaction") <= SIGNIFICANT) & ~good).sum()),
        "rows": rows,
        "n_loci": len(loci),
        "loci": [_locus(row, order, tests) for _, row in loci.head(MOST_ROWS).iterrows()],
    }


def _column(hits: pd.DataFrame, name: str) -> pd.Series:
    return hits[name] if name in hits else pd.Series(np.nan, hits.index)


def _places(row: pd.Series, order: int) -> list[tuple[str, str]]:
    return [(row[f"id{k}"], f"{row[f'chrom{k}']}:{row[f'pos{k}']}") for k in range(1, order + 1)]


def _row(row: pd.Series, order: int, p: float, permutations: int, tests: int) -> dict[str, Any]:
    """A hit as text; `tests` of its scan, by which its p is multiplied if it has no own number."""
    return {
        "rank": row["rank"],
        "locus": row.get("locus", "NA"),
        "sites": _places(row, order),
        "score": f"{row['score']:.2f}",
        "main": ", ".join(f"{float(row[f'main{k}']):.1f}" for k in range(1, order + 1)),
        "gain": f"{float(row['interaction_gain']):.2f}",
        "lr_p": p_text(float(row["lr_p"])),
        "tests": number(round(float(row.get("tests", tests)))),
        "cis": row.get("cis", "NA"),
        "p": p_text(p),
        "association": p_text(float(row.get("p_association", np.nan))),
        "permuted": p_text(float(row.get("p_permutation", np.nan)), permutations),
    }


def _locus(row: pd.Series, order: int, tests: int) -> dict[str, Any]:
    """One row of the loci, with the lead's p as `p_of_hits` counts it."""
    p = float(p_of_hits(row.to_frame().T, tests)[0])
    spans = [int(row[f"end{k}"]) - int(row[f"start{k}"]) for k in range(1, order + 1)]
    r2 = pd.to_numeric(row["best_r2"], errors="coerce")
    return {
        "locus": row["locus"],
        "rank": row["rank"],
        "sites": _places(row, order),
        "hits": int(row["n_hits"]),
        "spans": ", ".join(f"{span / 1000:.0f} kb" if span else "one site" for span in spans),
        "r2": "NA" if pd.isna(r2) else f"{r2:.2f}",
        "cis": row.get("cis", "NA"),
        "lr_p": p_text(float(row["lr_p"])),
        "p": p_text(p),
    }


def _rounded(row: dict[str, str]) -> dict[str, str]:
    """A row of `power.tsv` with its heritability and its powers to three decimals."""
    shown = ("heritability", "power_interaction", "power_association")
    return row | {k: f"{float(row[k]):.3f}" for k in shown if row[k] != "NA"}


def odds_text(value: str | float) -> str:
    """An odds ratio for the page: rounded, and words where the data set no finite limit to it."""
    ratio = pd.to_numeric(value, errors="coerce")
    if pd.isna(ratio):
        return "NA"
    if not 1 / MOST_ODDS <= ratio <= MOST_ODDS:
        return "no upper limit" if ratio > 1 else "no lower limit"
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def _replication(row: pd.Series) -> dict[str, Any]:
    order = {name: order for order, name in NAMES.items()}[row["scan"]]
    return {
        "scan": row["scan"],
        "locus": row["locus"],
        "sites": ", ".join(name for name, _ in _places(row, order)),
        "people": f"{number(int(row['n_cases']))} / {number(int(row['n_controls']))}",
        "discovery": p_text(float(row["p_discovery"])),
        "p": p_text(float(row["p_replication"])),
        "cohorts": number(int(row["cohorts"])),
        "effect": _with_error(row["effect"], row["se"]),
        "p_effect": p_text(_number(row["p_effect"])),
        "p_q": p_text(_number(row["p_q"])),
    }


def _number(text: str) -> float:
    return float("nan") if text == "NA" else float(text)


def _with_error(value: str, error: str) -> str:
    return "NA" if value == "NA" else f"{float(value):.2f} ± {float(error):.2f}"


def _sites_of(scans: list[dict[str, Any]], row: dict[str, Any]) -> str:
    """Names of the sites of a row of refit.tsv; places of sites without a name."""
    for scan in scans:
        for hit in scan["rows"]:
            if (scan["name"], str(hit["rank"])) == (row["scan"], str(row["rank"])):
                return " × ".join(place if name == "." else name for name, place in hit["sites"])
    return row["term"]


def _refit(row: dict[str, Any], sites: str) -> dict[str, Any]:
    """A row of refit.tsv with the names of its sites and numbers rounded."""
    shown = dict(row) | {"sites": sites}
    for name in ("odds_ratio", "or_low", "or_high"):
        shown[name] = odds_text(row[name])
    if shown["odds_ratio"].startswith("no "):
        shown["odds_ratio"] = "not estimable"
    for name in ("p", "shape_p"):
        shown[name] = p_text(float(pd.to_numeric(row[name], errors="coerce")))
    se = float(pd.to_numeric(row["se"], errors="coerce"))
    shown["se"] = "NA" if pd.isna(se) else f"{se:.2f}" if se < 100 else "very large"
    return shown
