"""Sites of a study's panel that a frozen reference has, too."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..io.frozen_haplotypes import HaplotypePanel, HaplotypePart
from ..io.sites import canonical_contig
from .match import match, require_one_build
from .phased_targets import keep_shared_contigs, listed_sites, require_overlap

#: What messages call the sites of a study.
PANEL = "the panel"


@dataclass(frozen=True)
class SharedPart:
    """Sites that a part of the reference shares with the panel, in the part's order.

    Attributes
    ----------
    part : HaplotypePart
    sites : int64 array, (n_shared,)
        Rows of the panel.
    rows : int64 array, (n_shared,)
        Rows of the part, rising.
    swapped : bool array, (n_shared,)
        Whether REF of the reference is ALT of the panel.
    """

    part: HaplotypePart
    sites: np.ndarray
    rows: np.ndarray
    swapped: np.ndarray


def share_sites(reference: HaplotypePanel, panel: pd.DataFrame) -> list[SharedPart]:
    """Find the panel's sites in a reference, by position and alleles on either strand.

    Raises
    ------
    UserError
        They are of different genome builds, or share too few sites (`phased_targets`).
    """
    seen = keep_shared_contigs(PANEL, reference, Counter(panel.chrom.tolist()))
    listed = listed_sites(reference, panel)
    found = match(listed, panel)
    require_one_build(found, PANEL, f"the reference {reference.path}")
    here = found.row >= 0
    shared = Counter(panel.chrom[here].map(canonical_contig))
    require_overlap(PANEL, reference, seen, shared, found)
    sites = np.flatnonzero(here)
    numbers, rows = (listed[name].to_numpy()[found.row[sites]] for name in ("part", "row"))
    parts = []
    for number, part in enumerate(reference.parts):
        own = np.flatnonzero(numbers == number)
        own = own[np.argsort(rows[own], kind="stable")]
        parts.append(SharedPart(part, sites[own], rows[own], found.swapped[sites[own]]))
    return [one for one in parts if len(one.sites)]
