"""Find, check and continue earlier closures.

A closure is kept in its native number type under a name keyed by its set of cohorts, with a JSON
file that describes what it was made from. When cohorts arrive, the largest closure whose samples
are all still present with unchanged weights is continued in O(m n**2) instead of starting from
scratch. In fixed point the result is bit-identical.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ..core.files import read_json
from ..core.threads import run_tasks
from ..core.triangle import Triangle
from ..engine.minplus import BASE, infinity
from ..io.sites import chunks
from .closure import Backend, insert_paths
from .graph import Graph
from .weights import FIXED, Number

log = logging.getLogger(__name__)
#: Rows of weights that are digested together.
ROWS_A_DIGEST = 256


@dataclass(frozen=True)
class Earlier:
    """A closure that can be continued."""

    path: Path
    #: Present positions of its samples, in the closure's order.
    positions: np.ndarray
    closure: np.ndarray


def digest_weights(direct: np.ndarray, positions: np.ndarray, threads: int = 1) -> str:
    """Digest of the weights between some samples, in that order: of digests of runs of rows."""
    whole = direct.flags.c_contiguous and np.array_equal(positions, np.arange(len(direct)))

    def work(first: int, last: int) -> bytes:
        if whole:  # the same rows, without copies
            return hashlib.blake2b(direct[first:last], digest_size=16).digest()
        content = hashlib.blake2b(digest_size=16)
        for position in positions[first:last]:
            content.update(np.ascontiguousarray(direct[position, positions]))
        return content.digest()

    parts = run_tasks(work, chunks(len(positions), ROWS_A_DIGEST), threads)
    return hashlib.blake2b(b"".join(parts), digest_size=16).hexdigest()


def describe_closure(
    direct: np.ndarray,
    names: list[str],
    number: Number,
    code: str,
    graph: Graph,
    threads: int = 1,
) -> dict:
    """Description of a closure that a later run checks before it continues the closure."""
    return {
        "samples": names,
        "dtype": number.dtype,
        "scale": number.scale,
        "code": code,
        "graph": asdict(graph),
        "weights": digest_weights(direct, np.arange(len(names)), threads),
    }


def find_earlier(
    own: Path,
    direct: np.ndarray,
    names: list[str],
    number: Number,
    code: str,
    graph: Graph,
    threads: int = 1,
) -> Earlier | None:
    """The largest closure in the folder of `own` that can be continued with these weights, or None.

    Its samples are any subset of the present ones. Number type, scale, code, graph and every
    weight between its samples must be the same, which implies the same panel, metric and alpha.
    Only fixed-point closures are continued: floats would depend on the order of arrival.
    """
    if number.dtype not in FIXED:
        return None
    position = {name: index for index, name in enumerate(names)}
    found = []
    label = own.name.rsplit(".", 2)[0]  # alpha2.5.{digest of the cohort set}.npy
    for description in sorted(own.parent.glob(f"{label}.*.json")):
        path = description.with_suffix(".npy")
        if path == own or not path.exists():
            continue
        try:
            about = read_json(description)
            same = [about.get(key) for key in ("dtype", "scale", "code", "graph")] == [
                number.dtype,
                number.scale,
                code,
                asdict(graph),
            ]
            samples = about.get("samples", [])
            if same and samples and all(sample in position for sample in samples):
                found.append((len(samples), path, about))
        except (KeyError, TypeError, json.JSONDecodeError, UnicodeDecodeError) as reason:
            log.warning("%s is damaged (%s): not used", description, reason)
    for n_samples, path, about in sorted(found, key=lambda one: (-one[0], one[1])):
        positions = np.array([position[sample] for sample in about["samples"]])
        if digest_weights(direct, positions, threads) != about["weights"]:
            log.info("%s was made from different weights: not used", path)
            continue
        try:
            triangle = Triangle(path)
        except (ValueError, OSError, EOFError) as reason:
            log.warning("%s is damaged (%s): not used", path, reason)
            continue
        if len(triangle) != n_samples or triangle.dtype != number.dtype:
            log.warning("%s does not match its description: not used", path)
            continue
        return Earlier(path, positions, triangle[:])
    return None


def leading_closure(
    closure: np.ndarray, weights: np.ndarray, held: Number, direct: np.ndarray, number: Number
) -> Earlier | None:
    """A closure in memory, if `direct` can continue it by the rules of `find_earlier`.

    Parameters
    ----------
    closure, weights : arrays, (k, k)
        Closure and direct weights of the leading samples, in number type `held`.
    direct : array, (n, n)
        Weights of all samples, in number type `number`.
    """
    k = len(closure)
    same = (held.dtype, held.scale) == (number.dtype, number.scale) and number.dtype in FIXED
    if not same or not np.array_equal(direct[:k, :k], weights):
        return None
    return Earlier(Path("memory"), np.arange(k), closure)


def continue_closure(
    earlier: Earlier, direct: np.ndarray, backend: Backend
) -> tuple[np.ndarray, dict]:
    """Extend the closure of some samples to all samples.

    Parameters
    ----------
    earlier : Earlier
    direct : array, (n, n)
        Weights of all samples, in the earlier closure's number type.

    Returns
    -------
    closure : array, (n, n)
    record : dict
        Numbers of samples closed before and inserted, and how much old geodesics were shortened
        by newcomers.
    """
    n, n_old = len(direct), len(earlier.positions)
    is_new = np.ones(n, bool)
    is_new[earlier.positions] = False
    order = np.concatenate([earlier.positions, np.flatnonzero(is_new)])
    # pad to whole tiles: samples without edges between the old and the new ones
    gap = -n_old % BASE
    place = np.concatenate([np.arange(n_old), n_old + gap + np.arange(n - n_old)])
    w = np.full((n + gap, n + gap), infinity(direct.dtype), direct.dtype)
    np.fill_diagonal(w, 0)
    w[np.ix_(place, place)] = direct[np.ix_(order, order)]
    w[:n_old, :n_old] = earlier.closure
    held = backend.minplus().hold(w)
    insert_paths(held, n_old + gap, backend)
    backend.minplus().fetch(held, w)
    closure = np.empty_like(direct)
    closure[np.ix_(order, order)] = w[np.ix_(place, place)]
    return closure, {
        "continued": earlier.path.name,
        "closed_before": n_old,
        "inserted": n - n_old,
        **_displacement(np.asarray(earlier.closure), w[:n_old, :n_old]),
    }


def _displacement(before: np.ndarray, after: np.ndarray) -> dict:
    """How many old pairs were shortened, and by what share of their length."""
    upper = np.triu_indices(len(before), 1)
    old, new = before[upper], after[upper]
    moved = new < old
    lengths = np.where(old >= infinity(old.dtype), np.inf, old.astype(np.float64))[moved]
    with np.errstate(invalid="ignore"):
        share = np.where(np.isinf(lengths), 1.0, 1 - new[moved] / np.where(lengths, lengths, 1))
    return {
        "old_pairs": int(moved.size),
        "old_pairs_shortened": int(moved.sum()),
        "median_shortening": float(np.median(share)) if share.size else 0.0,
        "largest_shortening": float(share.max(initial=0.0)),
    }


def shortest_rows(direct: np.ndarray, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Lengths from some samples to all, by Dijkstra's algorithm: O(n**2) per row.

    int64 or float64; `infinity` of the weights' dtype where there is no path.
    """
    top = infinity(direct.dtype)
    wide = np.int64 if direct.dtype.kind == "i" else np.float64
    beyond = np.iinfo(wide).max if wide is np.int64 else np.inf
    for row in rows:
        lengths = direct[row].astype(wide)
        settled = np.zeros(len(direct), bool)
        for _ in range(len(direct)):
            nearest = int(np.where(settled, beyond, lengths).argmin())
            if settled[nearest] or lengths[nearest] >= top:
                break
            settled[nearest] = True
            np.minimum(lengths, lengths[nearest] + direct[nearest].astype(wide), out=lengths)
        yield np.minimum(lengths, top)
