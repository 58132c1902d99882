"""What is measured to choose a micro-kernel, and where choices are kept; see `tune_gpu.py`.

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

import json
import logging
import os
import tempfile
from pathlib import Path

from .bitgemm_plan import Plan, plan_products, plan_xor
from .devices import Device, supported_kernels
from .layout import STAGE_BITS, TILE_BYTES
from .terms import Terms
from .variants import SLOT_BYTES, SLOT_OVERHEAD, ShapeClass, Variant

log = logging.getLogger(__name__)


def choice_name(shape: ShapeClass, terms: Terms, kernel: str | None) -> str:
    """The name under which the choice for some terms is kept."""
    products = plan_products(terms, shape.complete)
    return (
        f"{kernel or 'any'} {shape.samples_a}x{shape.samples_b}x{shape.stages * STAGE_BITS}"
        f"{' symmetric' if shape.symmetric else ''}{'' if shape.complete else ' with missing'}"
        f" {products.n_products} products"
        f"{'' if plan_xor(terms, shape.complete) is None else ' of |a-b|'}"
    )


def variants_to_measure(device: Device, kernel: str | None = None) -> list[Variant]:
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


def cache_file() -> Path:
    """Where choices are kept: ``$XDG_CACHE_HOME/popdesic/tune.json`` or below ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "popdesic" / "tune.json"


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
