"""A methods paragraph for a paper: what this study ran, with its parameters and what to cite.

References are text as the paragraph prints them: as a .bib they would have three times the lines,
and need a parser and a style (pybtex) that no other module needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..cohort.contigs import Genome
from ..cohort.genotype_choice import missing_rule
from ..cohort.hwe_groups import LEAST_SAMPLES
from ..communities.coancestry import LEAST_EXCESS
from ..communities.splits import MIN_DIP, MOST_IN_VALLEY
from ..components.noise_null import STRETCH
from ..components.tables import is_drawn
from ..core.files import read_json
from ..core.version import __version__
from ..epistasis.options import set_files
from ..epistasis.scan_data import NAMES
from ..geography.coordinates import PERMUTATIONS
from ..ibd.definition import LD_CM, MOST_R2, SegmentLimits
from ..population.sweeps import WINDOW
from ..relatives.resolution import load_resolution
from .citations import REFERENCES
from .outcome import Outcome
from .words import join, number, plural

DISTANCES = {
    "euclidean": "Euclidean distances between genotypes",
    "manhattan": "sums of absolute genotype differences",
    "ibs": "one minus the share of alleles identical by state",
    "normalized": "Euclidean distances between genotypes, normalised by sample",
}


@dataclass(frozen=True)
class Methods:
    """A methods text.

    Attributes
    ----------
    paragraphs : list of str
        Plain text; [1], [2] … refer to `references`.
    references : list of str
    """

    paragraphs: list[str]
    references: list[str]

    def text(self) -> str:
        """All of it as Markdown."""
        listed = [f"{k}. {words}" for k, words in enumerate(self.references, 1)]
        return (
            "\n\n".join(["# Methods", *self.paragraphs, "## References", "\n".join(listed)]) + "\n"
        )


class _Citations:
    """Numbers references in the order in which they are cited."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def __call__(self, *keys: str) -> str:
        self.keys += [key for key in keys if key not in self.keys]
        return "[" + ", ".join(str(self.keys.index(key) + 1) for key in keys) + "]"


def describe_methods(outcome: Outcome, configuration: dict, names: list[str]) -> Methods:
    """What the study ran.

    Parameters
    ----------
    configuration : dict
        Of the study, complete.
    names : list of str
        Sections of the page: only analyses that have one are described.
    """
    cite = _Citations()
    paragraphs = [
        _genotypes(outcome, configuration, cite),
        _distances(outcome, configuration, cite),
        _structure(outcome, configuration, names, cite),
    ]
    if "comparisons" in names:
        paragraphs.append(_relatives(outcome, configuration["compare"]["analyses"], cite))
    if "ibd" in names:
        paragraphs.append(_segments(outcome, configuration["ibd"], cite))
    if "population" in names:
        analyses = configuration["population"]["analyses"]
        ancestry, swept = (
            _made(outcome, f"population/{file}.json") if name in analyses else {}
            for name, file in (("ancestry", "ancestry"), ("sweeps", "sweep_summary"))
        )
        about = _made(outcome, "population/summary.json") or {"blocks": 0}
        found = [_populations(analyses, about, ancestry.get("k", 0), cite), _sweeps(swept, cite)]
        paragraphs.append(" ".join(filter(None, found)))
    if "geography" in names:
        paragraphs.append(
            "Isolation by distance was tested by permuting places with all their samples "
            f"({PERMUTATIONS} permutations) {cite('mantel')}."
        )
    if any(name.split("-")[0] == "epistasis" for name in names):
        paragraphs.append(_interactions(outcome, configuration["epistasis"], cite))
    paragraphs.append(
        f"All analyses ran in Popdesic {__version__} under Snakemake {cite('snakemake')}. The "
        f"panel of sites has the digest {outcome.panel['digest']}."
    )
    paragraphs = [text for text in paragraphs if text]
    return Methods(paragraphs, [REFERENCES[key] for key in cite.keys])


#: What `sites.classes` reads beside SNPs.
_CLASSES = {
    "indel": "indels",
    "sv": "structural variants",
    "multiallelic": "every ALT of multiallelic records (against all other alleles)",
}


def _genotypes(outcome: Outcome, configuration: dict, cite: _Citations) -> str:
    qc, panel, impute = (configuration[name] for name in ("qc", "panel", "impute"))
    classes = [_CLASSES[one] for one in configuration["sites"]["classes"] if one in _CLASSES]
    text = (
        f"{join(['Biallelic SNPs', *classes])} of {plural(len(outcome.cohorts), 'cohort')} were "
        "read "
        f"({plural(len(outcome.qc), 'sample')}). Samples with a call rate below "
        f"{qc['min_sample_call_rate']:g} were left out. "
    )
    if genome := outcome.panel.get("genome"):
        text += f"{Genome(**genome).sentence()} "
    newcomers = " The other cohorts were placed on this panel." if outcome.newcomers else ""
    text += (
        f"A panel of {number(int(outcome.panel['n_sites']))} sites was defined by "
        f"{join(outcome.founders)}. Sites had a call rate of at least "
        f"{panel['min_call_rate']:g}"
    )
    if outcome.haploid:
        text += f" and a minor allele frequency of at least {panel['min_maf']:g}."
    else:
        text += (
            f", a minor allele frequency of at least {panel['min_maf']:g}, "
            f"and a Hardy-Weinberg p of at least {panel['min_hwe_p']:g} (exact test {cite('hwe')}, "
            f"mid-p {cite('midp')}). "
            f"It was tested within labelled populations of at least {LEAST_SAMPLES} samples per "
            "cohort; other samples were tested for an excess of heterozygotes only."
        )
    if "multiallelic" in configuration["sites"]["classes"]:
        text += " Of several sites at one position, the most common one is on the panel."
    text += newcomers
    if impute["method"] == "beagle":
        text += f" Missing genotypes were imputed with Beagle 5 {cite('beagle')}."
    if impute["method"] == "copying":
        about = read_json(outcome.folder / f"impute/{outcome.cohorts[0]}/copied.json")["reference"]
        own = "the founders, which were phased from each other"
        whose = "a phased reference" if impute["reference"] else own
        text += (
            " Samples were phased and missing genotypes imputed by copying from the "
            f"{number(about['haplotypes'])} haplotypes of {whose} {cite('copying')}."
        )
    if missing_rule(configuration) == "pairwise":
        text += " Each pair of samples was compared at its jointly called sites."
    return text


def _distances(outcome: Outcome, configuration: dict, cite: _Citations) -> str:
    alphas = sorted({about["value"] for about in outcome.geodesics.values()})
    spaces = configuration["geodesic"]["space"]
    if not alphas:
        return ""
    words = [DISTANCES[configuration["distance"]["metric"]]] if "genotypes" in spaces else []
    words += ["Euclidean distances between principal components"] if "pcs" in spaces else []
    words += ["-log2(2 × kinship) of pairs with shared segments"] if "ibd" in spaces else []
    return (
        f"Geodesic (Fermat) distances {cite('fermat')} are lengths of shortest paths through other "
        f"samples, where a step costs its distance to the power α (α = "
        f"{', '.join(f'{a:g}' for a in alphas)}). Steps were {' or '.join(words)}."
    )


def _structure(outcome: Outcome, configuration: dict, names: list[str], cite: _Citations) -> str:
    axes, kinship = outcome.axes, configuration["close_kinship"]
    left_out = []
    if axes["ld_r2"] and axes["ld_r2"] < 1:
        left_out.append(f"LD pruned at r² = {axes['ld_r2']:.3g}")
    if axes["sites"]["long_range_ld"]:
        left_out.append("without regions of long-range LD")
    chosen = f" ({', '.join(left_out)})" if left_out else ""
    related = _related(axes.get("related", 0))
    text = (
        f"Principal components were computed from {number(axes['axis_samples'])} founders"
        f" at {number(axes['sites']['used'])} sites{chosen}, and all other samples were projected "
        f"onto them {cite('oadp')}.{related}{_unrelated(outcome, kinship, cite)} "
        "Components were tested with the Tracy-Widom statistic at a level of "
        f"{axes['level']:g} {cite('axes')}"
    )
    text += "."
    noise = axes.get("noise")
    if noise and (noise["shift"], noise["spread"]) != (0, 1):
        text += (
            " Its location and scale under the null were estimated from the same genotypes with "
            f"signs flipped at random, in blocks of {STRETCH // 1_000_000} Mb of each sample "
            f"{cite('signs')}."
        )
    maps = []
    if any(is_drawn(path) for path in (outcome.folder / "embedding").rglob("umap.*.alpha*.tsv")):
        maps.append(f"UMAP {cite('umap')} ({configuration['neighbors']} neighbours)")
    maps.append(f"principal coordinates {cite('pcoa')}")
    text += f" The geodesics were mapped by {' and '.join(maps)}."
    methods = configuration["communities"]["methods"]
    if "communities" in names and methods:
        text += (
            " Samples were divided into communities where gaps separate them (Hartigan's dip test "
            f"{cite('dip')}). The dip had to be at least {MIN_DIP:g}, and a stretch between the "
            f"halves had to hold at most {MOST_IN_VALLEY:g} times as many samples as those beside "
            "it."
        )
        if "blockmodel" in methods:
            graph = "the nearest-neighbour graph"
            if configuration["communities"].get("space") == "ibd":
                graph = "the graph of samples that share segments, weighted by total length"
            text += f" A nested stochastic block model was fitted to {graph} {cite('blocks')}."
        if "hdbscan" in methods:
            text += f" Clusters were also identified with HDBSCAN {cite('hdbscan')}."
        if "tree" in methods:
            text += f" A tree was built by neighbour joining {cite('nj')}."
        painted = _made(outcome, "painting/groups.json") if "painting" in methods else {}
        if painted:
            text += (
                " The phased haplotypes of all samples were painted by those of "
                f"{number(painted['donors'])} founders {cite('copying')}. Their coancestry "
                f"{cite('coancestry')} was divided where its largest eigenvalue lay at least "
                f"{LEAST_EXCESS:g} standard deviations above chance. Chance was measured on sums "
                "in which half of the stretches of the genome, drawn at random, were subtracted."
            )
    return text


def _related(samples: int) -> str:
    """How relatives of those who define the axes were placed; empty if there are none."""
    if not samples:
        return ""
    return (
        f" Of these, {plural(samples, 'sample')} "
        f"{'has' if samples == 1 else 'have'} relatives among the founders of the axes: what "
        "they share with relatives was placed where these lie, and shrinkage was corrected for "
        "the rest alone."
    )


def _unrelated(outcome: Outcome, max_kinship: float, cite: _Citations) -> str:
    """The limit of kinship among those who define the axes; empty if all founders do."""
    path = outcome.folder / "compare/kinship.json"
    if not max_kinship or not path.exists():
        return ""
    smallest = load_resolution(path).smallest_kinship
    if smallest is None:
        return " None of these founders is a duplicate of another."
    text = f" No two of these founders have a KING-robust kinship {cite('king')} of "
    if smallest <= max_kinship:
        return f"{text}{max_kinship:g} or more."
    return (
        f"{text}{smallest:.3f} or more (the limit of {max_kinship:g} was raised to what the panel "
        "resolves)."
    )


def _relatives(outcome: Outcome, analyses: list[str], cite: _Citations) -> str:
    text, path = "", outcome.folder / "compare/kinship.json"
    if "kinship" in analyses and path.exists() and load_resolution(path).fault:
        text += f"KING-robust kinship {cite('king')} was not used, because its model does not hold."
    elif "kinship" in analyses:
        text += f"Relatives were found by KING-robust kinship {cite('king')}"
        if "pc_relate" in analyses:
            text += f", and by PC-Relate, which accounts for ancestry {cite('pc_relate')}"
        text += "."
    if "identity" in analyses:
        text += " Duplicates were found by comparing all genotypes of all pairs."
    if "ld" in analyses:
        text += " LD is the squared correlation of genotypes among unrelated founders."
    return text.strip()


def _degrees(outcome: Outcome, cite: _Citations) -> str:
    """How degrees were told from segments; empty where they were not."""
    about = _made(outcome, "compare/relatives.json")
    if not about.get("tells") or "segments" not in about["sources"]:
        return ""
    return (
        " Degrees of relationship, and intervals of 95 % for kinship, were estimated from their "
        f"number and total length {cite('degrees')}."
    )


def _made(outcome: Outcome, name: str) -> dict[str, Any]:
    """A summary below results/; empty if the stage did not run."""
    path = outcome.folder / name
    return read_json(path) if path.exists() else {}


def _of_haploids(about: dict[str, Any], cited: str) -> str:
    """The paragraph of methods on a study of haploids; `about` is `ibd/summary.json`."""
    limits = about["limits"]
    return (
        "The fraction of the genome that is identical by descent was estimated for each pair of "
        f"haploid samples with the hidden Markov model of hmmIBD {cited}, from "
        f"{number(about['used'])} sites with an r² of at most {MOST_R2:g} within {LD_CM:g} cM, and "
        f"an error rate of {limits['error_rate']:g}. Segments have at least {limits['min_cm']:g} "
        f"cM and a LOD of at least {limits['min_lod']:g}."
    )


def _segments(outcome: Outcome, options: dict[str, Any], cite: _Citations) -> str:
    about = _made(outcome, "ibd/summary.json")
    if about.get("not_searched"):
        return "Segments of identity by descent were not sought, because the panel allows none."
    if about.get("ploidy") == 1:
        return _of_haploids(about, cite("hmmibd"))
    return (
        f"Segments of identity by descent of at least {options['min_cm']:g} cM were identified in "
        f"unphased genotypes as stretches without opposite homozygotes (compare {cite('ibis')}), "
        f"with a LOD of at least {SegmentLimits.min_lod:g}.{_degrees(outcome, cite)}"
    )


def _populations(
    analyses: list[str], about: dict[str, Any], components: int, cite: _Citations
) -> str:
    """What was estimated; `about` is `population/summary.json`."""
    said = []
    if about.get("diversity_sites", 0) > about.get("sites", 0):
        said.append(
            "Diversity within populations was estimated from "
            f"{number(about['diversity_sites'])} sites of any frequency that vary among the "
            "founders."
        )
    jackknifed = len(said)
    if about.get("pairs"):
        said.append(
            f"F_ST was estimated by Hudson's estimator as a ratio of averages {cite('fst')}, and "
            f"by that of Weir and Cockerham {cite('wc')}."
        )
    if about.get("f2_sites") and about["populations"] > 1:
        measured = ["f2", *(name for name in ("f3", "f4") if about.get(f"{name}_tests"))]
        verb = "was" if len(measured) == 1 else "were"
        said.append(f"{join(measured)} {verb} estimated as in {cite('f')}.")
    if len(said) > jackknifed and about["blocks"] > 1:
        said.append(f"Standard errors are from a jackknife over blocks of {about['block']}.")
    if "runs" in analyses and not about.get("runs_too_sparse"):
        said.append(
            f"Runs of homozygosity were found by sliding windows as in PLINK {cite('runs')}."
        )
    if components:
        said.append(
            f"Proportions of {components} mixture components were estimated with fastmixture "
            f"{cite('mixture')}."
        )
    return " ".join(said)


def _sweeps(about: dict[str, Any], cite: _Citations) -> str:
    """How haplotypes were scored; `about` is `population/sweep_summary.json`, or empty."""
    if not about or "reason" in about:
        return ""
    scores = [f"iHS {cite('ihs')}", f"nSL {cite('nsl')}"]
    if about["compared"]:
        scores.append(f"XP-EHH {cite('xp_ehh')}")
    scores.append(f"Garud’s H {cite('garud')}")
    return (
        f"The phased haplotypes of founders of {plural(len(about['populations']), 'population')} "
        f"were scored by {join(scores)}. "
        f"Windows had {WINDOW} sites that vary in the population."
    )


def _interactions(outcome: Outcome, options: dict[str, Any], cite: _Citations) -> str:
    orders = join([NAMES[order] for order in sorted(options["order"])])
    plans = sorted((outcome.folder / "epistasis").glob("**/plan.json"))
    counts = sorted({int(read_json(path)["sites"]) for path in plans})
    panel = int(outcome.panel["n_sites"])
    scanned = " or ".join(map(number, counts or [panel]))
    if counts and counts != [panel]:
        scanned += f" of the panel’s {number(panel)}"
    limits = []
    if options["min_distance_bp"]:
        limits.append(f"at least {number(options['min_distance_bp'])} bp apart on one chromosome")
    if options["max_r2"] < 1:
        limits.append(f"with an r² of at most {options['max_r2']:g}")
    partners = f" Partners were {' and '.join(limits)}." if limits else ""
    interaction = options["score"] in ("interaction", "residuals")
    files = set_files(options["sets"])
    sought = "an interaction in" if interaction else "association with"
    sets = (
        "All products of two sites of a set, or of one site of each of two sets, were tested "
        "together for an interaction. Twice the smaller of two p-values counts: of the sum of "
        f"squared scores, as in QuadKAST {cite('quadkast')}, and of the best product. The null "
        "model has the main effects of all sites of the set, with dominance, beside strata, "
        "covariates and principal components. No two samples that were tested are known relatives "
        "of third degree or closer."
        if files
        else ""
    )
    if files and files.environments:
        sets += (
            f" Products of each site with {join(files.environments)} were tested in the same way; "
            "there the null model also has the environment, its square, and its products with the "
            f"other covariates {cite('keller')}. Of quantitative phenotypes, samples were weighted "
            "by the spread of residuals that the environment predicts."
        )
    if not orders:
        return sets
    text = f"All {orders} of {scanned} sites were scanned for {sought} the phenotype.{partners} "
    if options["score"] == "interaction":
        text += (
            "Combinations were ranked by a likelihood-ratio test of interaction beyond the smaller "
            f"effects of their sites (compare {cite('boost')})"
        )
    else:
        text += f"Combinations were ranked by the score {options['score']}"
    text += ". P-values are corrected for the combinations of the scan"
    if interaction:
        text += f" by Bonferroni’s method, weighted by main effects {cite('weights')}"
    text += "."
    if options["covariates"]:
        text += f" The null model includes {join(options['covariates'])}."
    return f"{text} {sets}".strip()
