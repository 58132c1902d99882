"""Counts of genotypes over groups of samples by the kernels' source, on a CPU."""

from __future__ import annotations

import numpy as np
import pytest
from scenes.groups import check_counts
from scenes.people import encode_alone
from support.study import Cohort, make_sites, write_raw

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.population.count_groups import count_groups
from popdesic.population.counts import ENDINGS, count_cohort
from popdesic.population.runs import RunLimits


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 33, 63, 64, 65, 700])
@pytest.mark.parametrize("missing", [0.0, 0.15, 1.0])
def test_counts_of_every_number_of_sites(machine, rng, n_sites, missing):
    from popdesic.engine.backend_gpu import GpuBackend

    machine.backward = n_sites % 2 == 0
    check_counts(GpuBackend(), rng, 9, n_sites, 3, missing)
    assert "sum_samples" in machine.launched


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 130])
def test_counters_overflow_nowhere(schedule, rng, n):
    """Pieces of as many samples as the counters hold, and of one more."""
    from popdesic.engine.backend_gpu import GpuBackend

    check_counts(GpuBackend(), rng, n, 40, 1, 0.1)


def test_parts_pieces_and_runs_change_nothing(schedule, rng, monkeypatch):
    """Several parts, so that buffers are used again; words of several thread blocks."""
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.population import group_counts_plan as plans

    monkeypatch.setattr(plans, "PART_BYTES", 7 * 3 * 8 * 80)
    monkeypatch.setattr(plans, "RESULT_BYTES", 5000)
    monkeypatch.setattr(plans, "LEAST_ROWS", 2)
    monkeypatch.setattr(plans, "LEAST_WORDS", 33)
    check_counts(GpuBackend(), rng, 40, 80 * 64 - 5, 4, 0.05)


def test_no_sample_has_a_group(machine):
    from popdesic.engine.backend_gpu import GpuBackend

    words = np.zeros((3, 2, 1), np.uint64)
    used, values = np.array([7], np.uint64), np.zeros(64, np.int64)
    grouping = lambda first, part, sums: np.full(len(part), -1)  # noqa: E731
    found = count_groups(GpuBackend(), words, used, values, 3, grouping, 1)
    assert found.counts.shape == (3, 0, 3) and found.sums.tolist() == [[3, 0, 0]] * 3
    assert machine.launched == ["sum_samples"]


def test_the_cpu_counts_where_groups_do_not_fit(machine, rng, monkeypatch):
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.population import group_counts_plan as plans

    monkeypatch.setattr(plans, "MOST_BLOCKS", 1)
    check_counts(GpuBackend(), rng, 9, 70, 2, 0.1)
    backend = GpuBackend(device_bytes=1 << 20)
    check_counts(backend, rng, 9, 70, 1, 0.1)
    assert not machine.launched


def test_files_of_a_cohort_have_the_bytes_of_the_cpu(machine, rng, tmp_path, monkeypatch):
    """Pseudo-haploid samples, a population that is one, people without one, runs; several parts."""
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.population import group_counts_plan as plans

    genotypes = rng.binomial(2, 0.5, (300, 20)).astype(np.int8)
    genotypes[40:90, 3] = 2
    genotypes[rng.random(genotypes.shape) < 0.05] = -1
    genotypes[:, [0, 5, 7]] = np.where(genotypes[:, [0, 5, 7]] == 1, 2, genotypes[:, [0, 5, 7]])
    cohort = Cohort("one", [f"s{k}" for k in range(20)], make_sites(300), genotypes)
    write_raw(tmp_path / "raw", cohort)
    encode_alone(tmp_path / "raw", tmp_path)
    labels = [("A", "B", "NA", "C")[k % 4] if k != 7 else "D" for k in range(20)]
    lines = [f"{s}\tone\t{p}" for s, p in zip(cohort.samples, labels, strict=True)]
    sheet = tmp_path / "samples.tsv"
    sheet.write_text("\n".join(["sample\tcohort\tpopulation", *lines]) + "\n")
    monkeypatch.setattr(plans, "PART_BYTES", 3 * 8 * 5 * 6)
    files = {}
    for name, backend in (("cpu", CpuBackend(2)), ("gpu", GpuBackend())):
        about = count_cohort(
            *(tmp_path, tmp_path / "panel.tsv", sheet),
            [tmp_path / f"{name}{end}" for end in ENDINGS],
            **{"cohort": "one", "column": "population", "x_contigs": ["X"]},
            runs=RunLimits(window_sites=10, min_sites=15, min_kb=1),
            backend=lambda need, backend=backend: backend,
        )
        assert about["pseudo-haploid samples"] == 3 and about["groups"] == 6
        assert about["runs of homozygosity"] > 0
        files[name] = [(tmp_path / f"{name}{end}").read_bytes() for end in ENDINGS]
    assert files["cpu"] == files["gpu"]
    assert machine.launched.count("sum_samples") > 3
