"""Studies of other ploidies: what the sheet declares, and what such a study does without.

The column `ploidy` of the sample sheet says that samples are haploid. Their genotypes are then 0
and 2, as if each were two equal copies: shares of alleles, allele frequencies, axes and
correlations are those of one copy. Or it says that they are polyploid: genotypes are then stored as
layers (`io.layers`). What holds for diploids alone is left out, with one sentence in the log of the
plan, in `popdesic check` and on the page (docs/organisms.md).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import pandas as pd

from ..cohort.impute import uses_method
from ..core.errors import UserError
from ..ibd.options import EXPORTS as SEGMENT_FORMATS
from ..io.batches import OF_PLOIDY, ONLY_HAPLOID

#: Analyses and formats that compare heterozygotes, phase them, or count two copies.
DIPLOID_COMPARISONS = ("kinship", "pc_relate", "mixture")
DIPLOID_STATISTICS = ("runs", "ancestry")
DIPLOID_FORMATS = ("vcf", "zarr", "zarr3", "king", *SEGMENT_FORMATS)
#: What reads genotypes of two alleles besides, so that polyploids do without.
TWO_ALLELES = ("identity", "ibd", "local", "plink", "mibs")
#: Components of polyploids in the space `pcs`, where `auto` would be chosen by genotypes.
COMPONENTS = 8
#: Largest least common multiple of a study's ploidies: so many bits has a genotype at most.
MOST_UNIT = 24
POLYPLOID_METRICS = ("euclidean", "manhattan")


def ploidies_of(
    samples: pd.DataFrame, excluded: pd.DataFrame, shown: str
) -> tuple[tuple[int, ...], dict[str, int]]:
    """The ploidies of a study by its sample sheet: 2 unless the column `ploidy` says otherwise.

    Returns
    -------
    kinds : tuple of int
        Ascending.
    each : dict
        Of every sample, also of those that the sheet excludes; empty of one ploidy.

    Raises
    ------
    UserError
        Their least common multiple is above MOST_UNIT; names the row.
    """
    if "ploidy" not in samples:
        return (2,), {}
    found = samples.ploidy.replace({"": "2", "NA": "2"}).astype(int)
    kinds = tuple(sorted(found.unique().tolist()))
    if len(kinds) == 1:
        return kinds, {}
    if (unit := math.lcm(*kinds)) > MOST_UNIT:
        other = found != found.iloc[0]
        first = samples[other].iloc[0]
        raise UserError(
            f"{shown}, row {first.row}: ploidy of sample '{first['sample']}' is "
            f"{found[other].iloc[0]}, but that of '{samples['sample'].iloc[0]}' is "
            f"{found.iloc[0]}; the least common multiple of a study's ploidies is at most "
            f"{MOST_UNIT}, not {unit}, so make a study of each "
            "(popdesic.pairwise_distance compares samples of any)."
        )
    everyone = pd.concat([samples, excluded])
    ploidy = everyone.ploidy.replace({"": "2", "NA": "2"}).astype(int)
    return kinds, dict(zip(everyone["sample"].tolist(), ploidy.tolist(), strict=True))


def ploidy_of_kinds(kinds: tuple[int, ...]) -> int:
    """The ploidy of a study; of several one above 2, odd if one of them is (`io.layers`)."""
    return kinds[0] if len(kinds) == 1 else max(kinds) | any(kind % 2 for kind in kinds)


def for_ploidy(config: dict, *kinds: int) -> tuple[dict, list[str]]:
    """The configuration of a study of another ploidy, without what is for diploids alone.

    Parameters
    ----------
    config : dict
        With all defaults filled in; it is not changed.
    kinds : int
        Ploidies of the samples; not 2 alone.

    Returns
    -------
    config : dict
        `contigs.haploid` is `ONLY_HAPLOID`, or `OF_PLOIDY` and the ploidies.
    sentences : list of str
        Of which ploidy the samples are, and what is left out.

    Raises
    ------
    UserError
        The study asks for Beagle or copying, which take everyone as diploid; or for a distance
        that polyploids do not have.
    """
    config = copy.deepcopy(config)
    polyploid = kinds != (1,)
    ploidy = ", ".join(map(str, kinds))
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
    policy = f"{OF_PLOIDY}{','.join(map(str, kinds))}" if polyploid else ONLY_HAPLOID
    config["contigs"] |= {"haploid": policy, "x": []}
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
            _of_kinds(kinds) + "and frequencies are alleles counted over alleles called. "
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


def _of_kinds(kinds: tuple[int, ...]) -> str:
    """The begin of a sentence on polyploids, or on samples of several ploidies."""
    if len(kinds) == 1:
        return (
            f"All samples are of ploidy {kinds[0]} (column ploidy): a genotype is the number of "
            f"ALT alleles, 0 to {kinds[0]}, "
        )
    return (
        f"Samples are of ploidy {', '.join(map(str, kinds[:-1]))} and {kinds[-1]} (column ploidy): "
        "a genotype is the number of ALT alleles, samples are compared by their shares of ALT "
        f"alleles, distances are in units of 1/{math.lcm(*kinds)}, "
    )


def _leave_to_diploids(config: dict, leave_out: Callable[[str, list[str]], None]) -> None:
    """Take out of a configuration, in place, what polyploids do without and haploids do not."""
    config["impute"] |= {"method": "none", "evaluate": [], "stages": []}
    if config["ingest"]["min_allele_balance"]:
        leave_out("ingest.min_allele_balance", ["the limit on reads of both alleles"])
        config["ingest"]["min_allele_balance"] = 0
    if config["panel"]["ld_prune"]:
        leave_out("panel.ld_prune", ["pruning of the panel by LD"])
        config["panel"]["ld_prune"] = None
    if config["compare"]["query"]:
        leave_out("compare.query", ["the search of profiles"])
        config["compare"]["query"] = None
    if config["compare"]["ld"]["phase"] == "phased":
        if "ld" in config["compare"]["analyses"]:
            leave_out("compare.ld.phase", ["LD of phased haplotypes"])
        config["compare"]["ld"]["phase"] = "em"
    geodesic = config["geodesic"]
    if "auto" in geodesic["alpha"]:
        leave_out("geodesic.alpha", ["auto"])
        geodesic["alpha"] = [one for one in geodesic["alpha"] if one != "auto"] or [2]
    if geodesic["pcs"] == "auto":
        if "pcs" in geodesic["space"]:
            leave_out("geodesic.pcs", [f"auto, which is {COMPONENTS} here"])
        geodesic["pcs"] = COMPONENTS
