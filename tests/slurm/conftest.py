"""A Slurm that the tests of this folder share; skipped or failed where none can run."""

from collections.abc import Iterator

import pytest
from slurm.sandbox import Sandbox, missing_programs


@pytest.fixture(scope="session")
def slurm(request: pytest.FixtureRequest, tmp_path_factory) -> Iterator[Sandbox]:
    """A running Slurm with partitions `cpu` and `gpu` and two fake GPUs."""
    if missing := missing_programs():
        reason = (
            f"Slurm cannot be started: {', '.join(missing)} not found; install slurm-wlm munge."
        )
        if request.config.getoption("--require-slurm"):
            pytest.fail(reason)
        pytest.skip(reason)
    with Sandbox(tmp_path_factory.mktemp("slurm")) as sandbox:
        yield sandbox
