"""Studies too small for some analysis: every one reaches its report, which says what is lacking."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.running import snakemake
from support.study import Cohort, Site, write_study

from popdesic.core.tables import read_table

#: Settings of all tiny studies: one space and alpha, whose maps are soon drawn.
CONFIG = {
    "device": "cpu",
    "distance": {"min_called": 1},
    "geodesic": {"alpha": [2], "space": ["genotypes"]},
    "communities": {"methods": ["hdbscan", "tree"]},
}


def sites(n: int, apart: int = 200_000) -> list[Site]:
    return [("1", 1000 + apart * k, f"rs{k}", "A", "C") for k in range(n)]


def draw(n_sites: int, *sizes: int, seed: int = 1) -> np.ndarray:
    """Genotypes (n_sites, n_samples) of populations of these sizes."""
    rng = np.random.default_rng(seed)
    common = rng.uniform(0.2, 0.8, n_sites)
    own = [np.clip(common + rng.normal(0, 0.2, n_sites), 0.05, 0.95) for _ in sizes]
    parts = [rng.binomial(2, p[:, None], (n_sites, n)) for p, n in zip(own, sizes, strict=True)]
    return np.concatenate(parts, axis=1).astype(np.int8)


def draw_trio(n_sites: int) -> np.ndarray:
    """Genotypes of two parents and their child."""
    rng = np.random.default_rng(2)
    alleles = (rng.random((n_sites, 4)) < rng.uniform(0.3, 0.7, (n_sites, 1))).astype(np.int8)
    pairs = ((0, 1), (2, 3), (0, 2))
    return np.stack([alleles[:, a] + alleles[:, b] for a, b in pairs], axis=1)


def cohort(name: str, genotypes: np.ndarray, places: list[Site], *labels: str, founder=True):
    """A cohort with one letter of `labels` for each sample, or without labels."""
    names = [f"{name}{k}" for k in range(genotypes.shape[1])]
    populations = [label for text in labels for label in text]
    return Cohort(name, names, places, genotypes, founder, False, populations)


def one_block() -> list[Cohort]:
    return [cohort("a", draw(120, 9, 9), sites(120, 1000), "P" * 9, "Q" * 9)]


def one_site() -> list[Cohort]:
    return [cohort("a", draw(1, 9, 9), sites(1), "P" * 9, "Q" * 9)]


def trio() -> list[Cohort]:
    return [cohort("a", draw_trio(300), sites(300))]


def two_samples() -> list[Cohort]:
    return [cohort("a", draw(300, 2), sites(300), "P", "Q")]


def three_founders() -> list[Cohort]:
    """Founders without labels and too few for a map, in whose frame newcomers are placed."""
    genotypes = draw(300, 9)
    return [
        cohort("a", genotypes[:, :3], sites(300)),
        cohort("b", genotypes[:, 3:], sites(300), "P" * 6, founder=False),
    ]


def copied_line() -> list[Cohort]:
    """Lines without a heterozygote, two of them the same."""
    lines = 2 * (np.random.default_rng(5).random((300, 8)) < 0.5).astype(np.int8)
    lines[:, 7] = lines[:, 0]
    return [cohort("a", lines, sites(300), "P" * 4, "Q" * 4)]


FURTHER = {"embedding": {"further_maps": ["densmap", "tsne"], "ensemble": 1}}
#: name: (cohorts, settings, sentences of the page)
STUDIES: dict[str, tuple[Callable[[], list[Cohort]], dict, tuple[str, ...]]] = {
    "one block": (
        one_block,
        {"epistasis": {"order": [2], "covariates": [], "pcs": 0}},
        ("error not estimable", "No pairs of sites were eligible for a test"),
    ),
    "one site": (
        one_site,
        {
            "distance": {},
            "compare": {"analyses": ["kinship", "pc_relate", "identity", "mixture", "ld", "ibd"]},
            "epistasis": {"order": [2, 3], "permutations": 0, "strata": "none", "pcs": 0},
        },
        (
            "error not estimable",
            "The panel has 1 site, fewer than the 100 that two samples should",
            "No segments of IBD were sought: the panel",
            "1 usable site is fewer than the 3 that a scan of order 3 combines, so nothing is",
        ),
    ),
    "trio": (trio, FURTHER, ("UMAP, densMAP and t-SNE are left out: a map of neighbours needs",)),
    "two samples": (two_samples, {}, ("UMAP is left out: a map of neighbours needs at least 5",)),
    "three founders": (
        three_founders,
        {"embedding": FURTHER["embedding"] | {"stable": True}},
        ("UMAP, densMAP and t-SNE are left out",),
    ),
    "copied line": (copied_line, {}, ()),
}
#: Studies that lack less than the rest.
OTHERS = ("one block", "trio", "three founders")


@pytest.mark.parametrize(
    "name", [pytest.param(k, marks=pytest.mark.slow) if k in OTHERS else k for k in STUDIES]
)
def test_a_tiny_study_reaches_its_report(tmp_path, name):
    make, settings, sentences = STUDIES[name]
    cohorts = make()
    study = write_study(tmp_path, cohorts, CONFIG | settings)
    assert "Traceback" not in snakemake(study)
    page = " ".join((study / "results/report/report.html").read_text("utf-8").split())
    for sentence in sentences:
        assert sentence in page
    for line in (study / "results/report/summary.json").read_text("utf-8").splitlines():
        assert not any(word in line for word in ("NaN", " nan", "± NA"))
    check = CHECKS.get(name)
    if check:
        check(study / "results")


def check_no_map(results: Path) -> None:
    """Maps of neighbours are missing; all other maps have finite coordinates."""
    maps = {path.stem: read_table(path) for path in (results / "embedding").glob("*.alpha2.tsv")}
    maps["pca"] = read_table(results / "embedding/coordinates/pca.tsv")
    for stem, table in maps.items():
        first = table.columns[1]
        left_out = stem.split(".")[0] in ("umap", "umap_refit", "densmap", "tsne")
        assert (table[first] == "NA").all() if left_out else (table[first] != "NA").all(), stem
    quality = read_table(results / "embedding/quality.tsv")
    assert set(quality["map"]) <= {"pca", "pcoa", "pcoa_refit"}


def check_no_pair(results: Path) -> None:
    """Tables and log say that nothing was tested, not that all pairs were."""
    pairs = read_table(results / "epistasis/pairs.tsv")
    assert len(pairs) == 0
    assert {"rank", "score", "p_interaction", "id1", "id2"} <= set(pairs)
    log = (results.parent / "logs/rank_epistasis.log").read_text("utf-8")
    assert "none of the pairs of sites was eligible" in log
    assert " tests: 0\n" in log
    found = json.loads((results / "report/summary.json").read_text("utf-8"))["findings"]
    texts = [finding["text"] for finding in found]
    fst = read_table(results / "population/pairs.tsv").iloc[0]
    assert fst.error == "NA"
    assert f"F_ST between P and Q is {float(fst.fst):.3f}, error not estimable." in texts


def check_empty(results: Path) -> None:
    """What one site cannot tell has files with headers and without rows, and the log says why."""
    for name in ("ibd/pairs.tsv", "ibd/segments.tsv.gz", "epistasis/triples.tsv"):
        table = pd.read_csv(results / name, sep="\t")
        assert len(table) == 0 and len(table.columns) > 8, name
    log = (results.parent / "logs/write_report.log").read_text("utf-8")
    assert "No IBD segments: No segments of IBD were sought" in log
    assert "too few sites: 1 usable site is fewer than the 2" in log


CHECKS = dict.fromkeys(("trio", "two samples", "three founders"), check_no_map)
CHECKS["one site"] = check_empty
CHECKS["one block"] = check_no_pair
