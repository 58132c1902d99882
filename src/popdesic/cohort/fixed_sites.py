"""Files that lack the sites at which all of their samples are homozygous for ALT.

Who keeps the sites that vary within a cohort (`bcftools view -c1:minor`, `plink --mac 1`) drops
those as well. Read as homozygous reference, such an absent site gets the opposite homozygote.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..core.errors import UserError
from .absent import Coverage, counts_at
from .match import SitePositions

#: ALT frequency from which on it is unlikely that a cohort of the same species lacks ALT.
HIGH = 0.9
#: Fewest such sites that were read as reference, and at which the file lists mostly ALT.
MIN_LOST, MIN_SEEN = 5, 20


def count_lost(own: np.ndarray, filled: np.ndarray, elsewhere: np.ndarray) -> int:
    """Sites read as reference that are fixed for ALT, as far as can be told; 0 if none.

    A file of all variant sites lists some sites at which all of its samples are homozygous ALT.
    One that lists many where ALT is nearly fixed in others, but none where it is fixed in its own
    samples, was cut to sites that vary.

    Parameters
    ----------
    own : int array, (n_sites, >= 3)
        Genotypes 0, 1 and 2 of the cohort's listed sites; zero at others.
    filled : bool array, (n_sites,)
        Absent sites that are read as homozygous reference.
    elsewhere : float array, (n_sites,)
        ALT frequency among samples of files that list the site; NaN where there is none.
    """
    high = elsewhere >= HIGH
    listed = high & ~filled & (own[:, :3].sum(axis=1) > 0)
    if (listed & (own[:, :2].sum(axis=1) == 0)).any():
        return 0
    seen = int((listed & (own[:, 2] >= own[:, 0])).sum())
    lost = int((high & filled).sum())
    return lost if lost >= MIN_LOST and seen >= MIN_SEEN else 0


def count_genotypes(genotypes: np.ndarray) -> np.ndarray:
    """Samples with 0, 1 and 2 ALT alleles at each site of (n_sites, n_samples): (n_sites, 3)."""
    return np.stack([(genotypes == k).sum(axis=1) for k in range(3)], axis=1)


def refuse_lost(shown: str, lost: int) -> None:
    """Raise a UserError if any site was `count_lost`."""
    if lost:
        raise UserError(
            f"{shown} lists no site at which all of its samples are homozygous ALT, and lacks "
            f"{lost} sites at which ALT has a frequency of at least {HIGH:.0%} in others; its "
            "absent sites cannot be read as homozygous reference; give a file that keeps sites "
            "fixed for ALT (bcftools view -c 1, not -c 1:minor), or write absent = missing in the "
            "cohort sheet."
        )


def has_fixed(table: pd.DataFrame) -> bool:
    """Whether a table with `COUNTS` lists a site at which all samples are homozygous ALT."""
    return bool(((table.n_alt > 0) & (table.n_ref == 0) & (table.n_het == 0)).any())


def refuse_lost_founder(
    cohort: str,
    table: pd.DataFrame,
    coverage: Coverage,
    sites: pd.DataFrame,
    pooled: np.ndarray,
) -> None:
    """Refuse a founder whose absent sites are read as reference, but were fixed for ALT.

    Parameters
    ----------
    table : DataFrame
        Its sites with `COUNTS`, none of which is `has_fixed`.
    sites : DataFrame
        Sites of all founders that can enter the panel.
    pooled : int64 array, (n_sites, 3)
        Genotypes 0, 1 and 2 there of all samples whose files list a site, this founder's too.
    """
    _, counts, filled = counts_at(table, sites, coverage, SitePositions())
    counts[filled] = 0
    rest = (pooled - counts[:, :3]).astype(float)
    with np.errstate(invalid="ignore"):
        elsewhere = (rest[:, 1] + 2 * rest[:, 2]) / (2 * rest.sum(axis=1))
    refuse_lost(f"founder '{cohort}'", count_lost(counts, filled, elsewhere))
