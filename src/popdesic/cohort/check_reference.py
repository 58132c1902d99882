"""A reference that a study copies from, looked at before any job: its first records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..copying.copying_plan import LEAST_FOUNDERS, MOST_HAPLOTYPES
from ..core.errors import UserError
from ..io.batches import SiteBatch
from ..io.formats import is_zarr
from ..io.frozen_haplotypes import is_frozen, open_haplotypes
from ..io.phased import (
    ABSENT,
    read_phased_samples,
    require_calls,
    require_few,
    require_same,
    stream_phased,
)
from ..io.sites import canonical_contig
from .impute import FROZEN_END, no_file
from .match import MIN_SHARE, MIN_SHARED_SITES, match, require_one_build

#: Sites of each part of a frozen reference that are looked at.
FIRST_SITES = 20_000
#: Fewer sites of a cohort between the first and last of these tell nothing of their share.
LEAST_SITES = 50


def require_founders(n: int) -> None:
    """Raise a UserError where founders are too few to be copied from."""
    if n < LEAST_FOUNDERS:
        raise UserError(
            "impute uses 'copying' without impute.reference, which copies from the founders, but "
            f"there are only {n}, fewer than {LEAST_FOUNDERS}; set impute.reference to a phased "
            "VCF, or use 'mode' or 'beagle'."
        )


def require_snps(n: int, where: str) -> None:
    """Raise a UserError where founders have too few SNPs to be copied from.

    Parameters
    ----------
    n : int
        Biallelic SNPs.
    where : str
        What has them, with its verb.
    """
    if n < MIN_SHARED_SITES:
        raise UserError(
            "impute uses 'copying' without impute.reference, which copies from the founders, but "
            f"{where} {n} biallelic SNPs, fewer than {MIN_SHARED_SITES}; set impute.method to "
            "'mode' or 'beagle' and leave copying out of impute.evaluate, or give files with more "
            "SNPs."
        )


def require_distinct_snps(batches: Sequence[SiteBatch | None]) -> None:
    """Refuse founders whose files have too few SNPs; one of several cohorts counts once.

    Parameters
    ----------
    batches : sequence of SiteBatch or None
        All SNPs of every founder cohort.

    Raises
    ------
    UserError
        There are fewer than `match.MIN_SHARED_SITES`.
    """
    sites = set()
    for batch in filter(None, batches):
        contigs = map(canonical_contig, batch.chrom)
        sites.update(zip(contigs, batch.pos.tolist(), batch.ref, batch.alt, strict=True))
    require_snps(len(sites), "files of the founders have")


def first_sites(files: list[str], folder: Path) -> pd.DataFrame:
    """Look at the beginning of a reference, frozen or not.

    Returns
    -------
    DataFrame
        `chrom`, `pos`, `ref`, `alt` of its first sites.

    Raises
    ------
    UserError
        A file is not there or cannot be read, one of several is frozen, files have different
        samples, or the first of them has a call that is unphased or missing, no SNP, or too many
        haplotypes.
    """
    for one in files:
        path = folder / one
        if not (path.is_file() or is_zarr(path)):
            raise no_file("impute.reference", one)
    first = folder / files[0]
    if len(files) > 1 and (packed := [one for one in files if one.endswith(FROZEN_END)]):
        raise UserError(
            f"impute.reference names {len(files)} files, and {packed[0]} is frozen; a frozen "
            "reference is one file of all chromosomes: freeze their VCF files together (popdesic "
            "freeze), or name those."
        )
    if first.suffix == FROZEN_END:
        return _frozen_sites(first)
    if is_frozen(first):
        raise UserError(
            f"{first} (impute.reference) is a frozen reference or another archive; give a frozen "
            f"reference a name that ends in {FROZEN_END}."
        )
    samples = read_phased_samples(first)
    for one in files[1:]:
        require_same(folder / one, first, samples)
    require_few(first, len(samples), MOST_HAPLOTYPES)
    batch = next(stream_phased(first, Counter()), None)
    if batch is None:
        raise UserError(f"{first} (impute.reference) has no biallelic SNP; copying needs some.")
    require_calls(batch, first, samples)
    haploid = int((batch.alleles[0, :, 1] == ABSENT).sum())
    require_few(first, 2 * len(samples) - haploid, MOST_HAPLOTYPES)
    columns = {name: getattr(batch, name) for name in ("pos", "ref", "alt")}
    return pd.DataFrame({"chrom": batch.chrom, **columns})


def _frozen_sites(path: Path) -> pd.DataFrame:
    tables = []
    for part in open_haplotypes(path).parts:
        bases = {
            name: list(bytes(getattr(part, name)[:FIRST_SITES]).decode("ascii"))
            for name in ("ref", "alt")
        }
        tables.append(pd.DataFrame({"chrom": part.contig, "pos": part.pos[:FIRST_SITES], **bases}))
    return pd.concat(tables, ignore_index=True)


def compare_reference(sites: pd.DataFrame, shown: str, batch: SiteBatch, cohort: str) -> None:
    """Compare the first sites of a reference with the first records of a cohort.

    Raises
    ------
    UserError
        They are of different genome builds, or the reference has hardly any of the cohort's sites.
    """
    columns = {name: getattr(batch, name) for name in ("chrom", "pos", "ref", "alt")}
    own = pd.DataFrame(columns)
    ends = sites.groupby(sites.chrom.map(canonical_contig)).pos.agg(["min", "max"])
    contigs = own.chrom.map(canonical_contig)
    low, high = (contigs.map(ends[end]).to_numpy(np.float64) for end in ("min", "max"))
    own = own[(own.pos.to_numpy() >= low) & (own.pos.to_numpy() <= high)].reset_index(drop=True)
    if own.empty:
        return
    found = match(sites, own)
    require_one_build(found, f"cohort '{cohort}'", f"the reference {shown}")
    shared = int((found.row >= 0).sum())
    if len(own) >= LEAST_SITES and shared < MIN_SHARE * len(own):
        raise UserError(
            f"the reference {shown} has {shared} of the first {len(own)} sites of cohort "
            f"'{cohort}' ({shared / len(own):.1%}), less than {MIN_SHARE:.0%}; check that both are "
            "of one genome build and that the reference suits the data."
        )
