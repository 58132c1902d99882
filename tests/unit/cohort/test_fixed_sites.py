"""Files cut to sites that vary within a cohort also lack those where it is fixed for ALT."""

import numpy as np
import pytest
from support.study import Cohort
from test_merging import encoded, mask, only, panel_of, truth, variants

from popdesic.cohort.absent import Absent
from popdesic.core.errors import UserError

REFERENCE = Absent("reference")


def drifted(seed: int, n_sites: int = 900) -> list[Cohort]:
    """Three cohorts of one joint call, with sites at which ALT is common or fixed."""
    rng = np.random.default_rng(seed)
    sites = [("1", 100 + 10 * k, f"s{k}", "A", "G") for k in range(n_sites)]
    common = rng.beta(0.2, 0.3, n_sites)
    cohorts = []
    for name in "abc":
        frequency = rng.beta(common * 8, (1 - common) * 8 + 1e-3)
        genotypes = rng.binomial(2, frequency[:, None], (n_sites, 8)).astype(np.int8)
        cohorts.append(Cohort(name, [f"{name}{k}" for k in range(8)], sites, genotypes))
    return cohorts


def varying(cohort: Cohort) -> Cohort:
    """The cohort's file with the sites alone that vary in it."""
    low, high = cohort.genotypes.min(axis=1), cohort.genotypes.max(axis=1)
    return only(cohort, (low < high) | (cohort.genotypes == 1).any(axis=1))


@pytest.mark.parametrize("seed", range(5))
def test_files_of_all_variants_are_read(tmp_path, seed):
    cohorts = drifted(seed)
    files = [variants(cohort) for cohort in cohorts]
    panel, _ = panel_of(tmp_path, files[:2], {"a": REFERENCE, "b": REFERENCE})
    for cohort, file in zip(cohorts, files, strict=True):
        np.testing.assert_array_equal(encoded(tmp_path, file, REFERENCE)[0], truth(cohort, panel))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cut", ["a", "b", "abc"])
def test_founders_cut_to_sites_that_vary_are_refused(tmp_path, seed, cut):
    files = [varying(one) if one.name in cut else variants(one) for one in drifted(seed)]
    with pytest.raises(UserError, match=f"founder '[{cut}]' lists no site .* -c 1, not") as error:
        panel_of(tmp_path, files, dict.fromkeys("abc", REFERENCE))
    assert "absent = missing" in str(error.value)
    panel_of(tmp_path / "missing", files, dict.fromkeys(cut, Absent("missing")))


def test_within_a_mask_too(tmp_path):
    files = [varying(drifted(1)[0]), *map(variants, drifted(1)[1:])]
    absent = Absent(mask=mask(tmp_path, 1, drifted(1)[0])[0])
    with pytest.raises(UserError, match="founder 'a' lists no site"):
        panel_of(tmp_path, files, {"a": absent, "b": REFERENCE, "c": REFERENCE})


def test_newcomers_cut_to_sites_that_vary_are_refused(tmp_path):
    a, b, c = drifted(1)
    panel_of(tmp_path, [variants(a), variants(b)], {"a": REFERENCE, "b": REFERENCE})
    with pytest.raises(UserError, match="cohort 'c' lists no site"):
        encoded(tmp_path, varying(c), REFERENCE)
    encoded(tmp_path, varying(c), Absent("missing"))


def test_samples_that_are_like_the_reference_are_read(tmp_path):
    """No site is fixed for ALT in them, and at many of their absent sites it is in others."""
    a, b, _ = drifted(1)
    like = (np.random.default_rng(1).random(a.genotypes.shape) < 0.02).astype(np.int8)
    reference = Cohort("c", ["c0", "c1"], a.sites, like[:, :2])
    files = [*map(variants, (a, b)), variants(reference)]
    panel, _ = panel_of(tmp_path, files, dict.fromkeys("abc", REFERENCE))
    found, _ = encoded(tmp_path, files[2], REFERENCE)
    np.testing.assert_array_equal(found, truth(reference, panel))
