"""Where the parts of Popdesic lie that are not Python: rules, schemas, templates, kernels."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def _home() -> Path:
    """The folder that holds `Snakefile`, `workflow`, `kernels`, `resources`, `envs` and `slurm`.

    A wheel carries it as `popdesic/share`; in a checkout it is the repository, which holds the
    package in `src`.
    """
    share, checkout = _PACKAGE / "share", _PACKAGE.parent.parent
    return share if share.is_dir() else checkout


HOME = _home()
SNAKEFILE = HOME / "Snakefile"
KERNEL_FOLDER = HOME / "kernels"
RESOURCES = HOME / "resources"
SCHEMAS = HOME / "workflow" / "schemas"
TEMPLATES = HOME / "workflow" / "report"
