"""Axes of a team of processes, of fewer samples and sites than real studies have."""

from __future__ import annotations

from collections.abc import Callable

from popdesic.components import axes_together
from popdesic.components.axes_together import Task
from popdesic.engine import genotype_products, needs
from popdesic.engine.team import Team


def fewer(put: Callable = setattr) -> None:
    """Let 75 samples have weights of sites, and 1 301 sites three blocks."""
    put(needs, "MOST_EXACT", 50)
    put(genotype_products, "BLOCK_SITES", 512)


def take_part(team: Team, task: Task) -> None:
    """`axes_together.take_part` of few samples."""
    fewer()
    axes_together.take_part(team, task)
