"""Stages of a large study in jobs of their own on a share of a GPU: the bytes of the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.device_stages import STAGES, results_of, run_stage, write_inputs

pytestmark = pytest.mark.gpu
TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("stages")
    write_inputs(made)
    return made


@pytest.mark.parametrize("stage", STAGES)
def test_a_job_on_a_share_of_a_gpu_writes_the_bytes_of_the_cpu(gpu_device, folder, stage):
    run_stage(stage, "cpu", folder)
    paths = [str(TESTS.parent / "src"), str(TESTS), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, str(TESTS / "support/device_stages.py"), stage, "gpu", str(folder)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    _, limit, _, need = done.stdout.split()
    assert int(limit) > 0, "the job has a share of the device, not the whole"
    assert int(need) > 0
    assert results_of(stage, "gpu", folder) == results_of(stage, "cpu", folder)
