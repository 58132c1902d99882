"""Section on the communities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...io.files import read_json
from ...io.tables import read_table
from ..inline import describe_drawn
from ..registry import community_figures
from ..words import number


def community_section(results: Path, figures: Path, methods: list[str]) -> dict[str, Any] | None:
    """Text, table and figures of the communities; None if `communities.methods` is empty.

    Returns
    -------
    dict
        ``words``, ``missing`` (a sentence, or empty), ``rows`` of the table of agreement,
        ``figures``: list of FigureText.
    """
    about_path = results / "communities" / "communities.json"
    if not methods or not about_path.exists():
        return None
    about = read_json(about_path)
    rows = read_table(results / "communities" / "agreement.tsv").to_dict("records")
    for row in rows:
        row |= {score: f"{float(row[score]):.3f}" for score in ("ari", "ami")}
    sizes = {"n_placed": number(about["samples"]), "n_communities": about["communities"]}
    return {
        "words": describe(about),
        "missing": about.get("missing", ""),
        "rows": rows,
        "figures": describe_drawn(community_figures(methods), figures, sizes),
    }


def describe(about: dict[str, Any]) -> str:
    """Two or three sentences about how the communities were found."""
    model = about.get("block_model")
    if about["made_from"] == "nothing":
        return f"No communities were inferred for {number(about['samples'])} samples."
    if model:
        text = (
            f"{model['blocks'][0]} blocks of the nested stochastic block model (description length "
            f"{number(round(model['description_length']))} nats"
        )
        if model["draws"]:
            low, high = model["blocks_of_draws"]
            text += (
                f"; {low} to {high} blocks in {model['draws']} partitions sampled from the "
                f"posterior, which agree with this one at an ARI of {model['ari_with_draws']:.2f}"
            )
        text += ")"
    else:
        text = "Clusters of HDBSCAN"
    best = about["silhouettes"].get(str(about["communities"]))
    text += f", merged by their geodesics into {about['communities']} communities"
    if best is not None:
        text += f" (mean silhouette {best:.3f}, the highest of the numbers tried)"
    if about["fine"] > about["communities"]:
        text += f" and {about['fine']} finer ones (highest modularity of the neighbour graph)"
    return text + ". Communities are numbered by size; labels were not used."
