"""Scenes of population genetics whose truth is known: who lives where, and how far from whom.

    from scenes.landscapes import scene
    grid = scene("grid", seed=1)             # some 300 people, about a second
    grid = scene("grid", seed=1, size="large", sites=2_000)

All sites are unlinked and common (MAF >= 0.05 among all gene copies), but for the inversion's.
Parameters are in `SCENES`, what each scene is in the docstring of its function. Rates of migration
are given as `migrants`: individuals a generation from one deme to one neighbour (N m).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from . import lattices, populations


@dataclass(frozen=True, eq=False)
class Scene:
    """People whose genetic landscape is known.

    Attributes
    ----------
    name : str
    structure : {'one', 'discrete', 'continuous'}
        What there is to find: one population, separate ones, or a continuum.
    genotypes : int8 array, (n_sites, n)
        Number of ALT alleles: 0, 1, 2; -1 where missing.
    chrom : str array, (n_sites,)
    pos : int64 array, (n_sites,)
        In base pairs, sorted within a chromosome.
    samples : str array, (n,)
    populations : str array, (n,)
        Labels as a sample sheet would have them: demes, islands. Where `structure` is ``one`` and
        there are several, they mean nothing.
    cohorts : str array, (n,)
        Who was genotyped together.
    coordinates : float64 array (n, 2), or None
        Where people live, in steps of the lattice; of the gradient the share of ancestry, and 0.
    true_distance : float64 array, (n, n)
        Zero diagonal; all 0 under panmixia. Its unit is the scene's own.
    parameters : dict
        All that was chosen, the seed among them.
    """

    name: str
    structure: str
    genotypes: np.ndarray
    chrom: np.ndarray
    pos: np.ndarray
    samples: np.ndarray
    populations: np.ndarray
    cohorts: np.ndarray
    coordinates: np.ndarray | None
    true_distance: np.ndarray
    parameters: dict = field(repr=False)


def scene(name: str, seed: int, size: str = "small", **changes: float) -> Scene:
    """Draw a scene; the same arguments give the same bytes.

    Parameters
    ----------
    name : str
        A key of `SCENES`.
    seed : int
    size : {'small', 'large'}
    **changes
        Parameters that are to differ from those of the size.
    """
    draw, both = SCENES[name]
    parameters = both[size] | changes
    unknown = changes.keys() - both[size].keys()
    if unknown:
        raise ValueError(f"{name} has no parameter {', '.join(sorted(unknown))}.")
    rng = np.random.default_rng([seed, *name.encode()])
    made = draw(rng, **parameters)
    n_sites, n = made["genotypes"].shape
    chrom, pos = made.pop("places", None) or populations.spread_out(n_sites)
    made = {"cohorts": np.full(n, "all"), "coordinates": None} | made
    names = np.array([f"{name}-{i:04d}" for i in range(n)])
    facts = parameters | {"seed": seed, "size": size}
    return Scene(name=name, chrom=chrom, pos=pos, samples=names, parameters=facts, **made)


def _both(small: dict, **large: float) -> dict[str, dict]:
    return {"small": small, "large": small | large}


#: Every scene: its function, and its parameters by size.
SCENES: dict[str, tuple[Callable[..., dict], dict[str, dict]]] = {
    "chain": (
        lattices.chain,
        _both(
            {"demes": 20, "per_deme": 15, "migrants": 5.0, "sites": 2_000},
            **{"demes": 40, "per_deme": 10, "migrants": 20.0, "sites": 2_000},
        ),
    ),
    "uneven": (
        lattices.uneven,
        _both(
            {"demes": 24, "per_deme": 20, "denser": 4, "migrants": 5.0, "sites": 2_000},
            **{"demes": 40, "per_deme": 16, "migrants": 10.0, "sites": 4_000},
        ),
    ),
    "grid": (
        lattices.grid,
        _both(
            {"side": 10, "per_deme": 3, "migrants": 1.0, "sites": 1_000},
            **{"per_deme": 4, "migrants": 4.0, "sites": 4_000},
        ),
    ),
    "faint grid": (
        lattices.grid,
        _both(
            {"side": 8, "per_deme": 5, "migrants": 3.0, "sites": 800},
            **{"side": 10, "per_deme": 4, "migrants": 4.0, "sites": 1_000},
        ),
    ),
    "wall": (
        lattices.wall,
        _both(
            {"side": 10, "per_deme": 3, "gap": 1, "migrants": 1.0, "sites": 1_000},
            **{"per_deme": 4, "migrants": 4.0, "sites": 4_000},
        ),
    ),
    "closed wall": (
        lattices.closed_wall,
        _both(
            {"side": 8, "per_deme": 5, "generations": 200, "migrants": 1.0, "sites": 1_500},
            **{"side": 10, "per_deme": 4, "migrants": 4.0, "sites": 4_000},
        ),
    ),
    "refuges": (
        lattices.refuges,
        _both(
            {"demes": 20, "per_deme": 15, "contact": 50, "spread": 200, "apart": 1_000}
            | {"migrants": 5.0, "sites": 4_000},
            per_deme=20,
        ),
    ),
    "gradient": (
        populations.gradient,
        _both({"people": 300, "f_st": 0.05, "sites": 4_000}, people=500, sites=8_000),
    ),
    "pulse": (
        populations.pulse,
        _both(
            {"per_population": 100, "f_st": 0.05, "share": 0.5, "generations": 20, "sites": 4_000},
            per_population=200,
        ),
    ),
    "islands": (
        populations.island,
        _both(
            {"islands": 4, "per_island": 75, "f_st": 0.01, "sites": 4_000},
            **{"per_island": 125, "sites": 8_000},
        ),
    ),
    "panmixia": (
        populations.panmixia,
        _both({"people": 300, "sites": 4_000}, people=1_000, sites=8_000),
    ),
    "four labels": (
        populations.panmixia,
        _both({"people": 400, "sites": 4_000, "labels": 4}, people=2_000, sites=8_000),
    ),
    "inversion": (
        populations.inversion,
        _both({"people": 300, "sites": 8_000, "inverted": 40}, people=1_000),
    ),
    "batches": (
        populations.batches,
        _both(
            {"people": 300, "sites": 4_000, "wrong_sites": 0.05, "error": 0.3, "missing": 0.01},
            **{"people": 1_000, "sites": 8_000},
        ),
    ),
}
