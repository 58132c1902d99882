"""Haplotype copying by the kernels' source, on a CPU: the bytes of the CPU's passes."""

from __future__ import annotations

import numpy as np
import pytest
from scenes.copied import check_copying, draw_mosaics
from support.phased_files import phased_records, write_vcf

KERNELS = {"turn_columns", "copy_forward", "copy_backward"}


@pytest.mark.parametrize("n", [1, 2, 31, 33, 64, 65, 300, 1000])
@pytest.mark.parametrize("n_sites", [1, 40, 300])
def test_every_number_of_haplotypes_and_sites(machine, rng, n, n_sites):
    """Padding, missing calls, checkpoints; no called site at all."""
    from popdesic.engine.backend_gpu import GpuBackend

    machine.backward = n % 2 == 0
    check_copying(GpuBackend(), draw_mosaics(rng, n, n_sites, 2))
    assert set(machine.launched) == KERNELS


@pytest.mark.parametrize("most", [8, 16, 40])
def test_warps_and_chunks_change_nothing(schedule, rng, monkeypatch, most):
    """Up to 8 warps, whole words, bytes and half words; states that pass through registers."""
    from popdesic.copying import copying_launches_plan as plans
    from popdesic.engine.backend_gpu import GpuBackend

    monkeypatch.setattr(plans, "MOST_FORWARD", most)
    monkeypatch.setattr(plans, "MOST_BACKWARD", 8)
    shapes = {n: plans.shapes_for(n) for n in (300, 2100, 4100)}
    assert [shapes[n][1].chunks for n in shapes] == [1, 2, 3]
    for n in shapes:
        own = np.array([[5, n - 1], [-1, 0]])
        check_copying(GpuBackend(), draw_mosaics(rng, n, 90, 2), own)


def test_own_haplotypes_windows_and_runs(schedule, rng, monkeypatch):
    """Windows with margins, some on the device together; targets in runs of one and two."""
    from popdesic.copying import copying_launches_plan as plans
    from popdesic.copying import copying_plan
    from popdesic.engine.backend_gpu import GpuBackend

    monkeypatch.setattr(copying_plan, "WINDOW_CM", 1.0)
    monkeypatch.setattr(copying_plan, "MARGIN_CM", 0.5)
    drawn = draw_mosaics(rng, 70, 250, 3)
    assert len(copying_plan.cut_windows(drawn[1])) > 3
    own = np.array([[0, 1, -1], [-1, -1, -1], [69, 33, 32]])
    found = check_copying(GpuBackend(), drawn, own)
    pitch = plans.shapes_for(70)[2]
    room = 2 * plans.panel_bytes(250, 4, pitch)
    for free in (room, 3 * plans.target_bytes(60, 60, pitch)):
        np.testing.assert_array_equal(
            check_copying(GpuBackend(device_bytes=free), drawn, own), found
        )


def test_every_haplotype_is_listed(schedule, rng, monkeypatch):
    """More posteriors than are added at a time in 32 bits."""
    from popdesic.copying import copying
    from popdesic.engine.backend_gpu import GpuBackend

    monkeypatch.setattr(copying, "SMALL_SHARE", 0.0)
    check_copying(GpuBackend(), draw_mosaics(rng, 1500, 60, 2), ne=1e7)


@pytest.mark.parametrize("ne", [1.0, 100.0, 1e6])
@pytest.mark.parametrize("mismatch", [1e-5, 0.1])
def test_small_sums_are_counted_again(schedule, rng, ne, mismatch):
    """Alleles of few haplotypes after long matches of others, in all of the finer units."""
    from popdesic.engine.backend_gpu import GpuBackend

    panel, cm, sites, alleles = draw_mosaics(rng, 400, 140, 2)
    panel[:, ::5] = 0
    panel[7:9, ::5] = 1
    alleles[:, sites % 5 == 0] = 1
    check_copying(GpuBackend(), (panel, cm, sites, alleles), ne=ne, mismatch=mismatch)


def test_a_device_without_sums_of_warps(machine, rng):
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.engine.devices import Device

    machine.device = Device(0, "T4", 75, 2, 65_536, 12040)
    check_copying(GpuBackend(), draw_mosaics(rng, 100, 100, 2))
    assert "copy_backward" in machine.launched


def test_the_cpu_copies_where_the_panel_does_not_fit(machine, rng):
    from popdesic.engine.backend_gpu import GpuBackend

    check_copying(GpuBackend(device_bytes=1000), draw_mosaics(rng, 33, 50, 2))
    assert not machine.launched


def test_the_command_writes_the_bytes_of_the_cpu(machine, rng, tmp_path, monkeypatch, caplog):
    """`popdesic impute --device gpu`: windows, a sample that the reference has, hidden calls."""
    from popdesic.__main__ import main
    from popdesic.cohort import phased_targets
    from popdesic.copying import copying_plan

    monkeypatch.setattr(phased_targets, "MIN_SHARED_SITES", 1)
    monkeypatch.setattr(copying_plan, "WINDOW_CM", 3.0)
    panel, _, sites, _ = draw_mosaics(rng, 40, 300, 1)
    positions = 20_000 * np.arange(1, 301)
    names = [f"r{k}" for k in range(20)]
    write_vcf(tmp_path / "r.vcf", names, phased_records(panel.T.astype(int), positions))
    of_targets = phased_records(panel[:6, sites].T.astype(int), positions[sites])
    write_vcf(tmp_path / "t.vcf", ["r0", "new", "other"], of_targets)
    assert main(["freeze", str(tmp_path / "r.vcf"), "-o", str(tmp_path / "r.npz")]) == 0
    caplog.set_level("INFO")
    files = {}
    for device in ("cpu", "gpu"):
        out = tmp_path / device / "out.vcf.gz"
        options = ["--reference", str(tmp_path / "r.npz"), "-o", str(out), "--device", device]
        assert main(["impute", str(tmp_path / "t.vcf"), *options]) == 0
        files[device] = [path.read_bytes() for path in sorted(out.parent.iterdir())]
        assert ("copy_backward" in machine.launched) == (device == "gpu")
        assert ("On the CPU: phases" in caplog.text) == (device == "gpu")
    assert files["cpu"] == files["gpu"] and len(files["cpu"]) == 3
