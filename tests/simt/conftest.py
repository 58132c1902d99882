"""A GPU that does not exist, for tests of the kernels where there is none."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from popdesic.engine.devices import Device
from simt.fake_cupy import make_modules
from simt.machine import COMPILER, Machine

#: An A100 with two multiprocessors, so that thread blocks walk over several items.
DEVICE = Device(0, "A100", 80, 2, 166_912, 12040)


#: Without --slow, one of so many cases of each test function runs.
ONE_OF = 3


def is_left_out(number: int) -> bool:
    """Whether a case of a test function runs with --slow alone.

    The turn moves by one from seven cases to the next, so that each value of a parameter has its
    turn.
    """
    return (number + number // 7) % ONE_OF > 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        cases, left = Counter(), []
        for item in items:
            if "/simt/" in str(item.path) and hasattr(item, "callspec"):
                function = (item.path, item.function.__name__)
                if is_left_out(cases[function]):
                    left.append(item)
                cases[function] += 1
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]
    if COMPILER is None:
        skip = pytest.mark.skip(reason="the kernels are compiled with g++, which is not installed")
        for item in items:
            if "/simt/" in str(item.path):
                item.add_marker(skip)


def _is_engine(name: str) -> bool:
    own = name.startswith("popdesic.") and name.endswith("_gpu")
    return own or name in ("cupy", "cupyx") or name.startswith("cupy.")


def _take_away() -> dict:
    """The modules that import `cupy`, which go from `sys.modules` and from their packages."""
    found = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_engine(name)}
    for name in found:
        package, _, module = name.rpartition(".")
        if package in sys.modules:
            vars(sys.modules[package]).pop(module, None)
    return found


def _put_back(modules: dict) -> None:
    sys.modules.update(modules)
    for name, module in modules.items():
        package, _, last = name.rpartition(".")
        if package in sys.modules:
            setattr(sys.modules[package], last, module)


@pytest.fixture(scope="session")
def _held(request, tmp_path_factory) -> dict:
    """The GPU engine's modules as imported with the machine's `cupy`, and the machine."""
    cache = getattr(request.config, "cache", None)  # -p no:cacheprovider: compiled for this run
    folder = cache.mkdir("simt") if cache else tmp_path_factory.mktemp("simt")
    machine = Machine(DEVICE, folder)
    return {"machine": machine, "modules": make_modules(machine)}


@pytest.fixture(autouse=True)
def machine(_held, monkeypatch) -> Iterator[Machine]:
    """The machine in place of CuPy while a test runs."""
    before = _take_away()
    _put_back(_held["modules"])
    machine = _held["machine"]
    machine.device, machine.backward, machine.launched = DEVICE, False, []
    machine.devices = 1
    try:
        from popdesic.engine import compile_gpu, tune_gpu
        from popdesic.epistasis import launches_gpu

        compile_gpu.load_function.cache_clear()
        compile_gpu._describe_device.cache_clear()
        monkeypatch.setattr(launches_gpu, "CAPACITY", 1 << 17)
        candidates = tune_gpu.variants_to_measure
        monkeypatch.setattr(
            tune_gpu,
            "variants_to_measure",
            lambda device, kernel=None: candidates(device, kernel)[:1],
        )
        yield machine
    finally:
        _held["modules"] = _take_away()
        _put_back(before)


@pytest.fixture(params=["forward", "backward"])
def schedule(request, machine) -> str:
    """The order in which threads run (`Machine.backward`)."""
    machine.backward = request.param == "backward"
    return request.param
