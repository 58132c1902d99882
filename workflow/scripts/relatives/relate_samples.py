"""PC-Relate kinship, one verdict on each pair of relatives from all analyses, and its figures."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.core.tables import read_table
from popdesic.engine.needs import expected_bytes
from popdesic.engine.select import select_backend
from popdesic.ibd.verdict import judge_study
from popdesic.relatives.options import MOST_SITES
from popdesic.relatives.relatedness import relate_samples
from popdesic.relatives.resolution import load_resolution
from popdesic.report.figures.relatives import draw_relatives

FILES = ("panel", "samples", "scores", "axes", "king")
TABLES = {"pairs": "pc_relate", "samples": "samples", "about": "about"}
MADE = ("king", "untold", "resolution", "segments", "genome")

with logged(snakemake.log[0], snakemake.input) as log:
    files, params = snakemake.input, snakemake.params
    known = {name: Path(files[name][0]) for name in MADE if files.get(name)}
    made = {name: list(map(Path, snakemake.output.get(name, []))) for name in TABLES}
    if made["pairs"]:
        n_samples = len(read_table(files.samples[0]))
        need = expected_bytes(n_samples, MOST_SITES)
        backend = select_backend(params.device, snakemake.threads, device_bytes=need)
        log.info("device: %s", backend.describe())
        counts = relate_samples(
            [Path(bed).with_suffix("") for bed in files.genotypes],
            {name: Path(files[name] if name == "panel" else files[name][0]) for name in FILES},
            {name: paths[0] for name, paths in made.items()},
            founders=set(params.founders),
            unrelated=next(map(Path, files.get("unrelated", [])), None),
            resolution=load_resolution(known["resolution"]),
            min_kinship=params.min_kinship,
            backend=backend,
        )
        log_counts(log, counts)
        known |= {TABLES[name]: paths[0] for name, paths in made.items()}
    out = Path(snakemake.output.verdict)
    found = judge_study(
        known | {"panel": Path(files.panel), "counts": Path(files.counts)},
        out,
        Path(snakemake.output.summary),
        genetic_map=params.genetic_map,
        x_contigs=params.x_contigs,
        min_cm=params.min_cm,
        listed=params.min_kinship,
        error_rate=params.error_rate,
    )
    log_counts(log, found["relations"] | {"cM searched": round(found["searched_cm"])})
    names = [Path(path).stem for path in snakemake.output.get("png", [])]
    draw_relatives(names, out, known, out.parents[1] / "figures")
