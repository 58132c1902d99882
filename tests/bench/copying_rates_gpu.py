"""Rates of the passes of haplotype copying on one GPU: `bench_copying.py --device gpu`.

The limit is a loop over states in registers with the four instructions of a step, a multiply-add,
two additions and a product, without memory, sums over threads or division. Panel and targets are
drawn at random: rates do not depend on alleles, but for sums that are counted again.
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
#: A map of one window, and sites of the panel between two typed ones.
MAP_CM, APART = 39.0, 8


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


def bench_rates(options: argparse.Namespace) -> None:
    """Print rates for panels of some sizes."""
    backend, launches = GpuBackend(), []
    limit = limit_of(backend)
    print(f"{backend.describe()}\nlimit: {limit / 1e12:.2f} T cells/s")
    timed_launches(launches)
    rng, rows = np.random.default_rng(options.seed), []
    for n in options.haplotypes:
        n_typed = max(65, options.cells // n // options.copied)
        n_sites = APART * n_typed
        bits = rng.integers(0, 2**64, (n_sites, -(-n // 64)), np.uint64, endpoint=False)
        if n % 64:
            bits[:, -1] &= np.uint64(2 ** (n % 64) - 1)
        panel = copying.Haplotypes(bits, n, np.linspace(0, MAP_CM, n_sites))
        typed = np.arange(0, n_sites, APART)
        alleles = rng.integers(0, 2, (options.copied, n_typed), np.int8)
        model = {"ne": 1e5, "mismatch": 1e-4}
        for _ in range(2):  # kernels are compiled the first time
            launches.clear()
            started = time.perf_counter()
            found = copying.impute_alleles(panel, typed, alleles, **model, backend=backend)
            seconds = time.perf_counter() - started
        spent = dict.fromkeys(("turn_columns", "copy_forward", "copy_backward"), 0.0)
        for name, start, stop in launches:
            spent[name] += cupy.cuda.get_elapsed_time(start, stop) / 1e3
        cells = n * n_typed * options.copied
        rates = [cells / spent[name] for name in ("copy_forward", "copy_backward")]
        few = copying.impute_alleles(panel, typed, alleles[:2], **model, threads=2)
        rows.append(
            (
                *(n, n_typed, options.copied, f"{rates[0] / 1e12:.2f}", f"{rates[0] / limit:.0%}"),
                *(f"{rates[1] / 1e12:.2f}", f"{sum(spent.values()):.3f}", f"{seconds:.3f}"),
                "equal" if np.array_equal(found[:2], few) else "DIFFERENT",
            )
        )
    print_table(
        "haplotype copying, T cells/s (a cell: a haplotype at a typed site of a target)",
        (
            *("haplotypes", "typed", "targets", "forward", "of limit", "backward and doses"),
            *("kernels, s", "in all, s", "two targets on the CPU"),
        ),
        rows,
    )
