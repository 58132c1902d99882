"""Geography run by Snakemake: only with coordinates, and in step with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.running import finished, planned, snakemake
from support.study import FAST, make_cohorts, write_study

from popdesic.core.files import read_json
from popdesic.core.tables import read_table

RULES = {"measure_geography"}


def add_coordinates(folder: Path, columns: tuple[str, str], n_places: int) -> None:
    """Give the samples of the sheet `n_places` places in turn; every eleventh has none."""
    path = folder / "config/samples.tsv"
    header, *rows = path.read_text().splitlines()
    lines = ["\t".join([header, *columns])]
    for k, row in enumerate(rows):
        place = ["NA", "NA"] if k % 11 == 10 else [str(10 + k % n_places), str(-170 + k % 2)]
        lines.append("\t".join([row, *place]))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    folder = write_study(tmp_path_factory.mktemp("places"), make_cohorts((18, 14, 12)))
    add_coordinates(folder, ("latitude", "longitude"), 6)
    return folder


def test_places_are_measured_and_drawn(study):
    ran = finished(snakemake(study, "geography"))
    assert set(ran) >= RULES and ran["measure_row"] == 3
    about = read_json(study / "results/geography/isolation.json")
    assert (about["places"], about["samples"], about["samples_without_place"]) == (6, 40, 4)
    assert about["relatives_known"]
    assert about["all"]["places"] == 6 and about["all"]["p"] is None  # described, not tested
    assert read_table(study / "results/geography/places.tsv").samples.astype(int).sum() == 40
    for name in ("geography_map", "isolation", "barriers"):
        assert (study / f"results/figures/{name}.svg").stat().st_size > 2000
    # The whole study draws them too, and its page waits for them.
    assert RULES & set(planned(snakemake(study, "-n"))) == set()
    path = study / "config/samples.tsv"
    header, *rows = path.read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in [f"{header}\tage", *(f"{r}\t7" for r in rows)]))
    assert RULES & set(planned(snakemake(study, "geography", "-n"))) == set()
    path.write_text(path.read_text().replace("\t13\t-169", "\t13.5\t-169", 1))
    assert set(planned(snakemake(study, "write_report", "-n"))) >= RULES


@pytest.mark.parametrize("n_places", [0, 1])
def test_no_job_without_three_places(tmp_path, n_places):
    folder = write_study(tmp_path, make_cohorts((6, 6)), FAST)
    if n_places:
        add_coordinates(folder, ("x", "y"), n_places)
    plan = planned(snakemake(folder, "-n"))
    assert plan and not RULES & set(plan)
