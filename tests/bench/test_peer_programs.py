"""Peers that are there are compared, and peers that are not are named with the reason."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from bench_peers import SIZES, Bench, closure_rows, distance_rows, scan_rows
from peer_programs import (
    equal,
    graph_tool_version,
    place_among,
    program_version,
    read_report,
    same_axes,
    same_hits,
    write_classes,
)


@pytest.fixture
def bench(tmp_path) -> Bench:
    return Bench(1, 1, SIZES["tiny"], tmp_path, [], str(tmp_path / "no-python"))


def test_without_any_program_libraries_are_compared(bench, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    rows = [row for part in (distance_rows, scan_rows, closure_rows) for row in part(bench)]
    ran = {row.peer: row.results for row in rows if row.peer_s != "not available"}
    assert ran == dict.fromkeys(
        ["OpenBLAS SYRK, float32", "SciPy pdist, sqeuclidean", "SciPy floyd_warshall"], "equal"
    )
    reasons = {row.peer: row.results for row in rows if row.peer_s == "not available"}
    assert reasons["PLINK 1.9 --distance"] == "apt-get install plink1.9"
    assert reasons["BitEpi"] == "not on the PATH; source: github.com/aehrc/BitEpi"
    assert reasons["graph-tool"].startswith("there is no ")
    assert {row.ratio for row in rows if row.peer_s == "not available"} == {"-"}


def test_other_results_are_told(bench):
    """What a peer computes differently is not called equal."""
    given = "a task", "a peer", lambda: "1.0"
    (row,) = bench.row(*given, lambda threads: np.ones(3), lambda: np.array([1, 1, 1.5]), equal)
    assert row.results == "differ by ≤ 5e-01"
    (row,) = bench.row(*given, lambda threads: {1, 2}, lambda: {2, 3}, same_hits)
    assert row.results == "1 of 2 the same"
    assert equal(np.array([1.0, np.nan]), np.array([1.0, np.nan])) == "equal"
    assert equal(np.array([1.0, np.nan]), np.array([1.0, 2.0])) == "DIFFERENT"
    assert same_axes(np.eye(2), np.array([[2.0, 1.0], [0.0, 1.0]])).endswith("3e-01")


def test_a_program_that_fails_has_a_row(bench):
    def theirs() -> None:
        Path("/no/such/result").read_text()

    (row,) = bench.row("a task", "a peer", lambda: "1.0", lambda threads: 0, theirs, equal)
    assert row.peer_s == "not available"
    assert "ended with an error" in row.results


def test_only_the_peers_that_were_asked_for(bench):
    bench.only = ["floyd"]
    assert [row.peer for row in closure_rows(bench)] == ["SciPy floyd_warshall"]


@pytest.mark.parametrize(("said", "version"), [("Fiuncho v2 (af02)", "v2"), ("MPI3SNP 1.0", "1.0")])
def test_versions(tmp_path, monkeypatch, said, version):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert program_version("program", "--version") == version


def test_a_python_without_graph_tool(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(LookupError, match="apt-get install python3-graph-tool"):
        graph_tool_version(str(python))


@pytest.mark.parametrize("n_samples", [(1024, 1), (1030, 2048)])
def test_planes_are_written_as_peers_on_a_gpu_read_them(tmp_path, n_samples):
    """Sites, planes of two genotypes, then samples: zeros up to a multiple of 1 024 bits.

    The genotypes are the two rarest, rarest first, in all six orders.
    """
    rng = np.random.default_rng(1)
    orders = list(itertools.permutations(range(3)))  # of a site, rarest first
    drawn = [rng.choice(3, (6, n), p=[0.1, 0.3, 0.6]) for n in n_samples]
    classes = []
    for one in drawn:
        genotypes = np.stack(
            [np.take(order, site) for order, site in zip(orders, one, strict=True)]
        )
        n_bits = -(-one.shape[1] // 64) * 64
        bits = np.zeros((6, 2, n_bits), np.uint8)
        bits[:, :, : one.shape[1]] = np.stack([genotypes == 0, genotypes == 1], axis=1)
        words = np.packbits(bits, axis=2, bitorder="little").view(np.uint64)
        classes.append((words, one.shape[1]))
    lines = write_classes(tmp_path, classes).read_text().splitlines()
    assert lines == ["6", "controls.bin", str(n_samples[0]), "cases.bin", str(n_samples[1])]
    for name, one in zip(("controls.bin", "cases.bin"), drawn, strict=True):
        n_words = -(-one.shape[1] // 1024) * 32
        rows = np.fromfile(tmp_path / name, np.uint32).reshape(6, 2, n_words)
        bits = np.unpackbits(rows.view(np.uint8), axis=2, bitorder="little")
        assert not bits[:, :, one.shape[1] :].any()
        for rank in (0, 1):
            assert (bits[:, rank, : one.shape[1]] == (one == rank)).all()


@pytest.mark.parametrize("times", ["x", "×"])
def test_reports_of_peers_on_a_gpu(times):
    """The lines that both programs print at their end."""
    said = (
        "{SNP_X_i, SNP_Y_i, SNP_Z_i}: SCORE\t->\t{7, 130, 9}: 1234.500000\n"
        "Wall-clock time:\t205.203 seconds\n"
        f"Num. unique sets per sec. (scaled to sample size): 17.870 {times} 10^12\n"
    )
    assert read_report(said) == (17.87, frozenset({7, 9, 130}))
    assert read_report("Epistasis detection search failed.") is None


def test_where_the_best_of_a_peer_stands():
    best = [frozenset({3, 8}), frozenset({1, 2})]
    assert place_among(best, frozenset({8, 3})) == "the same"
    assert place_among(best, frozenset({2, 1})) == "[1, 2], our number 2"
    assert place_among(best, frozenset({3, 9})) == "DIFFERENT: [3, 9], not among our best 2"
