"""Read biallelic SNP genotypes from PLINK 1 files (.bed, .bim, .fam), with A1 = ALT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .batches import CHUNK_BYTES, DecodeCounts, SiteBatch
from .bed import beside, iterate_bim, open_bed, read_fam
from .errors import UserError
from .files import is_file
from .genotypes import MISSING, site_kind, unpack_bed


def plink_prefix(source: Path | str) -> Path | None:
    """Return the prefix if `source` names PLINK 1 files, with or without '.bed', else None."""
    source = Path(source)
    if source.name.endswith(".bed"):
        return source.with_name(source.name.removesuffix(".bed"))
    return source if not is_file(source) and is_file(beside(source, ".bed")) else None


def read_plink_samples(prefix: Path | str) -> tuple[list[str], list[str]]:
    """Return the sample names (second column) and sex codes of {prefix}.fam.

    Raises
    ------
    UserError
        The .fam is missing or malformed, has no samples, or repeats a name.
    """
    fam = read_fam(prefix)
    path = beside(prefix, ".fam")
    names = fam["sample"].tolist()
    if not names:
        raise UserError(f"{path} has no samples; give a file with genotypes.")
    name, n_times = Counter(names).most_common(1)[0]
    if n_times > 1:
        line = len(names) - names[::-1].index(name)
        raise UserError(
            f"{path}, line {line}: the sample name {name!r} occurs {n_times} times (family IDs "
            "do not distinguish samples); rename or remove the duplicates."
        )
    return names, fam["sex"].tolist()


def stream_plink(
    prefix: Path | str, counts: DecodeCounts, *, _chunk_bytes: int = CHUNK_BYTES
) -> Iterator[SiteBatch]:
    """Yield the biallelic SNPs of PLINK 1 files, in file order.

    Sites without a position (chromosome 0, or a position below 1) are dropped and counted as
    unplaced, those with the allele 0 as no_alt. `line` is the line in the .bim.

    Raises
    ------
    UserError
        The files are inconsistent, or a position is not an integer below 2**31.
    """
    n_samples = len(read_plink_samples(prefix)[0])
    bed = open_bed(prefix, n_samples=n_samples)
    n_rows = max(1, _chunk_bytes // n_samples)
    start = 0
    for bim in iterate_bim(prefix, n_rows):
        kinds = [
            "unplaced" if chrom == "0" or pos < 1 else site_kind(ref, [alt])
            for chrom, pos, ref, alt in zip(bim.chrom, bim.pos, bim.ref, bim.alt, strict=True)
        ]
        rows = np.array([k for k, kind in enumerate(kinds) if kind == "snps"], np.int64)
        genotypes = unpack_bed(bed[start + rows], n_samples)
        kept = bim.iloc[rows]
        for kind, number in Counter(kinds).items():
            setattr(counts, kind, getattr(counts, kind) + number)
        n_missing = int((genotypes == MISSING).sum())
        counts.records += len(bim)
        counts.missing += n_missing
        counts.unphased += genotypes.size - n_missing
        line = start + rows + 1
        start += len(bim)
        if len(rows):
            yield SiteBatch(
                chrom=kept.chrom.tolist(),
                pos=kept.pos.to_numpy(),
                id=kept.id.tolist(),
                ref=kept.ref.tolist(),
                alt=kept.alt.tolist(),
                genotypes=genotypes,
                line=line,
            )
