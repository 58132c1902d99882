"""Cohorts whose sites predict each other: mosaics of a few ancestors, with missing genotypes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from support.study import Cohort, write_raw

from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.qc import summarize_cohort
from popdesic.io.genotypes import MISSING

NO_FILTERS = {"exclude_contigs": [], "min_call_rate": 0.0, "min_maf": 0.0, "min_hwe_p": 0.0}
BASES = [("A", "C"), ("G", "A"), ("T", "C"), ("A", "G")]


def make_haplotypes(n_sites: int, n: int, seed: int, among: tuple[int, int] = (0, 6)) -> np.ndarray:
    """uint8 (n_sites, n): mosaics of six ancestors, so neighbouring sites predict each other.

    `among`: only of ancestors from the first to before the second.
    """
    rng = np.random.default_rng(seed)
    ancestors = np.random.default_rng(77).random((n_sites, 6)) < 0.45
    out = np.empty((n_sites, n), np.uint8)
    for h in range(n):
        who = np.repeat(rng.integers(*among, n_sites // 20 + 1), 20)[:n_sites]
        out[:, h] = ancestors[np.arange(n_sites), who]
    return out


def make_sites(n_sites: int, contig: str = "1", step: int = 20_000) -> pd.DataFrame:
    alleles = [BASES[k % 4] for k in range(n_sites)]
    return pd.DataFrame(
        {
            "chrom": contig,
            "pos": 10_000 + step * np.arange(n_sites),
            "ref": [a for a, _ in alleles],
            "alt": [b for _, b in alleles],
        }
    )


def make_target(n_sites: int = 120, n: int = 24, missing: float = 0.1, seed: int = 1):
    """Truth, the same with missing genotypes, and the sites with the mode of the called ones."""
    haplotypes = make_haplotypes(n_sites, 2 * n, seed)
    truth = (haplotypes[:, ::2] + haplotypes[:, 1::2]).astype(np.int8)
    shown = truth.copy()
    shown[np.random.default_rng(seed + 1).random(truth.shape) < missing] = MISSING
    mode = [
        np.bincount(row[row >= 0], minlength=3).argmax() if (row >= 0).any() else 0 for row in shown
    ]
    return truth, shown, make_sites(n_sites).assign(mode=mode)


def write_reference(path: Path, sites: pd.DataFrame, haplotypes: np.ndarray, contig: str) -> Path:
    lines = ["##fileformat=VCFv4.2"]
    names = "\t".join(f"S{k}" for k in range(haplotypes.shape[1] // 2))
    lines.append(f"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{names}")
    for (_, site), row in zip(sites.iterrows(), haplotypes, strict=True):
        calls = "\t".join(f"{a}|{b}" for a, b in zip(row[::2], row[1::2], strict=True))
        lines.append(f"{contig}\t{site.pos}\t.\t{site.ref}\t{site.alt}\t.\tPASS\t.\tGT\t{calls}")
    path.write_text("\n".join(lines) + "\n")
    return path


def prepare(folder: Path, shown: np.ndarray, sites: pd.DataFrame) -> dict[str, Path]:
    """Raw files, QC tables and the panel of a single cohort."""
    rows = [(r.chrom, int(r.pos), f"s{k}", r.ref, r.alt) for k, r in enumerate(sites.itertuples())]
    names = [f"N{k}" for k in range(shown.shape[1])]
    raw = write_raw(folder / "raw", Cohort("c", names, rows, shown))
    summarize_cohort(raw, {}, folder / "sites.qc", folder / "samples.qc", min_sample_call_rate=0)
    build_panel(
        {"c": folder / "sites.qc"}, folder / "panel", folder / "counts", PanelFilters(**NO_FILTERS)
    )
    return {"raw": raw, "qc_samples": folder / "samples.qc", "panel_path": folder / "panel"}
