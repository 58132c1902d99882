"""`popdesic crate`: what the RO-Crate says of a run, and what it refuses to describe."""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path

import pytest

from popdesic.__main__ import main
from popdesic.core.errors import UserError
from popdesic.core.files import atomic_path, record_path
from popdesic.study.crate import CRATE, write_crate
from popdesic.study.records import exchange_records
from popdesic.study.snakemake_internals import write_record


def add_result(study: Path, name: str, inputs: list[str], start: float) -> None:
    """A result with its checksum and the record of its job."""
    with atomic_path(study / name) as temporary:
        temporary.write_text(f"content of {name}\n")
    about = {"rule": "build", "input": inputs, "starttime": start, "endtime": start + 60}
    text = json.dumps(about)
    checksum = f"{zlib.crc32(text.encode()):08x}"
    record_path(study / name).write_text(f"{checksum}\n{text}")


@pytest.fixture
def study(tmp_path) -> Path:
    """Two results of files in the study and outside it; a tile has no record of its own."""
    folder = tmp_path / "study"
    for name in ("config", "data", "results/qc", "results/distance/tiles"):
        (folder / name).mkdir(parents=True)
    (folder / "config/config.yaml").write_text("panel: {min_maf: 0.07}\nreport: {title: Whales}\n")
    (folder / "config/cohorts.tsv").write_text("cohort\tgenotypes\n")
    (folder / "data/a b.vcf").write_text("inside\n")
    (tmp_path / "secret folder").mkdir()
    (tmp_path / "secret folder/b.vcf").write_text("outside\n")
    inputs = ["data/a b.vcf", "../secret folder/b.vcf"]
    add_result(folder, "results/qc/summary.tsv", inputs, 1e9)
    add_result(folder, "results/qc/plot.svg", ["results/qc/summary.tsv"], 1e9 + 600)
    with atomic_path(folder / "results/distance/tiles/t.npz") as temporary:
        temporary.write_text("tile")
    return folder


def graph(study: Path) -> dict[str, dict]:
    content = json.loads((study / CRATE).read_text("utf-8"))
    assert content["@context"][0] == "https://w3id.org/ro/crate/1.1/context"
    entities = {entity["@id"]: entity for entity in content["@graph"]}
    assert len(entities) == len(content["@graph"]), "identifiers are unique"
    return entities


def references(value) -> list[str]:
    if isinstance(value, dict):
        return [value["@id"]] if set(value) == {"@id"} else []
    return [name for part in value for name in references(part)] if isinstance(value, list) else []


def test_records_of_rules_that_are_gone_are_not_copied_beside_new_files(study):
    """A rule of an earlier version made raw.bed; now the job writes it beside raw.json."""
    decoded = [f"results/cohorts/a/raw.{end}" for end in ("bed", "json")]
    for name in decoded:
        with atomic_path(study / name) as temporary:
            temporary.write_text("decoded now\n")
        write_record(study, name, json.dumps({"rule": "ingest", "input": ["gone.vcf"]}))
    assert exchange_records(study, {decoded[1]: "ingest"}.get) == []
    assert [record_path(study / name).is_file() for name in decoded] == [False, True]


def test_inputs_parameters_and_results(study):
    said = write_crate(study, "https://example.org/licence", "A. Person")
    assert said.endswith("2 results.") and "4 inputs" in said
    found = graph(study)
    root, run = found["./"], found["#run"]
    assert found[CRATE]["about"] == {"@id": "./"} and root["name"] == "Whales"
    assert references(run["result"]) == ["results/qc/plot.svg", "results/qc/summary.tsv"]
    outside = next(name for name in found if name.startswith("ni:///sha-256;"))
    assert found[outside]["sha256"] == hashlib.sha256(b"outside\n").hexdigest()
    inside = found["data/a%20b.vcf"]
    assert (inside["contentSize"], inside["name"]) == ("7", "data/a b.vcf")
    assert {outside, "data/a%20b.vcf", "#panel.min_maf"} <= set(references(run["object"]))
    assert found["#panel.min_maf"]["value"] == 0.07
    assert found["#panel.min_call_rate"]["value"] == 0.95, "defaults are listed too"
    assert (run["startTime"], run["endTime"]) == (
        "2001-09-09T01:46:40+00:00",
        "2001-09-09T01:57:40+00:00",
    )
    assert root["datePublished"] == run["endTime"] and found["#author"]["name"] == "A. Person"
    for entity in found.values():
        for key, value in entity.items():
            for name in references(value):
                assert name in found or name.startswith("https://w3id.org/"), (key, name)
    parts = references(root["hasPart"])
    files = [name for name, entity in found.items() if entity["@type"] == "File"]
    assert sorted(parts) == sorted(files)


def test_no_path_of_the_machine_is_given_away(study):
    write_crate(study)
    text = (study / CRATE).read_text()
    assert "secret folder" not in text and str(study.parent) not in text


def test_the_same_folder_gives_the_same_bytes(study):
    write_crate(study)
    before = (study / CRATE).read_bytes()
    write_crate(study)
    assert (study / CRATE).read_bytes() == before


def test_damaged_results_are_not_described(study, capsys):
    (study / "results/qc/plot.svg").write_text("changed")
    assert main(["crate", str(study)]) == 1
    assert "audit --repair" in capsys.readouterr().err
    assert not (study / CRATE).exists()


def test_a_missing_input_is_named(study):
    (study / "data/a b.vcf").unlink()
    with pytest.raises(UserError, match=r"data/a b\.vcf, which results .* is not there"):
        write_crate(study)


def test_nothing_to_describe(study):
    for path in (study / "results/qc").iterdir():
        path.unlink()
    with pytest.raises(UserError, match=r"no result of .* has a record"):
        write_crate(study)
