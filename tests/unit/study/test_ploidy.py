"""What a sheet that declares haploids changes, before any job."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.study import FAST, make_cohorts, write_study

from popdesic.cohort.absent import Absent
from popdesic.cohort.call_rates import call_rate_bound
from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.panel import load_panel
from popdesic.cohort.qc import summarize_cohort
from popdesic.core.errors import UserError
from popdesic.io.batches import ONLY_HAPLOID
from popdesic.io.bed import open_cohort
from popdesic.io.genotypes import unpack_bed
from popdesic.study.configuration import fill_config, read_config
from popdesic.study.init import init_study
from popdesic.study.ploidy import for_ploidy, ploidies_of, ploidy_of_kinds
from popdesic.study.validation import validate_study


def text_of(rows: list[list[str]], names: list[str]) -> str:
    head = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t" + "\t".join(names)
    lines = [
        "\t".join(["1", str(100 + 10 * k), ".", "A", "C", ".", ".", ".", "GT", *row])
        for k, row in enumerate(rows)
    ]
    return "\n".join(["##fileformat=VCFv4.2", "##contig=<ID=1>", head, *lines]) + "\n"


def haploid_study(folder, call=("0", "1"), ploidy: str = "1", config: dict | None = None):
    """Two cohorts of three haploids, the sheets made by hand."""
    rng = np.random.default_rng(1)
    (folder / "config").mkdir(parents=True)
    cohorts, samples = ["cohort\tgenotypes\tfounder"], ["sample\tcohort\tploidy"]
    for name in ("a", "b"):
        rows = [[call[g] for g in site] for site in rng.integers(0, 2, (150, 3))]
        names = [f"{name}{k}" for k in range(3)]
        (folder / f"{name}.vcf").write_text(text_of(rows, names))
        cohorts.append(f"{name}\t{name}.vcf\tyes")
        samples += [f"{sample}\t{name}\t{ploidy}" for sample in names]
    (folder / "config/cohorts.tsv").write_text("\n".join(cohorts) + "\n")
    (folder / "config/samples.tsv").write_text("\n".join(samples) + "\n")
    return folder


def test_diploids_are_what_they_were(tmp_path, monkeypatch):
    """Without the column, with 2 and with unknown values: the same configuration."""
    folder = write_study(tmp_path, make_cohorts((6, 5)), FAST)
    monkeypatch.chdir(folder)
    config, study, _ = validate_study(read_config())
    assert (study.ploidy, study.haploid) == (2, ()) and config["contigs"]["haploid"] == "error"
    sheet = folder / "config/samples.tsv"
    first, *rows = sheet.read_text().splitlines()
    values = ["2", "NA", ""] * len(rows)
    rows = [f"{row}\t{value}" for row, value in zip(rows, values, strict=False)]
    sheet.write_text("\n".join([f"{first}\tploidy", *rows]) + "\n")
    again, study, _ = validate_study(read_config())
    assert again == config and study.ploidy == 2


def test_haploids_change_the_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(haploid_study(tmp_path))
    given = {
        "population": {"analyses": ["diversity", "runs", "ancestry"]},
        "export": {"formats": ["plink", "vcf"]},
        "epistasis": {"order": [2]},
        "compare": {"analyses": ["kinship", "identity", "ld", "ibd"]},
        "geodesic": {"space": ["genotypes", "ibd"]},
    }
    before = fill_config(given)
    config, sentences = for_ploidy(before, 1)
    assert before == fill_config(given), "it is not changed"
    assert config["contigs"]["haploid"] == ONLY_HAPLOID
    assert config["compare"]["analyses"] == ["identity", "ld", "ibd"]
    assert config["population"]["analyses"] == ["diversity"]
    assert config["export"]["formats"] == ["plink"] and config["epistasis"]["order"] == []
    assert config["geodesic"]["space"] == ["genotypes"]
    assert (config["close_kinship"], config["panel"]["min_hwe_p"]) == (0, 0)
    assert (config["contigs"]["x"], config["qc"]["max_mendel_rate"]) == ([], 1)
    told = " ".join(sentences)
    for word in (
        "kinship (compare",
        "ibd (geodesic",
        "runs, ancestry",
        "vcf (export",
        "scans for interactions",
    ):
        assert word in told, word
    for names, query in ((["mixture", "identity"], "a.vcf"), (["mixture"], None)):
        block = {"compare": {"analyses": names, "query": "a.vcf"}}
        assert for_ploidy(fill_config(block), 1)[0]["compare"]["query"] == query
    found, study, remarks = validate_study({})
    assert study.ploidy == 1 and list(study.haploid) == remarks[: len(study.haploid)]
    assert found["close_kinship"] == 0


@pytest.mark.parametrize("method", ["beagle", "copying"])
@pytest.mark.parametrize("ploidy", [1, 4])
def test_methods_for_diploids_are_refused(method, ploidy):
    with pytest.raises(UserError, match=f"{method}, which takes everyone as diploid"):
        for_ploidy(fill_config({"impute": {"method": method, "reference": "r.vcf"}}), ploidy)


def test_ploidies_of_a_study():
    """Of excluded samples too, because their calls are read; a large common multiple is refused."""
    sheet = pd.DataFrame({"row": [2, 3], "sample": ["a", "b"], "ploidy": ["4", "NA"]})
    gone = pd.DataFrame({"row": [4], "sample": ["c"], "ploidy": ["6"]})
    assert ploidies_of(sheet, gone, "samples.tsv") == ((2, 4), {"a": 4, "b": 2, "c": 6})
    assert ploidies_of(sheet[:1], gone, "samples.tsv") == ((4,), {})
    sentence = r"samples.tsv, row 3: ploidy of sample 'b' is 7, .* at most 24, not 28"
    with pytest.raises(UserError, match=sentence):
        ploidies_of(sheet.assign(ploidy=["4", "7"]), gone, "samples.tsv")


def test_other_ploidies_are_refused_with_their_row(tmp_path, monkeypatch):
    monkeypatch.chdir(haploid_study(tmp_path, ploidy="16"))
    with pytest.raises(UserError, match=r"row 2: ploidy is '16'; expected: one of 1, 2, 3"):
        validate_study({})


TETRAPLOID = ("0/0/1/0", "1/1/0/1")


def test_polyploids_change_the_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(haploid_study(tmp_path, call=TETRAPLOID, ploidy="4"))
    given = {
        "population": {"analyses": ["diversity", "runs", "local"]},
        "export": {"formats": ["plink", "newick", "mibs"]},
        "panel": {"ld_prune": ["100 kb", 1, 0.5]},
        "compare": {"query": "a.vcf", "ld": {"phase": "phased"}},
        "geodesic": {"alpha": ["auto"]},
        "ingest": {"min_allele_balance": 0.2},
        "distance": {"metric": "manhattan"},
    }
    config, sentences = for_ploidy(fill_config(given), 4)
    assert config["ingest"]["min_allele_balance"] == 0
    assert config["contigs"]["haploid"] == "ploidy 4"
    assert config["compare"]["analyses"] == ["ld"] and config["compare"]["ld"]["phase"] == "em"
    assert config["compare"]["query"] is None
    assert config["population"]["analyses"] == ["diversity"]
    assert config["export"]["formats"] == ["newick"]
    assert config["panel"]["ld_prune"] is None and config["embedding"]["ld_prune"]
    assert config["impute"]["method"] == "none" and config["close_kinship"] == 0
    assert (config["geodesic"]["alpha"], config["geodesic"]["pcs"]) == ([2], 8)
    told = " ".join(sentences)
    for word in (
        "ploidy 4",
        "local",
        "plink, mibs (export",
        "search of profiles",
        "pruning of the panel",
        "phased haplotypes",
    ):
        assert word in told, word
    _, study, remarks = validate_study({})
    assert study.ploidy == 4 and list(study.haploid) == remarks[: len(study.haploid)]


@pytest.mark.parametrize("kinds", [(2, 4), (1, 2)])
def test_several_ploidies_leave_out_what_polyploids_do(kinds):
    """And haploids alone keep what needs no genotypes of two alleles."""
    given = {
        "population": {"analyses": ["diversity", "runs", "local", "ancestry"]},
        "export": {"formats": ["plink", "vcf", "newick", "mibs"]},
        "panel": {"ld_prune": ["100 kb", 1, 0.5]},
        "compare": {"analyses": ["kinship", "identity", "mixture", "ld", "ibd"], "query": "a.vcf"},
        "ingest": {"min_allele_balance": 0.2},
        "epistasis": {"order": [2]},
        "distance": {"metric": "manhattan"},
    }
    before = fill_config(given)
    haploid, one, several = (for_ploidy(before, *some)[0] for some in ((1,), (4,), kinds))
    assert several["contigs"].pop("haploid") == f"ploidy {kinds[0]},{kinds[1]}"
    assert one["contigs"].pop("haploid") == "ploidy 4" and several == one
    assert several["contigs"]["x"] == [] and several["epistasis"]["order"] == []
    assert several["impute"]["method"] == "none" and several["qc"]["max_mendel_rate"] == 1
    assert "local" in haploid["population"]["analyses"] and haploid["compare"]["query"] == "a.vcf"
    assert haploid["panel"]["ld_prune"] == before["panel"]["ld_prune"]
    assert haploid["ingest"] == before["ingest"]
    assert ploidy_of_kinds(kinds) > 2, "none is placed"
    with pytest.raises(UserError, match="ibs, but samples are of ploidy"):
        for_ploidy(fill_config({"distance": {"metric": "ibs"}}), *kinds)


@pytest.mark.parametrize(
    "config, words",
    [
        ({"distance": {"metric": "ibs"}}, "distance.metric is ibs, but samples are of ploidy 4"),
        ({"impute": {"method": "beagle"}}, "beagle, which takes everyone as diploid"),
        ({"distance": {"dense_limit": 5}}, "6 samples of ploidy 4 are more than distance.dense_li"),
    ],
)
def test_what_polyploids_cannot_have_is_refused(tmp_path, monkeypatch, config, words):
    monkeypatch.chdir(haploid_study(tmp_path, call=TETRAPLOID, ploidy="4"))
    with pytest.raises(UserError, match=words):
        validate_study(config)


@pytest.mark.parametrize("call", [("0/0", "0/1"), ("0/0/0/1", "0/././1"), ("0/0/0", "0/1/1")])
def test_calls_of_another_ploidy_are_refused_before_any_job(tmp_path, monkeypatch, call):
    monkeypatch.chdir(haploid_study(tmp_path, call=call, ploidy="4"))
    with pytest.raises(UserError, match=r"a.vcf, line \d+: genotype '.*' of sample 'a\d'"):
        validate_study({})


def test_other_formats_of_polyploids_are_refused(tmp_path):
    (tmp_path / "a.vcf").write_text(text_of([["0", "1"], ["1", "0"]], ["x", "y"]))
    ingest_cohort(tmp_path / "a.vcf", tmp_path / "raw", haploid=ONLY_HAPLOID)
    with pytest.raises(UserError, match="raw is not a VCF, and samples of ploidy 4"):
        ingest_cohort(tmp_path / "raw", tmp_path / "again", haploid="ploidy 4")


def test_layers_of_polyploids_in_plink_files(tmp_path):
    """A sample that the sheet excludes, before or after, is in neither of its layers."""
    rows = [["0/0/0/1", "0/1/1/1", "1/1/1/1"], [".", "0/0/1/1", "0/0/0/0"]]
    (tmp_path / "a.vcf").write_text(text_of(rows, ["x", "y", "z"]))
    ingest_cohort(tmp_path / "a.vcf", tmp_path / "raw", haploid="ploidy 4")
    bed, fam = open_cohort(tmp_path / "raw", ["x", "z"])
    expected = [[1, 2, 0, 2], [-1, 0, -1, 0]]
    np.testing.assert_array_equal(unpack_bed(bed[np.arange(2)], 4), expected)
    assert fam["sample"].tolist() == ["x", "z"] * 2 and fam.family.tolist() == list("1122")
    ingest_cohort(tmp_path / "a.vcf", tmp_path / "few", haploid="ploidy 4", excluded=["y"])
    bed, again = open_cohort(tmp_path / "few", ["x", "z"])
    np.testing.assert_array_equal(unpack_bed(np.asarray(bed), 4), expected)
    assert again.equals(fam)


def test_haploid_calls_without_the_column_name_it(tmp_path, monkeypatch):
    monkeypatch.chdir(haploid_study(tmp_path, ploidy="2"))
    with pytest.raises(UserError, match=r"is haploid.*or ploidy to 1 in the sheet if all samples"):
        validate_study({})


def test_two_alleles_are_refused_before_any_job(tmp_path, monkeypatch):
    monkeypatch.chdir(haploid_study(tmp_path, call=("0/0", "0/1")))
    with pytest.raises(UserError, match=r"a.vcf: the genotype of sample 'a1' at 1:100 has"):
        validate_study({})


@pytest.mark.parametrize(("ploidy", "call"), [("1", ("0", "1")), ("4", TETRAPLOID)])
def test_excluded_samples_and_contigs_may_have_any_ploidy(tmp_path, monkeypatch, ploidy, call):
    """The check passes, and it is the exclusion that lets it."""
    folder = haploid_study(tmp_path, call=call, ploidy=ploidy)
    monkeypatch.chdir(folder)
    lines = (folder / "a.vcf").read_text().splitlines()
    for k, line in enumerate(lines):
        if line.startswith("1\t"):
            lines[k] = "\t".join([*line.split("\t")[:-1], "0/1/1"])
    chloroplast = "\t".join(["Pt", "7", ".", "A", "C", ".", ".", ".", "GT", "0/1", "1/1/1", "1/0"])
    (folder / "a.vcf").write_text("\n".join([*lines, chloroplast]) + "\n")
    sheet = folder / "config/samples.tsv"
    first, *rows = sheet.read_text().splitlines()
    rows = [f"{row}\t{'yes' if row.startswith('a2') else 'no'}" for row in rows]
    sheet.write_text("\n".join([f"{first}\texclude", *rows]) + "\n")
    _, study, _ = validate_study({"contigs": {"exclude": ["Pt"]}})
    assert study.ploidy == int(ploidy) and study.excluded["sample"].tolist() == ["a2"]
    with pytest.raises(UserError, match=r"of sample 'a[01]'"):
        validate_study({"contigs": {"exclude": ["MT"]}})
    sheet.write_text("\n".join([first, *(row.rsplit("\t", 1)[0] for row in rows)]) + "\n")
    with pytest.raises(UserError, match="of sample 'a2'"):
        validate_study({"contigs": {"exclude": ["Pt"]}})


def test_calls_of_two_equal_alleles_are_one_allele_and_counted(tmp_path):
    rows = [["1", "1/1", "0|0"], [".", "./.", "0"], ["0", "1", "1/1"]]
    (tmp_path / "a.vcf").write_text(text_of(rows, ["x", "y", "z"]))
    found = ingest_cohort(tmp_path / "a.vcf", tmp_path / "raw", haploid=ONLY_HAPLOID)
    bed, _ = open_cohort(tmp_path / "raw", pd.Series(["x", "y", "z"]))
    expected = [[2, 2, 0], [-1, -1, 0], [0, 2, 2]]
    np.testing.assert_array_equal(unpack_bed(np.asarray(bed), 3), expected)
    assert any(text.startswith("3 calls of two equal alleles") for text in found.remarks)
    # The same file of PLINK, whose calls have no ploidy.
    again = ingest_cohort(tmp_path / "raw", tmp_path / "again", haploid=ONLY_HAPLOID)
    assert any(text.startswith("7 calls of two equal alleles") for text in again.remarks)
    assert (tmp_path / "again.bed").read_bytes() == (tmp_path / "raw.bed").read_bytes()


def test_two_different_alleles_stop_the_job(tmp_path):
    (tmp_path / "a.vcf").write_text(text_of([["0", "1"], ["1", "0/1"]], ["x", "y"]))
    sentence = r"a.vcf: the genotype of sample 'y' at 1:110 has two different alleles"
    with pytest.raises(UserError, match=sentence):
        ingest_cohort(tmp_path / "a.vcf", tmp_path / "raw", haploid=ONLY_HAPLOID)


@pytest.mark.parametrize(
    "call, contig, declared",
    [(("0", "1"), "1", True), (("0/0", "1/1"), "1", False), (("0", "1"), "chrM", False)],
)
def test_init_declares_haploids(tmp_path, monkeypatch, call, contig, declared):
    """Not by the mitochondria of diploids, which may come first."""
    folder = haploid_study(tmp_path / "files", call=call)
    for file in folder.glob("*.vcf"):
        text = file.read_text().replace("ID=1>", f"ID={contig}>")
        file.write_text(text.replace("\n1\t", f"\n{contig}\t"))
    monkeypatch.chdir(folder)
    said = init_study(["new", "a.vcf", "b.vcf"])
    sheet = (tmp_path / "files/new/config/samples.tsv").read_text().splitlines()
    assert ("ploidy" in sheet[0].split("\t")) == declared
    assert ("from calls of one allele: ploidy of 6" in said) == declared


def test_init_declares_polyploids(tmp_path, monkeypatch):
    """Not where a sample's calls are of several: the check then says which is another."""
    folder = haploid_study(tmp_path / "files", call=TETRAPLOID)
    monkeypatch.chdir(folder)
    assert "from calls of 4 alleles: ploidy of 6" in init_study(["new", "a.vcf", "b.vcf"])
    (folder / "b.vcf").write_text((folder / "b.vcf").read_text().replace("0/0/1/0", "0/0/1"))
    with pytest.raises(UserError, match="more than two alleles; if all calls of the sample"):
        init_study(["other", "a.vcf", "b.vcf"])


def quality_of(folder, name: str, calls: list[list[str]], pos: list[int]):
    """Decode a cohort of tetraploids, and control its quality: its stem and sample table."""
    lines = text_of(calls, [f"{name}{k}" for k in range(len(calls[0]))]).splitlines()
    rows = [line.split("\t") for line in lines[3:]]
    rows = ["\t".join([row[0], str(place), *row[2:]]) for row, place in zip(rows, pos, strict=True)]
    (folder / f"{name}.vcf").write_text("\n".join([*lines[:3], *rows, ""]))
    ingest_cohort(folder / f"{name}.vcf", folder / name, haploid="ploidy 4")
    tables = [folder / f"{name}.{kind}.tsv" for kind in ("sites", "samples")]
    labels = {f"{name}{k}": f"P{k % 2}" for k in range(len(calls[0]))}
    summarize_cohort(folder / name, labels, *tables, min_sample_call_rate=0.1)
    return folder / name, *tables


def test_call_rates_of_polyploids_are_those_of_samples(tmp_path):
    """Counts of layers that are not even lose no sample."""
    calls = [["0/0/0/1", "0/0/0/1", "0/1/0/0", "1/1/1/1"], [".", "0/0/0/1", "0/0/0/1", "."]]
    _, sites, _ = quality_of(tmp_path, "a", calls, [10, 20])
    bounds = pd.read_csv(sites, sep="\t").call_rate_bound
    expected = min(call_rate_bound(np.array([missing]), n)[0] for missing, n in ((2, 4), (1, 2)))
    np.testing.assert_allclose(bounds, [1, expected], rtol=1e-5)


def test_absent_sites_of_polyploids_are_those_of_all_layers(tmp_path):
    """A founder that lists a site, and one that is REF there: frequencies and calls by hand."""
    both = [["0/0/0/1", "0/1/1/1"], ["0/0/1/1", "0/0/0/1"]]
    made = {
        "a": quality_of(tmp_path, "a", both, [10, 20]),
        "b": quality_of(tmp_path, "b", [both[0], ["0/0/0/1", "."]], [10, 30]),
    }
    build_panel(
        {name: sites for name, (_, sites, _) in made.items()},
        tmp_path / "panel.tsv",
        tmp_path / "counts.json",
        PanelFilters([], min_call_rate=0.2, min_maf=0, min_hwe_p=0),
        genotypes={name: (raw, samples) for name, (raw, _, samples) in made.items()},
        absent={name: Absent("reference") for name in made},
    )
    panel = load_panel(tmp_path / "panel.tsv")[0].set_index("pos")
    assert panel.n_called.to_dict() == {10: 8, 20: 8, 30: 6}
    np.testing.assert_allclose(panel.af, [8 / 16, 3 / 16, 1 / 12], rtol=1e-12)
