"""Popdesic: genotypes of several cohorts to distances, geodesics and maps.

For people with arrays: `pack`, `pairwise_distance`, `kinship`, `pca`, `identity`, `mixture`,
`ld_r2`, `scan`, `scan_sites`, `scan_sets`, `score_sets`, `replicate_sets`, `diversity`,
`shared_doubletons`, `f_st`, `f2`, `f3`, `f4`, `homozygous_runs`, `ibd_segments`, `haploid_ibd`,
`phase_genotypes`, `impute_haplotypes`, `impute_likelihoods`, `fit_copying`, `paint`,
`coancestry_groups`, `local_ancestry`, `sweep_scores`, `xp_ehh`, `garud_h`, `standardised_scores`,
`fermat_weights`, `shortest_paths`, `insert` (docs/api.md).
Each is imported when it is first used, so that ``import popdesic`` costs nothing.
"""

from importlib import import_module as _import_module

from .core.version import __version__ as __version__

#: Where each public name is defined, below the package.
_PUBLIC = {
    "pack": "api.packing",
    "PackedGenotypes": "api.packing",
    "pairwise_distance": "api.samples",
    "kinship": "api.samples",
    "pca": "api.samples",
    "identity": "api.profiles",
    "mixture": "api.profiles",
    "Components": "api.samples",
    "ld_r2": "api.sites",
    "scan": "api.sites",
    "scan_sites": "api.sites",
    "scan_sets": "api.sets",
    "score_sets": "api.set_cohorts",
    "replicate_sets": "api.set_cohorts",
    "CohortSets": "api.set_cohorts",
    "diversity": "api.populations",
    "shared_doubletons": "api.populations",
    "f_st": "api.populations",
    "f2": "api.populations",
    "f3": "api.populations",
    "f4": "api.populations",
    "homozygous_runs": "api.homozygosity",
    "ibd_segments": "api.descent",
    "haploid_ibd": "api.descent",
    "phase_genotypes": "api.haplotypes",
    "impute_haplotypes": "api.haplotypes",
    "impute_likelihoods": "api.haplotypes",
    "fit_copying": "api.haplotypes",
    "paint": "api.painting",
    "coancestry_groups": "api.painting",
    "local_ancestry": "api.ancestry",
    "sweep_scores": "api.sweeps",
    "xp_ehh": "api.sweeps",
    "garud_h": "api.sweeps",
    "standardised_scores": "api.sweeps",
    "fermat_weights": "api.paths",
    "shortest_paths": "api.paths",
    "insert": "api.paths",
    "Closure": "api.paths",
}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str):
    if name not in _PUBLIC:
        raise AttributeError(f"module 'popdesic' has no attribute {name!r}")
    value = getattr(_import_module(f"popdesic.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
