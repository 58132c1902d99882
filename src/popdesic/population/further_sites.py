"""Counts of a cohort at sites beside the panel, which only statistics of populations read.

The panel leaves rare alleles out. What describes single populations (heterozygosity, private
alleles, spectra, nucleotide diversity) needs them, so these sites are counted from the cohort's
decoded genotypes. Founders alone decide which they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.absent import UNSTATED, Absent
from ..cohort.encode import CHUNK_SITES, OnPanel
from ..cohort.panel import load_panel
from ..core.files import content_key
from ..io.sites import chunks
from .options import used_sites


@dataclass(frozen=True)
class FurtherSites:
    """Sites beside the panel, and a cohort's genotypes there.

    Attributes
    ----------
    sites : Path
        `panel/further.tsv`.
    raw : Path
        Stem of the cohort's decoded .bed, .bim and .fam.
    samples : Path
        Its sample table, `qc/{cohort}.samples.tsv`.
    absent : Absent
        What the cohort sheet says of sites that its file does not list.
    """

    sites: Path
    raw: Path
    samples: Path
    absent: Absent = UNSTATED

    @property
    def key(self) -> str:
        """What decides the counts beside the panel and the labels."""
        raw = [self.raw.with_name(f"{self.raw.name}.{end}") for end in ("bed", "bim", "json")]
        files = [self.sites, *(path for path in raw if path.is_file())]
        return repr([self.absent, *map(content_key, files)])

    def count(
        self,
        panel: pd.DataFrame,
        names: list[str],
        group: np.ndarray,
        n_groups: int,
        x_contigs: list[str],
        dtype: np.dtype,
        threads: int = 1,
    ) -> np.ndarray:
        """Samples of each group with 0, 1, 2 ALT alleles: (n_sites, n_groups, 3) of `dtype`.

        Alleles are turned, and absent sites read, as on the panel: the cohort's sites are matched
        with those of both lists, so that its strand is told by the same alleles.

        Parameters
        ----------
        panel : DataFrame
            The panel's sites.
        names : list of str, (n_samples,)
            The cohort's samples that are on the panel.
        group : int array, (n_samples,)
            Group of each; -1: none.
        x_contigs : list of str
            Contigs whose sites do not count: zero.
        """
        sites, _ = load_panel(self.sites)
        out = np.zeros((len(sites), n_groups, 3), dtype)
        if not out.size:
            return out
        both = pd.concat([panel, sites], ignore_index=True)
        placed = OnPanel.open(self.raw, self.samples, both, self.absent)
        known = dict(zip(names, group.tolist(), strict=True))
        own = np.array([known.get(name, -1) for name in placed.names], np.int64)
        for first, last in chunks(len(sites), CHUNK_SITES):
            part = len(panel) + first, len(panel) + last
            out[first:last] = placed.count(*part, own, n_groups, threads)[:, :, :3]
        out[~used_sites(sites, x_contigs)] = 0
        return out


def further_sites(
    sites: Path | None,
    folders: Mapping[str, Path],
    tables: Iterable[Path],
    absent: Mapping[str, Sequence[str]],
) -> dict[str, FurtherSites]:
    """Each cohort's genotypes beside the panel; of none without `sites`.

    Parameters
    ----------
    sites : Path, optional
        `panel/further.tsv`.
    folders : dict
        `results/cohorts/{cohort}` of each cohort.
    tables : iterable of Path
        Their sample tables, in the same order.
    absent : dict
        Fields of `cohort.absent.Absent` of each cohort.
    """
    if sites is None:
        return {}
    return {
        cohort: FurtherSites(sites, folder / "raw", table, Absent(*absent[cohort]))
        for (cohort, folder), table in zip(folders.items(), tables, strict=True)
    }
