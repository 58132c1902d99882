"""Match a cohort's sites to the panel by contig, position and alleles in either order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..io.sites import canonical_contig, is_ambiguous, site_keys


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
    keys = site_keys(bim)
    first = ~keys.duplicated().to_numpy()
    found = site_keys(panel).merge(
        keys[first].assign(row=np.flatnonzero(first), ref_there=bim.ref[first].str.upper()),
        on=["contig", "pos", "low", "high"],
        how="left",
        sort=False,
    )
    row = np.array(found.row.fillna(-1), np.int64)
    swapped = (row >= 0) & (found.ref_there.to_numpy() != panel.ref.str.upper().to_numpy())
    ambiguous = swapped & is_ambiguous(panel.ref.str.upper(), panel.alt.str.upper())
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
