"""The panel as VCF-Zarr, written by bio2zarr."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np

from ..cohort.panel import load_panel
from ..core.files import checksum_kept
from .panel import CHUNK_SAMPLES, CHUNK_SITES, sample_names, write_panel_bed


def export_zarr(prefixes: list[Path], panel_path: Path, out: Path, *, missing: str = "") -> None:
    """Write the genotypes of all cohorts as VCF-Zarr (Czech et al. 2025; Zarr format 2).

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
            zarr_format=2,
        )
        root = zarr.open_group(str(whole), mode="r+")
        root["sample_id"][:] = np.array(names, object)
        root.attrs["popdesic_panel"] = digest
        if missing:
            root.attrs["popdesic_genotypes"] = missing
        with checksum_kept(out, whole):
            shutil.rmtree(out, ignore_errors=True)
            whole.rename(out)
