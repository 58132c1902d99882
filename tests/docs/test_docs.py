"""Documentation and lock files that must not drift from what they describe."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from popdesic.io.schemas import load_schema
from popdesic.study.configuration import load_config

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


def test_example_config_spells_out_the_defaults():
    written = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    defaults = load_config({})
    # What the example shows although a study that does not ask for it pays nothing.
    shown = {
        "impute": {"evaluate": 0},
        "export": {"formats": []},
        "epistasis": {"order": [], "restrict": "", "screen": 0, "covariates": [], "power": []},
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


def test_conda_environment_of_beagle_is_the_other_one_and_beagle():
    common, beagle = (
        yaml.safe_load((ROOT / "envs" / f"{name}.yaml").read_text())["dependencies"]
        for name in ("popdesic", "beagle")
    )
    assert beagle == [*common, "beagle>=5.4"]


@pytest.mark.parametrize(
    "name", [f"requirements{kind}.txt" for kind in ("", "-dev", "-gpu", "-uv")]
)
def test_lock_files_name_no_index(name):
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert text.count("--hash=sha256:") > text.count("==") > 0


def test_changelog_has_the_version():
    import popdesic

    assert f"## {popdesic.__version__}" in (ROOT / "CHANGELOG.md").read_text()
