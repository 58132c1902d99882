"""Close-up of a hit's loci: LD and p of sites in its sites' places; curves of power."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from test_epistasis import CROSSING, build, random_genotypes

from popdesic.core.tables import write_table
from popdesic.epistasis.expected_power import cell_probabilities, interaction_power, power_curve
from popdesic.epistasis.interaction import interaction_test
from popdesic.epistasis.lead_regions import r2_of_sites, zoom_on_lead
from popdesic.epistasis.null_model import fit_null, residual_levels, write_null_model
from popdesic.epistasis.options import REACH
from popdesic.epistasis.reorder import read_reordered
from popdesic.epistasis.significance import hit_tables
from popdesic.report.figures.epistasis_zoom import draw_power, draw_zoom, power_curves
from popdesic.report.figures.style import save_figure, styled

SITES, PEOPLE = 12, 200


def beds(folder):
    """Stems of the genotypes that `build` packed."""
    return [folder.parent / "cohorts/one/genotypes"]


@pytest.fixture
def study(tmp_path, rng):
    """Genotypes, the folder of their planes, and a hit of sites 2 and 9 (as built, in order)."""
    genotypes = random_genotypes(rng, SITES, PEOPLE, 0.04)
    linked = rng.random(PEOPLE) < 0.8
    genotypes[3, linked] = genotypes[2, linked]
    case = np.arange(PEOPLE) % 2
    folder, _ = build(tmp_path, genotypes, case)
    sites = read_reordered(folder)[1].sort_values("rank").reset_index(drop=True)
    row = {f"{key}{k}": sites[key][at] for k, at in ((1, 2), (2, 9)) for key in sites.columns[:5]}
    return genotypes, case, folder, sites, pd.DataFrame([row]).astype(str)


def test_r2_and_p_are_those_of_plain_tables(study):
    genotypes, case, folder, sites, hits = study
    zoom = zoom_on_lead(folder, hits, 2, folder / "none", beds(folder), min_distance_bp=0)
    assert list(zoom.columns) == ["side", "chrom", "pos", "lead", "tested", "r2", "lr_p"]
    assert zoom.lead.sum() == 2 and zoom.tested[zoom.lead].all()
    order = np.argsort(case, kind="stable")
    for side, own, partner in ((1, 2, 9), (2, 9, 2)):
        part = zoom[zoom.side == side]
        assert (np.diff(part.pos) > 0).all()
        at = sites.pos[own]
        near = (sites.chrom == sites.chrom[own]) & ((sites.pos - at).abs() <= REACH)
        # The partner itself is on the panel, but cannot be tested with itself.
        assert part.pos.tolist() == sites.pos[near].tolist() and len(part) > 2
        assert part.pos[~part.tested].tolist() == sites.pos[[partner]][near].tolist()
        for row in part.itertuples():
            site = int(np.flatnonzero((sites.chrom == row.chrom) & (sites.pos == row.pos))[0])
            both = (genotypes[own] >= 0) & (genotypes[site] >= 0)
            r = np.corrcoef(genotypes[own][both], genotypes[site][both])[0, 1]
            assert row.r2 == pytest.approx(r**2)
            assert row.lead == (site == own)
            if not row.tested:
                assert site == partner and np.isnan(row.lr_p)
                continue
            pair = [site, partner] if side == 1 else [partner, site]
            table = hit_tables(genotypes[pair][:, order].astype(np.int8), int((case == 0).sum()))
            assert row.lr_p == pytest.approx(interaction_test(table)[2], rel=1e-9)


def test_sites_near_a_partner_are_not_tested(study):
    _, _, folder, sites, _ = study
    assert sites.chrom[0] == sites.chrom[4]
    row = {f"{key}{k}": sites[key][at] for k, at in ((1, 0), (2, 4)) for key in sites.columns[:5]}
    hits = pd.DataFrame([row]).astype(str)
    far = int(sites.pos[4] - sites.pos[0]) - 1
    zoom = zoom_on_lead(folder, hits, 2, folder / "none", beds(folder), min_distance_bp=far)
    whole = zoom_on_lead(folder, hits, 2, folder / "none", beds(folder), min_distance_bp=0)
    assert len(zoom) == len(whole) == 2 * int((sites.chrom == sites.chrom[0]).sum())
    assert zoom.tested.sum() < whole.tested.sum() == len(whole) - 2
    for side, partner in ((1, 4), (2, 0)):
        part = zoom[(zoom.side == side) & zoom.tested]
        assert part.lead.any() and ((part.pos - sites.pos[partner]).abs() >= far).all()
    assert (
        len(zoom_on_lead(folder, hits.head(0), 2, folder / "none", beds(folder), min_distance_bp=0))
        == 0
    )


def test_ld_is_shown_with_sites_that_were_not_scanned(study, monkeypatch):
    """A scan of every third site: the others are read from the panel's genotypes."""
    genotypes, _, folder, sites, hits = study
    words, table, people = read_reordered(folder)
    kept = table["rank"].isin([2, 9, 0, 5]).to_numpy()
    from popdesic.epistasis import lead_regions as module

    scanned = words[kept], table[kept].reset_index(drop=True), people
    monkeypatch.setattr(module, "read_reordered", lambda _: scanned)
    zoom = zoom_on_lead(folder, hits, 2, folder / "none", beds(folder), min_distance_bp=0)
    for side, own, partner in ((1, 2, 9), (2, 9, 2)):
        part = zoom[zoom.side == side]
        at = (sites.chrom == sites.chrom[own]) & ((sites.pos - sites.pos[own]).abs() <= REACH)
        assert part.pos.tolist() == sites.pos[at].tolist()
        scanned_too = sites.index[at].isin([2, 9, 0, 5]) & (sites.index[at] != partner)
        assert part.tested.tolist() == scanned_too.tolist() and not scanned_too.all()
        assert part.lr_p.isna().tolist() == (~scanned_too).tolist()
        for row, site in zip(part.itertuples(), sites.index[at], strict=True):
            both = (genotypes[own] >= 0) & (genotypes[site] >= 0)
            r = np.corrcoef(genotypes[own][both], genotypes[site][both])[0, 1]
            assert row.r2 == pytest.approx(r**2)
    monkeypatch.setattr(module, "MOST_SITES", 2)
    few = zoom_on_lead(folder, hits, 2, folder / "none", beds(folder), min_distance_bp=0)
    part = few[(few.side == 1) & ~few.tested]
    whole = zoom[(zoom.side == 1) & ~zoom.tested]
    far = (whole.pos - sites.pos[2]).abs().sort_values(kind="stable")
    assert sorted(part.pos) == sorted(whole.pos[far.index[:2]])
    with styled():
        axes = draw_zoom(zoom, hits, 2, 66).axes[0]
    assert axes.get_ylim()[0] < 0
    assert axes.get_yticklabels()[0].get_text() == "not tested"


def test_numbers_are_tested_as_their_hits_are(study, monkeypatch):
    genotypes, _, folder, _, hits = study
    y = np.random.default_rng(5).normal(size=PEOPLE)
    samples = pd.read_csv(folder / "samples.tsv", sep="\t", dtype=str)
    # The planes of numbers have one class; here cases and controls keep their order.
    null = fit_null(y, np.zeros((PEOPLE, 0)), "linear")
    write_null_model(folder / "null.npz", null, *residual_levels(null))
    case_first = zoom_on_lead(folder, hits, 2, folder / "null.npz", beds(folder), min_distance_bp=0)
    words, table, people = read_reordered(folder)
    n_controls = int((people["class"] == "control").sum())
    assert n_controls == PEOPLE // 2 == 100 and len(samples) == PEOPLE
    plain = people.assign(**{"class": "quantitative"})
    from popdesic.epistasis import lead_regions as module

    genotypes_of = module.genotypes_of_planes
    monkeypatch.setattr(module, "read_reordered", lambda _: (words, table, plain))
    monkeypatch.setattr(
        module, "genotypes_of_planes", lambda w, s, *_: genotypes_of(w, s, n_controls, n_controls)
    )
    found = zoom_on_lead(folder, hits, 2, folder / "null.npz", beds(folder), min_distance_bp=0)
    assert found.pos.tolist() == case_first.pos.tolist()
    own = found[found.lead & (found.side == 1)].iloc[0]
    order = people["sample"].str[1:].astype(int).to_numpy()
    a, b = genotypes[2][order], genotypes[9][order]
    used = (a >= 0) & (b >= 0)
    a, b, value = a[used], b[used], y[used]
    main = np.column_stack([x == s for x in (a, b) for s in range(3)]).astype(float)
    cells = np.column_stack([(a == s) & (b == t) for s in range(3) for t in range(3)]).astype(float)
    rest, ranks = [], []
    for design in (main, cells):
        fitted, _, rank, _ = np.linalg.lstsq(design, value, rcond=1e-10)
        rest.append(float(((value - design @ fitted) ** 2).sum()))
        ranks.append(int(rank))
    from scipy.stats import f

    df = ranks[1] - ranks[0]
    statistic = (rest[0] - rest[1]) / df / (rest[1] / (len(value) - ranks[1]))
    assert own.lr_p == pytest.approx(f.sf(statistic, df, len(value) - ranks[1]), rel=1e-6)


def test_r2_of_a_site_that_does_not_vary_is_unknown():
    a = np.array([0, 1, 2, -1], np.int8)
    assert np.isnan(r2_of_sites(a, np.zeros(4, np.int8)))
    assert r2_of_sites(a, a) == 1
    assert r2_of_sites(a, 2 - a) == 1


@pytest.mark.parametrize("risk", [CROSSING, [0.3] * 9, np.linspace(0.1, 0.9, 9).tolist()])
def test_a_curve_is_the_power_of_studies_of_each_size(risk):
    cells = cell_probabilities([0.3, 0.2], risk)
    people = np.array([100, 200, 1000, 30_000])
    curve = power_curve(cells, 40, 60, 1e-4, people)
    single = [interaction_power(cells, int(0.4 * n), int(0.6 * n), 1e-4) for n in people]
    np.testing.assert_allclose(curve, single, rtol=1e-4, atol=1e-9)
    assert (np.diff(curve) >= -1e-12).all()


def test_figures_are_the_same_bytes_again(study, tmp_path):
    _, _, folder, _, hits = study
    zoom = zoom_on_lead(folder, hits, 2, folder / "none", beds(folder), min_distance_bp=0)
    model = {"name": "m", "maf": [0.3, 0.3], "penetrance": CROSSING}
    row = {"model": "m", "scan": "pairs", "controls": 90, "cases": 110, "alpha": 1e-5}
    write_table(tmp_path / "power.tsv", pd.DataFrame([row | {"power_simulated": 0.9}]))
    for name in ("a", "b"):
        assert draw_power(tmp_path / "power.tsv", [model], tmp_path / name) == ["power"]
        with styled():
            save_figure(draw_zoom(zoom, hits, 2, 66), tmp_path / name / "zoom")
    for file in ("power.svg", "power.png", "zoom.svg", "zoom.png"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    with styled():
        (axes,) = power_curves(pd.DataFrame([row | {"power_simulated": 0.9}]), [model]).axes
    x, y = axes.lines[0].get_data()
    cells = cell_probabilities([0.3, 0.3], CROSSING)
    np.testing.assert_allclose(y, 100 * power_curve(cells, 90, 110, 1e-5, x))
