"""Genome builds by the contig lengths of headers."""

import pytest
import yaml
from support.study import FAST, make_cohorts, write_study

from popdesic.cohort.contigs import assemblies
from popdesic.core.errors import UserError
from popdesic.study.configuration import read_config
from popdesic.study.validation import require_writable_results, validate_study


def contig_lines(build: str, chromosomes=(1, 2), prefix: str = "") -> str:
    known = assemblies()[build]
    lines = [f"##contig=<ID={prefix}{k},length={known[str(k)]},assembly=x>" for k in chromosomes]
    return "\n".join(["##fileformat=VCFv4.2", *lines])


@pytest.fixture
def study(tmp_path):
    """Write a study whose first cohorts have headers of these builds; validate it."""

    def build(headers: list[str], asked: str):
        folder = write_study(tmp_path, make_cohorts((6, 5, 4)), FAST | {"qc": {"build": asked}})
        for name, header in zip(("north", "south"), headers, strict=False):
            (path,) = (folder / "data").glob(f"{name}.vcf*")
            cohort = next(c for c in make_cohorts((6, 5, 4)) if c.name == name)
            text = cohort.vcf().replace("##fileformat=VCFv4.2", header, 1)
            path.unlink()
            path.with_name(f"{name}.vcf").write_text(text)
            sheet = folder / "config/cohorts.tsv"
            sheet.write_text(sheet.read_text().replace(f"data/{path.name}\t", f"data/{name}.vcf\t"))
        return validate_study(read_config(folder), folder)[2]

    return build


@pytest.mark.parametrize("prefix", ["", "chr"])
def test_another_build_than_the_header_s_is_an_error(study, prefix):
    with pytest.raises(UserError) as error:
        study([contig_lines("hg19", (22,), prefix)], "hg38")
    said = str(error.value)
    assert "qc.build is 'hg38'" in said and "north.vcf" in said and said.endswith(".")
    assert f"contig {prefix}22 the length 51304566, which it has in hg19" in said


def test_the_same_build_and_headers_without_lengths_pass(study):
    assert study([contig_lines("hg19"), "##fileformat=VCFv4.2\n##contig=<ID=1>"], "hg19") == []


def test_any_and_none_take_a_header_as_it_is(study):
    assert study([contig_lines("hg19")], "any") == []
    assert study([contig_lines("hg19")], "none") == []
    assert study([contig_lines("GRCm39")], "any") == []


@pytest.mark.parametrize(
    ("asked", "words"),
    [("any", "hg19 (cohort north) and hg38 (cohort south)"), ("hg19", "south.vcf gives contig 1")],
)
def test_cohorts_of_two_builds_are_refused(study, asked, words):
    with pytest.raises(UserError) as error:
        study([contig_lines("hg19"), contig_lines("hg38")], asked)
    assert words in str(error.value) and "qc.build to" in str(error.value)


def test_two_builds_pass_where_the_user_says_that_lengths_mean_nothing(study):
    assert study([contig_lines("hg19"), contig_lines("hg38")], "none") == []


def test_a_mouse_under_a_human_build_is_refused(study):
    with pytest.raises(UserError) as error:
        study([contig_lines("GRCm39")], "hg38")
    assert "qc.build is 'hg38'" in str(error.value)
    assert "it has in GRCm39 (mouse); set qc.build to any" in str(error.value)


def test_numbers_of_autosomes_are_said(study):
    (remark,) = study([contig_lines("ARS-UCD1.3", (1, 23, 29))], "any")
    assert remark == "Contigs 23 are taken as autosomes, as in ARS-UCD1.3 (cattle)."


def test_configuration_may_turn_sites_and_number_off_and_on(tmp_path):
    given = {"embedding": {"ld_prune": [], "components": 7}, "long_range_ld": "keep"}
    folder = write_study(tmp_path, make_cohorts((6, 5, 4)), FAST | given)
    config = validate_study(read_config(folder), folder)[0]
    assert config["embedding"]["ld_prune"] == [] and config["geodesic"]["pcs"] == "auto"
    given["embedding"]["ld_prune"] = ["500 kb", 5, 0.2]
    (folder / "config/config.yaml").write_text(yaml.safe_dump(FAST | given))
    with pytest.raises(UserError, match=r"embedding\.ld_prune is .*the step is a whole number"):
        validate_study(read_config(folder), folder)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    require_writable_results(tmp_path)
    (tmp_path / "results").write_text("a file where a folder must be")
    with pytest.raises(UserError, match=r"results' cannot be written .*copy config to a folder"):
        require_writable_results(tmp_path)
    with pytest.raises(UserError, match="The study folder cannot be written"):
        require_writable_results(tmp_path / "results")
