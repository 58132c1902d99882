"""`popdesic place`: one genome against a finished study equals the same genome as a new cohort."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles.reference import make_planes
from support.running import snakemake
from support.study import FAST, Cohort, make_cohorts, write_sheets, write_study

from popdesic.__main__ import main
from popdesic.cohort.panel import load_panel
from popdesic.core.errors import UserError
from popdesic.core.triangle import open_symmetric
from popdesic.distance.matrix import load_distances
from popdesic.engine.select import cpu_backend
from popdesic.relatives.kinship import SAME
from popdesic.study import place
from popdesic.study.place_maps import place_on_maps

CONFIG = FAST | {
    "geodesic": {"alpha": [2], "space": ["genotypes", "pcs"]},
    "embedding": {"ensemble": 0, "stable": True},
    "compare": {"analyses": ["kinship"]},
    "communities": {"methods": ["tree"]},
}
NEW = "X01"
#: What a place is compared with.
MEASURED = ("embedding", "results/compare/kinship.tsv")


def people() -> tuple[list[Cohort], Cohort]:
    """A study of two founders, and a cohort of one: N03 read again, with some sites exchanged."""
    cohorts = make_cohorts((12, 11), n_sites=1500)
    rng = np.random.default_rng(5)
    own = cohorts[0].genotypes[:, 3:4].copy()
    changed = rng.choice(len(own), 12, replace=False)
    own[changed, 0] = rng.integers(-1, 3, len(changed))
    kept = np.sort(rng.permutation(len(own))[:1450])  # some panel sites are absent
    sites = [cohorts[0].sites[k] for k in kept]
    new = Cohort("zest", [NEW], sites, own[kept], founder=False, populations=["P"])
    for k in range(0, 40, 8):  # and some have REF and ALT exchanged
        chrom, pos, name, ref, alt = new.sites[k]
        new.sites[k] = (chrom, pos, name, alt, ref)
        new.genotypes[k] = np.where(new.genotypes[k] < 0, -1, 2 - new.genotypes[k])
    return cohorts, new


def place_sample(source: Path, study: Path, *, out: Path, threads: int) -> str:
    return place.place_sample(source, study, cpu_backend(threads), place_on_maps, out=out)


def digest_of(folder: Path) -> dict[str, str]:
    """Content of every file, hidden ones too, and every folder's dates."""
    return {
        str(path.relative_to(folder)): (
            hashlib.blake2b(path.read_bytes()).hexdigest()
            if path.is_file()
            else str(path.stat().st_mtime_ns)
        )
        for path in sorted(folder.rglob("*"))
    }


def rows(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, sep="\t", dtype={"sample": str}).set_index("sample")


@pytest.fixture(scope="module")
def placed(tmp_path_factory) -> tuple[Path, Path, str]:
    """A finished study, the folder of a placed genome, and what was said."""
    folder, out = tmp_path_factory.mktemp("study"), tmp_path_factory.mktemp("out")
    cohorts, new = people()
    write_study(folder, cohorts, CONFIG)
    snakemake(folder, *MEASURED, "results/communities/partition.tsv")
    (out / "one.vcf").write_text(new.vcf())
    before = digest_of(folder)
    said = place_sample(out / "one.vcf", folder, out=out / "place", threads=2)
    assert digest_of(folder) == before
    return folder, out, said


def test_the_text_says_numbers_and_names_no_ancestry(placed):
    _, out, said = placed
    assert f"Sample '{NEW}'" in said and "1. N03 (north, P)" in said
    assert "duplicate or identical twin" in said
    assert "they are not ancestries" in said and "projected as a newcomer" in said
    about = json.loads((out / "place/place.json").read_text())
    assert about["sites"]["called"] < about["sites"]["found"] < about["sites"]["panel_sites"]
    assert about["sites"]["swapped"] > 0 and about["relatives"] == 1


def test_the_place_is_that_of_a_new_cohort(placed, tmp_path):
    folder, out, _ = placed
    study = tmp_path / "study"
    shutil.copytree(folder, study, symlinks=True)
    cohorts, new = people()
    (study / new.path).write_text(new.vcf())
    write_sheets(study, [*cohorts, new], CONFIG)
    snakemake(study, *MEASURED)
    about = json.loads((out / "place/place.json").read_text())
    table = rows(out / "place/place.tsv")

    names = list(rows(study / "results/distance/samples.tsv").index)
    n_sites = json.loads((study / "results/panel/counts.json").read_text())["n_sites"]
    options = {"metric": "euclidean", "n_sites": n_sites, "min_called": 100}
    distances = pd.Series(load_distances(study / "results/distance", **options)[-1], names)
    called = pd.Series(open_symmetric(study / "results/distance/called.npy")[:][-1], names)
    assert names[-1] == NEW
    order = distances.drop(NEW).sort_values(kind="stable")
    assert list(table.index) == list(order.index[: len(table)])
    assert [f"{x:.6g}" for x in table.distance] == [f"{x:.6g}" for x in order[: len(table)]]
    assert (table.called == called[table.index]).all()

    pairs = pd.read_csv(study / "results/compare/kinship.tsv", sep="\t", dtype=str)
    own = pairs[(pairs.sample_a == NEW) | (pairs.sample_b == NEW)].iloc[0]
    mine = table[table.relation != "undetermined"].iloc[0]
    assert own.sample_a == "N03" == mine.name
    told = own.relation if own.relation == SAME else "sharing only"  # of a short genome
    assert mine.relation == told
    assert float(own.kinship) == mine.kinship and int(own.ibs0) == mine.ibs0

    pca = rows(study / "results/embedding/coordinates/pca.tsv").loc[NEW]
    for axis, value in about["pca"].items():
        assert f"{value:.6g}" == f"{float(pca[axis]):.6g}", axis
    # A UMAP of two components is not drawn.
    drawn = [("pcoa", "genotypes"), ("umap", "genotypes"), ("pcoa", "pcs")]
    assert [(found["method"], found["space"]) for found in about["maps"]] == drawn
    for found in about["maps"]:
        name = "{method}.{space}.alpha{alpha}.tsv".format(**found)
        there = rows(study / "results/embedding/coordinates" / name).loc[NEW]
        assert found["projected"]
        for axis, value in found.items():
            if isinstance(value, float):
                # the founders' places on the UMAP are read from a table of six digits
                assert value == pytest.approx(float(there[axis]), rel=1e-4, abs=1e-4), (name, axis)


def test_threads_change_no_byte(placed, tmp_path):
    folder, out, _ = placed
    place_sample(out / "one.vcf", folder, out=tmp_path / "place", threads=1)
    for name in ("place.tsv", "place.json"):
        assert (tmp_path / "place" / name).read_bytes() == (out / "place" / name).read_bytes()


def test_a_table_of_letters_has_the_place_of_the_vcf(placed, tmp_path):
    folder, out, _ = placed
    _, new = people()
    rows = []
    for (chrom, pos, name, *alleles), (genotype,) in zip(new.sites, new.genotypes, strict=True):
        letters = (
            "--" if genotype < 0 else "".join(sorted(alleles[int(k < genotype)] for k in (0, 1)))
        )
        rows.append(f"{name}\t{chrom}\t{pos}\t{letters}")
    head = "# rsid\tchromosome\tposition\tgenotype"
    table = tmp_path / f"{NEW}.txt"
    table.write_text("\n".join([head, *reversed(rows), "i7\t1\t7\tDD"]) + "\n")
    said = place_sample(table, folder, out=tmp_path / "place", threads=2)
    assert "of 1451 rows" in said and "0 were turned" in said
    written = (tmp_path / "place/place.tsv", out / "place/place.tsv")
    assert written[0].read_bytes() == written[1].read_bytes()
    own, other = (json.loads(path.with_suffix(".json").read_text()) for path in written)
    letters = own["sites"].pop("letters")
    assert letters["listed"] == own["sites"]["found"] == other["sites"]["found"]
    assert letters["listed"] - letters["not_called"] == own["sites"]["called"]
    assert (own["sites"].pop("swapped"), own["sites"].pop("not_on_panel")) == (0, 0)
    for name in ("swapped", "not_on_panel"):
        other["sites"].pop(name)
    for about in (own, other):  # the VCF has another REF at some sites
        assert about["sites"].pop("homozygous_ref") > 0
        about["sites"].pop("expected_homozygous_ref")
    assert own.pop("remarks")[1:] == other.pop("remarks")
    assert own.pop("file") != other.pop("file") and own == other


def test_maps_of_everyone_give_the_mean_of_the_nearest(placed, tmp_path):
    folder, out, _ = placed
    study = tmp_path / "study"
    shutil.copytree(folder, study, symlinks=True)
    text = (study / "config/config.yaml").read_text()
    (study / "config/config.yaml").write_text(text.replace("stable: true", "stable: false"))
    said = place_sample(out / "one.vcf", study, out=tmp_path / "place", threads=2)
    assert "weighted mean of the nearest samples" in said and "projected as a" not in said


def test_relatives_in_a_cohort_where_kinship_fails_are_not_told(placed, tmp_path):
    """All samples of the cohort of its parent become clones, with losses of heterozygosity."""
    folder, _, _ = placed
    study = tmp_path / "study"
    shutil.copytree(folder, study, symlinks=True)
    cohorts, new = people()
    rng = np.random.default_rng(2)
    clones = cohorts[1].genotypes[:, [3] * cohorts[1].genotypes.shape[1]]
    clones[(clones == 1) & (rng.random(clones.shape) < 0.4)] = 0
    child = sum((rng.random(len(clones)) < clones[:, k] / 2).astype(np.int8) for k in (0, 1))
    panel = load_panel(study / "results/panel/sites.tsv")[0]
    row = {(str(c), p): k for k, (c, p, *_) in enumerate(cohorts[1].sites)}
    chosen = [row[str(c), p] for c, p in zip(panel.chrom, panel.pos, strict=True)]
    south = study / "results/cohorts/south/planes.npy"
    np.save(south, make_planes(clones[chosen].T)[:, : np.load(south).shape[1]])
    (tmp_path / "one.vcf").write_text(
        replace(new, sites=cohorts[1].sites, genotypes=child[:, None]).vcf()
    )
    said = place_sample(tmp_path / "one.vcf", study, out=tmp_path / "place", threads=1)
    about = json.loads((tmp_path / "place/place.json").read_text())
    table = rows(tmp_path / "place/place.tsv")
    untold = table.relation == "not told: triangles of south"
    assert about["relatives"] == 0 and about["untold"] == {"south": untold.sum()}
    assert untold.sum() >= 2 and set(table.relation[~untold]) == {"undetermined"}
    assert f"cohort south, so {untold.sum()} of its samples" in said


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda c: replace(c, samples=["A", "B"], genotypes=c.genotypes.repeat(2, 1)), "--sample"),
        (lambda c: replace(c, genotypes=np.maximum(c.genotypes, 1)), "lists variants only"),
        (lambda c: replace(c, sites=c.sites[:60], genotypes=c.genotypes[:60]), "min_called = 100"),
        (
            lambda c: replace(c, genotypes=np.where(np.arange(1450)[:, None] % 4, c.genotypes, -1)),
            "qc.min_sample_call_rate = 0.9",
        ),
        (
            lambda c: replace(c, sites=[(a, b + 7, *rest) for a, b, *rest in c.sites]),
            "shares no site with the panel",
        ),
    ],
)
def test_a_file_that_cannot_be_placed_is_refused_in_a_sentence(placed, tmp_path, change, sentence):
    folder, _, _ = placed
    _, new = people()
    (tmp_path / "one.vcf").write_text(change(replace(new, sites=list(new.sites))).vcf())
    with pytest.raises(UserError, match=sentence) as refused:
        place_sample(tmp_path / "one.vcf", folder, out=tmp_path / "place", threads=1)
    assert str(tmp_path / "one.vcf") in str(refused.value)
    assert "popdesic." not in str(refused.value)  # no temporary folder
    assert not (tmp_path / "place").exists()


def test_a_file_of_another_build_is_refused(placed, tmp_path):
    folder, _, _ = placed
    _, new = people()
    study = tmp_path / "study"
    shutil.copytree(folder, study, symlinks=True)
    config = study / "config/config.yaml"
    config.write_text(config.read_text() + "qc:\n  build: hg38\n")
    contig = "##contig=<ID=1,length=249250621>\n"  # of hg19
    header, rest = new.vcf().split("\n", 1)
    (tmp_path / "one.vcf").write_text(f"{header}\n{contig}{rest}")
    with pytest.raises(UserError, match="hg19, but the study is of hg38"):
        place_sample(tmp_path / "one.vcf", study, out=tmp_path / "place", threads=1)


def test_the_command_needs_results_and_the_right_sample(placed, tmp_path, capsys):
    folder, out, _ = placed
    shutil.copytree(folder / "config", tmp_path / "empty/config")
    shutil.copytree(folder / "data", tmp_path / "empty/data")
    file = str(out / "one.vcf")
    assert main(["place", file, "--study", str(tmp_path / "empty")]) == 1
    assert "has no results yet" in capsys.readouterr().err
    assert main(["place", file, "--study", str(folder), "--sample", "X02"]) == 1
    assert "has no sample 'X02'; did you mean 'X01'?" in capsys.readouterr().err
    inside = str(folder / "results/place")
    assert main(["place", file, "--study", str(folder), "--out", inside]) == 1
    assert "inside the study's results" in capsys.readouterr().err
