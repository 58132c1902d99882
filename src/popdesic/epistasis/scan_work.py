"""What the first site of a scan's combinations costs: the model by which scans are cut into jobs.

A triple costs a fixed amount, for its cells and the bound, and an amount that grows with the depth
of its first site x: only samples with a stored genotype of x are counted. The unit is one AND and
popcount of 64 samples. Constants were fitted to scans of 180 sites on a CPU and to the table of
cores in kernels/README.md (an H200): only their ratio matters, and that to a factor of two.
"""

from __future__ import annotations

import numpy as np

from ..core.errors import UserError

#: Cells and bound of a triple, by kind of device.
FIXED = {"cpu": 300.0, "gpu": 1600.0}
#: Sites z that are counted together: combinations in the first and the last block count as whole.
BLOCK = 64
#: What a pair (x, y) of triples costs beside its z, in triples: blocks of y and z at the diagonal
#: that hold more than y < z, and the batches of x. It counts in the last units, whose x have few z.
BESIDE = {"cpu": 0, "gpu": 192}
#: Samples of a word, and words that a plane of compacted samples is padded by, on average.
WORD, PADDING = 64, 4
#: Share of the sites at the end, without missing genotypes, from which on a GPU scans them by two
#: stored states. Below, their scan saves less than another one costs to set up.
LEAST_BLOCK = 1 / 4
#: Sites x of a chunk on a CPU, for which the pair tables of all y and z are counted once, and bytes
#: that the compacted planes of a chunk may take.
CHUNK, CHUNK_BYTES = 32, 1 << 28


def device_kind(device: str) -> str:
    """The device that scans are cut for: all but ``cpu`` of the configuration may be a GPU."""
    return "cpu" if device == "cpu" else "gpu"


def block_of_complete(incomplete: np.ndarray, tile: int = BLOCK) -> int:
    """First site of the block that a GPU scans by two stored states; n_sites if there is none.

    Parameters
    ----------
    incomplete : bool array, (n_sites,)
        Whether a site has missing genotypes.
    tile : int
        The block begins at a multiple of it.
    """
    n, rows = len(incomplete), np.flatnonzero(incomplete)
    begin = -(-(int(rows[-1]) + 1) // tile) * tile if len(rows) else 0
    return n if n - begin < max(1, LEAST_BLOCK * n) else begin


def require_complete(sizes: np.ndarray) -> None:
    """Refuse planes in which a site that should be complete has missing genotypes.

    Parameters
    ----------
    sizes : int array
        Samples whose genotype is missing, of the sites from `ScanData.complete_from` on
        (of either device).

    Raises
    ------
    UserError
        There are some.
    """
    if sizes.size and int(sizes.max()):
        raise UserError(
            "results/reorder: sites.tsv lists sites without missing genotypes (n_missing 0) for "
            "which onehot.npy has some; remove the folder and run again."
        )


def first_site_work(stored: np.ndarray, n_words: int, order: int, kind: str) -> np.ndarray:
    """Work of all combinations by their first site, float64 (n_sites,).

    Parameters
    ----------
    stored : int64 array, (n_sites, n_states)
        Samples of both classes in each stored state, the third of which is missing.
    n_words : int
        Of a plane of all samples.
    order : int
    kind : str
        `device_kind`.
    """
    n, n_states = stored.shape
    sites = np.arange(n)
    # z > y in whole blocks, as the loops go through them.
    lanes = BLOCK * (-(-n // BLOCK) - (sites + 1) // BLOCK).astype(np.float64)
    if order == 3:
        lanes += BESIDE[kind]
    lanes[-1:] = 0
    states = np.full(n, float(n_states))
    if n_states == 3:
        states[stored[:, 2] == 0] = 2  # no missing genotype: not counted
    if order == 4:
        return _work_of_quads(stored.sum(axis=1) / WORD, states, n_states, n_words, lanes, kind)
    begin = block_of_complete(stored[:, 2] > 0) if n_states == 3 else n
    if kind == "gpu" and begin < n:
        return _work_of_parts(stored, order, lanes, begin)
    if order == 2:
        return lanes * (FIXED[kind] / 3 + states * n_states * n_words) if kind == "cpu" else lanes
    products = states.mean() * n_states if n else 0.0
    depth = stored.sum(axis=1) / WORD + PADDING * states
    work = FIXED[kind] + products * depth
    if kind == "cpu":
        chunk = CHUNK_BYTES / np.maximum(1, 8 * n_states * depth * n)
        work += products * n_words / np.clip(chunk, 1, CHUNK)
    pairs = np.append(np.cumsum(lanes[::-1])[::-1], 0)  # of all y from a site on
    return work * pairs[1:]


def _work_of_quads(
    depth: np.ndarray,
    states: np.ndarray,
    n_states: int,
    n_words: int,
    lanes: np.ndarray,
    kind: str,
) -> np.ndarray:
    """The same of quads: of all second sites x of a first site w.

    A GPU counts x's samples with w in each of three genotypes, a CPU those with stored genotypes
    of both.
    """

    def after(values: np.ndarray) -> np.ndarray:
        return np.append(np.cumsum(values[::-1])[::-1], 0)[1:]

    share, copies = (1.0, 3.0) if kind == "gpu" else (depth / max(n_words, 1), states)
    products, pairs = states.mean() * n_states if len(states) else 0.0, after(lanes)
    fixed = (3 * FIXED[kind]) * after(pairs)
    padding = products * PADDING * copies * after(pairs * states)
    return fixed + padding + products * share * after(pairs * depth)


def _work_of_parts(stored: np.ndarray, order: int, lanes: np.ndarray, begin: int) -> np.ndarray:
    """The same of a GPU, where the sites from `begin` on have no missing genotypes.

    See `gpu.epistasis_parts`: triples of the block, and those whose first site alone is before it,
    take the products of two stored states; pairs of a site before the block and one in it take six
    products instead of four.
    """
    n = len(stored)
    outside = np.arange(n) < begin
    if order == 2:
        of_block = float(BLOCK * (-(-n // BLOCK) - begin // BLOCK))
        mixed = np.minimum(lanes, of_block)
        return np.where(outside, 6 / 4 * mixed + 9 / 4 * (lanes - mixed), lanes)
    states = np.where(outside, 3, 2)
    depth = np.where(outside, stored.sum(axis=1), stored[:, :2].sum(axis=1)) / WORD
    depth += PADDING * states
    pairs = np.append(np.cumsum(lanes[::-1])[::-1], 0)
    inside = np.minimum(pairs[1:], pairs[begin])  # of y in the block
    return (FIXED["gpu"] + 4 * depth) * inside + (FIXED["gpu"] + 9 * depth) * (pairs[1:] - inside)
