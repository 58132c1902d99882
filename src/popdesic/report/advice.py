"""What to do about each warning, and which warnings come first."""

from __future__ import annotations

from collections.abc import Iterable

from .findings import Finding

#: What to do, by topic, those first that change results most. A topic with a heading before a
#: colon ("Epistasis: strata") is found by its last part.
ADVICE = {
    "Duplicates": "Exclude one of each pair (column exclude), unless they are twins or clones.",
    "Very similar samples": "Add identity to compare.analyses, and look at the closest pairs.",
    "Deleted cohorts": "Delete what is left of each (popdesic forget --cohort).",
    "Failed filters": "Look up what these filters mean; ingest.filter names those to accept.",
    "Sex": "Compare sheet and files for swapped samples before reading anything about them.",
    "Pedigree": "Check the parents in the sample sheet, and these samples for swaps.",
    "strata": "Name the columns that divide the samples in epistasis.strata or covariates.",
    "relatives": "Keep one sample of each family, or read the p-values with this in mind.",
    "too few sites": "Widen epistasis.restrict or the panel's filters.",
    "Few founders": "Add founders, and read neither axes nor allele frequencies as results.",
    "Few sites": "Give more sites, or loosen the filters of the panel (results/qc/summary.tsv).",
    "Cohorts apart": "Compare genotyping, strands and labels of these cohorts.",
    "Allele frequencies": "Compare strands, genome build and genotyping with the other cohorts.",
    "Artefacts": "Genotype or orient these sites again, or name them in the BED of panel.exclude.",
    "Sites absent": "Name a mask (callable), impute these sites, or let this cohort be a founder.",
    "Strand unknown": "Write its alleles on the strand of the founders (bcftools +fixref).",
    "Call rate": "Look for failed samples or sites in this cohort's tables of quality.",
    "Missing calls": "Raise panel.min_call_rate, or name these sites in the BED of panel.exclude.",
    "Samples left out": "Genotype them again or exclude them, or change the limit named above.",
    "No structure": "Do not read groups into any map of this study.",
    "LD reaches beyond its window": (
        "Widen the window of embedding.ld_prune, for example to 5 Mb, and raise "
        "epistasis.min_distance_bp."
    ),
    "An axis of one family": "Check the parents of these samples; no axis that is shown is theirs.",
    "An axis of one region": "Do not read this axis as ancestry; read the others.",
    "Relatives": "Read their kinships as upper limits, or add founders of their ancestry.",
    "Kinship fails": "Ignore kinship there; duplicates are still found.",
    "One founder population": (
        "Make cohorts of each ancestry founders, or do not compare founders with newcomers."
    ),
    "Kinship": "Give more independent sites; until then, take listed relatives as candidates.",
    "Identity": "Add sites that are not in LD to the panel.",
    "Imputation": "Follow the sentence above, then run again: only what depends on it is computed.",
    "No IBD segments": "Change what the sentence above names, then run again.",
    "Unreachable pairs": "Lower distance.min_called, or exclude samples with few genotypes.",
    "Approximate geodesics": "Read them with the measured error; plain distances are exact.",
    "Map dominated by outliers": "Look at the outliers first, and exclude them if they are errors.",
    "Map of one split": "Read it as one division, and run each group as a separate study.",
    "Too few samples": "Add samples, or read the PCA and the PCoA instead.",
    "Unstable maps": "Read neighbours from the PCA or from maps that are not listed here.",
}


def advice_on(finding: Finding) -> str:
    """What to do about a warning.

    Raises
    ------
    KeyError
        A topic that ADVICE does not have; a test finds it.
    """
    return ADVICE[_key(finding)]


def rank_warnings(findings: Iterable[Finding]) -> list[Finding]:
    """The warnings among the findings, those that change results most first."""
    order = {topic: place for place, topic in enumerate(ADVICE)}
    warnings = [finding for finding in findings if finding.level == "warning"]
    return sorted(warnings, key=lambda finding: order[_key(finding)])


def _key(finding: Finding) -> str:
    return finding.topic if finding.topic in ADVICE else finding.topic.rsplit(": ", 1)[-1]
