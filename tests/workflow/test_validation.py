"""Errors found before any job: `popdesic check` and Snakemake give the same sentence."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from support.phased_files import write_vcf
from support.running import snakemake
from support.study import FAST, make_cohorts, make_sites, write_study
from unit.study.test_user_errors import CASES

from popdesic.__main__ import main
from popdesic.core.errors import UserError
from popdesic.study.forecast import planned_jobs

SHEET, SAMPLES, CONFIG = "config/cohorts.tsv", "config/samples.tsv", "config/config.yaml"


@pytest.fixture
def cohorts():
    return make_cohorts((8, 7, 6), n_sites=150, missing=0.01)


@pytest.fixture
def study(tmp_path, monkeypatch, cohorts) -> Path:
    write_study(tmp_path, cohorts)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(content: str | bytes, path: str = CONFIG) -> Callable:
    """A function that writes a file of the study."""
    raw = content.encode() if isinstance(content, str) else content
    return lambda: Path(path).write_bytes(raw)


def config(**blocks) -> Callable:
    return put(yaml.safe_dump(FAST | blocks))


def both(*spoilers: Callable) -> Callable:
    def spoil():
        for one in spoilers:
            one()

    return spoil


def phenotypes(*values: str) -> Callable:
    """A function that fills the sheet's phenotypes by repeating these values."""

    def spoil():
        lines = Path(SAMPLES).read_text().splitlines()
        rows = [line.rpartition("\t")[0] for line in lines[1:]]
        rows = [f"{row}\t{values[k % len(values)]}" for k, row in enumerate(rows)]
        Path(SAMPLES).write_text("\n".join([lines[0], *rows]) + "\n")

    return spoil


def column(name: str, *values: str) -> Callable:
    """A function that adds a column to the sheet of samples."""

    def spoil():
        lines = Path(SAMPLES).read_text().splitlines()
        rows = [f"{row}\t{values[k % len(values)]}" for k, row in enumerate(lines[1:])]
        Path(SAMPLES).write_text("\n".join([f"{lines[0]}\t{name}", *rows]) + "\n")

    return spoil


def edit(path: str, old: str, new: str, count: int = -1) -> Callable:
    def spoil():
        content = Path(path).read_bytes().decode()
        assert old in content
        Path(path).write_bytes(content.replace(old, new, count).encode())

    return spoil


def beagle(**block) -> Callable:
    return config(impute={"method": "beagle", **block})


def copied(
    call: str = "0|1", *, bases: str = "", step: int = 0, samples: int = 2, header: str = ""
) -> Callable:
    """A function that writes a reference to copy from: the study's sites, or those behind them."""

    def spoil():
        names = [f"r{k}" for k in range(samples)]
        records = [
            f"{chrom} {pos + step} . {bases or f'{ref} {alt}'} {call} " + "0|0 " * (samples - 1)
            for chrom, pos, _, ref, alt in make_sites(150)[: 150 if samples < 9 else 1]
        ]
        write_vcf(Path("r.vcf"), names, records)
        if header:
            edit("r.vcf", "##contig=<ID=1>", header)()

    return both(config(impute={"method": "copying", "reference": "r.vcf"}), spoil)


def scan(**block) -> Callable:
    return config(epistasis={"order": [2], **block})


def expand_without_bound() -> str:
    """YAML of a dozen lines that expands to billions of values."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{name}: &{name} [{', '.join(['*' + before] * 10)}]"
        for before, name in zip("abcdefghijk", "bcdefghijkl", strict=True)
    ]
    return "\n".join(lines)


LATIN = "caf\xe9".encode("latin-1")
LONG = "x" * 300

#: name: (damage to the study, words of the sentence)
REFUSED: dict[str, tuple[Callable, list[str]]] = {
    # --- phenotypes
    "missing of PLINK with 0 and 1": (
        phenotypes("0", "1", "-9"),
        [f"{SAMPLES}, row 4", "'N02'", "'-9'", "write NA"],
    ),
    "missing of PLINK with 1 and 2": (phenotypes("1", "2", "-9"), ["'-9'", "write NA"]),
    "missing of PLINK in a trait": (phenotypes("3.5", "4", "-9.0"), ["'-9.0'", "write NA"]),
    "missing of PLINK, to be made binary": (
        both(scan(transform="median"), phenotypes("0", "1", "-9")),
        ["'-9'", "write NA"],
    ),
    "0 with 1 and 2": (
        phenotypes("1", "2", "0"),
        [f"{SAMPLES}, row 4", "'0'", "PLINK's code for missing", "write NA"],
    ),
    "phenotype of one value in two spellings": (phenotypes("1", "1.0"), ["all 21 known values"]),
    "cases of PLINK alone": (phenotypes("2", "NA"), ["all 11 known values are '2'"]),
    "infinite phenotype": (phenotypes("1e999", "0"), ["'1e999'", "a number or NA"]),
    # --- names
    "cohorts that differ by case": (
        edit(SHEET, "south\t", "North\t"),
        [f"{SHEET}, row 3", "'North'", "'north' in row 2", "only in case"],
    ),
    "long name of a cohort": (edit(SHEET, "north\t", "n" * 65 + "\t"), ["row 2", "at most 64"]),
    "coordinates as a column": (column("PC1", "x"), ["row 1", "'PC1' is reserved", "rename"]),
    "measured column": (column("call_rate", "x"), ["'call_rate' is reserved"]),
    "column without name or values": (
        column("", ""),
        [f"{SAMPLES}, row 1", "column 5", "delete the empty column"],
    ),
    "tabs at the end of a row": (
        edit(SHEET, "\tyes\n", "\tyes\t\t\n", 1),
        [f"{SHEET}, row 2", "5 columns where the header has 3", "delete the empty columns"],
    ),
    "UTF-16": (
        lambda: Path(SAMPLES).write_bytes(Path(SAMPLES).read_text().encode("utf-16")),
        [SAMPLES, "UTF-16", "UTF-8"],
    ),
    "NUL": (edit(SAMPLES, "N03\t", "N\x0003\t"), [f"{SAMPLES}, row 5", "U+0000"]),
    "line separator in a name": (
        edit(SAMPLES, "N03\t", "N\u202803\t"),
        [f"{SAMPLES}, row 5", "U+2028"],
    ),
    "no-break space after a label": (
        edit(SAMPLES, "N03\tnorth\tP\t", "N03\tnorth\tP\xa0\t"),
        [f"{SAMPLES}, row 5", "population", "U+00A0"],
    ),
    "quotes": (edit(SHEET, "\tyes\n", '\t"yes"\n', 1), [f"{SHEET}, row 2", "quotes"]),
    "spreadsheet": (put(b"PK\x03\x04\0\0", SAMPLES), [SAMPLES, "spreadsheet"]),
    "gzip for a sheet": (put(gzip.compress(b"a\tb\n"), SAMPLES), [SAMPLES, "compressed"]),
    "folder for a sheet": (config(samples="config"), ["config is not a file"]),
    "long name of a file": (edit(SHEET, "data/north.vcf", LONG), ["row 2", "xxx", "correct the"]),
    "name of no file": (edit(SHEET, "data/north.vcf", "data/.bed"), ["row 2", "data/.bed"]),
    # --- pedigrees
    "own grandparent": (
        both(column("father", "N01", "N02", "N00", *["NA"] * 18), lambda: None),
        [f"{SAMPLES}, row 2", "'N00' is their own ancestor (N00 < N01 < N02 < N00)"],
    ),
    "two who are each other's parents": (
        both(column("father", "N01", *["NA"] * 20), column("mother", "NA", "N00", *["NA"] * 19)),
        ["'N00' is their own ancestor (N00 < N01 < N00)"],
    ),
    # --- configuration
    "integer and text for one contig": (
        put("contigs: {haploid: {23: missing, '23': error}}"),
        ["contigs.haploid", "'23' twice"],
    ),
    "key that is no name": (put("contigs: {haploid: {1.5: missing}}"), ["contigs.haploid", "1.5"]),
    "nan": (put("panel: {min_maf: .nan}"), ["panel.min_maf is nan", "finite"]),
    "inf": (put("epistasis: {max_r2: .inf}"), ["epistasis.max_r2 is inf", "at most 1"]),
    "number without a point": (put("panel: {min_hwe_p: 1e-6}"), ["1.0e-6"]),
    "half a job": (put("epistasis: {units: 2.5}"), ["epistasis.units is 2.5"]),
    "huge number": (put("seed: 1" + "0" * 400), ["seed is", "at most"]),
    "number of too many digits": (put("seed: 1" + "0" * 5000), ["YAML"]),
    "billions of values": (put(expand_without_bound()), [CONFIG, "aliases"]),
    "alias to itself": (put("qc: &a [*a]"), [f"{CONFIG}, row 1", "'*a'"]),
    "deep": (put("[" * 100_000), [CONFIG, "levels"]),
    "list": (put("- device: cpu\n"), [CONFIG, "not a mapping"]),
    "word": (put("device\n"), [CONFIG, "not a mapping"]),
    "key twice": (
        put("device: cpu\nqc: {}\ndevice: gpu\n"),
        [f"{CONFIG}, row 3", "'device' already appears in row 1"],
    ),
    "key twice in a block": (
        put("qc:\n  min_sample_call_rate: 0.5\n  min_sample_call_rate: 0.9\n"),
        [f"{CONFIG}, row 3", "row 2"],
    ),
    "key twice in JSON": (put('{"device": "cpu", "device": "gpu"}'), ["'device' appears twice"]),
    "key that is a list": (put("? [a, b]\n: c\n"), [f"{CONFIG}, row 1", "a key is one word"]),
    "tag": (put("device: !!python/name:os.system x"), [f"{CONFIG}, row 1", "the tag"]),
    "template": (put("__use_yte__: true\ndevice: cpu\n"), ["template"]),
    "two documents": (put("device: cpu\n---\ndevice: gpu\n"), [f"{CONFIG}, row 2", "document"]),
    "no date": (put("device: 2024-13-45\n"), [CONFIG, "month"]),
    "broken YAML": (put("qc: [1,\n  {"), [f"{CONFIG}, row 2", "not valid YAML"]),
    "latin-1 configuration": (put(b"# " + LATIN + b"\ndevice: cpu\n"), [CONFIG, "UTF-8"]),
    "NUL in the configuration": (put("device: c\0pu\n"), [CONFIG, "YAML"]),
    "megabytes": (put("# " + "x" * (1 << 20)), [CONFIG, "bytes"]),
    "two lines for a title": (put("report:\n  title: |\n    a\n    b\n"), ["report.title"]),
    "color_by of no column": (config(report={"color_by": "nothing"}), ["report.color_by"]),
    "color_by of the row": (config(report={"color_by": "row"}), ["report.color_by is 'row'"]),
    "pruning by nothing": (put("panel: {ld_prune: [50 sites, null, 0.2]}"), ["panel.ld_prune"]),
    "window of infinite width": (put("compare: {ld: {window: inf kb}}"), ["'inf kb'"]),
    "space of no geodesic": (
        config(communities={"space": "pcs"}),
        ["communities.space is 'pcs'", "geodesic.space has genotypes only"],
    ),
    "graph of segments that are not sought": (
        config(communities={"space": "ibd"}),
        ["communities.space is 'ibd'", "add ibd to compare.analyses"],
    ),
    "sweeps without haplotypes": (
        config(population={"analyses": ["sweeps"]}),
        ["population.analyses has 'sweeps'", "impute.method is 'mode'", "to 'copying'"],
    ),
    "sweeps without LD": (
        config(
            population={"analyses": ["sweeps"]},
            impute={"method": "copying"},
            panel={"ld_prune": ["50 kb", 1, 0.2]},
        ),
        ["population.analyses has 'sweeps'", "panel.ld_prune removes sites in LD"],
    ),
    "painting without haplotypes": (
        config(communities={"methods": ["painting"]}),
        ["communities.methods has 'painting'", "impute.method is 'mode'", "to 'copying'"],
    ),
    "maps of segments that are not sought": (
        config(geodesic={"space": ["pcs", "ibd"]}),
        ["geodesic.space has 'ibd'", "add ibd to compare.analyses"],
    ),
    "maps of segments alone": (
        config(geodesic={"space": ["ibd"]}, compare={"analyses": ["ibd"]}),
        ["geodesic.space has 'ibd' alone", "add pcs or genotypes"],
    ),
    "founders' frame with maps of segments": (
        config(
            geodesic={"space": ["pcs", "ibd"]},
            compare={"analyses": ["ibd"]},
            embedding={"stable": True},
        ),
        ["embedding.stable places newcomers", "remove 'ibd' from geodesic.space"],
    ),
    "strata that leave nothing to exchange": (scan(strata="sample"), ["epistasis.strata"]),
    # --- side files
    "long path": (config(qc={"fasta": LONG}), ["qc.fasta", "does not exist"]),
    "no genome": (config(qc={"fasta": "none.fa"}), ["none.fa (qc.fasta)", "does not exist"]),
    "genome that is none": (
        both(config(qc={"fasta": "g.fa"}), put("1\t2\n", "g.fa")),
        ["g.fa (qc.fasta), line 1", "'>'"],
    ),
    "empty genome": (both(config(qc={"fasta": "g.fa"}), put("", "g.fa")), ["g.fa", "empty"]),
    "genome cut short": (
        both(config(qc={"fasta": "g.gz"}), put(gzip.compress(b">1\nACGT\n" * 999)[:40], "g.gz")),
        ["g.gz (qc.fasta)", "cut short"],
    ),
    "folder for a genome": (config(qc={"fasta": "data"}), ["data (qc.fasta) is not a file"]),
    "map without columns": (
        both(config(genetic_map="m.txt"), put("chrom\tpos\n1\t5\n", "m.txt")),
        ["m.txt (genetic_map), row 1", "chrom, pos and cm"],
    ),
    "map with nan": (
        both(config(genetic_map="m"), put("chrom pos cm\n1 5 nan\n", "m")),
        ["m (genetic_map), row 2", "'nan'"],
    ),
    "map with half a row": (
        both(config(genetic_map="m"), put("chrom pos cm\n1 5 0\n1 6\n", "m")),
        ["m (genetic_map), row 3", "2 columns"],
    ),
    "map in latin-1": (
        both(config(genetic_map="m"), put(b"chrom pos cm\n" + LATIN + b" 5 0", "m")),
        ["m (genetic_map), row 2", "UTF-8"],
    ),
    "BED in latin-1": (
        both(scan(restrict="s.bed"), put(b"1\t5\t9\n" + LATIN, "s.bed")),
        ["s.bed (epistasis.restrict), row 2", "UTF-8"],
    ),
    "BED that ends before its start": (
        both(scan(restrict="s.bed"), put("1\t9\t5\n", "s.bed")),
        ["s.bed (epistasis.restrict), row 1", "starts at 9"],
    ),
    "BED with half a row": (
        both(scan(restrict="s.bed"), put("1\t5\t9\n2\t5\n", "s.bed")),
        ["s.bed (epistasis.restrict), row 2", "'2 5'"],
    ),
    "list with two words in a row": (
        both(scan(restrict="s"), put("rs1\nrs2 rs3\n", "s")),
        ["s (epistasis.restrict), row 2", "'rs2 rs3'"],
    ),
    "binary for a list": (
        both(scan(restrict="s"), put(b"\x00\x01\x02", "s")),
        ["s (epistasis.restrict), row 1", "control character"],
    ),
    "no profiles": (config(compare={"query": "q.vcf"}), ["compare.query"]),
    "profiles that are none": (
        both(config(compare={"query": "q.vcf"}), put("sample\n", "q.vcf")),
        ["compare.query", "q.vcf is not a VCF"],
    ),
    "profiles that nothing searches": (
        both(
            config(compare={"query": "q.vcf", "analyses": ["ld"]}),
            put(make_cohorts((6, 6))[0].vcf(), "q.vcf"),
        ),
        ["compare.query is 'q.vcf', but compare.analyses has neither identity nor mixture"],
    ),
    "query cut short": (
        both(
            config(compare={"query": "q.vcf.gz"}),
            put(gzip.compress(b"##fileformat=VCFv4.2\n" * 99)[:30], "q.vcf.gz"),
        ),
        ["compare.query", "q.vcf.gz is cut short"],
    ),
    "no reference": (beagle(reference="r.vcf"), ["impute.reference is 'r.vcf'"]),
    "reference that is none": (
        both(beagle(reference="r.{contig}.vcf"), put("1\t2\n", "r.1.vcf")),
        ["r.1.vcf", "not a VCF"],
    ),
    "reference for Beagle that is frozen": (
        both(beagle(reference="r.npz"), put("PK", "r.npz")),
        ["r.npz (impute.reference) is frozen", "Beagle cannot read it"],
    ),
    "too few founders to copy from": (
        config(impute={"method": "copying"}),
        ["impute uses 'copying' without impute.reference", "fewer than 100"],
    ),
    "too few SNPs of founders to copy from": (
        lambda: write_study(
            Path(), make_cohorts((60, 50), n_sites=600), FAST | {"impute": {"method": "copying"}}
        ),
        ["files of the founders have 600 biallelic SNPs, fewer than 1000", "'mode' or 'beagle'"],
    ),
    "no reference to copy from": (
        config(impute={"method": "copying", "reference": "r.{contig}.vcf"}),
        ["impute.reference is 'r.{contig}.vcf'", "no such file"],
    ),
    "frozen reference that is none": (
        both(config(impute={"method": "copying", "reference": "r.npz"}), put("PK", "r.npz")),
        ["r.npz is not a frozen reference"],
    ),
    "reference without phase": (copied("0/1"), ["r.vcf, 1:", "0/1 of sample 'r0' is not phased"]),
    "reference with missing calls": (copied(".|."), ["r.vcf, 1:", "'r0' is missing"]),
    "polyploid reference": (copied("0|1|1"), ["r.vcf, 1:", "more than two alleles"]),
    "reference of other alleles": (
        copied(bases="C G"),
        ["cohort 'north' and the reference r.vcf share", "different genome builds"],
    ),
    "reference of other sites": (
        copied(step=1),
        ["the reference r.vcf has 0 of the first", "sites of cohort 'north'"],
    ),
    "reference of another build": (
        both(
            copied(header="##contig=<ID=1,length=249250621>"),
            config(impute={"method": "copying", "reference": "r.vcf"}, qc={"build": "hg38"}),
        ),
        ["r.vcf gives contig 1 the length", "hg19", "lift the file over"],
    ),
    "reference of too many samples": (
        copied(samples=65_537),
        ["r.vcf has 65537 haplotypes or more", "at most 65536"],
    ),
    "map for Beagle with three columns": (
        both(config(genetic_map="m"), put("1 5 0\n", "m")),
        ["m (genetic_map), row 1", "four columns"],
    ),
    "map for Beagle with nan": (
        both(config(genetic_map="m"), put("1 . 0 5\n1 . nan 6\n", "m")),
        ["m (genetic_map), row 2", "'nan'"],
    ),
    "map for Beagle in latin-1": (
        both(config(genetic_map="m"), put(LATIN, "m")),
        ["m (genetic_map), row 1", "UTF-8"],
    ),
}
EARLIER = {
    name: (spoil, words) for name, (spoil, stage, words) in CASES.items() if stage == "sheets"
}


def told_by_check(capsys) -> str:
    assert main(["check", "."]) == 1
    told = capsys.readouterr().err
    assert told.startswith("Error: ") and told.endswith("\n"), told
    return told.removeprefix("Error: ").removesuffix("\n")


def told_by_snakemake() -> str:
    with pytest.raises(UserError) as error:
        planned_jobs(Path())
    return str(error.value).removeprefix("Snakemake cannot plan .: ")


@pytest.mark.parametrize("case", [*REFUSED, *EARLIER])
def test_check_and_snakemake_give_the_same_error(study, cohorts, capsys, case):
    if case in REFUSED:
        spoil, words = REFUSED[case]
        spoil()
    else:
        spoil, words = EARLIER[case]
        spoil(cohorts)
    sentence = told_by_check(capsys)
    print(sentence)
    for word in words:
        assert word in sentence
    assert "\n" not in sentence and sentence.endswith((".", "?")) and len(sentence) < 600
    assert " ".join(sentence.split()) == told_by_snakemake()
    assert not (study / "results").exists()


@pytest.mark.parametrize("case", ["space of no geodesic", "no reference", "key twice"])
def test_the_command_line_gives_the_same_error(study, capsys, case):
    REFUSED[case][0]()
    sentence = told_by_check(capsys)
    said = snakemake(study, "-n", fails=True)
    assert sentence in said and "Traceback" not in said
    assert said.count(sentence) == 1


#: Unusual configurations that are accepted with their intended meaning.
TAKEN = [
    "contigs: {haploid: {23: diploidize, X: missing}}",
    "epistasis: {units: 2.0}",
    "epistasis: {order: [2.0]}",
    "geodesic: {alpha: [2.0, 4]}",
    "qc: &filters {min_sample_call_rate: 0.5}\n",
    "# nothing but a remark\n",
    "---\n",
    '{"device": "cpu"}',
    "\ufeffdevice: cpu\r\n",
    "report: {title: one\u2009title}",
]


@pytest.mark.parametrize("text", TAKEN)
def test_configurations_that_both_accept(study, capsys, text):
    Path(CONFIG).write_text(text)
    assert main(["check", "."]) == 0
    assert "no problem found" in capsys.readouterr().out
    assert planned_jobs(Path(), ["panel"])


def test_a_missing_configuration_equals_an_empty_one(study, capsys):
    Path(CONFIG).unlink()
    assert main(["check", "."]) == 0
    assert planned_jobs(Path(), ["panel"])
    assert main(["check", "nowhere"]) == 1
    assert "nowhere is not a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Population", "population"),
        ("pop", "population"),
        ("POPULATION ", "population"),
        ("Sex", "sex"),
        ("gender", "sex"),
        ("super_population", "group"),
        ("Superpopulation", "group"),
        ("Father", "father"),
        ("mohter", "mother"),
        ("lattitude", "latitude"),
        ("Longitude", "longitude"),
    ],
)
def test_misspelt_columns_are_reported(study, capsys, name, meant):
    edit(SAMPLES, "population", "site")()
    column(name, "x")()
    assert main(["check", "."]) == 0
    told = capsys.readouterr()
    assert "no problem found" in told.out
    assert re.fullmatch(
        rf"Warning: {SAMPLES}, row 1: the column '{name.strip()}' .* if '{meant}' is meant, .*\n",
        told.err,
    )


def test_other_columns_give_no_message(study, capsys):
    for name in ("site", "age", "status", "populations of old", "language", "grp2"):
        column(name, "x")()
    assert main(["check", "."]) == 0
    assert capsys.readouterr().err == ""


def test_snakemake_reports_it_once(study):
    edit(SAMPLES, "phenotype", "phenotypes")()
    said = snakemake(study, "results/cohorts/north/raw.json")
    assert said.count("if 'phenotype' is meant, rename it") == 1
