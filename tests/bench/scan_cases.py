"""Sizes of the scans that `bench_epistasis.py` measures."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

THIRDS, TENTHS, WTCCC = (1 / 3, 1 / 3, 1 / 3), (0.1, 0.2, 0.7), (0.067, 0.237, 0.696)
#: Genotype frequencies, and EPIClear's T combinations x samples a second (figure 5 of its paper).
MIXES = {
    (0.1, 0.1, 0.8): 679,
    (0.1, 0.3, 0.6): 523,
    (0.1, 0.4, 0.5): 465,
    (0.2, 0.2, 0.6): 527,
    (0.2, 0.3, 0.5): 467,
    (0.2, 0.4, 0.4): 419,
    (0.3, 0.3, 0.4): 424,
}


@dataclass(frozen=True)
class Case:
    """One scan: `target` and `peer` in T combinations x samples a second."""

    order: int
    n_sites: int
    controls: int
    cases: int
    frequencies: tuple[float, float, float]
    target: float
    peer: str
    missing: float = 0.0
    kernel: str | None = None
    residuals: bool = False
    incomplete: float = 1.0

    @property
    def mixed(self) -> bool:
        """Whether some sites alone lack genotypes: the first ones, a share `incomplete`."""
        return self.missing > 0 and self.incomplete < 1


#: Peers: EPIClear (290 ... 38 T) and Tensor-Episdet (34 T) on an H200; the limit of tables with 27
#: POPC per word (4.7 T).
CASES = {
    "a": Case(3, 4096, 131072, 131072, THIRDS, 1160, "EPIClear 290"),
    "b": Case(3, 8192, 131072, 131072, THIRDS, 1800, "EPIClear 456"),
    "c": Case(3, 8192, 131072, 131072, TENTHS, 2600, "EPIClear 659"),
    "d": Case(3, 8192, 3072, 2048, WTCCC, 160, "EPIClear 32"),
    "e": Case(3, 16384, 3072, 2048, WTCCC, 280, "EPIClear 38"),
    # more than 65 535 carriers of a class; of the last one also of pairs of stored genotypes
    "h": Case(3, 16384, 262144, 262144, THIRDS, 1800, "EPIClear 352, A100"),
    "i": Case(3, 16384, 262144, 262144, TENTHS, 3000, "EPIClear 589, A100"),
    "m": Case(3, 4096, 1_048_576, 1_048_576, THIRDS, math.nan, "none"),
    "p": Case(2, 32768, 32768, 32768, THIRDS, 1000, "Tensor-Episdet 34"),
    "P": Case(2, 32768, 262144, 262144, THIRDS, 1000, "none"),
    "q": Case(3, 8192, 4096, 4096, THIRDS, 20, "27 POPC 4.7", kernel="popc"),
    # by residuals: the aim is 120
    "r": Case(2, 32768, 65536, 0, THIRDS, 120, "none", residuals=True),
    "s": Case(2, 65536, 5120, 0, WTCCC, 120, "none", residuals=True),
    # all pairs of a genome-wide study, and of a biobank
    "g": Case(2, 500_000, 3000, 2000, WTCCC, math.nan, "none"),
    "G": Case(2, 500_000, 50_000, 50_000, WTCCC, math.nan, "none"),
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
    """The case with other sizes, without a target rate."""
    if n_sites:
        case = replace(case, n_sites=n_sites, target=math.nan)
    if n_samples:
        half = n_samples // 2
        case = replace(case, controls=n_samples - half, cases=half, target=math.nan)
    return case
