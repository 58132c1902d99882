"""Keys of earlier versions, and what took their place: one table.

A configuration with such a key is refused with one sentence (`refuse_old`), `popdesic init
--upgrade` rewrites it (`upgrade.py`), and config/README.md lists the table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..core.errors import UserError
from .environment import CLOSURE_GPUS, CONDA_CUDA
from .trust import GRAPH_TOOL_PYTHON


class Old(NamedTuple):
    """What became of a key.

    Attributes
    ----------
    new : str
        The key that has its value now; "" if there is none.
    said : str
        How a value carries over, or what holds instead: the end of a sentence; "" if a value is
        the same, or the former default holds.
    was : object
        The former default, which holds for good where there is no new key.
    """

    new: str
    said: str
    was: Any


def _now(new: str, was: Any, said: str = "") -> Old:
    return Old(new, said, was)


def _gone(was: Any, said: str = "") -> Old:
    return Old("", said, was)


def _environment(name: str, was: Any, said: str) -> Old:
    return Old("", f"set the environment variable {name} to {said}", was)


_STAGE = "list the stage there"
_SEED, _NEIGHBORS = _now("seed", 1), _now("neighbors", 15)
#: Key of an earlier version -> what became of it.
OLD: dict[str, Old] = {
    "conda_cuda": _environment(CONDA_CUDA, "none", "12 or 13"),
    "qc.x_contigs": _now("contigs.x", "auto"),
    "panel.exclude_contigs": _now("contigs.exclude", "auto"),
    "encode.haploid": _now("contigs.haploid", "error"),
    "impute.evaluate_methods": _now("impute.evaluate", ["mode"], "list the methods there"),
    "impute.seed": _SEED,
    "impute.map": _now("genetic_map", ""),
    "impute.overlap_mb": _gone(2),
    "impute.threads": _gone(4),
    "impute.memory_mb": _gone(4000, "set mem_mb of impute_window in a profile instead"),
    "distance.missing": _now("impute.stages", "pairwise", _STAGE),
    "distance.export": _now("export.formats", "auto", "list mdist there for true"),
    "distance.site_parts": _gone(1, "each row of tiles is one job"),
    "distance.host_memory_mb": _gone(1024),
    "distance.neighbors": _gone(50),
    "geodesic.number": _gone("auto"),
    "geodesic.dense_limit": _gone(100_000),
    "geodesic.neighbors": _NEIGHBORS,
    "geodesic.audit": _gone(False),
    "geodesic.gpus": _environment(CLOSURE_GPUS, 1, "their number"),
    "embedding.genotypes": _now("impute.stages", "called", f"{_STAGE} as pca"),
    "embedding.long_range_ld": _now("long_range_ld", "exclude"),
    "embedding.max_kinship": _now("close_kinship", 0.0884),
    "embedding.umap_neighbors": _NEIGHBORS,
    "embedding.umap_min_dist": _gone(0.3),
    "embedding.seed": _SEED,
    "communities.graph_tool_python": _environment(
        GRAPH_TOOL_PYTHON,
        "",
        "graph-tool's Python if that is not /usr/bin/python3: a study must not name programs",
    ),
    "communities.neighbors": _NEIGHBORS,
    "communities.restarts": _gone(1),
    "communities.draws": _gone(50),
    "communities.subsamples": _gone(20),
    "communities.min_cluster_size": _gone(10),
    "communities.seed": _SEED,
    "compare.kinship.min_kinship": _now("close_kinship", 0.0884),
    "compare.pc_relate.components": _gone("auto"),
    "compare.pc_relate.max_sites": _gone(50_000),
    "compare.pc_relate.max_samples": _gone(
        30_000, "PC-Relate runs up to distance.dense_limit samples"
    ),
    "compare.identity.query": _now("compare.query", None),
    "compare.mixture.profiles": _now("compare.query", None),
    "compare.identity.top": _gone(1),
    "compare.identity.max_mismatch": _gone(0.02, "it is four times error_rate, at least 0.02"),
    "compare.identity.error_rate": _now("error_rate", 0.005),
    "compare.identity.query_top": _gone(5),
    "compare.mixture.max_absent": _gone(0.02),
    "compare.mixture.dropout": _gone(0.05),
    "compare.mixture.drop_in": _gone(0.01),
    "compare.mixture.contributors": _gone("auto"),
    "compare.mixture.top": _gone(20),
    "compare.ld.genotypes": _now("impute.stages", "called", f"{_STAGE} as ld"),
    "compare.ld.map": _now("genetic_map", None),
    "compare.ld.prune": _gone(
        ["200 sites", 20, 0.2], "embedding.ld_prune prunes the lists for other tools too"
    ),
    "ibd.enable": _now("compare.analyses", False, "list ibd there for true"),
    "ibd.min_ibd2_cm": _gone(2),
    "ibd.min_lod": _gone(3),
    "ibd.error_rate": _now("error_rate", 0.001),
    "ibd.window": _gone(0),
    "ibd.tolerance": _gone(1),
    "ibd.long_range_ld": _now("long_range_ld", "exclude"),
    "ibd.max_sharing": _gone(10),
    "ibd.max_candidates": _gone(100_000_000),
    "ibd.export": _now("export.formats", [], "list the formats there"),
    "geography.permutations": _gone(999),
    "geography.seed": _SEED,
    "population.min_size": _gone(2),
    "population.relatives": _gone("leave_out", "close_kinship 0 counts everybody"),
    "population.x": _gone("error", "statistics of populations leave out the sites of contigs.x"),
    "population.bootstrap": _gone(100),
    "population.seed": _SEED,
    "population.ancestry.folds": _gone(5),
    "population.ancestry.starts": _gone(3),
    "population.local.sites": _gone(200),
    "population.roh.window_sites": _gone(
        50, "windows have as many sites as runs, or 50 where population.roh.min_sites is given"
    ),
    "population.roh.window_hets": _gone(1),
    "population.roh.window_missing": _gone(5),
    "population.roh.threshold": _gone(0.05),
    "population.roh.kb_per_site": _gone(50),
    "population.roh.max_gap_kb": _gone(1000),
    "population.roh.max_hets": _gone(-1),
    "population.roh.consensus": _gone(0.2),
    "export.genotypes": _now("impute.stages", "called", f"{_STAGE} as export"),
    "epistasis.genotypes": _now("impute.stages", "called", _STAGE),
    "epistasis.count_once": _gone(False, "each phenotype is scanned by itself"),
    "epistasis.max_per_site": _gone(10),
    "epistasis.permutations_triples": _now(
        "epistasis.permutations", 0, "write [pairs, triples] there"
    ),
    "epistasis.screen": _gone(0, "the best 20 pairs are tried with each possible third site"),
    "epistasis.seed": _SEED,
    "epistasis.binarize": _now("epistasis.transform", "none", "write median there"),
    "epistasis.permutation_units": _now("epistasis.units", 1),
    "epistasis.max_device_hours": _gone(24, "the limit is 24 hours for each of epistasis.units"),
}
#: Blocks of which all keys are gone, and where they went.
OLD_BLOCKS = dict.fromkeys(("geography", "compare.kinship", "compare.pc_relate"), "")
OLD_BLOCKS |= {"compare.identity": "compare", "compare.mixture": "compare"}
OLD_BLOCKS |= {"encode": "contigs", "population.local": ""}


def given_old(config: dict) -> Iterator[tuple[str, Any]]:
    """The old keys of a configuration with their values, in the order of the table.

    ``impute.evaluate`` was a share before it became a list of methods.
    """
    for key in OLD:
        block: Any = config
        *parents, last = key.split(".")
        for name in parents:
            block = block.get(name) if isinstance(block, dict) else None
        if isinstance(block, dict) and last in block:
            yield key, block[last]
    impute = config.get("impute")
    share = impute.get("evaluate") if isinstance(impute, dict) else None
    if isinstance(share, (int, float)) and not isinstance(share, bool):
        yield "impute.evaluate", share


def refuse_old(config: dict, source: str) -> None:
    """Raise a `UserError` that says what became of the first old key of a configuration."""
    for key, _ in given_old(config):
        raise UserError(
            f"{source}: {describe(key)}; correct it, or let popdesic init --upgrade rewrite the "
            "file."
        )


def describe(key: str) -> str:
    """What became of an old key: a sentence without its end."""
    if key == "impute.evaluate":
        return "impute.evaluate is now a list of methods, of which 2 % of the genotypes test each"
    new, said, _ = OLD[key]
    if new:
        return f"'{key}' is now '{new}'" + (f" ({said})" if said else "")
    return f"'{key}' is gone: {said or instead(key)}"


def instead(key: str) -> str:
    """What holds in place of a key that is gone: its former default, or what the table says."""
    _, said, was = OLD[key]
    return said or f"it is always {json.dumps(was)}"
