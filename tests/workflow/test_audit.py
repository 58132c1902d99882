"""`popdesic audit` finds one flipped bit in any kind of result, and missing checksums."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.running import ROOT, contents, environment, snakemake
from support.study import FAST, make_cohorts, write_study

from popdesic.__main__ import main
from popdesic.core.files import (
    FOLDER_STAMP,
    RESULT_FOLDERS,
    checksum_path,
    panel_of,
    record_path,
    result_files,
)
from popdesic.study.audit import damaged_files

#: All analyses and formats, as small as they can be.
CONFIG = FAST | {
    "distance": {"metric": "ibs"},
    "geodesic": {"alpha": [2], "space": ["genotypes"], "explain": True},
    "impute": {"evaluate": ["mode"]},
    "communities": {"methods": ["blockmodel", "tree"]},
    "compare": {"query": "data/north.vcf"},
    "export": {
        "formats": [
            *("plink", "vcf", "zarr", "mibs", "king", "phylip", "newick", "eigenvec", "auspice")
        ]
    },
    "epistasis": {"order": [2], "permutations": 2},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A study of one cohort with every kind of result."""
    folder = write_study(tmp_path_factory.mktemp("whole"), make_cohorts((16,), n_sites=200), CONFIG)
    snakemake(folder)
    return folder


def files_inside(result: Path) -> list[Path]:
    inside = sorted(result.rglob("*")) if result.is_dir() else [result]
    return [path for path in inside if path.is_file() and path.name != FOLDER_STAMP]


def flip(path: Path, byte: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[byte] ^= 1 << bit
    path.write_bytes(data)


def test_one_bit_of_any_file_is_found(whole):
    """Results, files within a result that is a folder, checksums and records, one by one."""
    assert damaged_files(whole)[0] == []
    results = list(result_files(whole / "results"))
    names = {path.name for path in results}
    assert {"blocks.npz", "panel.vcz", "panel.bed", "panel.vcf.gz", "report.html"} <= names
    tried = 0
    for result in results:
        hidden = [result.with_name(f".{result.name}.{end}") for end in ("crc32", "record")]
        assert hidden[0].is_file(), result
        for k, path in enumerate(files_inside(result) + [p for p in hidden if p.is_file()]):
            if not (size := path.stat().st_size):
                continue
            byte, bit = (tried * 7919) % size, (tried + k) % 8
            flip(path, byte, bit)
            # Only this folder is read again; reading everything each time would take minutes.
            found = damaged_files(whole, result.parent)[0]
            assert [name for name, _ in found] == [str(result.relative_to(whole))], (
                path,
                byte,
                bit,
            )
            flip(path, byte, bit)
            tried += 1
    assert damaged_files(whole)[0] == []
    every = [p for p in (whole / "results").rglob("*") if p.is_file() and p.name != FOLDER_STAMP]
    empty = [p for p in every if not p.stat().st_size]
    # With another key, a tile is refused and computed again (tests/unit/distance/test_rows.py),
    # and files are decoded again (tests/unit/cohort/test_decode.py);
    # so is what communities and figures keep from run to run, if it is damaged (test_founders.py,
    # test_figures.py).
    keys = [p for p in every if p.suffix == ".key"]
    assert len(keys) == 5
    kept = [".founders.npz", ".blocks.npz", ".sites.npz", ".loadings.npz"]
    keys += [p for p in every if p.name in (*kept, *(f".{name}.crc32" for name in kept))]
    assert len(keys) == 13
    others = {"results/.study", "results/report/.last_summary.json"}
    assert {str(path.relative_to(whole)) for path in every} >= others
    assert tried == len(every) - len(empty) - len(keys) - len(others)
    print(f"audit: one bit flipped in each of {tried} files, found {tried} times")


def test_every_result_behind_the_panel_carries_its_digest(whole):
    """Decoded files, quality of cohorts and searched profiles do not depend on the panel."""
    results = whole / "results"
    panel = panel_of(results / "panel/sites.tsv")
    found = {str(p.relative_to(results)): panel_of(p) for p in result_files(results)}
    assert set(found.values()) == {panel, ""}
    without = sorted(name for name, digest in found.items() if not digest)
    raw = [f"cohorts/north/raw.{end}" for end in ("bed", "bim", "fam", "json")]
    assert without[:4] == raw
    assert all(name.startswith(("qc/north.", "compare/", "impute/")) for name in without[4:]), (
        without
    )


def test_a_crate_lists_every_result_of_a_rule(whole, tmp_path):
    folder = tmp_path / "study"
    shutil.copytree(whole, folder, copy_function=shutil.copy2)
    assert main(["crate", str(folder)]) == 0
    entities = json.loads((folder / "ro-crate-metadata.json").read_text())["@graph"]
    run = next(entity for entity in entities if entity["@id"] == "#run")
    made = {entity["@id"].rstrip("/") for entity in run["result"]}
    results = {p.relative_to(folder).as_posix() for p in result_files(folder / "results")}
    assert made <= results and "results/export/panel.vcz" in made
    assert not [name for name in results - made if record_path(folder / name).exists()]
    assert {"data/north.vcf", "config/config.yaml"} <= {e["@id"] for e in run["object"]}


def test_results_of_another_panel_are_refused(whole, tmp_path):
    """As if somebody had copied the components of another study and renewed their dates."""
    folder = tmp_path / "study"
    shutil.copytree(whole, folder, copy_function=shutil.copy2)
    stamp = checksum_path(folder / "results/embedding/coordinates/pca.tsv")
    checksum, size, panel = stamp.read_text().split()
    stamp.write_text(f"{checksum} {size} {'f' * 12}\n")
    ((name, reason),) = damaged_files(folder)[0]
    assert (name, reason.split(",")[0]) == (
        "results/embedding/coordinates/pca.tsv",
        "it was made with the panel ffffffffffff",
    )
    words = ["--forcerun", "draw_figures", "--", "results/figures/pca.svg"]
    said = snakemake(folder, *words, fails=True)
    assert "results of different panels cannot be combined" in said
    assert "pca.tsv" in said and panel in said


def test_a_missing_checksum_is_named(whole):
    checksums = sorted((whole / "results").rglob(".[!.]*.crc32"))
    assert len(checksums) == len(list(result_files(whole / "results")))
    for kept in checksums:
        text = kept.read_text()
        kept.unlink()
        ((name, reason),) = damaged_files(whole, kept.parent)[0]
        assert f"its checksum, {kept.name}, is missing" == reason
        assert name.endswith(kept.name[1 : -len(".crc32")])
        kept.write_text(text)
    assert damaged_files(whole)[0] == []


def test_a_chunk_more_or_less_is_found(whole):
    (panel,) = (p for p in result_files(whole / "results") if p.name.endswith(RESULT_FOLDERS))
    (panel / "call_genotype/9.9.9").write_bytes(b"")
    assert [name for name, _ in damaged_files(whole)[0]] == ["results/export/panel.vcz"]
    (panel / "call_genotype/9.9.9").unlink()
    chunk = panel / "call_genotype/0.0.0"
    data = chunk.read_bytes()
    chunk.unlink()
    assert [name for name, _ in damaged_files(whole)[0]] == ["results/export/panel.vcz"]
    chunk.write_bytes(data)
    assert damaged_files(whole)[0] == []


@pytest.mark.slow
def test_repair_recomputes_damaged_results(whole, tmp_path, capsys):
    """A folder, a file of another interpreter, tiles of rows, a missing checksum, a stray file."""
    folder = tmp_path / "study"
    shutil.copytree(whole, folder, copy_function=shutil.copy2)
    results = folder / "results"
    expected = contents(folder)
    flip(results / "export/panel.vcz/call_genotype/0.0.0", 20, 3)
    flip(results / "communities/blocks.npz", 900, 1)
    flip(results / "compare/identity/raw.bed", 40, 1)
    flip(results / "distance/tiles/north/north.npz", 900, 1)
    flip(results / "compare/tiles/north/north.identity.tsv", 300, 1)
    (results / "export/.pca.eigenvec.crc32").unlink()
    assert main(["audit", str(folder)]) == 1
    assert "6 of" in capsys.readouterr().err
    words = ["audit", "--repair", str(folder), "--", "--cores", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "popdesic", *words],
        env=environment() | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert damaged_files(folder)[0] == []
    changed = {name for name, digest in contents(folder).items() if expected[name] != digest}
    # Tables of the work done mention the repair.
    assert changed <= {"report/work.tsv", "report/report.html", "report/summary.json"}, changed


def test_a_file_made_by_no_rule_gives_a_one_sentence_error(whole, capsys):
    (whole / "results/notes").mkdir()
    stray = whole / "results/notes/mine.txt"
    stray.write_text("not a result")
    assert main(["audit", str(whole)]) == 1
    assert "results/notes/mine.txt: its checksum, .mine.txt.crc32, is missing" in (
        capsys.readouterr().out
    )
    assert main(["audit", "--repair", str(whole)]) == 1
    told = capsys.readouterr().err
    assert "no record says which rule made it; move it out of results" in told
    shutil.rmtree(stray.parent)


def test_every_output_has_a_record(whole):
    without = [p for p in result_files(whole / "results") if not record_path(p).is_file()]
    # Files that jobs leave beside their outputs: those of profiles, of a row, decoded ones.
    without = [p for p in without if p.name not in ("raw.bed", "raw.bim", "raw.fam")]
    assert {p.parent.name for p in without} <= {"identity", "mixture", "evaluation", "north"}
    assert all(p.parent.parent.name == "tiles" for p in without if p.parent.name == "north")
