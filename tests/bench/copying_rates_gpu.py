"""Rates of the passes of haplotype copying on one GPU: `bench_copying.py --device gpu`.

The limit is a loop over states in registers with the four instructions of a step, a multiply-add,
two additions and a product, without memory, sums over threads or division. Haplotypes of the panel
are mosaics of ancestors, and targets of the panel's haplotypes: the doses' rate depends on how
many haplotypes have a posterior that counts. In a second run all sites are typed: no doses.
"""

from __future__ import annotations

import argparse
import time

import cupy
import numpy as np
from bench_minplus_gpu import timed
from timing import print_table

from popdesic.copying import copying, copying_gpu
from popdesic.engine.backend_gpu import GpuBackend

LIMIT = r"""
extern "C" __global__ void limit_cells(const float* given, float* out, int rounds) {
  const float stay = given[0], jump = given[1], loss = given[2];
  float state[32];
  unsigned word = threadIdx.x * 2654435761u, units = 0;
  for (int i = 0; i < 32; i++) state[i] = threadIdx.x + i;
  for (int r = 0; r < rounds; r++) {
    word = word * 1664525u + 1013904223u;
#pragma unroll
    for (int i = 0; i < 32; i++) {
      float value = __fmaf_rn(state[i], stay, jump);
      if (word & 1u << i) units += __float_as_uint(__fadd_rn(value, 8388608.0f)) - 0x4B000000u;
      else value = __fmul_rn(value, loss);
      state[i] = value;
    }
  }
  float sum = units;
  for (int i = 0; i < 32; i++) sum += state[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""
#: Sites of the panel from one typed site to the next, and cM: 600 000 typed of 40 M on 3 500 cM.
APART, CM = 66, 3500 / 600_000
#: Ancestors of the panel, and how long (cM) their parts in it are, and its parts in the targets.
ANCESTORS, PART_CM, COPIED_CM = 500, 0.5, 5.0
MOST_CM = 39.0


def limit_of(backend: GpuBackend) -> float:
    """Cells a second of the loop in registers."""
    limit = cupy.RawModule(code=LIMIT, options=("-std=c++17",)).get_function("limit_cells")
    blocks, threads, rounds = backend.device.multiprocessors * 4, 256, 20_000
    given = cupy.asarray(np.array([0.9, 1.0, 0.001], np.float32))
    out = cupy.empty(blocks * threads, np.float32)
    seconds = timed(lambda: limit((blocks,), (threads,), (given, out, np.int32(rounds))))
    return blocks * threads * 32.0 * rounds / seconds


def timed_launches(launches: list[tuple]) -> None:
    """Put the name of each kernel and the events around it into a list."""
    load = copying_gpu.load_function

    def load_timed(*given):
        kernel = load(*given)

        def launch(*arguments) -> None:
            start, stop = cupy.cuda.Event(), cupy.cuda.Event()
            start.record()
            kernel(*arguments)
            stop.record()
            launches.append((given[1], start, stop))

        return launch

    copying_gpu.load_function = load_timed


def mosaic(rng: np.random.Generator, copied: np.ndarray, n: int, cm: float, part: float):
    """Rows of `n` mosaics of `copied` (sites, haplotypes), in runs of 64 sites of `cm` each."""
    sources = rng.integers(copied.shape[1], size=n)
    for start in range(0, len(copied), 64):
        new = rng.random(n) < 64 * cm / part
        sources[new] = rng.integers(copied.shape[1], size=new.sum())
        yield copied[start : start + 64][:, sources]


def drawn_panel(rng: np.random.Generator, n: int, n_typed: int, n_targets: int):
    """Panel as bits (sites, words); alleles of targets at the typed sites, 0.1 % of them wrong."""
    n_sites = APART * n_typed
    frequencies = 1 / rng.uniform(1, ANCESTORS, n_sites)  # most sites are rare
    frequencies[::APART] = rng.uniform(0.05, 0.5, n_typed)  # those of an array are common
    ancestors = (rng.random((n_sites, ANCESTORS)) < frequencies[:, None]).astype(np.uint8)
    bits, typed = np.zeros((n_sites, -(-n // 64) * 8), np.uint8), []
    for number, part in enumerate(mosaic(rng, ancestors, n, CM / APART, PART_CM)):
        packed = np.packbits(part, axis=1, bitorder="little")
        bits[64 * number :][: len(part), : packed.shape[1]] = packed
        typed.append(part[-(64 * number) % APART :: APART])
    targets = np.concatenate(list(mosaic(rng, np.concatenate(typed), n_targets, CM, COPIED_CM)))
    targets ^= rng.random(targets.shape) < 0.001
    return bits.view(np.uint64), np.ascontiguousarray(targets.T.astype(np.int8))


def bench_rates(options: argparse.Namespace) -> None:
    """Print rates for panels of some sizes."""
    backend, launches = GpuBackend(), []
    limit = limit_of(backend)
    print(f"{backend.describe()}\nlimit: {limit / 1e12:.2f} T cells/s")
    timed_launches(launches)
    rng, rows = np.random.default_rng(options.seed), []
    model = {"ne": 1e5, "mismatch": 1e-4}
    for n in options.haplotypes:
        n_typed = min(max(65, options.cells // n // options.copied), int(MOST_CM / CM))
        bits, alleles = drawn_panel(rng, n, n_typed, options.copied)
        cm = np.linspace(0, CM * n_typed, len(bits))
        typed = np.arange(0, len(bits), APART)
        spent = []
        for few in (False, True):
            panel = copying.Haplotypes(*((bits[typed], n, cm[typed]) if few else (bits, n, cm)))
            given = (panel, np.arange(n_typed) if few else typed)
            for _ in range(2):  # kernels are compiled the first time
                launches.clear()
                started = time.perf_counter()
                found = copying.impute_alleles(*given, alleles, **model, backend=backend)
                seconds = time.perf_counter() - started
            spent.append((seconds, dict.fromkeys(("copy_forward", "copy_backward"), 0.0)))
            for name, start, stop in launches:
                if name in spent[-1][1]:
                    spent[-1][1][name] += cupy.cuda.get_elapsed_time(start, stop) / 1e3
            if not few:
                on_cpu = copying.impute_alleles(*given, alleles[:2], **model, threads=2)
                equal = np.array_equal(found[:2], on_cpu)
        (whole, doses), (_, alone) = spent
        cells, untyped = n * n_typed * options.copied, (len(bits) - n_typed) * options.copied
        of_doses = doses["copy_backward"] - alone["copy_backward"]
        kernels = sum(doses.values())
        genome = 600_000 / n_typed * 2000 / options.copied
        rows.append(
            (
                *(n, n_typed, options.copied, f"{cells / doses['copy_forward'] / 1e12:.2f}"),
                f"{cells / doses['copy_forward'] / limit:.0%}",
                f"{cells / alone['copy_backward'] / 1e12:.2f}",
                f"{untyped / of_doses / 1e9:.2f}",
                *(f"{kernels:.3f}", f"{whole:.3f}", f"{genome * kernels:.1f}"),
                "equal" if equal else "DIFFERENT",
            )
        )
    print_table(
        "haplotype copying, T cells/s (a cell: a haplotype at a typed site of a target)",
        (
            *("haplotypes", "typed", "targets", "forward", "of limit", "backward"),
            *("doses, G/s", "kernels, s", "in all, s", "kernels, 1 000 people's genomes, s"),
            "two targets on the CPU",
        ),
        rows,
    )
