"""What the stages are set by: the keys of a study, and what no study changes.

A key of the configuration exists because two users need two values. Everything else that a stage
takes is fixed here, in one place, with the value that the tools of the field have.
"""

from __future__ import annotations

import copy

from .environment import closure_gpus, conda_cuda

#: Values of stages that are no keys.
FIXED = {
    "impute": {"hidden_share": 0.02, "overlap_mb": 2, "threads": 4, "memory_mb": 4000},
    "distance": {"host_memory_mb": 1024, "neighbors": 50},
    "embedding": {"umap_min_dist": 0.3},
    "communities": {"restarts": 1, "draws": 50, "subsamples": 20, "min_cluster_size": 10},
    "compare": {
        "pc_relate": {"components": "auto", "max_sites": 50_000},
        "identity": {"top": 1, "query_top": 5},
        "mixture": {
            **{"max_absent": 0.02, "dropout": 0.05, "drop_in": 0.01},
            **{"contributors": "auto", "top": 20},
        },
    },
    "ibd": {
        **{"min_ibd2_cm": 2, "min_lod": 3, "window": 0, "tolerance": 1},
        **{"max_sharing": 10, "max_candidates": 100_000_000},
    },
    "geography": {"permutations": 999},
    "population": {
        **{"min_size": 2, "relatives": "leave_out", "bootstrap": 100},
        "ancestry": {"folds": 5, "starts": 3},
        "local": {"sites": 200},
        # Those of `plink1.9 --homozyg`.
        "roh": {
            **{"window_sites": 50, "window_hets": 1, "window_missing": 5, "threshold": 0.05},
            **{"kb_per_site": 50, "max_gap_kb": 1000, "max_hets": -1, "consensus": 0.2},
        },
    },
    "epistasis": {"max_per_site": 10},
}
#: Samples up to which PC-Relate runs, and kinship of listed pairs where all founders define axes.
MOST_RELATED, SECOND_DEGREE = 30_000, 0.0884
#: Error rate of genotypes that identity expects, if the study gives none; segments measure it.
IDENTITY_ERRORS = 0.005
#: Least share of sites at which two samples of one person may differ.
LEAST_MISMATCH = 0.02
#: Pruning of the lists for other tools where the PCA takes all sites.
LISTED_PRUNING = ["500 kb", 1, 0.2]
#: Hours that a job of a scan may take.
MOST_HOURS = 24
#: Formats of `export.formats` that other stages than the export write.
DISTANCE_TEXT, SEGMENT_FORMATS = "mdist", ("hap-ibd", "ibis")


def stage_settings(config: dict) -> dict:
    """Settings of all stages: a checked configuration, filled with defaults, and `FIXED`.

    The keys of the configuration are among them, as they are.

    What stages share (`seed`, `neighbors`, …) is handed to each of them.
    """
    own = _joined(config, FIXED)
    for stage in ("impute", "embedding", "communities", "geography", "population", "epistasis"):
        own[stage]["seed"] = config["seed"]
    own["geodesic"]["neighbors"] = own["communities"]["neighbors"] = config["neighbors"]
    own["embedding"]["umap_neighbors"] = config["neighbors"]
    own["embedding"]["long_range_ld"] = own["ibd"]["long_range_ld"] = config["long_range_ld"]
    own["embedding"]["max_kinship"] = config["close_kinship"]
    own["conda_cuda"], own["geodesic"]["gpus"] = conda_cuda(), closure_gpus()
    own["qc"]["x_contigs"] = config["contigs"]["x"]
    own["panel"]["exclude_contigs"] = config["contigs"]["exclude"]
    own["encode"] = {"haploid": config["contigs"]["haploid"]}

    impute, stages = own["impute"], config["impute"]["stages"]
    impute["map"] = config["genetic_map"]
    own["distance"]["missing"] = "imputed" if "distance" in stages else "pairwise"
    formats = own["export"]["formats"]
    own["distance"]["export"] = True if DISTANCE_TEXT in formats else "auto"
    own["ibd"]["export"] = [name for name in formats if name in SEGMENT_FORMATS]

    compare, rate = own["compare"], config["error_rate"]
    own["ibd"]["enable"] = "ibd" in compare["analyses"]
    compare["kinship"] = {"min_kinship": config["close_kinship"] or SECOND_DEGREE}
    limit = config["distance"]["dense_limit"]
    compare["pc_relate"]["max_samples"] = MOST_RELATED if limit == "auto" else limit
    compare["identity"]["error_rate"] = IDENTITY_ERRORS if rate == "auto" else rate
    compare["identity"]["max_mismatch"] = max(LEAST_MISMATCH, 4 * compare["identity"]["error_rate"])
    own["ibd"]["error_rate"] = rate
    compare["ld"]["genotypes"] = "imputed" if "ld" in stages else "called"
    compare["ld"]["map"] = config["genetic_map"] or None
    compare["ld"]["prune"] = own["embedding"]["ld_prune"] or LISTED_PRUNING

    scan = own["epistasis"]
    scan["binarize"] = "median" if scan["transform"] == "median" else "none"
    scan["permutation_units"] = scan["units"]
    scan["max_device_hours"] = MOST_HOURS * scan["units"]
    return own


def _joined(config: dict, fixed: dict) -> dict:
    """A copy of a configuration with the fixed values in its blocks."""
    joined = copy.deepcopy(config)
    for key, value in fixed.items():
        if isinstance(value, dict):
            joined[key] = _joined(joined.get(key, {}), value)
        else:
            joined[key] = value
    return joined
