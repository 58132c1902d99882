"""Tree sequences are read as the VCF that tskit itself writes of them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import msprime
import numpy as np
import pytest
import tskit

from popdesic.cohort.first_ploidies import first_ploidies
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.sources import expand_sources, read_names
from popdesic.core.errors import UserError
from popdesic.io.call_filters import CallFilters
from popdesic.io.formats import count_sites, read_contig_lengths, read_sample_names
from popdesic.io.trees import names_in
from popdesic.study.init import init_study

ENDS = (".bed", ".bim", ".fam")


def simulate(ploidy: int, seed: int, *, rate: float = 1e-5, n: int = 9) -> tskit.TreeSequence:
    """A genome with sites of several alleles, some of which differ in no sample."""
    trees = msprime.sim_ancestry(
        n,
        ploidy=ploidy,
        population_size=1000,
        sequence_length=5e3,
        recombination_rate=1e-6,
        random_seed=seed,
    )
    return msprime.sim_mutations(trees, rate=rate, random_seed=seed)


def with_missing(trees: tskit.TreeSequence) -> tskit.TreeSequence:
    """A genome of which one sample's two nodes, and one node of another, have no data."""
    tables = trees.dump_tables()
    edges = tables.edges.copy()
    tables.edges.clear()
    for edge in edges:
        if edge.child not in (2, 3, 7):
            tables.edges.append(edge)
    tables.build_index()
    tables.compute_mutation_parents()
    return tables.tree_sequence()


def decoded(source: Path, out: Path, **options) -> tuple[list[bytes], dict]:
    ingest_cohort(source, out, threads=2, **options)
    about = json.loads(out.with_suffix(".json").read_text())
    about.pop("source"), about.pop("source_bytes")
    return [out.with_suffix(end).read_bytes() for end in ENDS], about


def compare(folder: Path, trees: tskit.TreeSequence, names: list[str], **options) -> dict:
    """Decode a .trees and tskit's VCF of it, which must give the same bytes and counts."""
    trees.dump(folder / "north_chr2.trees")
    with open(folder / "north.vcf", "w") as file:
        trees.write_vcf(file, contig_id="chr2", individual_names=names, allow_position_zero=True)
    own = decoded(folder / "north_chr2.trees", folder / "own", **options)
    other = decoded(folder / "north.vcf", folder / "other", **options)
    assert own == other
    return own[1]["counts"]


@pytest.mark.parametrize("classes", [(), ("multiallelic", "indel")])
@pytest.mark.parametrize("kind", ["diploid", "missing", "haploid", "nodes", "tetraploid"])
def test_a_tree_sequence_gives_the_bytes_of_its_vcf(tmp_path, kind, classes):
    ploidy = {"haploid": 1, "tetraploid": 4}.get(kind, 2)
    trees = simulate(ploidy, seed=5)
    if kind == "missing":
        trees = with_missing(trees)
    if kind == "nodes":
        tables = trees.dump_tables()
        tables.individuals.clear()
        tables.nodes.individual = np.full(trees.num_nodes, -1, np.int32)
        trees, ploidy = tables.tree_sequence(), 1
    n = len(trees.samples()) if kind == "nodes" else 9
    names = [f"north_{k}" for k in range(n)]
    policy = {1: "only", 2: "error", 4: "ploidy 4"}[ploidy]
    ploidies = dict.fromkeys(names, ploidy) if ploidy == 4 else None
    options = {"haploid": policy, "ploidy": ploidies, "filters": CallFilters(classes=classes)}
    counts = compare(tmp_path, trees, names, **options)
    assert counts["sites"] > 20 and counts["records"] == trees.num_sites
    assert (counts["multiallelic"] > 0) != bool(classes)
    assert (counts["missing"] > 0) == (kind == "missing") == (counts["half_calls"] > 0)
    path = tmp_path / "north_chr2.trees"
    assert read_sample_names(path) == names and count_sites(path) == trees.num_sites
    assert read_contig_lengths(path) == {"chr2": 5000}
    assert (
        first_ploidies(path, 1 << 12) == {name: {ploidy} for name in names if kind != "missing"}
        or kind == "missing"
    )


def test_more_than_ten_alleles_and_other_states(tmp_path):
    """Numbers and deletions are no bases; an allele of two digits is one allele."""
    tables = simulate(2, seed=3, rate=0).dump_tables()
    for site, states in enumerate((["A", "C"], ["A", "1,2"], ["", "C"], ["AC", "A"])):
        tables.sites.add_row(position=100 * site + 7, ancestral_state=states[0])
        tables.mutations.add_row(site=site, node=site, derived_state=states[1])
    tables.sites.add_row(position=900, ancestral_state="A")
    for node in range(12):
        tables.mutations.add_row(site=4, node=node, derived_state="C" * (2 + node))
    tables.sort()
    tables.tree_sequence().dump(tmp_path / "a.trees")
    genotypes, about = decoded(
        tmp_path / "a.trees",
        tmp_path / "own",
        filters=CallFilters(classes=("multiallelic", "indel")),
    )
    counts = about["counts"]
    assert (counts["records"], counts["snps"], counts["indels_read"]) == (5, 1, 1)
    assert counts["split_sites"] == 12 and counts["sites"] == 14
    rows = genotypes[1].decode().splitlines()
    assert [line.split("\t")[3] for line in rows[:2]] == ["7", "307"] and rows[0].startswith("1\t")
    assert len(genotypes[0]) == 3 + 14 * 3


def test_names_of_samples_and_contigs(tmp_path):
    tables = simulate(2, seed=2).dump_tables()
    tables.individuals.metadata_schema = tskit.MetadataSchema({"codec": "json"})
    rows = [one.replace(metadata={"name": f"HG{k}"}) for k, one in enumerate(tables.individuals)]
    tables.individuals.clear()
    for row in rows:
        tables.individuals.append(row)
    tables.tree_sequence().dump(tmp_path / "a.trees")
    assert read_sample_names(tmp_path / "a.trees") == [f"HG{k}" for k in range(9)]
    found = {name: names_in(Path(f"{name}.trees")) for name in ("22", "x.chrX", "run 3", "chr1")}
    assert found == {
        "22": ("22", "tsk"),
        "x.chrX": ("chrX", "x"),
        "run 3": ("1", "run_3"),
        "chr1": ("chr1", "tsk"),
    }


def test_several_files_name_their_contigs(tmp_path):
    """Folders, or the middle of a name, do not: all sites would be on contig 1."""
    files = ["chr1/a.trees", "chr2/a.trees", "a_chr1.trees", "a_chr2.trees", "1.trees", "2.trees"]
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        simulate(2, seed=2).dump(tmp_path / file)
    with pytest.raises(UserError, match=r"chr1/a.trees is one of 2 files .* name does not end in"):
        read_names(expand_sources("chr{contig}/a.trees", tmp_path), tmp_path)
    assert read_names(files[:1], tmp_path) == [f"a_{k}" for k in range(9)]
    assert read_names(files[2:4], tmp_path) == [f"a_{k}" for k in range(9)]
    assert read_names(files[4:], tmp_path) == [f"tsk_{k}" for k in range(9)]


def test_init_names_cohorts_and_takes_no_missing_file_for_a_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    simulate(2, seed=2).dump("north_chr2.trees")
    init_study(["study", "north_chr2.trees"])
    assert "\nnorth_chr2\t../north_chr2.trees\t" in Path("study/config/cohorts.tsv").read_text()
    with pytest.raises(UserError, match=r"nort\.trees does not exist"):
        init_study(["nort.trees", "north_chr2.trees"])


def test_what_cannot_be_read_is_said_in_a_sentence(tmp_path, monkeypatch):
    path = tmp_path / "a.trees"
    trees = simulate(2, seed=1)
    binary = msprime.sim_mutations(
        trees, rate=1e-4, random_seed=1, keep=False, model=msprime.BinaryMutationModel()
    )
    binary.dump(path)
    with pytest.raises(UserError, match=r"no ancestral allele is a base .* '0'"):
        read_sample_names(path)
    tables = trees.dump_tables()  # as SLiM writes: no ancestral states, and numbers
    tables.sites.clear()
    tables.mutations.clear()
    tables.mutations.add_row(site=tables.sites.add_row(7, ""), node=0, derived_state="12")
    tables.tree_sequence().dump(path)
    with pytest.raises(UserError, match=r"no ancestral allele is a base .* ''"):
        read_sample_names(path)
    trees.dump(path)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(UserError, match="is damaged"):
        read_sample_names(path)
    tables = trees.dump_tables()
    owner = tables.nodes.individual.copy()
    owner[:2] = -1
    tables.nodes.individual = owner
    tables.tree_sequence().dump(path)
    with pytest.raises(UserError, match="2 of 18 sample nodes belong to nobody"):
        read_sample_names(path)
    trees.dump(path)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "tskit" else find(name)
    )
    with pytest.raises(UserError, match="pip install tskit"):
        read_sample_names(path)
