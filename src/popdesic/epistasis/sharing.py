"""Which people several phenotypes share: groups that one scan counts once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: A scan of several phenotypes counts at most this share of the people that scans apart count.
MOST_COUNTED = 0.9


class Groups(NamedTuple):
    """Groups of people from which the classes of all phenotypes follow (`engine.base.SharedScan`).

    Attributes
    ----------
    members : list of bool arrays, (n_people,)
        The base group, then those of phenotypes.
    cases, rest : list of int
        Of each phenotype, numbers of groups; a rest of -1: nobody.
    subtract : bool
    """

    members: list[np.ndarray]
    cases: list[int]
    rest: list[int]
    subtract: bool

    @property
    def counted(self) -> int:
        """People that are counted, once for each group."""
        return int(sum(group.sum() for group in self.members))


def share_groups(classes: np.ndarray) -> Groups:
    """The groups that count the fewest people.

    The base group is the people who are controls of every phenotype, or everybody. The second pays
    where most people have all phenotypes: controls of one are then everybody less its cases.

    Parameters
    ----------
    classes : int8 array, (n_phenotypes, n_people)
        0 control, 1 case, -1 unknown.
    """
    common = (classes == 0).all(axis=0)
    everybody = (classes >= 0).any(axis=0)
    found = [
        _groups(classes, common, (classes == 0) & ~common, subtract=False),
        _groups(classes, everybody, (classes < 0) & everybody, subtract=True),
    ]
    return min(found, key=lambda groups: groups.counted)


def _groups(classes: np.ndarray, base: np.ndarray, rests: np.ndarray, subtract: bool) -> Groups:
    members, cases, rest = [base], [], []
    for of_trait, others in zip(classes, rests, strict=True):
        cases.append(len(members))
        members.append(of_trait == 1)
        rest.append(len(members) if others.any() else -1)
        if others.any():
            members.append(others)
    return Groups(members, cases, rest, subtract)


def pays(classes: np.ndarray) -> bool:
    """Whether several phenotypes share enough people for one scan (`MOST_COUNTED`)."""
    if len(classes) < 2:
        return False
    return share_groups(classes).counted <= MOST_COUNTED * (classes >= 0).sum()
