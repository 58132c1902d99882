"""Decode the calls of VCF-Zarr to genotypes: the compiled half of `popdesic.io.vcf_zarr`."""

import numpy as np
from numba import njit

from .vcf_text_cpu import (
    ANY_PLOIDY,
    BROKEN,
    HALF_CALLS,
    HAPLOID_ALT,
    HAPLOID_CALLS,
    HAPLOID_ERROR,
    HAPLOID_MISSING,
    HAPLOID_REF,
    HIGH_ALLELE,
    MISSING_CALLS,
    PHASED,
    POLYPLOID,
    UNPHASED,
)


@njit(cache=True, nogil=True)
def _decode_plain(pairs, phased, row, counts):
    """Decode one site whose calls are all pairs of 0 and 1 or of two -1; False if one is not.

    The two bytes of a call are read as one little-endian word, in a loop that the compiler
    vectorises. Nothing is counted where the result is False, and `row` is then invalid.
    """
    one = np.uint16(1)
    strange = np.uint16(0)
    n_missing = np.uint32(0)
    n_phased = np.uint32(0)
    for sample in range(len(pairs)):
        pair = pairs[sample]
        missing = np.uint16(pair == np.uint16(0xFFFF))
        strange |= np.uint16((pair & np.uint16(0xFEFE)) * (one - missing))
        n_missing += np.uint32(missing)
        n_phased += np.uint32(phased[sample] * (one - missing))
        row[sample] = np.int8(((pair & one) + ((pair >> np.uint16(8)) & one)) * (one - missing))
        row[sample] -= np.int8(missing)
    if strange != 0:
        return False
    counts[MISSING_CALLS] += n_missing
    counts[PHASED] += n_phased
    counts[UNPHASED] += len(pairs) - n_missing - n_phased
    return True


@njit(cache=True, nogil=True)
def decode_calls(calls, phased, kept, ignored, policies, any_other, genotypes, counts, error):
    """Count the ALT alleles of the calls at some sites.

    Parameters
    ----------
    calls : (n_sites, n_samples, ploidy) int8
        Alleles: 0 REF, 1 the ALT, -1 unknown, -2 no allele (the call has fewer than others).
    phased : (n_sites, n_samples) bool
    kept : (n_kept) int64
        The sites to decode.
    ignored : (n_samples) bool
        Samples that are left out: a call of another ploidy is missing.
    policies : (n_sites) int64
        HAPLOID_ERROR, HAPLOID_DIPLOIDIZE or HAPLOID_MISSING of each site, with ANY_PLOIDY or not.
    any_other : (n_sites) bool
        Whether a site has an allele that stands for any other: calls of alleles beyond the ALT are
        missing there, and refused elsewhere.
    genotypes : (n_kept, n_samples) int8
        Receives 0, 1, 2, or -1 for missing.
    counts : (N_COUNTS) int64
        The counts of `vcf_text` for calls are added to it.
    error : (3) int64
        On an error: kind of call (`vcf_text`), site and sample.
    """
    n_samples, ploidy = calls.shape[1], calls.shape[2]
    for out in range(len(kept)):
        site = kept[out]
        policy, any_ploidy = policies[site] & ~ANY_PLOIDY, policies[site] & ANY_PLOIDY
        if ploidy == 2:
            pairs = calls[site].reshape(2 * n_samples).view(np.uint16)
            if _decode_plain(pairs, phased[site], genotypes[out], counts):
                continue
        n_phased = 0
        n_unphased = 0
        n_missing = 0
        for sample in range(n_samples):
            n_alleles = 0
            n_unknown = 0
            n_alt = 0
            high = False
            broken = False
            for k in range(ploidy):
                allele = calls[site, sample, k]
                if allele >= -1:
                    n_alleles += 1
                    n_unknown += allele == -1
                    n_alt += allele == 1
                    high |= allele > 1
                else:
                    broken |= allele < -2
            if high and any_other[site] and not broken and n_alleles <= 2:
                genotypes[out, sample] = -1
                n_missing += 1
                continue
            if n_alleles > 2 and not broken and (any_ploidy or ignored[sample]):
                genotypes[out, sample] = -1
                n_missing += 1
                continue
            if broken or high or n_alleles > 2:
                error[0] = BROKEN if broken else POLYPLOID if n_alleles > 2 else HIGH_ALLELE
                error[1], error[2] = site, sample
                return
            if n_unknown > 0 or n_alleles == 0:
                genotypes[out, sample] = -1
                n_missing += 1
                counts[HALF_CALLS] += n_unknown < n_alleles
            elif n_alleles == 1:
                if policy == HAPLOID_ERROR and not ignored[sample]:
                    error[0] = HAPLOID_ALT if n_alt else HAPLOID_REF
                    error[1], error[2] = site, sample
                    return
                counts[HAPLOID_CALLS] += 1
                genotypes[out, sample] = 2 * n_alt
                if policy in (HAPLOID_MISSING, HAPLOID_ERROR):
                    genotypes[out, sample] = -1
                    n_missing += 1
            else:
                genotypes[out, sample] = n_alt
                n_phased += phased[site, sample]
                n_unphased += not phased[site, sample]
        counts[PHASED] += n_phased
        counts[UNPHASED] += n_unphased
        counts[MISSING_CALLS] += n_missing
