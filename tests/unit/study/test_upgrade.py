"""Keys of earlier versions: refused with what became of them, and rewritten."""

from __future__ import annotations

import copy

import pytest
import yaml
from support.study import make_cohorts, write_study

from popdesic.__main__ import main
from popdesic.core.errors import UserError
from popdesic.core.schemas import load_schema
from popdesic.study.configuration import fill_config
from popdesic.study.old_keys import OLD, OLD_BLOCKS
from popdesic.study.upgrade import BACKUP, get_key, set_key, upgraded

#: Most keys of the configuration: one exists because two users need two values.
MOST_KEYS = 91
#: A value of every old key that is not its default, if it has one.
CHANGED = {
    "impute.seed": 7,
    "impute.map": "map.txt",
    "impute.evaluate_methods": ["mode"],
    "distance.missing": "imputed",
    "distance.export": True,
    "geodesic.neighbors": 9,
    "compare.kinship.min_kinship": 0.1,
    "compare.identity.error_rate": 0.01,
    "ibd.enable": True,
    "ibd.long_range_ld": "keep",
    "ibd.export": ["ibis"],
    "encode.haploid": {"X": "diploidize", "default": "error"},
    "qc.x_contigs": ["X"],
    "panel.exclude_contigs": ["X", "MT"],
    "population.min_size": 5,
    "epistasis.binarize": "median",
    "epistasis.permutations_triples": 3,
    "epistasis.permutation_units": 4,
}
#: Keys that hold the value of another old key in `CHANGED`.
SAME = {OLD[key].new: value for key, value in CHANGED.items()}
MAP = "chrom pos cm\n1 1 0\n1 100000 1\n2 1 0\n2 100000 1\n"


def leaves(schema: dict, prefix: str = ""):
    for key, child in schema["properties"].items():
        if "properties" in child:
            yield from leaves(child, f"{prefix}{key}.")
        else:
            yield prefix + key


def every_old_key() -> dict:
    """A configuration with every old key; those that are one now have one value."""
    config: dict = {"impute": {"evaluate": 0.1}}
    for key, old in OLD.items():
        stays = key in CHANGED or key.endswith(".genotypes")
        value = CHANGED.get(key, old.was if stays else SAME.get(old.new, old.was))
        set_key(config, key, copy.deepcopy(value))
    return config


def test_there_are_few_keys():
    assert len(list(leaves(load_schema("config")))) <= MOST_KEYS


def test_no_old_key_is_a_key_and_all_new_ones_are():
    keys = set(leaves(load_schema("config")))
    assert not keys & OLD.keys()
    assert {old.new for old in OLD.values() if old.new} <= keys
    assert all(old.new or old.said or old.was is not None for old in OLD.values())


@pytest.mark.parametrize("key", OLD)
def test_an_old_key_is_refused_with_what_became_of_it(key):
    config: dict = {}
    set_key(config, key, OLD[key].was)
    with pytest.raises(UserError) as caught:
        fill_config(config)
    sentence = str(caught.value)
    assert sentence.startswith(f"config/config.yaml: '{key}' is ") and "\n" not in sentence
    assert OLD[key].new in sentence and "init --upgrade" in sentence


def test_a_share_of_hidden_genotypes_and_empty_blocks_are_refused():
    with pytest.raises(UserError, match=r"impute\.evaluate is now a list of methods"):
        fill_config({"impute": {"evaluate": 0.02}})
    for block in OLD_BLOCKS:
        config: dict = {}
        set_key(config, block, {})
        with pytest.raises(UserError, match=f"'{block}' is no block of the configuration any more"):
            fill_config(config)


def test_a_file_with_every_old_key_passes_the_check(tmp_path, capsys):
    study = write_study(tmp_path / "study", make_cohorts((16, 14)), {})
    (study / "map.txt").write_text(MAP)
    path = study / "config/config.yaml"
    before = "# about the study\n" + yaml.safe_dump(every_old_key(), sort_keys=False)
    path.write_text(before)
    assert main(["check", str(study)]) == 1
    assert main(["init", "--upgrade", str(study)]) == 0
    told = capsys.readouterr().out
    for key in OLD:
        assert f"{key}: " in told, key
    assert "population.min_size: 5 → removed; it is always 2" in told
    assert main(["check", str(study)]) == 0
    assert path.read_text().startswith("# about the study\n")
    assert (study / f"config/config.yaml{BACKUP}").read_text() == before
    config = yaml.safe_load(path.read_text())
    wanted = {
        "seed": 7,
        "neighbors": 9,
        "close_kinship": 0.1,
        "error_rate": 0.01,
        "genetic_map": "map.txt",
        "long_range_ld": "keep",
        "contigs": {
            **{"x": ["X"], "exclude": ["X", "MT"]},
            "haploid": {"X": "diploidize", "default": "error"},
        },
        "impute": {"evaluate": ["mode"], "stages": ["distance"]},
        "export": {"formats": ["mdist", "ibis"]},
        "epistasis": {"permutations": [200, 3], "transform": "median", "units": 4},
    }
    analyses = fill_config({})["compare"]["analyses"]
    assert config == wanted | {"compare": {"analyses": [*analyses, "ibd"]}}
    # Once more changes nothing.
    after = path.read_text()
    assert main(["init", "--upgrade", str(study)]) == 0
    assert "nothing was changed" in capsys.readouterr().out and path.read_text() == after


def test_profiles_and_mixtures_are_one_file():
    old = {"identity": {"query": "q.vcf"}, "mixture": {"profiles": None}, "ld": {"min_r2": 0.5}}
    new, changes = upgraded({"compare": old})
    assert new == {"compare": {"ld": {"min_r2": 0.5}, "query": "q.vcf"}}
    assert 'compare.identity.query: "q.vcf" → compare.query' in changes
    old["mixture"]["profiles"] = "m.vcf"
    with pytest.raises(UserError, match=r"but both are 'compare\.query' now"):
        upgraded({"compare": old})


def test_comments_and_order_stay(tmp_path, capsys):
    (tmp_path / "config").mkdir()
    path = tmp_path / "config/config.yaml"
    path.write_text(
        "# mine\ndevice: cpu  # no GPU here\n\npanel:\n  # rare sites too\n  min_maf: 0.001\n"
        "  exclude_contigs: []  # fish\n\nembedding: {seed: 3, stable: true}  # maps\n"
        "population:\n  roh:\n    window_hets: 1\n"
    )
    assert main(["init", "--upgrade", str(tmp_path)]) == 0
    assert path.read_text() == (
        "# mine\nseed: 3\ndevice: cpu  # no GPU here\n\npanel:\n  # rare sites too\n"
        "  min_maf: 0.001\n\nembedding: {stable: true}  # maps\n"
        "contigs:\n  exclude: []  # fish\n"
    )
    path.write_text('{"embedding": {"seed": 3}, "panel": {"min_maf": 0}}')
    assert main(["init", "--upgrade", str(tmp_path)]) == 1
    assert "already exists and is not overwritten" in capsys.readouterr().err
    (tmp_path / f"config/config.yaml{BACKUP}").unlink()
    assert main(["init", "--upgrade", str(tmp_path)]) == 0
    assert yaml.safe_load(path.read_text()) == {"panel": {"min_maf": 0}, "seed": 3}


def test_what_cannot_be_one_value_is_refused_and_nothing_is_written(tmp_path, capsys):
    (tmp_path / "config").mkdir()
    path = tmp_path / "config/config.yaml"
    path.write_text(text := "impute: {seed: 1}\nembedding: {seed: 2}\n")
    assert main(["init", "--upgrade", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert "impute.seed is 1 and embedding.seed is 2, but both are 'seed' now" in told
    assert path.read_text() == text and len(list(path.parent.iterdir())) == 1
    assert main(["init", "--upgrade", str(tmp_path / "none")]) == 1
    assert "does not exist" in capsys.readouterr().err


def test_values_that_turn_into_others():
    new, _ = upgraded({"impute": {"evaluate": 0.02, "method": "beagle"}, "ibd": None})
    assert new == {"impute": {"evaluate": ["mode"], "method": "beagle"}, "ibd": None}
    new, _ = upgraded({"impute": {"evaluate": 0}, "distance": {"export": False}})
    assert new == {"impute": {"evaluate": []}}
    given = {"epistasis": {"permutations": 9, "permutations_triples": 2, "units": 3}}
    given["epistasis"] |= {"permutation_units": None, "seed": None}
    new, _ = upgraded(given)
    assert new == {"epistasis": {"permutations": [9, 2], "units": 3}, "seed": 1}
    rates = {"compare": {"identity": {"error_rate": 0.005}}, "ibd": {"error_rate": 0.001}}
    assert upgraded(rates)[0] == {}, "auto has both"
    rates["ibd"]["error_rate"] = 0.002
    assert upgraded(rates)[0] == {"error_rate": 0.002}
    assert get_key(rates, "ibd.error_rate.x") is None
