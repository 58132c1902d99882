"""One scan of several phenotypes has, of each, the bytes of a scan of its own."""

from __future__ import annotations

import numpy as np
import phenotype_scenes as scenes
import pytest

from popdesic.engine.cpu.backend import CpuBackend
from popdesic.engine.cpu.epistasis_interaction import _own_table
from popdesic.epistasis.scan import load_scan, merge_units, scan_unit, scanner
from popdesic.epistasis.shared import read_shared, scan_shared_unit
from popdesic.epistasis.sharing import pays, share_groups

KINDS = ("diseases", "registers", "cohort", "apart")
LIMITS = {"min_distance_bp": 4000, "max_r2": 0.5}


def draw(folder, kind, n_sites, n_people, missing, n_traits=3):
    """Folders of the phenotypes of a random study."""
    rng = np.random.default_rng()
    genotypes = scenes.draw_genotypes(rng, n_sites, n_people, missing)
    classes = scenes.draw_classes(rng, kind, n_traits, n_people)
    folders = [folder / f"trait{t}" for t in range(n_traits)]
    for one, path in zip(classes, folders, strict=True):
        path.mkdir()
        scenes.write_phenotype(path, genotypes, one)
    return folders


@pytest.mark.parametrize(
    ("score", "missing"),
    [("k2", 0.05), ("mutual_information", 0.0), ("interaction", 0.0), ("interaction", 0.05)],
)
@pytest.mark.parametrize("kind", KINDS)
def test_each_phenotype_has_the_hits_of_its_own_scan(tmp_path, kind, score, missing):
    folders = draw(tmp_path, kind, 84, 230, missing)
    data = read_shared(folders, score, **LIMITS)
    own_sites = [load_scan(folder, score, **LIMITS)[1]["id"] for folder in folders]
    assert len(set(map(frozenset, own_sites))) > 1
    for order, top in ((2, 4000), (3, 200)):
        found = CpuBackend(2).scan_shared(data, order, range(data.n_sites), top)
        for folder, hits in zip(folders, found, strict=True):
            own, _, _ = load_scan(folder, score, **LIMITS)
            want = scanner(CpuBackend(1), order)(own, range(own.n_sites), top)
            assert len(want.cost)
            assert hits.cost.tobytes() == want.cost.tobytes()
            assert hits.sites.tobytes() == want.sites.tobytes()


@pytest.mark.parametrize("order", [2, 3])
def test_fits_read_the_table_of_the_own_scan(order):
    """Cells in the order of the phenotype's own sites and states, which rounding may depend on."""
    rng = np.random.default_rng()
    for _ in range(20):
        own = rng.integers(0, 99, (2, *(3,) * order))
        place = rng.permutation(order).astype(np.int32)  # own site of each site
        labels = np.stack([rng.permutation(3) for _ in range(order)]).astype(np.int8)
        cells = np.zeros((2, 27, 5), np.int32)
        for k, states in enumerate(np.ndindex(*(3,) * order)):
            at = [0] * order
            for site, state in enumerate(states):
                at[place[site]] = labels[site, state]
            cells[:, k, 4] = own[:, *at]
        counts = np.zeros((2, 3**order))
        sites = (-1, 0, 1) if order == 2 else (0, 1, 2)
        _own_table(cells, 3**order, 4, *sites, place, labels, counts)
        assert np.array_equal(counts, own.reshape(2, -1))


@pytest.mark.parametrize("order", [2, 3])
def test_units_are_merged_as_those_of_its_own_scan(tmp_path, order):
    folders = draw(tmp_path, "registers", 40, 150, 0.05)
    given = {"order": order, "score": "interaction", "top": 300, **LIMITS}
    backend, units = CpuBackend(1), [[] for _ in folders]
    for unit in range(3):
        outs = [folder / f"{unit}.npz" for folder in folders]
        scan_shared_unit(folders, backend, outs, unit=unit, n_units=3, **given)
        for files, out in zip(units, outs, strict=True):
            files.append(out)
    for folder, files in zip(folders, units, strict=True):
        scan_unit(folder, backend, folder / "own.npz", unit=0, n_units=1, **given)
        rank = load_scan(folder, "interaction", **LIMITS)[0].rank
        found, want = (merge_units(some, rank, 300) for some in (files, [folder / "own.npz"]))
        assert len(want.cost) and found.cost.tobytes() == want.cost.tobytes()
        assert found.sites.tobytes() == want.sites.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_groups_make_up_the_classes(kind):
    classes = scenes.draw_classes(np.random.default_rng(), kind, 4, 500)
    groups = share_groups(classes)
    of_group = [members.astype(int) for members in groups.members]
    for row, cases, rest in zip(classes, groups.cases, groups.rest, strict=True):
        others = of_group[rest] if rest >= 0 else 0
        base = of_group[0]
        controls = base - others - of_group[cases] if groups.subtract else base + others
        assert np.array_equal(of_group[cases], row == 1)
        assert np.array_equal(controls, row == 0)
    assert groups.subtract == (kind == "cohort")
    assert pays(classes) == (kind != "apart") and not pays(classes[:1])
    assert groups.counted <= (classes >= 0).sum()
