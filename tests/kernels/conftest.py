"""Shared by the GPU tests: a device, else a skip (a failure with --require-gpu)."""

from __future__ import annotations

import contextlib

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    # tests/conftest.py may have added the option already; this folder can also be run alone
    with contextlib.suppress(ValueError):
        parser.addoption(
            "--require-gpu", action="store_true", help="fail instead of skip where no GPU is usable"
        )


@pytest.fixture(scope="session")
def gpu_device(request, tmp_path_factory):
    """The `Device` of the first usable GPU; measured choices are cached in a folder of this run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        try:
            from popdesic.engine.backend_gpu import GpuBackend

            device = GpuBackend().device
        except Exception as reason:
            message = f"no usable GPU: {reason}"
            if request.config.getoption("--require-gpu", default=False):
                pytest.fail(message)
            pytest.skip(message)
        yield device
