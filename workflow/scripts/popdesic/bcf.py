"""Read biallelic SNP genotypes from BCF through htslib, by the rules of `popdesic.vcf`."""

from collections.abc import Iterator

import numpy as np
from cyvcf2 import VCF

from .backend import vcf_text as codes
from .errors import UserError
from .genotypes import site_kind
from .vcf import DecodeCounts, HaploidPolicies, SiteBatch
from .vcf_errors import record_error
from .vcf_header import VcfHeader

# cyvcf2's genotype array: an unknown allele, and the filling after a call of fewer alleles.
UNKNOWN, ABSENT = -1, -2


def stream_bcf(
    header: VcfHeader,
    haploid: HaploidPolicies,
    counts: DecodeCounts,
    threads: int,
    batch_bytes: int,
) -> Iterator[SiteBatch]:
    """Decode the biallelic SNPs of a BCF file; see `popdesic.vcf.stream_sites`."""
    n_samples = len(header.samples)
    capacity = max(1, batch_bytes // n_samples)
    batch = _empty(capacity, n_samples)
    reader = VCF(str(header.path), threads=threads)
    try:
        for number, variant in enumerate(_variants(header, reader), start=1):
            where = f"{header.path}, record {number}"
            counts.records += 1
            ref, alts = variant.REF, variant.ALT
            kind = site_kind(ref, alts)
            if variant.POS < 0 or (variant.POS == 0 and kind == "snps"):
                raise record_error(
                    where, codes.BAD_POS, value=str(variant.POS), samples=header.samples
                )
            setattr(counts, kind, getattr(counts, kind) + 1)
            if kind != "snps":
                continue
            row = len(batch.chrom)
            if "GT" not in variant.FORMAT:
                raise record_error(
                    where,
                    codes.NO_GT,
                    value=":".join(variant.FORMAT),
                    samples=header.samples,
                    any_gt=counts.snps > 1,
                )
            calls = variant.genotype.array()
            policy = haploid.of(variant.CHROM)
            _decode_calls(calls, policy, batch.genotypes[row], counts, where, header.samples)
            batch.chrom.append(variant.CHROM)
            batch.id.append("." if variant.ID is None else variant.ID)
            batch.ref.append(ref)
            batch.alt.append(alts[0])
            batch.pos[row] = variant.POS
            batch.line[row] = number
            if row + 1 == capacity:
                yield batch
                batch = _empty(capacity, n_samples)
    finally:
        reader.close()
    if n_sites := len(batch.chrom):
        batch.pos, batch.line = batch.pos[:n_sites], batch.line[:n_sites]
        batch.genotypes = batch.genotypes[:n_sites]
        yield batch


def _empty(capacity: int, n_samples: int) -> SiteBatch:
    return SiteBatch(
        chrom=[],
        pos=np.empty(capacity, np.int64),
        id=[],
        ref=[],
        alt=[],
        genotypes=np.empty((capacity, n_samples), np.int8),
        line=np.empty(capacity, np.int64),
    )


def _variants(header: VcfHeader, reader: VCF) -> Iterator:
    """Yield the records; what htslib says of a damaged file becomes a UserError."""
    while True:
        try:
            variant = next(reader)
        except StopIteration:
            return
        except Exception as error:  # cyvcf2 raises plain Exception
            raise UserError(
                f"{header.path} is cut short or damaged ({error}); copy or write it again."
            ) from None
        yield variant


def _decode_calls(
    calls: np.ndarray,
    policy: int,
    row: np.ndarray,
    counts: DecodeCounts,
    where: str,
    samples: list[str],
) -> None:
    """Write ALT counts of one record to `row` from cyvcf2's (n_samples, ploidy + 1) array."""
    alleles, is_phased = calls[:, :-1], calls[:, -1].astype(bool)
    ploidy = (alleles != ABSENT).sum(axis=1)
    unknown = (alleles == UNKNOWN).sum(axis=1)
    haploid = (ploidy == 1) & (unknown == 0)
    errors = np.select(
        [ploidy > 2, (alleles > 1).any(axis=1), haploid & (policy == codes.HAPLOID_ERROR)],
        [codes.POLYPLOID, codes.HIGH_ALLELE, codes.HAPLOID_REF],
        codes.OK,
    )
    if errors.any():
        sample = int(np.flatnonzero(errors)[0])
        alleles_there = [a for a in alleles[sample].tolist() if a != ABSENT]
        separator = "|" if is_phased[sample] else "/"
        value = separator.join("." if a == UNKNOWN else str(a) for a in alleles_there)
        raise record_error(where, int(errors[sample]), value=value, samples=samples, sample=sample)
    missing = unknown > 0
    if policy == codes.HAPLOID_MISSING:
        missing |= haploid
    n_alt = (alleles == 1).sum(axis=1)
    row[:] = np.where(missing, -1, np.where(haploid, 2 * n_alt, n_alt))
    called = ~missing & ~haploid
    counts.missing += int(missing.sum())
    counts.half_calls += int(((unknown > 0) & (unknown < ploidy)).sum())
    counts.haploid_calls += int(haploid.sum())
    counts.phased += int((called & is_phased).sum())
    counts.unphased += int((called & ~is_phased).sum())
