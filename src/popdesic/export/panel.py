"""The panel of all cohorts as PLINK .bed and as VCF."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.panel import load_panel
from ..cohort.phenotype import known_numbers
from ..core.files import atomic_path
from ..io.bed import open_bed, read_fam, write_fam
from ..io.bgzf_writer import BgzfWriter
from ..io.genotypes import BED_MAGIC, pack_bed, unpack_bed
from ..io.sites import chunks

#: Sites read at a time, and per chunk of VCF-Zarr (with at most CHUNK_SAMPLES samples).
CHUNK_SITES = 1_000
CHUNK_SAMPLES = 10_000
_CALLS = np.array([b"\t0/0", b"\t0/1", b"\t1/1", b"\t./."], "S4")


def panel_genotypes(prefixes: list[Path]) -> Iterator[tuple[int, np.ndarray]]:
    """First site and int8 (n_sites, n_samples) genotypes of consecutive chunks of panel sites.

    Parameters
    ----------
    prefixes : list of Path
        `cohorts/{cohort}/genotypes`, or `imputed`, in sample order, all on the same panel.
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
    """Write the genotypes of all cohorts on the panel as {out}.bed, .bim and .fam.

    Parameters
    ----------
    sheet : DataFrame
        `sample` and, if the study has them, `sex` (M, F), `father`, `mother` and `phenotype`
        (1 case, 0 control, or a number), all strings; the .fam has them in PLINK's codes.
    """
    names = sample_names(prefixes)
    write_panel_bed(prefixes, out)
    rows = sheet.set_index("sample").reindex(names, fill_value="NA")
    fam = pd.DataFrame({"family": "0", "sample": names})
    for column in ("father", "mother"):
        stated = rows.get(column, pd.Series("0", rows.index))
        fam[column] = stated.replace(["", "NA"], "0").to_numpy()
    sex = rows.get("sex", pd.Series("NA", rows.index))
    fam["sex"] = sex.map({"M": "1", "F": "2"}).fillna("0").to_numpy()
    phenotype = rows.get("phenotype", pd.Series("NA", rows.index)).replace("", "NA")
    # Decide by the whole sheet: after filtering, numbers may have only the values 0 and 1.
    stated = known_numbers(sheet.phenotype) if "phenotype" in sheet else np.empty(0)
    if np.isin(stated[~np.isnan(stated)], (0, 1)).all():  # PLINK has 1 for controls, 2 for cases
        phenotype = phenotype.map(lambda text: "NA" if text == "NA" else str(int(float(text)) + 1))
    fam["phenotype"] = phenotype.replace("NA", "-9").to_numpy()
    write_fam(out, fam)


def write_panel_bed(prefixes: list[Path], out: Path) -> None:
    """Write {out}.bed and .bim: the genotypes of all cohorts on the panel."""
    with atomic_path(Path(f"{out}.bed")) as temporary, open(temporary, "wb") as file:
        file.write(BED_MAGIC)
        for _, genotypes in panel_genotypes(prefixes):
            file.write(pack_bed(genotypes).tobytes())
    with atomic_path(Path(f"{out}.bim")) as temporary:
        shutil.copyfile(f"{prefixes[0]}.bim", temporary)


# --- VCF ------------------------------------------------------------------------------------


def export_vcf(prefixes: list[Path], panel_path: Path, out: Path, *, missing: str = "") -> None:
    """Write the genotypes of all cohorts on the panel as a bgzipped VCF 4.2.

    `missing` says how missing calls were imputed, in a line of the header; '' if they were not.
    """
    panel, digest = load_panel(panel_path)
    lines = ["##fileformat=VCFv4.2", f"##popdesic_panel={digest}"]
    if missing:
        lines.append(f"##popdesic_genotypes={missing}")
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
            calls = _CALLS[genotypes]  # MISSING is -1: the last entry
            for k, row in enumerate(calls):
                writer.write(starts[first + k] + row.tobytes() + b"\n")
        writer.close()
