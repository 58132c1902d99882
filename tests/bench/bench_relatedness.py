"""KING-robust and PC-Relate over diverged ancestries: bias, scatter and calls by class of pairs.

    python tests/bench/bench_relatedness.py [--seeds 3] [--fst 0.1 0.15] [--cost] [--quick]

Families of two populations by gene dropping (tests/scenes/ancestry.py). "bias" is the mean
difference from the realised kinship, "sd" its standard deviation, "right" the share of pairs with
the right label at limits of third degree. The second table leaves the parents out, so that children
are fitted, and repeats PCA and PC-Relate with the unrelated set that PC-Relate itself chooses
(second pass, as in PC-AiR). `--cost`: seconds by number of samples.
"""

from __future__ import annotations

import time

import commandline
import numpy as np
from scenes.ancestry import TRUTH, Scene, draw_scene, label_of
from timing import print_table

import popdesic
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.ibd.verdict import relation_of
from popdesic.relatives import kinship
from popdesic.relatives.pc_relate import ancestry_of, count_pairs, pc_relate
from popdesic.relatives.resolution import DUPLICATE, SECOND

ERROR_RATE = 0.005
#: Most pairs of a class that are labelled.
MOST = 2_000


def relate(scene: Scene, training: np.ndarray, components: int):
    """PC-Relate of a scene on the axes of its training samples."""
    genotypes = scene.genotypes
    scores = popdesic.pca(genotypes, n_components=max(components, 1), founders=training).scores
    ancestry = ancestry_of(scores, training, components)

    def read(first: int, last: int, people=slice(None)) -> np.ndarray:
        return genotypes[people, first:last].T

    return read, ancestry, pc_relate(read, genotypes.shape[1], ancestry, CpuBackend(2))


def unrelated(values: np.ndarray, least: float = SECOND) -> np.ndarray:
    """Mask of a largest set without pairs of at least `least`."""
    edges = np.argwhere(np.triu(values >= least, 1)).tolist()
    mask = np.zeros(len(values), bool)
    mask[kinship.unrelated_set(len(values), [tuple(edge) for edge in edges])] = True
    return mask


def labelled(scene: Scene, i, j, king: np.ndarray, related, values: np.ndarray) -> tuple:
    """Labels of pairs by KING-robust and by PC-Relate."""
    read, ancestry, found = related
    counts = count_pairs(read, ancestry, found.coefficients, i, j)
    same = king[i, j] > DUPLICATE
    af = np.ma.masked_less(scene.genotypes, 0).mean(axis=0).filled(0) / 2
    parents = kinship.panel_parent_limit(af, ERROR_RATE)
    share = counts.counts["ibs0"] / counts.counts["called"]
    by_king = [
        kinship.SAME if twin else relation_of(value, one, parents)
        for value, one, twin in zip(king[i, j], share, same, strict=True)
    ]
    by_ancestry = [
        kinship.SAME if twin else relation_of(value, k0)
        for value, k0, twin in zip(values[i, j], counts.k0, same, strict=True)
    ]
    return by_king, by_ancestry


def measure(fst: float, seeds: int, components: int, families: int, sites: int) -> None:
    errors: dict[str, list] = {name: [] for name in TRUTH}
    passes = []
    for seed in range(1, seeds + 1):
        scene = draw_scene(fst=fst, families=families, sites=sites, seed=seed)
        king = popdesic.kinship(scene.genotypes, device="cpu")
        training = unrelated(king)
        related = relate(scene, training, components)
        values = related[2].matrix()
        for name, pairs in scene.pairs.items():
            i, j = np.array(pairs[:: max(1, len(pairs) // MOST)]).T
            related_pairs = zip(i, j, strict=True) if TRUTH[name] else []
            truth = np.array([scene.kinship(a, b) for a, b in related_pairs] or np.zeros(len(i)))
            right = [np.isin(labels, label_of(name)) for labels in
                     labelled(scene, i, j, king, related, values)]  # fmt: skip
            errors[name].append(np.array([king[i, j] - truth, values[i, j] - truth, *right]))
        passes += [(seed, *row) for row in two_passes(without_parents(scene), components)]
    rows = []
    for name, parts in errors.items():
        king_error, error, king_right, right = np.concatenate(parts, axis=1)
        rows.append((
            name, f"{TRUTH[name]:.4f}", len(error),
            f"{king_error.mean():+.4f}", f"{king_error.std():.4f}", f"{king_right.mean():.1%}",
            f"{error.mean():+.4f}", f"{error.std():.4f}", f"{right.mean():.1%}",
        ))  # fmt: skip
    head = (
        "class",
        "kinship",
        "pairs",
        "KING bias",
        "sd",
        "right",
        "PC-Relate bias",
        "sd",
        "right",
    )
    print_table(f"F_ST {fst}, {components} components, {sites} sites, {seeds} seeds", head, rows)
    head = ("seed", "pass", "fitted", "relatives among them", "bias of relatives", "sd")
    head = (*head, "of unrelated F1", "sd")
    print_table("Without parents: unrelated set by KING-robust, then by PC-Relate", head, passes)


def without_parents(scene: Scene) -> Scene:
    """The lone people and the children: relatives whom no parent replaces in an unrelated set."""
    lone = {
        i for name in TRUTH if name.startswith("unrelated") for x in scene.pairs[name] for i in x
    }
    whole = (scene.haplotypes == scene.haplotypes[:, :, :1]).all(axis=(1, 2))  # founders
    kept = [i for i in range(len(whole)) if i in lone or not whole[i]]
    place = {old: new for new, old in enumerate(kept)}
    pairs = {
        name: [(place[i], place[j]) for i, j in found if i in place and j in place]
        for name, found in scene.pairs.items()
    }
    return Scene(scene.genotypes[kept], scene.ancestry[kept], pairs, scene.haplotypes[kept])


def two_passes(scene: Scene, components: int):
    """Fitted samples, relatives among them, error of relatives: in the first and second pass."""
    training = unrelated(popdesic.kinship(scene.genotypes, device="cpu"))
    known = [pair for name, pairs in scene.pairs.items() if TRUTH[name] for pair in pairs]
    i, j = np.array(known).T
    truth = np.array([scene.kinship(*pair) for pair in known])
    strangers = np.array(scene.pairs["unrelated F1 x F1"]).T
    for title in ("first", "second"):
        values = relate(scene, training, components)[2].matrix()
        error = values[i, j] - truth
        scatter = values[strangers[0], strangers[1]]
        yield (title, int(training.sum()), int((training[i] & training[j]).sum()),
               f"{error.mean():+.4f}", f"{error.std():.4f}",
               f"{scatter.mean():+.4f}", f"{scatter.std():.4f}")  # fmt: skip
        training = unrelated(values)


def cost(sizes: list[int], sites: int) -> None:
    """Seconds of PC-Relate by number of samples; random genotypes."""
    rng = np.random.default_rng(1)
    rows = []
    for n in sizes:
        genotypes = rng.integers(0, 3, (1_024, n)).astype(np.int8)
        ancestry = ancestry_of(rng.normal(size=(n, 8)), np.ones(n, bool), 8)
        start = time.perf_counter()
        pc_relate(
            lambda first, last, every=genotypes: every[: last - first],
            sites,
            ancestry,
            CpuBackend(2),
        )
        seconds = time.perf_counter() - start
        rate = 2 * n * n * sites / seconds / 1e9
        rows.append((n, sites, f"{seconds:.1f}", f"{rate:.0f}", f"{seconds * 50_000 / sites:.0f}"))
    head = ("samples", "sites", "seconds", "Gflop/s", "seconds at 50 000 sites")
    print_table("Cost, two threads", head, rows)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--fst", type=float, nargs="+", default=[0.1, 0.15])
    parser.add_argument("--components", type=int, default=1)
    parser.add_argument("--families", type=int, default=16)
    parser.add_argument("--sites", type=int, default=8_000)
    parser.add_argument("--cost", action="store_true")
    options = commandline.parse(parser, seeds=1, fst=[0.15], families=2, sites=2_000)
    if options.cost:
        cost([300] if options.quick else [600, 3_000], 2_000 if options.quick else 4_096)
        return
    for fst in options.fst:
        measure(fst, options.seeds, options.components, options.families, options.sites)


if __name__ == "__main__":
    main()
