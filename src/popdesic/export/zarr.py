"""The panel as VCF-Zarr."""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np

from ..cohort.panel import load_panel
from ..io.files import checksum_kept
from ..io.genotypes import MISSING
from ..io.sites import chunks
from .panel import CHUNK_SAMPLES, CHUNK_SITES, panel_genotypes, sample_names

_ZARR_VERSION = "0.4"


def export_zarr(prefixes: list[Path], panel_path: Path, out: Path) -> None:
    """Write the same as VCF-Zarr (Czech et al. 2025; Zarr format 2), as bio2zarr lays it out.

    Arrays: `call_genotype` int8 (variants, samples, ploidy) with -1 for missing,
    `call_genotype_mask`, `call_genotype_phased`, `variant_contig`, `variant_position`,
    `variant_id`, `variant_allele`, `variant_filter`, `sample_id`, `contig_id`, `filter_id`.
    The folder takes its name when it is whole.
    """
    panel, digest = load_panel(panel_path)
    names = sample_names(prefixes)
    temporary = out.with_name(f".{out.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    _write_text(temporary / ".zgroup", {"zarr_format": 2})
    about = {"vcf_zarr_version": _ZARR_VERSION, "source": "popdesic", "popdesic_panel": digest}
    _write_text(temporary / ".zattrs", about)
    contigs = list(dict.fromkeys(panel.chrom))
    code = {contig: k for k, contig in enumerate(contigs)}
    alleles = panel[["ref", "alt"]].to_numpy(object)
    n, m = len(panel), len(names)
    one = {
        "variant_contig": (panel.chrom.map(code).to_numpy(np.int32), ["variants"]),
        "variant_position": (panel.pos.to_numpy(np.int32), ["variants"]),
        "variant_id": (panel.id.to_numpy(object), ["variants"]),
        "variant_allele": (alleles, ["variants", "alleles"]),
        "variant_filter": (np.ones((n, 1), bool), ["variants", "filters"]),
        "sample_id": (np.array(names, object), ["samples"]),
        "contig_id": (np.array(contigs, object), ["contigs"]),
        "filter_id": (np.array(["PASS"], object), ["filters"]),
    }
    for name, (array, dimensions) in one.items():
        chunk = (CHUNK_SITES if dimensions[0] == "variants" else max(1, len(array)),)
        _zarr_array(temporary / name, array.shape, array.dtype, chunk + array.shape[1:], dimensions)
        for k, (first, last) in enumerate(chunks(len(array), chunk[0])):
            key = ".".join([str(k), *("0" for _ in array.shape[1:])])
            _zarr_chunk(temporary / name / key, array[first:last], chunk + array.shape[1:])
    dimensions = ["variants", "samples", "ploidy"]
    tile = (CHUNK_SITES, min(m, CHUNK_SAMPLES))
    for name, dtype, depth in (
        ("call_genotype", np.dtype(np.int8), (2,)),
        ("call_genotype_mask", np.dtype(bool), (2,)),
        ("call_genotype_phased", np.dtype(bool), ()),
    ):
        _zarr_array(
            temporary / name, (n, m, *depth), dtype, tile + depth, dimensions[: 2 + len(depth)]
        )
    for first, genotypes in panel_genotypes(prefixes):
        missing = genotypes == MISSING
        calls = np.stack([genotypes == 2, genotypes >= 1], axis=2).astype(np.int8)
        calls[missing] = -1
        for j, (left, right) in enumerate(chunks(m, tile[1])):
            key = f"{first // CHUNK_SITES}.{j}"
            part = calls[:, left:right]
            _zarr_chunk(temporary / "call_genotype" / f"{key}.0", part, (*tile, 2))
            _zarr_chunk(temporary / "call_genotype_mask" / f"{key}.0", part < 0, (*tile, 2))
            unphased = np.zeros(part.shape[:2], bool)
            _zarr_chunk(temporary / "call_genotype_phased" / key, unphased, tile)
    with checksum_kept(out, temporary):
        shutil.rmtree(out, ignore_errors=True)
        temporary.rename(out)


def _write_text(path: Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def _zarr_array(path: Path, shape, dtype: np.dtype, chunk, dimensions: list[str]) -> None:
    path.mkdir()
    text = dtype.kind == "O"
    about = {
        "zarr_format": 2,
        "shape": [int(x) for x in shape],
        "chunks": [int(x) for x in chunk],
        "dtype": "|O" if text else dtype.str,
        "compressor": {"id": "zlib", "level": 4},
        "fill_value": "" if text else False if dtype.kind == "b" else 0,
        "order": "C",
        "filters": [{"id": "vlen-utf8"}] if text else None,
    }
    _write_text(path / ".zarray", about)
    _write_text(path / ".zattrs", {"_ARRAY_DIMENSIONS": dimensions})


def _zarr_chunk(path: Path, values: np.ndarray, chunk) -> None:
    """Chunks at the edge are filled up: in Zarr 2 all have one shape."""
    if values.shape != tuple(chunk):
        whole = np.full(chunk, "" if values.dtype == object else 0, values.dtype)
        whole[tuple(slice(0, size) for size in values.shape)] = values
        values = whole
    if values.dtype == object:  # vlen-utf8: count, then length and bytes of each string
        words = [str(word).encode() for word in values.ravel()]
        data = struct.pack("<I", len(words))
        data += b"".join(struct.pack("<I", len(word)) + word for word in words)
    else:
        data = np.ascontiguousarray(values).tobytes()
    path.write_bytes(zlib.compress(data, 4))
