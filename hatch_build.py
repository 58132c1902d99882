"""What a wheel carries besides the package, below `popdesic/share` (see popdesic/io/places.py).

An editable installation gets none of it: there the checkout itself is in use.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PARTS = (
    *("Snakefile", "workflow", "kernels", "envs", "slurm"),
    *("config/README.md", "resources/par.tsv", "resources/long_range_ld.tsv"),
)


class Share(BuildHookInterface):
    """Adds PARTS to wheels."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds."""
        if version == "standard":
            build_data["force_include"] |= {part: f"popdesic/share/{part}" for part in PARTS}
