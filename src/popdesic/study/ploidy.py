"""Studies of haploids: what the sheet declares, and what such a study does without.

The column `ploidy` of the sample sheet says that samples are haploid. Their genotypes are then 0
and 2, as if each were two equal copies: shares of alleles, allele frequencies, axes and
correlations are those of one copy. What needs heterozygotes is left out, with one sentence in the
log of the plan, in `popdesic check` and on the page (docs/organisms.md).
"""

from __future__ import annotations

import copy

import pandas as pd

from ..cohort.impute import uses_method
from ..core.errors import UserError
from ..ibd.options import EXPORTS as SEGMENT_FORMATS
from ..io.batches import ONLY_HAPLOID

#: Analyses and formats that compare heterozygotes, phase them, or count two copies.
DIPLOID_COMPARISONS = ("kinship", "pc_relate", "mixture", "ibd")
DIPLOID_STATISTICS = ("runs", "ancestry")
DIPLOID_FORMATS = ("vcf", "zarr", "king", *SEGMENT_FORMATS)


def ploidy_of(samples: pd.DataFrame, shown: str) -> int:
    """The ploidy of a study by its sample sheet: 2 unless the column `ploidy` says 1.

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


def for_haploids(config: dict) -> tuple[dict, list[str]]:
    """The configuration of a study of haploids, without what is for diploids alone.

    Parameters
    ----------
    config : dict
        With all defaults filled in; it is not changed.

    Returns
    -------
    config : dict
        `contigs.haploid` is `ONLY_HAPLOID`.
    sentences : list of str
        That the samples are haploid, and what is left out.

    Raises
    ------
    UserError
        The study asks for Beagle or copying, which take everyone as diploid.
    """
    config = copy.deepcopy(config)
    for method in ("beagle", "copying"):
        if uses_method(config["impute"], method):
            raise UserError(
                f"config/config.yaml: impute asks for {method}, which takes everyone as diploid, "
                "but samples are haploid (ploidy); set impute.method and impute.evaluate to mode."
            )
    config["contigs"] |= {"haploid": ONLY_HAPLOID, "x": []}
    config["panel"]["min_hwe_p"] = 0
    config["close_kinship"] = 0
    config["qc"] |= {"max_heterozygosity_sd": 0, "max_mendel_rate": 1}
    config["geodesic"]["bridges"] = "all"
    sentences = [
        "All samples are haploid (column ploidy): a genotype is one allele, and a file's call of "
        "two equal alleles is read as one. Tests of Hardy-Weinberg proportions, heterozygosity, "
        "inbreeding and the check of sex are off, and all founders define the axes. Distances "
        "other than ibs count each allele twice; so do log10_rmp and log10_lr of identical samples."
    ]

    def leave_out(what: str, names: list[str]) -> None:
        if names:
            sentences.append(f"For diploids alone, so left out: {', '.join(names)} ({what}).")

    def keep(stage: str, key: str, diploid: tuple[str, ...]) -> None:
        asked = config[stage][key]
        leave_out(f"{stage}.{key}", [name for name in asked if name in diploid])
        config[stage][key] = [name for name in asked if name not in diploid]

    keep("compare", "analyses", DIPLOID_COMPARISONS)
    keep("population", "analyses", DIPLOID_STATISTICS)
    keep("export", "formats", DIPLOID_FORMATS)
    keep("geodesic", "space", ("ibd",))
    if config["communities"]["space"] == "ibd":
        config["communities"]["space"] = "auto"
    for key, none in (("order", []), ("sets", "")):
        if config["epistasis"][key]:
            leave_out(f"epistasis.{key}", ["scans for interactions"])
            config["epistasis"][key] = none
    return config, sentences
