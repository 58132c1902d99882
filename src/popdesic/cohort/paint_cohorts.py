"""Painting of a study's cohorts by the phased haplotypes of its founders.

Donors are unrelated founders. They and everyone else are painted with the haplotypes that
imputation by copying has phased and completed (`copy_cohort`). So a sample's row depends on the
donors and on its own haplotypes alone, and a newcomer changes no byte of others.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..copying.copying import pack_rows
from ..copying.copying_plan import MOST_FOUNDERS
from ..copying.painting import joined_stretches
from ..core.errors import UserError
from ..core.files import content_key, digest
from ..core.row import renew_cohorts
from ..core.tables import read_table, writing_npy
from ..io.bed import read_fam
from ..io.frozen_haplotypes import HaplotypePart, open_haplotypes
from .paint_batches import paint_part, sample_batches, unpacked
from .panel import load_panel
from .shared_sites import share_sites

log = logging.getLogger("popdesic")

#: Endings of the files of a cohort: lengths that samples copy from donors, and these by stretch.
#: No cohort has two underscores in a row in its name.
ENDINGS = (".npy", "__stretches.npy")


@dataclass(frozen=True)
class _Donors:
    """Founders that are copied from.

    Attributes
    ----------
    table : DataFrame
        `sample` and `cohort`, in the order of columns of a painting.
    parts : list of HaplotypePart
        Their haplotypes, two each, with the map and the model of the reference.
    sites : list of int64 arrays, (n_sites,)
        Rows of the panel of each part's sites.
    stretches : list of int64 arrays, (n_sites,)
        Stretch of the map of each part's sites.
    n_stretches : int
    """

    table: pd.DataFrame
    parts: list[HaplotypePart]
    sites: list[np.ndarray]
    stretches: list[np.ndarray]
    n_stretches: int


def thinned_founders(fams: Mapping[str, Path], unrelated: Path | None) -> pd.DataFrame:
    """Unrelated founders, MOST_FOUNDERS at most, evenly spaced.

    Parameters
    ----------
    fams : dict
        ``genotypes.fam`` of each founder cohort.
    unrelated : Path, optional
        `panel/unrelated.tsv`; without it all founders count.

    Returns
    -------
    DataFrame
        `sample`, `cohort`, and `row` in the cohort.
    """
    tables = []
    for cohort, path in fams.items():
        names = read_fam(path.with_suffix(""))["sample"]
        tables.append(pd.DataFrame({"sample": names, "cohort": cohort, "row": range(len(names))}))
    found = pd.concat(tables, ignore_index=True)
    if unrelated:
        listed = read_table(unrelated)
        related = listed["sample"][listed.unrelated == "no"]
        found = found[~found["sample"].isin(related)]
    chosen = np.unique(np.linspace(0, len(found) - 1, min(len(found), MOST_FOUNDERS)).astype(int))
    return found.iloc[chosen].reset_index(drop=True)


def choose_donors(fams: Mapping[str, Path], unrelated: Path | None) -> pd.DataFrame:
    """`thinned_founders`, if there are two or more.

    Raises
    ------
    UserError
        There are fewer.
    """
    found = thinned_founders(fams, unrelated)
    if len(found) < 2:
        raise UserError(
            f"communities.methods has 'painting', but only {len(found)} unrelated founders have "
            "genotypes, and samples copy from two or more; remove 'painting'."
        )
    return found


def paint_cohorts(
    haplotypes: Mapping[str, Path],
    fams: Mapping[str, Path],
    founders: Sequence[str],
    out: Path,
    *,
    panel: Path,
    reference: Path,
    unrelated: Path | None,
    code: str,
    threads: int,
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Paint cohorts of which something has changed; keep those of others.

    Parameters
    ----------
    haplotypes, fams : dict
        ``impute/{cohort}/haplotypes.npz`` and ``cohorts/{cohort}/genotypes.fam`` of each cohort.
    founders : sequence of str
        Cohorts of the founders.
    out : Path
        ``row.json`` in the folder of the paintings (ENDINGS), which lists their keys. Files of a
        cohort: expected centimorgans that each sample copies from each donor, float64
        (n_samples, n_donors), and these by stretch of the map, float32
        (n_samples, n_stretches, n_donors). Its own haplotypes are not copied by a donor.
    panel, reference
        As in `copy_cohort.copy_cohort`.
    unrelated
        As in `choose_donors`.
    code : str
        Digest of the code that paints.

    Returns
    -------
    donors : DataFrame
        Of `choose_donors`.
    counts : dict
        For the log.

    Raises
    ------
    UserError
        As `choose_donors` and `shared_sites.share_sites`.
    """
    table = choose_donors({name: fams[name] for name in founders}, unrelated)
    donors = _open_donors(table, haplotypes, panel, reference)
    decided = [code, content_key(panel), open_haplotypes(reference).digest, table.to_csv()]
    decided += [content_key(haplotypes[cohort]) for cohort in founders]
    keys = {
        cohort: digest(repr([cohort, *decided, content_key(path), content_key(fams[cohort])]))
        for cohort, path in haplotypes.items()
    }

    def paint(cohort: str, files: list[Path]) -> int:
        names = read_fam(fams[cohort].with_suffix(""))["sample"].tolist()
        _paint_cohort(donors, names, haplotypes[cohort], files, threads)
        log.info("%s: %d samples painted by %d donors", cohort, len(names), len(table))
        return len(names)

    made = renew_cohorts(out, ENDINGS, keys, paint)
    counts = {"donors": len(table), "stretches": donors.n_stretches}
    counts["sites"] = sum(map(len, donors.sites))
    return table, counts | {"painted": sum(made.values()), "cohorts_kept": len(keys) - len(made)}


def _open_donors(
    table: pd.DataFrame, haplotypes: Mapping[str, Path], panel: Path, reference: Path
) -> _Donors:
    """Haplotypes of donors at the sites that the reference shares with the panel."""
    parts, sites = founder_parts(table, haplotypes, load_panel(panel)[0], reference)
    count, stretches = joined_stretches([part.cm for part in parts])
    return _Donors(table, parts, sites, stretches, count)


def founder_parts(
    table: pd.DataFrame, haplotypes: Mapping[str, Path], panel: pd.DataFrame, reference: Path
) -> tuple[list[HaplotypePart], list[np.ndarray]]:
    """Haplotypes of founders, two each, with the map and the model of the reference.

    Parameters
    ----------
    table : DataFrame
        Of `thinned_founders`.
    haplotypes : dict
        ``impute/{cohort}/haplotypes.npz`` of each of their cohorts.
    panel : DataFrame
        `panel/sites.tsv`.

    Returns
    -------
    parts : list of HaplotypePart
        At the sites that both have, with names and alleles of the panel.
    sites : list of int64 arrays
        The panel's row of each site.
    """
    shared = share_sites(open_haplotypes(reference), panel)
    opened = []
    for cohort, rows in table.groupby("cohort", sort=False).row:
        with np.load(haplotypes[cohort]) as file:
            opened.append((file["sites"], file["haplotypes"], _both(rows.to_numpy())))
    parts = []
    for one in shared:
        columns = [
            unpacked(bits[np.searchsorted(sites, one.sites)], own) for sites, bits, own in opened
        ]
        here = panel.iloc[one.sites]
        parts.append(
            replace(
                one.part,
                contig=str(here.chrom.iloc[0]),
                pos=here.pos.to_numpy(np.int64),
                ref=here.ref.to_numpy("S1").view(np.uint8),
                alt=here.alt.to_numpy("S1").view(np.uint8),
                cm=np.array(one.part.cm[one.rows]),
                haplotypes=pack_rows(np.concatenate(columns).T),
                owner=np.repeat(np.arange(len(table)), 2).astype(np.int32),
            )
        )
    return parts, [one.sites for one in shared]


def _both(samples: np.ndarray) -> np.ndarray:
    """Numbers of both haplotypes of some samples, which follow each other."""
    return (2 * samples[:, None] + np.arange(2)).ravel()


def _paint_cohort(
    donors: _Donors, names: list[str], haplotypes: Path, files: list[Path], threads: int
) -> None:
    """Write the files of a cohort, some samples at a time."""
    n, n_donors, n_stretches = len(names), len(donors.table), donors.n_stretches
    with np.load(haplotypes) as file:
        sites, bits = file["sites"], file["haplotypes"]
    number = {name: k for k, name in enumerate(donors.table["sample"])}
    same = np.array([number.get(name, -1) for name in names])
    owner = np.repeat(np.arange(n), 2)
    most = max(map(len, donors.sites))
    with ExitStack() as stack:
        write = [
            stack.enter_context(writing_npy(path, shape, np.dtype(kind)))
            for path, shape, kind in zip(
                files,
                [(n, n_donors), (n, n_stretches, n_donors)],
                [np.float64, np.float32],
                strict=True,
            )
        ]
        for low, high, rows in sample_batches(owner, n, most, 2 * n_stretches * n_donors):
            lengths = np.zeros((n_stretches, high - low, n_donors))
            masked = np.where(same[owner[rows]] >= 0, 2 * same[owner[rows]], -1)
            own = np.stack([masked, np.where(masked >= 0, masked + 1, -1)], axis=1)
            for part, here, stretches in zip(
                donors.parts, donors.sites, donors.stretches, strict=True
            ):
                alleles = unpacked(bits[np.searchsorted(sites, here)], rows)
                first = int(stretches[0])
                found = paint_part(
                    part, alleles, owner[rows] - low, stretches - first, own, threads
                )
                lengths[first : first + len(found.lengths)] += found.lengths
            write[0](lengths.sum(axis=0))
            write[1](lengths.transpose(1, 0, 2).astype(np.float32))
