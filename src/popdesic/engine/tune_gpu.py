"""Choice of the micro-kernel and its tile parameters by measurement on the current device.

Every variant gives the same integers, so the choice is one of time alone. The first problem of
a class on a device measures the candidates on random planes of that class and keeps the winner
in ``tune.json`` in the user's cache folder, under the device, its driver and a digest of the
kernel sources. `usual.tune_usual` does so for the usual classes in advance.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Callable

import cupy
import numpy as np

from .bitgemm_gpu import Launch, launch
from .devices import Device, scan_kernels
from .layout import BLOCK_ROWS, packed_bytes
from .rare_sites_plan import RARE_SITES
from .sources import read_source
from .terms import PRODUCT, Terms
from .tune_plan import choice_name, plan_for, read_cache, variants_to_measure, write_cache
from .variants import MICRO_KERNELS, PACK_FINISH, ShapeClass, Variant, block_order

log = logging.getLogger(__name__)

#: A candidate is measured on ever more stages until one launch takes this long (seconds).
LONG_ENOUGH = 0.03
#: Timed launches of each candidate then; the first is not counted.
REPEATS = 3

#: Products that are measured to choose the kernel of scans.
SCAN_CLASS = ShapeClass.of(2048, 2048, 1 << 16, True, True)


@functools.cache
def source_digest() -> str:
    """Changes with every kernel and its layout: choices measured before are then measured again."""
    sources = (PACK_FINISH, RARE_SITES, *(source for source, _ in MICRO_KERNELS.values()))
    texts = (" ".join((read_source(one.file), *one.options())) for one in sources)
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]


def measure_variants(
    device: Device, variants: list[Variant], terms: Terms, shape: ShapeClass
) -> list:
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


def device_key(device: Device) -> str:
    """What a measurement holds for: the device, its driver and the kernels."""
    return (
        f"{device.name} sm_{device.capability} shared {device.shared_bytes} "
        f"driver {device.driver} kernels {source_digest()}"
    )


def choose_variant(
    device: Device, terms: Terms, shape: ShapeClass, kernel: str | None = None
) -> Variant:
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
    variants = variants_to_measure(device, kernel)
    if len(variants) == 1:
        return variants[0]
    shape = shape.measured
    key, name = device_key(device), choice_name(shape, terms, kernel)
    known = read_cache().get(key, {}).get(name)
    if known:
        for variant in variants:
            if variant.label == known["variant"]:
                return variant
    timed = measure_variants(device, variants, terms, shape)
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


def choose_scan_kernel(device: Device) -> str:
    """The micro-kernel by which a device scans (epistasis).

    wgmma where there is one. Else the kernel whose products, which POPC cannot shorten by XOR, are
    the fastest: devices later than 9.0 may compute one-bit products of `mma.sync` slowly.
    """
    kernels = scan_kernels(device)
    if kernels[0] == "wgmma" or len(kernels) == 1:
        return kernels[0]
    return choose_variant(device, PRODUCT, SCAN_CLASS).kernel
