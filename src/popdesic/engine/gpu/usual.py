"""What a usual study asks of a GPU, compiled and measured in advance (``popdesic tune``).

NVRTC takes seconds for a file of kernels, and CuPy a tenth of a second for each operation on
arrays; both keep what they compile in CuPy's folder (CUPY_CACHE_DIR). So every kind of work is done
once on little data (`study.rehearsal`), which compiles what it launches, each kind in a process of
its own. Then the micro-kernels are measured, which stand compiled.
"""

from __future__ import annotations

import cupy

from ..terms import KINSHIP, LD, PRODUCT, SQUARED, SQUARED_ALONE
from .bitgemm import load_variant
from .devices import Device, scan_kernels
from .rare_sites import site_costs
from .tune import choose, choose_scan_kernel
from .tune_plans import MEASURED_SIDES, MOST_SAMPLES, ShapeClass, candidates, plan_for

#: Sides of the problems that `tune_usual` measures, and their sites.
SAMPLES, SITES = tuple(side for side, _ in MEASURED_SIDES), 1 << 20
#: Products of jobs with the default configuration: terms, whether without missing genotypes, the
#: least and the most samples a side. Close pairs are sought among many people; sites in LD are
#: compared in small blocks.
TERMS = {
    "distances": (SQUARED, True, 0, MOST_SAMPLES),
    "distances, with missing": (SQUARED, False, 0, MOST_SAMPLES),
    "comparisons": (KINSHIP, True, 0, MOST_SAMPLES),
    "comparisons, with missing": (KINSHIP, False, 0, MOST_SAMPLES),
    "LD": (PRODUCT, True, 0, SAMPLES[0]),
    "LD, with missing": (LD, False, 0, SAMPLES[0]),
    "close pairs": (SQUARED_ALONE, True, MOST_SAMPLES, MOST_SAMPLES),
    "close pairs, with missing": (SQUARED_ALONE, False, MOST_SAMPLES, MOST_SAMPLES),
}


def compile_variant(device: Device, label: str) -> None:
    """Compile a micro-kernel that `tune_usual` will measure, for all products of `TERMS`."""
    variant = next(one for one in candidates(device) if one.label == label)
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
        for name, (terms, complete, least, most) in TERMS.items():
            if not least <= n <= most:
                continue
            shape = ShapeClass.of(n, n, SITES, False, complete)
            try:
                variant = choose(device, terms, shape)
                if terms is SQUARED:  # the costs of rare sites hold for all products
                    site_costs(device, variant, terms, shape)
                chosen = variant.label
            except cupy.cuda.memory.OutOfMemoryError:
                chosen = "not measured: the device has too little free memory"
            lines.append(f"{name}, {n} x {n}: {chosen}")
    if scan_kernels(device):
        lines.append(f"epistasis scans: {choose_scan_kernel(device)}")
    return lines
