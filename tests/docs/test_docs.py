"""Documentation and lock files that must not drift from what they describe."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from popdesic.core.schemas import load_schema
from popdesic.study.configuration import fill_config
from popdesic.study.environment import CUDA_VERSIONS
from popdesic.study.old_keys import OLD, instead

ROOT = Path(__file__).resolve().parents[2]


def key_table() -> str:
    """The table of all configuration keys, from the schema."""
    lines = ["| key | default | meaning |", "|---|---|---|"]

    def add(properties: dict, prefix: str) -> None:
        for key, schema in properties.items():
            if "properties" in schema:
                add(schema["properties"], f"{prefix}{key}.")
            else:
                default = yaml.safe_dump(schema["default"], default_flow_style=True, width=1000)
                default = default.splitlines()[0].replace("|", "\\|")
                lines.append(f"| `{prefix}{key}` | `{default}` | {schema['description']} |")

    add(load_schema("config")["properties"], "")
    return "\n".join(lines)


def test_config_readme_lists_every_key():
    text = (ROOT / "config" / "README.md").read_text()
    found = re.search(r"<!-- keys: .*? -->\n(.*)\n<!-- end of keys -->", text, re.S).group(1)
    assert found == key_table()


def old_key_table() -> str:
    """The table of keys of earlier versions."""
    lines = ["| key of an earlier version | now |", "|---|---|"]
    for key, (new, said, _) in OLD.items():
        now = f"`{new}`" + (f": {said}" if said else "") if new else instead(key)
        lines.append(f"| `{key}` | {now} |")
    return "\n".join(lines)


def test_config_readme_says_what_became_of_old_keys():
    text = (ROOT / "config" / "README.md").read_text()
    found = re.search(r"<!-- old keys: .*? -->\n(.*)\n<!-- end of old keys -->", text, re.S).group(
        1
    )
    assert found == old_key_table()


def test_example_config_spells_out_the_defaults():
    written = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    defaults = fill_config({})
    # What the example shows although a study that does not ask for it pays nothing.
    shown = {
        "impute": {"evaluate": []},
        "compare": {"analyses": defaults["compare"]["analyses"]},
        "export": {"formats": []},
        "epistasis": {"order": [], "restrict": "", "covariates": [], "power": []},
    }
    for block in written.keys() - {"report"}:
        found = written[block]
        assert (found | shown[block] if block in shown else found) == defaults[block], block


def test_conda_environment_follows_the_pins():
    pins = (ROOT / "requirements.txt").read_text()
    conda_names = {"python-isal": "isal"}
    for entry in yaml.safe_load((ROOT / "envs" / "popdesic.yaml").read_text())["dependencies"]:
        name, _, version = entry.partition("=")
        if not name.startswith("python>"):
            pinned = re.findall(rf"^{conda_names.get(name, name)}==([^ ;]+)", pins, re.M)
            assert version in pinned, entry


#: What each further environment has besides popdesic.yaml's.
FURTHER = {
    "beagle": ["beagle>=5.4"],
    "popdesic-cuda12": ["cupy>=14", "cuda-version=12"],
    "popdesic-cuda13": ["cupy>=14", "cuda-version=13"],
}


@pytest.mark.parametrize("name", FURTHER)
def test_further_conda_environments_are_the_other_one_and_more(name):
    common, more = (
        yaml.safe_load((ROOT / "envs" / f"{name}.yaml").read_text()) for name in ("popdesic", name)
    )
    assert more["dependencies"] == [*common["dependencies"], *FURTHER[name]]
    assert set(more["channels"]) <= set(common["channels"])


def test_rules_that_ask_for_a_gpu_take_the_environment_with_cupy():
    found = 0
    for path in ROOT.glob("workflow/rules/*.smk"):
        for rule in re.split(r"(?m)^(?=\s*rule\b[^:\n]*:)", path.read_text()):
            named = re.search(r"conda:\n\s*(\S+)", rule)
            if named and "rule" in rule.split(":")[0]:
                asks = (
                    re.search(r"gpu=((\w+_)?GPUS|(closing|counting|further|scan)_gpus)\b", rule)
                    is not None
                )
                assert (named[1] == "GPU_CONDA") == asks, f"{path.name}: {rule[:40]}"
                found += asks
    assert found > 8
    for cuda in CUDA_VERSIONS:
        name = "popdesic" if cuda == "none" else f"popdesic-cuda{cuda}"
        assert (ROOT / f"envs/{name}.yaml").is_file()


def test_extras_of_pip_and_conda_ask_for_the_same_cupy():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for cuda in (12, 13):
        assert extras["optional-dependencies"][f"cuda{cuda}"] == [f"cupy-cuda{cuda}x[ctk]>=14"]


#: Packages that conda channels have under another name than the Python package index.
CONDA_NAMES = {
    "isal": "python-isal",
    "matplotlib": "matplotlib-base",
    "snakemake": "snakemake-minimal",
}


def test_recipe_asks_for_what_pip_asks_for():
    import popdesic

    recipe = yaml.safe_load((ROOT / "envs/recipe/recipe.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    about, needs = project["project"], recipe["requirements"]
    pairs = [line.split(">=") for line in about["dependencies"]]
    assert recipe["context"]["version"] == popdesic.__version__
    assert about["requires-python"] == f">={recipe['context']['python_min']}"
    assert needs["run"][0] == "python >=${{ python_min }}"
    assert needs["run"][1:] == [f"{CONDA_NAMES.get(a, a)} >={b}" for a, b in pairs]
    assert [line.replace(" ", "") for line in needs["host"][2:]] == project["build-system"][
        "requires"
    ]
    assert recipe["build"]["noarch"] == "python"
    (script,) = about["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(script)]
    assert needs["run_constraints"] == ["cupy >=14", "cuda-version >=12"]
    assert recipe["about"]["license"] == about["license"]
    assert recipe["about"]["summary"] == about["description"]


def test_pixi_takes_the_pins_of_conda():
    pixi = tomllib.loads((ROOT / "envs/pixi.toml").read_text())
    conda = yaml.safe_load((ROOT / "envs/popdesic.yaml").read_text())
    pairs = [re.split("(?=[=>])", line, maxsplit=1) for line in conda["dependencies"]]
    further = {"snakemake-minimal", "snakemake-executor-plugin-slurm"}
    own = pixi["dependencies"]
    assert {name: own[name] for name in own.keys() - further} == {
        name: version.replace("=", "==") if version[0] == "=" else version
        for name, version in pairs
    }
    assert pixi["workspace"]["channels"] == conda["channels"]
    pins = (ROOT / "requirements.txt").read_text()
    for name in further:
        wanted = own[name].removeprefix("==")
        assert re.search(rf"^{name.removesuffix('-minimal')}=={re.escape(wanted)} ", pins, re.M), (
            name
        )
    for cuda in (12, 13):
        assert pixi["feature"][f"cuda{cuda}"]["dependencies"] == {
            "cupy": ">=14",
            "cuda-version": f"{cuda}.*",
        }


def test_the_container_takes_lock_files_that_are_there():
    text = (ROOT / "envs/Containerfile").read_text()
    assert set(re.findall(r"requirements[\w-]*\.txt", text)) == {
        f"requirements{kind}.txt" for kind in ("", "-gpu", "-gpu-cuda12")
    }


def test_citation_and_catalogue_say_what_is_so():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    import popdesic

    assert citation["version"] == popdesic.__version__
    assert citation["license"] == project["license"]
    assert citation["authors"] == [{"name": "The Popdesic developers"}]
    assert {"cff-version", "message", "title", "type"} <= citation.keys()
    zenodo = json.loads((ROOT / ".zenodo.json").read_text())
    assert zenodo["creators"] == citation["authors"]
    assert zenodo["upload_type"] == citation["type"]
    for theirs, own in (
        ("title",) * 2,
        ("license",) * 2,
        ("keywords",) * 2,
        ("description", "abstract"),
    ):
        assert zenodo[theirs] == citation[own]
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    rules = "".join(path.read_text() for path in ROOT.glob("workflow/rules/*.smk"))
    deployment = usage["software-stack-deployment"]
    assert deployment["conda"] == ("conda:" in rules)
    assert deployment["apptainer"] == ("container:" in rules)
    assert usage["report"] == ("report(" in rules)
    assert usage["mandatory-flags"]["flags"] == ""


@pytest.mark.parametrize(
    "name",
    [f"requirements{kind}.txt" for kind in ("", "-dev", "-docs", "-gpu", "-gpu-cuda12", "-uv")],
)
def test_lock_files_name_no_index(name):
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert text.count("--hash=sha256:") > text.count("==") > 0


@pytest.mark.parametrize("name", ["requirements-gpu.txt", "requirements-gpu-cuda12.txt"])
def test_lock_files_of_gpus_hold_the_pins_of_all_others(name):
    pins = set(re.findall(r"^[\w.-]+==[^ ;]+", (ROOT / "requirements.txt").read_text(), re.M))
    found = set(re.findall(r"^[\w.-]+==[^ ;]+", (ROOT / name).read_text(), re.M))
    assert len(pins) > 50 and pins <= found, sorted(pins - found)
    cuda = "12" if name.endswith("cuda12.txt") else "13"
    assert any(pin.startswith(f"cupy-cuda{cuda}x==") for pin in found)


def test_changelog_has_the_version():
    import popdesic

    text = (ROOT / "CHANGELOG.md").read_text()
    assert f"## {popdesic.__version__}" in text
    for version in re.split(r"^## ", text, flags=re.M)[1:]:
        name, _, paragraph = version.partition("\n\n")
        assert re.match(r"[A-Z][^#]{80,}\n\n|[A-Z][^#]{80,}$", paragraph), (
            f"{name}: what users must know"
        )


@pytest.mark.parametrize("page", ["*.md", "docs/*.md", "config/*.md"])
def test_thousands_are_separated_by_spaces(page):
    for path in sorted(ROOT.glob(page)):
        if path.name != "CHANGELOG.md":
            _check_separators(path)


def _check_separators(page):
    text = re.sub(r"https?://\S+|10\.\d{4,}/\S+|`[^`]*`", "", page.read_text())
    assert not re.findall(r"\b\d{1,3}(?:,\d{3})+\b", text)
