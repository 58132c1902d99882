"""The stages that tests/kernels runs on a GPU can be run; here on a CPU."""

from __future__ import annotations

import pytest
from support.device_stages import STAGES, results_of, run_stage, write_inputs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("stages")
    write_inputs(made)
    return made


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_writes_its_results(folder, stage):
    run_stage(stage, "cpu", folder)
    assert all(results_of(stage, "cpu", folder).values())
