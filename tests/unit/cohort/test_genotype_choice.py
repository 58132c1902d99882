"""Which genotypes a stage reads: refusals before any job, and the sentence that says it."""

from __future__ import annotations

import pytest

from popdesic.cohort.genotype_choice import (
    STAGES,
    describe_genotypes,
    genotype_stems,
    haploid_contigs,
    imputed_cohorts,
)
from popdesic.core.errors import UserError
from popdesic.study.configuration import fill_config


def config_of(*stages: str, impute: dict | None = None, **blocks) -> dict:
    """A configuration, not checked, in which these stages read imputed genotypes."""
    return blocks | {"impute": (impute or {}) | {"stages": list(stages)}}


BEAGLE = {"method": "beagle"}


def test_called_is_the_default_everywhere():
    config = fill_config({})
    assert set(genotype_stems(config).values()) == {"genotypes"}
    assert describe_genotypes(config) == "Called genotypes are used for LD and PCA."
    assert imputed_cohorts(config, ["a", "b"], ["a"]) == []


@pytest.mark.parametrize("key", STAGES)
@pytest.mark.parametrize("method", ["mode", "none"])
def test_a_study_that_does_not_impute_is_refused(key, method):
    with pytest.raises(UserError, match=f"has '{key}', but impute.method is '{method}'"):
        fill_config(config_of(key, impute={"method": method}))
    config = fill_config(config_of(key, impute=BEAGLE))
    assert [name for name, stem in genotype_stems(config).items() if stem == "imputed"] == [key]


@pytest.mark.parametrize("reference", ["", "r.vcf"])
def test_what_is_copied_can_be_read(reference):
    block = {"method": "copying", "reference": reference}
    config = fill_config(config_of("pca", impute=block))
    assert genotype_stems(config)["pca"] == "imputed"


def test_phased_haplotypes_are_not_imputed():
    ld = {"ld": {"phase": "phased"}}
    with pytest.raises(UserError, match=r"set compare.ld.phase to 'em'"):
        fill_config(config_of("ld", compare=ld, impute=BEAGLE))
    fill_config(config_of("pca", compare=ld, impute=BEAGLE))


def test_the_sentence_names_the_stages_that_run():
    blocks = {"epistasis": {"order": [2]}, "export": {"formats": ["vcf"]}}
    keys = "epistasis", "export"
    config = fill_config(config_of(*keys, impute=BEAGLE | {"min_r2": 0.5}, **blocks))
    assert describe_genotypes(config) == (
        "Called genotypes are used for LD and PCA. Missing calls are imputed for epistasis scans "
        "and exports of the panel, where r² is at least 0.5."
    )
    config = fill_config(config_of("pca", impute=BEAGLE, compare={"analyses": []}))
    assert describe_genotypes(config) == (
        "Missing calls are imputed for PCA, where r² is at least 0.8."
    )


def test_only_cohorts_that_a_stage_reads_are_imputed():
    cohorts, founders = ["a", "b", "c"], ["a", "c"]
    for keys, blocks, expected in (
        (["ld"], {}, founders),
        (["ld"], {"compare": {"analyses": []}}, []),
        (["epistasis"], {}, []),
        (["epistasis"], {"epistasis": {"order": [3]}}, cohorts),
        (["epistasis"], {"epistasis": {"sets": "genes.bed"}}, cohorts),
        (["export"], {"export": {"formats": ["king"]}}, []),
        (["export"], {"export": {"formats": ["zarr"]}}, cohorts),
        (["pca", "ld"], {}, cohorts),
    ):
        config = fill_config(config_of(*keys, impute=BEAGLE, **blocks))
        assert imputed_cohorts(config, cohorts, founders) == expected, keys


def test_contigs_of_which_some_people_have_one_copy():
    assert haploid_contigs(fill_config({})) == []
    rule = {"haploid": {"MT": "missing", "default": "error"}, "x": []}
    assert haploid_contigs(fill_config({"contigs": rule})) == ["MT"]
