"""Options of the comparisons that a schema cannot check; cheap to import for planning."""

from __future__ import annotations

import re

from ..cohort.prune_options import parse_pruning, parse_window
from ..core.errors import UserError, shorten


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
