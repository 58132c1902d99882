"""Configuration and sheets: schemas, defaults, and the sample order."""

import itertools
import time

import pandas as pd
import pytest
import yaml
from support.study import make_cohorts, read_config, write_raw, write_study

from popdesic.cohort.parents import check_parents, remark_on_absent
from popdesic.cohort.samples import (
    describe_samples,
    excluded_samples,
    populations,
    split_excluded,
)
from popdesic.core.errors import UserError
from popdesic.core.schemas import load_schema
from popdesic.study.configuration import fill_config
from popdesic.study.sheets import (
    cohort_absent,
    cohort_files,
    load_study,
    read_sheet,
    remark_on_excluded,
    said_of_absent,
)

COHORTS = "cohort\tgenotypes\tfounder\n"


def sheets(folder, cohorts: str, samples: str) -> dict:
    """Write both sheets; return the default configuration."""
    (folder / "config").mkdir(exist_ok=True)
    (folder / "config/cohorts.tsv").write_text(cohorts)
    (folder / "config/samples.tsv").write_text(samples)
    return fill_config({})


# --- configuration ------------------------------------------------------------------------------


def every_key(schema: dict, path: tuple = ()):
    """All leaves of the schema: path and schema of each."""
    for key, child in schema["properties"].items():
        if child.get("type") == "object":
            yield from every_key(child, (*path, key))
        else:
            yield (*path, key), child


def test_every_key_is_described_and_has_a_default():
    schema = load_schema("config")
    blocks = [schema, *(b for b in schema["properties"].values() if b.get("type") == "object")]
    assert all(block["additionalProperties"] is False for block in blocks)
    filled = fill_config({})
    for path, child in every_key(schema):
        assert child["description"], path
        value = filled
        for key in path:
            value = value[key]
        assert value == child["default"], path


def test_given_values_are_kept_and_defaults_filled_in():
    given = {"distance": {"metric": "ibs"}, "geodesic": None, "device": None}
    filled = fill_config(given)
    assert filled["distance"] == fill_config({})["distance"] | {"metric": "ibs"}
    assert filled["geodesic"] == fill_config({})["geodesic"]
    assert filled["device"] == "auto"
    assert given == {"distance": {"metric": "ibs"}, "geodesic": None, "device": None}


def test_geodesics_are_chosen_by_default():
    """α = 8, where few distant pairs decide, is no default; a number stays what was asked for."""
    geodesic = fill_config({})["geodesic"]
    assert (geodesic["alpha"], geodesic["pcs"]) == ([2, "auto"], "auto")
    given = {"alpha": ["auto", 1, 8], "pcs": 3, "graph": "knn"}
    assert fill_config({"geodesic": given})["geodesic"] == geodesic | given
    with pytest.raises(UserError, match=r"geodesic\.graph is 'auto', but must be one of"):
        fill_config({"geodesic": {"graph": "auto"}})


def test_the_example_is_a_valid_study_with_the_defaults(pytestconfig):
    text = (pytestconfig.rootpath / "config/config.yaml").read_text()
    config = fill_config(yaml.safe_load(text))
    defaults = fill_config({})
    config["impute"][
        "evaluate"
    ] = []  # enabled in the example, off by default because of their cost
    for block in ("qc", "panel", "impute", "contigs", "distance", "geodesic", "embedding"):
        assert config[block] == defaults[block], block


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"distence": {}}, "'distence' is not a configuration key; did you mean 'distance'?"),
        (
            {"distance": {"metrics": "ibs"}},
            "'distance.metrics' is not a configuration key; did you mean 'metric'?",
        ),
        (
            {"epistasis": {"count_once": True}},
            "'epistasis.count_once' is gone: each phenotype is scanned by itself; correct it, or "
            "let popdesic init --upgrade rewrite the file.",
        ),
        ({"qc": {"zzz": 1}}, "'qc.zzz' is not a configuration key; known are: min_sample_call"),
        ({"geodesic": {"alpha": [2, 0.5]}}, "geodesic.alpha[1] is 0.5, but must be a number of"),
        ({"geodesic": {"alpha": []}}, "geodesic.alpha is [], but must have at least 1 entry."),
        ({"geodesic": {"alpha": [2, 2.0]}}, "but must not repeat an entry."),
        ({"geodesic": {"alpha": ["two"]}}, "must be a number of at least 1 or 'auto'."),
        ({"geodesic": {"alpha": [float("inf")]}}, "geodesic.alpha[0] is inf, but must be a fini"),
        ({"geodesic": {"alpha": [float("nan")]}}, "geodesic.alpha[0] is nan, but must be a fini"),
        ({"geodesic": {"alpha": [2.1234567]}}, "is 2.1234567, but must be a finite number of at"),
        ({"geodesic": {"alpha": 2}}, "geodesic.alpha is 2, but must be of type array."),
        ({"distance": {"metric": "cosine"}}, "must be one of ['euclidean', 'manhattan', 'ibs'"),
        ({"panel": {"min_maf": 0.7}}, "panel.min_maf is 0.7, but must be at most 0.5."),
        ({"panel": {"min_maf": "0.1"}}, "panel.min_maf is '0.1', but must be of type number."),
        ({"distance": {"min_called": 0}}, "distance.min_called is 0, but must be at least 1."),
        ({"distance": 3}, "distance is 3, but must be of type object."),
        ({"device": "tpu"}, "device is 'tpu', but must be one of ['auto', 'cpu', 'gpu']."),
        (
            {"impute": {"method": "none", "stages": ["distance"]}},
            "impute.stages has 'distance', but impute.method is 'none'",
        ),
    ],
    ids=lambda value: str(value)[:45] if isinstance(value, dict) else "",
)
def test_config_errors(given, sentence):
    with pytest.raises(UserError) as error:
        fill_config(given)
    text = str(error.value)
    assert text.startswith("config/config.yaml: ")
    assert sentence in text
    assert "\n" not in text
    assert len(text) < 250


def test_an_unknown_key_is_reported_first():
    with pytest.raises(UserError, match=r"'distance\.metrik' is not"):
        fill_config({"distance": {"metrik": "x", "metric": "cosine"}, "panel": {"min_maf": 3}})


# --- sheets -------------------------------------------------------------------------------------


def test_sheet_keeps_strings_and_line_numbers(tmp_path):
    path = tmp_path / "s.tsv"
    path.write_bytes("\ufeffsample\tcohort\tage\r\n\r\n007\tNA\t1e3\r\n x y \t\ttrue\r\n".encode())
    sheet = read_sheet(path, "s.tsv")
    assert sheet.to_dict("list") == {
        "row": [3, 4],
        "sample": ["007", "x y"],
        "cohort": ["NA", ""],
        "age": ["1e3", "true"],
    }


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_line_endings_of_every_system(tmp_path, end, last):
    text = end.join(["sample\tcohort", "", "a b \tone", "\t", "c\u2009d\ttwo"])
    (tmp_path / "s.tsv").write_bytes((text + end * last).encode())
    table = read_sheet(tmp_path / "s.tsv", "s.tsv")
    assert table.to_dict("list") == {
        "row": [3, 5],
        "sample": ["a b", "c\u2009d"],
        "cohort": ["one", "two"],
    }


@pytest.mark.parametrize("letter", ["\x85", "\x0b", "\x1c", "\u2028", "\u2029", "\0", "\x7f"])
def test_other_line_separators_are_refused(tmp_path, letter):
    (tmp_path / "s.tsv").write_bytes(f"sample\tcohort\r\na\tone\r\nb{letter}c\tone\r\n".encode())
    with pytest.raises(UserError, match=rf"s\.tsv, row 3: .*U\+{ord(letter):04X}"):
        read_sheet(tmp_path / "s.tsv", "s.tsv")


def test_long_names_are_shortened_in_messages(tmp_path):
    long = "x" * 10**6
    for text in (f"{long}\n", f"{long}\t{long}\nb\tc\n", f"sample\t{long}\na\tb\n"):
        config = sheets(tmp_path, text, "sample\tcohort\nb\tone\n")
        with pytest.raises(UserError) as error:
            load_study(config, tmp_path, check_files=False)
        assert len(str(error.value)) <= 1510


def test_many_rows_are_checked_in_seconds(tmp_path):
    n = 200_000
    fathers = ["NA" if k < 2 else f"s{k // 2}" for k in range(n)]
    lines = [f"s{k}\tone\tp{k % 99}\t{1 + k % 2}\t{father}" for k, father in enumerate(fathers)]
    text = "\n".join(["sample\tcohort\tpopulation\tphenotype\tfather", *lines])
    config = sheets(tmp_path, "cohort\tgenotypes\tfounder\none\tx\tyes\n", text)
    started = time.process_time()
    study = load_study(config, tmp_path, check_files=False)
    took = time.process_time() - started
    print(f"{took:.1f} s")
    assert len(study.samples) == n and took < 20


def test_sample_order_does_not_depend_on_the_sheet(tmp_path):
    rows = ["zeta\tz.vcf\tyes", "new2\tn2.vcf\tno", "alfa\ta.vcf\tyes", "new1\tn1.vcf\tno"]
    samples = [f"{c}{k}\t{c}" for c in ("zeta", "new1", "alfa", "new2") for k in (2, 10, 1)]
    found = set()
    for order in itertools.permutations(range(4)):
        config = sheets(
            tmp_path,
            COHORTS + "\n".join(rows[k] for k in order),
            "sample\tcohort\n" + "\n".join(samples[:: 1 - 2 * (order[0] % 2)]),
        )
        study = load_study(config, tmp_path, check_files=False)
        found.add((*study.order, study.digest_of(), study.digest_of("zeta")))
    assert len(found) == 1
    assert study.order == ["alfa", "zeta", "new1", "new2"]
    assert (study.founders, study.newcomers) == (["alfa", "zeta"], ["new1", "new2"])


def test_digest_depends_on_the_requested_columns(tmp_path):
    def digests(population: str, age: str):
        config = sheets(
            tmp_path,
            COHORTS + "a\ta.vcf\tyes\nb\tb.vcf\tno\n",
            f"sample\tcohort\tpopulation\tage\nx\ta\t{population}\t{age}\nz\ta\tP\t3\ny\tb\tP\t1\n",
        )
        study = load_study(config, tmp_path, check_files=False)
        return study.digest_of(), study.digest_of("a", "population"), study.digest_of("b")

    base, population, age = digests("P", "1"), digests("Q", "1"), digests("P", "2")
    assert base[0] != population[0] != age[0] != base[0]
    assert base[1] == age[1] != population[1]
    assert base[2] == age[2] == population[2]


def test_sex_codes_and_extra_columns(tmp_path):
    config = sheets(
        tmp_path,
        COHORTS + "a\ta.vcf\tyes\n",
        "sample\tcohort\tsex\tphenotype\tvillage\n"
        "r\ta\t1\t1.5\tx\ns\ta\t2\t-3e-2\t\nt\ta\t0\tNA\tx\nu\ta\tM\t.5\tx\nv\ta\t\t\tx\n",
    )
    study = load_study(config, tmp_path, check_files=False)
    assert study.samples.sex.tolist() == ["M", "F", "NA", "M", "NA"]
    assert list(study.samples.columns) == ["sample", "cohort", "sex", "phenotype", "village"]


def test_study_with_files(tmp_path):
    cohorts = make_cohorts((4, 3, 3), n_sites=10)
    write_study(tmp_path, cohorts)
    prefix = write_raw(tmp_path / "data/south", cohorts[1])
    sheet = tmp_path / "config/cohorts.tsv"
    sheet.write_text(sheet.read_text().replace("data/south.vcf.gz", "data/south.bed"))
    study = load_study(read_config(tmp_path), tmp_path)
    assert study.order == ["north", "south", "west"]
    assert len(study.samples_of("south")) == 3
    assert cohort_files(study, "north") == ["data/north.vcf"]
    assert cohort_files(study, "south") == [f"data/south.{end}" for end in ("bed", "bim", "fam")]
    assert prefix.name == "south"


def test_populations_and_descriptions(tmp_path):
    sheet = tmp_path / "samples.tsv"
    sheet.write_text("sample\tcohort\tpopulation\tsite\nx\ta\tP\t1\ny\ta\t\t2\nz\tb\tQ\t3\n")
    assert populations(sheet) == {"x": "P", "y": "NA", "z": "Q"}
    order = tmp_path / "order.tsv"
    order.write_text("sample\tcohort\nz\tb\nx\ta\n")
    expected = pd.DataFrame(
        {"sample": ["z", "x"], "cohort": ["b", "a"], "population": ["Q", "P"], "site": ["3", "1"]}
    )
    pd.testing.assert_frame_equal(describe_samples(order, sheet), expected)
    sheet.write_text("sample\tcohort\nx\ta\n")
    assert populations(sheet) == {"x": "NA"}


# --- excluded samples -----------------------------------------------------------------------------


def study_with(folder, exclude):
    """A study of two cohorts whose sheet has these values of `exclude`, in order."""
    write_study(folder, make_cohorts((3, 2), n_sites=20))
    sheet = folder / "config/samples.tsv"
    header, *lines = sheet.read_text().splitlines()
    lines = [f"{line}\t{value}" for line, value in zip(lines, exclude, strict=True)]
    sheet.write_text("\n".join([f"{header}\texclude", *lines]) + "\n")
    return load_study(read_config(folder), folder)


@pytest.mark.parametrize("word", ["yes", "true", "1", "TRUE", "Yes"])
def test_excluded_samples_have_no_row_and_the_others_no_column(tmp_path, word):
    study = study_with(tmp_path / "one", ["no", word, "false", "0", "NO"])
    assert list(study.samples["sample"]) == ["N00", "N02", "S00", "S01"]
    assert "exclude" not in study.samples
    assert study.excluded.values.tolist() == [["N01", "north"]]
    assert study.counts == {"north": 2, "south": 2}
    assert study.names_in_files("north") == ["N00", "N02", "N01"]
    (remark,) = remark_on_excluded(study, "config/samples.tsv")
    assert "excludes 1 sample (1 of north); north is a founder" in remark and "N01" not in remark
    assert set(populations(tmp_path / "one/config/samples.tsv")) == {"N00", "N02", "S00", "S01"}
    assert excluded_samples(tmp_path / "one/config/samples.tsv") == {"N01"}


def test_a_sheet_with_nobody_excluded_is_one_without_the_column(tmp_path):
    study = study_with(tmp_path / "one", ["no"] * 5)
    write_study(tmp_path / "two", make_cohorts((3, 2), n_sites=20))
    other = load_study(read_config(tmp_path / "two"), tmp_path / "two")
    assert study.digest_of() == other.digest_of()
    assert remark_on_excluded(study, "config/samples.tsv") == []


@pytest.mark.parametrize("value", ["", "NA", "y", "2", "excluded", "yes no"])
def test_other_values_of_exclude_are_refused(tmp_path, value):
    with pytest.raises(
        UserError, match=rf"samples.tsv, row 3: exclude is '{value}'; expected: yes"
    ):
        study_with(tmp_path, ["no", value, "no", "no", "no"])


def test_a_cohort_of_which_all_are_excluded_is_refused(tmp_path):
    sentence = r"row 5: exclude leaves no sample of cohort 'south' \(2 of 2 excluded\)"
    with pytest.raises(UserError, match=sentence):
        study_with(tmp_path, ["no", "no", "no", "yes", "yes"])


def test_an_excluded_parent_is_unknown():
    columns = {"sample": list("abc"), "father": ["b", "", "NA"], "mother": ["c", "", ""]}
    sheet = pd.DataFrame(columns | {"exclude": ["no", "yes", "no"]})
    kept, excluded = split_excluded(sheet)
    assert kept.values.tolist() == [["a", "", "c"], ["c", "NA", ""]]
    assert list(excluded["sample"]) == ["b"]


def test_an_excluded_sample_must_still_be_in_its_file(tmp_path):
    study_with(tmp_path, ["yes", "no", "no", "no", "no"])
    sheet = tmp_path / "config/samples.tsv"
    sheet.write_text(sheet.read_text().replace("N00\t", "N77\t"))
    with pytest.raises(UserError, match="sample 'N77' is not in"):
        load_study(read_config(tmp_path), tmp_path)


@pytest.mark.parametrize("yes", ["yes", "Yes", "TRUE", "true", "1"])
@pytest.mark.parametrize("no", ["no", "FALSE", "0"])
def test_yes_and_no_of_founders_in_the_words_of_a_spreadsheet(tmp_path, yes, no):
    rows = f"one\tx\t{yes}\ntwo\ty\t{no}\n"
    people = "sample\tcohort\n001\tone\n1\tone\n1.0\ttwo\n"
    study = load_study(sheets(tmp_path, COHORTS + rows, people), tmp_path, check_files=False)
    assert (study.founders, study.newcomers) == (["one"], ["two"])
    assert study.samples["sample"].tolist() == ["001", "1", "1.0"], "names are not numbers"


def test_other_words_than_yes_and_no_are_refused(tmp_path):
    config = sheets(tmp_path, COHORTS + "one\tx\tja\n", "sample\tcohort\na\tone\nb\tone\n")
    with pytest.raises(UserError, match=r"row 2: founder is 'ja'; expected: yes \(true, 1\)"):
        load_study(config, tmp_path, check_files=False)


def test_sheets_as_windows_programs_write_them(tmp_path):
    """A byte-order mark, CRLF, spaces behind values; a decimal comma is refused, not misread."""
    config = sheets(tmp_path, "", "")
    rows = "\ufeffcohort\tgenotypes\tfounder\r\none \tx\tyes \r\n"
    (tmp_path / "config/cohorts.tsv").write_bytes(rows.encode())
    people = "\ufeffsample\tcohort\tphenotype\r\na \tone\t1.5\r\nb\tone \t2\r\n"
    (tmp_path / "config/samples.tsv").write_bytes(people.encode())
    study = load_study(config, tmp_path, check_files=False)
    assert study.founders == ["one"] and study.samples["sample"].tolist() == ["a", "b"]
    (tmp_path / "config/samples.tsv").write_bytes(people.replace("1.5", "1,5").encode())
    with pytest.raises(UserError, match=r"row 2: phenotype is '1,5'; expected"):
        load_study(config, tmp_path, check_files=False)
    (tmp_path / "config/samples.tsv").write_bytes(people.replace("phenotype", "cohort").encode())
    with pytest.raises(UserError, match="'cohort' appears twice"):
        load_study(config, tmp_path, check_files=False)


def test_parents_who_are_not_in_the_sheet_are_unknown_and_said():
    columns = {"row": range(2, 6), "sample": ["kid", "dad1", "c", "d"]}
    sheet = pd.DataFrame(columns | {"father": ["dad1", "", "dat1", "0"]})
    sheet["mother"] = ["x77", "NA", "x77", "kid"]
    check_parents(sheet, "samples.tsv")
    assert remark_on_absent(sheet, "samples.tsv") == [
        "samples.tsv: 2 parents are not in the sheet and taken as unknown, so their children are "
        "not compared with them (the first is 'dat1', father of 'c'; did you mean 'dad1'?)."
    ]
    assert remark_on_absent(sheet[["sample"]], "samples.tsv") == []
    sheet.loc[1, "father"] = "kid"
    with pytest.raises(UserError, match="their own ancestor"):
        check_parents(sheet, "samples.tsv")


# --- absent sites -------------------------------------------------------------------------------


def test_columns_on_absent_sites(tmp_path):
    folder = write_study(tmp_path, make_cohorts((5, 5, 5)))
    config = read_config(folder)
    assert set(load_study(config, folder).cohorts.absent) == {"auto"}
    (folder / "mask.bed").write_text("1\t0\t100\n")
    sheet = folder / "config/cohorts.tsv"
    rows = sheet.read_text().splitlines()
    ends = ["\tabsent\tcallable", "\t\tmask.bed", "\treference\t", "\tmissing\t"]
    sheet.write_text("\n".join(map("".join, zip(rows, ends, strict=True))) + "\n")
    study = load_study(config, folder)
    assert study.cohorts.absent.to_dict() == {
        "north": "auto",
        "south": "reference",
        "west": "missing",
    }
    rule, mask, _ = cohort_absent(study, "south")
    assert (rule, mask) == ("reference", "")
    # From any folder: `check STUDY` prints it after it has left the study's.
    assert said_of_absent(study, "north") == "absent sites: homozygous reference within mask.bed"


@pytest.mark.parametrize(
    ("absent", "callable_", "says"),
    [
        ("ref", "", "row 2: absent is 'ref'; expected: one of auto, missing, reference"),
        ("missing", "mask.bed", "row 2: absent is 'missing', but callable names 'mask.bed'"),
        ("", "none.bed", "none.bed (config/cohorts.tsv, row 2, callable) does not exist"),
        ("", "bad.bed", "bad.bed (config/cohorts.tsv, row 2, callable), row 2: '1 7 x'"),
    ],
)
def test_wrong_values_on_absent_sites(tmp_path, absent, callable_, says):
    folder = write_study(tmp_path, make_cohorts((5, 5)))
    (folder / "mask.bed").write_text("1\t0\t100\n")
    (folder / "bad.bed").write_text("1\t0\t100\n1\t7\tx\n")
    sheet = folder / "config/cohorts.tsv"
    rows = sheet.read_text().splitlines()
    ends = ["\tabsent\tcallable", f"\t{absent}\t{callable_}", "\t\t"]
    sheet.write_text("\n".join(map("".join, zip(rows, ends, strict=True))) + "\n")
    with pytest.raises(UserError) as caught:
        load_study(read_config(folder), folder)
    assert says in str(caught.value)
