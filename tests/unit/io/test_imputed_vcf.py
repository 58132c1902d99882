"""Imputed VCF: texts of calls, and its index."""

from __future__ import annotations

import subprocess
from pathlib import Path

import cyvcf2
import numpy as np
import pytest

from popdesic.io import imputed_vcf
from popdesic.io.imputed_vcf import ImputedSites, ImputedVcf, call_text


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (0, 0, "0|0:0:1,0,0"),
        (1000, 0, "1|0:1:0,1,0"),
        (500, 499, "1|0:0.999:0.25,0.5,0.25"),
        (1000, 1000, "1|1:2:0,0,1"),
        (20, 900, "0|1:0.92:0.098,0.884,0.018"),
        (1000, None, "1:1:0,1"),
        (123, None, "0:0.123:0.877,0.123"),
    ],
)
def test_a_call(first, second, text):
    assert call_text(first, 0 if second is None else second + 1) == f"\t{text}".encode()


def test_probabilities_of_a_call_add_up_to_one():
    for first in range(0, 1001, 7):
        for second in range(0, 1001, 13):
            shares = call_text(first, second + 1).decode().split(":")[2].split(",")
            assert all(float(one) >= 0 for one in shares)
            assert round(sum(map(float, shares)), 9) == 1


@pytest.mark.parametrize("longest", [250_000_000, 2**31 - 1])
def test_the_index_finds_what_a_scan_finds(tmp_path, longest):
    rng = np.random.default_rng(2)
    places = {
        name: np.sort(rng.choice(longest - 1, 3000, replace=False)) + 1 for name in ("1", "X")
    }
    places["X"][-1] = longest
    out = tmp_path / "a.vcf.gz"
    written = {}
    with ImputedVcf(out, ["a", "b"], ["1", "2", "X"], ["##source=test"]) as vcf:
        for name, pos in places.items():
            steps = rng.integers(0, 1001, (3000, 2, 2)).astype(np.int16)
            if name == "X":
                steps[:, 1, 1] = -1
            written[name] = steps
            for low in range(0, 3000, 1100):
                part = slice(low, low + 1100)
                n = len(pos[part])
                texts = ([f"s{at}" for at in pos[part]], ["A"] * n, ["C"] * n, ["IMP"] * n)
                vcf.write(ImputedSites(name, pos[part], *texts), steps[part])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.vcf.gz", "a.vcf.gz.csi"]
    for name, low, high in [
        ("1", 1, longest),
        *[("X", *sorted(rng.integers(1, longest, 2).tolist())) for _ in range(20)],
        ("X", longest, longest),
        ("2", 1, 9),
    ]:
        region = f"{name}:{low}-{high}"
        command = ["bcftools", "query", "-f", "%POS\n", "-r", region, out]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        pos = places.get(name, np.empty(0, int))
        assert list(map(int, found)) == pos[(pos >= low) & (pos <= high)].tolist()
    for record, pos, steps in zip(
        cyvcf2.VCF(str(out)),
        np.concatenate([places["1"], places["X"]]),
        np.concatenate([written["1"], written["X"]]),
        strict=True,
    ):
        assert pos == record.POS and f"s{pos}" == record.ID
        dosage = np.where(steps < 0, 0, steps).sum(axis=1) / 1000
        assert np.allclose(record.format("DS")[:, 0], dosage)
        alleles = np.where(steps < 0, -2, steps >= 500)
        assert (record.genotype.array()[:, :2] == alleles).all()


def test_nothing_is_left_of_a_failed_file(tmp_path):
    with (
        pytest.raises(RuntimeError),
        ImputedVcf(tmp_path / "a.vcf.gz", ["a"], ["1"], []),
    ):
        raise RuntimeError
    assert not [*tmp_path.iterdir()]


def write(out: Path, name: str) -> None:
    with ImputedVcf(out, [name], ["1"], []) as vcf:
        sites = ImputedSites("1", np.array([7]), ["."], ["A"], ["C"], ["IMP"])
        vcf.write(sites, np.full((1, 1, 2), 500, np.int16))


@pytest.mark.parametrize("stopped", ["write_csi", "a.vcf.gz", "a.vcf.gz.csi"])
def test_an_index_is_never_beside_another_file(tmp_path, monkeypatch, stopped):
    """Whatever is interrupted, readers see the old file or the new one, with its index or none."""
    out, index = tmp_path / "a.vcf.gz", tmp_path / "a.vcf.gz.csi"
    pairs = {}
    for name in ("old", "a_new_sample_with_a_longer_name"):
        write(out, name)
        pairs[out.read_bytes()] = index.read_bytes()
    old, new = pairs
    assert pairs[old] != pairs[new]
    write(out, "old")
    renamed = Path.replace

    def stop(*_) -> None:
        raise KeyboardInterrupt

    def replace(path: Path, target: Path) -> Path:
        if target.name == stopped:
            stop()
        return renamed(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        if stopped == "write_csi":
            patch.setattr(imputed_vcf, "write_csi", stop)
        with pytest.raises(KeyboardInterrupt):
            write(out, "a_new_sample_with_a_longer_name")
    assert out.read_bytes() == (new if stopped == "a.vcf.gz.csi" else old)
    assert index.exists() == (stopped == "write_csi")
    assert not index.exists() or index.read_bytes() == pairs[out.read_bytes()]
    assert {path.name for path in tmp_path.iterdir()} <= {out.name, index.name}
