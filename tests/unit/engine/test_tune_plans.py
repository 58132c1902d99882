"""Problem classes, and the file that caches their measurements."""

from __future__ import annotations

import pytest
from scenes.awkward_terms import TERMS
from support.launches import TURING

from popdesic.engine import tune_plan
from popdesic.engine.terms import SQUARED
from popdesic.engine.variants import MOST_SAMPLES, MOST_STAGES, ShapeClass


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((1, 1, 1), (256, 256, 1)),
        ((256, 257, 1024), (256, 512, 1)),
        ((500, 3000, 5000), (512, 4096, 8)),
        ((10**6, 20_000, 10**9), (MOST_SAMPLES, MOST_SAMPLES, MOST_STAGES)),
    ],
)
def test_sizes_are_rounded_up_to_powers_of_two(given, expected):
    shape = ShapeClass.of(*given, False, True)
    assert (shape.samples_a, shape.samples_b, shape.stages) == expected


@pytest.mark.parametrize(
    ("given", "symmetric", "side"),
    [
        ((150, 150), True, 1024),
        ((1024, 1024), False, 1024),
        ((32, 10**6), False, 1024),
        ((2048, 2048), False, 1024),
        ((2048, 4096), False, 4096),
        ((8192, 8192), True, 4096),
        ((8193, 8193), False, MOST_SAMPLES),
        ((10**6, 10**6), True, MOST_SAMPLES),
    ],
)
@pytest.mark.parametrize("complete", [True, False])
def test_few_classes_are_measured(given, symmetric, side, complete):
    """`popdesic tune` measures all; but for the largest, none is larger than what it decides."""
    found = {
        ShapeClass.of(*given, n_sites, symmetric, complete).measured for n_sites in (100, 10**6)
    }
    assert found == {ShapeClass(side, side, MOST_STAGES, False, complete)}
    assert side in (1024, MOST_SAMPLES) or side <= max(given)


def test_problems_of_equal_cost_share_a_label():
    small = ShapeClass.of(400, 300, 900_000, True, True)
    large = ShapeClass.of(512, 512, 1 << 20, True, True)
    names = {
        tune_plan.choice_name(ShapeClass.of(500, 500, 10**6, symmetric, complete), terms, kernel)
        for symmetric in (True, False)
        for complete in (True, False)
        for terms in (SQUARED, TERMS["ld"])
        for kernel in (None, "popc")
    }
    assert len(names) == 2 * 2 * 2 * 2
    assert len({tune_plan.choice_name(shape, SQUARED, None) for shape in (small, large)}) == 1


def test_the_xor_form_needs_popc_and_a_function_of_the_difference():
    popc, *_ = tune_plan.variants_to_measure(TURING)
    assert tune_plan.plan_for(popc, SQUARED, True).passes[0].xor == (0, 1, 4)
    assert tune_plan.plan_for(popc, TERMS["ld"], True).passes[0].xor is None


def test_choices_are_cached_and_a_damaged_cache_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tune_plan.read_cache() == {}
    tune_plan.write_cache("device", "shape", {"variant": "popc"})
    tune_plan.write_cache("device", "other", {"variant": "mma"})
    assert tune_plan.read_cache()["device"]["shape"] == {"variant": "popc"}
    assert tune_plan.read_cache()["device"]["other"] == {"variant": "mma"}
    tune_plan.cache_file().write_text("{")
    assert tune_plan.read_cache() == {}
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    tune_plan.write_cache("device", "shape", {})
