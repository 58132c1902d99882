"""Wording of the report: names of steps, counts, metrics and maps; numbers in sentences."""

from __future__ import annotations

import re

from ..cohort.panel_steps import PanelStep

#: What each count of `qc/summary.tsv` is, with its unit, by stage and step.
COUNTS: dict[tuple[str, str], tuple[str, str]] = {
    ("ingest", "records"): ("Rows of the genotype file", "rows"),
    ("ingest", "multiallelic"): ("dropped: more than one ALT allele", "rows"),
    ("ingest", "indel"): ("dropped: insertion or deletion", "rows"),
    ("ingest", "symbolic"): ("dropped: symbolic allele such as <DEL>", "rows"),
    ("ingest", "star"): ("dropped: spanning deletion (*)", "rows"),
    ("ingest", "no_alt"): ("dropped: no ALT allele, and no REF base or genotypes", "rows"),
    ("ingest", "non_acgt"): ("dropped: letters other than A, C, G, T", "rows"),
    ("ingest", "filtered"): ("dropped: FILTER is not PASS", "rows"),
    ("ingest", "reference_blocks"): ("Reference blocks of a gVCF (not sites)", "rows"),
    ("ingest", "odd_block_calls"): (
        "Calls in reference blocks of other than two alleles (set to missing)",
        "genotypes",
    ),
    ("ingest", "low_qual"): ("dropped: QUAL below ingest.min_qual", "rows"),
    ("ingest", "no_depth"): ("0/0 with a depth of 0 (set to missing)", "genotypes"),
    ("ingest", "low_dp"): ("Depth below ingest.min_dp (set to missing)", "genotypes"),
    ("ingest", "high_dp"): ("Depth above ingest.max_dp (set to missing)", "genotypes"),
    ("ingest", "low_gq"): ("Quality below ingest.min_gq (set to missing)", "genotypes"),
    ("ingest", "unbalanced"): (
        "Heterozygotes below ingest.min_allele_balance (set to missing)",
        "genotypes",
    ),
    ("ingest", "sites_with_removed_calls"): ("Sites with calls set to missing by these", "sites"),
    ("ingest", "made_reference"): ("Sites of which these removed all calls with ALT", "sites"),
    ("ingest", "unplaced"): ("dropped: no chromosome or position", "rows"),
    ("ingest", "snps"): ("Biallelic SNPs", "rows"),
    ("ingest", "snps_in_long_alleles"): ("SNPs that the file writes with longer alleles", "rows"),
    ("ingest", "indels_read"): ("Indels that are read", "rows"),
    ("ingest", "svs_read"): ("Structural variants that are read", "rows"),
    ("ingest", "split_records"): ("Rows with several ALT alleles that are split", "rows"),
    ("ingest", "split_sites"): ("Sites of these: one ALT against all others", "sites"),
    ("ingest", "alt_left_out"): ("ALT alleles of these that are no site", "alleles"),
    ("ingest", "one_allele"): ("Of these, sites of one allele: no sample varies", "rows"),
    ("ingest", "duplicates"): ("dropped: duplicate SNP", "rows"),
    ("ingest", "sites"): ("Sites read from the file", "sites"),
    ("ingest", "samples"): ("Samples in the file", "samples"),
    ("ingest", "missing"): ("Genotypes not called", "genotypes"),
    ("ingest", "half_calls"): ("Half-calls such as ./1 (set to missing)", "genotypes"),
    ("ingest", "haploid_calls"): ("Haploid calls", "genotypes"),
    ("ingest", "phased"): ("Phased genotypes (phase is not used)", "genotypes"),
    ("ingest", "unphased"): ("Unphased genotypes", "genotypes"),
    ("qc", "samples"): ("Samples checked", "samples"),
    ("qc", "samples below qc.min_sample_call_rate"): ("left out: call rate too low", "samples"),
    ("qc", "samples left out by qc.max_heterozygosity_sd"): (
        "left out: heterozygosity outlier in its population",
        "samples",
    ),
    ("qc", "samples left out by qc.sex_mismatch"): (
        "left out: X-inferred sex disagrees with the sheet",
        "samples",
    ),
    ("qc", "samples left out by qc.max_mendel_rate"): (
        "left out: too many Mendelian errors",
        "samples",
    ),
    ("qc", "samples with a sex from X"): ("Samples with a sex inferred from X", "samples"),
    ("qc", "samples whose X tells no sex"): (
        "Samples whose sex cannot be inferred from X",
        "samples",
    ),
    ("qc", "samples whose X contradicts their sex"): (
        "Samples whose X-inferred sex disagrees with the sheet",
        "samples",
    ),
    ("qc", "children compared with their parents"): (
        "Children compared with a parent of their cohort",
        "samples",
    ),
    ("qc", "Mendelian errors of children"): ("Mendelian errors", "genotypes"),
    ("qc", "samples tested for Hardy-Weinberg within their population"): (
        "Samples tested for Hardy-Weinberg within their population",
        "samples",
    ),
    ("qc", "samples tested for an excess of heterozygotes alone"): (
        "Samples tested for an excess of heterozygotes alone",
        "samples",
    ),
    ("qc", "samples not tested for Hardy-Weinberg"): (
        "Samples not tested for Hardy-Weinberg",
        "samples",
    ),
    ("qc", "samples with the genotypes of another sample"): (
        "Samples genotypically identical to another (in any cohort)",
        "samples",
    ),
    ("qc", "ref_is_reference"): ("Sites whose REF allele is the reference base", "sites"),
    ("qc", "alt_is_reference"): (
        "Sites whose ALT allele is the reference base (turned)",
        "sites",
    ),
    ("qc", "on_other_strand"): ("Sites on the other strand (turned)", "sites"),
    ("qc", "strand_unknown"): ("Sites of unknown strand", "sites"),
    ("qc", "neither"): (
        "Sites where neither allele is the reference base (dropped)",
        "sites",
    ),
    ("qc", "not_in_reference"): ("Sites outside the reference", "sites"),
    ("encode", "samples"): ("Samples on the panel", "samples"),
    ("encode", "panel_sites_found"): ("Panel sites present in the cohort", "sites"),
    ("encode", "panel_sites_absent"): (
        "Panel sites absent from the cohort (set to missing)",
        "sites",
    ),
    ("encode", "swapped_turned"): ("Panel sites with REF and ALT swapped (corrected)", "sites"),
    ("encode", "swapped_ambiguous_dropped"): (
        "Panel sites swapped and strand-ambiguous (set to missing)",
        "sites",
    ),
    ("encode", "strand_turned"): ("Panel sites on the opposite strand (corrected)", "sites"),
    ("encode", "strand_by_frequency"): (
        "A/T and C/G sites of the panel, oriented by allele frequency",
        "sites",
    ),
    ("encode", "strand_ambiguous_dropped"): (
        "Panel sites whose strand is ambiguous, A/T or C/G (set to missing)",
        "sites",
    ),
    ("encode", "one_allele_completed"): (
        "Panel sites of which the cohort's file names one allele only",
        "sites",
    ),
    ("encode", "one_allele_unclear"): (
        "Panel sites whose one known allele fits several (set to missing)",
        "sites",
    ),
    ("encode", "absent_as_reference"): (
        "Panel sites absent from the cohort's file, taken as homozygous reference",
        "sites",
    ),
    ("encode", "absent_as_reference_genotypes"): (
        "Genotypes taken as homozygous reference there",
        "genotypes",
    ),
    ("encode", "sites_not_on_panel"): ("Cohort sites not on the panel", "sites"),
    ("encode", "samples_without_calls"): (
        "Samples without a called genotype on the panel (left out)",
        "samples",
    ),
    ("encode", "missing_genotypes"): ("Genotypes missing on the panel", "genotypes"),
}

STAGES = {
    "ingest": "Reading the files",
    "qc": "Checking the samples",
    "encode": "Placing each cohort on the panel",
}

METRICS = {
    "euclidean": "Euclidean (square root of the sum of squared genotype differences)",
    "manhattan": "Manhattan (sum of absolute genotype differences)",
    "normalized": "normalised (Euclidean; each sample is divided by its sum of genotypes)",
    "ibs": "IBS (one minus the share of alleles identical by state)",
}

MISSING = {
    "pairwise": "each pair is compared at its jointly called sites, scaled to all sites",
    "imputed": "imputed genotypes are used as if they were called",
}

METHODS = {"pca": "PCA", "pcoa": "PCoA", "umap": "UMAP", "densmap": "densMAP", "tsne": "t-SNE"}
#: Maps fitted on all samples, beside a frame of the founders (embedding.stable).
METHODS |= {f"{name}_refit": f"{METHODS[name]} of all samples" for name in ("pcoa", "umap")}
#: Spaces of maps, in their titles.
MAP_SPACES = {"ibd": "shared segments", "pcs": "principal components"}
#: Columns of `communities/partition.tsv` in the lists of columns of the page.
COLUMNS = {
    "fine": "finer community",
    "stability": "stability of the community",
    "f_st": "F_ST of the last split",
    "between": "between communities",
    "hdbscan": "HDBSCAN cluster",
}

SPACES = {
    "genotypes": "genotype distances",
    "pcs": "principal-component distances",
    "ibd": "shared-segment distances",
}

_FILTERS = {
    "contigs.exclude": "on included contigs",
    "panel.include": "within",
    "panel.exclude": "outside",
    "panel.min_call_rate": "call rate at least",
    "panel.min_maf": "minor allele frequency at least",
    "panel.min_hwe_p": "Hardy-Weinberg p at least",
    "panel.ld_prune": "after LD pruning",
}


#: Relations of `compare/kinship.tsv` before "pair".
_RELATIONS = {
    "sharing only": "without a degree",
    "parent and child": "parent–child",
    "full siblings": "full-sibling",
    "second degree": "second-degree",
    "third degree": "third-degree",
}


#: Steps that count corrected or dropped sites of one founder.
_CORRECTIONS = {
    "repeated": "dropped: duplicate with REF and ALT swapped, founder {}",
    "turned": "REF and ALT swapped in founder {} (corrected)",
    "ambiguous": "dropped: swapped and strand-ambiguous (A/T or C/G), founder {}",
    "strand": "on the opposite strand in founder {} (corrected)",
    "oriented": "A/T or C/G, founder {} oriented by allele frequency",
    "doubtful": "dropped: A/T or C/G, and founder {} has opposite strands",
    "completed": "one allele unknown in founder {} or in those before it (completed)",
    "unclear": "dropped: one known allele that fits several sites, founder {}",
    "filled": "absent from the file of founder {}, taken as homozygous reference",
    "added": "listed by founder {} alone (added)",
}


def describe_count(stage: str, step: str) -> tuple[str, str]:
    """Description and unit of a count; a step without a description keeps its name."""
    if stage == "ingest" and step.startswith("filter "):
        return f"of these: FILTER {step.removeprefix('filter ')}", "rows"
    return COUNTS.get((stage, step), (step.replace("_", " "), ""))


def describe_filter(step: PanelStep) -> str:
    """Description of a step of the panel."""
    if step.what == "shared":
        return f"shared with founder {step.subject}"
    if step.what == "one_allele":
        return "with two known alleles"
    if step.what == "position":
        return "the most common one at each position"
    if step.what == "filter":
        return f"{_FILTERS.get(step.subject, step.subject)} {step.limit}".rstrip()
    if step.what in _CORRECTIONS:
        return _CORRECTIONS[step.what].format(step.subject)
    return step.text


def count_relations(counts: dict[str, int]) -> str:
    """Numbers of pairs by relation, as in ``2 full-sibling and 1 second-degree``."""
    return join([f"{number(int(n))} {_RELATIONS.get(name, name)}" for name, n in counts.items()])


def describe_way(about: dict) -> str:
    """What geodesics were computed: exponent and graph, by the statistics of an alpha."""
    graph, exponent = about["graph"], f"α = {about['value']:g}"
    if graph["kind"] == "knn":
        return f"{graph['neighbors']} nearest neighbours, {exponent}"
    plain = about["value"] == 1 and graph["kind"] == "complete"
    return f"{exponent} (plain distances)" if plain else exponent


def number(value: float) -> str:
    """A count with thin spaces between thousands, as in 18 989."""
    return f"{value:,}".replace(",", "\u202f")


def percent(share: float, digits: int = 1) -> str:
    """A share as a percentage; only exactly 0 and 1 are written as 0 % and 100 %."""
    if share != share:
        return "NA"
    least = 10**-digits
    value = 100 * share
    if 0 < value < least:
        return f"< {least:g} %"
    if 100 - least < value < 100:
        return f"> {100 - least:g} %"
    return f"{value:.{digits}f} %"


def join(words: list[str], longest: int = 20) -> str:
    """Words as a list in a sentence, truncated after `longest` words."""
    if len(words) > longest:
        return f"{', '.join(words[:longest])} and {number(len(words) - longest)} more"
    return ", ".join(words[:-1]) + (" and " if len(words) > 1 else "") + "".join(words[-1:])


def singular(text: str) -> str:
    """Counts of one in a text of counts: `1 samples` becomes `1 sample`."""
    text = re.sub(r"(?<![\d\u202f.])1 communities\b", "1 community", text)
    return re.sub(r"(?<![\d\u202f.])1 ((?:founder )?[a-z]+)s\b", r"1 \1", text)


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 sample`, `2 samples`."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"
