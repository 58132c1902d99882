"""Plans of products equal their terms for every pair of genotypes and use the fewest products."""

from __future__ import annotations

import pytest
from scenes.awkward_terms import TERMS

from popdesic.engine import bitgemm_plan
from popdesic.engine.terms import SQUARED


@pytest.mark.parametrize("complete", (True, False))
@pytest.mark.parametrize("name", TERMS)
def test_plans_equal_their_terms(name, complete):
    """`check` compares plan and terms for every pair of genotypes."""
    bitgemm_plan.plan_products(TERMS[name], complete).check()
    xor = bitgemm_plan.plan_xor(TERMS[name], complete)
    assert (xor is None) == (name in ("ld", "layers"))


def test_plans_need_the_fewest_products():
    products = {
        (name, complete): bitgemm_plan.plan_products(TERMS[name], complete).n_products
        for name in TERMS
        for complete in (True, False)
    }
    assert products["squared", True] == 3
    assert products["squared", False] == 5
    assert products["squared_ibs0", True] == 4
    assert products["squared_ibs0", False] == 5
    assert bitgemm_plan.plan_products(SQUARED, True).site_limit == 2**29 - 1
