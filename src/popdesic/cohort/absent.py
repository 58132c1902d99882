"""Sites that a cohort's file does not list: homozygous reference, or missing.

A file of variant sites alone says nothing of the sites that it lacks, unless a mask (column
`callable` of the cohort sheet) or the reference blocks of a gVCF say where its samples could be
called, or the user knows (`absent` = reference).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.files import beside, read_json
from ..core.tables import read_table
from ..io.bed import read_fam
from ..io.layers import columns_there, layers_in, sizes_in
from ..io.sites import canonical_contig, canonical_contigs, chunks
from .callable import BLOCKS, DROPPED, load_beside, read_bed
from .callable import Callable as Regions
from .match import Matched, SitePositions, match, orient

#: From this many sites on a file shows whether it lists variant sites alone.
MIN_SITES = 1_000
#: Files of all sites, and arrays, list more sites at which every sample is homozygous reference.
MAX_REFERENCE_ONLY = 0.005
#: Files of variant sites alone whose cohorts differ in more of their sites stop the run: their
#: shared sites are a choice of those that vary in each, which biases heterozygosity by as much.
MAX_ABSENT = 0.02
#: Other files whose sites were chosen by how often they vary list nearly all common sites, at which
#: the others' ALT has this frequency or more, and fewer rare ones. An array beside a file of all
#: sites lists a small share of the common ones too.
COMMON = 0.25
MIN_COMMON_LISTED = 0.6
#: Files of variant sites that were chosen for an array have fewer sites at which one sample alone
#: carries the rarer allele than this share of those of a population of constant size.
MIN_RARE = 0.25
#: Their heterozygosity at the listed sites exceeds that at all by this share, and by as many
#: standard errors, which come from blocks of neighbouring sites.
MIN_BIAS = 0.10
MIN_ERRORS = 5.0
N_BLOCKS = 50
#: Name of the count in raw.json of sites at which all called genotypes are homozygous REF.
REFERENCE_ONLY = "reference_only"
#: Name of the key in raw.json of what `reference_check` found.
GENOME = "genome"
#: Columns of a table of sites with numbers of genotypes.
COUNTS = ["n_ref", "n_het", "n_alt", "n_missing"]


class Absent(NamedTuple):
    """What the cohort sheet says of a cohort's absent sites.

    Attributes
    ----------
    rule : {'auto', 'missing', 'reference'}
    mask : str
        Path of a BED file, or ''.
    key : str
        Size and date of the mask, so that Snakemake notices another one.
    """

    rule: str = "auto"
    mask: str = ""
    key: str = ""


#: A cohort of which the sheet says nothing.
UNSTATED = Absent()


@dataclass(frozen=True)
class Coverage:
    """Which samples of a cohort are homozygous reference at a site that its file does not list.

    Attributes
    ----------
    kept : int64 array, (n_kept,)
        Numbers of the samples in `raw.fam`; of polyploids again for each layer (`io.layers`).
    regions : callable.Callable or None
        Where they could be called; None: everywhere.
    dropped : callable.Callable or None
        Positions of records that are no sites of the cohort: nothing is known there.
    """

    kept: np.ndarray
    regions: Regions | None
    dropped: Regions | None

    @property
    def layers(self) -> int:
        """How often `kept` has each sample, on average if it differs."""
        return len(self.kept) // max(len(np.unique(self.kept)), 1)

    def reference(self, chrom: np.ndarray, pos: np.ndarray) -> np.ndarray:
        """Bool (n_sites, n_kept), or (n_sites, 1) where all samples are alike."""
        if self.regions is None:
            found = np.ones((len(pos), 1), bool)
        elif self.regions.by_sample:
            found = self.regions.covers_samples(chrom, pos, self.kept)
        else:
            found = self.regions.covers(chrom, pos)[:, None]
        if self.dropped is not None:
            found &= ~self.dropped.covers(chrom, pos)[:, None]
        return found

    def count(self, chrom: np.ndarray, pos: np.ndarray) -> np.ndarray:
        """Samples, or layers, that are homozygous reference at each site: int64 (n_sites,)."""
        parts = [np.empty(0, np.int64)]
        for first, last in chunks(len(pos)):
            found = self.reference(chrom[first:last], pos[first:last])
            weight = len(self.kept) if found.shape[1] == 1 else 1
            parts.append(found.sum(axis=1) * weight)
        return np.concatenate(parts)


def coverage_of(raw: Path, names: list[str], absent: Absent) -> Coverage | None:
    """How to read the absent sites of a cohort; None: they are missing.

    Parameters
    ----------
    raw : Path
        Stem of the cohort's decoded files.
    names : list of str
        Samples that are kept.
    """
    regions = None
    if absent.rule == "missing":
        return None
    if absent.rule == "auto":
        if absent.mask:
            regions = read_bed(Path(absent.mask), "callable")
        else:
            regions = load_beside(raw, BLOCKS)
        if regions is None or not len(regions):
            return None
    number = {name: k for k, name in enumerate(read_fam(raw)["sample"].drop_duplicates())}
    kept = np.array([number[name] for name in names], np.int64)
    return Coverage(kept, regions, load_beside(raw, DROPPED))


def kept_coverage(raw: Path, samples: Path, absent: Absent) -> Coverage | None:
    """`coverage_of` the samples that a cohort's sample table keeps; of polyploids once a layer."""
    if absent.rule == "missing":
        return None
    table = read_table(samples)
    found = coverage_of(raw, table["sample"][table.keep == "yes"].tolist(), absent)
    if found is None:
        return None
    fam = read_fam(raw)
    layers = layers_in(fam)
    there = columns_there(sizes_in(fam)[found.kept], layers)
    return replace(found, kept=np.tile(found.kept, layers)[there])


def lists_variants_only(raw: Path, n_sites: int) -> bool:
    """Whether a cohort's file lists variant sites alone: hardly any site is REF in all samples."""
    path = beside(raw, ".json")
    if n_sites < MIN_SITES or not path.is_file():
        return False
    count = read_json(path).get(REFERENCE_ONLY)
    return count is not None and count <= MAX_REFERENCE_ONLY * n_sites


def strands_in_doubt(raw: Path) -> bool:
    """Whether `qc.fasta` showed a cohort's sites on both strands: A/T and C/G are in doubt."""
    path = beside(raw, ".json")
    return path.is_file() and bool(read_json(path).get(GENOME, {}).get("in_doubt"))


@dataclass(frozen=True)
class Lack:
    """What a file lacks of the sites of others.

    Attributes
    ----------
    wanted, lacking : int
        Sites of the others between the first and the last of the file's own sites on each contig,
        and those at whose position it lists nothing.
    bias : float
        Expected heterozygosity 2 p (1 - p) of the others at the sites that the file lists, over
        that at all.
    error : float
        Standard error of `bias`, from `N_BLOCKS` blocks of neighbouring sites left out in turn.
    common_listed : float
        Share of the others' common sites that the file lists; NaN without such sites.
    near_listed : float
        The same of those whose neighbour among the common sites, the one before, is listed: high
        also for a file of a few regions.
    """

    wanted: int
    lacking: int
    bias: float
    error: float
    common_listed: float
    near_listed: float

    @property
    def matters(self) -> bool:
        """Whether the sites that the file lists are a choice among those of the others."""
        return self.lacking > MAX_ABSENT * self.wanted

    @property
    def by_frequency(self) -> bool:
        """Whether the file lists nearly all common sites and lacks rare ones.

        So does a file of the sites that vary in its samples or in a set that they were taken from,
        and one that a filter on frequency was applied to. Sites that are lost at random, in
        regions, or because an array does not have them, do not depend on frequency like this.
        """
        return (
            self.matters
            and self.wanted >= MIN_SITES
            and max(self.common_listed, self.near_listed) >= MIN_COMMON_LISTED
            and self.bias - 1 >= max(MIN_BIAS, MIN_ERRORS * self.error)
        )


def measure_lack(
    table: pd.DataFrame, sites: pd.DataFrame, listed: np.ndarray, frequency: np.ndarray
) -> Lack:
    """Compare a file's sites with those of others.

    Parameters
    ----------
    table, sites : DataFrame
        `chrom` and `pos` of the file and of the others.
    listed : bool array, (n_sites,)
        Which of the others' positions the file lists.
    frequency : float64 array, (n_sites,)
        Of ALT in the others' samples; NaN where none is called.
    """
    span = table.groupby(canonical_contigs(table.chrom)).pos.agg(["min", "max"])
    contig, pos = canonical_contigs(sites.chrom), sites.pos.to_numpy()
    low, high = (pd.Series(contig).map(span[name]).to_numpy() for name in ("min", "max"))
    inside = (pos >= low) & (pos <= high)
    known = np.flatnonzero(inside & ~np.isnan(frequency))
    known = known[np.lexsort((pos[known], contig[known]))]
    p, here = frequency[known], listed[known]
    bias, error = _ratio(2 * p * (1 - p), here)
    common = (p >= COMMON) & (p <= 0.5)
    here = here[common]
    share = float(here.mean()) if len(here) else np.nan
    near = float(here[1:][here[:-1]].mean()) if here[:-1].any() else np.nan
    return Lack(int(inside.sum()), int((inside & ~listed).sum()), bias, error, share, near)


def has_rare(counts: np.ndarray) -> bool:
    """Whether a file lists as many rare variants as sequencing finds; an array has few.

    Among all variants of a population of constant size, one sample alone carries the rarer allele
    at a share ``(1 + 1 / (2 n - 1)) / sum(1 / i, i < 2 n)`` of the sites that vary in n samples
    (``n`` for ``2 n`` where no genotype is heterozygous).

    Parameters
    ----------
    counts : int array, (n_sites, >= 3)
        Genotypes 0, 1 and 2 of the file's sites.
    """
    n_ref, n_het, n_alt = counts[:, :3].T
    carriers = n_het + np.minimum(n_ref, n_alt)
    varies = carriers > 0
    # Haploids and inbred lines are one copy each.
    n = (2 if n_het.any() else 1) * int((n_ref + n_het + n_alt).max(initial=0))
    if n < 4 or not varies.any():
        return True
    expected = (1 + 1 / (n - 1)) / (1 / np.arange(1, n)).sum()
    return float((carriers[varies] == 1).mean()) >= MIN_RARE * expected


def _ratio(value: np.ndarray, chosen: np.ndarray) -> tuple[float, float]:
    """Mean of the chosen values over the mean of all, and its standard error by a jackknife."""
    block = np.arange(len(value)) * N_BLOCKS // max(len(value), 1)
    sums = np.stack(
        [
            np.bincount(block, weights, N_BLOCKS)
            for weights in (value * chosen, 1.0 * chosen, value, np.ones(len(value)))
        ]
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        whole, left = (
            (one[0] / one[1]) / (one[2] / one[3])
            for one in (sums.sum(axis=1), sums.sum(axis=1)[:, None] - sums)
        )
        error = np.sqrt((N_BLOCKS - 1) * ((left - left.mean()) ** 2).mean())
    return float(whole), float(error)


def frequency_of(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ALT frequency (NaN if unknown) and called samples of counts (n_sites, 4)."""
    called = counts[:, :3].sum(axis=1)
    with np.errstate(invalid="ignore"):
        return (counts[:, 1] + 2 * counts[:, 2]) / (2 * called), called


def counts_at(
    table: pd.DataFrame,
    sites: pd.DataFrame,
    coverage: Coverage | None,
    places: SitePositions,
    *,
    in_doubt: bool = False,
    frequency: Callable[[], np.ndarray] | None = None,
) -> tuple[Matched, np.ndarray, np.ndarray]:
    """Genotype counts of a cohort at sites, with absent ones as `coverage` says.

    Parameters
    ----------
    table : DataFrame
        `chrom`, `pos`, `ref`, `alt` and `COUNTS` of the cohort's sites.
    sites : DataFrame
        `chrom`, `pos`, `ref`, `alt`; with `af`, those of the panel, or with `frequency`, A/T and
        C/G sites are told by frequency (`match.orient`).
    in_doubt : bool
        As in `match`.
    frequency : callable, optional
        Gives the ALT frequency of sites without `af`.

    Returns
    -------
    found : Matched
    counts : int64 array, (n_sites, 4)
        Genotypes 0, 1, 2 and missing by REF and ALT of the sites; zero where nothing is known.
    filled : bool array, (n_sites,)
        Sites that the cohort does not list and that are homozygous reference in some sample.
    """
    found = match(table, sites, places, in_doubt=in_doubt)
    own = table[COUNTS].to_numpy(np.int64)
    if "af" in sites:
        frequency = sites.af.to_numpy
    if frequency is not None and found.has_flips:
        here = own[np.maximum(found.row, found.candidate)]
        found = orient(found, *frequency_of(here), frequency())
    counts = np.zeros((len(sites), 4), np.int64)
    here = found.row >= 0
    counts[here] = own[found.row[here]]
    counts[found.swapped] = counts[found.swapped][:, [2, 1, 0, 3]]
    filled = np.zeros(len(sites), bool)
    lacking = np.flatnonzero(~found.listed)
    if coverage is not None and len(lacking) and len(own):
        chrom, pos = sites.chrom.to_numpy(object), sites.pos.to_numpy()
        known = coverage.count(chrom[lacking], pos[lacking])
        lacking, known = lacking[known > 0], known[known > 0]
        counts[lacking, 0], counts[lacking, 3] = known, own[0].sum() - known
        filled[lacking] = True
    return found, counts, filled


def refuse_outside(
    cohort: str, absent: Absent, regions: Regions, own: pd.DataFrame, lacking: pd.DataFrame
) -> None:
    """Stop a study with a file of variant sites only that lists many outside its own mask.

    There absent sites are missing, so that the sites that remain are a choice of those that vary in
    every cohort, as without a mask.

    Parameters
    ----------
    regions : callable.Callable
        The mask.
    own, lacking : DataFrame
        `chrom` and `pos` of the file's sites that can enter the panel, and of sites of others that
        it does not list.

    Raises
    ------
    UserError
        One sentence with the ways out.
    """
    outside, unknown = (
        ~regions.covers(sites.chrom.to_numpy(object), sites.pos.to_numpy())
        for sites in (own, lacking)
    )
    if outside.sum() <= MAX_ABSENT * len(own) or not unknown.any():
        return
    first = own[outside].iloc[0]
    named = canonical_contig(first.chrom) in regions.contigs
    why = "the file is not cut to it" if named else f"it has no interval of contig {first.chrom}"
    raise UserError(
        f"cohort '{cohort}' lists variant sites only, {int(outside.sum())} of {len(own)} outside "
        f"its mask {absent.mask} (such as {first.chrom}:{first.pos}: {why}), so sites that it does "
        "not list there are unknown; name the mask of all that was called, or cut the file to the "
        f"mask (bcftools view -T {absent.mask})."
    )


def refuse_lack(cohort: str, lack: Lack, others: str, n_sites: int, *, variants_only: bool) -> None:
    """Stop a study with a file whose absent sites nothing tells of, if they bias the panel.

    Parameters
    ----------
    others : str
        Whose sites `lack` is measured against.
    n_sites : int
        Sites of the file.
    variants_only : bool
        Whether the file lists variant sites alone (`lists_variants_only`), and rare ones too
        (`has_rare`). Others stop if they lack sites by frequency.

    Raises
    ------
    UserError
        One sentence with the ways out and the bias.
    """
    lacks = f"{lack.lacking} of {lack.wanted} sites of {others} ({lack.lacking / lack.wanted:.0%})"
    ways = (
        "name a BED mask in its row of the cohort sheet (column callable), give a gVCF, write "
        "absent = reference if you know that its samples are homozygous reference there, or "
        "absent = missing if its sites were chosen without regard to these samples, as on an array"
    )
    if variants_only and lack.matters:
        bias = (
            f", which changes heterozygosity by {lack.bias - 1:+.0%}"
            if lack.bias == lack.bias
            else ""
        )
        raise UserError(
            f"cohort '{cohort}' lists variant sites only ({n_sites} sites) and lacks {lacks}, so "
            f"shared sites would be those that vary in every cohort{bias}; {ways}."
        )
    if lack.by_frequency:
        near = (
            ""
            if lack.common_listed >= MIN_COMMON_LISTED
            else f" ({lack.near_listed:.0%} of those next to one that it lists)"
        )
        raise UserError(
            f"cohort '{cohort}' lacks {lacks}, mostly rare ones, but lists "
            f"{lack.common_listed:.0%} of those with an allele frequency from {COMMON} to 0.5"
            f"{near}; so do files of sites that vary in their samples or in a larger set, and "
            "files filtered by frequency; shared sites would change heterozygosity by "
            f"{lack.bias - 1:+.0%}; {ways}."
        )
