"""The place of one genome on the axes and maps of a finished study."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.genotype_choice import genotype_stems
from ..components.tables import is_drawn
from ..core.files import read_json
from ..core.tables import read_columns
from ..distance.matrix import leading_scores, study_distances
from ..engine.backend import Backend
from ..geodesic.founder_paths import founder_lengths
from ..geodesic.graph import Graph
from ..maps.place_one import (
    axis_names,
    place_by_nearest,
    place_in_frame,
    place_on_axes,
    read_map_table,
)
from ..relatives.against_all import AgainstAll
from ..relatives.kinship import kinship_tiles, relatives_but_one
from .sheets import Study

AXES, SCORES = Path("results/embedding/axes.npz"), Path("results/embedding/pca.npy")
ORDER = Path("results/distance/samples.tsv")
#: Most founders whose paths are closed again for one person (their number to the third power).
MOST_FRAMED = 5_000
#: Maps that show a place, if the study has them.
METHODS = ("pcoa", "umap")


def place_on_maps(
    folder: Path, against: AgainstAll, config: dict, sheets: Study, backend: Backend
) -> tuple[dict, list[str]]:
    """Scores and places of a person.

    Parameters
    ----------
    folder : Path
        The person's genotypes on the panel.

    Returns
    -------
    place : dict
        `pca` (components by name; empty without axes) and `maps`: a list of dicts with `method`,
        `space`, `alpha`, `projected` (else the mean of the nearest) and coordinates by name.
    remarks : list of str
        What could not be done, one sentence each.
    """
    if not (AXES.is_file() and SCORES.is_file() and ORDER.is_file()):
        return {"pca": {}, "maps": []}, [
            "The study has no principal components yet, so there is no place on them or on maps."
        ]
    remarks = []
    if genotype_stems(config)["pca"] != "genotypes":
        remarks.append(
            "The study's components are of imputed genotypes; missing genotypes of this sample are "
            "not imputed."
        )
    founders = [Path(f"results/cohorts/{cohort}/genotypes") for cohort in sheets.founders]
    if "ibd" in config["geodesic"]["space"]:
        remarks.append(
            "There is no place on maps of shared segments: it needs a run with this sample."
        )
    scores = place_on_axes(founders, folder / "genotypes", AXES, backend)
    shown = int(read_json(AXES.with_suffix(".json"))["components"])
    axes = {f"PC{k + 1}": float(x) for k, x in enumerate(scores[:shown])}
    places = _Places(against, scores, config, sheets, backend)
    maps = [
        places.on(method, space, f"{alpha:g}" if not isinstance(alpha, str) else alpha)
        for space in config["geodesic"]["space"]
        if space != "ibd"
        for alpha in config["geodesic"]["alpha"]
        for method in METHODS
    ]
    return {"pca": axes, "maps": [place for place in maps if place]}, remarks


class _Places:
    """Places of one person on the maps of a study; distances are found once for all maps."""

    def __init__(
        self,
        against: AgainstAll,
        scores: np.ndarray,
        config: dict,
        sheets: Study,
        backend: Backend,
    ):
        self.config, self.backend = config, backend
        table, people = read_columns(ORDER), against.people.samples
        founders = set(sheets.founders)
        self.samples = table["sample"]
        self.founders = np.array([cohort in founders for cohort in table["cohort"]], bool)
        self._genotypes = against.distances
        if self.samples != people:
            place = {name: i for i, name in enumerate(people)}
            self._genotypes = self._genotypes[[place[name] for name in self.samples]]
        self._scores = scores
        self._frames: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = {}

    def on(self, method: str, space: str, alpha: str) -> dict | None:
        """Place on one map; None if the study does not have it, or it is not drawn."""
        path = Path(f"results/embedding/coordinates/{method}.{space}.alpha{alpha}.tsv")
        if not path.is_file() or not is_drawn(path):
            return None
        neighbors, distances = self.config["neighbors"], self.distances(space)
        stable = self.config["embedding"]["stable"] and self.founders.sum() <= MOST_FRAMED
        projected = bool(stable and np.isfinite(distances[self.founders]).all())
        if projected:
            table = read_map_table(path)
            names = axis_names(table)
            found = place_in_frame(
                table,
                self.founders,
                self._lengths(space, alpha),
                method=method,
                components=len(names),
                neighbors=neighbors,
            )
        else:
            names, found = place_by_nearest(path, distances, neighbors)
        coordinates = dict(zip(names, map(float, found), strict=True))
        return {
            "method": method,
            "space": space,
            "alpha": alpha,
            "projected": projected,
        } | coordinates

    def distances(self, space: str) -> np.ndarray:
        """Plain distances to all samples of the maps, float64 (n,)."""
        if space == "genotypes":
            return self._genotypes
        points = leading_scores(SCORES, self.config["geodesic"]["pcs"])
        return np.sqrt(((points - self._scores[: points.shape[1]]) ** 2).sum(axis=1))

    def _lengths(self, space: str, alpha: str) -> tuple[np.ndarray, np.ndarray]:
        """Path lengths through founders: among them (n, n), and of the person to them (n,)."""
        if (space, alpha) not in self._frames:
            lengths = self._close(space, alpha)
            self._frames[space, alpha] = lengths[:-1], lengths[-1]
        return self._frames[space, alpha]

    def _close(self, space: str, alpha: str) -> np.ndarray:
        """`founder_lengths` of the founders and the person, who comes last: (n + 1, n)."""
        statistics = read_json(f"results/geodesic/{space}/alpha{alpha}.json")
        names = pd.Series(self.samples, dtype=str)[self.founders]
        distances = self._distances_in_frame(space)
        with tempfile.TemporaryDirectory(prefix="popdesic.") as scratch:
            return founder_lengths(
                distances,
                np.arange(len(distances)) < len(names),
                [*names, ""],
                self.backend,
                alpha=statistics["value"],
                ends=np.append(self._ends(names), False),
                graph=Graph(**statistics["graph"]),
                of_points=space == "pcs",
                out=Path(scratch) / "lengths.npy",
            ).astype(np.float64)

    def _distances_in_frame(self, space: str) -> np.ndarray:
        """Plain distances of the founders and the person, who comes last: (n + 1, n + 1)."""
        distance = self.config["distance"]
        whole = study_distances(
            SCORES if space == "pcs" else ORDER,
            space,
            pcs=self.config["geodesic"]["pcs"],
            metric=distance["metric"],
            n_sites=read_json("results/panel/counts.json")["n_sites"],
            min_called=distance["min_called"],
        )
        n = int(self.founders.sum())
        distances = np.zeros((n + 1, n + 1))
        distances[:n, :n] = whole[np.ix_(self.founders, self.founders)]
        distances[n, :n] = distances[:n, n] = self.distances(space)[self.founders]
        return distances

    def _ends(self, names: pd.Series) -> np.ndarray:
        """Samples that no path may run through, bool (n,)."""
        if self.config["geodesic"]["bridges"] != "unrelated":
            return np.zeros(len(names), bool)
        rows = sorted(Path("results/compare/tiles").glob("*/row.json"))
        return names.isin(relatives_but_one(kinship_tiles(rows))).to_numpy()
