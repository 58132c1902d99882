"""What contigs are, by name, length and assembly report; the genome that files are of."""

import pytest

from popdesic.cohort.contigs import (
    HUMAN,
    assemblies,
    build_of,
    genome_of,
    plain_name,
    read_assembly_report,
)
from popdesic.core.errors import UserError

HUMAN_REACH = {str(k): assemblies()["hg38"][str(k)] - 10_000 for k in range(1, 23)}


def roles(*contigs: str, lengths=None, report=None) -> dict[str, str]:
    return genome_of(dict.fromkeys(contigs, 1), lengths or {}, report=report).roles


@pytest.mark.parametrize(
    ("role", "names"),
    [
        ("X", "X chrX x ChrX CHRX 23 chr23 023 0X NC_000023.9 NC_000023.10 NC_000023.11"),
        ("X", "CM000685.1 CM000685.2 CP068255.2 NC_060947.1 NC_000086.7 NC_000086.8 nc_000023.11"),
        ("X", "chrX_GL456233_random chrX_KI270880v1_alt NC_037357.1 NC_006621.3 NC_051356.1"),
        (
            "Y",
            "Y chrY 24 chr24 NC_000024.10 CM000686.2 CP086569.2 NC_000087.8 chrY_JH584300_random",
        ),
        ("XY", "XY chrXY 25 PAR1 PAR2 X_PAR"),
        ("MT", "M MT mt chrM chrMT chrmt 26 chr26 MtDNA mtDNA mitochondrion NC_012920.1 J01415.2"),
        ("MT", "dmel_mitochondrion_genome NC_005089.1 Mt Pt chloroplast rCRS"),
        ("Z", "Z chrZ"),
        ("W", "W chrW"),
        (
            "autosome",
            "1 chr1 01 22 chr22 NC_000001.11 CM000663.2 CP068277.2 2L 3R 2A II NC_000085.7",
        ),
        ("other", "scaffold_12 chrUn_GL456239 KI270728.1 contig23 NC_123456.1"),
    ],
)
def test_roles_by_name(role, names):
    for name in names.split():
        assert roles("1", name)[name] == role, name


def test_numbers_above_26_make_23_to_26_autosomes():
    dog = genome_of(dict.fromkeys(map(str, range(1, 39)), 1) | {"X": 1}, {})
    assert {c for c, role in dog.roles.items() if role != "autosome"} == {"X"}
    assert dog.notes == (
        "Contigs 23, 24, 25, 26 are taken as autosomes, because there is a contig 38.",
    )
    header = genome_of({"chr23": 1}, {f"chr{k}": 5_000_000 + k for k in range(1, 30)})
    assert header.roles == {"chr23": "autosome"}, "contigs without sites count too"
    assert genome_of({"1": 1, "26": 1}, {}).roles == {"1": "autosome", "26": "MT"}


def test_a_known_species_says_how_many_autosomes():
    cattle = assemblies()["ARS-UCD1.3"]
    found = genome_of({"23": 1, "30": 1, "33": 1}, {"1": cattle["1"]})
    assert found.roles == {"23": "autosome", "30": "X", "33": "MT"}
    assert found.notes == ("Contigs 23 are taken as autosomes, as in ARS-UCD1.3 (cattle).",)
    assert roles("20", lengths={"1": assemblies()["GRCm39"]["1"]}) == {"20": "X"}


def test_roman_numbers():
    worm = ["I", "II", "III", "IV", "V", "X", "MtDNA"]
    yeast = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"]
    assert roles(*worm)["X"] == "X" and roles(*worm)["V"] == "autosome"
    assert set(roles(*[f"chr{name}" for name in yeast]).values()) == {"autosome"}


def test_a_length_tells_x():
    found = genome_of({"s1": 1, "s2": 1}, {"s1": assemblies()["GRCm39"]["X"], "s2": 5})
    assert found.roles == {"s1": "X", "s2": "other"}
    assert found.notes == ("Contig s1 has the length of chromosome X (GRCm39).",)


COLUMNS = (
    "Sequence-Name Sequence-Role Assigned-Molecule Assigned-Molecule-Location/Type GenBank-Accn "
    "Relationship RefSeq-Accn Assembly-Unit Sequence-Length UCSC-style-name"
)
REPORT = f"""# Assembly name:  test
# {COLUMNS}
1 assembled-molecule 1 Chromosome AA000001.1 = NC_900001.1 Primary 100 chr1
X assembled-molecule X Chromosome AA000002.1 = NC_900002.1 Primary 100 chrX
MT assembled-molecule MT Mitochondrion AA000003.1 = na non-nuclear 10 chrM
s7 unlocalized-scaffold X Chromosome AA000004.1 = na Primary 10 na
s8 unplaced-scaffold na na AA000005.1 = na Primary 10 na
"""


def test_an_assembly_report_decides(tmp_path):
    path = tmp_path / "assembly_report.txt"
    path.write_text(REPORT.replace(" ", "\t").replace("#\t", "# "))
    report = read_assembly_report(path)
    names = ["NC_900001.1", "AA000002.1", "AA000003.1", "s7", "s8", "chrx"]
    found = roles(*names, report=report)
    assert [found[name] for name in names] == ["autosome", "X", "MT", "X", "other", "X"]
    path.write_text("1\t2\n")
    with pytest.raises(UserError, match="Sequence-Name"):
        read_assembly_report(path)


def test_lists_of_names_come_before_roles():
    genome = genome_of(dict.fromkeys(["chr1", "chr5", "chrX", "23"], 1), {})
    assert genome.x_contigs("auto") == ["23", "chrX"]
    assert genome.x_contigs(["5"]) == ["chr5"] and genome.excluded(["chr1"]) == ["chr1"]
    assert genome.excluded([]) == [] and genome.excluded("auto") == ["23", "chrX"]


def test_builds_by_lengths():
    table = assemblies()
    for build, contigs in table.items():
        assert build_of(contigs)[0] == build
        assert build_of({"a": max(contigs.values())}) == (build, "a"), "whatever its name"
        found = genome_of({"1": 5}, contigs)
        assert found.build == build and found.regions_build() == build
    assert build_of({"1": table["hg19"]["1"], "2": table["hg38"]["2"]}) is None
    assert build_of({"M": 16569}) is None and build_of({}) is None


@pytest.mark.parametrize(
    ("reach", "build", "why"),
    [
        (HUMAN_REACH, "any", "fit a human genome"),
        ({f"chr{k}": n for k, n in HUMAN_REACH.items()} | {"chrX": 5}, "any", "fit a human"),
        ({"22": HUMAN_REACH["22"]}, "any", "fit a human genome"),
        ({"NC_000006.12": 30_000_000}, "any", "accessions of the human"),
        ({"NC_000083.6": 30_000_000}, "none", "accessions of the mouse"),
        ({str(k): 1000 for k in range(1, 20)} | {"X": 9}, "none", "numbered contigs end at 19"),
        ({str(k): 1000 for k in range(1, 30)}, "none", "it has a contig 29"),
        (HUMAN_REACH | {"7": 200_000_000}, "none", "beyond every human chromosome 7"),
        ({"1": 1_000_000, "2": 5}, "unknown", "no header gives"),
        ({"22": 2_000_000}, "unknown", "no header gives"),
        ({"scaffold_1": 2_000_000}, "unknown", "no header gives"),
    ],
)
def test_builds_without_lengths(reach, build, why):
    genome = genome_of(reach, {})
    assert (genome.build, why in genome.why) == (build, True), genome.sentence()
    assert genome.regions_build() == ("any" if build == "any" else "none")
    assert genome.par_build() == ("none" if build == "none" else "any")
    asked = genome_of(reach, {}, "hg19")
    assert asked.build == asked.regions_build() == asked.par_build() == "hg19"
    assert genome_of(HUMAN_REACH, assemblies()["hg38"], "none").regions_build() == "none"


def test_names_of_chromosomes():
    names = ["chr06", "NC_000006.12", "chrX", "scaffold_1", "0", "chr", "Chr1_v2"]
    assert [plain_name(name) for name in names] == ["6", "6", "X", "SCAFFOLD_1", "0", "CHR", "1_V2"]


def test_every_length_of_the_table_tells_its_build():
    known = [length for contigs in assemblies().values() for length in contigs.values()]
    assert len(set(known)) == len(known) and min(known) >= 1_000_000
    for build in HUMAN:
        assert list(assemblies()[build]) == [*map(str, range(1, 23)), "X", "Y"]
