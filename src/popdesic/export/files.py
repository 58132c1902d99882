"""Files for other tools: the panel as .bed, VCF and VCF-Zarr, matrices, components, trees."""

from __future__ import annotations

import csv
import json
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.encode import load_planes
from ..cohort.panel import load_panel
from ..cohort.phenotype import known_numbers
from ..compare.kinship import king_robust
from ..distance.neighbor_joining import neighbor_joining
from ..distance.tiles import Distances, require_one_panel
from ..engine.base import KINSHIP, Backend
from ..io.bed import open_bed, read_fam, write_fam
from ..io.bgzf import BGZF_END
from ..io.errors import UserError
from ..io.files import atomic_path, checksum_kept
from ..io.genotypes import BED_MAGIC, MISSING, pack_bed, unpack_bed
from ..io.sites import chunks
from ..io.tables import read_table

#: Sites taken at a time, and those of one chunk of VCF-Zarr (with at most CHUNK_SAMPLES samples).
CHUNK_SITES = 1_000
CHUNK_SAMPLES = 10_000
_BLOCK_BYTES = 65_280  # what bgzip itself puts into a block
_CALLS = np.array([b"\t0/0", b"\t0/1", b"\t1/1", b"\t./."], "S4")
_ZARR_VERSION = "0.4"


def panel_genotypes(prefixes: list[Path]) -> Iterator[tuple[int, np.ndarray]]:
    """First site and int8 (n_sites, n_samples) genotypes of consecutive runs of panel sites.

    Parameters
    ----------
    prefixes : list of Path
        `cohorts/{cohort}/genotypes` in sample order, all on the same panel.
    """
    sizes = [len(read_fam(prefix)) for prefix in prefixes]
    beds = [open_bed(prefix) for prefix in prefixes]
    for first, last in chunks(len(beds[0]), CHUNK_SITES):
        parts = [
            unpack_bed(np.ascontiguousarray(bed[first:last]), size)
            for bed, size in zip(beds, sizes, strict=True)
        ]
        yield first, np.concatenate(parts, axis=1)


def sample_names(prefixes: list[Path]) -> list[str]:
    """Names of all samples, in sample order."""
    return [name for prefix in prefixes for name in read_fam(prefix)["sample"]]


# --- PLINK ----------------------------------------------------------------------------------


def export_plink(prefixes: list[Path], sheet: pd.DataFrame, out: Path) -> None:
    """Write the called genotypes of all cohorts on the panel as {out}.bed, .bim and .fam.

    Parameters
    ----------
    sheet : DataFrame
        `sample` and, where the study has them, `sex` (M, F), `father`, `mother` and `phenotype`
        (1 case, 0 control, or a trait), all strings: the .fam has them in PLINK's codes.
    """
    names = sample_names(prefixes)
    with atomic_path(Path(f"{out}.bed")) as temporary, open(temporary, "wb") as file:
        file.write(BED_MAGIC)
        for _, genotypes in panel_genotypes(prefixes):
            file.write(pack_bed(genotypes).tobytes())
    with atomic_path(Path(f"{out}.bim")) as temporary:
        shutil.copyfile(f"{prefixes[0]}.bim", temporary)
    rows = sheet.set_index("sample").reindex(names, fill_value="NA")
    fam = pd.DataFrame({"family": "0", "sample": names})
    for column in ("father", "mother"):
        stated = rows.get(column, pd.Series("0", rows.index))
        fam[column] = stated.replace(["", "NA"], "0").to_numpy()
    sex = rows.get("sex", pd.Series("NA", rows.index))
    fam["sex"] = sex.map({"M": "1", "F": "2"}).fillna("0").to_numpy()
    trait = rows.get("phenotype", pd.Series("NA", rows.index)).replace("", "NA")
    # The whole sheet says what it holds: of a trait, 0 and 1 may be all that passed the filters.
    stated = known_numbers(sheet.phenotype) if "phenotype" in sheet else np.empty(0)
    if np.isin(stated[~np.isnan(stated)], (0, 1)).all():  # PLINK has 1 for controls, 2 for cases
        trait = trait.map(lambda text: "NA" if text == "NA" else str(int(float(text)) + 1))
    fam["phenotype"] = trait.replace("NA", "-9").to_numpy()
    write_fam(out, fam)


# --- VCF ------------------------------------------------------------------------------------


class BgzfWriter:
    """Writes BGZF blocks (SAM specification, section 4.1): what bgzip and tabix read."""

    def __init__(self, file) -> None:
        self._file, self._waiting = file, bytearray()

    def write(self, data: bytes) -> None:
        self._waiting += data
        while len(self._waiting) >= _BLOCK_BYTES:
            self._block(bytes(self._waiting[:_BLOCK_BYTES]))
            del self._waiting[:_BLOCK_BYTES]

    def close(self) -> None:
        if self._waiting:
            self._block(bytes(self._waiting))
        self._file.write(BGZF_END)

    def _block(self, data: bytes) -> None:
        packer = zlib.compressobj(4, zlib.DEFLATED, -15)
        body = packer.compress(data) + packer.flush()
        # gzip header with the BC field, whose value is the block's size less one.
        head = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0"
        self._file.write(head + struct.pack("<H", len(body) + 25) + body)
        self._file.write(struct.pack("<II", zlib.crc32(data), len(data)))


def export_vcf(prefixes: list[Path], panel_path: Path, out: Path) -> None:
    """Write the called genotypes of all cohorts on the panel as a bgzipped VCF 4.2."""
    panel, digest = load_panel(panel_path)
    lines = ["##fileformat=VCFv4.2", f"##popdesic_panel={digest}"]
    lines += [f"##contig=<ID={contig}>" for contig in dict.fromkeys(panel.chrom)]
    lines.append('##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">')
    columns = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    lines.append("\t".join([*columns, *sample_names(prefixes)]))
    fixed = panel[["chrom", "pos", "id", "ref", "alt"]].astype(str)
    starts = ["\t".join([*row, ".", "PASS", ".", "GT"]).encode() for row in fixed.to_numpy()]
    with atomic_path(out) as temporary, open(temporary, "wb") as file:
        writer = BgzfWriter(file)
        writer.write("\n".join([*lines, ""]).encode())
        for first, genotypes in panel_genotypes(prefixes):
            calls = _CALLS[genotypes]  # MISSING, -1, is the last
            for k, row in enumerate(calls):
                writer.write(starts[first + k] + row.tobytes() + b"\n")
        writer.close()


# --- VCF-Zarr -------------------------------------------------------------------------------


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


# --- matrices, components, trees --------------------------------------------------------------


def export_mibs(folder: Path, out: Path) -> None:
    """PLINK's `.mibs` with `.mibs.id`: the share of alleles identical by state, text, square.

    Parameters
    ----------
    folder : Path
        `results/distance`, of a metric with `ibs0.npy`.
    """
    squared, called, ibs0 = (np.load(folder / f"{n}.npy") for n in ("squared", "called", "ibs0"))
    with np.errstate(invalid="ignore", divide="ignore"):
        shared = 1 - (squared - 2 * ibs0) / (2 * called)
    np.fill_diagonal(shared, 1.0)
    with atomic_path(out) as temporary:
        np.savetxt(temporary, shared, fmt="%.9g", delimiter="\t")
    names = read_table(folder / "samples.tsv")["sample"]
    with atomic_path(Path(f"{out}.id")) as temporary:
        temporary.write_text("".join(f"0\t{name}\n" for name in names))


def export_king(folders: list[Path], out: Path, backend: Backend) -> None:
    """PLINK 2's square `.king` with `.king.id`: KING-robust kinship of all pairs, text.

    Parameters
    ----------
    folders : list of Path
        `cohorts/{cohort}` in sample order, all on the same panel.
    """
    loaded = [load_planes(folder) for folder in folders]
    for folder, (_, about) in zip(folders, loaded, strict=True):
        require_one_panel(folders[0], loaded[0][1], folder, about)
    starts = np.cumsum([0, *(planes.n_samples for planes, _ in loaded)])
    matrix = np.empty((starts[-1], starts[-1]))
    for i, (a, _) in enumerate(loaded):
        for j, (b, _) in enumerate(loaded[i:], i):
            values = backend.bitgemm(a, None if i == j else b, KINSHIP)
            block = king_robust(dict(zip(KINSHIP.outputs, values, strict=True)))
            matrix[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = block
            matrix[starts[j] : starts[j + 1], starts[i] : starts[i + 1]] = block.T
    np.fill_diagonal(matrix, 0.5)
    with atomic_path(out) as temporary:
        np.savetxt(temporary, matrix, fmt="%.6g", delimiter="\t")
    names = sample_names([folder / "genotypes" for folder in folders])
    with atomic_path(Path(f"{out}.id")) as temporary:
        temporary.write_text("#IID\n" + "".join(f"{name}\n" for name in names))


def export_eigenvec(pca: Path, out: Path) -> None:
    """PLINK's `.eigenvec` (with a header) of `embedding/pca.tsv`: covariates for --covar."""
    table = read_table(pca)
    components = [c for c in table.columns if c.startswith("PC") and c[2:].isdigit()]
    rows = table[["sample", *components]].assign(family="0")
    with atomic_path(out) as temporary:
        rows[["family", "sample", *components]].to_csv(
            temporary,
            sep="\t",
            index=False,
            header=["#FID", "IID", *components],
            quoting=csv.QUOTE_NONE,
        )


def export_phylip(distances: np.ndarray, names: list[str], out: Path) -> None:
    """A square PHYLIP matrix; names padded to ten characters, longer ones kept (relaxed)."""
    with atomic_path(out) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write(f"{len(names)}\n")
        for name, row in zip(names, distances, strict=True):
            file.write(f"{name:<10} {' '.join(f'{d:.9g}' for d in row)}\n")


def export_newick(distances: np.ndarray, names: list[str], out: Path) -> None:
    """The neighbour-joining tree in Newick's format, unrooted."""
    with atomic_path(out) as temporary:
        temporary.write_text(neighbor_joining(distances, names) + "\n", "utf-8")


def export_trees_and_matrices(
    folder: Path, formats: list[str], out: Path, *, metric: str, n_sites: int, min_called: int
) -> None:
    """Write those of ``phylip``, ``newick`` and ``mibs`` that are asked for, into `out`.

    Raises
    ------
    UserError
        A pair has too few jointly called sites, so that no tree can be made.
    """
    names = list(read_table(folder / "samples.tsv")["sample"])
    if "mibs" in formats:
        export_mibs(folder, out / "distance.mibs")
    if not {"phylip", "newick"} & set(formats):
        return
    source = Distances(folder, metric, n_sites, min_called)
    distances = np.concatenate([block for _, block in source.blocks()])
    if not np.isfinite(distances).all():
        i, j = np.argwhere(~np.isfinite(distances))[0]
        raise UserError(
            f"{folder}: samples '{names[i]}' and '{names[j]}' share fewer than "
            f"distance.min_called = {min_called} called sites, so their distance is not known and "
            "export.formats cannot have 'phylip' or 'newick'; set distance.on_uncomparable to "
            "'drop'."
        )
    if "phylip" in formats:
        export_phylip(distances, names, out / "distance.phylip")
    if "newick" in formats:
        export_newick(distances, names, out / "distance.nwk")
