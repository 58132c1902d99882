"""Sets of sites in a study: a planted pair is found, and the table equals the API's."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.browser import find_chromium
from support.outcomes import EMPTY, FIGURES, make_results
from support.reader import Question, contents, count_clicks, tab
from support.running import finished, snakemake
from support.study import FAST, Cohort, make_sites, write_sheets, write_study

import popdesic
from popdesic.core.errors import UserError
from popdesic.epistasis.null_model import NullModel, read_null_model
from popdesic.epistasis.relatedness import Relatives, no_relatives
from popdesic.epistasis.reorder import genotypes_of_planes, read_reordered
from popdesic.epistasis.set_cohorts import join_statistics
from popdesic.epistasis.set_rows import threads_of_set
from popdesic.epistasis.study_sets import scan_study_sets, unrelated
from popdesic.report.page import write_report
from popdesic.report.sections.sets import p_text
from popdesic.study.configuration import fill_config, read_config
from popdesic.study.content import look_into_files
from popdesic.study.disk import forecast_disk, study_sizes
from popdesic.study.validation import validate_study

N_SITES, N = 24, 600
SITES = make_sites(N_SITES)
SETS = {"first": [0, 1, 2, 3, 4, 5], "null": [6, 7, 8, 9], "far": [14, 15, 16], "alone": [20]}
#: Too many sites for main effects of each cohort.
SETS["many"] = list(range(7, 22))
GIVEN = {"file": "genes.bed", "environments": ["dose"]}


def cohorts() -> tuple[list[Cohort], np.ndarray]:
    """Two cohorts, and a number with products of the sites 1 and 4, and of 15 with the dose."""
    rng = np.random.default_rng(4)
    genotypes = rng.binomial(2, rng.uniform(0.2, 0.5, N_SITES)[:, None], (N_SITES, N)).astype(
        np.int8
    )
    number = 1.2 * genotypes[1] * genotypes[4] + 0.4 * genotypes[7] + rng.normal(0, 1, N)
    number += 0.5 * genotypes[15] * doses(N)
    genotypes[rng.random(genotypes.shape) < 0.003] = -1
    found = []
    for name, members in (("north", range(350)), ("south", range(350, N))):
        names = [f"{name[0].upper()}{k:03d}" for k in members]
        drawn, labels = genotypes[:, list(members)], ["P"] * len(names)
        found.append(Cohort(name, names, SITES, drawn, populations=labels))
    return found, number


def doses(n: int) -> np.ndarray:
    return np.random.default_rng(6).normal(size=n).round(3)


def bed() -> str:
    return "".join(
        f"chr{SITES[k][0]}\t{SITES[k][1] - 1}\t{SITES[k][1]}\t{name}\n"
        for name, sites in SETS.items()
        for k in sites
    )


def write(folder: Path, given: str, text: str, further=(), numbers=()) -> None:
    drawn, number = cohorts()
    number = np.append(number, numbers)
    block = {"sets": GIVEN | {"file": given}, "covariates": ["dose"]}
    write_sheets(folder, [*drawn, *further], FAST | {"epistasis": block})
    sheet = pd.read_csv(folder / "config/samples.tsv", sep="\t", dtype=str)
    sheet["phenotype"], sheet["dose"] = number.round(5), doses(len(sheet))
    sheet.to_csv(folder / "config/samples.tsv", sep="\t", index=False)
    (folder / given).write_text(text)


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> tuple[Path, str]:
    folder = write_study(tmp_path_factory.mktemp("sets"), cohorts()[0])
    write(folder, "genes.bed", bed())
    return folder, snakemake(folder, "epistasis")


def table_of(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, sep="\t", na_values="NA", keep_default_na=False)


def test_the_table_equals_the_tests_of_the_api(study):
    folder, output = study
    ran = finished(output)
    assert ran["scan_sets"] == 1 and not ran["scan_epistasis"] and not ran["rank_epistasis"]
    table = table_of(folder / "results/epistasis/sets.tsv")
    assert table.set.tolist() == list(SETS) and table.listed.tolist() == [6, 4, 3, 1, 15]
    given, sets, null, genotypes = scored(folder)
    columns = ["sites", "products", "p", "p_quadratic", "p_pair", "p_burden"]
    for k, name in enumerate(SETS):
        joined = join_statistics([given[cohort].sets[name] for cohort in sorted(given)])
        found = {"sites": joined.n_sites, "products": len(joined.scores)} | joined.tests()
        if name == "many":  # of all people together, with one main effect of each site
            one = popdesic.scan_sets(genotypes, null.response, {name: sets[name]}, null.design)
            found = one.iloc[0].to_dict()
        expected = [found[column] for column in columns]
        np.testing.assert_allclose(table.loc[k, columns].to_numpy(float), expected, rtol=1e-5)
    places = [":".join(map(str, (*SITES[k][:2], *SITES[k][3:]))) for k in (1, 4)]
    assert table.loc[0, ["site1", "site2"]].tolist() == places
    assert table.p_adjusted[0] < 1e-6 < 0.05 < table.p_adjusted[1]
    assert table.p_adjusted[0] == pytest.approx(4 * table.p[0]) and np.isnan(table.p[3])
    assert table.loc[0, ["chrom", "start", "end"]].tolist() == ["chr1", 1000, 1500]
    assert table.chrom2.isna().all() and (table.n == N).all()
    assert table.p[0] <= table.p_conditional[0] < 1e-6  # of the leading set alone
    assert (
        table[["p_conditional", "given", "p_untyped"]].notna().sum(axis=1).tolist()[1:] == [0] * 4
    )
    assert table.given[0] >= 0 and not table.p_untyped[0] > 0.05


def scored(folder: Path) -> tuple[dict, dict, NullModel, np.ndarray]:
    """Scores of both cohorts by the API; sets, null model and genotypes of all people."""
    words, sites, samples = read_reordered(folder / "results/reorder")
    genotypes = genotypes_of_planes(words[:], sites, len(samples), 0).T
    null = read_null_model(folder / "results/epistasis/null_model.npz")
    row = {rank: k for k, rank in enumerate(sites["rank"])}
    sets = {name: [row[k] for k in chosen] for name, chosen in SETS.items()}
    given, dose = {}, dose_of(folder, samples)
    for name in ("north", "south"):
        own = (samples.cohort == name).to_numpy()
        number = samples.phenotype[own].astype(float)
        given[name] = popdesic.score_sets(
            genotypes[own], number, sets, dose[own, None], transform="normal"
        )
    return given, sets, null, genotypes


def dose_of(folder: Path, samples: pd.DataFrame) -> np.ndarray:
    sheet = pd.read_csv(folder / "config/samples.tsv", sep="\t").set_index("sample")
    return sheet.loc[samples["sample"], "dose"].to_numpy(float)


def test_sets_with_an_environment_equal_the_tests_of_the_api(study):
    folder = study[0]
    table = table_of(folder / "results/epistasis/sets_environment.tsv")
    _, sets, null, genotypes = scored(folder)
    _, _, samples = read_reordered(folder / "results/reorder")
    found = popdesic.scan_sets(
        genotypes, null.response, sets, null.design, environment=dose_of(folder, samples)
    )
    assert table.set.tolist() == list(SETS) and set(table.environment) == {"dose"}
    for name in ("sites", "p", "p_quadratic", "p_pair", "p_burden"):
        np.testing.assert_allclose(table[name], found[name], rtol=1e-5)
    assert table.site[2] == ":".join(map(str, (*SITES[15][:2], *SITES[15][3:])))
    assert table.p_adjusted[2] < 1e-6 and table.p_adjusted[2] == pytest.approx(5 * table.p[2])
    assert table.p_adjusted[[0, 1]].min() > 0.05 and (table.n == N).all()


def test_cohorts_replicate_as_by_the_api(study):
    folder = study[0]
    expected, by_cohort = popdesic.replicate_sets(scored(folder)[0], ["north"])  # the largest
    table = table_of(folder / "results/epistasis/sets_replication.tsv")
    for name in ("p_discovery", "effect", "se", "p_replication", "p_all", "p_without"):
        np.testing.assert_allclose(table[name], expected[name], rtol=1e-5)
    assert table.p_discovery[0] < 1e-4 and table.p_replication[0] < 1e-4
    assert table.p_replication[1:3].min() > 1e-3 and np.isnan(table.p_replication[3])
    effects = table_of(folder / "results/epistasis/sets_by_cohort.tsv")
    np.testing.assert_allclose(effects.effect, by_cohort.effect, rtol=1e-5)
    assert effects.role.tolist() == ["discovery", "replication"] * 5


def test_the_page_says_what_was_found(study, tmp_path, request):
    folder = study[0]
    groups = {name: [f"{name}{k}" for k in range(3)] for name in ("one", "two")}
    outcome, distances = make_results(tmp_path, groups, ["one"])
    figures = outcome.folder / "figures"
    for name in ("reorder", "epistasis", "figures"):
        shutil.copytree(folder / "results" / name, outcome.folder / name)
    for name in FIGURES:
        (figures / f"{name}.svg").write_text(EMPTY)
    out = tmp_path / "report.html"
    config = fill_config({"epistasis": {"sets": GIVEN, "covariates": ["dose"]}})
    write_report(outcome, distances, figures, config, out)
    said = " ".join(out.read_text("utf-8").split())
    assert "4 of 5 sets were tested in 600 samples. 1 has a significant interaction" in said
    assert "p_untyped says how often" in said
    assert "Sites of the set first interact (p = " in said and "4 sets of sites tested" in said
    assert "Best sets of the discovery cohorts" in said and 'id="fig-sets_forest"' in said
    assert said.count('id="fig-sets_manhattan"') == said.count('id="fig-sets_qq"') == 1
    assert "All products of two sites of a set" in (tmp_path / "methods.md").read_text("utf-8")
    assert "scanned for" not in (tmp_path / "methods.md").read_text("utf-8")
    assert "Sets: effects by cohort" in said
    assert "Sites of the set far interact with dose (p = " in said
    assert "Best sets with an environment (5 of 5 tests)" in said
    assert "Products of each site with dose were tested" in (tmp_path / "methods.md").read_text()
    if find_chromium() is not None:
        opened = request.getfixturevalue("browser")
        table = table_of(folder / "results/epistasis/sets_replication.tsv")
        best = table.loc[table.p_discovery.idxmin()]
        tested = table_of(folder / "results/epistasis/sets.tsv")
        p = p_text(tested.p_adjusted.min())
        first = tested.set[tested.p_adjusted.idxmin()]
        tab_of_sets = (contents("epistasis"), tab("epistasis-sets"))
        asked = [
            Question("Which set interacts?", rf"Sites of the set {first} interact \(p = {p}"),
            Question(
                "Do other cohorts confirm it?",
                rf"{best.set}\s.*{p_text(best.p_discovery)}\s.*{p_text(best.p_replication)}",
                "#epistasis tbody tr",
                tab_of_sets,
            ),
        ]
        for question in asked:
            assert count_clicks(opened, out.as_uri(), question) is not None, question.text
    alone = replace(outcome, cohorts=["one"])  # what follows from several is of a former run
    write_report(alone, distances, figures, config, out)
    said = " ".join(out.read_text("utf-8").split())
    assert "4 of 5 sets were tested" in said and 'id="fig-sets_qq"' in said
    config = fill_config({"epistasis": {"sets": "genes.bed"}})
    write_report(alone, distances, figures, config, out)
    assert "with dose" not in out.read_text("utf-8")
    for stale in ("Best sets of the discovery cohorts", "fig-sets_forest", "effects by cohort"):
        assert stale not in said


def test_kept_scores_take_what_was_forecast(study):
    folder, _ = study
    config, sheets, _ = validate_study(read_config(folder), folder)
    sizes = look_into_files(folder, config, sheets, study_sizes(folder, sheets))
    scores = folder / "results/epistasis/set_scores"
    kept = [(scores / f"{c}.np{end}").stat().st_size for c in ("north", "south") for end in "yz"]
    assert 2 * sizes.set_bytes == pytest.approx(sum(kept), rel=0.2)
    without = replace(sizes, set_bytes=0)
    more, less = (forecast_disk(config, of, sparse=False)["epistasis"] for of in (sizes, without))
    assert more - less == pytest.approx(2 * sizes.set_bytes)


def test_scores_before_there_is_a_panel(tmp_path):
    """20 of 1 000 sites, as 40 kb of the 2 Mb that ranges reach, have 190 products."""
    write(tmp_path, "sets.bed", "1\t0\t40000\ta\n1\t0\t2000000\tlarge\n")
    (tmp_path / "data").mkdir()
    for cohort in cohorts()[0]:
        (tmp_path / cohort.path).write_text(cohort.vcf())
    config, sheets, _ = validate_study(read_config(tmp_path), tmp_path)
    sizes = look_into_files(tmp_path, config, sheets, study_sizes(tmp_path, sheets, 1000))
    assert sizes.set_bytes == pytest.approx(4 * 190 * 191 + 32 * 190 + 24 * 20)


def test_a_cohort_that_arrives_is_the_only_one_scored(study, tmp_path):
    """The scores of the others keep their bytes and dates; results are those of a first run."""
    folder = tmp_path / "study"
    shutil.copytree(study[0], folder, symlinks=True)  # with dates
    kept = folder / "results/epistasis/set_scores"
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in kept.glob("*.np[yz]")}
    assert sorted(path.name for path in before) == [
        f"{name}{end}" for name in ("north", "south") for end in (".npy", ".npz")
    ]
    rng = np.random.default_rng(5)
    drawn = rng.binomial(2, 0.4, (N_SITES, 200)).astype(np.int8)
    names = [f"W{k:03d}" for k in range(200)]
    west = Cohort("west", names, SITES, drawn, founder=False, populations=["P"] * 200)
    (folder / west.path).write_text(west.vcf())
    write(folder, "genes.bed", bed(), [west], 1.2 * drawn[1] * drawn[4] + rng.normal(0, 1, 200))
    ran = finished(snakemake(folder, "epistasis"))
    assert ran["scan_sets"] == 1 and not ran["build_panel"]
    assert (kept / "west.npz").exists() and len(list(kept.glob("*.np[yz]"))) == 6
    for path, (date, content) in before.items():
        assert path.read_bytes() == content and path.stat().st_mtime_ns == date, path.name
    log = (folder / "logs/scan_sets.log").read_text()
    assert "scored: west" in log and "cohorts_kept: 2" in log
    table = table_of(folder / "results/epistasis/sets_replication.tsv")
    assert table.p_replication[0] < 1e-6 and table.cohorts.tolist() == [1, 1, 1, 0, 1]
    assert table_of(folder / "results/epistasis/sets.tsv").n[0] == N + 200
    # All scores from scratch, but the tests of the discovery as they were made above.
    assert "tests_of_the_discovery_kept: 0" in log
    for path in kept.iterdir():
        if "discovery.json" not in path.name:
            path.unlink()
    made = {path.name: path.read_bytes() for path in (folder / "results/epistasis").glob("sets*")}
    snakemake(folder, "epistasis")
    for path, (_, content) in before.items():
        assert path.read_bytes() == content
    for name, content in made.items():
        assert (folder / "results/epistasis" / name).read_bytes() == content
    log = (folder / "logs/scan_sets.log").read_text()
    assert "cohorts_kept: 0" in log and "tests_of_the_discovery_kept: 5" in log


def test_relatives_are_left_out_of_the_tests(study, tmp_path):
    """Of a family of three one person is left, and the tests are those of the others."""
    folder, out = study[0], tmp_path / "sets.tsv"
    paths = [folder / "results/reorder", folder / "results/epistasis/null_model.npz"]
    family = Relatives(np.array([0, 0, 5]), np.array([5, 9, 9]), np.full(3, 0.25))
    kept = unrelated(family, np.zeros(N))
    assert np.flatnonzero(~kept).tolist() == [5, 9]
    assert np.flatnonzero(~unrelated(family, np.arange(N))).tolist() == [0, 5]  # controls first
    star = Relatives(np.array([1, 1, 1]), np.array([2, 3, 4]), np.full(3, 0.25))
    assert np.flatnonzero(~unrelated(star, np.zeros(N))).tolist() == [1]
    assert scan_study_sets(*paths, folder / "genes.bed", out, family, 2)["people"] == N - 2
    table = table_of(out)
    scan_study_sets(*paths, folder / "genes.bed", out, no_relatives(), 1)
    alone = table_of(out)
    assert (table.n == N - 2).all() and table.p[0] != alone.p[0]
    written = out.read_bytes()
    scan_study_sets(*paths, folder / "genes.bed", out, no_relatives(), 2)
    assert out.read_bytes() == written


def test_pairs_of_sets_are_ranges_in_one_row(study, tmp_path):
    folder, out = study[0], tmp_path / "sets.tsv"
    given = tmp_path / "pairs.bedpe"
    given.write_text("1 999 1250 chr1 1350 1500 near\n1 999 1100 7 0 9 nothing\n")
    paths = [folder / "results/reorder", folder / "results/epistasis/null_model.npz"]
    scan_study_sets(*paths, given, out, no_relatives(), 1)
    table = table_of(out)
    assert table.products.tolist() == [6, 0] and table.p[0] < 1e-6 and np.isnan(table.p[1])
    assert table.loc[0, ["chrom2", "start2", "end2"]].tolist() == ["chr1", 1351, 1500]


def test_pairs_of_names_equal_pairs_of_ranges(study, tmp_path, caplog):
    folder, given = study[0], tmp_path / "pairs"
    tables = [tmp_path / name for name in ("names.tsv", "ranges.tsv")]
    paths = [folder / "results/reorder", folder / "results/epistasis/null_model.npz"]
    given.write_text("gene1 gene2 score\nfirst null 900\nfar far 1\n")
    further = {"pairs": given}
    scan_study_sets(*paths, folder / "genes.bed", tables[0], no_relatives(), 1, **further)
    assert "2 names are not in" in caplog.text
    rows = [
        [(SITES[k][0], SITES[k][1] - 1, SITES[k][1]) for k in SETS[s]] for s in ("first", "null")
    ]
    ranges = [" ".join(map(str, (*a, *b, "first_x_null"))) for a in rows[0] for b in rows[1]]
    given.write_text("\n".join(ranges))
    scan_study_sets(*paths, given, tables[1], no_relatives(), 1)
    names, pairs = map(table_of, tables)
    assert names.set.tolist() == ["first x null", "far"] and names.products.tolist() == [24, 3]
    assert names.p[0] == pairs.p[0]


def test_environments_are_covariates_of_one_column(study, tmp_path):
    folder = tmp_path / "study"
    shutil.copytree(study[0], folder, symlinks=True, ignore=shutil.ignore_patterns("results"))
    block = {"sets": {"file": "genes.bed", "environments": ["dose"]}}
    with pytest.raises(UserError, match=r"environment 'dose', which is not one of.*covariates"):
        validate_study({"epistasis": block}, folder)
    sheet = pd.read_csv(folder / "config/samples.tsv", sep="\t", dtype=str)
    sheet["dose"] = ["low", "middle", "high"] * (len(sheet) // 3)
    sheet.to_csv(folder / "config/samples.tsv", sep="\t", index=False)
    with pytest.raises(UserError, match=r"'dose', which has 3 categories"):
        validate_study({"epistasis": block | {"covariates": ["dose"]}}, folder)


def test_bad_files_are_refused_before_any_job(study, tmp_path):
    folder = tmp_path / "study"
    shutil.copytree(study[0], folder, symlinks=True, ignore=shutil.ignore_patterns("results"))
    write(folder, "genes.bed", bed() + "1 20 10 x\n")
    with pytest.raises(UserError, match=r"genes.bed \(epistasis.sets\), row 30: the range"):
        validate_study({"epistasis": {"sets": "genes.bed"}}, folder)


def test_large_sets_are_tested_by_fewer_threads_at_a_time():
    small, large = np.arange(20), np.arange(150)
    assert threads_of_set(small, None, 10_000, 8) == 8
    assert threads_of_set(large, None, 10_000, 8) == 1
    assert threads_of_set(large, None, 5_000, 8) == 2
    assert threads_of_set(large, np.arange(150, 160), 10_000, 64) == 28
    assert threads_of_set(np.arange(4_000), None, 100, 8) == 1, "few samples, but many pairs"
