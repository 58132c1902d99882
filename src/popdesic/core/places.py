"""Locations of the non-Python parts of Popdesic: rules, schemas, templates, kernels."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def _home() -> Path:
    """Return the folder of `Snakefile`, `workflow`, `kernels`, `resources`, `envs` and `slurm`.

    In a wheel it is `popdesic/share`; in a checkout it is the root of the repository.
    """
    share, checkout = _PACKAGE / "share", _PACKAGE.parent.parent
    return share if share.is_dir() else checkout


HOME = _home()
SNAKEFILE = HOME / "Snakefile"
PROFILES = HOME / "profiles"
KERNEL_FOLDER = HOME / "kernels"
RESOURCES = HOME / "resources"
SCHEMAS = HOME / "workflow" / "schemas"
TEMPLATES = HOME / "workflow" / "report"
GLOSSARY = HOME / "docs" / "glossary.md"
#: Environment variable of a workflow whose jobs run beside each other on one machine: they share
#: its GPUs, whoever granted these.
SHARES_DEVICES = "POPDESIC_SHARES_DEVICES"
