"""Scenes of several phenotypes in folders like those of `results/reorder`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from popdesic.epistasis.reorder import reorder_sites
from popdesic.io.tables import write_npy, write_table


def draw_genotypes(rng, n_sites: int, n_people: int, missing: float = 0.0) -> np.ndarray:
    """ALT counts int8 (n_sites, n_people), -1 missing; some copies, and sites that hardly vary."""
    p = rng.uniform(0.02, 0.5, (n_sites, 1))
    genotypes = rng.binomial(2, p, (n_sites, n_people)).astype(np.int8)
    genotypes[n_sites // 2] = genotypes[n_sites // 3]  # ties
    genotypes[n_sites // 4] = 0
    lacking = rng.random(n_sites) < 0.5
    genotypes[lacking[:, None] & (rng.random(genotypes.shape) < missing)] = -1
    genotypes[n_sites // 4, :2] = 1  # varies in the first phenotype alone (`draw_classes`)
    return genotypes


def draw_classes(rng, kind: str, n_traits: int, n_people: int) -> np.ndarray:
    """int8 (n_traits, n_people): 0 control, 1 case, -1 unknown, by the kind of study.

    The first two people are cases of the first phenotype and unknown in the others.

    ``diseases``: shared controls, cases of one disease each; ``registers``: the same, where people
    have several diseases, and some controls are unknown; ``cohort``: everybody has all, but for
    `NA`; ``apart``: nobody is shared.
    """
    classes = _draw_classes(rng, kind, n_traits, n_people)
    classes[:, :2] = -1
    classes[0, :2] = 1
    return classes


def _draw_classes(rng, kind: str, n_traits: int, n_people: int) -> np.ndarray:
    if kind == "cohort":
        classes = (rng.random((n_traits, n_people)) < 0.2).astype(np.int8)
        classes[rng.random(classes.shape) < 0.02] = -1
        return classes
    group = rng.integers(0, 2 * n_traits, n_people)  # half of the people are controls
    if kind == "apart":
        of_traits = 2 * np.arange(n_traits)[:, None]
        return np.where(group == of_traits, 0, np.where(group == of_traits + 1, 1, -1)).astype(
            np.int8
        )
    classes = np.stack(
        [np.where(group >= n_traits, 0, np.where(group == t, 1, -1)) for t in range(n_traits)]
    ).astype(np.int8)
    if kind == "registers":
        classes[(rng.random(classes.shape) < 0.1) & (group < n_traits)] = 1
        classes[(rng.random(classes.shape) < 0.05) & (group >= n_traits)] = -1
    return classes


def write_phenotype(
    folder: Path, genotypes: np.ndarray, classes: np.ndarray, contigs: int = 2
) -> None:
    """Files of `reorder.build_onehot` of one phenotype, from people and sites of a whole study."""
    order = np.concatenate([np.flatnonzero(classes == 0), np.flatnonzero(classes == 1)])
    n_controls = int((classes == 0).sum())
    words, sites, _ = reorder_sites(
        lambda part: genotypes[part][:, order], np.arange(len(genotypes)), n_controls
    )
    rank = sites["rank"].to_numpy()
    panel = pd.DataFrame(
        {
            "chrom": (rank % contigs + 1).astype(str),
            "pos": 1000 * (rank + 1),
            "id": [f"rs{k}" for k in rank],
            "ref": "A",
            "alt": "C",
        }
    )
    write_npy(folder / "onehot.npy", words)
    write_table(folder / "sites.tsv", pd.concat([panel, sites], axis=1))
    names = np.array([f"p{k}" for k in order])
    table = {"sample": names, "cohort": "a", "stratum": "all"}
    own = classes[order]
    table |= {"class": np.where(own == 1, "case", "control"), "phenotype": own}
    write_table(folder / "samples.tsv", pd.DataFrame(table))
