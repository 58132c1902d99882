"""Figures: colours given once, nothing cut or overlapping, the same bytes every time."""

from __future__ import annotations

import dataclasses
import functools
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from support.outcomes import ALPHAS, N_SITES, SPACES, make_results
from support.readable import assert_readable

from popdesic.core.tables import read_table
from popdesic.core.triangle import open_symmetric
from popdesic.distance import pair_summary_cpu
from popdesic.distance.matrix import Distances
from popdesic.relatives.ld_populations import COLUMNS
from popdesic.report import figures as figures_module
from popdesic.report.figures import draw_figures, plan_figures
from popdesic.report.figures.compare import draw_comparisons, draw_decay
from popdesic.report.figures.labels import name_groups
from popdesic.report.figures.loadings import draw_loadings
from popdesic.report.figures.maps import draw_components
from popdesic.report.figures.structure import summarize_pairs
from popdesic.report.figures.style import (
    ACCENT,
    MISSING_COLOUR,
    OTHER_COLOUR,
    PALETTE,
    Colouring,
    draw_marks,
    ink_on,
    is_scale,
    luminance,
    new_figure,
    save_figure,
    shorten_label,
    styled,
)
from popdesic.report.outcome import closest_pairs

LIMITS = {"min_sample_call_rate": 0.9, "min_maf": 0.01}
NAMES = [
    "filters",
    "samples",
    "sites",
    "distances",
    "alpha",
    "pca",
    "pca_pairs",
    "scree",
    "loadings",
] + [
    f"{method}.{space}.alpha{alpha}"
    for method in ("umap", "pcoa")
    for space in SPACES
    for alpha in ALPHAS
]
HOSTILE = "<b>&\"'$x^2$_ Ωé"


def all_figures(tmp_path, cohorts, founders, columns=None, color_by="population", **further):
    outcome, distances = make_results(tmp_path, cohorts, founders, columns, **further)
    with styled():
        plan = plan_figures(outcome, distances, color_by=color_by, **LIMITS)
        return {name: draw() for name, draw in plan}


def names(prefix: str, n: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(n)]


# --- colours ----------------------------------------------------------------------------------


def test_palette_has_twelve_colours_apart_from_grey():
    assert len(set(PALETTE)) == 12
    assert not {OTHER_COLOUR, MISSING_COLOUR} & set(PALETTE)


@pytest.mark.parametrize("name", ["viridis", "Greys", "RdBu_r"])
def test_words_on_a_colour_have_contrast(name):
    for shade in mpl.colormaps[name](np.linspace(0, 1, 256)):
        bright, dark = sorted([luminance(shade), luminance(to_rgb(ink_on(shade)))], reverse=True)
        assert (bright + 0.05) / (dark + 0.05) > 4


def test_colours_follow_sorted_labels_and_not_the_order_of_samples():
    values = pd.Series(["b", "a", "c", "a"])
    first = Colouring(values, ["x"], ["x"], "population")
    second = Colouring(values[::-1], ["x"], ["x"], "population")
    assert first.labels == second.labels == ["a", "b", "c"]
    np.testing.assert_array_equal(first.colours(values), second.colours(values))
    assert mpl.colors.to_hex(first.colours(pd.Series(["a"]))[0]) == PALETTE[0]


def test_more_than_twelve_labels_fold_the_rarest_into_other():
    values = pd.Series([f"L{i:02}" for i in range(30) for _ in range(40 - i)])
    colouring = Colouring(values, ["x"], ["x"], "population")
    assert len(colouring.labels) == 11
    assert colouring.labels[-1] == "L10"
    other = colouring.colours(pd.Series(["L29"]))[0]
    assert mpl.colors.to_hex(other) == OTHER_COLOUR
    texts = [entry.text for entry in colouring.entries(values, pd.Series(["x"] * len(values)))]
    folded = sum(40 - i for i in range(11, 30))
    assert f"other: 19 labels ({folded})" in texts


def test_unknown_values_are_grey_and_counted():
    values = pd.Series(["a", "NA", "", "a"])
    colouring = Colouring(values, ["x"], ["x"], "population")
    assert colouring.labels == ["a"]
    assert mpl.colors.to_hex(colouring.colours(values)[1]) == MISSING_COLOUR
    texts = [entry.text for entry in colouring.entries(values, pd.Series(["x"] * 4))]
    assert "not known (2)" in texts


def test_a_number_is_a_scale_only_with_many_values():
    assert is_scale(pd.Series([str(i) for i in range(13)] + ["NA"]))
    assert not is_scale(pd.Series(["0", "1", "NA"]))
    assert not is_scale(pd.Series([str(i) for i in range(13)] + ["x"]))
    assert not is_scale(pd.Series(["NA", "NA"]))
    colouring = Colouring(pd.Series([str(i) for i in range(14)]), ["x"], ["x"], "age")
    assert colouring.limits == (0.0, 13.0)
    assert mpl.colors.to_hex(colouring.colours(pd.Series(["NA"]))[0]) == MISSING_COLOUR


def lightness(colour: str) -> float:
    """L* of CIELAB, 0 to 100: what is left of a colour in greyscale."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)]
    y = float(np.dot([0.2126, 0.7152, 0.0722], linear))
    return 116 * np.cbrt(y) - 16 if y > 0.008856 else 903.3 * y


def test_labels_of_one_cohort_can_be_told_apart_in_grey():
    assert lightness("#ffffff") == pytest.approx(100) and lightness("#000000") == 0
    colouring = Colouring(pd.Series([f"L{i:02}" for i in range(12)]), ["x"], ["x"], "population")
    shades = [lightness(to_hex(c)) for c in colouring.colours(pd.Series(colouring.labels))]
    shapes = [colouring.label_marker(label) for label in colouring.labels]
    assert len(set(shapes)) == 8
    for i, j in combinations(range(12), 2):
        if shapes[i] == shapes[j]:
            assert abs(shades[i] - shades[j]) > 18, (i, j)
    assert lightness(MISSING_COLOUR) - lightness(OTHER_COLOUR) > 18
    # white edges and page: no colour is lost on them
    assert max(shades) < 82


def test_markers_tell_cohorts_or_with_many_cohorts_the_role():
    few = Colouring(pd.Series(["a"]), ["x", "y"], ["x"], "population")
    assert few.marker("x") != few.marker("y")
    many = Colouring(pd.Series(["a"]), names("c", 9), ["c0", "c1"], "population")
    assert many.marker("c0") == many.marker("c1") != many.marker("c2") == many.marker("c8")


def test_long_labels_keep_both_ends():
    assert shorten_label("short") == "short"
    cut = shorten_label("a very long label of a population, part 7", 20)
    assert len(cut) == 20
    assert cut.startswith("a very long")
    assert cut.endswith("part 7")


# --- figures ----------------------------------------------------------------------------------


CASES = {
    "usual": (
        {"one": names("a", 9), "two": names("b", 7), "new": names("c", 4)},
        ["one", "two"],
        {"population": ["P", "Q"] * 10},
    ),
    "one cohort, no population": ({"only": names("s", 8)}, ["only"], None),
    "one sample": ({"only": ["s"]}, ["only"], {"population": ["P"]}),
    "all unknown": ({"only": names("s", 6)}, ["only"], {"population": ["NA"] * 6}),
    "thirty long labels": (
        {"first cohort of a very long name": names("s", 40), "second": names("t", 20)},
        ["first cohort of a very long name"],
        {"population": [f"a population with a long name {i % 30}" for i in range(60)]},
    ),
    "hostile names": (
        {"co<h>ort": [f"{HOSTILE}{i}" for i in range(5)], "_b": [f"_{i}" for i in range(5)]},
        ["co<h>ort"],
        {"population": [HOSTILE, "_hidden"] * 5},
    ),
    "many cohorts": (
        {f"cohort{i:02}": names(f"c{i}_", 2) for i in range(20)},
        ["cohort00", "cohort01"],
        {"population": ["P", "Q"] * 20},
    ),
    "numbers": (
        {"one": names("a", 20), "two": names("b", 10)},
        ["one"],
        {"population": [str(20 + i) for i in range(29)] + ["NA"]},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_cut_and_nothing_overlaps(case, tmp_path, monkeypatch):
    cohorts, founders, columns = CASES[case]
    first = next(iter(cohorts.values()))
    out = tuple(first[-2:]) if len(first) > 4 else ()
    figures = all_figures(tmp_path, cohorts, founders, columns, left_out=out)
    assert list(figures) == NAMES
    chosen = NAMES if case == "usual" else ["filters", "samples", "distances", "pca"]
    with styled():
        for name in chosen:
            figures[name].set_dpi(100)
            assert_readable(figures[name], monkeypatch)


def test_filters_begin_with_the_records_of_the_founders_files(tmp_path):
    figures = all_figures(tmp_path, {"one": names("a", 4), "two": names("b", 3)}, ["one"], None)
    axes = figures["filters"].axes[0]
    first = [text.get_text() for text in axes.get_yticklabels()][:2]
    assert first == ["records of founder one", "sites of founder one"]
    shown = axes.patches[0].get_width(), axes.patches[1].get_width()
    assert shown == (N_SITES + 2, 50)  # what the summary and the panel of make_results say


def test_figures_are_the_same_bytes_twice(tmp_path):
    cohorts = {"one": names("a", 6), "two": names("b", 5)}
    outcome, distances = make_results(
        tmp_path, cohorts, ["one"], {"population": ["P", "Q", "NA"] * 3 + ["P", "Q"]}
    )
    options = {"color_by": "population", **LIMITS}
    for folder, processes in (("first", 1), ("second", 3)):
        drawn = draw_figures(outcome, distances, tmp_path / folder, processes=processes, **options)
    assert drawn == NAMES
    for name in NAMES:
        for end in ("svg", "png"):
            first = (tmp_path / "first" / f"{name}.{end}").read_bytes()
            assert first == (tmp_path / "second" / f"{name}.{end}").read_bytes(), name
    svg = (tmp_path / "first/pca.svg").read_text("utf-8")
    assert "dc:date" not in svg
    assert "population" in svg  # text stays text


@pytest.mark.parametrize("n_contigs", [100, 101, 3_000])
def test_loadings_of_scaffolds_share_bars(tmp_path, n_contigs, monkeypatch):
    """Above 100 contigs; each site stays in one bar, so that shares add up to the whole."""
    rng = np.random.default_rng(n_contigs)
    lengths = rng.integers(2_000, 400_000, n_contigs)
    rows = [
        (f"scaffold_{k}", int(pos), *rng.normal(size=2))
        for k, length in enumerate(lengths)
        for pos in (length // 2, length)
    ]
    table = pd.DataFrame(rows, columns=["chrom", "pos", "PC1", "PC2"])
    table.to_csv(tmp_path / "loadings.tsv", sep="\t", index=False)
    with styled():
        figure = draw_loadings(tmp_path / "loadings.tsv")
        save_figure(figure, tmp_path / "loadings")
        figure.set_dpi(100)
        assert_readable(figure, monkeypatch)
    bars, whole = len(figure.axes[0].patches[0].get_data().values), lengths.sum() / 5e6
    assert bars == n_contigs if n_contigs == 100 else 0.7 * whole < bars < whole + 1
    for axes in figure.axes:
        shares = [patch.get_data().values for patch in axes.patches[:2]]
        assert np.sum(shares) == pytest.approx(100)
    assert ("share a bar" in figure.axes[-1].get_xlabel()) == (n_contigs > 100)


def test_figures_of_founders_are_drawn_again_only_if_what_they_show_changes(tmp_path, monkeypatch):
    cohorts = {"one": names("a", 6), "two": names("b", 5)}
    outcome, distances = make_results(tmp_path, cohorts, ["one"], None)
    out, drawn = outcome.folder / "figures", []
    for name in ("draw_panel_sites", "draw_loadings"):
        original = getattr(figures_module, name)
        watched = functools.partial(
            lambda f, *given: drawn.append(f.__name__) or f(*given), original
        )
        monkeypatch.setattr(figures_module, name, watched)

    plan = figures_module.plan_figures

    def draw(
        code: str, wanted: tuple[str, ...] = tuple(NAMES)
    ) -> tuple[set[str], dict[str, bytes]]:
        drawn.clear()
        for path in out.glob("[!.]*.???"):
            path.unlink()  # as Snakemake does

        def plan_wanted(*given, **options):
            return [one for one in plan(*given, **options) if one[0] in wanted]

        monkeypatch.setattr(figures_module, "plan_figures", plan_wanted)
        made = draw_figures(outcome, distances, out, color_by="cohort", code=code, **LIMITS)
        assert made == [name for name in NAMES if name in wanted]
        return set(drawn), {path.name: path.read_bytes() for path in sorted(out.glob("[!.]*.???"))}

    def those(files: dict[str, bytes]) -> dict[str, bytes]:
        return {name: files[name] for name in files if name.split(".")[0] in some}

    both, some = {"draw_panel_sites", "draw_loadings"}, ("filters", "sites", "loadings")
    found, plain = draw("")
    assert found == both and len(plain) == 2 * len(NAMES)
    assert draw("a", some) == (both, those(plain))
    assert draw("a", some) == (set(), those(plain))
    damaged = out / ".sites.npz"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert draw("a", some) == ({"draw_panel_sites"}, those(plain))
    loadings = outcome.folder / figures_module.OF_FOUNDERS["loadings"]
    loadings.write_text("\n".join(loadings.read_text().split("\n")[:-2]) + "\n")
    found, changed = draw("a")
    assert found == {"draw_loadings"}
    assert {name for name in plain if plain[name] != changed[name]} == {
        "loadings.png",
        "loadings.svg",
    }
    assert draw("b", some) == (both, those(changed))


def test_maps_on_request_and_instability_are_drawn(tmp_path, monkeypatch):
    cohorts, founders, columns = CASES["usual"]
    options = {"further": ("densmap", "tsne"), "instability": 0.8}
    figures = all_figures(tmp_path, cohorts, founders, columns, **options)
    further = [f"{m}.{s}.alpha{a}" for m in ("densmap", "tsne") for s in SPACES for a in ALPHAS]
    assert set(figures) == {*NAMES, *further, "instability"}
    with styled():
        for name in ("instability", "densmap.pcs.alpha2", "tsne.genotypes.alphaauto"):
            figures[name].set_dpi(100)
            assert_readable(figures[name], monkeypatch)
    panel = figures["instability"].axes[0]
    shades = {to_hex(colour) for part in panel.collections for colour in part.get_facecolor()}
    viridis = mpl.colormaps["viridis"]
    assert shades == {to_hex(viridis(0.0)), to_hex(viridis(0.8))}


def test_groups_are_named_beside_their_samples():
    """Two groups far apart, one of two samples, and one whose name would cover another's."""
    rng = np.random.default_rng(2)
    place = {"A": (0, 0), "B": (9, 9), "few": (0, 9)}
    values = pd.Series(["A"] * 40 + ["B"] * 30 + ["few"] * 2)
    x, y = (np.array([place[v][axis] for v in values]) + rng.normal(0, 0.4, 72) for axis in (0, 1))
    colouring = Colouring(values, ["x"], ["x"], "population")
    with styled():
        figure, (axes,) = new_figure(1)
        axes.scatter(x, y)
        name_groups(axes, x, y, values, colouring)
        FigureCanvasAgg(figure).draw()
        assert [text.get_text() for text in axes.texts] == ["A", "B"]
        for text in axes.texts:
            box = text.get_window_extent()
            points = axes.transData.transform(np.stack([x, y], 1))
            inside = ((points > box.min) & (points < box.max)).all(axis=1)
            assert not inside.any()
            middle = np.mean([box.min, box.max], axis=0)
            nearest = np.argmin(((points - middle) ** 2).sum(axis=1))
            assert values[nearest] == text.get_text()


@pytest.mark.parametrize("values", ["labels", "numbers"])
def test_very_many_samples_stay_small_and_readable(tmp_path, monkeypatch, values):
    """25 000 samples, most of them in a few crowds and some alone."""
    n = 25_000
    rng = np.random.default_rng(5)
    group = np.where(rng.random(n) < 0.02, 7, rng.integers(0, 7, n))
    centre = rng.normal(0, 8, (8, 4))
    spread = np.where(group == 7, 9.0, 0.5)[:, None]
    table = pd.DataFrame(
        centre[group] + spread * rng.normal(size=(n, 4)), columns=[f"PC{k}" for k in (1, 2, 3, 4)]
    ).assign(cohort=rng.choice(["a", "b", "c"], n))
    column = (
        group.astype(str) if values == "labels" else rng.uniform(20, 80, n).round(1).astype(str)
    )
    column = pd.Series(column)
    colouring = Colouring(column, ["a", "b", "c"], ["a"], "population")
    with styled():
        figure = draw_components(table, "PC", [0.4, 0.2, 0.1, 0.05], column, colouring)
        save_figure(figure, tmp_path / "many")
        assert_readable(figure, monkeypatch)
    assert (tmp_path / "many.svg").stat().st_size < 1_000_000
    assert (tmp_path / "many.png").stat().st_size < 600_000
    texts = [entry.text for entry in colouring.entries(column, table.cohort)]
    assert "densest 50 % and 90 %" in texts
    points = figure.axes[0].collections[0]
    opacity = points.get_facecolor()[:, 3]
    assert opacity.min() < 0.3 and opacity.max() == pytest.approx(0.85)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_scree_plot_states_and_fills_the_significant_components(tmp_path, count):
    axes = {"significant": count, "scree": [0.1, 0.05, 0.02, 0.01], "threshold": [0.03] * 4}
    cohorts = {"one": names("a", 12)}
    figures = all_figures(tmp_path, cohorts, ["one"], {"population": ["P"] * 12}, axes=axes)
    left = figures["scree"].axes[0]
    assert left.get_title("left") == f"PCA of the genotypes, {count} significant"
    fills = [to_hex(bar.get_facecolor()) for bar in left.patches]
    assert fills == [ACCENT] * count + ["#ffffff"] * (4 - count)


def test_lines_enclose_the_share_that_the_legend_says(rng):
    x, y = rng.normal(size=(2, 40_000))
    _, (axes,) = new_figure(1)
    draw_marks(axes, x, y, np.ones((40_000, 4)), np.full(40_000, "o"))
    lines = next(c for c in axes.collections if isinstance(c, ContourSet))
    inside = [path.contains_points(np.stack([x, y], 1)).mean() for path in lines.get_paths()]
    # of a normal distribution: circles; smoothing widens them a little
    assert inside == pytest.approx([0.9, 0.5], abs=0.05)


def test_crowds_in_one_place_are_drawn_all_the_same(tmp_path):
    figure, (axes,) = new_figure(1)
    flat = np.zeros(21_000)
    draw_marks(axes, flat, flat, np.ones((21_000, 4)), np.full(21_000, "o"))
    with styled():
        save_figure(figure, tmp_path / "one")


def test_a_user_s_own_style_changes_nothing(tmp_path):
    def draw(stem):
        with styled():
            figure = Figure()
            figure.subplots().plot([1, 2], label="x")
            save_figure(figure, stem)
        return stem.with_suffix(".svg").read_bytes()

    plain = draw(tmp_path / "a")
    with mpl.rc_context({"font.size": 20, "axes.facecolor": "red"}):
        assert draw(tmp_path / "b") == plain


# --- distances --------------------------------------------------------------------------------


def test_closest_pairs_are_those_of_the_whole_matrix(tmp_path, monkeypatch):
    outcome, distances = make_results(tmp_path, {"one": names("s", 12)}, ["one"])
    monkeypatch.setattr("popdesic.distance.matrix.DISTANCE_BLOCK", 30)  # two rows at a time
    whole = distances.rows(np.arange(12))
    upper = np.triu_indices(12, 1)
    found = closest_pairs(distances, list(outcome.samples["sample"]), 5)
    np.testing.assert_array_equal(found.distance, np.sort(whole[upper])[:5])
    for row in found.itertuples():
        i, j = int(row.sample_a[1:]), int(row.sample_b[1:])
        assert i < j
        assert whole[i, j] == row.distance
        assert row.of_median == pytest.approx(row.distance / np.median(whole[upper]))


@pytest.mark.parametrize(
    ("threads", "together", "numbers"), [(1, 32, 1 << 17), (3, 5, 400), (2, 1, 1)]
)
def test_blocks_are_all_rows_in_order(tmp_path, monkeypatch, threads, together, numbers):
    """Whatever is read together, made together and read ahead."""
    monkeypatch.setattr("popdesic.distance.matrix.ROWS_READ", together)
    monkeypatch.setattr("popdesic.distance.matrix.DISTANCE_BLOCK", numbers)
    _, distances = make_results(tmp_path, {"one": names("s", 23)}, ["one"])
    ahead = dataclasses.replace(distances, threads=threads)
    which, rows = zip(*ahead.blocks(), strict=True)
    everyone = np.arange(len(distances))
    assert np.concatenate(which).tolist() == everyone.tolist()
    assert np.concatenate(rows).tobytes() == distances.rows(everyone).tobytes()


class MatrixBlocks:
    """Distances of a matrix, by blocks of a few rows."""

    def __init__(self, matrix: np.ndarray, rows: int) -> None:
        self.matrix, self.rows = matrix, rows

    def __len__(self) -> int:
        return len(self.matrix)

    def blocks(self):
        for first in range(0, len(self.matrix), self.rows):
            which = np.arange(first, min(len(self.matrix), first + self.rows))
            yield which, self.matrix[which]

    def probe(self) -> np.ndarray:
        return self.matrix[np.isfinite(self.matrix)]


@pytest.mark.parametrize("seed", range(40))
def test_closest_pairs_with_equal_distances_come_in_the_order_of_samples(seed):
    rng = np.random.default_rng(seed)
    n, n_pairs = int(rng.integers(1, 40)), int(rng.integers(1, 30))
    upper = rng.integers(0, rng.integers(2, 50), (n, n)).astype(float)
    upper[rng.random((n, n)) < 0.2] = np.inf
    matrix = np.triu(upper, 1) + np.triu(upper, 1).T
    pairs = [(matrix[i, j], i, j) for i in range(n) for j in range(i + 1, n)]
    expected = sorted(pair for pair in pairs if np.isfinite(pair[0]))[:n_pairs]
    labels = [f"s{i}" for i in range(n)]
    found = closest_pairs(MatrixBlocks(matrix, int(rng.integers(1, 9))), labels, n_pairs)
    listed = zip(found.distance, found.sample_a, found.sample_b, strict=True)
    assert list(listed) == [(d, labels[i], labels[j]) for d, i, j in expected]


def test_sums_of_pairs_are_not_compiled_anew_for_read_only_groups():
    """Arrays of pandas are read-only; the set-up compiles for arrays that can be written."""
    group = np.array([0, 1, 1, 0])
    matrix = MatrixBlocks(np.arange(16.0).reshape(4, 4), 2)
    expected = summarize_pairs(matrix, np.arange(4), group, np.linspace(0, 16, 5))
    compiled = len(pair_summary_cpu.add_pair_rows.signatures)
    group.flags.writeable = False
    found = summarize_pairs(matrix, np.arange(4), group, np.linspace(0, 16, 5))
    assert len(pair_summary_cpu.add_pair_rows.signatures) == compiled
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_closest_pairs_of_one_sample_are_none(tmp_path):
    outcome, distances = make_results(tmp_path, {"one": ["s"]}, ["one"])
    assert closest_pairs(distances, list(outcome.samples["sample"]), 5).empty


def test_distances_of_the_other_metrics_use_ibs0(tmp_path):
    make_results(tmp_path, {"one": ["a", "b", "c"]}, ["one"])
    folder = tmp_path / "results/distance"
    squared, called = (open_symmetric(folder / f"{name}.npy")[:] for name in ("squared", "called"))
    np.save(folder / "ibs0.npy", squared // 8)
    n_sites = 40
    alleles = (squared - 2 * (squared // 8)).astype(float)
    manhattan = Distances(folder, "manhattan", n_sites, 1).rows(np.arange(3))
    np.testing.assert_allclose(manhattan, alleles)
    ibs = Distances(folder, "ibs", n_sites, 1).rows(np.array([2]))
    np.testing.assert_allclose(ibs, alleles[[2]] / (2 * n_sites))
    np.save(folder / "called.npy", called - 1)
    far = Distances(folder, "euclidean", n_sites, n_sites)
    assert np.isinf(far.rows(np.array([0]))[0, 1:]).all()
    assert far.probe().size == 0
    assert closest_pairs(far, ["a", "b", "c"], 2).empty


def test_ld_decay_without_any_pair_of_sites(tmp_path):
    """A panel of few sites has none within the window; logarithmic axes would need values."""
    table = tmp_path / "decay.tsv"
    table.write_text("from_bp\tto_bp\tpairs\tmean_r2\n")
    assert draw_comparisons({"decay": table}, tmp_path) == ["ld_decay"]
    assert (tmp_path / "ld_decay.svg").is_file()


def test_ld_decay_of_populations(tmp_path):
    """Populations have a panel and a legend of their own; a single one has none."""
    decay, by = tmp_path / "decay.tsv", tmp_path / "by.tsv"
    decay.write_text("from_bp\tto_bp\tpairs\tmean_r2\n10\t16\t9\t0.5\n16\t25\t9\t0.25\n")
    lines = ["\t".join(COLUMNS)]
    for name in ("first", "second"):
        lines += [f"{name}\t20\t10\t16\t9\t0.5\t0.4", f"{name}\t20\t16\t25\t9\t0.3\t-0.1"]
        lines.append(f"{name}\t20\tNA\tNA\t7\t0.06\t0.01")
    for n_lines, panels in ((1, 2), (4, 2), (7, 3)):
        by.write_text("\n".join(lines[:n_lines]) + "\n")
        figure = draw_decay(pd.read_csv(decay, sep="\t"), read_table(by))
        assert len(figure.axes) == panels
        assert draw_comparisons({"decay": decay, "populations": by}, tmp_path) == ["ld_decay"]
        text = (tmp_path / "ld_decay.svg").read_text()
        assert ("second" in text) == (panels == 3)
    lines = figure.axes[1].lines
    assert [line.get_ydata().tolist() for line in lines] == [[0.4, -0.1]] * 2
