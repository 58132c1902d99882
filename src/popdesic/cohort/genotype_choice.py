"""Which genotypes a stage reads: the called ones, or with missing calls imputed."""

from __future__ import annotations

from ..core.errors import UserError

#: Configuration key -> what rests on it, as a sentence calls it.
STAGES = {
    "epistasis.genotypes": "epistasis scans",
    "compare.ld.genotypes": "LD",
    "embedding.genotypes": "PCA",
    "export.genotypes": "exports of the panel",
}
#: Values of `export.formats` that hold genotypes.
PANEL_FORMATS = {"plink", "vcf", "zarr"}
CALLED, IMPUTED = "called", "imputed"
#: Stem of a cohort's PLINK files below `results/cohorts/{cohort}`, by its genotypes.
STEMS = {CALLED: "genotypes", IMPUTED: "imputed"}


def chosen_genotypes(config: dict) -> dict[str, str]:
    """``called`` or ``imputed`` for each key of `STAGES`; a block without the key has called."""
    chosen = {}
    for key in STAGES:
        value = config
        for part in key.split("."):
            value = value.get(part, {})
        chosen[key] = value or CALLED
    return chosen


def genotype_stems(config: dict) -> dict[str, str]:
    """Stem of the PLINK files that each key of `STAGES` reads."""
    return {key: STEMS[value] for key, value in chosen_genotypes(config).items()}


def running_stages(config: dict) -> list[str]:
    """The keys of `STAGES` that some job of the study obeys."""
    runs = {
        "epistasis.genotypes": bool(config["epistasis"]["order"]),
        "compare.ld.genotypes": "ld" in config["compare"]["analyses"],
        "embedding.genotypes": True,
        "export.genotypes": not PANEL_FORMATS.isdisjoint(config["export"]["formats"]),
    }
    return [key for key in STAGES if runs[key]]


def imputed_cohorts(config: dict, cohorts: list[str], founders: list[str]) -> list[str]:
    """Cohorts whose missing calls some stage reads as imputed: LD reads founders alone."""
    chosen = chosen_genotypes(config)
    asking = {key for key in running_stages(config) if chosen[key] == IMPUTED}
    if asking - {"compare.ld.genotypes"}:
        return list(cohorts)
    return [cohort for cohort in cohorts if asking and cohort in founders]


def check_genotypes(config: dict, source: str) -> None:
    """Raise a `UserError` if a stage reads imputed genotypes that the study does not impute."""
    asking = [key for key, value in chosen_genotypes(config).items() if value == IMPUTED]
    method = config["impute"]["method"]
    if asking and method != "beagle":
        why = "imputes nothing" if method == "none" else "only repeats the most frequent genotype"
        raise UserError(
            f"{source}: {asking[0]} is 'imputed', but impute.method is '{method}', which {why}; "
            f"set impute.method to 'beagle' or {asking[0]} to 'called'."
        )
    if "compare.ld.genotypes" in asking and config["compare"]["ld"]["phase"] == "phased":
        raise UserError(
            f"{source}: compare.ld.genotypes is 'imputed', but compare.ld.phase is 'phased', which "
            "reads the haplotypes of the founders' files, where nothing is imputed; set "
            "compare.ld.phase to 'em' or compare.ld.genotypes to 'called'."
        )


def describe_genotypes(config: dict) -> str:
    """One sentence: which stages of the study read called and which imputed genotypes."""
    chosen = chosen_genotypes(config)
    by_value: dict[str, list[str]] = {CALLED: [], IMPUTED: []}
    for key in running_stages(config):
        by_value[chosen[key]].append(STAGES[key])
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
    """Contigs of which some people have one copy by `encode.haploid`; X is `qc.x_contigs`."""
    rule = config["encode"]["haploid"]
    return [name for name in rule if name != "default"] if isinstance(rule, dict) else []
