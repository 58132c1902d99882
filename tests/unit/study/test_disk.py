"""The forecast of disk space: what a study writes, and studies that do not fit."""

from __future__ import annotations

import shutil
from collections import namedtuple
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.running import snakemake
from support.study import make_cohorts, write_raw, write_study

from popdesic.__main__ import main
from popdesic.cohort import spread_records
from popdesic.cohort.ingest import ingest_cohort
from popdesic.core.errors import UserError
from popdesic.core.tables import open_text, write_rows
from popdesic.io import listed_rows
from popdesic.study import disk
from popdesic.study.batches import hold_batches
from popdesic.study.configuration import fill_config, read_config
from popdesic.study.content import look_into_files
from popdesic.study.disk import (
    StudySizes,
    cohort_set,
    forecast_disk,
    held_bytes,
    require_disk_space,
    study_sizes,
)
from popdesic.study.validation import validate_study

Usage = namedtuple("Usage", "total used free")
#: Stages up to the geodesics.
STAGES = {"cohorts", "panel", "qc", "distance", "geodesic"}
FOUR = dict.fromkeys("abcd", 7500)


@pytest.mark.parametrize(
    ("n_samples", "n_sites", "plink"),
    [
        ((120, 100), 1500, False),
        ((260, 180, 60), 4000, False),
        ((520, 480), 9000, True),  # large tiles, and files whose rows are named
    ],
)
def test_a_run_writes_what_was_forecast(tmp_path, n_samples, n_sites, plink):
    cohorts = make_cohorts(n_samples, n_sites=n_sites, missing=0.01)
    options = {"geodesic": {"space": ["genotypes"]}, "compare": {"analyses": ["kinship"]}}
    folder = write_study(tmp_path / "study", cohorts, options)
    for cohort in cohorts if plink else ():
        write_raw(folder / "data" / cohort.name, cohort)
        sheet = folder / "config/cohorts.tsv"
        sheet.write_text(sheet.read_text().replace(cohort.path, f"data/{cohort.name}.bed"))
    config, study, _ = validate_study(read_config(folder), folder)
    sites = dict.fromkeys(study.order, n_sites)
    genotypes = StudySizes(study.counts, sites, n_sites, named=study_sizes(folder, study).named)
    assert list(genotypes.named) == (study.order if plink else [])
    forecast = forecast_disk(config, genotypes, sparse=False)
    snakemake(folder, "geodesic", "distance")
    held = held_bytes(folder, study.order)
    found, expected = (sum(of[stage] for stage in STAGES) for of in (held, forecast))
    print(f"{sum(n_samples)} samples x {n_sites} sites: {found} bytes, forecast {expected:.0f}")
    assert expected == pytest.approx(found, rel=0.2)
    counted = study_sizes(folder, study)
    assert counted.named == genotypes.named
    assert counted.known and set(counted.sites.values()) == {n_sites}
    assert (counted.n_sites, counted.source) == (
        len((folder / "results/panel/sites.tsv").read_text().splitlines()) - 2,
        "of the panel",
    )


def test_a_large_study():
    """30 000 x 500 000: genotypes 2 x 0.25 and 0.375 bytes, counts 3, closures 4 or 8 a pair."""
    found = forecast_disk(
        fill_config({}), StudySizes(FOUR, dict.fromkeys(FOUR, 500_000), 500_000), sparse=False
    )
    assert found["cohorts"] == pytest.approx(0.875 * 30_000 * 500_000, rel=0.02)
    assert found["distance"] == pytest.approx(0.9e9 / 2 * (3 + 3), rel=0.02)
    assert found["geodesic"] == pytest.approx(0.9e9 / 2 * (4 + 4 + 8 + 8), rel=0.02)
    sizes = StudySizes(FOUR, dict.fromkeys(FOUR, 500_000), 500_000)
    known = forecast_disk(fill_config({}), replace(sizes, named=FOUR), sparse=False)
    assert known["cohorts"] == pytest.approx(0.625 * 30_000 * 500_000, rel=0.02)
    assert sum(known.values()) < 25e9
    lists = forecast_disk(fill_config({}), replace(sizes, listed={"a": 9}), sparse=False)
    rows = FOUR["a"] / 4 * 500_000
    full = forecast_disk(fill_config({}), sizes, sparse=False)["cohorts"]
    assert full - lists["cohorts"] == pytest.approx(rows - 9)
    listed = {"alpha": 2, "graph": "complete"}
    for alpha, graph, further in ((1, "complete", 0), (2, "complete", 0), (1, "knn", 8)):
        choice = {"genotypes": listed, "pcs": {"alpha": alpha, "graph": graph}}
        known = forecast_disk(fill_config({}), replace(sizes, choice=choice), sparse=False)
        assert known["geodesic"] == pytest.approx(0.9e9 / 2 * (4 + 8 + further), rel=0.02)
    only = fill_config({"geodesic": {"space": ["pcs"], "alpha": [2]}})
    one = forecast_disk(only, StudySizes(FOUR, FOUR, 500_000), sparse=False)
    assert one["geodesic"] == pytest.approx(0.9e9 / 2 * 8, rel=0.02)


def test_scores_of_haplotypes_have_their_share(tmp_path):
    """Sizes of the rows that five populations and ten pairs have at each site."""
    rng = np.random.default_rng(1)
    asked = {"impute": {"method": "copying"}, "population": {"analyses": ["diversity", "sweeps"]}}
    without = fill_config(asked | {"population": {"analyses": ["diversity"]}})
    sizes = StudySizes(FOUR, FOUR, 20_000)
    more, less = (
        forecast_disk(config, sizes, sparse=False)["population"]
        for config in (fill_config(asked), without)
    )
    place = {"chrom": 1, "pos": np.sort(rng.integers(1, 10**8, 20_000)), "ref": "A", "alt": "C"}
    scores = {name: rng.normal(size=20_000) for name in ("ihs", "nsl")}
    scores = {"frequency": rng.integers(1, 200, 20_000) / 200} | scores
    pairs = {f"{a}/{b}": rng.normal(size=20_000) for a in "ABCDE" for b in "ABCDE" if a < b}
    written = 0
    for tables, columns in ((5, {"population": "A"} | place | scores), (1, place | pairs)):
        path = tmp_path / "t.tsv.gz"
        with open_text(path) as file:
            write_rows(file, pd.DataFrame(columns), header=True)
        written += tables * path.stat().st_size
    assert more - less == pytest.approx(written, rel=0.3)


def test_a_study_that_does_not_fit_is_refused(tmp_path, monkeypatch, capsys):
    folder = write_study(tmp_path / "study", make_cohorts((8, 7), n_sites=200))
    assert main(["check", str(folder)]) == 0
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 10**9 - 1000, 1000))
    capsys.readouterr()
    assert main(["check", str(folder)]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "GB more" in said and "distance.dense_limit" in said
    config, study, _ = validate_study(read_config(folder), folder)
    genotypes = study_sizes(folder, study)
    assert not genotypes.known
    require_disk_space(folder, config, genotypes, sparse=False, stages={"panel", "qc"})  # guessed
    with pytest.raises(UserError, match=r"results needs 7.\d+e-06 GB more \(distance"):
        require_disk_space(folder, config, genotypes, sparse=False, stages={"distance"})
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 0))  # does not tell
    assert main(["check", str(folder)]) == 0


def test_lists_of_carriers_count_as_they_are(tmp_path, monkeypatch):
    (cohort,) = make_cohorts((40,), n_sites=300)
    cohort.genotypes[:, 1:] = 0
    folder = write_study(tmp_path, [cohort])
    monkeypatch.setattr(listed_rows, "LEAST_LISTED", 1)
    raw = folder / "results/cohorts/north/raw"
    ingest_cohort(folder / cohort.path, raw)
    _, study, _ = validate_study(read_config(folder), folder)
    genotypes = study_sizes(folder, study)
    size = raw.with_suffix(".bed").stat().st_size
    assert genotypes.listed == {"north": size} and size < 300 * 10
    assert (genotypes.sites, genotypes.known, genotypes.named) == ({"north": 300}, True, [])


def test_lists_of_carriers_are_foreseen(tmp_path, monkeypatch):
    """Exact numbers of sites count as rows until there is no room: then files are looked at."""
    rng, cohorts = np.random.default_rng(1), make_cohorts((200, 100), n_sites=3000, missing=0)
    for cohort in cohorts:
        cohort.genotypes[:] = 0
        carriers = rng.integers(0, cohort.genotypes.shape[1], 3000)
        cohort.genotypes[np.arange(3000), carriers] = 1
        cohort.genotypes[::3] = rng.binomial(2, 0.4, cohort.genotypes[::3].shape)
    folder = write_study(tmp_path, cohorts)
    write_raw(folder / "data/north", cohorts[0])
    sheet = folder / "config/cohorts.tsv"
    sheet.write_text(sheet.read_text().replace("data/north.vcf", "data/north.bed"))
    monkeypatch.setattr(spread_records, "LEAST_LISTED", 1)
    monkeypatch.setattr(spread_records, "LEAST_GAIN", 1.5)
    config, study, _ = validate_study(read_config(folder), folder)
    sizes = study_sizes(folder, study)
    assert sizes.guessed and sizes.listed == {}
    found = look_into_files(folder, config, study, sizes)
    assert found.listed.keys() == {"north", "south"} and found.known == sizes.known
    # A third of the rows, and 5 bytes of each other site.
    assert found.listed["north"] == pytest.approx(1000 * 51 + 2000 * 5, rel=0.15)
    assert found.sites["north"] == 3000
    assert found.sites["south"] == pytest.approx(3000, rel=0.15)
    assert found.n_sites == pytest.approx(1000, rel=0.2) and "of the files" in found.source
    full, less = (forecast_disk(config, of, sparse=False)["cohorts"] for of in (sizes, found))
    assert less < full - 100_000
    known = replace(sizes, known=True)
    room = sum(forecast_disk(config, known, sparse=False).values()) - 50_000
    monkeypatch.setattr(disk, "free_bytes", lambda folder: room)
    with pytest.raises(UserError, match="GB more"):
        require_disk_space(folder, config, known, sparse=False)
    require_disk_space(
        *(folder, config, known),
        sparse=False,
        look=lambda sizes: look_into_files(folder, config, study, sizes),
    )


def test_a_batch_of_one_cohort_is_looked_at_by_the_names_of_its_samples(tmp_path):
    """A cohort that did not fit into the batches before has one of its own."""
    folder = write_study(tmp_path, make_cohorts((9, 8), n_sites=60))
    hold_batches(folder, {"batch001": ["south"]})
    config, study, _ = validate_study(read_config(folder), folder)
    assert study.units == {"batch001": ["south"], "north": ["north"]}
    found = look_into_files(folder, config, study, study_sizes(folder, study))
    assert found.sites == pytest.approx({"batch001": 60, "north": 60}, rel=0.15)


def test_results_that_are_there_need_no_room(tmp_path, monkeypatch):
    folder, config = tmp_path, fill_config({})
    genotypes = StudySizes({"a": 100}, {"a": 10}, 10)
    need = forecast_disk(config, genotypes, sparse=False)["geodesic"]
    closures = folder / "results/geodesic/pcs/closure"
    closures.mkdir(parents=True)
    monkeypatch.setattr(disk, "free_bytes", lambda folder: need / 2)

    def require():
        require_disk_space(folder, config, genotypes, sparse=False, stages={"geodesic"})

    (closures / "alpha2.0123456789ab.npy").write_bytes(bytes(int(need)))  # of other cohorts
    with pytest.raises(UserError, match="geodesic"):
        require()
    (closures / f"alpha2.{cohort_set(['a'])}.npy").write_bytes(bytes(int(0.6 * need)))
    require()
