"""The panel as VCF-Zarr, written by bio2zarr."""

from __future__ import annotations

import math
import shutil
import tempfile
from itertools import product
from pathlib import Path

import numpy as np

from ..cohort.panel import load_panel
from ..core.files import checksum_kept
from ..io.sites import chunks
from .panel import CHUNK_SAMPLES, CHUNK_SITES, sample_names, write_panel_bed

#: Genotypes of one shard, in bytes before compression.
SHARD_BYTES = 256 << 20


def export_zarr(
    prefixes: list[Path], panel_path: Path, out: Path, *, missing: str = "", shards: bool = False
) -> None:
    """Write the genotypes of all cohorts as VCF-Zarr (Czech et al. 2025).

    The Zarr format is 2, or with `shards` 3: then many chunks are in one file.

    bio2zarr converts temporary PLINK files of the panel. The attribute `popdesic_panel` is the
    panel's digest, and `popdesic_genotypes`, if `missing` is not '', says how missing calls were
    imputed. The folder is renamed to `out` when it is complete.
    """
    import zarr  # zarr and bio2zarr take seconds to import, and only this job needs them
    from bio2zarr import plink

    _, digest = load_panel(panel_path)
    names = sample_names(prefixes)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
        stem, whole = Path(folder, "panel"), Path(folder, "panel.vcz")
        write_panel_bed(prefixes, stem)
        # Other readers end a .fam name at a space: the true names are set below.
        rows = [f"0 {k} 0 0 0 -9\n" for k in range(len(names))]
        stem.with_suffix(".fam").write_text("".join(rows))
        plink.convert(
            stem,
            whole,
            variants_chunk_size=CHUNK_SITES,
            samples_chunk_size=CHUNK_SAMPLES,
            zarr_format=3 if shards else 2,
        )
        if shards:
            single, whole = whole, Path(folder, "sharded.vcz")
            _write_shards(single, whole)
        root = zarr.open_group(str(whole), mode="r+")
        root["sample_id"][:] = np.array(names, object)
        root.attrs["popdesic_panel"] = digest
        if missing:
            root.attrs["popdesic_genotypes"] = missing
        with checksum_kept(out, whole):
            shutil.rmtree(out, ignore_errors=True)
            whole.rename(out)


def _write_shards(source: Path, out: Path) -> None:
    """Write a store of Zarr format 3 again with shards; chunks, codecs and attributes stay."""
    import zarr

    before = zarr.open_group(str(source), mode="r")
    after = zarr.create_group(str(out), zarr_format=3, attributes=dict(before.attrs))
    for name, array in before.arrays():
        if array.metadata.dimension_names[0] != "variants" or array.nchunks == 1:
            shutil.copytree(source / name, out / name)
            continue
        in_shard = SHARD_BYTES // (math.prod(array.chunks) * array.dtype.itemsize)
        in_shard = max(1, min(in_shard, -(-array.shape[0] // array.chunks[0])))
        shard = (in_shard * array.chunks[0], *array.chunks[1:])
        sharded = after.create_array(
            name,
            shape=array.shape,
            dtype=array.dtype,
            chunks=array.chunks,
            shards=shard,
            compressors=array.compressors,
            fill_value=array.fill_value,
            attributes=dict(array.attrs),
            dimension_names=array.metadata.dimension_names,
        )
        for ranges in product(*map(chunks, array.shape, shard)):
            part = tuple(slice(*one) for one in ranges)
            sharded[part] = array[part]
