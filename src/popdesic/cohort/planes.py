"""Read the bit-planes of one cohort."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..core.errors import UserError
from ..core.files import read_json
from ..engine.terms import Planes
from ..io.layers import most_layers


def load_planes(folder: Path) -> tuple[Planes, dict]:
    """Return the planes of one cohort, memory-mapped, and their metadata (`planes.json`).

    Of polyploids, whose `ploidy` is among the metadata, those of all layers (`io.layers`). If the
    study has several, `ploidy` lists them, and `each` has that of each sample.
    """
    about = read_json(folder / "planes.json")
    try:
        words = np.load(folder / "planes.npy", mmap_mode="r")
    except (OSError, ValueError) as error:
        raise UserError(
            f"{folder}/planes.npy cannot be read ({error}); delete it and rerun."
        ) from None
    layers = most_layers(study_ploidies(about))
    if (
        words.ndim != 3
        or len(words) != len(about["samples"]) * layers
        or words.shape[2] * 64 < about["n_sites"]
    ):
        raise UserError(
            f"{folder}/planes.npy has shape {words.shape}, which does not fit planes.json "
            f"({len(about['samples'])} samples, {about['n_sites']} sites); delete both and rerun."
        )
    return Planes(words, about["n_sites"]), about


def study_ploidies(about: dict) -> list[int]:
    """Ploidies of the study by the metadata of planes, ascending."""
    found = about.get("ploidy", 2)
    return found if isinstance(found, list) else [found]
