"""The section on populations and its figures: many populations, few, and none."""

from __future__ import annotations

from pathlib import Path

import jinja2
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from support.readable import checked

from popdesic.cohort.panel import SiteLists
from popdesic.core.files import read_json, write_json
from popdesic.core.places import TEMPLATES
from popdesic.core.tables import write_npz, write_table
from popdesic.population.measure import measure_population
from popdesic.population.runs import class_names
from popdesic.report.figures.ancestry import GAP, draw_ancestry, order_of_bars
from popdesic.report.figures.population import (
    GONE,
    _leaves,
    _nodes,
    _prune,
    draw_differentiation,
    draw_population,
)
from popdesic.report.figures.style import PALETTE, styled
from popdesic.report.registry import population_figures
from popdesic.report.sections.population import ancestry_components, population_section
from popdesic.report.sections.sweeps import DRIFT_TIMES

ANALYSES = ["diversity", "differentiation", "f_statistics", "runs", "local"]
HOSTILE = "<b>$x_1$'c'"


def write_windows(folder: Path, regions: int, reason: str = "") -> None:
    """Tables of 40 windows, of which `regions` times five differ; none with a reason."""
    n = 40
    region = np.repeat(np.arange(n // 5), 5) + 1
    known = not reason
    table = pd.DataFrame(
        {
            "window": np.arange(1, n + 1),
            "chrom": np.repeat(["1", HOSTILE], n // 2),
            "start": 1 + 1000 * np.arange(n),
            "end": 900 + 1000 * np.arange(n),
            "sites": 10,
            "mds1": np.where(region <= regions, 1.0, 0.1) if known else np.nan,
            "mds2": 0.2 if known else np.nan,
            "outlier": np.where(region <= regions, "yes", "no") if known else "NA",
            "region": np.where(region <= regions, region.astype(str), "NA"),
        }
    )
    write_table(folder / "local_pca.tsv", table)
    about = {"people": 24, "windows": n, "window_sites": 10, "regions": regions}
    write_json(folder / "local_pca.json", about | ({"reason": reason} if reason else {}))


def write_sweeps(folder: Path, populations: list[str], **said) -> pd.DataFrame:
    """Tables of 20 windows of each population on two chromosomes; returns them."""
    rng, n = np.random.default_rng(4), 20
    tables = []
    for k, name in enumerate(populations):
        h12, extreme = rng.uniform(0.04, 0.06, n), rng.uniform(0, 0.1, n)
        h12[5 + k], extreme[12] = 0.3 + 0.1 * k, 0.4
        extreme[3] = np.nan
        chrom = np.repeat(["1", HOSTILE], n // 2)
        places = {"population": name, "chrom": chrom, "start": 1 + 1000 * np.arange(n)}
        values = {"end": 1900 + 1000 * np.arange(n), "h12": h12, "extreme_ihs": extreme}
        tables.append(pd.DataFrame(places | values))
    table = pd.concat(tables or [pd.DataFrame(columns=["population", "h12", "extreme_ihs"])])
    write_table(folder / "sweep_windows.tsv", table)
    about = {"populations": dict.fromkeys(populations, 24), "too_small": {}, "fewest": 5}
    about |= {"sites": 1200, "map_cm": 90.5, "compared": True, "windows": len(table)}
    write_json(folder / "sweep_summary.json", about | said)
    return table


def measured(
    folder: Path,
    populations: list[str],
    analyses=ANALYSES,
    people=12,
    *,
    regions=1,
    reason="",
    searched=1.0,
    **options,
):
    """Tables and figures of random populations; `folder` becomes `results`."""
    rng = np.random.default_rng(1)
    n_sites = 400
    sites = pd.DataFrame(
        {
            "chrom": np.repeat(["1", "2"], n_sites // 2),
            "pos": 1 + 5000 * np.arange(n_sites),
            **dict.fromkeys(("id", "ref", "alt"), "."),
            "af": 0.5,
            "mode": 1,
            "n_called": 10,
        }
    )
    folder.mkdir(exist_ok=True)
    sites.to_csv(folder / "body.tsv", sep="\t", index=False)
    (folder / "sites.tsv").write_text("# panel abc\n" + (folder / "body.tsv").read_text())
    root = rng.uniform(0.2, 0.8, n_sites)
    counts = []
    for _ in populations:
        p = np.clip(root + rng.normal(0, 0.15, n_sites), 0, 1)
        states = rng.binomial(2, np.repeat(p[:, None], people, axis=1))
        counts.append(np.stack([(states == g).sum(axis=1) for g in range(3)], axis=1))
    k = len(populations)
    stacked = np.stack(counts, axis=1) if k else np.zeros((n_sites, 0, 3))
    write_npz(
        folder / "one.npz",
        populations=np.array(populations, dtype=np.str_),
        ploidy=np.full(k, 2),
        sizes=np.full(k, people),
        counts=stacked.astype(np.uint16),
        in_runs=np.full((n_sites, k), 3, np.uint16),
        density=np.array([searched, 5.0, 1000.0]),
    )
    labels = [name for name in populations for _ in range(people)] or ["NA"] * people
    samples = pd.DataFrame({"sample": [f"s{j}" for j in range(len(labels))], "population": labels})
    samples["ploidy"] = 2
    samples["relative"] = np.where(np.arange(len(samples)) == 0, "yes", "no")
    samples["heterozygosity"] = rng.uniform(0.2, 0.4, len(samples))
    for name in ("f_roh", *class_names()):
        samples[name] = rng.uniform(0, 0.1, len(samples)) if searched > 0.5 else np.nan
    write_table(folder / "one.tsv", samples)
    columns = ["sample", "population", "chrom", "start", "end", "kb"]
    write_table(folder / "one.runs.tsv", pd.DataFrame(columns=columns))
    measure_population(
        *([folder / "one.npz"], [folder / "one.tsv"], [folder / "one.runs.tsv"]),
        *(SiteLists(folder / "sites.tsv"), folder / "population"),
        analyses=analyses,
        block="100 kb",
        **options,
    )
    if "local" in analyses:
        write_windows(folder / "population", regions, reason)
    if "sweeps" in analyses:
        write_sweeps(folder / "population", populations)
    names = [figure.name for figure in population_figures(analyses)]
    with checked():
        assert draw_population(folder / "population", folder / "figures", names) == names
    return population_section(folder, folder / "figures", analyses)


def page_of(section) -> str:
    """The section as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    text = "{% macro picture(f, level) %}{{ f.title }}: {{ f.sizes }}{% endmacro %}"
    text += (TEMPLATES / "population.html.j2").read_text("utf-8")
    return environment.from_string(text).render(population=section)


def test_tables_and_figures(tmp_path):
    names = ["A", "B", "C", HOSTILE]
    section = measured(tmp_path, names, f4=[names])
    assert len(section["figures"]) == 6 and len(section["populations"]) == 4
    assert len(section["pairs"]) == 6
    fst = [float(row["fst"].split()[0]) for row in section["pairs"]]
    assert fst == sorted(fst, reverse=True) and fst[-1] > 0.02
    words = " ".join(section["words"])
    assert (
        "12 f3 tested" in words
        and "2 regions lie in runs of homozygosity of at least 20 %" in words
    )
    assert "Nucleotide diversity and d_xy are not given" in " ".join(section["notes"])
    text = page_of(section)
    assert "expected among 24 alleles drawn from" in text
    assert all(" ± " in row["private"] for row in section["populations"])
    assert "<b>$" not in text and "&lt;b&gt;" in text and "nan" not in text.lower()
    drawn = (tmp_path / "figures/population_fst.svg").read_text()
    assert "$x_1$" in drawn
    leaves = _leaves((tmp_path / "population/tree.nwk").read_text())
    assert sorted(leaves) == sorted(names)


def test_inbred_populations_are_named(tmp_path):
    section = measured(tmp_path, ["A", "B", "C"])
    assert "F is above zero" not in " ".join(section["words"])
    path = tmp_path / "population/summary.json"
    write_json(path, read_json(path) | {"inbred": ["A", "C"]})
    section = population_section(tmp_path, tmp_path / "figures", ANALYSES)
    assert "F is above zero in A and C, so f2, F_ST (Hudson) and f3" in " ".join(section["words"])


def test_the_search_for_runs_is_said(tmp_path):
    section = measured(tmp_path, ["A", "B"], searched=0.93)
    assert "sought in" not in " ".join(section["words"])  # population.roh.min_sites was given
    path = tmp_path / "population/summary.json"
    write_json(path, read_json(path) | {"runs_min_sites": [52, 61]})
    words = " ".join(population_section(tmp_path, tmp_path / "figures", ANALYSES)["words"])
    assert "sought in 93 % of the genome, have at least 52 to 61 sites, by" in words


def test_sites_that_are_too_sparse_for_runs_are_said(tmp_path):
    section = measured(tmp_path, ["A", "B"], searched=0.2)
    (note,) = [
        note for note in section["notes"] if "too sparse, or their stretches too short" in note
    ]
    assert "in only 20 % of the genome, so F_ROH is not given" in note
    assert {row["f_roh"] for row in section["populations"]} == {"NA"}
    assert "F_ROH" not in (tmp_path / "figures/population_diversity.svg").read_text()
    (note,) = [n for n in measured(tmp_path, ["A", "B"], searched=0.8)["notes"] if "80 %" in n]
    assert "so it can be too low" in note


def test_a_mask_gives_pi_and_d_xy(tmp_path):
    mask = tmp_path / "m.bed"
    mask.write_text("1\t0\t1000000\n")
    section = measured(tmp_path, ["A", "B"], mask=str(mask))
    assert section["pi"] and "Nucleotide diversity" in page_of(section)
    assert float(section["populations"][0]["pi"]) > 0 and float(section["pairs"][0]["d_xy"]) > 0
    assert not any("d_xy" in note for note in section["notes"])


@pytest.mark.parametrize("populations", [[], ["A"], ["A", "B"]])
def test_few_populations(tmp_path, populations):
    section = measured(tmp_path, populations)
    assert len(section["populations"]) == len(populations)
    text = page_of(section)
    assert "nan" not in text.lower()
    if not populations:
        assert "nothing was estimated" in text
        assert [figure.name for figure in section["figures"]] == ["population_local"]
        assert "12 samples have no population" in text


def test_only_what_was_asked_for(tmp_path):
    section = measured(tmp_path, ["A", "B", "C"], ["differentiation"])
    assert [f.name for f in section["figures"]] == [
        *("population_diversity", "population_spectrum"),
        *("population_fst", "population_tracks"),
    ]
    assert not section["runs"] and "f3" not in page_of(section)
    assert not (tmp_path / "population/f3.tsv").exists()
    assert population_section(tmp_path, tmp_path / "figures", []) is None
    assert population_section(tmp_path / "none", tmp_path, ANALYSES) is None
    assert population_figures([]) == []


def test_local_structure_in_words(tmp_path):
    """What was found with its caution, that nothing was found, or why nothing is said."""
    one = measured(tmp_path, ["A", "B"])
    assert "1 region (1:1-4900) orders samples differently" in " ".join(one["words"])
    assert any("may be an inversion." in note for note in one["notes"])
    many = measured(tmp_path, ["A", "B"], regions=5)
    assert "5 regions (among them 1:1-4900, 1:5001-9900" in " ".join(many["words"])
    text = page_of(many)
    assert "<b>$" not in text
    none = measured(tmp_path, ["A", "B"], regions=0)
    assert "no region differs" in " ".join(none["words"])
    assert not any("inversion" in note for note in none["notes"])
    few = measured(tmp_path, ["A", "B"], reason="8 windows are too few")
    assert "is not tested: 8 windows are too few." in " ".join(few["notes"])
    assert "population_local" not in [figure.name for figure in few["figures"]]
    assert (tmp_path / "figures/population_local.svg").exists()


def test_haplotypes_in_words(tmp_path):
    """The sentence and the table say what the windows do; which population is left out, and why."""
    analyses, names = ["diversity", "sweeps"], ["A", HOSTILE]
    section = measured(tmp_path, names, analyses)
    folder = tmp_path / "population"
    windows = pd.read_csv(folder / "sweep_windows.tsv", sep="\t")
    words, notes = " ".join(section["words"]), " ".join(section["notes"])
    assert "The phased haplotypes of 48 founders of 2 populations are scored by iHS, nSL" in words
    assert "XP-EHH and Garud's H at 1\u202f200 sites." in words and "no evidence of" in notes
    for row, (name, own) in zip(
        section["sweeps"], windows.groupby("population", sort=False), strict=True
    ):
        times = np.sort(own.h12)[-1] / np.mean(np.sort(own.h12)[9:11])
        best, extreme = own.iloc[own.h12.argmax()], own.iloc[12]
        assert row == {
            "population": name,
            "founders": "24",
            "h12": f"{best.h12:.2f}",
            "h12_window": f"1:{best.start}-{best.end}",
            "excess": f"{times:.1f}",
            "extreme_ihs": "40.0 %",
            "extreme_ihs_window": f"{HOSTILE}:{extreme.start}-{extreme.end}",
        }
    said = f"H12 is most uneven in {HOSTILE}: its highest value is {times:.1f} times the median"
    assert f"{said} of the population's 20 windows" in words and times > DRIFT_TIMES
    assert "so look at this window first." in words
    text = page_of(section)
    assert "<b>$" not in text and f'<td class="n">{times:.1f}</td>' in text
    figure = section["figures"][-1]
    assert figure.name == "population_sweeps"
    assert figure.sizes == "48 founders, 1\u202f200 sites, 40 windows."
    drawn = (tmp_path / "figures/population_sweeps.svg").read_text()
    assert "share with |iHS| &gt; 2" in drawn
    write_sweeps(folder, names, too_small={"C": 3, "D": 4}, compared=False)
    windows["h12"] = windows.h12.clip(upper=0.1)
    write_table(folder / "sweep_windows.tsv", windows)
    section = population_section(tmp_path, tmp_path / "figures", analyses)
    notes = " ".join(section["notes"])
    assert "so no window stands out by H12." in " ".join(section["words"])
    assert "Haplotypes of D and C are not scored: a population needs 5 unrelated founders" in notes
    assert "too many populations" in notes and "XP-EHH" not in " ".join(section["words"])
    write_sweeps(folder, [], reason="no site has a score")
    section = population_section(tmp_path, tmp_path / "figures", analyses)
    assert "There are no haplotype statistics: no site has a score." in section["notes"]
    assert section["sweeps"] == [] and "population_sweeps" not in page_of(section)
    assert "population_sweeps" not in [figure.name for figure in section["figures"]]


FITTED = {"people": 60, "sites": 900, "range": [1, 4], "folds": 5, "seed": 1, "k": 2, "same": 1}
FITTED["runs"] = [{"seed": k, "converged": True, "similarity": 1.0 - k / 9} for k in range(2)]


def test_ancestry_in_words():
    words, notes = ancestry_components(FITTED)
    assert "2 ancestry components (cross-validation of 1 to 4) are fitted to 60" in words[0]
    assert "1 of 2 starts give the same ones" in words[0] and "depend on the seed" in notes[0]
    assert "components are not ancestries or peoples" in notes[-1]
    words, notes = ancestry_components(FITTED | {"k": 4, "same": 2})
    assert "The largest K of the range, 4," in notes[0]
    assert "depend on the seed" not in " ".join(notes)
    words, notes = ancestry_components(FITTED | {"k": 1, "runs": []})
    assert "One component describes 60 unrelated founders" in words[0] and not notes
    words, notes = ancestry_components(FITTED | {"k": 0, "reason": "fastmixture is not installed"})
    assert not words and notes == [
        "There are no ancestry proportions: fastmixture is not installed."
    ]


@pytest.mark.parametrize("k", [0, 1, 3])
def test_bars_of_ancestry(tmp_path, k):
    """Bars are sorted within populations; samples without genotypes are left out."""
    rng = np.random.default_rng(1)
    folder, n = tmp_path / "population", 30
    (tmp_path / "embedding/coordinates").mkdir(parents=True)
    folder.mkdir()
    q = rng.dirichlet([0.5] * max(k, 1), n)
    table = pd.DataFrame({"sample": [f"s{i}" for i in range(n)], "cohort": "a"})
    table["population"], table["estimate"] = rng.permutation([HOSTILE, "b", "NA"] * 10), "fitted"
    for j in range(k):
        table[f"K{j + 1}"] = q[:, j]
    table.loc[3, "estimate"] = "NA"
    write_table(folder / "ancestry.tsv", table)
    error = pd.DataFrame({"k": [1, 2, 3], "error": [0.6, 0.5, 0.4], "standard_deviation": 0.01})
    write_table(folder / "ancestry_validation.tsv", error.assign(chosen=["no", "no", "yes"]))
    over_k = _over_k(table["sample"], q, rng) if k == 3 else pd.DataFrame(columns=["sample", "k"])
    write_table(folder / "ancestry_over_k.tsv", over_k)
    pca = pd.DataFrame({"sample": table["sample"], "PC1": rng.normal(size=n)})
    write_table(tmp_path / "embedding/coordinates/pca.tsv", pca)
    reason = {} if k else {"reason": "fastmixture is not installed"}
    write_json(folder / "ancestry.json", FITTED | {"k": k} | reason)
    with checked():
        draw_population(folder, tmp_path / "figures", ["population_ancestry"])
    assert (tmp_path / "figures/population_ancestry.svg").stat().st_size > 700
    names = table.population.to_numpy()
    order = order_of_bars(names, q)
    assert sorted(order) == list(range(n)) and names[order].tolist() == sorted(names)
    if k == 3:
        _check_bars_over_k(folder, table, over_k)


def _over_k(names: pd.Series, q: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """K = 2 without the second component of K = 3, and K = 4 with a further one."""
    wide = {
        2: np.column_stack([q[:, 0] + q[:, 1], q[:, 2]]),
        3: q,
        4: rng.dirichlet([1] * 4, len(q)),
    }
    parts = []
    for k, own in wide.items():
        columns = [1, 3] if k == 2 else range(1, k + 1)
        part = pd.DataFrame(own, columns=[f"K{j}" for j in columns])
        parts.append(part.assign(sample=names, k=k))
    return pd.concat(parts)[["sample", "k", "K1", "K2", "K3", "K4"]]


def _check_bars_over_k(folder, table: pd.DataFrame, over_k: pd.DataFrame) -> None:
    """Each row of pixels has the colours of its sample's components, in their proportions."""
    with styled():
        axes = draw_ancestry(folder).axes[2]
        ticks = [label.get_text() for label in axes.get_xticklabels()]
    assert ticks == ["2", "3", "4"]
    image = axes.images[0].get_array()
    shown = table[table.estimate == "fitted"].reset_index(drop=True)
    order = order_of_bars(shown.population.to_numpy(), shown[["K1", "K2", "K3"]].to_numpy())
    assert image.shape == (29, 3 * 100 + 2 * GAP, 3)
    for i, k in enumerate((2, 3, 4)):
        bars = image[:, (100 + GAP) * i :][:, :100]
        own = over_k[over_k.k == k].set_index("sample").loc[shown["sample"].iloc[order]]
        for j in range(4):
            alike = (bars == np.array(mpl.colors.to_rgb(PALETTE[j]))).all(axis=2).mean(axis=1)
            np.testing.assert_allclose(alike, own[f"K{j + 1}"].fillna(0), atol=0.011)


def test_trees_are_read_back():
    leaves, inner = _nodes("(('a''b':1,c:-2e-05)97:0.5,d:2,e:3);")
    assert leaves == [("a'b", 1, 1.0), ("c", 1, -2e-05), ("d", 0, 2.0), ("e", 0, 3.0)]
    assert inner == [(-1, 0.0, ""), (0, 0.5, "97")]


def test_admixed_populations_are_left_out_of_the_drawn_tree():
    tree = _nodes("((m:-1,(b:1,c:2)90:3)100:4,d:5,e:6);")
    leaves, inner = _prune(*tree, {"m"})
    assert leaves == [("b", 2, 1.0), ("c", 2, 2.0), ("d", 0, 5.0), ("e", 0, 6.0)]
    assert inner == [(-1, 0.0, ""), (GONE, 0.0, ""), (0, 7.0, "100")]
    leaves, inner = _prune(*tree, {"b", "m"})
    assert leaves == [("c", 0, 9.0), ("d", 0, 5.0), ("e", 0, 6.0)]
    assert [node[0] for node in inner] == [-1, GONE, GONE]
    assert _prune(*tree, set()) == tree
    # A root at which two branches are left lies within one: of one support, or of none if a leaf's.
    tree = _nodes("((a:1,b:2)90:3,(c:1,d:1)80:2,m:4);")
    assert _prune(*tree, {"m"})[1] == [(-1, 0.0, ""), (0, 3.0, "90"), (0, 2.0, "")]
    tree = _nodes("((a:1,b:2)90:3,m:4,e:6);")
    assert _prune(*tree, {"m"})[1] == [(-1, 0.0, ""), (0, 3.0, "")]
    assert _prune(*_nodes("((a:1,b:2,c:3)90:3,m:4,n:6);"), {"m", "n"})[1] == [
        *((GONE, 0.0, ""), (-1, 0.0, ""))
    ]


def test_the_figure_names_leaves_and_who_is_left_out(tmp_path):
    measured(tmp_path, ["A", "B", "C", "D"])
    path = tmp_path / "population/summary.json"

    def words() -> list[str]:
        with styled():
            left, *_ = draw_differentiation(tmp_path / "population").axes
        return [text.get_text() for text in left.texts]

    assert {"A", "B", "C", "D"} <= set(words())
    write_json(path, read_json(path) | {"admixed": ["C"]})
    assert {"A", "B", "D", "C: admixed, not in the tree"} <= set(words()) and "C" not in words()
    write_json(path, read_json(path) | {"admixed": ["C", "D"]})
    assert words() == []  # two leaves are no tree
