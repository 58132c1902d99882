"""The page that biologists read: one self-contained HTML file."""

from __future__ import annotations

import base64
import html
import re
import tomllib
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
import yaml
from markupsafe import Markup

from .findings import find_problems
from .outcome import Distances, Outcome, closest_pairs
from .sheets import load_schema
from .store import atomic_path
from .words import (
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

#: Figures whose SVG is larger than this enter the page as PNG.
MAX_INLINE_BYTES = 400_000
#: Width of a figure on the page for each inch on paper.
REM_PER_INCH = 8.3
#: Rows of the table of closest pairs.
CLOSE_PAIRS = 10
PACKAGES = ("snakemake", "numpy", "scipy", "pandas", "numba", "umap-learn", "matplotlib")
#: The default one has no prefix, so that the elements read as they do in HTML.
_NAMESPACES = {"": "http://www.w3.org/2000/svg", "xlink": "http://www.w3.org/1999/xlink"}
_TEMPLATES = Path(__file__).parents[2] / "report"
_WORKFLOW = Path(__file__).parents[3]


@dataclass(frozen=True)
class FigureText:
    """A figure on the page.

    Attributes
    ----------
    name : str
        Stem of its files.
    title : str
    shows, read, limits : str
        Paragraphs of the caption, plain text.
    sizes : str
        Numbers of samples and sites behind it.
    body : str
        SVG or IMG element; empty where `same_as` is set.
    same_as : str
        Name of the figure that shows the same.
    """

    name: str
    title: str
    shows: str
    read: str
    limits: str
    sizes: str
    body: str
    same_as: str = ""


def write_report(
    outcome: Outcome, distances: Distances, figures: Path, configuration: dict, out: Path
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

    Returns
    -------
    dict
        Bytes of the page, its figures and warnings.
    """
    close = closest_pairs(distances, list(outcome.samples["sample"]), CLOSE_PAIRS)
    findings = find_problems(
        outcome,
        close,
        color_by=configuration["report"]["color_by"],
        number_type=configuration["geodesic"]["number"],
        min_sample_call_rate=configuration["qc"]["min_sample_call_rate"],
        min_call_rate=configuration["panel"]["min_call_rate"],
    )
    texts = describe_figures(outcome, figures)
    page = _environment().get_template("report.html.j2").render(
        title=configuration["report"]["title"],
        summary=summarize(outcome, configuration),
        warnings=[finding for finding in findings if finding.level == "warning"],
        notes=[finding for finding in findings if finding.level == "note"],
        cohorts=cohort_rows(outcome),
        counts=count_tables(outcome),
        filters=filter_rows(outcome),
        geodesics=geodesic_rows(outcome),
        close=close.to_dict("records"),
        parameters=parameter_rows(configuration),
        figures={text.name: text for text in texts},
        maps=[figure for figure in texts if figure.name.startswith("umap.")],
        coordinates=[figure for figure in texts if figure.name.startswith("pcoa.")],
        files=file_rows(outcome),
    )
    with atomic_path(out) as temporary:
        temporary.write_text(page, "utf-8")
    return {
        "bytes": len(page.encode()),
        "figures": len(texts),
        "warnings": sum(finding.level == "warning" for finding in findings),
    }


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": number, "percent": percent}
    return environment


def software_versions() -> list[tuple[str, str]]:
    """Names and versions of what this page was made with, Popdesic first."""
    about = tomllib.loads((_WORKFLOW / "pyproject.toml").read_text("utf-8"))
    rows = [("popdesic", about["project"]["version"])]
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
    sites = sorted(n for s, n in outcome.panel["steps"].items() if s.startswith("sites of founder"))
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
        ("Seed", f"{configuration['embedding']['seed']} (UMAP; all else is free of chance)"),
        ("Software", ", ".join(f"{name} {release}" for name, release in software_versions())),
    ]


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
    for step, count in outcome.panel["steps"].items():
        words, kind = describe_filter(step)
        taken = None
        if kind == "left":
            taken = before - count if before is not None else None
            before = count
        elif kind == "source" and before is None:
            before = count
        elif kind == "count" and not count:
            continue
        rows.append({"words": words, "kind": kind, "count": count, "taken": taken})
    return rows


def geodesic_rows(outcome: Outcome) -> list[dict[str, Any]]:
    """One row a geodesic distance."""
    rows = []
    for space, alpha in outcome.maps():
        about = outcome.geodesics[space, alpha]
        rows.append(
            {
                "space": SPACES[space],
                "alpha": alpha,
                "value": f"{about['value']:g}",
                "indirect_pairs": about["indirect_pairs"],
                "indirect_share": about["indirect_share"],
                "founder_share": about["founder_indirect_share"],
                "stretch": f"{about['median_stretch_of_indirect']:.4g}",
                "unreachable": about["unreachable_pairs"],
                "dtype": about["number"]["dtype"],
                "bound": f"{about['number']['error_bound']:.1e}"
                if about["number"]["error_bound"]
                else "exact",
            }
        )
    return rows


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


def describe_figures(outcome: Outcome, folder: Path) -> list[FigureText]:
    """Title, caption and picture of every figure, in the page's order."""
    n_read, n = number(len(outcome.qc)), number(len(outcome.samples))
    n_sites = number(outcome.panel["n_sites"])
    n_pairs = len(outcome.samples) * (len(outcome.samples) - 1) // 2
    n_founders = number(int(outcome.samples.cohort.isin(outcome.founders).sum()))
    maps = f"{n} samples; axes of the PCA from {n_founders} founders and {n_sites} sites."
    plain = [
        ("filters", "Filters", f"{len(outcome.cohorts)} cohorts, {n_read} samples read."),
        ("samples", "Quality of the samples", f"{n_read} samples read, {n} analysed."),
        ("sites", "Sites of the panel", f"{n_sites} sites, {n_founders} founder samples."),
        ("distances", "Distances", f"{n} samples, {number(n_pairs)} pairs, {n_sites} sites."),
        ("alpha", "Choice of alpha", f"{n} samples, {number(n_pairs)} pairs."),
        ("pca", "PCA of the genotypes", maps),
        ("scree", "Variance explained", maps),
    ]
    texts = [_figure(folder, name, name, title, sizes) for name, title, sizes in plain]
    for method, title in (("pcoa", "PCoA"), ("umap", "UMAP")):
        for space, alpha in outcome.maps():
            value = f"{outcome.geodesics[space, alpha]['value']:g}"
            chosen = alpha == "auto"
            twin = f"{method}.{space}.alpha{value}" if chosen and value in outcome.alphas else ""
            heading = f"{title} of geodesics: {SPACES[space]}, α = {value}"
            if chosen:
                heading += " (chosen by auto)"
            name = f"{method}.{space}.alpha{alpha}"
            sizes = maps if method == "umap" else f"{n} samples, {number(n_pairs)} pairs."
            texts.append(_figure(folder, name, method, heading, sizes, twin))
    return texts


def _figure(
    folder: Path, name: str, caption: str, title: str, sizes: str, twin: str = ""
) -> FigureText:
    shows, read, limits = read_caption(caption)
    body = "" if twin else embed_figure(folder / name, f"{title}. {shows}")
    return FigureText(name, title, shows, read, limits, sizes, body, twin)


def read_caption(name: str) -> tuple[str, str, str]:
    """The three paragraphs of `workflow/report/{name}.rst`: what it shows, how to read it, limits.

    The same files are the captions of Snakemake's own report, so they hold plain text only.
    """
    text = (_TEMPLATES / f"{name}.rst").read_text("utf-8")
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]
    if len(paragraphs) != 3:
        raise ValueError(f"{name}.rst: three paragraphs are expected, found {len(paragraphs)}")
    return paragraphs[0], paragraphs[1], paragraphs[2]


def embed_figure(stem: Path, alt: str) -> Markup:
    """The figure as an element that needs no other file: SVG, or PNG where the SVG is large."""
    svg = Path(f"{stem}.svg")
    if svg.stat().st_size <= MAX_INLINE_BYTES:
        return Markup(inline_svg(svg.read_text("utf-8"), stem.name, alt))
    data = base64.b64encode(Path(f"{stem}.png").read_bytes()).decode()
    with open(svg, encoding="utf-8") as file:
        width = ElementTree.fromstring(file.read()).get("width")
    return Markup(
        f'<img alt="{html.escape(alt)}" style="{_width(width)}" '
        f'src="data:image/png;base64,{data}">'
    )


def _width(points: str) -> str:
    """Style that gives all figures letters of the same size; `points` as in 518.4pt."""
    return f"max-width:{float(points.removesuffix('pt')) / 72 * REM_PER_INCH:.1f}rem"


def inline_svg(text: str, name: str, alt: str) -> str:
    """An SVG file as an element of a page.

    Its identifiers get a prefix of their own, since those of two figures would clash on one page;
    metadata and the style sheet, which would leak into the page, are left out.
    """
    for prefix, space in _NAMESPACES.items():
        ElementTree.register_namespace(prefix, space)
    root = ElementTree.fromstring(text)
    own = re.sub(r"[^A-Za-z0-9]", "-", name) + "-"
    svg, link = (f"{{{space}}}" for space in _NAMESPACES.values())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{svg}metadata", f"{svg}style"):
                parent.remove(child)
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "id":
                element.set(key, own + value)
            elif key in ("href", f"{link}href") and value.startswith("#"):
                element.set(key, f"#{own}{value[1:]}")
            elif "url(#" in value:
                element.set(key, value.replace("url(#", f"url(#{own}"))
        # Line breaks between elements, not within text, only make the page larger.
        if element.tail and not element.tail.strip():
            element.tail = "\n"
    root.set("style", _width(root.get("width")))
    for key in ("width", "height"):  # the page decides; viewBox keeps the proportions
        del root.attrib[key]
    root.set("role", "img")
    root.set("aria-label", alt)
    return ElementTree.tostring(root, encoding="unicode")


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
        ("embedding/pca.tsv", "PCA scores"),
    ]
    for space, alpha in outcome.maps():
        rows.append((f"geodesic/{space}/alpha{alpha}.npy", f"Geodesics, {space}, α = {alpha}"))
        for method, words in (("pcoa", "PCoA"), ("umap", "UMAP")):
            path = f"embedding/{method}.{space}.alpha{alpha}.tsv"
            rows.append((path, f"{words} coordinates, {space}, α = {alpha}"))
    return [row for row in rows if (outcome.folder / row[0]).exists()]
