"""D and D' of pairs of sites, from genotypes by EM or from phased haplotypes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..io.formats import PLINK, VCF, find_format

#: EM stops when no haplotype frequency changes by more than this, or after EM_STEPS steps.
EM_TOLERANCE, EM_STEPS = 1e-12, 2000


def haplotype_frequencies(tables: np.ndarray) -> np.ndarray:
    """Frequencies of the four haplotypes of two sites by EM on genotypes (Excoffier, Slatkin 1995).

    Only the double heterozygote leaves the haplotypes ambiguous. Its share in coupling phase starts
    at one half and is re-estimated until convergence.

    Parameters
    ----------
    tables : int array, (n_pairs, 3, 3)

    Returns
    -------
    float64 array, (n_pairs, 4)
        REF-REF, REF-ALT, ALT-REF, ALT-ALT; NaN where no sample is jointly called.
    """
    t = tables.astype(np.float64)
    total = 2 * t.sum(axis=(1, 2))
    known = np.stack(
        [
            2 * t[:, 0, 0] + t[:, 0, 1] + t[:, 1, 0],
            2 * t[:, 0, 2] + t[:, 0, 1] + t[:, 1, 2],
            2 * t[:, 2, 0] + t[:, 1, 0] + t[:, 2, 1],
            2 * t[:, 2, 2] + t[:, 1, 2] + t[:, 2, 1],
        ],
        axis=1,
    )
    double = t[:, 1, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        coupling = np.full(len(t), 0.5)
        frequency = _with_phase(known, double, coupling) / total[:, None]
        active = np.flatnonzero(double > 0)
        for _ in range(EM_STEPS):
            if not len(active):
                break
            f = frequency[active]
            cis, trans = f[:, 0] * f[:, 3], f[:, 1] * f[:, 2]
            share = np.where(cis + trans > 0, cis / (cis + trans), 0.5)
            new = _with_phase(known[active], double[active], share) / total[active, None]
            moved = np.abs(new - f).max(axis=1) > EM_TOLERANCE
            frequency[active] = new
            active = active[moved]
    return frequency


def _with_phase(known, double, coupling):
    return known + double[:, None] * np.stack(
        [coupling, 1 - coupling, 1 - coupling, coupling], axis=1
    )


def disequilibrium(frequency: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """D and D' (Lewontin 1964) from haplotype frequencies (n_pairs, 4): ALT with ALT is positive.

    D = P(ALT, ALT) - p q; D' = D / D_max, in [-1, 1], NaN if a site is monomorphic.
    """
    p, q = frequency[:, 2] + frequency[:, 3], frequency[:, 1] + frequency[:, 3]
    d = frequency[:, 3] - p * q
    most = np.where(
        d >= 0,
        np.minimum(p * (1 - q), (1 - p) * q),
        np.minimum(p * q, (1 - p) * (1 - q)),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return d, np.where(most > 0, np.clip(d / most, -1, 1), np.nan)


def haplotype_pair_frequencies(tables: np.ndarray) -> np.ndarray:
    """Haplotype frequencies, (n_pairs, 4), from tables of phased haplotypes (alleles 0 and 1)."""
    flat = tables[:, :2, :2].reshape(-1, 4).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return flat / flat.sum(axis=1, keepdims=True)


def read_haplotypes(
    sources: Sequence[Path | str], sites: pd.DataFrame, samples: list[str]
) -> np.ndarray:
    """Phased haplotypes of a cohort at the panel's sites, from its VCF or BCF files.

    The decoded results keep no phase, so it is read again from the cohort's files.

    Parameters
    ----------
    sites : DataFrame
        The panel: `chrom`, `pos`, `ref`, `alt`; swapped alleles are flipped.
    samples : list of str

    Returns
    -------
    int8 array, (n_sites, 2 n_samples)
        1 if the haplotype carries ALT, -1 if the genotype is missing or no file has the
        site. If a site is repeated, its first record counts.

    Raises
    ------
    UserError
        A file is PLINK's, or a heterozygous genotype is not phased.
    """
    for source in sources:
        if (kind := find_format(source).kind) != VCF:
            why = (
                "PLINK files have no phase"
                if kind == PLINK
                else "the phase of this format is not read"
            )
            raise UserError(
                f"{source}: {why}, but compare.ld.phase is 'phased'; give a phased VCF or BCF, or "
                "set compare.ld.phase to 'em'."
            )
    row = {
        (chrom, pos, ref, alt): (i, False)
        for i, (chrom, pos, ref, alt) in enumerate(
            zip(sites.chrom, sites.pos, sites.ref, sites.alt, strict=True)
        )
    }
    row |= {(c, p, alt, ref): (i, True) for (c, p, ref, alt), (i, _) in row.items()}
    haplotypes = np.full((len(sites), 2 * len(samples)), -1, np.int8)
    done: set[int] = set()
    for source in sources:
        _read_phase(source, row, samples, haplotypes, done)
    return haplotypes


def _read_phase(
    source: Path | str,
    row: dict[tuple, tuple[int, bool]],
    samples: list[str],
    haplotypes: np.ndarray,
    done: set[int],
) -> None:
    """Fill in the sites of one file that are not `done`; `row`: row of a site, whether swapped."""
    from cyvcf2 import VCF

    vcf = VCF(str(source), samples=samples, lazy=True)
    place = [vcf.samples.index(name) for name in samples]
    for record in vcf:
        if len(record.ALT) != 1:
            continue
        found = row.get((record.CHROM, record.POS, record.REF.upper(), record.ALT[0].upper()))
        if found is None or found[0] in done:
            continue
        index, swapped = found
        done.add(index)
        calls = record.genotype.array()[place]  # (n_samples, ploidy + 1); last column: phased
        alleles, phased = calls[:, :2].astype(np.int8), calls[:, -1].astype(bool)
        missing = (alleles < 0).any(axis=1)
        unknown = ~phased & ~missing & (alleles[:, 0] != alleles[:, 1])
        if unknown.any():
            raise UserError(
                f"{source}: at {record.CHROM}:{record.POS} the genotype of sample "
                f"'{samples[int(np.argmax(unknown))]}' is heterozygous without phase, but "
                "compare.ld.phase is 'phased'; phase the file or set compare.ld.phase to 'em'."
            )
        if swapped:
            alleles = 1 - alleles
        alleles[missing] = -1
        haplotypes[index] = alleles.ravel()
