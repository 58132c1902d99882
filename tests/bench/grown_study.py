"""A finished study of very many people, grown from a small one.

The small one is drawn (`drawn_study`) and run, without matrices of all pairs and with so many
founders that their axes have weights of sites. Then each of its people stands for many of other
names: in the sheet, the planes, the maps and the communities, all that `popdesic place` reads. It
reads as much as of so many different people.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import yaml
from commandline import ROOT
from drawn_study import write_study

from popdesic.core.files import read_json, write_json
from popdesic.core.limits import MOST_EXACT
from popdesic.core.tables import read_table, write_npy, write_npz, write_table
from popdesic.io.bed import open_bed
from popdesic.io.genotypes import BED_MAGIC, pack_bed, unpack_bed

#: People of the small study: more founders than axes have without weights, relatives left out.
PEOPLE = MOST_EXACT + 600
COHORTS = 4
#: What is run: all that `popdesic place` reads.
TARGETS = ("embedding", "results/compare/kinship.tsv", "results/communities/partition.tsv")
SETTINGS = {
    "device": "cpu",
    "distance": {"dense_limit": 1000},
    "embedding": {"ensemble": 0},
    "communities": {"methods": ["tree"]},
    "population": {"analyses": []},
}


def write_grown_study(folder: Path, n: int, n_sites: int, threads: int) -> Path:
    """Write a finished study of about n people to `folder`; a stem of one more person's files."""
    write_study(folder, PEOPLE, n_sites, COHORTS, device="cpu", together=False)
    (folder / "config/config.yaml").write_text(yaml.safe_dump(SETTINGS))
    words = ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder)]
    words = [sys.executable, "-m", "snakemake", *words, "--cores", str(threads), *TARGETS]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    person = _write_person(folder / "data/c00", folder / "one")
    _grow(folder, max(1, round(n / PEOPLE)))
    return person


def _write_person(cohort: Path, person: Path) -> Path:
    """Files of a person who has each genotype from one of a cohort's first two people."""
    rows = np.asarray(open_bed(cohort))
    pair = unpack_bed(np.ascontiguousarray(rows[:, :1]), 4)[:, :2]
    which = np.random.default_rng(1).integers(0, 2, len(pair))
    own = np.take_along_axis(pair, which[:, None], axis=1)
    person.with_suffix(".bed").write_bytes(BED_MAGIC + pack_bed(own).tobytes())
    person.with_suffix(".bim").write_bytes(cohort.with_suffix(".bim").read_bytes())
    person.with_suffix(".fam").write_text("0\tone\t0\t0\t0\t-9\n")
    return person


def _named(names: list[str], copies: int) -> list[str]:
    return [f"{name}.{k}" for k in range(copies) for name in names]


def _grow(folder: Path, copies: int) -> None:
    results = folder / "results"
    _grow_table(folder / "config/samples.tsv", copies)
    for path in sorted(results.glob("cohorts/*/planes.json")):
        about = read_json(path)
        write_json(path, about | {"samples": _named(about["samples"], copies)})
        words = path.with_suffix(".npy")
        write_npy(words, np.tile(np.load(words), (copies, 1, 1)))
    order = _grow_table(results / "distance/samples.tsv", copies)
    scores = results / "embedding/pca.npy"
    write_npy(scores, np.load(scores)[order])
    for path in sorted(results.glob("embedding/coordinates/*.tsv")):
        if "sample" in path.read_text("utf-8").split("\n", 1)[0].split("\t"):
            _grow_table(path, copies)
    _grow_table(results / "communities/partition.tsv", copies)
    axes = results / "embedding/axes.npz"
    with np.load(axes) as found:
        stored = dict(found)
    stored["samples"] = np.array(_named(stored["samples"].tolist(), copies))
    stored["vectors"] = np.tile(stored["vectors"], (copies, 1)) / np.sqrt(copies)
    write_npz(axes, **stored)


def _grow_table(path: Path, copies: int) -> np.ndarray:
    """Give the rows of a table their copies, cohort by cohort as the planes' stand.

    Returns the row that each new one copies, int64 (n,).
    """
    table = read_table(path)
    cohorts = table.cohort.to_numpy(str) if "cohort" in table else np.zeros(len(table), str)
    runs = np.split(np.arange(len(table)), np.flatnonzero(cohorts[1:] != cohorts[:-1]) + 1)
    order = np.concatenate([np.tile(run, copies) for run in runs])
    number = np.concatenate([np.repeat(np.arange(copies), len(run)) for run in runs])
    grown = table.iloc[order].reset_index(drop=True)
    pairs = zip(grown["sample"].tolist(), number.tolist(), strict=True)
    grown["sample"] = [f"{name}.{k}" for name, k in pairs]
    write_table(path, grown)
    return order
