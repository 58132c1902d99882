"""Neighbour-joining trees (Saitou and Nei 1987) from a distance matrix.

Not scikit-bio's: forty lines do not justify a package that is compiled where it has no wheel.
"""

from __future__ import annotations

import re

import numpy as np


def neighbor_joining(distances: np.ndarray, names: list[str]) -> str:
    """Neighbour joining (Saitou and Nei 1987, in the form of Studier and Keppler 1988).

    Parameters
    ----------
    distances : float64 array, (n, n)
        Symmetric, finite.
    names : list of str

    Returns
    -------
    str
        Newick; the root has three branches if there are at least three samples. Branch lengths can
        be slightly negative if the distances do not fit a tree. Ties are broken by sample order.
    """
    labels = [quoted(name) for name in names]
    d = np.array(distances, np.float64)
    while len(labels) > 3:
        n = len(labels)
        total = d.sum(axis=1)
        q = (n - 2) * d - total[:, None] - total[None, :]
        np.fill_diagonal(q, np.inf)
        i, j = sorted(divmod(int(q.argmin()), n))
        a = d[i, j] / 2 + (total[i] - total[j]) / (2 * (n - 2))
        new = (d[i] + d[j] - d[i, j]) / 2
        labels[i] = f"({labels[i]}:{a:.9g},{labels[j]}:{d[i, j] - a:.9g})"
        d[i], d[:, i] = new, new
        d[i, i] = 0.0
        # The last row moves into the gap, so that the matrix is not copied.
        last = n - 1
        labels[j] = labels[last]
        d[j], d[:, j] = d[last].copy(), d[:, last].copy()
        d[j, j] = 0.0
        labels.pop()
        d = d[:last, :last]
    if len(labels) == 3:
        x, y, z = d[0, 1], d[0, 2], d[1, 2]
        lengths = (x + y - z) / 2, (x + z - y) / 2, (y + z - x) / 2
    else:
        lengths = tuple(d[0, 1] / 2 for _ in labels) if len(labels) == 2 else ()
    if not lengths:
        return f"{labels[0]};"
    return f"({','.join(f'{k}:{v:.9g}' for k, v in zip(labels, lengths, strict=True))});"


def quoted(name: str) -> str:
    """A name as a label of a Newick tree."""
    plain = all(letter.isalnum() or letter in "-.+/|" for letter in name)
    return name if plain else "'" + name.replace("'", "''") + "'"


def read_newick(text: str) -> tuple[list[list[int]], list[float], dict[int, str]]:
    """Children and branch length of every node, root first, and the labels of nodes by number.

    A node without children is a leaf, and its label a name; that of another node is its support.
    """
    children: list[list[int]] = [[]]
    lengths, leaf, path = [0.0], {}, [0]

    def grow() -> None:
        children[path[-1]].append(len(children))
        path.append(len(children))
        children.append([])
        lengths.append(0.0)

    for token in re.findall(r"'(?:[^']|'')*'|[(),;]|:[^(),;]+|[^(),:;]+", text.strip()):
        if token == "(":
            grow()
        elif token == ",":
            path.pop()
            grow()
        elif token == ")":
            path.pop()
        elif token.startswith(":"):
            lengths[path[-1]] = float(token[1:])
        elif token != ";":
            quoted = token.startswith("'")
            leaf[path[-1]] = token[1:-1].replace("''", "'") if quoted else token
    return children, lengths, leaf
