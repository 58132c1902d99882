"""Compute maps of some spaces: of geodesics by each method, and UMAPs of plain distances."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import log_counts, logged
from popdesic.distance.matrix import leading_scores
from popdesic.maps.further_maps import compute_further_map
from popdesic.maps.near_maps import study_pcoa
from popdesic.maps.umap_maps import (
    FounderFrame,
    UmapSettings,
    compute_umap,
    layout_backend,
    of_space,
    plain_of_space,
)

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs, params = snakemake.input, snakemake.output, snakemake.params
    methods, alphas, layout = params.methods, params.alphas, dict(params.layout)
    order, sheet = Path(files.samples), Path(params.sheet)
    common = {"founders": set(params.founders), "threads": snakemake.threads}
    scores, unstable = Path(next(iter(files.scores), "")), list(outputs.get("instability", []))
    if {"umap", "densmap"} & {*methods}:
        size = params.n_samples, layout["neighbors"]
        layout["backend"] = layout_backend(params.device, snakemake.threads, *size)
    for k, space in enumerate(params.spaces):
        given = {one: of_space(files.get(one), alphas, k) for one in ("lengths", "lists", "frame")}
        kinds = [*methods, "statistics", "pcoa_refit", "umap_refit"]
        made = {kind: of_space(outputs.get(kind), alphas, k) for kind in kinds}
        if "umap" in methods:
            source = params.store, space, scores, params.pcs, order.parent
            graph, frame = Path(next(iter(files.shared), "")), given["frame"]
            n_sites, refits = read_json(files.panel[0])["n_sites"], made["umap_refit"]
            frame = FounderFrame(frame, common["founders"], refits) if frame else None
            compute_umap(
                given["lists"] or given["lengths"],
                plain_of_space(*source, graph=graph, n_sites=n_sites, **params.distance),
                *(scores, order, sheet),
                UmapSettings(layout["neighbors"], layout["seed"], params.ensemble),
                tables=made["umap"] | {"plain": Path(outputs.plain[k])},
                components=leading_scores(scores, params.pcs).shape[1] if space == "pcs" else None,
                instability_out=Path(unstable[k]) if unstable else None,
                **{"frame": frame, "threads": snakemake.threads, "backend": layout["backend"]},
            )
        for alpha, path in given["lengths"].items():
            own = {"frame": given["frame"].get(alpha), **common}
            for method in methods:
                out = made[method][alpha]
                if method == "pcoa":
                    near, about = given["lists"].get(alpha), made["statistics"][alpha]
                    more = {"statistics_out": about, "refit_out": made["pcoa_refit"].get(alpha)}
                    more |= {"components": params.components, **own}
                    log_counts(log, study_pcoa(path, near, order, sheet, table_out=out, **more))
                elif method != "umap":
                    options = {"out": out, **layout, **own}
                    compute_further_map(method, path, scores, order, sheet, **options)
        log.info("space %s", space)
