"""The page that biologists read: one self-contained HTML file."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from ..cohort.samples import SHEET_COHORT, departed_cohorts
from ..cohort.species import species_words
from ..components.tables import is_drawn
from ..core.files import atomic_path, read_json, write_json
from ..core.places import TEMPLATES
from ..core.version import __version__
from ..distance.landmarks import NearDistances
from ..distance.matrix import Distances
from ..study.batches import remark_on_batches
from ..study.work import work_section
from .advice import advice_on, rank_warnings
from .changes import changes_section, marked_samples, recall, report_facts
from .findings import Finding, find_problems, missing_calls
from .firstmap import choose_map
from .glossary import read_terms
from .inline import FigureText, describe_figures
from .kin_verdict import KING, judges_relatives
from .methods import describe_methods
from .multiqc import write_multiqc
from .outcome import Outcome, closest_pairs, found_communities
from .packs import elements, store_for
from .pagedata import closest_relatives, map_title, page_data, to_json
from .sections.checks import check_section
from .sections.communities import community_section
from .sections.comparisons import comparison_section, same_people
from .sections.epistasis import epistasis_findings, epistasis_section
from .sections.geodesics import geodesic_findings, map_findings, needless_maps, plain_spaces
from .sections.geography import geography_section
from .sections.ibd import ibd_findings, ibd_section
from .sections.imputation import beagle_findings, genotype_findings, imputation_section
from .sections.newcomers import newcomer_findings, newcomer_section
from .sections.population import population_section
from .sections.relatives import amount_of_sites, relatives_findings
from .story import Sentence, facts, tell
from .tables import (
    cohort_rows,
    file_rows,
    filter_rows,
    filter_tables,
    genome_words,
    geodesic_rows,
    not_run,
    parameter_rows,
    summarize,
)
from .words import SPACES, join, number, percent

log = logging.getLogger(__name__)

#: Rows of the table of closest pairs.
CLOSE_PAIRS = 10
#: Scripts of the page, each after those that it needs.
SCRIPTS = (
    *("data.js", "shapes.js", "points.js", "map.js", "tables.js", "samples.js"),
    *("explorer.js", "contents.js", "glossary.js"),
)
#: Topics of sentences that stand in the row of another topic: seven rows with one phenotype.
ROWS = {
    "Since the last report": "Data",
    "Artefacts": "Data",
    "Groups": "Structure",
    "Descent": "Relatives",
}


def write_report(
    outcome: Outcome,
    distances: Distances | NearDistances,
    figures: Path,
    configuration: dict,
    out: Path,
    *,
    maps: Sequence[Path] | None = None,
    tables: Sequence[Path] = (),
    missing: Path | None = None,
) -> dict[str, int]:
    """Write the page.

    Parameters
    ----------
    figures : Path
        Folder with the SVG and PNG files of the figures.
    configuration : dict
        The study's complete configuration including defaults; the page prints it.
    out : Path
        `report/report.html`; `summary.json` (`story.facts`), `methods.md` (`methods`) and
        `multiqc/` (`multiqc`) are written beside it.
    maps : sequence of Path, optional
        Tables of coordinates for the interactive maps; by default the PCA and the maps of each
        geodesic.
    tables : sequence of Path
        Further tables with a column `sample`; their columns can colour the maps.
    missing : Path, optional
        `qc/differential_missing.json`, if the study compares missing calls of groups.

    Returns
    -------
    dict
        Number of `bytes` of the page, and of its `figures`, `maps` and `warnings`.
    """
    close = closest_pairs(distances, list(outcome.samples["sample"]), CLOSE_PAIRS)
    color_by = configuration["report"]["color_by"]
    checks = check_section(outcome)
    segments = configuration.get("ibd", {})
    compared = configuration["compare"]["analyses"]
    texts = describe_figures(outcome, figures, segments.get("min_cm", 0))
    parts = dict.fromkeys(text.part for text in texts)
    needless = needless_maps(outcome)
    sections = further_sections(outcome, figures, configuration)
    findings = [
        *study_findings(outcome, close, configuration, checks.pop("findings")),
        *(missing_calls(read_json(missing)) if missing else []),
        *(f for part in scans_of(sections).values() for f in epistasis_findings(part)),
    ]
    maps = default_maps(outcome) if maps is None else maps
    maps = [path for path in maps if is_drawn(path)]
    warnings = rank_warnings(findings)
    for finding in warnings:  # the last line of a run counts these
        log.warning("%s: %s %s", finding.topic, finding.text, advice_on(finding))
    judges = judges_relatives(outcome.folder, compared)
    relatives = closest_relatives(outcome) if judges else {}
    about = facts(outcome, configuration, len(warnings))
    now = report_facts(outcome, about, scans_of(sections), configuration, relatives)
    before, remark = recall(out.parent, now)
    changes = changes_section(before, now, outcome)
    if remark:
        findings.append(Finding("note", "Since the last report", remark))
    story = tell(
        outcome,
        configuration,
        {name: content for name, _, content in sections},
        before and before["about"],
    )
    methods = describe_methods(outcome, configuration, [name for name, _, _ in sections])
    with atomic_path(out.parent / "methods.md") as temporary:
        temporary.write_text(methods.text(), "utf-8")
    told = [asdict(sentence) for sentence in story]
    write_json(out.parent / "summary.json", about | {"findings": told})
    write_multiqc(outcome, out.parent / "multiqc")
    first = choose_map(outcome, [path.stem for path in maps])
    store = store_for(len(outcome.samples))
    data = page_data(
        outcome,
        maps,
        tables,
        color_by=color_by,
        first=["pca", first.name],
        store=store,
        population=configuration["population"]["analyses"],
        relatives=relatives,
        changed=marked_samples(changes),
    )
    template = _environment().get_template("report.html.j2")
    page = template.render(
        title=configuration["report"]["title"],
        style=_text("page.css"),
        scripts=[_text(name) for name in SCRIPTS],
        data=to_json(data),
        packs=elements(store),
        left_out=data["left_out"],
        first={
            "title": map_title(first.name, outcome),
            "further": first.further,
            "sampled": first.sampled,
            **vars(first),
        },
        story=story_rows(story),
        summary=summarize(outcome, configuration),
        warnings=warnings,
        methods=methods,
        notes=[finding for finding in findings if finding.level == "note"],
        cohorts=cohort_rows(outcome),
        counts=filter_tables(outcome),
        filters=filter_rows(outcome),
        checks=checks,
        geodesics=geodesic_rows(outcome),
        spaces=SPACES,
        close=close.to_dict("records"),
        parameters=sorted(parameter_rows(configuration), key=lambda row: not row["changed"]),
        figures={part: [t for t in texts if t.part == part and not t.family] for part in parts},
        families=figure_families([text for text in texts if text.name not in needless]),
        needless=figure_families([text for text in texts if text.name in needless]),
        plain_serves=plain_spaces(outcome) >= set(outcome.spaces),
        sections=[(name, heading) for name, heading, _ in sections],
        phenotypes=scans_of(sections),
        files=file_rows(outcome, configuration),
        glossary=read_terms(),
        work=work_section(outcome.folder),
        changes=changes,
        version=__version__,
        written=time.strftime("%d %B %Y").lstrip("0"),
        genome=genome_words(outcome),
        not_run=not_run(configuration),
        **{name: content for name, _, content in sections},
    )
    with atomic_path(out) as temporary:
        temporary.write_text(page, "utf-8")
    return {
        "bytes": len(page.encode()),
        "figures": len(texts),
        "maps": len(data["maps"]),
        "warnings": len(warnings),
    }


def story_rows(story: Sequence[Sentence]) -> dict[str, list[Sentence]]:
    """The sentences of each row of the first screen, by its topic."""
    rows: dict[str, list[Sentence]] = {}
    for sentence in story:
        rows.setdefault(ROWS.get(sentence.topic, sentence.topic), []).append(sentence)
    return rows


def figure_families(texts: Sequence[FigureText]) -> list[dict[str, Any]]:
    """Maps of one method, which the page shows in one place: a tab each and one caption.

    Returns
    -------
    list of dict
        ``title``: method and what it maps; ``figures``: FigureText; ``repeated``: titles of maps
        that `auto` repeats, which have no figure of their own.
    """
    return [
        {
            "title": family,
            "figures": [t for t in texts if t.family == family and not t.same_as],
            "repeated": [t.title for t in texts if t.family == family and t.same_as],
        }
        for family in dict.fromkeys(t.family for t in texts if t.family)
    ]


def study_findings(
    outcome: Outcome, close: pd.DataFrame, configuration: dict, checks: list[Finding]
) -> list[Finding]:
    """Findings of all parts of the page except the epistasis scans.

    Parameters
    ----------
    close : DataFrame
        `outcome.closest_pairs`.
    checks : list of Finding
        ``findings`` of `check_section`.
    """
    return [
        *(
            [Finding("note", "No matrix of all pairs", " ".join(outcome.left_out))]
            if outcome.left_out
            else []
        ),
        *(
            [Finding("note", "Samples that are not diploid", " ".join(outcome.haploid))]
            if outcome.haploid
            else []
        ),
        *(
            [Finding("note", "Values of a species", " ".join(words))]
            if (words := species_words(configuration))
            else []
        ),
        *find_problems(
            outcome,
            close,
            same=same_people(outcome.folder, configuration["compare"]["analyses"]),
            color_by=configuration["report"]["color_by"],
            min_sample_call_rate=configuration["qc"]["min_sample_call_rate"],
            min_call_rate=configuration["panel"]["min_call_rate"],
            min_called=configuration["distance"]["min_called"],
        ),
        *_departed(outcome),
        *_batches(outcome),
        *newcomer_findings(outcome, configuration["report"]["color_by"]),
        *geodesic_findings(outcome),
        *map_findings(outcome, found_communities(outcome.folder, configuration)),
        *checks,
        *relatives_findings(
            outcome.folder,
            configuration["close_kinship"],
            configuration["compare"]["analyses"],
        ),
        *genotype_findings(outcome, configuration),
        *beagle_findings(outcome.folder, configuration["impute"]),
        *ibd_findings(outcome.folder, "ibd" in configuration["compare"]["analyses"]),
    ]


def _batches(outcome: Outcome) -> list[Finding]:
    """Cohorts of the sheet that were read together."""
    if SHEET_COHORT not in outcome.qc:
        return []
    by_unit = outcome.qc.groupby("cohort", sort=False)[SHEET_COHORT]
    units = {unit: list(dict.fromkeys(cohorts)) for unit, cohorts in by_unit}
    said = remark_on_batches(units, by_unit.size().to_dict())
    return [Finding("note", "Batches of cohorts", text) for text in said]


def _departed(outcome: Outcome) -> list[Finding]:
    """Cohorts that were deleted from the sheet, but not from the results."""
    gone = departed_cohorts(outcome.folder.parent, outcome.cohorts)
    if not gone:
        return []
    text = f"The results still hold genotypes and sample names of {join(gone)}"
    are = "are" if len(gone) > 1 else "is"
    return [Finding("warning", "Deleted cohorts", f"{text}, which {are} not in the sheet.")]


def further_sections(
    outcome: Outcome, figures: Path, configuration: dict
) -> list[tuple[str, str, Any]]:
    """Sections of this study between the samples and the appendix.

    Each has a name, a heading, and the content that is passed to `workflow/report/{name}.html.j2`
    under that name. Sections without content are omitted.
    """
    analyses = configuration.get("compare", {}).get("analyses", [])
    orders, score = sorted(configuration["epistasis"]["order"]), configuration["epistasis"]["score"]
    phenotypes = configuration["epistasis"].get("phenotypes") or [""]
    asked = {
        "sets": configuration["epistasis"].get("sets", ""),
        "several": len(outcome.cohorts) > 1,
        "replicated": configuration["epistasis"].get("replication", "none"),
        "kinship": not KING.isdisjoint(analyses),
    }
    scans = [
        epistasis_section(outcome.folder, figures, orders, score, phenotype, **asked)
        for phenotype in phenotypes
    ]
    methods = configuration["communities"]["methods"]
    populations = configuration.get("population", {}).get("analyses", [])
    founders = set(outcome.samples["sample"][outcome.samples.cohort.isin(outcome.founders)])
    ibd = "ibd" in configuration["compare"]["analyses"]
    by_segments = configuration["communities"].get("space") == "ibd"
    linked = configuration["ibd"]["min_cm"] if by_segments and "blockmodel" in methods else None
    sections = [
        ("communities", "Communities", community_section(outcome.folder, figures, methods, linked)),
        (
            "population",
            "Populations",
            population_section(outcome.folder, figures, populations, founders),
        ),
        (
            "comparisons",
            "Relatives and comparisons",
            comparison_section(outcome.folder, figures, analyses, configuration["close_kinship"]),
        ),
        ("ibd", "Identity by descent", ibd_section(outcome.folder, figures, ibd)),
        (
            "newcomers",
            "Newcomers",
            newcomer_section(
                outcome,
                configuration["report"]["color_by"],
                judges_relatives(outcome.folder, analyses),
            ),
        ),
        (
            "geography",
            "Geography",
            geography_section(outcome, figures, found_communities(outcome.folder, configuration)),
        ),
        ("imputation", "Imputation", imputation_section(outcome, figures, configuration)),
        *((part["id"], part["heading"], part) for part in scans if part),
    ]
    return [section for section in sections if section[2]]


def scans_of(sections: list[tuple[str, str, Any]]) -> dict[str, Any]:
    """Contents of the sections on epistasis, one for each phenotype."""
    return {name: part for name, _, part in sections if name.split("-")[0] == "epistasis"}


def default_maps(outcome: Outcome) -> list[Path]:
    """Tables of the PCA and of the maps of each geodesic."""
    methods = ("umap", "pcoa", *outcome.further)
    names = [f"{m}.{s}.alpha{a}" for m in methods for s, a in outcome.maps()]
    return [outcome.folder / "embedding/coordinates" / f"{name}.tsv" for name in ("pca", *names)]


def _text(name: str) -> Markup:
    """A style sheet or script, unescaped."""
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
        "advice": advice_on,
        "amount_of_sites": amount_of_sites,
    }
    return environment
