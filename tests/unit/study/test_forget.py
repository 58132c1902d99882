"""What still holds a sample's name is found, and raw files are rewritten whole or not at all."""

import gzip
import html
import json

import numpy as np
import pytest
from markupsafe import escape
from support.study import make_cohorts, write_raw

from popdesic.cohort.callable import BLOCKS, Callable, load_beside
from popdesic.core.files import beside, checksum_of, kept_checksum, read_json, write_json
from popdesic.io.bed import read_fam
from popdesic.study import forget
from popdesic.study.forget import files_with, rewrite_without
from popdesic.study.stale import delete_results, leftovers


def test_names_are_found_in_text_gzip_and_arrays(tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    (results / "a.tsv").write_text("sample\tx\nS1\t2\n")
    (results / "b.tsv").write_text("S10\nS1-b\nxS1\nS1.2\n_S1\n")  # other names
    (results / "c.tsv.gz").write_bytes(gzip.compress(b"sample\nS1\n"))
    np.savez_compressed(results / "d.npz", names=np.array(["A", "S1", "B"]))
    np.save(results / "e.npy", np.array(["S1", "S10"]))
    np.save(results / "f.npy", np.frombuffer(b"  S1    ", np.uint8))  # numbers
    np.save(results / "g.npy", np.array(["S10", "S1x"]))
    (results / ".h.json.record").write_text('{"samples": ["S1"]}')
    (results / "S1.svg").write_text("")
    (results / "i.bed").write_bytes(b" S1 ")
    (results / "k.md").write_text("It was S1.")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/j.log").write_text("WARNING sample 'S1' is odd")
    (tmp_path / "config").mkdir()
    (tmp_path / "config/samples.tsv").write_text("S1\n")
    found = [path.relative_to(tmp_path).as_posix() for path in files_with(tmp_path, "S1")]
    ends = [".h.json.record", "S1.svg", "a.tsv", "c.tsv.gz", "d.npz", "e.npy", "k.md"]
    assert found == [*(f"results/{end}" for end in ends), "logs/j.log"]


def test_a_name_on_the_border_of_two_blocks_is_found(tmp_path, monkeypatch):
    (tmp_path / "logs").mkdir()
    monkeypatch.setattr(forget, "CHECKSUM_BYTES", 16)
    for start in range(20):
        (tmp_path / "logs/a.log").write_text(" " * start + "Zoë 1" + " " * 20)
        assert files_with(tmp_path, "Zoë 1"), start
        for other in ("Zoë 11", "aZoë 1", "éZoë 1", "a.Zoë 1", "Zoë 1.2", "Zoë 1é", "Zoë 1-"):
            (tmp_path / "logs/a.log").write_text(" " * start + other + " " * 20)
            assert not files_with(tmp_path, "Zoë 1"), (start, other)


@pytest.mark.parametrize("name", ["A&B", "O'Neil", "a<b>", 'mü"x', "müller", "a\\b", "日本"])
def test_names_are_found_as_html_and_json_write_them(tmp_path, name):
    files = {
        "results/a.html": f"<td>{html.escape(name)}</td>",
        "results/b.html": f"<td>{escape(name)}</td>",
        "results/c.html": f"<td>{html.escape(name, quote=False)}</td>",
        "results/d.json": json.dumps([name]),
        "results/e.json": json.dumps([name], ensure_ascii=False),
        "ro-crate-metadata.json": json.dumps([name]),
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    found = [path.relative_to(tmp_path).as_posix() for path in files_with(tmp_path, name)]
    assert found == list(files)
    assert files_with(tmp_path, f"{name}1") == files_with(tmp_path, f"2{name}") == []


def test_what_killed_jobs_left_is_found_and_deleted(tmp_path):
    """The folder of a panel that was being exported, and files that were being written."""
    results = tmp_path / "results"
    kept = [
        *("export/panel.vcz/.zattrs", "export/panel.vcz/.zgroup", "cohorts/north/raw.bed"),
        *("cohorts/north/.raw.bed.crc32", "distance/.north.key", "report/.last_summary.json"),
    ]
    left = ["export/.panel.vcz.ab12/panel.bed", "cohorts/north/.raw.bed.host.12.0123abcd.tmp"]
    for path in (*kept, *left):
        (results / path).parent.mkdir(parents=True, exist_ok=True)
        (results / path).write_text("")
    found = leftovers(tmp_path)
    assert found == [f"results/{left[1]}", "results/export/.panel.vcz.ab12"]
    delete_results(tmp_path, found)
    there = [p.relative_to(results).as_posix() for p in results.rglob("*") if p.is_file()]
    assert sorted(there) == sorted(kept) and leftovers(tmp_path) == []


@pytest.fixture
def prefix(tmp_path):
    (cohort,) = make_cohorts((5,), n_sites=40)
    prefix = write_raw(tmp_path / "results/cohorts/north/raw", cohort)
    write_json(prefix.with_suffix(".json"), {"files": {}, "counts": {"samples": 5}})
    return prefix


def test_raw_files_lose_the_sample_and_keep_their_dates(prefix):
    before = {end: prefix.with_suffix(end).stat().st_mtime_ns for end in (".bed", ".fam", ".json")}
    record = prefix.with_name(".raw.bed.record")
    record.write_text("kept")
    rewrite_without(prefix, "N02")
    assert list(read_fam(prefix)["sample"]) == ["N00", "N01", "N03", "N04"]
    assert record.read_text() == "kept"
    for end, date in before.items():
        path = prefix.with_suffix(end)
        assert path.stat().st_mtime_ns == date
        assert kept_checksum(path) == checksum_of(path).split()


def test_reference_blocks_lose_the_sample_and_stay_those_of_the_others(prefix):
    """Blocks are by the number of the sample, so those of later samples must move up."""
    blocks = beside(prefix, BLOCKS)
    start, sample = np.array([0, 10, 20, 30, 40]), np.array([0, 2, 3, 4, 2])
    Callable(["1"] * 5, start, start + 5, sample).save(blocks)
    write_json(prefix.with_suffix(".json"), {"files": {}, "removed_calls": {"N02": 3, "N03": 1}})
    rewrite_without(prefix, "N02")
    pos = start + 1
    covered = load_beside(prefix, BLOCKS).covers_samples(["1"] * 5, pos, np.arange(4))
    assert np.argwhere(covered).tolist() == [[0, 0], [2, 2], [3, 3]]  # N00, N03 and N04
    assert kept_checksum(blocks) == checksum_of(blocks).split()
    assert read_json(prefix.with_suffix(".json"))["removed_calls"] == {"N03": 1}
    for name in ("N00", "N03", "N04"):
        rewrite_without(prefix, name)
    assert not blocks.exists()


def test_a_crash_between_the_files_leaves_a_cohort_to_decode(prefix, monkeypatch):
    def crash(*_):
        raise OSError("no space left")

    monkeypatch.setattr(forget, "write_fam", crash)
    with pytest.raises(OSError, match="no space"):
        rewrite_without(prefix, "N02")
    assert not prefix.with_suffix(".json").exists()  # an output of ingest: it runs again
