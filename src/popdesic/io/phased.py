"""Read phased alleles of biallelic SNPs from VCF, BCF and VCF-Zarr, in file order.

The other readers of this room decode genotypes, which have no phase. Here the alleles of a call
keep their order. cyvcf2 reads VCF and BCF; it decompresses in threads, which change no byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..core.errors import UserError
from .formats import VCF, ZARR, find_format, read_sample_names
from .genotypes import site_kind
from .zarr_store import CALLS, FAULTS, FILL, PHASE, SITE_ARRAYS, damaged, open_store, texts

#: An allele that is missing, and the second allele of a haploid call.
NO_ALLELE, ABSENT = -1, -2
#: Sites of a batch.
BATCH_SITES = 2_000


class PhasedSites(NamedTuple):
    """Consecutive biallelic SNPs of one contig.

    Attributes
    ----------
    chrom : str
    pos : int64 array, (n_sites,)
    id, ref, alt : list of str
        `ref` and `alt` in capitals.
    alleles : int8 array, (n_sites, n_samples, 2)
        0 is REF, 1 is ALT; NO_ALLELE, or ABSENT for the second allele of a haploid call.
    phased : bool array, (n_sites, n_samples)
        Whether the call is phased; a haploid one is.
    """

    chrom: str
    pos: np.ndarray
    id: list[str]
    ref: list[str]
    alt: list[str]
    alleles: np.ndarray
    phased: np.ndarray


def read_phased_samples(path: Path) -> list[str]:
    """Names of the samples of a file that can hold phase.

    Raises
    ------
    UserError
        It is not VCF, BCF or VCF-Zarr, cannot be read, or has no or repeated samples.
    """
    kind, _ = find_format(path)
    if kind not in (VCF, ZARR):
        raise UserError(
            f"{path}: files of PLINK, EIGENSTRAT, BGEN and tskit are not read with phase; give "
            "phased genotypes as VCF, BCF or VCF-Zarr."
        )
    return read_sample_names(path)


def stream_phased(path: Path, counts: Counter, threads: int = 1) -> Iterator[PhasedSites]:
    """Yield the biallelic SNPs of a phased file in batches, in file order.

    Parameters
    ----------
    counts : Counter
        Gets the number of records that are left out, by the kinds of `genotypes.site_kind`, and
        of those that are kept (`snps`).
    threads : int
        Threads that decompress.

    Raises
    ------
    UserError
        The file cannot be read, a record has no GT, or a call has more than two alleles.
    """
    records = _zarr_records(path) if is_store(path) else vcf_records(path, threads, _vcf_calls)
    for chrom, rows in batches_of_snps(records, counts):
        yield _join(path, chrom, rows)


def batches_of_snps(records: Iterator[tuple], counts: Counter) -> Iterator[tuple[str, list]]:
    """Consecutive biallelic SNPs of one contig: position, identifier, REF, ALT, and the calls.

    Parameters
    ----------
    records : iterator of tuple
        As of `vcf_records`.
    counts : Counter
        As in `stream_phased`.
    """
    chrom, rows = None, []
    for name, pos, site_id, ref, alts, calls in records:
        kind = site_kind(ref, alts, plink=False)
        if kind != "snps" or ref.upper() == alts[0].upper():
            counts[kind] += 1
            continue
        counts["snps"] += 1
        if rows and (name != chrom or len(rows) == BATCH_SITES):
            yield chrom, rows
            rows = []
        chrom = name
        rows.append((pos, site_id, ref.upper(), alts[0].upper(), calls()))
    if rows:
        yield chrom, rows


def is_store(path: Path) -> bool:
    """Whether a file is read as VCF-Zarr."""
    return find_format(path).kind == ZARR


def _join(path: Path, chrom: str, rows: list[tuple]) -> PhasedSites:
    """A batch of rows: position, identifier, REF, ALT, calls (n_samples, 2 alleles and phase)."""
    pos, ids, ref, alt, calls = zip(*rows, strict=True)
    calls = np.stack(calls)
    alleles = calls[..., :2]
    if len(wrong := np.argwhere((alleles < ABSENT) | (alleles > 1))):
        raise UserError(
            f"{path}, {chrom}:{pos[wrong[0, 0]]}: a call has an allele that the record does not "
            "list; correct the file."
        )
    phased = (calls[..., 2] != 0) | (alleles[..., 1] == ABSENT)
    return PhasedSites(
        chrom, np.array(pos, np.int64), list(ids), list(ref), list(alt), alleles, phased
    )


def vcf_records(path: Path, threads: int, read: Callable) -> Iterator[tuple]:
    """Contig, position, identifier, REF, list of ALT, and a function that reads the calls.

    `read` gets the path, the record and its place in words. It is called only for records that are
    kept, before the next one.
    """
    import cyvcf2

    try:
        reader = cyvcf2.VCF(str(path), threads=threads)
    except OSError:
        raise _unreadable(path) from None
    last = "its first record"
    try:
        while True:
            try:
                record = next(reader)
            except StopIteration:
                return
            except Exception:  # cyvcf2 raises nothing more special
                raise _unreadable(path, f" after {last}") from None
            last = f"{record.CHROM}:{record.POS}"
            site = (record.CHROM, record.POS, record.ID or ".", record.REF, record.ALT)
            yield *site, lambda record=record, last=last: read(path, record, last)
    finally:
        with suppress(AttributeError):
            reader.close()


def _vcf_calls(path: Path, record, shown: str) -> np.ndarray:
    try:
        calls = record.genotype.array()
    except Exception:  # as above
        raise UserError(
            f"{path}, {shown}: the record has no GT; give a file with genotypes of all records "
            "(popdesic impute --likelihoods takes PL, GL or GP)."
        ) from None
    width = calls.shape[1] - 1
    if width > 2:
        if len(found := np.flatnonzero((calls[:, 2:-1] != ABSENT).any(axis=1))):
            raise UserError(
                f"{path}, {shown}: the call of sample number {found[0] + 1} has more than two "
                "alleles; only haploid and diploid calls are read."
            )
        calls = calls[:, [0, 1, width]]
    elif width == 1:
        calls = np.insert(calls, 1, ABSENT, axis=1)
    return calls.clip(-3, 2).astype(np.int8)


def _unreadable(path: Path, where: str = "") -> UserError:
    return UserError(
        f"{path} cannot be read as VCF or BCF{where}: the file is damaged or cut short; copy or "
        "write it again."
    )


def _zarr_records(path: Path) -> Iterator[tuple]:
    store = open_store(path)
    for start in range(0, store.n_sites, store.n_rows):
        part = slice(start, min(store.n_sites, start + store.n_rows))
        try:
            contig, pos, names, alleles, calls = (
                np.asarray(store.group[name][part]) for name in (*SITE_ARRAYS, CALLS)
            )
            phased = np.zeros(calls.shape[:2], bool)
            if PHASE in store.group:
                phased = np.asarray(store.group[PHASE][part], bool)
        except FAULTS as error:
            raise damaged(path, error) from None
        if (contig < 0).any() or (contig >= len(store.contigs)).any():
            raise damaged(path, ValueError("a contig number is out of range"))
        if calls.shape[2] == 1:
            calls = np.concatenate([calls, np.full_like(calls, FILL)], axis=2)
        if (calls[:, :, 2:] != FILL).any():
            raise UserError(
                f"{path}: a call has more than two alleles; only haploid and diploid calls are "
                "read."
            )
        rows = np.concatenate([calls[:, :, :2].clip(-3, 2), phased[:, :, None]], axis=2)
        rows = rows.astype(np.int8)
        ids, table = texts(names), [texts(column) for column in alleles.T]
        for k in range(len(pos)):
            ref, *alts = (column[k] for column in table)
            alts = [alt for alt in alts if alt]
            site = (store.contigs[contig[k]], int(pos[k]), ids[k] or ".", ref, alts)
            yield *site, lambda calls=rows[k]: calls


def require_calls(batch: PhasedSites, shown: Path, samples: list[str]) -> None:
    """Refuse calls of a reference that are missing, or heterozygous without phase.

    Raises
    ------
    UserError
        With the record and the sample.
    """
    missing = (batch.alleles == -1).any(axis=2) | (batch.alleles[:, :, 0] == ABSENT)
    if missing.any():
        row, sample = np.argwhere(missing)[0]
        raise UserError(
            f"{shown}, {batch.chrom}:{batch.pos[row]}: the call of sample '{samples[sample]}' is "
            "missing; a reference has no missing calls, so phase it with a program that fills "
            "them (Beagle), or leave the record out."
        )
    require_phase(batch, shown, samples)


def require_phase(batch: PhasedSites, shown: Path, samples: list[str]) -> None:
    """Refuse heterozygous calls without phase.

    Raises
    ------
    UserError
        With the record and the sample.
    """
    alleles = batch.alleles
    unphased = ~batch.phased & (alleles[:, :, 0] != alleles[:, :, 1]) & (alleles >= 0).all(axis=2)
    if unphased.any():
        row, sample = np.argwhere(unphased)[0]
        call = "/".join(map(str, alleles[row, sample].tolist()))
        raise UserError(
            f"{shown}, {batch.chrom}:{batch.pos[row]}: the call {call} of sample "
            f"'{samples[sample]}' is not phased; phase the file first (Beagle, SHAPEIT)."
        )


def require_same(path: Path, first: Path, samples: list[str]) -> None:
    """Raise a UserError unless a file has the samples of the first file of a reference."""
    if read_phased_samples(path) != samples:
        raise UserError(
            f"{path} has other samples than {first}, or another order of them; all files of "
            "a reference must have the same (bcftools view -S)."
        )


def require_few(reference: Path, n_haplotypes: int, most: int) -> None:
    """Raise a UserError if a reference has more haplotypes than can be copied from."""
    if n_haplotypes > most:
        raise UserError(
            f"{reference} has {n_haplotypes} haplotypes or more, and at most {most} can "
            "be copied from; choose samples that are like the targets (bcftools view -S)."
        )
