"""The page that biologists read: one self-contained HTML file."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
import yaml
from markupsafe import Markup

from ..distance.matrix import Distances
from ..io.files import atomic_path
from ..io.places import TEMPLATES
from ..io.schemas import load_schema
from ..io.version import __version__
from ..study.work import work_section
from .findings import find_problems
from .firstmap import choose_map
from .inline import describe_figures
from .outcome import Outcome, closest_pairs
from .pagedata import map_title, page_data, to_json
from .sections.checks import check_section
from .sections.communities import community_section
from .sections.comparisons import comparison_section, same_people
from .sections.epistasis import epistasis_files, epistasis_findings, epistasis_section
from .sections.imputation import beagle_findings, imputation_section
from .sections.relatives import amount_of_sites, relatives_findings
from .words import (
    METHODS,
    METRICS,
    MISSING,
    SPACES,
    STAGES,
    describe_count,
    describe_filter,
    number,
    percent,
    plural,
)

#: Rows of the table of closest pairs.
CLOSE_PAIRS = 10
#: Scripts of the page, in the order in which they need each other.
SCRIPTS = ("data.js", "map.js", "tables.js", "explorer.js")
PACKAGES = ("snakemake", "numpy", "scipy", "pandas", "numba", "umap-learn", "matplotlib")


def write_report(
    outcome: Outcome,
    distances: Distances,
    figures: Path,
    configuration: dict,
    out: Path,
    *,
    maps: Sequence[Path] | None = None,
    tables: Sequence[Path] = (),
) -> dict[str, int]:
    """Write the page.

    Parameters
    ----------
    figures : Path
        Folder of the figures' SVG and PNG files.
    configuration : dict
        The study's whole configuration, defaults filled in: the page prints it.
    out : Path
        `report/report.html`.
    maps : sequence of Path, optional
        Tables of coordinates for the interactive maps, by default the PCA and those of each
        geodesic.
    tables : sequence of Path
        Further tables with a column `sample`, whose columns can colour the maps.

    Returns
    -------
    dict
        Bytes of the page, its figures, maps and warnings.
    """
    close = closest_pairs(distances, list(outcome.samples["sample"]), CLOSE_PAIRS)
    color_by = configuration["report"]["color_by"]
    checks = check_section(outcome)
    findings = find_problems(
        outcome,
        close,
        same=same_people(outcome.folder, configuration["compare"]["analyses"]),
        color_by=color_by,
        number_type=configuration["geodesic"]["number"],
        min_sample_call_rate=configuration["qc"]["min_sample_call_rate"],
        min_call_rate=configuration["panel"]["min_call_rate"],
    )
    findings += [
        *checks.pop("findings"),
        *relatives_findings(outcome.folder, configuration["embedding"]["max_kinship"]),
        *beagle_findings(outcome.folder, configuration["impute"]),
    ]
    texts = describe_figures(outcome, figures)
    parts = dict.fromkeys(text.part for text in texts)
    sections = further_sections(outcome, figures, configuration)
    for name, _, content in sections:
        if name == "epistasis":
            findings += epistasis_findings(content)
    maps = default_maps(outcome) if maps is None else maps
    first = choose_map(outcome, [path.stem for path in maps])
    data = page_data(outcome, maps, tables, color_by=color_by, first=["pca", first.name])
    template = _environment().get_template("report.html.j2")
    page = template.render(
        title=configuration["report"]["title"],
        style=_text("page.css"),
        scripts=[_text(name) for name in SCRIPTS],
        data=to_json(data),
        first={"title": map_title(first.name, outcome)} | vars(first),
        summary=summarize(outcome, configuration),
        warnings=[finding for finding in findings if finding.level == "warning"],
        notes=[finding for finding in findings if finding.level == "note"],
        cohorts=cohort_rows(outcome),
        counts=count_tables(outcome),
        filters=filter_rows(outcome),
        checks=checks,
        geodesics=geodesic_rows(outcome),
        spaces=SPACES,
        close=close.to_dict("records"),
        parameters=parameter_rows(configuration),
        titles={text.name: text.title for text in texts},
        figures={part: [text for text in texts if text.part == part] for part in parts},
        sections=[(name, heading) for name, heading, _ in sections],
        files=file_rows(outcome),
        **{name: content for name, _, content in sections},
    )
    with atomic_path(out) as temporary:
        temporary.write_text(page, "utf-8")
    return {
        "bytes": len(page.encode()),
        "figures": len(texts),
        "maps": len(data["maps"]),
        "warnings": sum(finding.level == "warning" for finding in findings),
    }


def further_sections(
    outcome: Outcome, figures: Path, configuration: dict
) -> list[tuple[str, str, Any]]:
    """Sections between the maps and the parameters that this study has.

    Each is a name, its heading, and the content that `workflow/report/{name}.html.j2` gets under
    that name; a section without content is left out.
    """
    analyses = configuration.get("compare", {}).get("analyses", [])
    orders = sorted(configuration["epistasis"]["order"])
    methods = configuration["communities"]["methods"]
    sections = [
        ("communities", "Communities", community_section(outcome.folder, figures, methods)),
        ("imputation", "Imputation", imputation_section(outcome.folder, figures)),
        ("comparisons", "Comparisons", comparison_section(outcome.folder, figures, analyses)),
        ("epistasis", "Epistasis", epistasis_section(outcome.folder, figures, orders)),
        ("work", "Work", work_section(outcome.folder)),
    ]
    return [section for section in sections if section[2]]


def default_maps(outcome: Outcome) -> list[Path]:
    """Tables of the PCA and of the maps of each geodesic."""
    methods = ("umap", "pcoa", *outcome.further)
    names = [f"{m}.{s}.alpha{a}" for m in methods for s, a in outcome.maps()]
    return [outcome.folder / "embedding" / f"{name}.tsv" for name in ("pca", *names)]


def _text(name: str) -> Markup:
    """A style sheet or script as it stands in the page."""
    return Markup((TEMPLATES / name).read_text("utf-8"))


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "number": number,
        "percent": percent,
        "amount_of_sites": amount_of_sites,
    }
    return environment


def software_versions() -> list[tuple[str, str]]:
    """Names and versions of what this page was made with, Popdesic first."""
    rows = [("popdesic", __version__)]
    for package in PACKAGES:
        try:
            rows.append((package, version(package)))
        except PackageNotFoundError:
            rows.append((package, "not installed"))
    return rows


def summarize(outcome: Outcome, configuration: dict) -> list[tuple[str, str]]:
    """Rows of the box at the top: what, and its value."""
    read, kept = len(outcome.qc), len(outcome.samples)
    founders, newcomers = len(outcome.founders), len(outcome.newcomers)
    sites = sorted(step.sites for step in outcome.steps if step.what == "founder")
    among = " to ".join(number(n) for n in dict.fromkeys([sites[0], sites[-1]])) if sites else "0"
    distance, geodesic = configuration["distance"], configuration["geodesic"]
    return [
        (
            "Cohorts",
            f"{number(founders + newcomers)}: {plural(founders, 'founder')}, "
            f"{plural(newcomers, 'newcomer')}",
        ),
        ("Samples", f"{number(kept)} analysed, {number(read - kept)} left out of {number(read)}"),
        (
            "Sites",
            f"{number(outcome.panel['n_sites'])} on the panel, from {among} in the founders' files",
        ),
        ("Panel digest", outcome.panel["digest"]),
        ("Distance", METRICS[distance["metric"]]),
        ("Missing genotypes", MISSING[distance["missing"]]),
        (
            "Geodesics",
            f"α = {', '.join(map(str, geodesic['alpha']))} on "
            f"{' and on '.join(SPACES[space] for space in geodesic['space'])}",
        ),
        ("Seeds", _seeds(configuration)),
        ("Software", ", ".join(f"{name} {release}" for name, release in software_versions())),
    ]


def _seeds(configuration: dict) -> str:
    """Every seed of the configuration by its stage; what they start gives the same bytes again."""
    seeds = [
        f"{stage}.seed {block['seed']}"
        for stage, block in configuration.items()
        if isinstance(block, dict) and "seed" in block
    ]
    return f"{', '.join(seeds)} (all else is free of chance)"


def cohort_rows(outcome: Outcome) -> list[dict[str, Any]]:
    """One row a cohort: samples, quality, and its distance from the panel."""
    rows = []
    for cohort in outcome.cohorts:
        table = outcome.qc[outcome.qc.cohort == cohort]
        kept = table[table.keep == "yes"]
        drift = outcome.drift.loc[cohort]
        rows.append(
            {
                "cohort": cohort,
                "role": "founder" if cohort in outcome.founders else "newcomer",
                "read": len(table),
                "kept": int((outcome.samples.cohort == cohort).sum()),
                "call_rate": float(kept.call_rate.median()),
                "heterozygosity": float(kept.heterozygosity.median()),
                "share_present": float(drift.share_present),
                "difference": _decimals(drift.mean_af_difference),
                "expected": _decimals(drift.expected_af_difference),
                "correlation": _decimals(drift.af_correlation),
            }
        )
    return rows


def _decimals(value: float) -> str:
    return "NA" if pd.isna(value) else f"{value:.3f}"


def count_tables(outcome: Outcome) -> list[dict[str, Any]]:
    """For each stage its counts by cohort, and the steps that took nothing anywhere."""
    tables = []
    for stage, title in STAGES.items():
        part = outcome.summary[outcome.summary.stage == stage]
        rows, empty = [], []
        for step in pd.unique(part.step):
            words, unit = describe_count(stage, step)
            by_cohort = part[part.step == step].set_index("cohort")["count"]
            counts = [int(by_cohort.get(cohort, 0)) for cohort in outcome.cohorts]
            if any(counts):
                rows.append({"words": words, "unit": unit, "counts": counts})
            else:
                words = words.removeprefix("dropped: ")
                empty.append(words[0].lower() + words[1:])
        tables.append({"stage": stage, "title": title, "rows": rows, "empty": empty})
    return tables


def filter_rows(outcome: Outcome) -> list[dict[str, Any]]:
    """Steps of the panel: sites left, and how many the step took."""
    rows, before = [], None
    for step in outcome.steps:
        kind = "left" if step.leaves else "source" if step.what == "founder" else "count"
        taken = None
        if kind == "left":
            taken = before - step.sites if before is not None else None
            before = step.sites
        elif kind == "source" and before is None:
            before = step.sites
        elif kind == "count" and not step.sites:
            continue
        words = describe_filter(step)
        rows.append({"words": words, "kind": kind, "count": step.sites, "taken": taken})
    return rows


def geodesic_rows(outcome: Outcome) -> list[dict[str, Any]]:
    """One row a geodesic distance."""
    rows = []
    for space, alpha in outcome.maps():
        about = outcome.geodesics[space, alpha]
        rows.append(
            {
                "space": space,
                "alpha": alpha,
                "value": f"{about['value']:g}",
                "indirect_pairs": about["indirect_pairs"],
                "indirect_share": about["indirect_share"],
                "founder_share": about["founder_indirect_share"],
                "stretch": f"{about['median_stretch_of_indirect']:.4g}",
                "unreachable": about["unreachable_pairs"],
                "computed": _way(about["record"]),
                "dtype": about["number"]["dtype"],
                "bound": f"{about['number']['error_bound']:.1e}"
                if about["number"]["error_bound"]
                else "exact",
            }
        )
    return rows


def _way(record: dict) -> str:
    """How a closure was computed, in words."""
    if not record["continued"]:
        return "from scratch"
    return f"{record['inserted']} inserted into {record['closed_before']}"


def parameter_rows(configuration: dict, schema: dict | None = None, prefix: str = "") -> list[dict]:
    """Every key of the configuration with its value, default and description."""
    schema = schema or load_schema("config")
    rows = []
    for key, about in schema["properties"].items():
        if key not in configuration:
            continue
        value = configuration[key]
        if about.get("type") == "object":
            rows += parameter_rows(value, about, f"{prefix}{key}.")
            continue
        rows.append(
            {
                "key": f"{prefix}{key}",
                "value": _value(value),
                "default": _value(about.get("default")),
                "changed": value != about.get("default"),
                "description": _code(about.get("description", "")),
            }
        )
    return rows


def _code(text: str) -> Markup:
    """Text with what stands between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text)))


def _value(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True)
    return text.removesuffix("...\n").strip()


def file_rows(outcome: Outcome) -> list[tuple[str, str]]:
    """Result files below `results/` and what is in them."""
    rows = [
        ("qc/summary.tsv", "Counts of every step, all cohorts"),
        ("qc/drift.tsv", "How far each cohort lies from the panel"),
    ]
    for cohort in outcome.cohorts:
        rows.append((f"qc/{cohort}.samples.tsv", f"Call rate and heterozygosity, {cohort}"))
        rows.append((f"qc/{cohort}.sites.tsv", f"Frequencies and Hardy-Weinberg tests, {cohort}"))
    rows += [
        ("panel/sites.tsv", "The panel"),
        ("distance/samples.tsv", "Order of the samples in all matrices"),
        ("distance/distance.tsv.gz", "Distance of every pair"),
        ("distance/distance.mdist", "Distance matrix in PLINK's format"),
        ("embedding/quality.tsv", "How well each map keeps the distances"),
        ("embedding/pca.tsv", "PCA scores"),
        ("embedding/instability.tsv", "How stable each sample's place on the UMAPs is"),
        ("communities/partition.tsv", "Community of every sample"),
        ("communities/agreement.tsv", "Agreement of communities and labels"),
        ("communities/tree.nwk", "Neighbour-joining tree"),
        ("compare/kinship.json", "What kinship and identity can tell apart on the panel"),
        ("compare/kinship.tsv", "Close pairs and their kinship"),
        ("compare/identity.tsv", "Best match of every sample"),
        ("compare/mixture.tsv", "Samples that hold all alleles of another one"),
        ("compare/ld.tsv.gz", "Pairs of sites in LD"),
        ("compare/prune.in", "Sites that LD pruning keeps"),
        *epistasis_files(),
    ]
    for space, alpha in outcome.maps():
        rows.append((f"geodesic/{space}/alpha{alpha}.npy", f"Geodesics, {space}, α = {alpha}"))
        for method in ("pcoa", "umap", *outcome.further):
            path = f"embedding/{method}.{space}.alpha{alpha}.tsv"
            rows.append((path, f"{METHODS[method]} coordinates, {space}, α = {alpha}"))
    return [row for row in rows if (outcome.folder / row[0]).exists()]
