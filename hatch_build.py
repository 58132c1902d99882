"""Add the non-Python parts to a wheel, in `popdesic/share` (see popdesic/core/places.py).

An editable installation does not need them: it uses the files of the checkout.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PARTS = (
    *("Snakefile", "workflow", "kernels", "envs", "slurm", "profiles"),
    *("config/README.md", "resources/par.tsv", "resources/long_range_ld.tsv"),
    *("resources/assemblies.tsv", "resources/species.tsv", "docs/glossary.md"),
)


class Share(BuildHookInterface):
    """Hatchling build hook that adds PARTS to wheels."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before a build."""
        if version == "standard":
            build_data["force_include"] |= {part: f"popdesic/share/{part}" for part in PARTS}
