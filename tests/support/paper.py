"""What a paragraph of results says of a study, phrase by phrase, computed from its tables."""

from __future__ import annotations

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.tables import read_table


def result_phrases(results: Path) -> list[str]:
    """Phrases with all numbers of the paragraph at the end of docs/tutorial.md."""

    def table(name: str):
        return read_table(results / name)

    kept, pca = table("distance/samples.tsv"), read_json(results / "embedding/pca.json")
    sites = read_json(results / "panel/counts.json")["n_sites"]
    share = [f"{100 * value:.1f} %" for value in pca["scree"][:2]]
    scores = table("communities/agreement.tsv")
    score = scores[(scores.label == "population") & (scores.partition == "community")].iloc[0]
    pairs = table("population/pairs.tsv")
    fst, error = pairs.fst.astype(float), pairs.error.astype(float)
    most, least = fst.idxmax(), fst.idxmin()
    (drift,) = table("qc/drift.tsv").query("founder == 'no'").itertuples()
    off, chance = float(drift.mean_af_difference), float(drift.expected_af_difference)
    (admixed,) = read_json(results / "population/summary.json")["admixed"]
    scan, plan = table("epistasis/pairs.tsv"), read_json(results / "epistasis/plan.json")
    found = scan[scan.p_interaction.astype(float) <= 0.05]
    return [
        f"{len(kept)} samples of {kept.cohort.nunique()} cohorts at {spaced(sites)} SNPs",
        f"{pca['axis_samples']} unrelated founders, and {pca['significant']} principal components",
        f"explained {share[0]} and {share[1]} of the variance",
        f"{score.groups} communities, which followed the {score.labels} populations "
        f"(adjusted Rand index {float(score.ari):.2f})",
        f"between {pairs.population1[most]} and {pairs.population2[most]} (Hudson's F_ST "
        f"{fst[most]:.3f} ± {error[most]:.3f})",
        f"between {pairs.population1[least]} and {pairs.population2[least]} "
        f"({fst[least]:.3f} ± {error[least]:.3f})",
        f"admixture in {admixed}",
        f"The {(kept.cohort == drift.cohort).sum()} samples of the cohort {drift.cohort}",
        f"by {off:.3f} on average, where sampling alone gives {chance:.3f}",
        f"Of {spaced(plan['pairs']['tests'])} pairs of sites, {len(found)} had a significant "
        f"interaction ({found.id1.iloc[0]} and {found.id2.iloc[0]})",
    ]


def spaced(count: int) -> str:
    return f"{count:,}".replace(",", " ")
