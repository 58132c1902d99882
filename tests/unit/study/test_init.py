"""`popdesic init` makes sheets from genotype files that pass the check unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.study import Cohort, make_cohorts, make_sites, write_raw, write_study

from popdesic.__main__ import main
from popdesic.core.errors import UserError
from popdesic.study import init
from popdesic.study.init import CONFIG, init_study
from popdesic.study.init_people import phenotypes


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """Change to a folder with data/north.vcf, data/south.vcf.gz and data/west.vcf."""
    write_study(tmp_path, make_cohorts((4, 3, 3), n_sites=20))
    for path in (tmp_path / "config").iterdir():
        path.unlink()
    (tmp_path / "config").rmdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()]


def make(arguments: list[str], study: str = ".", **options) -> tuple[list, list[dict], str]:
    """Run init and check; return rows of cohorts.tsv without the header, rows of samples.tsv by
    column, and the message of init."""
    said = init_study(arguments, **options)
    assert main(["check", study]) == 0
    sheet = rows(Path(study, "config/samples.tsv"))
    people = [dict(zip(sheet[0], row, strict=True)) for row in sheet[1:]]
    return rows(Path(study, "config/cohorts.tsv"))[1:], people, said


def write_vcf(path: Path, samples: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    genotypes = [[(k + j) % 3 for j in range(len(samples))] for k in range(4)]
    path.write_text(Cohort("x", samples, make_sites(4), np.array(genotypes)).vcf())
    return path


def write_fam(prefix: Path, lines: list[str]) -> Path:
    names = [line.split()[1] for line in lines]
    cohort = make_cohorts((len(names),), n_sites=8)[0]
    write_raw(prefix, Cohort("x", names, cohort.sites, cohort.genotypes))
    Path(f"{prefix}.fam").write_text("".join(f"{line}\n" for line in lines))
    return prefix


# --- cohorts --------------------------------------------------------------------------------------


def test_vcf_files_become_cohorts_and_all_are_founders(place, capsys):
    assert main(["init", "data/north.vcf", "data/south.vcf.gz", "data/west.vcf"]) == 0
    said = capsys.readouterr().out
    assert rows(place / "config/cohorts.tsv") == [
        ["cohort", "genotypes", "founder"],
        ["north", "data/north.vcf", "yes"],
        ["south", "data/south.vcf.gz", "yes"],
        ["west", "data/west.vcf", "yes"],
    ]
    sheet = rows(place / "config/samples.tsv")
    assert sheet[0] == ["sample", "cohort", "population", "sex", "phenotype"]
    assert sheet[1] == ["N00", "north", "NA", "NA", "NA"]
    assert [row[0] for row in sheet[5:8]] == ["S00", "S01", "S02"]
    assert yaml.safe_load((place / "config/config.yaml").read_text()) == {"device": "auto"}
    for part in ("10 samples", "population: ", "phenotype: 1 case, 0 control"):
        assert part in said
    assert said.endswith("Next: popdesic check, then popdesic run\n")
    assert main(["check"]) == 0
    assert "10 samples in 3 cohorts: no problem found." in capsys.readouterr().out


def test_paths_are_relative_to_the_study_wherever_it_is(place, tmp_path):
    cohorts, _, said = make(
        ["studies/one", "data/north.vcf", str(place / "data/west.vcf")], "studies/one"
    )
    assert [c[1] for c in cohorts] == ["../../data/north.vcf", "../../data/west.vcf"]
    assert "popdesic check studies/one, then popdesic run studies/one" in said
    (place / "link").symlink_to("studies")  # '..' of a link is the parent of its target
    cohorts, _, _ = make(["link/two", "data/north.vcf"], "link/two")
    assert cohorts[0][1] == "../../data/north.vcf"


def test_founders_can_be_named(place):
    cohorts, _, said = make(
        ["data/north.vcf", "data/south.vcf.gz", "w=data/west.vcf"], founders=["w", "south"]
    )
    assert [(c[0], c[2]) for c in cohorts] == [("south", "yes"), ("w", "yes"), ("north", "no")]
    assert re.search(r"north\tnewcomer\t4 samples", said)


def test_files_with_the_same_samples_are_one_cohort(place):
    for name in ("1", "2", "10", "X"):
        write_vcf(place / f"split/eur.chr{name}.vcf", ["a", "b"])
    cohorts, people, _ = make(
        ["study", *(f"split/eur.chr{n}.vcf" for n in ("1", "2", "10", "X")), "data/west.vcf"],
        "study",
    )
    assert cohorts[0] == ["eur", "../split/eur.chr{contig}.vcf", "yes"]
    assert [p["sample"] for p in people][:2] == ["a", "b"]
    (place / "split/eur.chr3.vcf").write_text("not asked for")
    cohorts, _, _ = make(["list", "split/eur.chr1.vcf", "split/eur.chr2.vcf"], "list")
    assert cohorts == [["eur", "../split/eur.chr1.vcf,../split/eur.chr2.vcf", "yes"]]


def test_the_calls_of_a_file_are_looked_at_once(place, monkeypatch):
    read, look = [], init.first_records

    def counted(source, *given, **named):
        read.append(str(source))
        return look(source, *given, **named)

    monkeypatch.setattr(init, "first_records", counted)
    files = ["data/north.vcf", "data/south.vcf.gz", "data/west.vcf"]
    make(files)
    assert sorted(read) == files


def test_a_file_given_twice_is_one_cohort(place, capsys):
    cohorts, _, _ = make(["data/north.vcf", "data/north.vcf"])
    assert cohorts == [["north", "data/north.vcf", "yes"]]
    assert "4 samples in 1 cohort: no problem found." in capsys.readouterr().out


def test_patterns_are_kept_as_patterns(place):
    for name in ("chr1", "chr2"):
        write_vcf(place / f"split/{name}.vcf", ["a", "b"])
    cohorts, _, _ = make(["one", "split/chr{contig}.vcf"], "one")
    assert cohorts == [["split", "../split/chr{contig}.vcf", "yes"]]
    cohorts, _, _ = make(["two", "abc=split/*.vcf"], "two")
    assert cohorts == [["abc", "../split/*.vcf", "yes"]]


@pytest.mark.parametrize(
    "file, name",
    [
        ("ALL.chr22.vcf", "ALL.chr22"),
        ("a b__c.vcf", "a-b-c"),
        ("-x_.vcf", "x"),
        ("Ä.vcf", "odd"),
        ("x" * 80 + ".vcf", "x" * 64),
    ],
)
def test_any_file_name_gives_a_valid_cohort_name(place, file, name):
    write_vcf(place / "odd" / file, ["a", "b"])
    cohorts, _, _ = make([f"odd/{file}"])
    assert cohorts[0][0] == name


# --- samples --------------------------------------------------------------------------------------

FAM = [
    "F1 dad 0 0 1 1",
    "F1 mum 0 0 2 2",
    "F1 kid dad mum 0 -9",
    "F2 lone gone 0 2 1",
]


@pytest.mark.parametrize("end", ["", ".bed", ".fam", ".bim"])
def test_fam_fills_sex_parents_and_phenotype(place, end):
    write_fam(place / "data/plink", FAM)
    cohorts, people, said = make([f"data/plink{end}", "data/north.vcf"])
    assert cohorts[1][:2] == ["plink", "data/plink" + (".bed" if end == ".bed" else "")]
    found = {
        p["sample"]: [p[c] for c in ("sex", "father", "mother", "phenotype")] for p in people[4:]
    }
    assert found == {
        "dad": ["M", "NA", "NA", "0"],
        "mum": ["F", "NA", "NA", "1"],
        "kid": ["NA", "dad", "mum", "NA"],
        "lone": ["F", "NA", "NA", "0"],
    }
    assert "from plink's .fam: sex of 3, phenotype of 3, father of 2, mother of 1" in said
    assert "parents who are not samples of the study: 1, left out" in said


def test_a_constant_phenotype_is_left_out(place):
    write_fam(place / "data/plink", [line[:-2] + " 1" for line in FAM[:2]])
    _, people, said = make(["data/plink"])
    assert {p["phenotype"] for p in people} == {"NA"}
    assert re.search(r"phenotype: left out, because every known value is [01]$", said, re.M)


@pytest.mark.parametrize(
    "codes, expected",
    [
        (["1", "2", "-9", "0"], ["0", "1", "NA", "NA"]),
        (["1", "1", "-9"], ["0", "0", "NA"]),
        (["0", "1", "-9"], ["0", "1", "NA"]),
        (["0", "1"], ["0", "1"]),
        (["1.5", "2", "-9", "nan", "x"], ["1.5", "2", "NA", "NA", "NA"]),
        (["0", "-9.0", "170"], ["0", "NA", "170"]),
        (["NA", "2", "1.0"], ["NA", "1", "0"]),
    ],
)
def test_phenotypes_of_plink(codes, expected):
    assert phenotypes(codes) == expected


TABLES = {
    "people.csv": (
        'Sample ID,Pop,Gender,site,phenotype\nN01,GBR,female,"a, b",case\nS00,"TSI",1,,control\n'
    ),
    "people.tsv": (
        "#iid\tpopulation\tsex\tsite\tphenotype\nN01\tGBR\tF\ta, b\t2\nS00\tTSI\tM\t\t1\n"
    ),
    "semicolons.csv": (
        "sample;pop;sex;site;cohort;phenotype\nN01;GBR;2;a, b;north;1\nS00;TSI;m;NA;;0\n"
    ),
}


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_samples_fills_the_sheet(place, table):
    (place / table).write_text(
        TABLES[table] + TABLES[table].splitlines()[1].replace("N01", "Z9") + "\n"
    )
    _, people, said = make(["data/north.vcf", "data/south.vcf.gz"], samples=Path(table))
    found = {p["sample"]: p for p in people}
    assert found["N01"] == {
        "sample": "N01", "cohort": "north", "population": "GBR", "sex": "F", "phenotype": "1",
        "site": "a, b",
    }  # fmt: skip
    assert [found["S00"][c] for c in ("population", "sex", "phenotype", "site")] == [
        "TSI", "M", "0", "NA"
    ]  # fmt: skip
    assert found["N00"]["population"] == "NA"
    assert f"samples of {table} that are in no genotype file: 1, left out" in said
    assert f"samples that are not in {table}: 5" in said


# --- errors ---------------------------------------------------------------------------------------

WRONG = {
    "no genotype file was given": ["new"],
    "data/nrth.vcf does not exist": ["data/nrth.vcf"],
    "data/*.bcf matches no file": ["data/*.bcf"],
    "data is a folder; name its files": ["new", "data"],
    "data/x.bed, the file with the genotypes, does not exist": ["data/x.fam"],
    "data/none.vcf has no samples": ["data/none.vcf"],
    "data/text.vcf": ["data/text.vcf"],
    "sample 'N00' is in data/north.vcf and in data/twice.vcf (shared samples: 1)": [
        "data/north.vcf", "data/twice.vcf"
    ],
    "would be called 'north'; give one of them another name: north-2=other/north.vcf": [
        "data/north.vcf", "other/north.vcf"
    ],
}  # fmt: skip


@pytest.mark.parametrize("sentence", WRONG)
def test_a_mistake_gives_one_sentence_and_leaves_no_file(place, sentence):
    write_vcf(place / "data/twice.vcf", ["q", "N00"])
    write_vcf(place / "other/north.vcf", ["q", "r"])
    (place / "data/x.fam").write_text("0 a 0 0 0 -9\n")
    (place / "data/text.vcf").write_text("hello\n")
    header = (place / "data/north.vcf").read_text().splitlines()[1].split("\t")[:8]
    (place / "data/none.vcf").write_text("##fileformat=VCFv4.2\n" + "\t".join(header) + "\n")
    with pytest.raises(UserError) as error:
        init_study(WRONG[sentence])
    assert sentence in str(error.value)
    assert str(error.value).endswith(".") and "study folder" not in str(error.value)
    assert not (place / "config").exists() and not (place / "new").exists()


def test_the_sheets_stay_where_they_have_to_be_corrected(place, tmp_path, capsys):
    """Files of variant sites: the message asks for a column of the sheet."""
    rng = np.random.default_rng(1)
    sites, names = make_sites(2000), [[f"{name}{k}" for k in range(10)] for name in "ab"]
    for path, people in zip(("data/a.vcf", "data/b.vcf"), names, strict=True):
        genotypes = rng.binomial(2, rng.beta(0.2, 1, 2000)[:, None], (2000, 10))
        rows = np.flatnonzero(genotypes.any(axis=1))
        file = Cohort("x", people, [sites[k] for k in rows], genotypes[rows])
        (place / path).write_text(file.vcf())
    assert main(["init", "new", "data/a.vcf", "data/b.vcf"]) == 1
    said = capsys.readouterr().err
    assert "write absent = reference" in said
    assert said.endswith(
        "The sheets are written: correct them in new/config, or the files, then run popdesic check "
        "new.\n"
    )
    assert main(["check", "new"]) == 1
    sheet = place / "new/config/cohorts.tsv"
    lines = sheet.read_text().splitlines()
    ends = ["absent", "reference", "reference"]
    sheet.write_text("".join(f"{a}\t{b}\n" for a, b in zip(lines, ends, strict=True)))
    assert main(["check", "new"]) == 0


BAD_TABLES = {
    "no column of sample names": "who,sex\nN00,1\n",
    "sample 'N00' appears twice": "sample,sex\nN00,1\nN00,1\n",
    "none of its 1 samples is in the genotype files; its first sample is 'n00', "
    "that of the genotype files is 'N00'": "sample,sex\nn00,1\n",
    "row 2: the cohort of sample 'N00' is 'UK', but its genotypes are in the file of cohort "
    "'north'": "sample,cohort\nN00,UK\n",
    "sex of sample 'N00' is 'x'; give M, F or NA": "sample,sex\nN00,x\n",
    "phenotype of sample 'N00' is 'ill'; give 1": "sample,phenotype\nN00,ill\n",
    "row 3: this row has 3 columns, but the header has 2": "sample,sex\nN00,1\nN01,1,2\n",
    "the column name 'keep' is empty, reserved or used twice": "sample,keep\nN00,1\n",
    "has no rows below its header": "sample,sex\n",
    "is not a file; give a table of samples": None,
}


@pytest.mark.parametrize("sentence", BAD_TABLES)
def test_an_unusable_table_is_refused(place, sentence):
    if BAD_TABLES[sentence] is not None:
        (place / "people.csv").write_text(BAD_TABLES[sentence])
    with pytest.raises(UserError) as error:
        init_study(["data/north.vcf"], samples=Path("people.csv"))
    assert "people.csv" in str(error.value) and sentence in str(error.value)
    assert not (place / "config").exists()


@pytest.mark.parametrize("name", ["config.yaml", "cohorts.tsv", "samples.tsv"])
def test_nothing_is_overwritten(place, name, capsys):
    (place / "config").mkdir()
    (place / "config" / name).write_text("mine\n")
    assert main(["init", "data/north.vcf"]) == 1
    said = capsys.readouterr().err
    assert said == (
        f"Error: config/{name} already exists and is not overwritten; add rows to the sheets by "
        "hand, or choose another folder.\n"
    )
    assert [path.name for path in (place / "config").iterdir()] == [name]
    assert (place / "config" / name).read_text() == "mine\n"


def test_unknown_founders_are_refused(place):
    with pytest.raises(UserError, match="nort: no cohort has this name; the cohorts are north"):
        init_study(["data/north.vcf"], founders=["nort"])


def test_the_configuration_names_files_that_are_there():
    root = Path(__file__).resolve().parents[3]
    named = re.findall(r"[\w/.]+\.(?:md|yaml)", CONFIG)
    assert named and all((root / name).is_file() for name in named)


def test_the_message_names_the_list_of_keys(place, capsys):
    main(["init", "data/north.vcf"])
    assert Path(re.search(r"all keys: (.*)", capsys.readouterr().out)[1]).is_file()
