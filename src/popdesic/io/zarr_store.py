"""Open VCF-Zarr stores (Czech et al. 2025): samples, contigs and checks, without genotypes.

A store is a folder as bio2zarr writes it, of Zarr format 2 or 3, or objects below an address
(`remote`). Zarr reads a chunk that is not
there as its fill value, and writers leave out chunks that hold nothing else. So a lost chunk of
genotypes looks like one in which all calls are 0/0. A store is refused if it lacks a chunk that
cannot be empty, and the number of chunks of genotypes that are not there is said.
zarr is imported on first use, because it starts slowly.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import UserError
from ..core.files import FOLDER_STAMP
from .batches import unusable_name
from .remote import Remote, list_objects, located
from .vcf_errors import show

#: Arrays that are read, all with one row a site.
SITE_ARRAYS = ("variant_contig", "variant_position", "variant_id", "variant_allele")
CALLS, PHASE = "call_genotype", "call_genotype_phased"
#: Arrays that say what the file thinks of its sites and calls; a store may lack any.
MARKS = ("variant_filter", "variant_quality", "call_GQ", "call_DP", "call_AD")
#: Arrays of which a stated value says that a call is imputed.
IMPUTED = ("call_GP", "call_DS")
#: Arrays of dosages and of genotype probabilities.
DOSAGES = ("call_DS", "call_GP", "call_HDS")
#: Arrays of which one says how far a record reaches: its last position, or its length.
REACH = ("variant_END", "variant_length")
#: The depth of a reference block.
BLOCK_DEPTH = "call_MIN_DP"
#: Arrays without a chunk of nothing but fill values (a position is not 0 at 1 000 sites in a row).
NEVER_EMPTY = ("sample_id", "contig_id", "variant_position")
#: Padding of calls with fewer alleles than the widest.
FILL = -2
#: Files of a store and of an array's folder that are no chunks.
ARRAY_FILES = (".zarray", ".zattrs", "zarr.json", ".zgroup", ".zmetadata", FOLDER_STAMP)
#: Header of a chunk that Blosc compressed; its last four bytes are the size of the chunk.
BLOSC_BYTES = 16
#: Most bytes of calls that are read of a shard at a time; a shard can exceed the memory.
SHARD_BYTES = 32 << 20
#: What zarr raises for a store that is damaged or not one.
FAULTS = (OSError, ValueError, KeyError, TypeError, RuntimeError, MemoryError)


@dataclass(frozen=True)
class Store:
    """An open store, its samples and contigs, its number of sites and how many are read at a time.

    `group`: its arrays by name.
    `index`: int64 (n, 3), number of a read, contig, number of sites: what bio2zarr noted while it
    wrote; no row if there is no such array.
    """

    path: Path | Remote
    group: dict[str, Any]
    samples: list[str]
    contigs: list[str]
    n_sites: int
    n_rows: int
    index: np.ndarray


def open_store(path: Path | Remote | str) -> Store:
    """Open a store and check its arrays, without reading genotypes.

    Raises
    ------
    UserError
        It is not VCF-Zarr, has no genotypes or no samples, repeats a sample, or is incomplete; or
        an object cannot be read (`remote.list_objects`, `remote.Objects.read`).
    """
    import zarr

    path = located(path)
    try:
        # A look-up in zarr's own group takes as long as a small chunk.
        group = dict(zarr.open_group(_opened(path), mode="r").arrays())
        arrays = set(group)
        needed = {CALLS, "sample_id", "contig_id", *SITE_ARRAYS}
        if missing := sorted(needed - arrays):
            raise UserError(
                f"{path} is not VCF-Zarr with genotypes: it lacks the array {missing[0]}; write it "
                "again with bio2zarr (vcf2zarr convert)."
            )
        calls = group[CALLS]
        names = ["sample_id", "contig_id", CALLS, *SITE_ARRAYS]
        names += [name for name in (PHASE, *MARKS, *IMPUTED) if name in arrays]
        for name in NEVER_EMPTY:
            _require_whole(path, name, group[name])
        for name in names:
            _require_whole_chunks(path, name, group[name])
        samples = texts(group["sample_id"][:])
        contigs = texts(group["contig_id"][:])
        n_rows = _rows_together(calls)
        index = np.zeros((0, 6), np.int64)
        of_index = group["variant_position"].chunks[0]
        if "region_index" in arrays and n_rows % of_index == 0:
            index = np.asarray(group["region_index"][:], np.int64)
            index[:, 0] //= n_rows // of_index
        shapes = {name: group[name].shape for name in names}
    except FAULTS as error:
        raise damaged(path, error) from None
    n_sites = shapes[CALLS][0]
    of_calls = [name for name in names if name.startswith("call_")]
    odd = [name for name in names[3:] if shapes[name][:1] != (n_sites,)]
    odd += [name for name in of_calls if shapes[name][1:2] != shapes[CALLS][1:2]]
    if len(shapes[CALLS]) != 3 or shapes[CALLS][1] != len(samples) or odd:
        raise UserError(
            f"{path}: the array {odd[0] if odd else CALLS} does not have the size of the others; "
            "write the store again with bio2zarr (vcf2zarr convert)."
        )
    _check_names(path, samples, contigs)
    return Store(path, group, samples, contigs, n_sites, n_rows, index[:, [0, 1, 5]])


def _rows_together(calls: Any) -> int:
    """Sites that are read at a time: a row of chunks, or of several that a shard holds."""
    chunk = calls.chunks[0]
    if not (shards := getattr(calls, "shards", None)):
        return chunk
    row = max(1, chunk * math.prod(calls.shape[1:]) * calls.dtype.itemsize)
    return chunk * max(1, min(shards[0] // chunk, SHARD_BYTES // row))


def _opened(path: Path | Remote) -> Any:
    """What zarr opens: the name of a folder, or a store of objects."""
    if not isinstance(path, Remote):
        return str(path)
    from .object_zarr import ObjectZarr

    return ObjectZarr(list_objects(path), ARRAY_FILES, _is_cut_short)


def texts(values: np.ndarray) -> list[str]:
    """Texts of one axis: strings of any type, objects, or bytes, as stores before bio2zarr have."""
    return [
        "" if one is None else one.decode("utf-8") if isinstance(one, bytes) else str(one)
        for one in values.tolist()
    ]


def _require_whole(path: Path | Remote, name: str, array: Any) -> None:
    there, whole = array.nchunks_initialized, array.nchunks
    if array.size and there < whole:
        raise UserError(
            f"{path} is incomplete: the array {name} has {there} of its {whole} chunks; copy the "
            "store again."
        )


def _require_whole_chunks(path: Path | Remote, name: str, array: Any) -> None:
    """Compare the size of each file of an array with the size that its first bytes state.

    The Blosc library trusts this number: it decodes a file that was cut short to wrong values.
    Other codecs notice a short file. Objects are compared when they are read.
    """
    blosc = array.compressors and "blosc" in type(array.compressors[-1]).__name__.lower()
    if not blosc or getattr(array, "shards", None):
        return
    if isinstance(path, Remote):
        array.store.blosc = (*array.store.blosc, name)
        return
    for folder, _, files in os.walk(path / name):
        for file in files:
            if file in ARRAY_FILES:
                continue
            chunk = Path(folder, file)
            with open(chunk, "rb") as opened:
                start, size = opened.read(BLOSC_BYTES), opened.seek(0, 2)
            if _is_cut_short(start, size):
                raise UserError(f"{chunk} is cut short or damaged; copy the store again.")


def _is_cut_short(start: bytes, size: int) -> bool:
    """Whether a chunk of Blosc begins with another size than it has."""
    return len(start) < BLOSC_BYTES or int.from_bytes(start[12:16], "little") != size


def _check_names(path: Path | Remote, samples: list[str], contigs: list[str]) -> None:
    if not samples:
        raise UserError(f"{path} has no samples; give a store with genotypes.")
    if "" in samples:
        raise UserError(
            f"{path}: sample {samples.index('') + 1} has an empty name; name every sample."
        )
    for name in (*samples, *contigs):
        if unusable_name(name):
            raise UserError(
                f"{path}: the name {show(name)} contains a tab, a line end or a zero byte, which a "
                "table cannot hold; rename it."
            )
    name, n_times = Counter(samples).most_common(1)[0]
    if n_times > 1:
        raise UserError(
            f"{path}: the sample name {name!r} occurs {n_times} times; rename or remove the "
            "duplicates."
        )


def damaged(path: Path | Remote, error: Exception) -> UserError:
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:200].rstrip(".")
    return UserError(
        f"{path} is not VCF-Zarr or is damaged ({reason}); copy it again, or write it again with "
        "bio2zarr (vcf2zarr convert)."
    )


def read_zarr_samples(path: Path | Remote | str) -> list[str]:
    """Return the sample names of a store; UserError as `open_store`."""
    return open_store(path).samples


def read_zarr_lengths(path: Path | Remote | str) -> dict[str, int]:
    """Return the lengths of the contigs that have one."""
    store = open_store(path)
    if "contig_length" not in store.group:
        return {}
    lengths = [int(length) for length in store.group["contig_length"][:]]
    return {n: length for n, length in zip(store.contigs, lengths, strict=False) if length > 0}


def remarks_on_zarr(path: Path | Remote | str) -> list[str]:
    """Return sentences about dosages, which are ignored, and about chunks that are not there."""
    store = open_store(path)
    calls = store.group[CALLS]
    remarks = []
    if found := [name for name in DOSAGES if name in store.group]:
        remarks.append(f"{path} has dosages ({found[0]}): they are ignored, and {CALLS} is read.")
    if n_absent := calls.nchunks - calls.nchunks_initialized:
        filled = "./." if (calls.fill_value or 0) < 0 else "0/0"
        remarks.append(
            f"{path} has no file for {n_absent} of the {calls.nchunks} chunks of {CALLS}: by "
            f"Zarr's rule all calls there are read as {filled}; if the store was copied, make sure "
            "that the copy is complete."
        )
    return remarks
