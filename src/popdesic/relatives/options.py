"""Options of the comparisons that a schema cannot check; cheap to import for planning."""

from __future__ import annotations

import re
from collections.abc import Collection

from ..cohort.prune_options import parse_pruning, parse_window
from ..core.errors import UserError, shorten
from ..core.limits import DENSE_LIMIT

#: Most sites that PC-Relate uses.
MOST_SITES = 50_000
#: Least kinship of listed pairs in a study whose founders all define axes: second degree.
SECOND_DEGREE = 0.0884
#: Error rate of genotypes that identity expects, if the study gives none, and the least share of
#: sites at which two samples of one person may differ.
ERROR_RATE, LEAST_MISMATCH = 0.005, 0.02
#: Pruning of the lists for other tools where the PCA takes all sites.
LISTED_PRUNING = ["500 kb", 1, 0.2]


def least_kinship(config: dict) -> float:
    """Kinship from which on pairs are listed."""
    return config["close_kinship"] or SECOND_DEGREE


def is_measured(analyses: Collection[str], max_kinship: float) -> bool:
    """Whether samples are compared: for tables (`compare.analyses`), or to define the axes."""
    return bool(max_kinship or set(analyses) - {"ld", "ibd"})


def most_related(config: dict) -> int:
    """Samples up to which PC-Relate runs, which needs all pairs."""
    limit = config["distance"]["dense_limit"]
    return DENSE_LIMIT if limit == "auto" else limit


def identity_error(rate: float | str) -> float:
    """Error rate of genotypes in identity by `error_rate`, a number or ``auto``."""
    return ERROR_RATE if rate == "auto" else rate


def most_mismatch(error_rate: float) -> float:
    """Share of sites up to which two samples are of one person."""
    return max(LEAST_MISMATCH, 4 * error_rate)


def ld_options(config: dict) -> dict:
    """Fields of `ld_scan.LdOptions`."""
    imputed = "ld" in config["impute"]["stages"]
    return config["compare"]["ld"] | {
        "genotypes": "imputed" if imputed else "called",
        "map": config["genetic_map"] or None,
        "prune": config["embedding"]["ld_prune"] or LISTED_PRUNING,
        "column": config["population"]["column"],
    }


def parse_region(region: str) -> tuple[str, int, int] | None:
    """Contig, first and last position of ``chrom:from-to``; None for ``auto``."""
    if region == "auto":
        return None
    match = re.fullmatch(r"(.+):([0-9]{1,12})-([0-9]{1,12})", region)
    if match is None or int(match[2]) > int(match[3]):
        raise UserError(
            f"config/config.yaml: compare.ld.region is '{shorten(region)}'; write chrom:from-to, "
            "for example 2:1000000-2000000, or auto."
        )
    return match[1], int(match[2]), int(match[3])


def check_options(config: dict) -> None:
    """Raise a `UserError` if windows, pruning or region of a configuration are invalid."""
    ld = config["compare"]["ld"]
    _, unit = parse_window(ld["window"])
    if unit == "cM" and not config["genetic_map"]:
        raise UserError(
            f"config/config.yaml: compare.ld.window is '{ld['window']}', but genetic_map names "
            "no genetic map; name one or give the window in bp, kb or sites."
        )
    parse_region(ld["region"])
    for stage in ("panel", "embedding"):
        if config[stage]["ld_prune"]:
            parse_pruning(config[stage]["ld_prune"], f"{stage}.ld_prune")
