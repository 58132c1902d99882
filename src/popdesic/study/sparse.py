"""Studies without a matrix of all pairs: which studies are, and what they do without.

A study with more samples than `distance.dense_limit` is sparse: no file of n x n numbers is made.
Its stages work from nearest neighbours, from rows of landmarks and from rows of cohorts. What needs
all pairs is left out, with one sentence in the log of the plan, in `popdesic check` and on the
page.
"""

from __future__ import annotations

import copy

from ..core.errors import UserError
from ..core.limits import BLOCK_MODEL_LIMIT, DENSE_LIMIT
from ..relatives.options import is_measured

#: Most nearest samples that the kernels keep of each sample.
MOST_KEPT = 256
#: Nearest samples that are listed by default, and the format of all distances as text.
LISTED, DISTANCE_TEXT = 50, "mdist"
#: Exports of all pairs.
PAIR_FORMATS = ("mibs", "king", "phylip", "newick", "auspice")


def neighbors_kept(config: dict) -> int:
    """Nearest samples of everyone that a sparse study keeps: as many as any stage asks for."""
    wanted = (
        LISTED,
        config["neighbors"] * (2 if config["embedding"]["ensemble"] else 1),
    )
    return min(MOST_KEPT, max(wanted))


def is_sparse(config: dict, n_samples: int) -> bool:
    """Whether a study of this configuration and size does without matrices of all pairs."""
    limit = config["distance"]["dense_limit"]
    return n_samples > (DENSE_LIMIT if limit == "auto" else limit)


def is_compared(config: dict) -> bool:
    """Whether a study compares its samples: for its tables, or for the founders of the axes.

    Then a sparse one computes neighbours and comparisons from planes that are read once.
    """
    return is_measured(config["compare"]["analyses"], config["close_kinship"])


def without_pairs(config: dict, n_samples: int, *, placed: bool) -> tuple[dict, list[str]]:
    """The configuration of a sparse study without what needs all pairs.

    Parameters
    ----------
    config : dict
        With all defaults filled in; it is not changed.
    n_samples : int
        Samples of the sheet.
    placed : bool
        Whether they come from several places.

    Returns
    -------
    config : dict
    sentences : list of str
        What is left out, and why; the first says that the study is sparse.

    Raises
    ------
    UserError
        The study asks for samples to be dropped that cannot be compared.
    """
    config = copy.deepcopy(config)
    limit = config["distance"]["dense_limit"]
    limit = DENSE_LIMIT if limit == "auto" else limit
    if config["distance"]["on_uncomparable"] == "drop":
        raise UserError(
            f"config/config.yaml: distance.on_uncomparable: drop needs all pairs, and {n_samples} "
            f"samples are more than distance.dense_limit = {limit}; set it to keep or error, or "
            "raise distance.dense_limit."
        )
    left_out = [
        f"{n_samples} samples are more than distance.dense_limit = {limit}: no matrix of all pairs "
        "is made, and geodesics run among nearest neighbours."
    ]

    def leave_out(what: str, why: str = "it needs all pairs") -> None:
        left_out.append(f"{what} is left out: {why}.")

    def switch_off(stage: str, key: str, off, what: str) -> None:
        if config[stage][key] not in (off, "auto"):
            leave_out(what)
        config[stage][key] = off

    if DISTANCE_TEXT in config["export"]["formats"]:
        leave_out("The text of all distances (export.formats: mdist)")
    switch_off("geodesic", "explain", False, "The ranking of bridges (geodesic.explain)")
    if "ibd" in config["geodesic"]["space"]:
        leave_out("The space of shared segments (geodesic.space: ibd)")
        config["geodesic"]["space"].remove("ibd")
    switch_off("embedding", "stable", False, "The frame of the founders (embedding.stable)")
    switch_off("embedding", "further_maps", [], "What embedding.further_maps lists")
    communities = config["communities"]["methods"]
    if "hdbscan" in communities:
        leave_out("HDBSCAN (communities.methods)")
    if "blockmodel" in communities and n_samples > BLOCK_MODEL_LIMIT:
        communities.remove("blockmodel")
        why = f"{n_samples} samples are more than {BLOCK_MODEL_LIMIT}"
        leave_out("The block model (communities.methods)", why)
    formats = [name for name in config["export"]["formats"] if name in PAIR_FORMATS]
    if formats:
        leave_out(f"The export as {', '.join(formats)} (export.formats)")
    config["export"]["formats"] = [
        name for name in config["export"]["formats"] if name not in (*formats, DISTANCE_TEXT)
    ]
    if placed:
        leave_out("Geography", "distances between places are means over all pairs of samples")
    return config, left_out
