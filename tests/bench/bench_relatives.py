"""Where relatives of the samples that define axes come to lie, and what PC-Relate makes of it.

    python tests/bench/bench_relatives.py [--seeds 5] [--first 200] [--data FOLDER] [--quick]

Scenes of tests/scenes/relatives.py: admixed, island, panmictic and a chain, with uneven sizes.
"RMS" is the root mean square distance from where a sample belongs (`Scene.places`), in standard
deviations of the axis among those who define it, on the axis where it is largest: of all axes that
are shown, over the scenes of one demography. Strangers say what an axis can tell at all. Beside it
are a plain projection, and OADP without regard to relatives, as it was. Then slopes of strangers,
relatives found among each kind, and PC-Relate: inbreeding of children of one ancestry (0 is true)
and kinship of full siblings (0.25) on the scores of each way. Rules were chosen on seeds
0 to 12.
Real trios: children and duplicates of HapMap, whose parents and doubles define the axes.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import commandline
import numpy as np
import pandas as pd
from scenes.newcomers import plain_scores
from scenes.people import load_people
from scenes.relatives import DEMOGRAPHIES, KINDS, Scene, draw_relatives
from timing import print_table

from popdesic.cohort.panel import load_panel
from popdesic.cohort.site_alleles import read_cohorts
from popdesic.components.noise_null import significant_axes
from popdesic.components.pca import Axes
from popdesic.components.relationship import alt_frequency, relationship_among, relationship_to
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.relatives.pc_relate import ancestry_of, pc_relate

WAYS = ("plain", "OADP as before", "now")


def axes_of_scene(genotypes: np.ndarray, axis: np.ndarray, sites: pd.DataFrame) -> tuple:
    """Axes by their number of significant components, rows and own of all others."""

    def read(first: int, last: int) -> np.ndarray:
        return np.ascontiguousarray(genotypes[axis, first:last].T)

    def read_all(first: int, last: int) -> np.ndarray:
        return np.ascontiguousarray(genotypes[:, first:last].T)

    sizes, af = [int(axis.sum())], alt_frequency(genotypes[axis].T)
    given = read, sizes, af
    axes = significant_axes(relationship_among(*given), *given, sites, "auto")[0]
    return axes, *relationship_to(read_all, [len(genotypes)], axis, af)


def scores_by_way(axes: Axes, axis: np.ndarray, rows: np.ndarray, own: np.ndarray) -> dict:
    """Scores of everyone, float64 (n, k), by WAYS."""
    before = replace(axes, own=None)
    found = plain_scores(axes, axis, rows), before.place(axis, rows, own)
    return dict(zip(WAYS, (*found, axes.place(axis, rows, own)), strict=True))


def kinships(scene: Scene, scores: np.ndarray, components: int) -> tuple[float, float]:
    """Mean inbreeding of children of one ancestry, and kinship of full siblings, by PC-Relate."""
    genotypes = scene.genotypes
    ancestry = ancestry_of(scores, scene.axis, components)

    def read(first: int, last: int) -> np.ndarray:
        return genotypes[:, first:last].T

    found = pc_relate(read, genotypes.shape[1], ancestry, CpuBackend(1))
    children = np.flatnonzero(scene.kind == "child").reshape(-1, 2)
    pure = (scene.ancestry[children[:, 0]] == 1).any(axis=1) | (scene.ancestry.shape[1] == 2)
    alone = np.isin(scene.kind, ("child of one", "full sibling", "half sibling", "grandchild"))
    inbreeding = 2 * found.own[np.append(children[pure].ravel(), np.flatnonzero(alone))] - 1
    return float(inbreeding.mean()), float(found.matrix()[children[:, 0], children[:, 1]].mean())


def measure(demography: str, seeds: range, options: dict) -> tuple[list, list, list, list]:
    """Rows of the four tables."""
    squares: dict[str, dict[str, list]] = {way: {} for way in WAYS}
    slopes, related = [], []
    found: dict[str, list] = {}
    shown, told = [], []
    for seed in seeds:
        scene = draw_relatives(demography, seed, **options)
        axes, rows, own = axes_of_scene(scene.genotypes, scene.axis, scene.sites)
        shown.append(axes.k)
        told.append(axes.significant)
        others = scene.kind[~scene.axis]
        is_told = axes.has_relatives(rows)
        for kind in (*KINDS, "stranger"):
            found.setdefault(kind, []).extend(is_told[others == kind])
        relate = []
        for way, scores in scores_by_way(axes, scene.axis, rows, own).items():
            places, spread = scene.places(scores), scores[scene.axis].std(axis=0)
            for kind in (*KINDS, "stranger"):
                who = scene.kind == kind
                error = ((scores[who] - places[who]) / spread) ** 2
                squares[way].setdefault(kind, []).append(error.mean(axis=0).max())
            relate += kinships(scene, scores, axes.significant)
        related.append(relate)
        strangers, axes_told = scene.kind == "stranger", slice(axes.significant)
        x, y = places[strangers, axes_told], scores[strangers, axes_told]
        slopes += ((x * y).sum(axis=0) / (x**2).sum(axis=0)).tolist()
    about = f"{demography} ({len(seeds)}), {min(told)} to {max(told)} of {min(shown)} to"
    about += f" {max(shown)} shown axes significant"
    return (
        [(about, "", *[""] * (len(KINDS) + 1))]
        + [
            ("", way, *(f"{np.sqrt(np.mean(of[kind])):.2f}" for kind in (*KINDS, "stranger")))
            for way, of in squares.items()
        ],
        [(demography, *(f"{x:.2f}" for x in (np.mean(slopes), min(slopes), max(slopes))))]
        if slopes
        else [],
        [(demography, *(f"{np.mean(found[kind]):.3f}" for kind in (*KINDS, "stranger")))],
        [(demography, *(f"{x:.3f}" for x in np.mean(related, axis=0)))],
    )


def trios(data: Path) -> None:
    """Children and duplicates of HapMap on axes of their parents and doubles."""
    with tempfile.TemporaryDirectory() as temporary:
        people = load_people(data, "hapmap279", Path(temporary))
        sites, _ = load_panel(Path(temporary) / "panel.tsv")
        prefix = Path(temporary) / "genotypes"
        genotypes = np.ascontiguousarray(read_cohorts([prefix])[0](0, len(sites)).T)
    sheet = pd.read_csv(data / "hapmap279/samples.tsv", sep="\t", dtype=str)
    parents = sheet.set_index("sample_id")[["father_id", "mother_id"]]
    place = {name: i for i, name in enumerate(people.names)}
    children = [n for n in people.names if all(p in place for p in parents.loc[n])]
    twins = [n for n in people.names if n.endswith(".dup") and n.removesuffix(".dup") in place]
    axis = ~np.isin(people.names, [*children, *twins])
    axes, rows, own = axes_of_scene(genotypes, axis, sites)
    table = []
    for way, scores in scores_by_way(axes, axis, rows, own).items():
        spread = scores[axis].std(axis=0)
        for kind, names in (("child", children), ("duplicate", twins)):
            names = [n for n in names if kind == "child" or axis[place[n.removesuffix(".dup")]]]
            if not names:
                continue
            at = [place[n] for n in names]
            where = (
                scores[[[place[p] for p in parents.loc[n]] for n in names]].mean(axis=1)
                if kind == "child"
                else scores[[place[n.removesuffix(".dup")] for n in names]]
            )
            error = np.sqrt((((scores[at] - where) / spread) ** 2).mean(axis=0))
            table.append((kind, len(names), way, *(f"{x:.2f}" for x in error)))
    head = ("real", "n", "projection", *(f"PC{i + 1}" for i in range(axes.k)))
    print_table(f"RMS of HapMap, {axis.sum()} define axes, {len(sites)} sites", head, table)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=200)
    parser.add_argument("--sites", type=int, default=12_000)
    parser.add_argument("--data", type=Path, help="the folder of hapmap279")
    options = commandline.parse(parser, seeds=1, sites=3_000)
    seeds = range(options.first, options.first + options.seeds)
    tables: list[list] = [[], [], [], []]
    for demography in DEMOGRAPHIES:
        for table, rows in zip(
            tables, measure(demography, seeds, {"sites": options.sites}), strict=True
        ):
            table += rows
    kinds = (*KINDS, "stranger")
    print_table("RMS on the worst shown axis, SD", ("scenes", "projection", *kinds), tables[0])
    print_table("slopes of strangers", ("demography", "mean", "least", "most"), tables[1])
    print_table("share told as relatives", ("demography", *kinds), tables[2])
    head = [f"{what}, {way}" for way in WAYS for what in ("inbreeding", "siblings")]
    print_table("PC-Relate (0 and 0.25)", ("demography", *head), tables[3])
    shared = Path(os.environ.get("POPDESIC_SHARED", commandline.ROOT.parent / "shared"))
    data = options.data or shared / "data"
    if (data / "hapmap279").is_dir():
        trios(data)
    else:
        print(f"HapMap is left out: {data}/hapmap279 is not there (set POPDESIC_SHARED).")


if __name__ == "__main__":
    main()
