"""Match a cohort's sites to the panel by contig, position and alleles in either order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..io.sites import canonical_contig, is_ambiguous, site_codes


def match_sites(bim: pd.DataFrame, panel: pd.DataFrame):
    """Find each panel site among a cohort's sites.

    Returns
    -------
    row_of_site : int64 array, (n_sites,)
        Row of the cohort's .bed, or -1 if absent.
    swapped : bool array, (n_sites,)
        Whether REF and ALT are swapped in the cohort.
    counts : dict
    """
    (there, ref_there), (wanted, ref_wanted) = site_codes(bim, panel)
    known, first = np.unique(there, return_index=True)  # the first of equal ones
    if len(known):
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        row = np.where(known[place] == wanted, first[place], -1)
        swapped = (row >= 0) & (ref_there[row] != ref_wanted)
    else:
        row, swapped = np.full(len(panel), -1), np.zeros(len(panel), bool)
    ambiguous = swapped & is_ambiguous(panel.ref, panel.alt)
    row[ambiguous] = -1
    swapped &= ~ambiguous
    present = int((row >= 0).sum())
    return (
        row,
        swapped,
        {
            "panel_sites_found": present,
            "panel_sites_absent": len(panel) - present - int(ambiguous.sum()),
            "swapped_turned": int(swapped.sum()),
            "swapped_ambiguous_dropped": int(ambiguous.sum()),
            "sites_not_on_panel": len(bim) - present - int(ambiguous.sum()),
        },
    )


def _no_overlap(cohort: str, raw: Path, bim: pd.DataFrame, panel: pd.DataFrame) -> str:
    here, there = list(bim.chrom.unique()), list(panel.chrom.unique())
    shared = set(map(canonical_contig, here)) & set(map(canonical_contig, there))
    if shared:
        reason = (
            f"contigs match ({', '.join(sorted(shared)[:3])} …) but positions and alleles do not"
        )
        advice = "check that both use the same genome build"
    else:
        reason = (
            f"its contigs are {', '.join(here[:3])} …, the panel's are {', '.join(there[:3])} …"
        )
        advice = "rename the contigs of one of them (bcftools annotate --rename-chrs)"
    return f"{raw}.bim: cohort '{cohort}' shares no site with the panel: {reason}; {advice}."
