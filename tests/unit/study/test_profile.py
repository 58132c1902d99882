"""The Slurm profile sends every rule that may use a GPU to the GPU partition; the default one."""

import importlib
import re

import yaml
from support.running import ROOT

#: Rules that are named in a loop, of which some use a GPU.
NAMED = {'f"compute_{made}"': ("compute_maps", "compute_umap", "compute_densmap")}


def test_the_profile_lists_exactly_the_gpu_rules():
    found = set()
    for path in sorted((ROOT / "workflow/rules").glob("*.smk")):
        for name, body in re.findall(
            r"^ *rule(?: (\w+))?:\n(.*?)(?=^ *rule[ :]|\Z)",
            path.read_text(),
            re.MULTILINE | re.DOTALL,
        ):
            if re.search(r"^ +gpu=", body, re.MULTILINE):
                found.update([name] if name else NAMED[body.split()[1]])
    profile = yaml.safe_load((ROOT / "slurm/config.yaml").read_text())
    listed = {k: v["slurm_partition"] for k, v in profile["set-resources"].items()}
    assert listed == dict.fromkeys(found, "gpu")
    assert profile["default-resources"]["slurm_partition"] == "cpu"


def test_the_default_profile_names_a_scheduler_of_the_installed_snakemake():
    from snakemake_interface_scheduler_plugins.registry import SchedulerPluginRegistry

    profile = yaml.safe_load((ROOT / "profiles/default/config.yaml").read_text())
    importlib.import_module("snakemake.scheduling.greedy")
    assert SchedulerPluginRegistry().is_installed(profile["scheduler"])
