"""Which genotypes a stage reads: the called ones, or with missing calls imputed."""

from __future__ import annotations

from ..core.errors import UserError

#: Name of a stage in `impute.stages` -> what rests on it, as a sentence calls it. Distances, too,
#: are in that list, but they count imputed genotypes of any quality.
STAGES = {
    "epistasis": "epistasis scans",
    "ld": "LD",
    "pca": "PCA",
    "export": "exports of the panel",
}
#: Values of `export.formats` that hold genotypes.
PANEL_FORMATS = {"plink", "vcf", "zarr", "zarr3"}
CALLED, IMPUTED = "called", "imputed"
#: Stem of a cohort's PLINK files below `results/cohorts/{cohort}`, by its genotypes.
STEMS = {CALLED: "genotypes", IMPUTED: "imputed"}


def chosen_genotypes(config: dict) -> dict[str, str]:
    """``called`` or ``imputed`` for each of `STAGES`."""
    asking = config.get("impute", {}).get("stages", [])
    return {stage: IMPUTED if stage in asking else CALLED for stage in STAGES}


def genotype_stems(config: dict) -> dict[str, str]:
    """Stem of the PLINK files that each of `STAGES` reads."""
    return {stage: STEMS[value] for stage, value in chosen_genotypes(config).items()}


def running_stages(config: dict) -> list[str]:
    """Those of `STAGES` that some job of the study belongs to."""
    runs = {
        "epistasis": bool(config["epistasis"]["order"] or config["epistasis"].get("sets")),
        "ld": "ld" in config["compare"]["analyses"],
        "pca": True,
        "export": not PANEL_FORMATS.isdisjoint(config["export"]["formats"]),
    }
    return [stage for stage in STAGES if runs[stage]]


def imputed_cohorts(config: dict, cohorts: list[str], founders: list[str]) -> list[str]:
    """Cohorts whose missing calls some stage reads as imputed: LD reads founders alone."""
    chosen = chosen_genotypes(config)
    asking = {stage for stage in running_stages(config) if chosen[stage] == IMPUTED}
    if asking - {"ld"}:
        return list(cohorts)
    return [cohort for cohort in cohorts if asking and cohort in founders]


def check_genotypes(config: dict, source: str) -> None:
    """Raise a `UserError` if a stage reads imputed genotypes that the study does not impute."""
    asking, method = config["impute"]["stages"], config["impute"]["method"]
    refused = [stage for stage in asking if stage != "distance" or method == "none"]
    if refused and method not in ("beagle", "copying"):
        why = "imputes nothing" if method == "none" else "only repeats the most frequent genotype"
        raise UserError(
            f"{source}: impute.stages has '{refused[0]}', but impute.method is '{method}', which "
            f"{why}; set impute.method to 'beagle', or to 'copying', or remove "
            f"'{refused[0]}'."
        )
    if "ld" in asking and config["compare"]["ld"]["phase"] == "phased":
        raise UserError(
            f"{source}: impute.stages has 'ld', but compare.ld.phase is 'phased', which reads the "
            "haplotypes of the founders' files, where nothing is imputed; set compare.ld.phase to "
            "'em' or remove 'ld'."
        )


def describe_genotypes(config: dict) -> str:
    """One sentence: which stages of the study read called and which imputed genotypes."""
    chosen = chosen_genotypes(config)
    by_value: dict[str, list[str]] = {CALLED: [], IMPUTED: []}
    for stage in running_stages(config):
        by_value[chosen[stage]].append(STAGES[stage])
    limit = config["impute"]["min_r2"]
    parts = []
    if by_value[CALLED]:
        parts.append(f"Called genotypes are used for {_listed(by_value[CALLED])}.")
    if by_value[IMPUTED]:
        parts.append(
            f"Missing calls are imputed for {_listed(by_value[IMPUTED])}, where r² is at least "
            f"{limit:g}."
        )
    return " ".join(parts)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def haploid_contigs(config: dict) -> list[str]:
    """Contigs of which some people have one copy by `contigs.haploid`; X is `contigs.x`."""
    rule = config["contigs"]["haploid"]
    return [name for name in rule if name != "default"] if isinstance(rule, dict) else []


def missing_rule(config: dict) -> str:
    """How distances take missing genotypes: ``pairwise``, or ``imputed``."""
    return "imputed" if "distance" in config["impute"]["stages"] else "pairwise"
