"""Which kernels a GPU runs: by vendor, instructions and shared memory."""

from __future__ import annotations

import sys
import types
from dataclasses import replace

import pytest
from support.cards import CARDS
from support.launches import AMPERE, HOPPER, TURING
from support.study import make_cohorts, read_config, write_study

from popdesic.core.errors import UserError
from popdesic.engine import devices, scan_device, select
from popdesic.engine.devices import KERNELS, SCAN_BYTES, scan_kernels, supported_kernels
from popdesic.engine.lease import TooFewGpusError
from popdesic.study.validation import validate_study

#: An MI250 says 9.0; a device of 48 KB.
GFX90A = replace(HOPPER, name="MI250", shared_bytes=65536, vendor="amd")
PASCAL = replace(TURING, name="P100", capability=60, shared_bytes=49152)


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: str(card.capability))
def test_cards_run_what_their_capability_has(card):
    device = card.device()
    found = supported_kernels(device)
    assert found == scan_kernels(device)
    assert ("wgmma" in found) == (card.capability == 90)
    assert ("mma" in found) == (card.capability >= 80)
    assert found[-1] == "popc"
    assert card.shared_bytes <= card.shared_of_processor
    for kernel in found:
        assert SCAN_BYTES[kernel] <= card.shared_bytes


def test_limits_of_kernels_are_those_of_the_smallest_card_that_has_them():
    for kernel in KERNELS:
        having = [card for card in CARDS.values() if kernel in supported_kernels(card.device())]
        assert min(card.shared_bytes for card in having) == SCAN_BYTES[kernel]


def test_the_number_of_another_vendor_is_no_capability():
    assert supported_kernels(GFX90A) == ("popc",)
    assert supported_kernels(replace(GFX90A, shared_bytes=232448)) == ("popc",)
    assert not GFX90A.has(80)
    assert HOPPER.has(80) and AMPERE.has(80) and not TURING.has(80)
    assert scan_kernels(GFX90A) == ()


def test_a_device_with_little_memory_multiplies_and_does_not_scan():
    assert supported_kernels(PASCAL) == ("popc",)
    assert scan_kernels(PASCAL) == ()
    with pytest.raises(UserError, match=r"P100 gives a thread block 49152 bytes .* with 65536"):
        devices.require_scans(PASCAL)
    with pytest.raises(UserError, match="MI250 is not an NVIDIA device"):
        devices.require_scans(GFX90A)
    devices.require_scans(TURING)


@pytest.mark.parametrize(("limit", "kernels"), [(101376, KERNELS[1:]), (65536, KERNELS[2:])])
def test_a_lowered_limit_leaves_the_kernels_that_fit(limit, kernels):
    assert supported_kernels(replace(HOPPER, shared_bytes=limit)) == kernels


def test_the_environment_lowers_shared_memory_and_never_raises_it():
    assert devices.lowered(232448, {}) == 232448
    assert devices.lowered(232448, {devices.SHARED_VARIABLE: "101376"}) == 101376
    assert devices.lowered(65536, {devices.SHARED_VARIABLE: "101376"}) == 65536
    for wrong in ("0", "-1", "99 KB", "1e5", "²"):
        with pytest.raises(UserError, match=r"POPDESIC_GPU_SHARED_BYTES is .*give a number"):
            devices.lowered(65536, {devices.SHARED_VARIABLE: wrong})


def test_the_environment_names_a_kernel():
    assert devices.named_kernel({}) is None
    assert devices.named_kernel({devices.KERNEL_VARIABLE: ""}) is None
    assert devices.named_kernel({devices.KERNEL_VARIABLE: "popc"}) == "popc"
    with pytest.raises(UserError, match="POPDESIC_GPU_KERNEL is 'dp4a'; give wgmma, mma or popc"):
        devices.named_kernel({devices.KERNEL_VARIABLE: "dp4a"})


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A function that says which GPU the machine has; None: a driver without CuPy."""
    monkeypatch.setattr(scan_device, "DRIVER", tmp_path)

    def has(device: devices.Device | None) -> None:
        module = types.ModuleType("compile")
        if device is not None:
            module.current_device = lambda: device
        monkeypatch.setitem(sys.modules, "popdesic.engine.compile_gpu", module)

    return has


def test_a_gpu_that_cannot_scan_is_refused_or_left_alone(machine):
    machine(PASCAL)
    assert scan_device.scan_remarks("cpu") == []
    (remark,) = scan_device.scan_remarks("auto")
    assert "P100" in remark and "the CPU computes the scans" in remark
    with pytest.raises(UserError, match=r"device is 'gpu', but P100 gives .* set device to 'cpu'"):
        scan_device.scan_remarks("gpu")


def test_other_machines_are_not_refused(machine, monkeypatch, tmp_path):
    machine(TURING)
    assert scan_device.scan_remarks("gpu") == []
    machine(None)
    assert scan_device.scan_remarks("gpu") == []
    machine(PASCAL)
    monkeypatch.setattr(scan_device, "DRIVER", tmp_path / "none")
    assert scan_device.scan_remarks("gpu") == []


def test_more_gpus_than_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr(scan_device, "DRIVER", tmp_path)
    scan_device.require_gpus("gpu", 9, {})  # a driver without devices
    for name in ("0000:17:00.0", "0000:2a:00.0"):
        (tmp_path / name).mkdir()
    scan_device.require_gpus("auto", 2, {})
    with pytest.raises(UserError, match=r"_GPUS is 3, but this machine has 2; set it to 2"):
        scan_device.require_gpus("auto", 3, {})
    with pytest.raises(UserError, match="has 1; set it to 1"):
        scan_device.require_gpus("gpu", 2, {"CUDA_VISIBLE_DEVICES": "1"})
    scan_device.require_gpus("gpu", 2, {"CUDA_VISIBLE_DEVICES": ""})
    scan_device.require_gpus("cpu", 3, {})
    monkeypatch.setattr(scan_device, "DRIVER", tmp_path / "none")
    scan_device.require_gpus("gpu", 3, {})


@pytest.fixture
def pascal_backend(monkeypatch):
    """The GPU backend of a machine with a P100; without CuPy."""
    module = types.ModuleType("backend")

    class GpuBackend:
        name, can_scan = "gpu", False

        @classmethod
        def leased(cls, threads, host_bytes, device_bytes, scans, gpus):
            if gpus > 1:
                raise TooFewGpusError(gpus, 1)
            if scans:
                devices.require_scans(PASCAL)
            return cls()

    module.GpuBackend = GpuBackend
    monkeypatch.setitem(sys.modules, "popdesic.engine.backend_gpu", module)
    monkeypatch.setattr(select, "_leased", [])


def test_auto_scans_on_the_cpu_and_says_why(pascal_backend, caplog):
    assert select.select_backend("auto").name == "gpu"
    with caplog.at_level("INFO"):
        assert select.select_backend("auto", scans=True).name == "cpu"
    assert "P100 gives a thread block 49152 bytes" in caplog.text
    with pytest.raises(UserError, match=r"device is 'gpu', but no GPU can be used .*P100"):
        select.select_backend("gpu", scans=True)


@pytest.mark.parametrize("device", ["auto", "gpu"])
def test_too_few_gpus_are_no_reason_to_use_the_cpu(pascal_backend, device):
    with pytest.raises(TooFewGpusError, match=r"_GPUS is 2, but the job finds 1 GPU here"):
        select.select_backend(device, gpus=2)
    assert select.select_backend("cpu", gpus=2).name == "cpu"


def test_a_gpu_leased_for_other_work_is_not_taken_for_scans(pascal_backend):
    assert select.backend_for("auto").name == "gpu"
    assert select.backend_for("auto", scans=True).name == "cpu"
    assert select.backend_for("auto").name == "gpu"
    with pytest.raises(RuntimeError, match="device is 'gpu'"):
        select.backend_for("gpu", scans=True)


@pytest.mark.parametrize("device", ["gpu", "auto", "cpu"])
def test_check_says_before_any_job_that_a_gpu_cannot_scan(machine, tmp_path, device):
    machine(PASCAL)
    folder = write_study(tmp_path / "study", make_cohorts((8, 7), n_sites=40))
    config = read_config(folder) | {"device": device}
    validate_study(config, folder)  # without scans it may have any GPU
    config["epistasis"] = config["epistasis"] | {"order": [2]}
    if device == "gpu":
        with pytest.raises(UserError, match="P100"):
            validate_study(config, folder)
    else:
        remarks = validate_study(config, folder)[2]
        assert any("P100" in remark for remark in remarks) == (device == "auto")
