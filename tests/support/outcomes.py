"""Small result files of an invented run, as awkward as a test needs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from popdesic.components.axes import AXES
from popdesic.core.files import write_json
from popdesic.core.tables import write_npy, write_table
from popdesic.distance.matrix import Distances
from popdesic.report.outcome import Outcome, load_outcome
from popdesic.study.configuration import fill_config

SPACES = ["genotypes", "pcs"]
ALPHAS = ["2", "auto"]
#: Figures of a study without epistasis, which the page shows, and a placeholder of one.
FIGURES = [
    *("filters", "samples", "sites", "distances", "alpha", "pca", "pca_pairs", "scree", "loadings"),
    *(f"{method}.{s}.alpha{a}" for method in ("pcoa", "umap") for s in SPACES for a in ALPHAS),
]
EMPTY = '<svg xmlns="http://www.w3.org/2000/svg" width="72pt" height="36pt" viewBox="0 0 72 36"/>'
N_SITES = 40
#: What `embedding/pca.json` says of axes with nothing to warn about.
AXES_OF_PCA = {
    "axis_samples": 20,
    "sites": {"panel": 40, "monomorphic": 0, "long_range_ld": 2, "ld_pruned": 4, "used": 34},
    "ld_r2": 0.2,
    "significant": 3,
    "level": 0.01,
    "components": 4,
    "scree": [0.4, 0.2, 0.1, 0.02, 0.0001],
    "threshold": [0.2, 0.15, 0.09, 0.08, None],
    "p": [0.0, 0.0, 0.0, 0.9, 1.0],
    "regions": [],
    "shifts": [],
}

#: What `panel/counts.json` says of the genome.
GENOME = {"build": "hg38", "why": "qc.build says so", "roles": {"1": "autosome", "2": "autosome"}}


def chosen_way(space: str) -> dict:
    """What `geodesic/choice.json` says of a space where geodesics change the picture."""
    numbers = (1, 2, 4, 8) if space == "pcs" else (None,)
    rows = [
        {"graph": graph, "neighbors": k, "alpha": alpha, "pcs": pcs}
        | {"rank_correlation": 0.5 - 0.01 * k / alpha + 0.01 * (pcs or 0), "agreement": 0.9}
        for pcs in numbers
        for graph, k, alpha in (("knn", 15, 1.0), ("complete", 0, 1.0), ("complete", 0, 4.0))
    ]
    return {
        **{"graph": "complete", "neighbors": 0, "alpha": 4.0, "pcs": numbers[-1]},
        **{"rank_correlation": rows[-1]["rank_correlation"], "plain": 0.45, "best": 0.5},
        **{"agreement": 0.9, "chance": 0.03, "held_out": rows, "reason": "lead"},
        "why": "Geodesics with α = 4 order pairs best (0.500, plain 0.450).",
        **{"people": 20, "sites": 34, "seed": 1},
    }


def make_results(
    folder: Path,
    cohorts: dict[str, list[str]],
    founders: list[str],
    columns: dict[str, list[str]] | None = None,
    *,
    left_out: tuple[str, ...] = (),
    drift: dict[str, dict[str, float]] | None = None,
    geodesic: dict | None = None,
    encode: dict[str, dict[str, int]] | None = None,
    matrices: bool = True,
    further: tuple[str, ...] = (),
    instability: float | None = None,
    axes: dict | None = None,
    choice: dict | None = None,
    listed: dict | None = None,
) -> tuple[Outcome, Distances]:
    """Write a run's results below `folder` and read them.

    Parameters
    ----------
    cohorts : dict
        Samples of each cohort, in sample order.
    columns : dict
        Further columns of the sample sheet: values for all samples, in that order.
    left_out : tuple of str
        Samples dropped for their call rate.
    drift, encode : dict
        Changes to the records of a cohort that agrees with the panel.
    geodesic : dict
        Changes to the record of a closure in which a fifth of the pairs are indirect.
    matrices : bool
        Whether to write the n x n matrices; without them distances cannot be read.
    further : tuple of str
        Optional kinds of map.
    instability : float, optional
        Instability of three quarters of the samples on each UMAP (the others have none); by
        default it is not measured.
    axes : dict
        What differs from AXES_OF_PCA.
    choice : dict
        What differs from `chosen_way` in both spaces.
    listed : dict
        Changes to the record of the listed alpha, after those of `geodesic`.
    """
    rng = np.random.default_rng(7)
    rows = [(sample, cohort) for cohort, samples in cohorts.items() for sample in samples]
    sheet = pd.DataFrame(rows, columns=["sample", "cohort"]).assign(**(columns or {}))
    results = folder / "results"
    path = folder / "samples.tsv"
    folder.mkdir(parents=True, exist_ok=True)
    # Sheets know no quotes: a quotation mark is part of the name.
    lines = ["\t".join(map(str, row)) for row in [sheet.columns, *sheet.itertuples(index=False)]]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    kept = sheet[~sheet["sample"].isin(left_out)].reset_index(drop=True)
    n = len(kept)

    summary = []
    drifts = []
    for cohort, samples in cohorts.items():
        out = [sample in left_out for sample in samples]
        table = pd.DataFrame({"sample": samples, "population": "NA"})
        table["n_called"], table["n_missing"] = N_SITES, 0
        table["call_rate"] = np.where(out, 0.5, 0.99)
        table["heterozygosity"] = rng.uniform(0.2, 0.3, len(samples))
        table["keep"] = np.where(out, "no", "yes")
        table["left_out"] = np.where(out, "qc.min_sample_call_rate", "NA")
        write_table(results / f"qc/{cohort}.samples.tsv", table)
        group = {
            "population": "NA",
            "samples": len(samples) - sum(out),
            "tested": "both",
            "reason": "",
        }
        write_table(results / f"qc/{cohort}.populations.tsv", pd.DataFrame([group]))
        summary += [
            ("ingest", cohort, "records", N_SITES + 2),
            ("ingest", cohort, "indel", 2),
            ("ingest", cohort, "star", 0),
            ("qc", cohort, "samples", len(samples)),
        ]
        counts = {"panel_sites_found": N_SITES, "swapped_turned": 0}
        counts |= (encode or {}).get(cohort, {})
        summary += [("encode", cohort, step, count) for step, count in counts.items()]
        drifts.append(
            {
                "cohort": cohort,
                "founder": "yes" if cohort in founders else "no",
                "panel_sites_present": N_SITES,
                "share_present": 1.0,
                "call_rate": 0.99,
                "mean_af_difference": 0.01,
                "expected_af_difference": 0.01,
                "af_correlation": 0.99,
                **(drift or {}).get(cohort, {}),
            }
        )
    write_table(
        results / "qc/summary.tsv",
        pd.DataFrame(summary, columns=["stage", "cohort", "step", "count"]),
    )
    write_table(results / "qc/drift.tsv", pd.DataFrame(drifts))

    steps = [
        {"what": "founder", "subject": founders[0], "sites": N_SITES + 10},
        {"what": "filter", "subject": "panel.min_maf", "sites": N_SITES, "limit": "0.01"},
    ]
    write_json(
        results / "panel/counts.json",
        {"digest": "0123456789ab", "n_sites": N_SITES, "steps": steps, "genome": GENOME},
    )
    panel = pd.DataFrame(
        {
            "chrom": np.repeat(["1", "2"], N_SITES // 2),
            "pos": np.arange(N_SITES) + 1,
            "id": ".",
            "ref": "A",
            "alt": "G",
            "af": rng.uniform(0.05, 0.95, N_SITES),
            "mode": 0,
            "n_called": n,
        }
    )
    (results / "panel/sites.tsv").write_text(
        f"# panel 0123456789ab, {N_SITES} sites\n" + panel.to_csv(sep="\t", index=False)
    )

    if matrices:
        genotypes = rng.integers(0, 3, (n, N_SITES))
        squared = ((genotypes[:, None] - genotypes[None]) ** 2).sum(axis=2).astype(np.int64)
        write_npy(results / "distance/squared.npy", squared)
        write_npy(results / "distance/called.npy", np.full((n, n), N_SITES, np.int64))
    write_table(results / "distance/samples.tsv", kept[["sample", "cohort"]])

    scores = pd.DataFrame(rng.normal(size=(n, 4)), columns=[f"PC{i}" for i in range(1, 5)])
    loadings = panel[["chrom", "pos", "id", "ref", "alt"]].assign(
        **{name: rng.normal(size=N_SITES) for name in scores}
    )
    write_table(results / "embedding/loadings.tsv", loadings)
    maps = {"pca": scores}
    for space in SPACES:
        maps[f"umap.distance.{space}"] = scores[["PC1", "PC2"]].set_axis(["UMAP1", "UMAP2"], axis=1)
        for alpha in ALPHAS:
            maps[f"pcoa.{space}.alpha{alpha}"] = scores.rename(
                columns=lambda name: name.replace("PC", "PCo")
            )
            maps[f"umap.{space}.alpha{alpha}"] = scores[["PC1", "PC2"]].set_axis(
                ["UMAP1", "UMAP2"], axis=1
            )
            for method in further:
                names = [f"{AXES[method]}{axis}" for axis in (1, 2)]
                maps[f"{method}.{space}.alpha{alpha}"] = scores[["PC1", "PC2"]].set_axis(
                    names, axis=1
                )
            about = {
                "alpha": alpha,
                "value": 2.0 if alpha == "2" else 4.0,
                "graph": {"kind": "complete", "neighbors": 0, "density": "keep"},
                "plain": False,
                "number": {"dtype": "int32", "scale": 1.0, "error_bound": 0.0, "rescaled": False},
                "pairs": n * (n - 1) // 2,
                "indirect_pairs": n * (n - 1) // 10,
                "indirect_share": 0.2,
                "founder_indirect_share": 0.2,
                "median_stretch_of_indirect": 1.1,
                "unreachable_pairs": 0,
                "approximate": None,
            }
            about |= geodesic or {}
            about |= (listed or {}) if alpha != "auto" else {}
            record = about.pop("record", {"continued": None, "work_skipped": 0.0})
            write_json(results / f"geodesic/{space}/alpha{alpha}.json", about)
            write_json(results / f"geodesic/{space}/alpha{alpha}.run.json", record)
    ways = {space: chosen_way(space) | (choice or {}) for space in SPACES}
    write_json(results / "geodesic/choice.json", ways)
    for name, table in maps.items():
        written = pd.concat([kept[["sample"]], table, kept.drop(columns="sample")], axis=1)
        write_table(results / f"embedding/coordinates/{name}.tsv", written)
        if name.startswith("pc"):
            write_json(
                results / f"embedding/{name}.json",
                {"samples": n, "variance_explained": [0.4, 0.2, 0.1, 0.0001]}
                | (AXES_OF_PCA | (axes or {}) if name == "pca" else {}),
            )
    if instability is not None:
        table = kept[["sample"]].copy()
        for space in SPACES:
            for alpha in ALPHAS:
                share = np.where(np.arange(n) % 4, instability, 0.0)
                table[f"instability.umap.{space}.alpha{alpha}"] = share
        write_table(results / "embedding/instability.tsv", table)
    outcome = load_outcome(
        results,
        path,
        cohorts=list(cohorts),
        founders=founders,
        spaces=SPACES,
        alphas=ALPHAS,
        further=list(further),
        ensemble=instability is not None,
        chosen=True,
    )
    return outcome, Distances(results / "distance", "euclidean", N_SITES, 1)


def configuration(**report: str) -> dict:
    """The default configuration with another `report` block."""
    return fill_config({"report": report})
