"""A graph with few edges, as the searches for shortest paths read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Edges:
    """A graph with few edges, each listed from both ends.

    Attributes
    ----------
    starts : int64 array, (n + 1,)
        Where the edges of each node start in `ends` and `weights`.
    ends : int64 array, (n_edges,)
    weights : array, (n_edges,)
        Not negative. No length of a path may exceed `infinity` of their dtype.
    blocked : bool array, (n,)
        Nodes that no path runs through: they can only be ends.
    """

    starts: np.ndarray
    ends: np.ndarray
    weights: np.ndarray
    blocked: np.ndarray

    @classmethod
    def of_pairs(
        cls, n: int, pairs: np.ndarray, weights: np.ndarray, blocked: np.ndarray | None = None
    ) -> Edges:
        """Both directions of edges that are listed once each.

        Parameters
        ----------
        n : int
            Nodes.
        pairs : int64 array, (n_edges, 2)
        weights : array, (n_edges,)
        blocked : bool array, (n,), optional
            None: no node is.
        """
        both = np.concatenate([pairs, pairs[:, ::-1]])
        order = np.argsort(both[:, 0] * n + both[:, 1])  # no edge is there twice
        starts = np.concatenate([[0], np.cumsum(np.bincount(both[:, 0], minlength=n))])
        ends = np.ascontiguousarray(both[order, 1])
        blocked = np.zeros(n, bool) if blocked is None else np.array(blocked)
        return cls(starts, ends, np.tile(weights, 2)[order], blocked)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def parts(self) -> tuple:
        return self.starts, self.ends, self.weights, self.blocked
