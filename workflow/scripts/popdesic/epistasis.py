"""Exhaustive scans of pairs and triples: units of work, forecast, merged hits."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pandas as pd

from .backend import Backend, Hits, OneHot, ScanData
from .errors import UserError
from .reorder import pack_states, read_reordered, unpack_states
from .results import write_npz
from .scores import score_tables
from .store import write_json

#: Sites of the scan that measures this machine's rate.
PROBE_SITES = {2: 2048, 3: 192}
NAMES = {2: "pairs", 3: "triples"}


def split_classes(words: np.ndarray, n_controls: int, n_cases: int) -> tuple[OneHot, OneHot]:
    """The array of onehot.npy as two phenotype classes."""
    split = -(-n_controls // 64)
    return (
        OneHot(np.ascontiguousarray(words[:, :, :split]), n_controls),
        OneHot(np.ascontiguousarray(words[:, :, split:]), n_cases),
    )


def load_scan(
    folder: Path, score: str, min_distance_bp: int, max_r2: float
) -> tuple[ScanData, pd.DataFrame, pd.DataFrame]:
    """Scan data, sites and samples of results/reorder, with the permitted partners."""
    words, sites, samples = read_reordered(folder)
    n_cases = int((samples["class"] == "case").sum())
    n_controls = len(samples) - n_cases
    total, part = score_tables(score, len(samples))
    allowed = permitted_partners(words, sites, n_controls, n_cases, min_distance_bp, max_r2)
    classes = split_classes(words, n_controls, n_cases)
    return (
        ScanData(classes, total, part, sites["rank"].to_numpy(np.int32), allowed),
        sites,
        samples,
    )


def genotypes_of(words, sites: pd.DataFrame, n_controls: int, n_cases: int) -> np.ndarray:
    """ALT counts of the planes' sites, int8 (n_sites, n_samples), -1 missing; controls first."""
    labels = sites[["state0", "state1", "other"]].to_numpy(np.int8)
    labels = np.insert(labels, 2, -1, axis=1)  # states: stored, stored, missing, other
    states = unpack_states(words, n_controls, n_cases)
    return np.take_along_axis(labels, states.astype(np.int64), axis=1)


def permitted_partners(words, sites, n_controls, n_cases, min_distance_bp, max_r2):
    """Bit matrix of `backend.ScanData.allowed`, or None where nothing is forbidden."""
    if min_distance_bp <= 0 and max_r2 >= 1:
        return None
    n = len(sites)
    chrom, pos = pd.factorize(sites.chrom)[0], sites.pos.to_numpy()
    if max_r2 < 1:
        dosage = genotypes_of(words, sites, n_controls, n_cases)
        called = (dosage >= 0).astype(np.float32)
        dosage = np.maximum(dosage, 0).astype(np.float32)
        square = dosage * dosage
    out = np.zeros((n, -(-n // 64) * 8), np.uint8)
    for first in range(0, n, 1024):
        rows = slice(first, min(n, first + 1024))
        permitted = np.ones((rows.stop - first, n), bool)
        if min_distance_bp > 0:
            near = np.abs(pos[rows, None] - pos[None]) < min_distance_bp
            permitted &= ~((chrom[rows, None] == chrom[None]) & near)
        if max_r2 < 1:
            # float32 sums of small integers are exact below 2**24.
            k = (called[rows] @ called.T).astype(np.float64)
            a, b = dosage[rows] @ called.T, called[rows] @ dosage.T
            aa, bb = square[rows] @ called.T, called[rows] @ square.T
            ab = (dosage[rows] @ dosage.T).astype(np.float64)
            cov = k * ab - a.astype(np.float64) * b
            var = (k * aa - a.astype(np.float64) ** 2) * (k * bb - b.astype(np.float64) ** 2)
            permitted &= ~(cov * cov > max_r2 * var)
        bits = np.packbits(permitted, axis=1, bitorder="little")
        out[rows, : bits.shape[1]] = bits
    return out.view(np.uint64)


def count_tests(n_sites: int, order: int) -> int:
    """Combinations of a whole scan, before any is excluded as a partner."""
    return math.comb(n_sites, order)


def unit_range(n_sites: int, order: int, unit: int, n_units: int) -> range:
    """The first sites of unit `unit` of `n_units`: equal numbers of combinations, about."""

    def bound(k: int) -> int:
        # C(n - x, order) combinations start at x or later.
        rest = (1 - k / n_units) ** (1 / order)
        return n_sites if k == n_units else round(n_sites * (1 - rest))

    return range(bound(unit), bound(unit + 1))


def scanner(backend: Backend, order: int):
    """The scan of this order."""
    return backend.scan_pairs if order == 2 else backend.scan_triples


def measure_rate(data: ScanData, order: int, backend: Backend) -> float:
    """Combinations a second on this device, from a scan of evenly spaced sites."""
    n = min(data.n_sites, PROBE_SITES[order])
    rows = np.linspace(0, data.n_sites - 1, n).astype(int)
    classes = tuple(OneHot(one.words[rows], one.n_samples) for one in data.classes)
    probe = ScanData(classes, data.total, data.part, data.rank[rows])
    scan = scanner(backend, order)
    scan(probe, range(1), 1)  # compiles
    started = time.perf_counter()
    scan(probe, range(n), 1000)
    return count_tests(n, order) / max(time.perf_counter() - started, 1e-6)


def plan_scan(
    folder: Path,
    backend: Backend,
    plan_out: Path,
    *,
    orders: list[int],
    score: str,
    permutations: dict[int, int],
    max_device_hours: float,
) -> dict[str, str]:
    """Forecast tests, device-hours and memory; refuse what exceeds `max_device_hours`.

    The measured rate and what follows from it are returned for the log; the file holds only what
    the data decide, so that it stays the same from run to run.
    """
    data, _, _ = load_scan(folder, score, 0, 1.0)
    plan, lines, hours = {"sites": data.n_sites, "samples": data.n_samples}, {}, 0.0
    for order in orders:
        tests = count_tests(data.n_sites, order)
        scans = 1 + permutations[order]
        rate = measure_rate(data, order, backend)
        hours += tests * scans / rate / 3600
        plan[NAMES[order]] = {"tests": tests, "scans": scans}
        lines[NAMES[order]] = (
            f"{tests} tests, {scans} scans, {rate:.3g} tests/s, "
            f"{tests * scans / rate / 3600:.3g} device-hours"
        )
    lines["memory"] = f"{sum(one.words.nbytes for one in data.classes) / 1e6:.0f} MB of planes"
    lines["device_hours"] = f"{hours:.3g} (epistasis.max_device_hours: {max_device_hours:g})"
    if hours > max_device_hours:
        raise UserError(
            f"config/config.yaml: the epistasis scans of {data.n_sites} sites and "
            f"{data.n_samples} samples would take about {hours:.3g} device-hours at the rate "
            f"measured here, above epistasis.max_device_hours = {max_device_hours:g}; raise it, "
            "or take fewer sites (epistasis.restrict), orders or permutations."
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
) -> dict[str, int]:
    """One unit of a scan: its best `top` hits as npz (cost, sites)."""
    data, _, _ = load_scan(folder, score, min_distance_bp, max_r2)
    first = unit_range(data.n_sites, order, unit, n_units)
    hits = scanner(backend, order)(data, first, top)
    write_npz(out, cost=hits.cost, sites=hits.sites)
    return {"first_sites": len(first), "hits": len(hits.cost)}


def merge_hits(parts: list[Hits], rank: np.ndarray, top: int) -> Hits:
    """The best `top` of all parts, in the order of hits."""
    cost = np.concatenate([part.cost for part in parts])
    sites = np.concatenate([part.sites for part in parts])
    ranks = np.sort(rank[sites], axis=1)
    best = np.lexsort((*ranks.T[::-1], cost))[:top]
    return Hits(cost[best], sites[best])


def permuted(words, samples: pd.DataFrame, data: ScanData, seed: int, index: int) -> ScanData:
    """The scan with phenotypes permuted within strata; permutation `index` of `seed`."""
    rng = np.random.default_rng([seed, index])
    n_controls, n_cases = (one.n_samples for one in data.classes)
    case = np.arange(n_controls + n_cases) >= n_controls
    drawn = case.copy()
    for members in samples.groupby("stratum", sort=True).indices.values():
        drawn[members] = rng.permutation(case[members])
    states = unpack_states(words, n_controls, n_cases)
    order = np.argsort(drawn, kind="stable")
    words = pack_states(states[:, order], n_controls)
    return ScanData(
        split_classes(words, n_controls, n_cases), data.total, data.part, data.rank, data.allowed
    )
