"""Files of a cohort: names, lists, patterns, one per chromosome; and files that were replaced."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from pathlib import Path

import pytest
from support.study import Cohort, make_cohorts, read_config, write_raw, write_sheets, write_study

from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.sources import expand_sources, natural_order, nearby, source_key
from popdesic.core.errors import UserError
from popdesic.study.forecast import read_sizes
from popdesic.study.sheets import cohort_files, cohort_sources, load_study

CHROMOSOMES = [*map(str, range(1, 23)), "X", "Y", "XY", "MT"]
ENDS = (".bed", ".bim", ".fam", ".json")


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")


def genome(n_sites: int = 260) -> Cohort:
    """A cohort with sites on 26 chromosomes."""
    cohort = make_cohorts((6,), n_sites=n_sites)[0]
    each = n_sites // len(CHROMOSOMES)
    sites = [(CHROMOSOMES[k // each], *rest) for k, (_, *rest) in enumerate(cohort.sites)]
    return replace(cohort, sites=sites)


def part(cohort: Cohort, chromosome: str) -> Cohort:
    rows = [k for k, site in enumerate(cohort.sites) if site[0] == chromosome]
    sites = [cohort.sites[k] for k in rows]
    return replace(cohort, sites=sites, genotypes=cohort.genotypes[rows])


def raw_bytes(prefix: Path) -> list[bytes]:
    return [Path(f"{prefix}{end}").read_bytes() for end in ENDS[:3]]


# --- which files are meant ----------------------------------------------------------------------


@pytest.mark.parametrize("form", ["chr{}.vcf.gz", "ukb_{}_v2.bcf", "{}.vcf", "d_{}/a.chr{}.vcf"])
def test_natural_order(form):
    names = [form.replace("{}", name) for name in CHROMOSOMES]
    assert sorted(sorted(names), key=natural_order) == names


def test_letters_within_words_are_not_chromosomes():
    names = ["a1.x_ray.vcf", "a2.may.vcf", "a10.YES.vcf"]
    assert sorted(names, key=natural_order) == names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "d/chr*.vcf.gz",
            ["d/chr1.vcf.gz", "d/chr2.old.vcf.gz", "d/chr2.vcf.gz", "d/chr10.vcf.gz"],
        ),
        ("d/chr{contig}.vcf.gz", ["d/chr1.vcf.gz", "d/chr2.vcf.gz", "d/chr10.vcf.gz"]),
        ("d/chr?.vcf.gz", ["d/chr1.vcf.gz", "d/chr2.vcf.gz"]),
        ("d/chr[!2].vcf.gz", ["d/chr1.vcf.gz"]),
        ("d/{contig}/u{contig}.bcf", ["d/7/u7.bcf", "d/X/uX.bcf"]),
        ("d/chr10.vcf.gz, d/chr1.vcf.gz", ["d/chr1.vcf.gz", "d/chr10.vcf.gz"]),
        ("d/chr1.vcf.gz,d/chr?.vcf.gz", ["d/chr1.vcf.gz", "d/chr2.vcf.gz"]),
        ("d/p{contig}", ["d/p1.bed", "d/p2.bed"]),
        ("d/p*", ["d/p1.bed", "d/p2.bed"]),
        ("d/p*.bed", ["d/p1.bed", "d/p2.bed"]),
        ("d/p1,d/p2.bed", ["d/p1", "d/p2.bed"]),
        ("e/a*b{contig}.vcf", ["e/a*b{contig}.vcf"]),  # a file of this name
        ("e/q[1]", ["e/q[1]"]),  # PLINK's
        ("f/a,b.vcf", ["f/a,b.vcf"]),
        ("e/a*b*.vcf", ["e/a*b2.vcf", "e/a*b{contig}.vcf"]),
        ("none.vcf", ["none.vcf"]),
    ],
)
def test_expansion(tmp_path, text, expected):
    touch(tmp_path, *(f"d/chr{c}.vcf.gz" for c in ("1", "2", "10", "2.old")), "d/chr1.vcf.gz.tbi")
    touch(tmp_path, "d/7/u7.bcf", "d/7/u8.bcf", "d/X/uX.bcf", "d/chr1.vcf.gz.csi")
    touch(tmp_path, *(f"d/p{k}{end}" for k in (1, 2) for end in (".bed", ".bim", ".fam")))
    touch(tmp_path, "e/a*b{contig}.vcf", "e/a*b2.vcf", "f/a,b.vcf", "e/q[1].bed", "e/q1.bed")
    assert expand_sources(text, tmp_path) == expected
    if text != "f/a,b.vcf":  # of this name
        text = ",".join(f"{tmp_path}/{p.strip()}" for p in text.split(","))
        assert expand_sources(text) == [f"{tmp_path}/{path}" for path in expected]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "data/chr*.vcf",
            ["'data/chr*.vcf' matches no file", "did you mean 'data/ukb.chr1.vcf.gz' or"],
        ),
        ("data/ukb.chr*.vcf", ["matches no file", "did you mean", "'data/ukb.chr1.vcf.gz'"]),
        ("data/a.vcf,,b.vcf", ["a comma without a path on both sides"]),
        ("data/a.vcf,", ["a comma without a path on both sides"]),
    ],
)
def test_a_pattern_without_files_gives_a_one_sentence_error(tmp_path, text, words):
    touch(tmp_path, "data/ukb.chr1.vcf.gz", "data/ukb.chr2.vcf.gz")
    with pytest.raises(UserError) as error:
        expand_sources(text, tmp_path)
    assert all(word in str(error.value) for word in words), error.value
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("data/ukb.chr1.vcf", "did you mean 'data/ukb.chr1.vcf.gz'"),
        ("date/ukb.chr1.vcf.gz", "did you mean 'data'"),
        ("data/xyz", "the folder 'data' holds 'ukb.chr1.vcf.gz', 'ukb.chr2.vcf.gz', so correct"),
        ("zzz", "the study folder holds 'data', so correct"),
        ("empty/zzz", "correct the path (relative to the study folder)"),
    ],
)
def test_similar_files_are_suggested(tmp_path, path, words):
    touch(tmp_path, "data/ukb.chr1.vcf.gz", "data/ukb.chr2.vcf.gz")
    if "empty" in path:
        (tmp_path / "empty").mkdir()
    assert words in nearby(tmp_path, path)
    absolute = nearby(Path(), f"{tmp_path}/{path}")
    if "mean" in words:
        assert words.replace("'data", f"'{tmp_path}/data") in absolute


# --- one cohort of many files -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["vcf", "vcf.gz", "plink"])
@pytest.mark.parametrize("threads", [1, 2])
def test_one_file_per_chromosome_gives_the_bytes_of_one_file(tmp_path, kind, threads):
    cohort = genome()
    parts = {name: part(cohort, name) for name in CHROMOSOMES}
    if kind == "plink":
        whole = write_raw(tmp_path / "whole", cohort)
        for name, piece in parts.items():
            write_raw(tmp_path / f"chr{name}", piece)
        pattern = f"{tmp_path}/chr*.bed"
    else:
        write = gzip.compress if kind.endswith("gz") else bytes
        whole = tmp_path / f"whole.{kind}"
        whole.write_bytes(write(cohort.vcf().encode()))
        for name, piece in parts.items():
            (tmp_path / f"chr{name}.{kind}").write_bytes(write(piece.vcf().encode()))
        pattern = f"{tmp_path}/chr{{contig}}.{kind}"
    one = ingest_cohort(whole, tmp_path / "one/raw", threads=threads)
    many = ingest_cohort(expand_sources(pattern), tmp_path / "many/raw", threads=threads)
    assert raw_bytes(tmp_path / "many/raw") == raw_bytes(tmp_path / "one/raw")
    assert many == one
    assert one.sites == len(cohort.sites)


def test_sites_repeated_in_another_file_are_dropped_and_counted(tmp_path):
    """Files that overlap or are out of order give the same as one file with all sites."""
    cohort = make_cohorts((5,), n_sites=60)[0]
    for name, rows in {"a1": range(0, 40), "a2": range(30, 60), "a3": range(0, 5)}.items():
        some = replace(
            cohort, sites=[cohort.sites[k] for k in rows], genotypes=cohort.genotypes[list(rows)]
        )
        (tmp_path / f"{name}.vcf").write_text(some.vcf())
    (tmp_path / "whole.vcf").write_text(cohort.vcf())
    ingest_cohort(tmp_path / "whole.vcf", tmp_path / "one/raw")
    counts = ingest_cohort(expand_sources(f"{tmp_path}/a*.vcf"), tmp_path / "many/raw")
    assert (counts.sites, counts.duplicates, counts.decode.snps) == (60, 15, 75)
    assert raw_bytes(tmp_path / "many/raw") == raw_bytes(tmp_path / "one/raw")


def test_sex_comes_from_the_first_file_that_states_it(tmp_path):
    cohort = make_cohorts((3,), n_sites=4)[0]
    for name, codes in (("a", "012"), ("b", "212")):
        prefix = write_raw(tmp_path / name, cohort)
        lines = [f"0\t{s}\t0\t0\t{c}\t-9\n" for s, c in zip(cohort.samples, codes, strict=True)]
        Path(f"{prefix}.fam").write_text("".join(lines))
    ingest_cohort([tmp_path / "a.bed", tmp_path / "b.bed"], tmp_path / "raw")
    assert [line.split()[4] for line in (tmp_path / "raw.fam").open()] == ["2", "1", "2"]


@pytest.fixture
def study(tmp_path, monkeypatch) -> Path:
    """Founder `north` in four files, one per chromosome, and a newcomer in one file."""
    cohorts = make_cohorts((6, 5), n_sites=80)
    names = ["1", "2", "10", "X"]
    sites = [(names[k // 20], *rest) for k, (_, *rest) in enumerate(cohorts[0].sites)]
    cohorts = [replace(cohort, sites=sites) for cohort in cohorts]
    write_study(tmp_path, cohorts)
    for name in names:
        (tmp_path / f"data/chr{name}.vcf").write_text(part(cohorts[0], name).vcf())
    sheet = tmp_path / "config/cohorts.tsv"
    sheet.write_text(sheet.read_text().replace("data/north.vcf", "data/chr{contig}.vcf"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_with_one_file_per_chromosome(study):
    sheets = load_study(read_config(study), study)
    expected = [f"data/chr{name}.vcf" for name in ("1", "2", "10", "X")]
    assert cohort_sources(sheets, "north") == cohort_files(sheets, "north") == expected
    sizes, source = read_sizes(study)
    assert "estimated" in source
    write_sheets(study, make_cohorts((6, 5), n_sites=80))
    assert sizes.n_sites == pytest.approx(read_sizes(study)[0].n_sites, rel=0.1)


def other_sample(text: str) -> str:
    return text.replace("N03", "N99")


def other_order(text: str) -> str:
    return text.replace("N03\tN04", "N04\tN03")


def fewer(text: str) -> str:
    return "".join(
        line if line.startswith("##") else line.rstrip("\n").rpartition("\t")[0] + "\n"
        for line in text.splitlines(keepends=True)
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (other_sample, "data/chr10.vcf has 'N99' as sample 4 where data/chr1.vcf has 'N03'"),
        (other_order, "data/chr10.vcf has 'N04' as sample 4 where data/chr1.vcf has 'N03'"),
        (fewer, "data/chr10.vcf has 5 samples where data/chr1.vcf has 6"),
    ],
)
def test_files_of_other_samples_give_a_one_sentence_error(study, change, words):
    path = study / "data/chr10.vcf"
    path.write_text(change(path.read_text()))
    with pytest.raises(UserError, match=r"config/cohorts\.tsv, row 2: ") as error:
        load_study(read_config(study), study)
    assert words in str(error.value)
    assert "same samples in the same order" in str(error.value)
    with pytest.raises(UserError, match="same samples in the same order"):
        ingest_cohort(expand_sources("data/chr*.vcf"), "results/raw")
    assert not list((study / "results").glob("raw*"))


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("data/chr{contig}.vcf.gz", "genotypes 'data/chr{contig}.vcf.gz' matches no file"),
        (
            "data/chr01.vcf",
            "data/chr01.vcf does not exist; did you mean 'data/chr1.vcf'",
        ),
        ("data/chr1.vcf,data/chr3.vcf", "data/chr3.vcf does not exist; did you mean"),
        ("dta/chr1.vcf", "dta/chr1.vcf does not exist; did you mean 'data'?"),
    ],
)
def test_a_missing_file_suggests_what_is_there(study, written, words):
    sheet = study / "config/cohorts.tsv"
    sheet.write_text(sheet.read_text().replace("data/chr{contig}.vcf", written))
    with pytest.raises(UserError, match=r"config/cohorts\.tsv, row 2: ") as error:
        load_study(read_config(study), study)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("written", ["data/a{contig}.vcf", "data/a*.vcf"])
def test_a_name_with_braces_gives_a_one_sentence_error(study, written):
    """Snakemake cannot handle such a name, even if the file exists."""
    (study / "data/chr1.vcf").rename(study / "data/a{contig}.vcf")
    sheet = study / "config/cohorts.tsv"
    sheet.write_text(sheet.read_text().replace("data/chr{contig}.vcf", written))
    with pytest.raises(UserError, match=r"'data/a\{contig\}\.vcf' has braces"):
        load_study(read_config(study), study)


# --- replaced files -----------------------------------------------------------------------------


def test_the_key_of_a_source_changes_when_it_is_replaced(study):
    sources = expand_sources("data/chr*.vcf")
    path = study / "data/chr10.vcf"
    keys, text, date = [source_key(sources)], path.read_text(), path.stat().st_mtime_ns

    def replace_by(text: str, ns: int) -> None:
        path.write_text(text)
        os.utime(path, ns=(ns, ns))
        keys.append(source_key(sources))

    replace_by(text, date)
    assert keys[0] == keys[1], "the same file"
    replace_by(text, date - 1)  # an older date
    replace_by(text + text.splitlines(keepends=True)[-1], date)  # another size
    for name in ("data/chr1.vcf", "data/chr2.vcf", "data/chr10.vcf", "data/chrX.vcf"):
        old = (study / name).stat().st_mtime_ns
        (study / name).write_text(other_sample((study / name).read_text()))
        os.utime(study / name, ns=(old, old))
    path.write_text(other_sample(text))
    os.utime(path, ns=(date, date))
    keys.append(source_key(sources))  # same sizes and dates, other samples
    assert len(set(keys)) == 4


def test_a_file_whose_samples_differ_from_the_sheet_is_not_decoded(study):
    """The file was replaced between planning and the job."""
    from popdesic.cohort.sources import names_key

    listed = names_key(load_study(read_config(study), study).samples_of("north")["sample"])
    sources = expand_sources("data/chr*.vcf")
    ingest_cohort(sources, study / "results/raw", listed=listed)
    for name in sources:
        (study / name).write_text(other_sample((study / name).read_text()))
    with pytest.raises(UserError, match=r"replaced after the run was planned; run again\."):
        ingest_cohort(sources, study / "results/new", listed=listed)
    assert not (study / "results/new.bed").exists()


def test_a_file_that_changes_while_it_is_read_gives_a_one_sentence_error(study, monkeypatch):
    import popdesic.cohort.ingest as ingest

    write = ingest.write_sites

    def meanwhile(*arguments):
        (study / "data/chr2.vcf").write_text((study / "data/chr2.vcf").read_text() + "\n")
        return write(*arguments)

    monkeypatch.setattr(ingest, "write_sites", meanwhile)
    with pytest.raises(UserError, match=r"data/chr2\.vcf was changed while it was read; run again"):
        ingest_cohort(expand_sources("data/chr*.vcf"), study / "raw")
    assert not (study / "raw.bed").exists()
