"""Read biallelic SNP genotypes from PLINK 2 files (.pgen, .pvar, .psam).

`Pgenlib`, PLINK 2's own library, decodes the genotypes; it is an optional dependency. Dosages are
ignored: the hard calls beside them are read, as PLINK 2 itself does for genotypes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import UserError
from ..core.files import beside
from .alleles import name_bases
from .batches import CHUNK_BYTES, DecodeCounts, SiteBatch
from .call_filters import CallFilters
from .columns import count_lines
from .genotypes import pack_bed
from .open_records import open_sites, settle_opened
from .pgen_header import MULTIALLELIC, PHASED, PgenHeader
from .pgen_tables import (
    check_pgen,
    iterate_pvar,
    numbered_pvar,
    read_pvar_header,
    require_same_sites,
)
from .site_rows import batch_of, count_missing, keep_snps, settle_unknown

#: Genotypes whose phase is read at a time: Pgenlib returns nine bytes for each.
PHASE_GENOTYPES = 1 << 21


def stream_pgen(
    prefix: Path | str,
    counts: DecodeCounts,
    filters: CallFilters = CallFilters(),  # noqa: B008 (frozen)
    *,
    _chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[SiteBatch]:
    """Yield the biallelic SNPs of PLINK 2 files, in file order.

    Sites are kept and counted as in `popdesic.io.plink.stream_plink`. A call counts as phased if
    its site has phased calls and it is homozygous or its phase is known: PLINK 2 keeps no phase
    of homozygous calls, and none at a site without a phased heterozygote. `line` is the line in the
    .pvar. Sites with several ALT are dropped whatever the classes of `filters`.

    Raises
    ------
    UserError
        The files are inconsistent or damaged, or a position is not a whole number.
    """
    header = check_pgen(prefix)
    numbered = numbered_pvar(prefix)
    n_samples = header.n_samples
    n_rows = max(1, _chunk_bytes // n_samples)
    memory = np.empty((n_rows, n_samples), np.int8)
    n_before = read_pvar_header(prefix)[1]
    start = 0
    classes = tuple(one for one in filters.classes if one != "multiallelic")
    with _open_reader(prefix, header) as reader:
        for sites in iterate_pvar(prefix, n_rows):
            n_here = len(sites["pos"])
            if start + n_here > header.n_sites:  # more sites than genotypes
                n_sites = count_lines(beside(prefix, ".pvar")) - n_before
                require_same_sites(prefix, header, n_sites)
            if numbered:
                name_bases(sites)
            if classes:
                sites, opened = open_sites(sites, classes)
            kept = np.flatnonzero(keep_snps(sites, counts, filters))
            genotypes = memory[: len(kept)]
            n_phased = _read_sites(reader, header, start, n_here, kept, genotypes)
            # Pgenlib writes -9 for missing, whose two low bits, all that is read, are those of -1.
            rows = pack_bed(genotypes)
            batch = settle_unknown(batch_of(sites, kept, rows, n_samples, 0), counts)
            if classes:
                settle_opened(opened, batch, counts, filters)
            batch.line += n_before + start + 1
            n_missing = count_missing(batch.rows)
            counts.missing += n_missing
            counts.phased += n_phased
            counts.unphased += genotypes.size - n_missing - n_phased
            if len(kept):
                yield batch
            start += n_here
    require_same_sites(prefix, header, start)


def _read_sites(
    reader: Any, header: PgenHeader, start: int, n_here: int, kept: np.ndarray, out: np.ndarray
) -> int:
    """Read the `kept` ones of `n_here` sites into `out`; return how many calls are phased."""
    if len(kept) == 0:
        return 0
    chosen = (start + kept).astype(np.uint32)
    try:
        if len(kept) == n_here:
            reader.read_range(start, start + n_here, out)
        else:
            reader.read_list(chosen, out)
        return _count_phased(reader, chosen[header.types[chosen] & PHASED > 0], out.shape[1])
    except RuntimeError as error:
        raise _damaged(header, str(error)) from None


def _open_reader(prefix: Path | str, header: PgenHeader) -> Any:
    """Return Pgenlib's reader of a file whose sizes have been checked."""
    import pgenlib

    offsets = None
    if header.count(MULTIALLELIC):  # then Pgenlib needs the number of alleles of every site
        numbers = [
            np.fromiter((2 + alt.count(",") for alt in sites["alt"]), np.uintp, len(sites["alt"]))
            for sites in iterate_pvar(prefix)
        ]
        offsets = np.concatenate([np.zeros(1, np.uintp), *numbers]).cumsum(dtype=np.uintp)
        require_same_sites(prefix, header, len(offsets) - 1)
    try:
        return pgenlib.PgenReader(
            bytes(header.path),
            raw_sample_ct=header.n_samples,
            variant_ct=header.n_sites,
            allele_idx_offsets=offsets,
        )
    except RuntimeError as error:
        raise _damaged(header, str(error)) from None


def _count_phased(reader: Any, chosen: np.ndarray, n_samples: int) -> int:
    """Count the called genotypes of these sites that are homozygous or have a phase."""
    n_phased = 0
    step = max(1, PHASE_GENOTYPES // n_samples)
    for first in range(0, len(chosen), step):
        part = chosen[first : first + step]
        alleles = np.empty((len(part), 2 * n_samples), np.int32)
        known = np.zeros((len(part), n_samples), np.bool_)
        reader.read_alleles_and_phasepresent_list(part, alleles, known)
        n_phased += int(np.count_nonzero(known & (alleles[:, ::2] >= 0)))
    return n_phased


def _damaged(header: PgenHeader, reason: str) -> UserError:
    reason = " ".join(reason.split()).rstrip(".")
    return UserError(f"{header.path} is damaged ({reason}); copy or write it again.")
