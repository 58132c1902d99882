"""Exhaustive scans of pairs, triples and quads: forecast, units (`units.py`), merging of hits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.files import write_json
from ..engine.backend import Backend
from ..io.sites import chunks
from .options import scan_device
from .reorder import join_classes, pack_states, split_classes, unpack_states
from .scan_data import MOST_QUAD_SITES, MOST_SITES, NAMES, OneHot, ResidualData, ScanData
from .scan_sites import scanner
from .scores import load_scan, lr_bits, score_tables
from .units import rate_of_unit, read_work, unit_range, write_unit

#: Sites of the first scan that measures the device's rate, and of the largest. The number doubles
#: until a scan takes PROBE_SECONDS, so that a GPU's start-up does not dominate.
PROBE_SITES = {2: 1024, 3: 128, 4: 64}
MOST_PROBE_SITES = {2: 16_384, 3: 4096, 4: 1024}
#: Combinations that such a scan keeps. Each is fitted by interaction, and some dozens of sites have
#: few quads: with 1 000 of them, fits take ten times as long as all else.
PROBE_KEPT = {2: 1000, 3: 1000, 4: 10}
#: Bytes that a GPU holds of each pair of the sites of quads, without missing genotypes: a table for
#: each genotype of a third site.
QUAD_PAIR_BYTES = 48
PROBE_SECONDS = 0.3
#: Most bytes of planes of such a scan, which are in memory several times.
PROBE_BYTES = 1 << 28
#: Genotypes that are permuted at once, a byte each.
PERMUTED_GENOTYPES = 1 << 26
#: Sites, controls, cases and genotype frequencies of a study like that of the Wellcome Trust Case
#: Control Consortium (2007), whose forecast makes machines comparable.
WTCCC = (500_568, 3004, 2000, (0.067, 0.237, 0.696))


def count_tests(n_sites: int, order: int) -> int:
    """Combinations of a whole scan, including those that partner limits exclude."""
    return math.comb(n_sites, order)


def measure_rate(
    probe_of: Callable[[int], ScanData],
    n_sites: int,
    order: int,
    backend: Backend,
    *,
    residuals: bool = False,
) -> float:
    """Combinations per second on this device, measured by short scans.

    `probe_of(n)` returns scan data of n sites; n grows up to `n_sites` until a scan takes long
    enough to be measured. `residuals`: of scans by residuals, drawn at random. Of quads, a probe
    scans one first site, the mean one: a GPU takes a while for each, however few its quads are.
    """
    if residuals:
        drawn = probe_of
        probe_of = lambda n: with_random_residuals(drawn(n))  # noqa: E731
    scan, n = scanner(backend, order, residuals=residuals), min(n_sites, PROBE_SITES[order])
    probe = probe_of(n)
    scan(probe, range(1), 1)  # compiles
    classes = (probe.planes,) if residuals else probe.classes
    row = sum(one.words.nbytes for one in classes) // n
    most = min(n_sites, MOST_PROBE_SITES[order], max(n, PROBE_BYTES // row))
    while True:
        probe = probe_of(n)
        first = range(n // 5, n // 5 + 1) if order == 4 else range(n)
        started = time.perf_counter()
        scan(probe, first, PROBE_KEPT[order])
        took = max(time.perf_counter() - started, 1e-6)
        if took >= PROBE_SECONDS or n >= most:
            tests = count_tests(n - first.start, order) - count_tests(n - first.stop, order)
            return tests / took
        n = min(most, 2 * n)


def thinned(data: ScanData, n: int) -> ScanData:
    """Scan data of `n` evenly spaced sites, in memory."""
    rows = np.linspace(0, data.n_sites - 1, n).astype(int)
    return replace(data, partners=None).of_sites(rows)


def with_random_residuals(data: ScanData) -> ResidualData:
    """The same sites and people with residuals at random."""
    words = np.concatenate([one.words for one in data.classes], axis=2)
    planes = OneHot(join_classes(words, *(one.n_samples for one in data.classes)), data.n_samples)
    levels = np.random.default_rng(1).integers(1, 256, data.n_samples).astype(np.uint8)
    return ResidualData(planes, levels, 127**2 / 3, data.rank)


def wtccc_shaped(n_sites: int, score: str) -> ScanData:
    """Random genotypes with the sample sizes and genotype frequencies of `WTCCC`."""
    _, n_controls, n_cases, shares = WTCCC
    n, rng = n_controls + n_cases, np.random.default_rng(1)
    drawn = rng.random((n_sites, n), np.float32)
    states = np.full(drawn.shape, 3, np.int8)
    states[drawn < shares[0] + shares[1]] = 1
    states[drawn < shares[0]] = 0
    classes = split_classes(pack_states(states, n_controls), n_controls, n_cases)
    rank = np.arange(n_sites, dtype=np.int32)
    tables = score_tables(score, n_controls, n_cases)
    return ScanData(classes, *tables, rank, lr_bits=lr_bits(score, n))


def describe_scans(tests: int, scans: int, rate: float) -> str:
    """Tests, rate and time of scans, as text."""
    hours = tests * scans / rate / 3600
    return f"{tests} tests, {scans} scans, {rate:.3g} tests/s, {hours:.3g} device-hours"


def plan_scan(
    folder: Path,
    backend: Backend,
    plan_out: Path,
    *,
    orders: list[int],
    score: str,
    permutations: dict[int, int],
    screen: int,
    top: int,
    max_device_hours: float,
    residuals: bool = False,
) -> dict[str, str]:
    """Forecast tests, device-hours and memory; refuse scans above `max_device_hours`.

    `score` ranks triples and quads, and pairs unless `residuals` do. The measured rate and the
    forecast are returned for the log, with the same forecast for a study of the size and
    frequencies of `WTCCC`, whose quads would take longer than anybody waits. The file holds only
    what depends on the data, so it is the same in every run.
    """
    data, _, _ = load_scan(folder, score, 0, 1.0, mapped=True)
    if backend.name == "cpu" and data.n_sites > MOST_SITES:
        raise UserError(
            f"epistasis: {data.n_sites} sites are more than the {MOST_SITES} that a scan on a CPU "
            "can combine; list fewer (epistasis.restrict) or set device to gpu."
        )
    if 4 in orders and data.n_sites > MOST_QUAD_SITES:
        raise UserError(
            f"epistasis: {data.n_sites} sites are more than the {MOST_QUAD_SITES} whose quads a "
            "scan can combine; list fewer (epistasis.restrict) or take 4 out of epistasis.order."
        )
    if 4 in orders and backend.name == "gpu" and scan_device("gpu", score, 4) == "gpu":
        needed, free = QUAD_PAIR_BYTES * data.n_sites**2, backend.free_bytes()
        if needed > free:
            raise UserError(
                f"epistasis: quads of {data.n_sites} sites take {needed / 1e9:.2g} GB of tables of "
                f"their pairs, more than the {free / 1e9:.2g} GB that are free on the GPU; list "
                "fewer (epistasis.restrict) or set device to cpu."
            )
    plan, lines, hours = {"sites": data.n_sites, "samples": data.n_samples}, {}, 0.0
    for order in orders:
        tests = count_tests(data.n_sites, order)
        scans = 1 + permutations[order]
        plan[NAMES[order]] = {"tests": tests, "scans": scans}
        if not tests:
            lines[NAMES[order]] = f"0 tests of {data.n_sites} sites"
            continue
        of_residuals = {"residuals": residuals and order == 2}
        rate = measure_rate(
            lambda n: thinned(data, n), data.n_sites, order, backend, **of_residuals
        )
        hours += tests * scans / rate / 3600
        lines[NAMES[order]] = describe_scans(tests, scans, rate)
    if screen:
        pairs = min(screen, top, plan["pairs"]["tests"])
        plan["screen"] = {"tests": pairs * max(data.n_sites - 2, 0), "scans": 1}
        lines["screen"] = f"{plan['screen']['tests']} tests, not exhaustive"
    planes = sum(one.words.nbytes for one in data.classes)
    lines["memory"] = f"{planes / 1e6:.0f} MB of planes"
    lines["device_hours"] = f"{hours:.3g} (at most {max_device_hours:g})"
    for order in (order for order in orders if order < 4):
        of_residuals = {"residuals": residuals and order == 2}
        rate = measure_rate(
            lambda n: wtccc_shaped(n, score), WTCCC[0], order, backend, **of_residuals
        )
        lines[f"forecast of {NAMES[order]} for {WTCCC[0]} sites x {sum(WTCCC[1:3])} samples"] = (
            describe_scans(count_tests(WTCCC[0], order), 1, rate)
        )
    if hours > max_device_hours:
        raise UserError(
            f"config/config.yaml: the epistasis scans of {data.n_sites} sites and "
            f"{data.n_samples} samples would take about {hours:.3g} device-hours at the rate "
            f"measured here, above {max_device_hours:g} (24 for each of epistasis.units); "
            "raise epistasis.units, or take fewer sites (epistasis.restrict), orders or "
            "permutations."
        )
    write_json(plan_out, plan)
    return lines


def scan_unit(
    folder: Path,
    backend: Backend,
    out: Path,
    *,
    order: int,
    unit: int,
    n_units: int,
    score: str,
    top: int,
    min_distance_bp: int,
    max_r2: float,
    device: str = "auto",
) -> dict[str, object]:
    """Run one unit of a scan and write its best `top` hits as npz (`write_unit`).

    `device` is the configured one, which decides how the scan is cut (`units.read_work`). Returns
    counts and the rate (`units.rate_of_unit`) for the log.
    """
    data, _, _ = load_scan(folder, score, min_distance_bp, max_r2)
    first = unit_range(read_work(folder, order, device), unit, n_units)
    started = time.perf_counter()
    hits = scanner(backend, order)(data, first, top)
    took = time.perf_counter() - started
    counts = write_unit(out, first, hits)
    return counts | rate_of_unit(first, data.n_sites, data.n_samples, order, took)


def permuted(words, samples: pd.DataFrame, data: ScanData, seed: int, index: int) -> ScanData:
    """Scan data with phenotypes permuted within strata: permutation `index` of `seed`."""
    rng = np.random.default_rng([seed, index])
    n_controls, n_cases = (one.n_samples for one in data.classes)
    case = np.arange(n_controls + n_cases) >= n_controls
    drawn = case.copy()
    for members in samples.groupby("stratum", sort=True).indices.values():
        drawn[members] = rng.permutation(case[members])
    order = np.argsort(drawn, kind="stable")
    out = np.empty(words.shape, np.uint64)
    for first, last in chunks(len(words), max(1, PERMUTED_GENOTYPES // max(1, len(order)))):
        states = unpack_states(words[first:last], n_controls, n_cases)[:, order]
        out[first:last] = pack_states(states, n_controls, words.shape[1])
    return replace(data, classes=split_classes(out, n_controls, n_cases))
