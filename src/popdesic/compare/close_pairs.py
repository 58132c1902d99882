"""Close relatives of a study too large for tables of all pairs: the same rows, without an array.

What `cohorts.compare_cohorts` finds cohort by cohort, `kinship.join_pairs` puts into one table.
Here the pairs of all cohorts are found at once (`Backend.close_pairs`): the same pairs, counts and
kinships, because both start from the same integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.panel import load_panel
from ..distance.tiles import load_cohorts
from ..engine.base import Backend
from ..engine.relatives import Closeness
from ..engine.terms import KINSHIP
from . import kinship
from .independence import faults_of
from .resolution import Resolution

#: Most close pairs of a study: so many for each of its samples, but not fewer than MOST_PAIRS. A
#: million samples then have a table of 1 GB; biobanks have about half a pair a sample.
MOST_PAIRS_A_SAMPLE, MOST_PAIRS = 10, 1_000_000


def find_close_pairs(
    folders: Sequence[Path],
    panel: Path,
    backend: Backend,
    *,
    min_kinship: float,
    min_called: int,
    error_rate: float,
    resolution: Resolution,
    most: int | None = None,
) -> pd.DataFrame:
    """All pairs of a study's samples that are close relatives or the same person.

    Parameters
    ----------
    folders : list of Path
        Folders of `planes.npy`, in sample order.
    panel : Path
        `panel/sites.tsv`.
    min_kinship : float
        Pairs with lower KING-robust kinship are left out, and so are those that could be unrelated
        by chance (`resolution`), unless they are the same person.
    min_called : int
        Pairs with fewer jointly called sites are left out.
    error_rate : float
        Share of genotypes with one allele misread.
    most : int, optional
        Most pairs; by default MOST_PAIRS, or MOST_PAIRS_A_SAMPLE for each sample if that is more.

    Returns
    -------
    DataFrame
        Columns `kinship.COLUMNS`: the rows of the tables of `compare_cohorts`, closest first, less
        those of cohorts in which kinship fails (`independence.judge_cohort`).

    Raises
    ------
    UserError
        Planes of different panels, or more than `most` pairs.
    """
    planes, people = load_cohorts(folders)
    af = load_panel(panel)[0].af.to_numpy()
    smallest = resolution.smallest_kinship
    found = backend.close_pairs(
        planes,
        Closeness(
            kinship=np.inf if smallest is None else max(min_kinship, smallest),
            mismatch_share=0.0 if resolution.least_called is None else resolution.max_mismatch,
            min_called=min_called,
            most=max(MOST_PAIRS, MOST_PAIRS_A_SAMPLE * planes.n_samples) if most is None else most,
        ),
    )
    found = found.only(kinship.as_close(found.counts, min_kinship, min_called, resolution))
    counts = dict(zip(KINSHIP.outputs, found.counts, strict=True))
    named = list(zip(people.samples, people.cohorts, strict=True))
    table = kinship.pairs_table(
        [named[i] for i in found.rows],
        [named[j] for j in found.columns],
        counts,
        kinship.king_robust(counts),
        resolution=resolution,
        parents=kinship.panel_parent_limit(af, error_rate),
    )
    names = [folder.name for folder in folders]
    faults = faults_of(table, dict(zip(names, planes.parts, strict=True)), af, backend)
    table = kinship.without_faults(table, faults)
    table = table[~table.relation.str.startswith(kinship.UNTOLD)]
    # ties of what is written are ordered by name
    written = [float(f"{value:.6g}") for value in table.kinship]
    return kinship.closest_first(table.assign(kinship=written))
