"""What a usual study asks of a GPU, compiled and measured in advance (``popdesic tune``).

NVRTC takes seconds for a file of kernels, and CuPy a tenth of a second for each operation on
arrays; both keep what they compile in CuPy's folder (CUPY_CACHE_DIR). So every kind of work is done
once on little data (`study.rehearsal`), which compiles what it launches, each kind in a process of
its own. Then the micro-kernels are measured, which stand compiled.
"""

from __future__ import annotations

import cupy

from .bitgemm_gpu import load_variant
from .devices import Device, scan_kernels
from .rare_sites_gpu import site_costs
from .terms import KINSHIP, LD, PRODUCT, SQUARED
from .tune_gpu import choose_scan_kernel, choose_variant
from .tune_plan import plan_for, variants_to_measure
from .variants import MEASURED_SIDES, MOST_SAMPLES, ShapeClass

#: Sides of the problems that `tune_usual` measures, and their sites.
SAMPLES, SITES = tuple(side for side, _ in MEASURED_SIDES), 1 << 20
#: Products of jobs with the default configuration: terms, whether without missing genotypes, and
#: the most samples a side. Sites in LD are compared in small blocks.
TERMS = {
    "distances": (SQUARED, True, MOST_SAMPLES),
    "distances, with missing": (SQUARED, False, MOST_SAMPLES),
    "comparisons": (KINSHIP, True, MOST_SAMPLES),
    "comparisons, with missing": (KINSHIP, False, MOST_SAMPLES),
    "LD": (PRODUCT, True, SAMPLES[0]),
    "LD, with missing": (LD, False, SAMPLES[0]),
}


def compile_variant(device: Device, label: str) -> None:
    """Compile a micro-kernel that `tune_usual` will measure, for all products of `TERMS`."""
    variant = next(one for one in variants_to_measure(device) if one.label == label)
    for terms, complete, *_ in TERMS.values():
        for one in plan_for(variant, terms, complete).passes:
            load_variant(variant, one, complete, device)


def tune_usual(device: Device, samples: tuple[int, ...] = SAMPLES) -> list[str]:
    """Measure the classes of `TERMS` in advance.

    Parameters
    ----------
    device : Device
        The current device.
    samples : sides of the problems.

    Returns
    -------
    list of str : one line a class, with the variant chosen.
    """
    lines = []
    for n in samples:
        for name, (terms, complete, most) in TERMS.items():
            if n > most:
                continue
            shape = ShapeClass.of(n, n, SITES, False, complete)
            try:
                variant = choose_variant(device, terms, shape)
                if terms is SQUARED:  # the costs of rare sites hold for all products
                    site_costs(device, variant, terms, shape)
                chosen = variant.label
            except cupy.cuda.memory.OutOfMemoryError:
                chosen = "not measured: the device has too little free memory"
            lines.append(f"{name}, {n} x {n}: {chosen}")
    if scan_kernels(device):
        lines.append(f"epistasis scans: {choose_scan_kernel(device)}")
    return lines
