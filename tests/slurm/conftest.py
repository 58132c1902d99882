"""A Slurm shared by the tests of this folder; started with --require-slurm."""

from collections.abc import Iterator

import pytest
from slurm.sandbox import Sandbox, missing_programs


@pytest.fixture(scope="session")
def slurm(request: pytest.FixtureRequest, tmp_path_factory) -> Iterator[Sandbox]:
    """A running Slurm with partitions `cpu` and `gpu` and two fake GPUs."""
    if not request.config.getoption("--require-slurm"):
        pytest.skip("a real Slurm is started with --require-slurm alone: it takes some minutes")
    if missing := missing_programs():
        pytest.fail(
            f"Slurm cannot be started: {', '.join(missing)} not found; install slurm-wlm munge."
        )
    with Sandbox(tmp_path_factory.mktemp("slurm")) as sandbox:
        yield sandbox
