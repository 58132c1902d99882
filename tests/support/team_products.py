"""What a team of processes computes in the tests of `engine.shared_products_cpu`."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np

from popdesic.engine import genotype_products
from popdesic.engine.genotype_products import Calls, Flips, GenotypeProducts
from popdesic.engine.shared_products_cpu import SharedProducts
from popdesic.engine.team import Team

#: Sites of a block.
BLOCK = 64


def all_products(
    products: GenotypeProducts, vectors: np.ndarray, factors: np.ndarray, flips: Flips
) -> dict[str, bytes]:
    """Every method's bytes. Some are called again, when blocks are in memory."""
    sums = products.sample_sums()
    weights = products.project(vectors)
    found = {
        **{name: getattr(sums, name) for name in ("squares", "called", "joint")},
        "project": weights,
        "combine": products.combine(weights),
        "joint products": products.joint(vectors),
        "flipped": products.flipped(vectors[:, :8], flips),
        "spread": products.spread_by_person(flips),
        "flipped again": products.flipped(vectors[:, 1:9], flips),
        "normal": products.normal(vectors),
        "by parts": products.normal(vectors, factors),
        "normal again": products.normal(vectors[:, :1]),
    }
    return {name: value.tobytes() for name, value in found.items()}


def take_part(team: Team, task: tuple[Path, Calls, tuple]) -> None:
    """Write what the leader finds."""
    genotype_products.BLOCK_SITES = BLOCK
    path, calls, given = task
    products = SharedProducts(calls, 2, team)
    if team.rank:
        team.follow()
        return
    squares = team.call(square_seven)
    assert squares == [0, 1, 4, 9, 16, 25, 36], squares
    path.write_bytes(pickle.dumps(all_products(products, *given)))
    team.end()


def square_seven(team: Team) -> list[int]:
    """Tasks that are shared, more than there are processes."""
    return team.run_tasks(lambda number: number**2, [(number,) for number in range(7)], 2)
