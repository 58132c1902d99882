"""What the report says of the communities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..io.files import read_json
from ..io.tables import read_table
from .inline import describe_figure
from .words import number

_FIGURES = (
    ("communities", "Communities and labels"),
    ("communities_heatmap", "Geodesics by community"),
    ("communities_tree", "Neighbour-joining tree"),
)


def community_section(results: Path, figures: Path, methods: list[str]) -> dict[str, Any] | None:
    """Text, table and figures of the communities, None where `communities.methods` is empty.

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
    sizes = f"{number(about['samples'])} samples, {about['communities']} communities."
    names = [(n, title) for n, title in _FIGURES if (figures / f"{n}.svg").exists()]
    if "communities_tree" in dict(names) and "tree" not in methods:
        names = [(n, title) for n, title in names if n != "communities_tree"]
    return {
        "words": describe(about),
        "missing": about.get("missing", ""),
        "rows": rows,
        "figures": [describe_figure(figures, n, n, title, sizes) for n, title in names],
    }


def describe(about: dict[str, Any]) -> str:
    """Two or three sentences on how the communities were found."""
    model = about.get("block_model")
    if about["made_from"] == "nothing":
        return f"No communities were looked for among {number(about['samples'])} samples."
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
        text = "HDBSCAN's clusters"
    best = about["silhouettes"].get(str(about["communities"]))
    text += f", joined by their geodesics into {about['communities']} communities"
    if best is not None:
        text += f" (mean silhouette {best:.3f}, the greatest of those tried)"
    if about["fine"] > about["communities"]:
        text += f" and {about['fine']} finer ones (greatest modularity of the neighbour graph)"
    return text + ". They are numbered by size and have no names: labels took no part."
