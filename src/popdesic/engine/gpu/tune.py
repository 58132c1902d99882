"""Choice of the micro-kernel and its tile parameters by measurement on the device at hand.

Every variant gives the same integers, so the choice is one of time alone. The first problem of
a class on a device measures the candidates on random planes of that class and keeps the winner
in ``tune.json`` in the user's cache folder, under the device, its driver and a digest of the
kernel sources. `tune_usual` does so for the usual classes in advance.

Candidates for the ordinary cores come from the device's own figures, after Binder, Low and
Popovici, "A Portable GPU Framework for SNP Comparisons", section V, in whose words a thread
block makes m_r x n_r results from a tile of k_c words in shared memory:

- m_r, the vector width: here 4 samples of one 16-byte load, two of them a thread (8 x 8 results
  reach the registers' limit, n_r <= registers / threads);
- m_c, banks / clusters: 32 / 4 = 8 words, which is why a warp reads A by broadcast;
- k_c, shared memory / (4 x banks): an upper bound, 4 or 8 words of each plane here so that
  several thread blocks share a multiprocessor and hide latency.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cupy
import numpy as np

from ..terms import SQUARED, Terms
from .bitgemm import Launch, launch, source_digest
from .plans import (
    BLOCK_ROWS,
    SLOT_BYTES,
    SLOT_OVERHEAD,
    STAGE_BITS,
    TILE_BYTES,
    Device,
    Plan,
    Variant,
    block_order,
    divide_up,
    packed_bytes,
    plan_products,
    plan_xor,
    supported_kernels,
)

log = logging.getLogger(__name__)

#: Largest samples and stages measured: beyond them only the time of the measurement changes.
MOST_SAMPLES, MOST_STAGES = 16384, 1024
#: A candidate is measured on ever more stages until one launch takes this long (seconds).
LONG_ENOUGH = 0.03
#: Timed launches of each candidate then; the first is not counted.
REPEATS = 3

#: Tiles and sites that `tune_usual` measures.
USUAL_SAMPLES, USUAL_SITES = (256, 2048, 16384), 1 << 20


@dataclass(frozen=True)
class ShapeClass:
    """Problems that share one choice: sizes rounded up to powers of two, and the terms.

    `samples_a`, `samples_b` and `stages` (of 1 024 sites) are capped at what is measured.
    """

    samples_a: int
    samples_b: int
    stages: int
    symmetric: bool
    complete: bool

    @classmethod
    def of(cls, m: int, n: int, n_sites: int, symmetric: bool, complete: bool) -> ShapeClass:
        def up(value: int, least: int, most: int) -> int:
            return min(most, max(least, 1 << (value - 1).bit_length()))

        return cls(
            up(m, BLOCK_ROWS, MOST_SAMPLES),
            up(n, BLOCK_ROWS, MOST_SAMPLES),
            up(divide_up(n_sites, STAGE_BITS), 1, MOST_STAGES),
            symmetric,
            complete,
        )


def candidates(device: Device, kernel: str | None = None) -> list[Variant]:
    """The variants worth measuring on a device, or those of one named micro-kernel."""
    kernels = supported_kernels(device) if kernel is None else (kernel,)
    stages = (device.shared_bytes - SLOT_OVERHEAD) // SLOT_BYTES
    found = []
    if "wgmma" in kernels:
        found += [
            Variant("wgmma", (("CLUSTER", c), ("LOCKSTEP", step), ("STAGES", stages)))
            for c, step in ((2, 2), (2, 4), (2, 8), (2, 0), (1, 4))
        ]
    if "mma" in kernels:
        for width, blocks in ((2, 1), (1, 2)):
            slots = (device.shared_bytes // blocks - SLOT_OVERHEAD) // ((1 + width) * TILE_BYTES)
            if slots >= 2:
                found += [
                    Variant("mma", (("B_TILES", width), ("LOCKSTEP", e), ("STAGES", min(slots, 4))))
                    for e in (16, 0)
                ]
    if "popc" in kernels:
        found += [Variant("popc", (("BLOCKS_PER_SM", b), ("KC", k))) for b, k in ((2, 4), (1, 8))]
    return found


def plan_for(variant: Variant, terms: Terms, complete: bool) -> Plan:
    """The cheapest plan that a variant can run."""
    return (plan_xor(terms, complete) if variant.xor else None) or plan_products(terms, complete)


def measure(device: Device, variants: list[Variant], terms: Terms, shape: ShapeClass) -> list:
    """Seconds a stage that each variant takes for a shape class, on random planes.

    Returns
    -------
    list of (float, Variant), fastest first
    """
    timed = []
    blocks = cupy.asarray(
        block_order(shape.samples_a // BLOCK_ROWS, shape.samples_b // BLOCK_ROWS, shape.symmetric)
    )
    for variant in variants:
        plan = plan_for(variant, terms, shape.complete)
        if not plan.passes:
            return [(0.0, variant)]
        acc = cupy.zeros((plan.n_slots, shape.samples_a, shape.samples_b), np.int32)
        n_stages = min(16, shape.stages)
        while True:
            a, b = (
                cupy.random.randint(
                    0, 2**32, packed_bytes(n, len(plan.letters), n_stages) // 4, np.uint32
                ).view(np.uint8)
                for n in (shape.samples_a, shape.samples_b)
            )
            work = Launch(a, b, acc, blocks, n_stages, shape.symmetric)
            seconds = time_action(functools.partial(launch, variant, device, plan, work))
            if seconds >= LONG_ENOUGH or n_stages == shape.stages:
                break
            n_stages = min(4 * n_stages, shape.stages)
        timed.append((seconds / n_stages, variant))
        del a, b, acc, work
    return sorted(timed, key=lambda one: one[0])


def time_action(action: Callable[[], object]) -> float:
    """Seconds of `action` on the current stream: the median of REPEATS, the first not counted."""
    seconds = []
    for _ in range(REPEATS):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        action()
        stop.record()
        stop.synchronize()
        seconds.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return float(np.median(seconds[1:]))


def cache_file() -> Path:
    """Where choices are kept: ``$XDG_CACHE_HOME/popdesic/tune.json`` or below ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "popdesic" / "tune.json"


def device_key(device: Device) -> str:
    """What a measurement holds for: the device, its driver and the kernels."""
    return f"{device.name} sm_{device.capability} driver {device.driver} kernels {source_digest()}"


def read_cache() -> dict:
    try:
        return json.loads(cache_file().read_text())
    except (OSError, ValueError):
        return {}


def write_cache(key: str, shape: str, entry: dict) -> None:
    """Add one choice. A cache that cannot be written costs a new measurement, nothing else."""
    try:
        path = cache_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        content = read_cache()
        content.setdefault(key, {})[shape] = entry
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            json.dump(content, file, indent=1, sort_keys=True)
        Path(file.name).replace(path)
    except OSError as reason:
        log.info("the measured choice of kernel is not kept: %s", reason)


def choose(device: Device, terms: Terms, shape: ShapeClass, kernel: str | None = None) -> Variant:
    """The fastest variant for a shape class: from the cache, else measured now and kept.

    Parameters
    ----------
    device : Device
        The current device.
    terms : Terms
    shape : ShapeClass
    kernel : str, optional
        Only this micro-kernel's variants are considered.
    """
    variants = candidates(device, kernel)
    if len(variants) == 1:
        return variants[0]
    products = plan_products(terms, shape.complete)
    key = device_key(device)
    name = (
        f"{kernel or 'any'} {shape.samples_a}x{shape.samples_b}x{shape.stages * STAGE_BITS}"
        f"{' symmetric' if shape.symmetric else ''}{'' if shape.complete else ' with missing'}"
        f" {products.n_products} products"
        f"{'' if plan_xor(terms, shape.complete) is None else ' of |a-b|'}"
    )
    known = read_cache().get(key, {}).get(name)
    if known:
        for variant in variants:
            if variant.label == known["variant"]:
                return variant
    timed = measure(device, variants, terms, shape)
    seconds, best = timed[0]
    log.info(
        "%s, %s: measured %s; takes %s",
        device.name,
        name,
        ", ".join(f"{v.label} {s * 1e6:.2f} us a stage" for s, v in timed),
        best.label,
    )
    write_cache(key, name, {"variant": best.label, "seconds_per_stage": seconds})
    return best


def tune_usual(device: Device, samples: tuple[int, ...] = USUAL_SAMPLES) -> list[str]:
    """Measure the usual classes of distance tiles in advance, for ``popdesic tune``.

    Parameters
    ----------
    device : Device
        The current device.
    samples : sizes of square tiles.

    Returns
    -------
    list of str : one line a class, with the variant chosen.
    """
    lines = []
    for n in samples:
        for complete in (True, False):
            for symmetric in (True, False):
                shape = ShapeClass.of(n, n, USUAL_SITES, symmetric, complete)
                variant = choose(device, SQUARED, shape)
                lines.append(
                    f"{n} x {n} samples{' (one cohort)' if symmetric else ''}"
                    f"{'' if complete else ', with missing'}: {variant.label}"
                )
    return lines
