"""Accuracy of imputation on 564 phased people of the 1000 Genomes, chromosome 22.

    python tests/bench/bench_imputation.py ../shared/data [--min-maf 0.05] [--twice] [--quick]

Hides a share of the genotypes, imputes them by the panel's mode and by Beagle, and prints
concordance, non-reference concordance and dosage r2 by minor allele frequency; the figure goes to
--out. Beagle takes 4 minutes per share on 2 cores with all 19 012 SNPs; --twice repeats everything
with one thread and compares the bytes. Without Beagle only the mode is measured.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import commandline
import pandas as pd

from popdesic.cohort.accuracy import (
    by_beagle,
    by_mode,
    evaluate_window,
    summarize_evaluation,
)
from popdesic.cohort.beagle import Beagle
from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.panel import load_panel
from popdesic.cohort.qc import summarize_cohort

#: The data set, below the given folder.
VCF = "kg1_chr22_564/kg1_chr22_dev564.vcf.gz"


def prepare(data: Path, folder: Path, *, min_maf: float, n_sites: int = 0) -> dict[str, Path]:
    """Raw files, QC tables and a panel of the set, with the first `n_sites` sites (0: all)."""
    raw, samples, panel = folder / "raw", folder / "samples", folder / "panel.tsv"
    ingest_cohort(data / VCF, raw, threads=2)
    summarize_cohort(raw, {}, folder / "sites", samples, min_sample_call_rate=0)
    filters = {"exclude_contigs": [], "min_call_rate": 0, "min_maf": min_maf, "min_hwe_p": 0}
    build_panel({"kg1": folder / "sites"}, panel, folder / "counts", PanelFilters(**filters))
    if n_sites:
        lines = panel.read_text().splitlines(keepends=True)
        panel.write_text("".join(lines[: 2 + n_sites]))
    return {"raw": raw, "qc_samples": samples, "panel_path": panel}


def evaluate(
    paths: dict[str, Path], folder: Path, share: float, threads: int, methods: list[str]
) -> pd.DataFrame:
    """The table of `popdesic.cohort.accuracy` for these methods."""
    part = folder / f"{share}.npz"
    imputers = {"mode": by_mode, "beagle": by_beagle(Beagle(threads=threads))}
    evaluate_window(
        *paths.values(),
        None,
        None,
        part,
        cohort="kg1",
        share=share,
        seed=1,
        imputers={method: imputers[method] for method in methods},
    )
    samples = {"kg1": paths["qc_samples"]}
    return summarize_evaluation({"kg1": [part]}, samples, methods, folder / f"{share}.tsv")


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("data", type=Path, help="folder of the real data, with kg1_chr22_564")
    parser.add_argument("--sites", type=int, default=0, help="the first of the panel; 0: all")
    parser.add_argument("--min-maf", type=float, default=0.0)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.02, 0.1])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--twice", action="store_true", help="again, with one thread")
    options = commandline.parse(parser, sites=300, shares=[0.1])
    if not (options.data / VCF).is_file():
        raise SystemExit(f"Error: {options.data / VCF} is not there; name the folder of real data.")
    methods = ["mode", *filter(commandline.find_peer, ["beagle"])]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        paths = prepare(options.data, folder, min_maf=options.min_maf, n_sites=options.sites)
        print(f"{len(load_panel(paths['panel_path'])[0])} sites, MAF >= {options.min_maf}")
        for share in options.shares:
            started = time.perf_counter()
            table = evaluate(paths, folder, share, 2, methods)
            print(f"\n{share:.0%} hidden, {time.perf_counter() - started:.0f} s")
            print(table[table.by != "sample"].drop(columns="cohort").to_string(index=False))
            common = table[table.by == "common"].set_index("method").nonref_concordance
            if "beagle" in methods:
                ratio = (1 - common["beagle"]) / (1 - common["mode"])
                print(f"non-reference error at MAF >= 0.05: Beagle's is {ratio:.2f} of the mode's")
            if options.twice:
                first = (folder / f"{share}.npz").read_bytes()
                evaluate(paths, folder, share, 1, methods)
                same = (folder / f"{share}.npz").read_bytes() == first
                print(
                    f"a second run, with one thread, gives {'the same' if same else 'OTHER'} bytes"
                )
            if options.out:
                from popdesic.report.figures.imputation import draw_accuracy
                from popdesic.report.figures.style import save_figure, styled

                options.out.mkdir(parents=True, exist_ok=True)
                with styled():
                    figure = draw_accuracy(folder / f"{share}.tsv")
                    save_figure(figure, options.out / f"imputation.{share}")


if __name__ == "__main__":
    main()
