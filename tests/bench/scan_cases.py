"""Sizes of the scans that `bench_epistasis.py` measures."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

THIRDS, TENTHS, WTCCC = (1 / 3, 1 / 3, 1 / 3), (0.1, 0.2, 0.7), (0.067, 0.237, 0.696)
#: Genotype frequencies, and the T combinations x samples a second that EPIClear's paper (ICS 2025)
#: prints in section 5.4, of 16 384 sites x 524 288 samples on one A100.
MIXES = {
    (0.1, 0.1, 0.8): 679.09,
    (0.1, 0.3, 0.6): 522.86,
    (0.1, 0.4, 0.5): 464.76,
    (0.2, 0.2, 0.6): 526.98,
    (0.2, 0.3, 0.5): 467.03,
    (0.2, 0.4, 0.4): 418.85,
    (0.3, 0.3, 0.4): 423.59,
}


@dataclass(frozen=True)
class Case:
    """One scan: `target` and `published` in T combinations x samples a second.

    `published` is what a paper prints, of the same sites and samples on the card that is named.
    """

    order: int
    n_sites: int
    controls: int
    cases: int
    frequencies: tuple[float, float, float]
    target: float
    published: str
    missing: float = 0.0
    kernel: str | None = None
    residuals: bool = False
    incomplete: float = 1.0

    @property
    def mixed(self) -> bool:
        """Whether some sites alone lack genotypes: the first ones, a share `incomplete`."""
        return self.missing > 0 and self.incomplete < 1


#: Published, besides the mixes: EPIClear's sections 5.4 (10/20/70 %), 5.7 (the first 16 384 sites
#: of WTCCC1's type-1 diabetes, 5 004 people) and 6 (thirds); table 3 of Tensor-Episdet (TPDS 2021),
#: whose largest data are 32 768 sites x 262 144 samples (section 6.4). Of quads, the abstract of
#: Epi4Tensor (ICPP 2022, doi 10.1145/3545008.3545066), which names no sizes; 835.4 on eight A100.
CASES = {
    "a": Case(3, 4096, 131072, 131072, THIRDS, 1160, "none"),
    "b": Case(3, 8192, 131072, 131072, THIRDS, 1800, "none"),
    "c": Case(3, 8192, 131072, 131072, TENTHS, 2600, "none"),
    "d": Case(3, 8192, 3072, 2048, WTCCC, 160, "none"),
    "e": Case(3, 16384, 3072, 2048, WTCCC, 280, "EPIClear 17.87, A100"),
    # more than 65 535 carriers of a class; of the last one also of pairs of stored genotypes
    "h": Case(3, 16384, 262144, 262144, THIRDS, 1800, "EPIClear 352.06, A100"),
    "i": Case(3, 16384, 262144, 262144, TENTHS, 3000, "EPIClear 589.07, A100"),
    "m": Case(3, 4096, 1_048_576, 1_048_576, THIRDS, math.nan, "none"),
    "p": Case(2, 32768, 32768, 32768, THIRDS, 1000, "none"),
    "P": Case(2, 32768, 262144, 262144, THIRDS, 1000, "none"),
    "t": Case(2, 32768, 131072, 131072, THIRDS, math.nan, "Tensor-Episdet 108.08, Titan RTX"),
    "T": Case(3, 32768, 131072, 131072, THIRDS, math.nan, "Tensor-Episdet 54.54, Titan RTX"),
    "q": Case(3, 8192, 4096, 4096, THIRDS, 20, "none", kernel="popc"),
    # by residuals: the aim is 120
    "r": Case(2, 32768, 65536, 0, THIRDS, 120, "none", residuals=True),
    "s": Case(2, 65536, 5120, 0, WTCCC, 120, "none", residuals=True),
    # all pairs of a genome-wide study, and of a biobank
    "g": Case(2, 500_000, 3000, 2000, WTCCC, math.nan, "none"),
    "G": Case(2, 500_000, 50_000, 50_000, WTCCC, math.nan, "none"),
    # quads; the aim is that of issue 48
    "Q": Case(4, 2048, 262144, 262144, THIRDS, 1500, "Epi4Tensor 90.9, A100"),
    "R": Case(4, 2048, 262144, 262144, TENTHS, 1500, "Epi4Tensor 90.9, A100"),
    "S": Case(4, 2048, 32768, 32768, THIRDS, math.nan, "Epi4Tensor 90.9, A100"),
    "A": Case(3, 4096, 131072, 131072, THIRDS, 464, "none", 0.01),
    "B": Case(3, 8192, 131072, 131072, THIRDS, 720, "none", 0.01),
    "C": Case(3, 8192, 131072, 131072, TENTHS, 1040, "none", 0.01),
    "D": Case(3, 8192, 3072, 2048, WTCCC, 64, "none", 0.01),
    "E": Case(3, 16384, 3072, 2048, WTCCC, 110, "none", 0.01),
    "H": Case(3, 16384, 262144, 262144, THIRDS, 900, "none", 0.01),
    "I": Case(3, 16384, 262144, 262144, TENTHS, 1400, "none", 0.01),
    # the other mixes of genotypes that EPIClear was measured with, at the same size
    **{
        str(number): Case(3, 16384, 262144, 262144, mix, math.nan, f"EPIClear {rate}, A100")
        for number, (mix, rate) in enumerate(MIXES.items(), 1)
    },
    # missing genotypes in some sites alone: 85 % of cases b, d and p
    "j": Case(3, 8192, 131072, 131072, THIRDS, 1656, "none", 0.01, incomplete=0.05),
    "J": Case(3, 8192, 3072, 2048, WTCCC, 174, "none", 0.01, incomplete=0.05),
    "o": Case(2, 32768, 32768, 32768, THIRDS, 898, "none", 0.01, incomplete=0.05),
}


def resized(case: Case, n_sites: int | None, n_samples: int | None) -> Case:
    """The case with other sizes, of which nothing is published and no rate is aimed at."""
    given = {"target": math.nan, "published": "none"}
    if n_sites:
        case = replace(case, n_sites=n_sites, **given)
    if n_samples:
        half = n_samples // 2
        case = replace(case, controls=n_samples - half, cases=half, **given)
    return case
