"""The loops of bench_hardware_gpu.py compile, and the model counts what the kernels do."""

import pytest
from hardware_plan import (
    OPERATIONS,
    SOURCE,
    defines_of,
    rate_of_warps,
    work_of_minplus,
    work_of_products,
)
from support.compiling import compile_source, require_compiler


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("capability", ["75", "90a"])
def test_loops_compile_and_fit_32_warps(operation, capability):
    if int(capability.rstrip("a")) < OPERATIONS[operation][1]:
        pytest.skip("the card has no such operation")
    require_compiler(capability)
    options = ("-std=c++17", *defines_of(operation, 8))
    found = compile_source(SOURCE, capability, options)
    assert set(found) == {"chains", "chase"}
    assert found["chains"].registers * 1024 <= 65536 and not found["chains"].spilled


def test_work_of_products_counts_blocks_and_stages():
    """257 samples are two blocks of 256 rows, so three blocks of pairs; 1 025 sites two stages."""
    work = work_of_products(257, 1025, 4, 1024)
    assert work.amount == 3 * 256 * 256 * 2048 * 4 / 1024
    assert work.counted == 257 * 256 / 2 * 1025
    assert work.rate(2 * work.amount) == 2 * work.counted


def test_work_of_minplus():
    assert work_of_minplus(1000).rate(5e12) == 5e12


def test_few_warps_wait_and_many_are_limited():
    assert rate_of_warps(4, 16.0, 0.5) == 0.25
    assert rate_of_warps(32, 16.0, 0.5) == 0.5
