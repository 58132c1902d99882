"""A study of cohorts called apart, each with its mask: the joint call, and a newcomer's arrival."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scenes.called_apart import NAMES, STRETCH, Scene
from support.running import snakemake
from support.study import FAST

from popdesic.io.bed import open_bed
from popdesic.io.genotypes import unpack_bed


def write_sheets(folder: Path, scene: Scene, names: tuple[str, ...], masked: bool = True) -> None:
    (folder / "config").mkdir(exist_ok=True)
    rows = [
        f"{n}\tmasked.{n}.vcf\t{'no' if n == 'C' else 'yes'}\t" + f"{n}.bed" * masked for n in names
    ]
    text = "\n".join(["cohort\tgenotypes\tfounder\tcallable", *rows, ""])
    (folder / "config/cohorts.tsv").write_text(text)
    rows = [f"{k}\t{p}\t{p}" for k, p in scene.population.items() if p in names]
    text = "\n".join(["sample\tcohort\tpopulation", *rows, ""])
    (folder / "config/samples.tsv").write_text(text)
    (folder / "config/config.yaml").write_text(yaml.safe_dump(FAST))


@pytest.mark.slow
def test_masked_cohorts_and_a_newcomer(tmp_path):
    scene = Scene(tmp_path, 7, 8, 900_000, 0.85)
    write_sheets(tmp_path, scene, NAMES, masked=False)
    said = snakemake(tmp_path, "encode", fails=True)
    assert "lists variant sites only" in said
    assert not (tmp_path / "results").exists(), "before any job"
    write_sheets(tmp_path, scene, NAMES[:2])
    snakemake(tmp_path, "encode")
    before = {
        path: path.read_bytes()
        for path in (tmp_path / "results").rglob("*.*")
        if path.is_file() and not path.name.startswith(".")
    }
    assert any(path.name == "reference.npy" for path in before)
    write_sheets(tmp_path, scene, NAMES)
    snakemake(tmp_path, "encode", "results/qc/summary.tsv")
    changed = [path for path, content in before.items() if path.read_bytes() != content]
    assert changed == []
    panel = pd.read_csv(tmp_path / "results/panel/sites.tsv", sep="\t", skiprows=1)
    row = {pos: k for k, pos in enumerate(scene.truth.pos.tolist())}
    rows = np.array([row[pos] for pos in panel.pos])
    stretch = (panel.pos.to_numpy() - 1) // STRETCH
    filled = {}
    for name in NAMES:
        samples = scene.numbers[name]
        found = unpack_bed(open_bed(tmp_path / f"results/cohorts/{name}/genotypes"), len(samples))
        expected = scene.truth.genotypes[np.ix_(rows, samples)].copy()
        expected[~scene.masks[name][stretch]] = -1
        assert np.array_equal(found, expected)
        covered = scene.masks[name][stretch]
        filled[name] = int((covered & (expected <= 0).all(axis=1)).sum())
    summary = pd.read_csv(tmp_path / "results/qc/summary.tsv", sep="\t")
    steps = summary[summary.step == "absent_as_reference"].set_index("cohort")["count"]
    assert steps.to_dict() == filled
