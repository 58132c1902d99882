"""Targets of imputation on the sites of a haplotype panel: calls, phased or not, or likelihoods."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..io.frozen_haplotypes import HaplotypePanel
from ..io.genotype_likelihoods import NO_PHREDS, ONE_COPY, read_phreds
from ..io.phased import (
    ABSENT,
    NO_ALLELE,
    PhasedSites,
    batches_of_snps,
    is_store,
    read_phased_samples,
    stream_phased,
    vcf_records,
)
from ..io.sites import canonical_contig
from .match import (
    MIN_SHARE,
    MIN_SHARED_SITES,
    Matched,
    count_matched,
    match,
    require_one_build,
)

log = logging.getLogger("popdesic")


@dataclass(frozen=True)
class TypedPart:
    """Calls of the targets at sites of one part of the panel.

    Attributes
    ----------
    rows : int64 array, (n_typed,)
        Sites of the part, ascending.
    alleles : int8 array, (n_haplotypes, n_typed)
        1 is ALT of the part's site; -1 is missing.
    owner : int32 array, (n_haplotypes,)
        Number of the sample that each haplotype belongs to, in rising order.
    unphased : bool array, (n_samples,)
        Samples with a heterozygous call that is not phased: theirs are in any order.
    """

    rows: np.ndarray
    alleles: np.ndarray
    owner: np.ndarray
    unphased: np.ndarray


@dataclass(frozen=True)
class Targets:
    """Names of the samples, one TypedPart for each part of the panel, and counts of the match."""

    samples: list[str]
    parts: list[TypedPart]
    counts: dict[str, int]


class LikelySites(NamedTuple):
    """Consecutive biallelic SNPs of one contig, as `PhasedSites`, with their `read_phreds`."""

    chrom: str
    pos: np.ndarray
    ref: list[str]
    alt: list[str]
    phreds: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class LikelyPart:
    """Likelihoods of the targets at sites of one part of the panel.

    Attributes
    ----------
    rows : int64 array, (n_typed,)
        Sites of the part, ascending.
    phreds : uint8 array, (n_samples, n_typed, 3)
        Of 0, 1 and 2 ALT alleles of the part's site; zeros where they are missing. The third of a
        haploid sample does not count.
    haploid : bool array, (n_samples,)
    """

    rows: np.ndarray
    phreds: np.ndarray
    haploid: np.ndarray

    def told(self) -> np.ndarray:
        """Samples with likelihoods that are not all equal, at any site: bool (n_samples,)."""
        counted = np.where(self.haploid[:, None, None], [True, True, False], True)
        return ((self.phreds > 0) & counted).any(axis=(1, 2))


@dataclass(frozen=True)
class LikelyTargets:
    """Names of the samples, a LikelyPart for each part of the panel, and counts of the match."""

    samples: list[str]
    parts: list[LikelyPart]
    counts: dict[str, int]


def read_targets(path: Path, panel: HaplotypePanel, threads: int = 1) -> Targets:
    """Read targets and place them on the panel's sites.

    Sites are matched as those of a cohort are (`match.match`): by position, then by alleles in
    either order, on either strand; A/T and C/G sites in doubt are left out. A half-call that is
    not phased is missing. Chromosomes that the reference lacks are left out.

    Raises
    ------
    UserError
        The file is of another build, or shares too few sites with the panel (MIN_SHARED_SITES,
        MIN_SHARE); or the number of a sample's alleles changes.
    """
    samples = read_phased_samples(path)
    counts: Counter = Counter()

    def pick(batch: PhasedSites, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        calls = _settled(batch)[rows]
        called = (calls >= 0).all(axis=2)
        return calls, ~batch.phased[rows] & (calls.sum(axis=2) == 1) & called

    batches = stream_phased(path, counts, threads)
    sites, found, (alleles, unphased) = _shared_rows(path, panel, batches, counts, pick)
    parts = []
    for number, part in enumerate(panel.parts):
        here = np.flatnonzero((sites.part == number).to_numpy() & (found.row >= 0))
        rows = sites.row.to_numpy()[here]
        calls = alleles[found.row[here]]
        calls = np.where(found.swapped[here, None, None] & (calls >= 0), 1 - calls, calls)
        shown = f"{path}, contig '{part.contig}'"
        open_calls = unphased[found.row[here]].any(axis=0)
        parts.append(_haplotypes(rows, calls.astype(np.int8), open_calls, shown, samples))
    return Targets(samples, parts, dict(counts))


def read_likely(path: Path, panel: HaplotypePanel, threads: int = 1) -> LikelyTargets:
    """Read genotype likelihoods of targets and place them on the panel's sites.

    Raises
    ------
    UserError
        As `read_targets`; the file is not VCF or BCF, or likelihoods are not valid.
    """
    samples = read_phased_samples(path)
    if is_store(path):
        raise UserError(
            f"{path}: likelihoods are read from VCF and BCF files alone; give such a file."
        )
    counts: Counter = Counter()

    def read(path: Path, record, shown: str) -> np.ndarray:
        return read_phreds(f"{path}, {shown}", record, samples)

    def batches() -> Iterator[LikelySites]:
        for chrom, rows in batches_of_snps(vcf_records(path, threads, read), counts):
            pos, _, ref, alt, phreds = zip(*rows, strict=True)
            yield LikelySites(chrom, np.array(pos, np.int64), list(ref), list(alt), phreds)

    def pick(batch: LikelySites, rows: np.ndarray) -> tuple[np.ndarray]:
        return (np.stack(batch.phreds)[rows],)

    sites, found, (phreds,) = _shared_rows(path, panel, batches(), counts, pick)
    parts = []
    for number, part in enumerate(panel.parts):
        here = np.flatnonzero((sites.part == number).to_numpy() & (found.row >= 0))
        placed = sites.row.to_numpy()[here], phreds[found.row[here]], found.swapped[here]
        parts.append(_likely_part(*placed, f"{path}, contig '{part.contig}'", samples))
    return LikelyTargets(samples, parts, dict(counts))


def _shared_rows(
    path: Path, panel: HaplotypePanel, batches: Iterable, counts: Counter, pick: Callable
) -> tuple[pd.DataFrame, Matched, list[np.ndarray]]:
    """Match the records of a file with the sites of a panel.

    Parameters
    ----------
    batches : iterable
        Of biallelic SNPs, with `chrom`, `pos`, `ref` and `alt`; they may fill `counts`.
    counts : Counter
        Gets those of the match.
    pick : callable
        Gets a batch and the rows of it that have a position of the panel; returns what is kept of
        these rows, arrays.

    Returns
    -------
    DataFrame, Matched, list of arrays
        The panel's sites at shared positions (`listed_sites`), the record of each of them, and the
        joined arrays of `pick`.

    Raises
    ------
    UserError
        As `read_targets`.
    """
    positions = defaultdict(list)
    for part in panel.parts:
        positions[canonical_contig(part.contig)].append(part.pos)
    known = {contig: np.sort(np.concatenate(lists)) for contig, lists in positions.items()}
    seen, tables, kept = Counter(), [], []
    for batch in batches:
        seen[batch.chrom] += len(batch.pos)
        here = known.get(canonical_contig(batch.chrom), np.empty(0, np.int64))
        place = np.minimum(np.searchsorted(here, batch.pos), max(len(here) - 1, 0))
        rows = np.flatnonzero(here[place] == batch.pos) if len(here) else np.empty(0, np.int64)
        kept.append(pick(batch, rows))
        columns = {name: [getattr(batch, name)[k] for k in rows] for name in ("ref", "alt")}
        tables.append(pd.DataFrame({"chrom": batch.chrom, "pos": batch.pos[rows], **columns}))
    if not seen:
        raise UserError(f"{path} has no biallelic SNP; give a file with those of the array.")
    seen = keep_shared_contigs(str(path), panel, seen)
    table = pd.concat(tables, ignore_index=True)
    sites = listed_sites(panel, table)
    found = match(table, sites)
    require_one_build(found, str(path), str(panel.path))
    counts.update(count_matched(found, len(table)))
    del counts["panel_sites_absent"]  # of those at shared positions alone
    shared = Counter(sites.chrom[found.row >= 0].map(canonical_contig))
    require_overlap(str(path), panel, seen, shared, found)
    if found.has_flips:
        log.warning(
            "%s: sites on both strands were turned; A/T and C/G sites in doubt are left out.", path
        )
    return sites, found, [np.concatenate(arrays) for arrays in zip(*kept, strict=True)]


def keep_shared_contigs(shown: str, panel: HaplotypePanel, seen: Counter) -> Counter:
    """Numbers of sites by contig, of those contigs that the reference has; warns of others.

    Raises
    ------
    UserError
        None is left.
    """
    known = {canonical_contig(part.contig) for part in panel.parts}
    lost = {name: n for name, n in seen.items() if canonical_contig(name) not in known}
    if lost:
        names = ", ".join(lost)
        log.warning(
            "%s: the reference lacks %s; %d sites left out", shown, names, sum(lost.values())
        )
    kept = Counter({name: n for name, n in seen.items() if name not in lost})
    if not kept:
        own = ", ".join([*lost][:5])
        theirs = ", ".join(dict.fromkeys(part.contig for part in panel.parts))
        raise UserError(
            f"{shown} shares no contig with the reference {panel.path}: its contigs are {own}, "
            f"those of the reference are {theirs}; rename one of them (bcftools annotate "
            "--rename-chrs), or give another reference."
        )
    return kept


def _settled(batch: PhasedSites) -> np.ndarray:
    """Alleles of a batch, where half of a call that is not phased is not known either."""
    alleles = batch.alleles
    half = ~batch.phased & (alleles == NO_ALLELE).any(axis=2)
    return np.where(half[..., None] & (alleles != ABSENT), np.int8(NO_ALLELE), alleles)


def listed_sites(panel: HaplotypePanel, table: pd.DataFrame) -> pd.DataFrame:
    """Sites of a reference at positions of a table: `part`, `row`, `chrom`, `pos`, `ref`, `alt`."""
    contigs = table.chrom.map(canonical_contig)
    tables = []
    for number, part in enumerate(panel.parts):
        there = table.pos.to_numpy()[(contigs == canonical_contig(part.contig)).to_numpy()]
        rows = np.flatnonzero(np.isin(part.pos, there))
        bases = {
            name: list(bytes(getattr(part, name)[rows]).decode("ascii")) for name in ("ref", "alt")
        }
        about = {"part": number, "row": rows, "chrom": part.contig, "pos": part.pos[rows]}
        tables.append(pd.DataFrame({**about, **bases}))
    return pd.concat(tables, ignore_index=True)


def require_overlap(
    shown: str, panel: HaplotypePanel, seen: Counter, shared: Counter, found: Matched
) -> None:
    """Refuse sites of which a reference has too few, in all or on a chromosome.

    Parameters
    ----------
    seen, shared : Counter
        Numbers of the sites by contig, and of those that the reference has by canonical contig.

    Raises
    ------
    UserError
        With the counts.
    """
    turned = int((found.flipped & (found.row >= 0)).sum())
    total = sum(shared.values())
    said = (
        f"of {found.positions} shared positions {found.compatible} have the same alleles, "
        f"{turned} of them on the other strand, {int(found.swapped.sum())} with REF and ALT swapped"
    )
    advice = "check that both are of one genome build and that the reference suits the array"
    for contig, n in seen.items():
        own = shared[canonical_contig(contig)]
        if own < MIN_SHARE * n:
            raise UserError(
                f"{shown}: on contig '{contig}' only {own} of {n} sites ({own / n:.1%}) are in the "
                f"reference {panel.path}, less than {MIN_SHARE:.0%} ({said}); {advice}."
            )
    if total < MIN_SHARED_SITES:
        raise UserError(
            f"{shown} shares {total} sites with the reference {panel.path}, fewer than "
            f"{MIN_SHARED_SITES} ({said}); {advice}."
        )


def _haplotypes(
    rows: np.ndarray, calls: np.ndarray, unphased: np.ndarray, shown: str, samples: list[str]
) -> TypedPart:
    """Haplotypes of calls (n_typed, n_samples, 2); haploid samples have one."""
    called = (calls >= 0).any(axis=2)
    one = called & (calls[:, :, 1] == ABSENT)
    haploid, diploid = one.any(axis=0), (called & ~one).any(axis=0)
    if (mixed := haploid & diploid).any():
        sample = int(np.argmax(mixed))
        n_one, n_two = int(one[:, sample].sum()), int((called & ~one)[:, sample].sum())
        raise UserError(
            f"{shown}: the calls of sample '{samples[sample]}' are haploid at {n_one} sites and "
            f"diploid at {n_two}, where those of the reference do not change; "
            "write them in one way (bcftools +fixploidy)."
        )
    there = np.stack([np.ones_like(haploid), ~haploid], axis=1).ravel()
    alleles = np.maximum(calls.reshape(len(rows), len(there))[:, there], NO_ALLELE)
    owner = np.repeat(np.arange(len(samples)), 2 - haploid).astype(np.int32)
    return TypedPart(rows, np.ascontiguousarray(alleles.T), owner, unphased)


def _likely_part(
    rows: np.ndarray, phreds: np.ndarray, swapped: np.ndarray, shown: str, samples: list[str]
) -> LikelyPart:
    """A part of phreds (n_typed, n_samples, 3), which are changed."""
    missing = phreds[..., 0] == NO_PHREDS
    one = ~missing & (phreds[..., 2] == ONE_COPY)
    haploid, diploid = one.any(axis=0), (~missing & ~one).any(axis=0)
    if (mixed := haploid & diploid).any():
        sample = int(np.argmax(mixed))
        n_one, n_two = int(one[:, sample].sum()), int((~missing & ~one)[:, sample].sum())
        raise UserError(
            f"{shown}: sample '{samples[sample]}' has two likelihoods at {n_one} sites, as a "
            f"haploid sample, and three at {n_two}; write them in one way."
        )
    phreds[missing] = 0
    last = np.where(haploid, 1, 2)
    turned = np.flatnonzero(swapped)
    for sample, stop in enumerate(last):
        phreds[turned, sample, : stop + 1] = phreds[turned, sample, stop::-1]
    return LikelyPart(rows, np.ascontiguousarray(phreds.transpose(1, 0, 2)), haploid)
