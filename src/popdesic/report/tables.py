"""Rows of the page's tables."""

from __future__ import annotations

import html
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pandas as pd
import yaml
from markupsafe import Markup

from ..cohort.contigs import Genome
from ..cohort.genotype_choice import missing_rule
from ..core.schemas import load_schema
from ..core.version import __version__
from ..epistasis.options import set_files
from ..geography.coordinates import has_places
from ..relatives.options import is_measured
from .kin_verdict import KING, judges_relatives
from .outcome import Outcome
from .words import (
    METHODS,
    METRICS,
    MISSING,
    SPACES,
    STAGES,
    describe_count,
    describe_filter,
    describe_way,
    number,
    plural,
)

#: Packages whose versions the page lists.
PACKAGES = ("snakemake", "numpy", "scipy", "pandas", "numba", "scikit-learn", "matplotlib")
#: What the first screen says of a genome whose build is not known.
GENOMES = {
    "any": "human genome of an unknown build",
    "none": "genome not taken as human",
    "unknown": "genome build not known",
}
#: Results of sets of sites in several cohorts.
SETS_BY_COHORT = (
    ("epistasis/sets_replication.tsv", "Sets: discovery and replication between cohorts"),
    ("epistasis/sets_by_cohort.tsv", "Sets: effects by cohort"),
)


def software_versions() -> list[tuple[str, str]]:
    """Names and versions of Popdesic and of the main packages."""
    rows = [("popdesic", __version__)]
    for package in PACKAGES:
        try:
            rows.append((package, version(package)))
        except PackageNotFoundError:
            rows.append((package, "not installed"))
    return rows


def summarize(outcome: Outcome, configuration: dict) -> list[tuple[str, str]]:
    """Names and values in the box at the top."""
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
        (
            "Samples",
            f"{number(read)} read, {number(kept)} analysed, {number(read - kept)} left out",
        ),
        (
            "Sites",
            f"{number(outcome.panel['n_sites'])} on the panel, from {among} in the founders' files",
        ),
        ("Genome", Genome(**outcome.panel["genome"]).sentence()),
        ("Panel digest", outcome.panel["digest"]),
        ("Distance", METRICS[distance["metric"]]),
        ("Missing genotypes", MISSING[missing_rule(configuration)]),
        (
            "Geodesics",
            f"α = {', '.join(map(str, geodesic['alpha']))} on "
            f"{' and on '.join(SPACES[space] for space in geodesic['space'])}",
        ),
        ("Seed", f"{configuration['seed']} (everything else is deterministic)"),
        ("Software", ", ".join(f"{name} {release}" for name, release in software_versions())),
    ]


def genome_words(outcome: Outcome) -> str:
    """The genome build of the founders' files, as the first screen has it."""
    build = outcome.panel["genome"]["build"]
    return GENOMES.get(build, f"genome build {build}")


def not_run(configuration: dict) -> list[str]:
    """Analyses of this workflow that the configuration leaves out, in words."""
    population, analyses = (
        configuration["population"]["analyses"],
        configuration["compare"]["analyses"],
    )
    optional = {
        "kinship": not {"kinship", "pc_relate"}.isdisjoint(analyses),
        "identity by descent": "ibd" in analyses,
        "search for contamination": "mixture" in analyses,
        "ancestry proportions": "ancestry" in population,
        "F_ST": "differentiation" in population,
        "runs of homozygosity": "runs" in population,
        "scans for interactions": bool(
            configuration["epistasis"]["order"] or configuration["epistasis"].get("sets")
        ),
    }
    return [name for name, runs in optional.items() if not runs]


def cohort_rows(outcome: Outcome) -> list[dict[str, Any]]:
    """One row per cohort: samples, quality, and difference from the panel."""
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


def filter_tables(outcome: Outcome) -> list[dict[str, Any]]:
    """For each stage, the counts by cohort, and the steps with a count of zero in every cohort."""
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
    """Steps of the panel: sites left, and sites removed by the step."""
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
    """One row per space and alpha."""
    rows = []
    for space, alpha in outcome.maps():
        about = outcome.geodesics[space, alpha]
        rows.append(
            {
                "space": space,
                "alpha": alpha,
                "value": describe_way(about),
                "indirect_pairs": about["indirect_pairs"],
                "indirect_share": about["indirect_share"],
                "founder_share": about["founder_indirect_share"],
                "stretch": f"{about['median_stretch_of_indirect']:.4g}",
                "unreachable": about["unreachable_pairs"],
                # At alpha = 1 sampling plays no role: nothing is said of it.
                "density": about["graph"]["density"] if about["value"] > 1 else "",
                "computed": _computed(about["record"]),
                "dtype": about["number"]["dtype"],
                "bound": f"{about['number']['error_bound']:.1e}"
                if about["number"]["error_bound"]
                else "exact",
            }
        )
    return rows


def _computed(record: dict) -> str:
    """How a closure was computed."""
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
    """Text with the parts between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text)))


def _value(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True)
    return text.removesuffix("...\n").strip()


def file_rows(outcome: Outcome, configuration: dict) -> list[tuple[str, str]]:
    """Result files below `results/` and their contents; none of what the configuration leaves out.

    Those that it asks for are listed if they are there.
    """
    rows = [
        ("report/summary.json", "What was found, for other tools"),
        ("report/methods.md", "Methods text for a paper, with references"),
        ("report/multiqc/popdesic_samples_mqc.json", "Samples, for MultiQC"),
        ("report/multiqc/popdesic_cohorts_mqc.json", "Cohorts, for MultiQC"),
        ("report/multiqc/popdesic_pca_mqc.json", "PCA, for MultiQC"),
        ("qc/summary.tsv", "Counts of every step in all cohorts"),
        ("qc/drift.tsv", "Differences of each cohort from the panel"),
        ("qc/artefacts.tsv", "Sites at which one cohort was genotyped otherwise"),
        ("qc/differential_missing.tsv", "Sites where groups miss calls unequally"),
    ]
    for cohort in outcome.cohorts:
        rows.append((f"qc/{cohort}.samples.tsv", f"Call rate and heterozygosity, {cohort}"))
        rows.append((f"qc/{cohort}.populations.tsv", f"Groups tested for Hardy-Weinberg, {cohort}"))
        rows.append((f"qc/{cohort}.sites.tsv", f"Frequencies and Hardy-Weinberg tests, {cohort}"))
    rows += [
        ("panel/sites.tsv", "The panel"),
        ("distance/samples.tsv", "Sample order of all matrices"),
        ("distance/neighbors.npz", "Nearest samples of everyone"),
        ("distance/landmarks.npy", "Distances of some founders to everyone"),
        ("distance/distance.tsv.gz", "Distance of every pair"),
        ("distance/distance.mdist", "Distance matrix in PLINK's format"),
        ("embedding/quality.tsv", "How well each map preserves neighbours and distances"),
        ("embedding/pca.tsv", "PCA scores"),
        ("embedding/instability.tsv", "Instability of each sample on the UMAPs"),
        ("communities/partition.tsv", "Community of every sample"),
        ("communities/agreement.tsv", "Agreement of communities and labels"),
        ("communities/tree.nwk", "Neighbour-joining tree"),
        ("painting/groups.tsv", "Group of every sample by the haplotypes that it copies"),
        ("painting/donors.tsv", "Founders that samples copy from: columns of coancestry/*.npy"),
        ("geography/places.tsv", "Places with their numbers of samples"),
        ("geography/edges.tsv", "Neighbouring places, barriers and corridors"),
        ("geography/pairs.tsv", "Genetic and geographic distance of every two places"),
        ("geography/isolation.json", "Isolation by distance"),
        ("population/populations.tsv", "Heterozygosity, F, private alleles of every population"),
        ("population/samples.tsv", "Heterozygosity, F and F_ROH of every sample"),
        ("population/spectrum.tsv", "Site-frequency spectra"),
        ("population/pairs.tsv", "F_ST, f2 and further distances of every pair of populations"),
        ("population/blocks.tsv", "F_ST along the genome"),
        ("population/tree.nwk", "Neighbour-joining tree of the populations"),
        ("population/f3.tsv", "f3 of all triples of populations"),
        ("population/f4.tsv", "f4 and D of the chosen tests"),
        ("population/f2_blocks.rds", "f2 by block, for ADMIXTOOLS 2 in R"),
        ("population/runs.tsv", "Runs of homozygosity"),
        ("population/local_pca.tsv", "Windows of the genome, by their principal components"),
        ("population/sweep_windows.tsv", "Haplotypes in windows: Garud's H, extreme iHS and nSL"),
        ("population/sweep_sites.tsv.gz", "iHS and nSL of sites, by population"),
        ("population/sweep_pairs.tsv.gz", "XP-EHH of pairs of populations"),
        ("population/consensus.tsv", "Regions in runs of homozygosity of many samples"),
        ("compare/kinship.json", "Resolution of kinship and identity on this panel"),
        ("compare/kinship_untold.tsv", "Cohorts in which kinship fails"),
        ("compare/relatives.tsv", "Close pairs, with one verdict from all analyses"),
        ("compare/kinship.tsv", "Close pairs by KING-robust kinship"),
        ("compare/pc_relate.tsv", "Close pairs by PC-Relate, which accounts for ancestry"),
        ("compare/pc_relate.samples.tsv", "Inbreeding of every sample"),
        ("compare/identity.tsv", "Best match of every sample"),
        ("compare/mixture.tsv", "Samples that carry all alleles of another sample"),
        ("compare/ld.tsv.gz", "Pairs of sites in LD"),
        ("compare/ld_populations.tsv", "LD of each population, by distance and between contigs"),
        ("ibd/pairs.tsv", "Pairs with shared segments"),
        ("ibd/segments.tsv.gz", "Segments of identity by descent"),
        ("ibd/genome.json", "What of the panel was searched for segments"),
        ("compare/prune.in", "Sites kept by LD pruning"),
        ("epistasis/sites.tsv", "Main effects of the scanned sites"),
        ("epistasis/sets.tsv", "Interactions of sets of sites, such as genes"),
        ("epistasis/sets_environment.tsv", "Interactions of sets of sites with environments"),
        *(SETS_BY_COHORT if len(outcome.cohorts) > 1 else ()),  # not of a former run
        ("epistasis/structure.tsv", "Phenotype and population structure, given the null model"),
        ("epistasis/loci.tsv", "Loci of the best pairs"),
        ("epistasis/loci_triples.tsv", "Loci of the best triples"),
        ("epistasis/loci_quads.tsv", "Loci of the best quads"),
        ("epistasis/pairs.tsv", "Best pairs of sites of the exhaustive scan"),
        ("epistasis/triples.tsv", "Best triples of sites of the exhaustive scan"),
        ("epistasis/quads.tsv", "Best quads of sites of the exhaustive scan"),
        (
            "epistasis/replication.tsv",
            "Leads of the best loci in those who did not discover them",
        ),
        ("epistasis/replication_by_cohort.tsv", "Effects of these leads in its cohorts"),
        ("epistasis/screen.tsv", "Best triples that extend a best pair (not exhaustive)"),
        ("epistasis/refit.tsv", "Logistic regressions of the best hits, with covariates"),
        ("epistasis/power.tsv", "Power of the scans for given penetrance tables"),
    ]
    named = [row for row in rows if row[0].startswith("epistasis/")]
    for folder in sorted((outcome.folder / "epistasis").glob("*/plan.json")):
        phenotype = folder.parent.name
        for path, what in named:
            stem = path.removeprefix("epistasis/")
            rows.append((f"epistasis/{phenotype}/{stem}", f"{what}, {phenotype}"))
    for space, alpha in outcome.maps():
        path = f"geodesic/{space}/alpha{alpha}.json"
        rows.append((path, f"Geodesics, {space}, α = {alpha}: file, number type and settings"))
        for method in ("pcoa", "umap", *outcome.further):
            path = f"embedding/{method}.{space}.alpha{alpha}.tsv"
            rows.append((path, f"{METHODS[method]} coordinates, {space}, α = {alpha}"))
    left_out = tuple(_not_asked_for(outcome, configuration))
    return [
        (path, what)
        for path, what in rows
        if not path.startswith(left_out) and (outcome.folder / path).exists()
    ]


def _not_asked_for(outcome: Outcome, configuration: dict) -> list[str]:
    """Beginnings of paths below `results/` that this run does not make."""
    compared = set(configuration["compare"]["analyses"])
    block = configuration["epistasis"]
    files = set_files(block["sets"])
    asked = {
        "communities/": bool(configuration["communities"]["methods"]),
        "painting/": "painting" in configuration["communities"]["methods"],
        "geography/": has_places(outcome.qc),
        "population/": bool(configuration["population"]["analyses"]),
        "ibd/": "ibd" in compared or configuration["communities"]["space"] == "ibd",
        "compare/kinship.json": is_measured(compared, configuration["close_kinship"]),
        "compare/kinship.tsv": not KING.isdisjoint(compared),
        "compare/kinship_untold": not KING.isdisjoint(compared),
        "compare/relatives": judges_relatives(outcome.folder, compared),
        "compare/ld": "ld" in compared,
        "compare/prune": "ld" in compared,
        "epistasis/": bool(block["order"] or block["sets"]),
        "epistasis/sets": files is not None,
        "epistasis/sets_environment": bool(files and files.environments),
        "embedding/instability": bool(configuration["embedding"]["ensemble"]),
    }
    asked |= {f"compare/{name}": name in compared for name in ("pc_relate", "identity", "mixture")}
    return [beginning for beginning, made in asked.items() if not made]
