"""Ranks of what is true in real and published data, beside PLINK 1.9 and BitEpi.

`tests/bench/bench_interaction_power.py --real FOLDER` prints the whole table.
"""

from __future__ import annotations

import pytest
from scenes.interactions.real import Question, bitepi, leading, questions, rank_of, rank_of_loci


@pytest.fixture(scope="module")
def asked(shared_data) -> dict[tuple[str, int], Question]:
    return {(one.data, one.order): one for one in questions(shared_data)}


def test_black_coat_is_first_among_pairs_of_chromosomes(asked, require_command):
    """Agouti x Tyrp1; the pair before it lies on one chromosome. BOOST says the same."""
    question = asked["mice, 286 sites", 2]
    study = question.study()

    def true(members):
        return question.true(study, members)

    ours = study.scan(2, top=300)
    members = list(ours.members)
    assert rank_of(members, true) == 2 and rank_of_loci(study, members, true) == 1
    assert len(set(study.loci(members[0]))) == 1
    assert ours.p[1] < 1e-5
    for score in ("k2_excess", "mutual_information"):
        assert leading(list(study.scan(2, score, 20).members), true) == 9
    assert leading(bitepi(question.published), true) == 11
    require_command("plink1.9")
    boost = study.plink("BOOST", least_p=1e-6).reset_index(drop=True)
    assert [set(one) for one in boost.members[:20]] == [set(one) for one in members[:20]]
    assert boost.statistic[:20].to_numpy() == pytest.approx(ours.lr_chi2[:20].to_numpy(), abs=1e-3)


def test_the_coat_triple_is_associated_but_hardly_interacts(asked):
    """Agouti x Tyrp1 x Tyr leads by association; beyond its pairs little is left."""
    question = asked["mice, 286 sites", 3]
    study = question.study()

    def true(members):
        return question.true(study, members)

    assert leading(list(study.scan(3, "k2_excess", 30).members), true) == 18
    assert leading(bitepi(question.published), true) == 22
    ours = study.scan(3, top=300)
    first = rank_of(list(ours.members), true)
    assert first > 100 and ours.p[first - 1] > 0.05


@pytest.mark.parametrize("order", [2, 3])
def test_the_planted_combination_of_bitepi_leads_by_interaction_alone(asked, order):
    """By association a strong single site fills the list."""
    question = asked["BitEpi's example", order]
    study = question.study()

    def true(members):
        return question.true(study, members)

    ours = study.scan(order, top=50)
    assert rank_of(list(ours.members), true) == 1
    assert ours.p[0] < 1e-7 and ours.p[1] > 1e-3
    assert rank_of(bitepi(question.published), true) == 1
    assert rank_of(list(study.scan(order, "k2_excess", 50).members), true) is None


@pytest.mark.parametrize(
    "data", ["GAMETES 0.4H", "GAMETES 10 % missing", "GAMETES, number > median"]
)
def test_planted_pairs_of_gametes_lead(asked, data):
    question = asked[data, 2]
    study = question.study()
    ours = study.scan(2, top=10)
    assert rank_of(list(ours.members), lambda one: question.true(study, one)) == 1
    assert ours.p[0] < 1e-50 and ours.p[1] > 1e-5


@pytest.mark.parametrize("order", [2, 3])
def test_nothing_passes_among_candidate_genes_of_asthma(asked, order):
    assert asked["asthma, 51 sites", order].study().scan(order, top=20).p.min() > 0.05
