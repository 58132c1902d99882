"""A cohort read without some samples is the cohort of a file that never had them."""

from dataclasses import replace

import numpy as np
import pytest
from support.study import make_cohorts, write_raw

from popdesic.cohort.qc import summarize_cohort
from popdesic.core.errors import UserError
from popdesic.io.bed import lacking_samples, open_bed, open_cohort, read_fam


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 63, 64, 65])
@pytest.mark.parametrize("n_samples", [2, 3, 4, 5, 9])
def test_rows_are_those_of_a_file_without_the_samples(tmp_path, n_samples, n_sites):
    rng = np.random.default_rng(n_samples * 100 + n_sites)
    (cohort,) = make_cohorts((n_samples,), n_sites=n_sites, missing=0.2, seed=n_sites)
    stays = np.sort(rng.choice(n_samples, rng.integers(1, n_samples), replace=False))
    names = [cohort.samples[k] for k in stays]
    whole = write_raw(tmp_path / "whole", cohort)
    part = write_raw(
        tmp_path / "part", replace(cohort, samples=names, genotypes=cohort.genotypes[:, stays])
    )
    rows, fam = open_cohort(whole, names)
    expected = open_bed(part)
    assert len(rows) == n_sites and rows.shape == expected.shape
    assert (rows[0:n_sites] == expected).all()
    which = rng.integers(0, n_sites, 7)
    assert (rows[which] == expected[which]).all()
    assert fam.equals(read_fam(part))


def test_all_samples_are_the_file_itself(tmp_path):
    (cohort,) = make_cohorts((5,), n_sites=20)
    rows, _ = open_cohort(write_raw(tmp_path / "raw", cohort), cohort.samples)
    assert isinstance(rows, np.memmap)


@pytest.mark.parametrize("names", [["N00", "N09"], ["N01", "N00"], ["N00", "N00"]])
def test_samples_that_are_not_there_are_refused(tmp_path, names):
    (cohort,) = make_cohorts((5,), n_sites=20)
    with pytest.raises(UserError, match="decoded again"):
        open_cohort(write_raw(tmp_path / "raw", cohort), names)


def test_samples_that_return_are_noticed(tmp_path):
    (cohort,) = make_cohorts((5,), n_sites=20)
    prefix = write_raw(tmp_path / "raw", cohort)
    assert not lacking_samples(prefix, cohort.samples[:3])
    assert lacking_samples(prefix, [*cohort.samples, "N09"])
    assert not lacking_samples(tmp_path / "none", cohort.samples)  # not decoded yet


def test_quality_control_does_not_see_excluded_samples(tmp_path):
    (cohort,) = make_cohorts((9,), n_sites=90)
    stays = [0, 1, 3, 4, 5, 7, 8]
    part = replace(
        cohort,
        samples=[cohort.samples[k] for k in stays],
        genotypes=cohort.genotypes[:, stays],
    )
    populations = dict(zip(cohort.samples, cohort.populations, strict=True))
    for name, own, excluded in (("whole", cohort, {"N02", "N06"}), ("part", part, set())):
        summarize_cohort(
            write_raw(tmp_path / name, own),
            populations,
            tmp_path / f"{name}.sites",
            tmp_path / f"{name}.samples",
            min_sample_call_rate=0.5,
            excluded=excluded,
        )
    for table in ("sites", "samples"):
        found = (tmp_path / f"whole.{table}").read_bytes()
        assert found == (tmp_path / f"part.{table}").read_bytes()
