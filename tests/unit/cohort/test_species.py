"""Species: what they fill in, which one is proposed, and rates in place of a map."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from popdesic.cohort.contigs import assemblies, genome_of, named_contigs, species_of
from popdesic.cohort.genetic_maps import read_map
from popdesic.cohort.map_rates import map_file, rate_of, rate_words
from popdesic.cohort.species import (
    known_species,
    propose_species,
    remark_on_ploidy,
    species_words,
    with_species,
)
from popdesic.core.errors import UserError
from popdesic.core.schemas import load_schema
from popdesic.population.options import block_of
from popdesic.study.configuration import fill_config
from popdesic.study.init import init_study

ROMAN = [
    "I",
    "II",
    "III",
    "IV",
    "V",
    "VI",
    "VII",
    "VIII",
    "IX",
    "X",
    "XI",
    "XII",
    "XIII",
    "XIV",
    "XV",
    "XVI",
]
#: Contigs of files, without lengths, and which of them are left out.
NAMED = {
    "drosophila": (["2L", "2R", "3L", "3R", "4"], ["X", "Y", "mitochondrion_genome"]),
    "wheat": ([f"{k}{genome}" for genome in "ABD" for k in range(1, 8)], ["Mt", "Pt"]),
    "yeast": ([f"chr{name}" for name in ROMAN], ["chrM"]),
    "plasmodium": (
        [f"Pf3D7_{k:02}_v3" for k in range(1, 15)],
        ["Pf3D7_API_v3", "Pf3D7_MIT_v3"],
    ),
    "honeybee": ([f"NC_0376{k}.1" for k in range(38, 54)], ["NC_001566.1"]),
    "arabidopsis": ([f"NC_00307{k}.1" for k in (0, 1, 4, 5, 6)], ["NC_000932.1", "NC_037304.1"]),
    "mouse": ([f"NC_0000{k}.7" for k in range(67, 86)], ["NC_000086.8", "NC_005089.1"]),
    "cattle": ([f"NC_0373{k}.1" for k in range(28, 57)], ["NC_037357.1"]),
}


def test_the_schema_knows_the_species_of_the_table():
    assert load_schema("config")["properties"]["species"]["enum"] == ["", *known_species()]
    known = {*map(species_of, assemblies()), ""}
    for one in known_species().values():
        assert one.assembly in known and one.ploidy in (1, 2)
        assert fill_config(with_species({"species": one.name}))


@pytest.mark.parametrize("name", NAMED)
def test_contigs_of_a_species(name):
    """All autosomes stay, and all others are left out."""
    autosomes, others = NAMED[name]
    contigs = dict.fromkeys([*autosomes, *others], 0)
    config = fill_config({"species": name})
    roles = genome_of(dict.fromkeys(contigs, 1), contigs).roles
    left_out = genome_of(dict.fromkeys(contigs, 1), contigs).excluded(config["contigs"]["exclude"])
    assert sorted(left_out) == sorted(others)
    x = named_contigs(roles, config["contigs"]["x"], ("X",))
    assert x == {"drosophila": ["X"], "mouse": ["NC_000086.8"], "cattle": ["NC_037357.1"]}.get(
        name, []
    )
    one = known_species()[name]
    assert one.count == len(autosomes)
    assert propose_species(contigs)[0] == name
    assert propose_species(dict.fromkeys([*autosomes[1:], *others], 0)) is None, "one is lacking"
    assert propose_species(contigs | {"12": 0, "13": 0}) is None, "others are chromosomes, too"


def test_lengths_tell_a_species_and_humans_get_none():
    proposed = {build: propose_species(lengths) for build, lengths in assemblies().items()}
    found = {build: told and told[0] for build, told in proposed.items()}
    assert found["GRCm38"] == found["GRCm39"] == "mouse" and found["TAIR10"] == "arabidopsis"
    assert {found[build] for build in ("hg18", "hg19", "hg38", "chm13", "CanFam3.1")} == {None}
    assert proposed["ARS-UCD1.3"][1] == "contig 1 has the length that it has in ARS-UCD1.3"
    assert propose_species({f"chr{k}": 0 for k in range(1, 23)}) is None
    assert propose_species({f"chr{k}": 0 for k in range(1, 6)}) is None
    assert propose_species({}) is None


def test_a_key_that_is_set_holds():
    given = {
        "species": "yeast",
        "genetic_map": "m.txt",
        "contigs": {"exclude": "auto", "haploid": "missing"},
        "qc": {"build": "any"},
    }
    config = fill_config(given)
    assert config["genetic_map"] == "m.txt" and config["qc"]["build"] == "any"
    assert config["contigs"] == {"exclude": "auto", "x": [], "haploid": "missing"}
    assert fill_config(config) == config
    assert species_words(config) == [
        "Values of Saccharomyces cerevisiae (species) are used for contigs.x (none)."
    ]


def test_without_a_species_nothing_changes():
    empty, human = fill_config({}), fill_config({"species": "human"})
    assert human | {"species": ""} == empty
    assert species_words(empty) == species_words(human) == []
    assert with_species({"species": 3, "qc": []}) == {"species": 3, "qc": []}
    assert with_species({"species": "yeast", "contigs": 7})["contigs"] == 7


def test_rates():
    assert rate_of("1.1 cM/Mb") == 1.1 and rate_of("375cM/Mb") == 375
    assert rate_of("maps/chr1.txt") is rate_of("") is rate_of(None) is rate_of("maps/cM/Mb") is None
    for wrong in ("0 cM/Mb", "0.0cM/Mb", "-1 cM/Mb", "1,1 cM/Mb", "1.1 cm/mb", "cM/Mb"):
        with pytest.raises(UserError, match="is no recombination rate"):
            map_file(wrong)
    assert map_file("2 cM/Mb") == "" and map_file("a.txt") == "a.txt"
    sites = pd.DataFrame({"chrom": ["1", "1", "9"], "pos": [1_000_000, 3_000_000, 500_000]})
    np.testing.assert_allclose(read_map("2 cM/Mb", sites), [2, 6, 1])
    assert "1 Mb counts as 2 cM" in rate_words("2 cM/Mb") and rate_words("a.txt") == ""
    assert "1 Mb counts as 1 cM" in rate_words("")
    config = fill_config({"species": "yeast", "compare": {"ld": {"window": "1 cM"}}})
    assert block_of(config) == "2 Mb", "five cM of yeast are 13 kb"
    assert any("1 Mb counts as 375 cM" in words for words in species_words(config))


def test_the_ploidy_is_said_and_not_set():
    config = fill_config({"species": "plasmodium"})
    (remark,) = remark_on_ploidy(config, 2)
    assert "whose samples mostly have ploidy 1, but these have ploidy 2" in remark
    assert remark_on_ploidy(config, 1) == remark_on_ploidy(fill_config({}), 4) == []


def test_init_writes_the_species_with_its_reason(tmp_path, monkeypatch):
    """And nothing where no species is told."""
    monkeypatch.chdir(tmp_path)
    autosomes, others = NAMED["yeast"]
    names = [f"s{k}" for k in range(6)]
    head = ["##fileformat=VCFv4.2", *(f"##contig=<ID={name}>" for name in (*autosomes, *others))]
    head += [
        "\t".join(["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", *names])
    ]
    rng = np.random.default_rng(1)
    calls = rng.choice(["0/0", "0/1", "1/1"], (200, 6)).tolist()
    lines = [
        "\t".join(["chrI", str(9 + 7 * k), ".", "A", "C", ".", ".", ".", "GT", *row])
        for k, row in enumerate(calls)
    ]
    text = "\n".join([*head, *lines, ""])
    (tmp_path / "a.vcf").write_text(text)
    said = init_study(["yeast", "a.vcf"])
    written = (tmp_path / "yeast/config/config.yaml").read_text()
    reason = "The species was recognised from the files: contigs are named chrI to chrXVI."
    assert reason in said and f"# {reason}" in written and "\nspecies: yeast\n" in written
    (tmp_path / "b.vcf").write_text(re.sub("##contig=<ID=chrXVI>\n", "", text))
    assert "species" not in init_study(["other", "b.vcf"])
    assert "species" not in (tmp_path / "other/config/config.yaml").read_text()
