"""Studies of other ploidies: what the sheet declares, and what such a study does without.

The column `ploidy` of the sample sheet says that samples are haploid. Their genotypes are then 0
and 2, as if each were two equal copies: shares of alleles, allele frequencies, axes and
correlations are those of one copy. Or it says that they are polyploid: genotypes are then stored as
layers (`io.layers`). What holds for diploids alone is left out, with one sentence in the log of the
plan, in `popdesic check` and on the page (docs/organisms.md).
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import pandas as pd

from ..cohort.impute import uses_method
from ..core.errors import UserError
from ..ibd.options import EXPORTS as SEGMENT_FORMATS
from ..io.batches import OF_PLOIDY, ONLY_HAPLOID

#: Analyses and formats that compare heterozygotes, phase them, or count two copies.
DIPLOID_COMPARISONS = ("kinship", "pc_relate", "mixture", "ibd")
DIPLOID_STATISTICS = ("runs", "ancestry")
DIPLOID_FORMATS = ("vcf", "zarr", "king", *SEGMENT_FORMATS)
#: What reads genotypes of two alleles besides, so that polyploids do without.
TWO_ALLELES = ("identity", "ld", "local", "plink", "mibs")
#: Components of polyploids in the space `pcs`, where `auto` would be chosen by genotypes.
COMPONENTS = 8
POLYPLOID_METRICS = ("euclidean", "manhattan")


def ploidy_of(samples: pd.DataFrame, shown: str) -> int:
    """The ploidy of a study by its sample sheet: 2 unless the column `ploidy` says otherwise.

    Raises
    ------
    UserError
        Samples differ in it; names the first row that does.
    """
    if "ploidy" not in samples:
        return 2
    found = samples.ploidy.replace({"": "2", "NA": "2"})
    other = found != found.iloc[0]
    if other.any():
        first = samples[other].iloc[0]
        raise UserError(
            f"{shown}, row {first.row}: ploidy of sample '{first['sample']}' is "
            f"{found[other].iloc[0]}, but that of '{samples['sample'].iloc[0]}' is "
            f"{found.iloc[0]}; a study is of one ploidy, so make a study of each "
            "(popdesic.pairwise_distance compares samples of several)."
        )
    return int(found.iloc[0])


def for_ploidy(config: dict, ploidy: int) -> tuple[dict, list[str]]:
    """The configuration of a study of another ploidy, without what is for diploids alone.

    Parameters
    ----------
    config : dict
        With all defaults filled in; it is not changed.
    ploidy : int
        1, or above 2.

    Returns
    -------
    config : dict
        `contigs.haploid` is `ONLY_HAPLOID`, or `OF_PLOIDY` and the ploidy.
    sentences : list of str
        Of which ploidy the samples are, and what is left out.

    Raises
    ------
    UserError
        The study asks for Beagle or copying, which take everyone as diploid; or for a distance
        that polyploids do not have.
    """
    config = copy.deepcopy(config)
    polyploid = ploidy > 2
    for method in ("beagle", "copying"):
        if uses_method(config["impute"], method):
            raise UserError(
                f"config/config.yaml: impute asks for {method}, which takes everyone as diploid, "
                f"but samples are {f'of ploidy {ploidy}' if polyploid else 'haploid'} (ploidy); "
                "set impute.method and impute.evaluate to mode."
            )
    if polyploid and config["distance"]["metric"] not in POLYPLOID_METRICS:
        raise UserError(
            f"config/config.yaml: distance.metric is {config['distance']['metric']}, but samples "
            f"are of ploidy {ploidy}, of which distances are {' or '.join(POLYPLOID_METRICS)} "
            "(ibs is manhattan divided by the ploidy and the sites of the panel)."
        )
    config["contigs"] |= {"haploid": f"{OF_PLOIDY}{ploidy}" if polyploid else ONLY_HAPLOID, "x": []}
    config["panel"]["min_hwe_p"] = 0
    config["close_kinship"] = 0
    config["qc"] |= {"max_heterozygosity_sd": 0, "max_mendel_rate": 1}
    config["geodesic"]["bridges"] = "all"
    sentences = [
        "All samples are haploid (column ploidy): a genotype is one allele, and a file's call of "
        "two equal alleles is read as one. Tests of Hardy-Weinberg proportions, heterozygosity, "
        "inbreeding and the check of sex are off, and all founders define the axes. Distances "
        "other than ibs count each allele twice."
    ]
    if polyploid:
        sentences = [
            f"All samples are of ploidy {ploidy} (column ploidy): a genotype is the number of ALT "
            f"alleles, 0 to {ploidy}, and frequencies are alleles counted over alleles called. "
            "Tests of Hardy-Weinberg proportions, observed heterozygosity, inbreeding and the "
            "check of sex are off, and all founders define the axes. Missing genotypes are not "
            "filled. Tables of sites count layers: pairs of alleles, or, of an odd ploidy, single "
            "ones."
        ]

    def leave_out(what: str, names: list[str]) -> None:
        if names:
            sentences.append(f"For diploids alone, so left out: {', '.join(names)} ({what}).")

    def keep(stage: str, key: str, diploid: tuple[str, ...]) -> None:
        asked = config[stage][key]
        leave_out(f"{stage}.{key}", [name for name in asked if name in diploid])
        config[stage][key] = [name for name in asked if name not in diploid]

    searched = {"mixture"} == {"mixture", "identity"}.intersection(config["compare"]["analyses"])
    if searched and config["compare"]["query"]:  # as mixtures alone, which only diploids have
        leave_out("compare.query", ["the search of profiles"])
        config["compare"]["query"] = None
    more = TWO_ALLELES if polyploid else ()
    keep("compare", "analyses", (*DIPLOID_COMPARISONS, *more))
    keep("population", "analyses", (*DIPLOID_STATISTICS, *more))
    keep("export", "formats", (*DIPLOID_FORMATS, *more))
    keep("geodesic", "space", ("ibd",))
    if config["communities"]["space"] == "ibd":
        config["communities"]["space"] = "auto"
    for key, none in (("order", []), ("sets", "")):
        if config["epistasis"][key]:
            leave_out(f"epistasis.{key}", ["scans for interactions"])
            config["epistasis"][key] = none
    if polyploid:
        _leave_to_diploids(config, leave_out)
    return config, sentences


def _leave_to_diploids(config: dict, leave_out: Callable[[str, list[str]], None]) -> None:
    """Take out of a configuration, in place, what polyploids do without and haploids do not."""
    config["impute"] |= {"method": "none", "evaluate": [], "stages": []}
    if config["ingest"]["min_allele_balance"]:
        leave_out("ingest.min_allele_balance", ["the limit on reads of both alleles"])
        config["ingest"]["min_allele_balance"] = 0
    for stage in ("panel", "embedding"):
        if config[stage]["ld_prune"]:
            leave_out(f"{stage}.ld_prune", ["pruning by LD"])
            config[stage]["ld_prune"] = None
    if config["compare"]["query"]:
        leave_out("compare.query", ["the search of profiles"])
        config["compare"]["query"] = None
    geodesic = config["geodesic"]
    if "auto" in geodesic["alpha"]:
        leave_out("geodesic.alpha", ["auto"])
        geodesic["alpha"] = [one for one in geodesic["alpha"] if one != "auto"] or [2]
    if geodesic["pcs"] == "auto":
        if "pcs" in geodesic["space"]:
            leave_out("geodesic.pcs", [f"auto, which is {COMPONENTS} here"])
        geodesic["pcs"] = COMPONENTS
