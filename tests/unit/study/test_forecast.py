"""What `popdesic plan` counts equals what a study then runs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from support.running import finished, snakemake
from support.study import make_cohorts, write_study

from popdesic.__main__ import main
from popdesic.core.errors import UserError
from popdesic.study.configuration import read_config
from popdesic.study.forecast import (
    ROW_RULES,
    Job,
    Sizes,
    describe_plan,
    expected_seconds,
    planned_jobs,
    propose_units,
    read_sizes,
    slurm_profile,
    submissions,
    tabulate,
    work_of,
)
from popdesic.study.resources import CORE_RATES, GPU_RATES, START_SECONDS, quad_work
from popdesic.study.validation import validate_study

#: Rows of two cohorts: the second one's row has the pair.
ROWS = {"a": [("a", "a")], "b": [("a", "b"), ("b", "b")]}
ROWS = {stage: ROWS for stages in ROW_RULES.values() for stage in stages}
SIZES = Sizes({"a": 10, "b": 7}, n_sites=1000, rows=ROWS)


def job(rule: str, gpu: int = 1, **wildcards: str) -> Job:
    return Job(rule, wildcards, 8, 1000, 8, gpu, ("results/x",), True)


def test_work_counts_each_pair_once():
    found = {row: work_of(job("measure_row", row=row), SIZES)["site-pairs"] for row in "ab"}
    pairs = {"a": 55, "b": 70 + 28}  # 10 * 11 / 2, 10 * 7 + 7 * 8 / 2
    assert found == {row: 1000.0 * count for row, count in pairs.items()}
    assert sum(found.values()) == 1000 * 17 * 18 / 2
    assert work_of(job("close_paths"), SIZES) == {"min-plus operations": 17**3 / 2}
    scanned = Sizes({"a": 5}, 100, scanned=4, units=2, permutations=(10, 0, 3))
    assert work_of(job("scan_epistasis", order="2"), scanned) == {"pair tests": 6 * 5 / 2}
    assert work_of(job("permute_epistasis", order="2"), scanned) == {"pair tests": 6 * 5 * 10 / 2}
    assert work_of(job("scan_epistasis", order="4"), scanned) == {"quad fits": 1 * 5 / 2}
    associated = replace(scanned, quads=quad_work("k2"))
    assert work_of(job("permute_epistasis", order="4"), associated) == {"quad tests": 5 * 3 / 2}


def test_units_are_proposed_by_the_time_of_the_scans():
    """So many that a job takes an hour, whatever the number now, and not more than sites allow."""
    sizes = Sizes({"a": 5000}, 10**6, scanned=20_000, permutations=(0, 10, 0))
    seconds = 20_000 * 19_999 * 19_998 / 6 * 5000 / GPU_RATES["triple tests"]
    for now in (1, 7):
        scans = replace(sizes, units=now)
        jobs = [job("scan_epistasis", order="2"), job("scan_epistasis", order="3")]
        jobs.append(job("permute_epistasis", order="3"))
        for count, some in ((1, jobs[:2]), (10, jobs)):
            (units,), hours = propose_units(some, scans), count * seconds / 3600
            wanted = math.ceil(hours)
            assert units == f"epistasis.units: {wanted} proposed, {hours / wanted:.2g} " + (
                f"hours a job (now {now})"
            )
    few = replace(sizes, scanned=300, samples={"a": 10**13})
    (said,) = propose_units(jobs[:2], few)
    assert "epistasis.units: 3 proposed" in said and "more than 24" not in said
    said = propose_units(jobs[:2], replace(few, samples={"a": 2 * 10**13}))[0]
    assert "more than 24 even so; list fewer sites" in said
    assert propose_units([job("close_paths")], sizes) == []


def test_the_time_of_scans_on_up_to_64_gpus():
    """Units are a multiple of the GPUs; where there are too few sites for them, nothing is said."""
    sizes = Sizes({"a": 100_000}, 10**6, scanned=60_000)
    hours = 60_000 * 59_999 * 59_998 / 6 * 100_000 / GPU_RATES["triple tests"] / 3600
    units, said = propose_units([job("scan_epistasis", order="3")], sizes)
    assert 1 < hours < 64 and f": {math.ceil(hours)} proposed" in units
    start = START_SECONDS / 3600
    assert said == (
        f"all scans: {hours / 8 + start:.2g} hours on 8 GPUs ({-(-math.ceil(hours) // 8) * 8} "
        f"units), {hours / 64 + start:.2g} hours on 64 GPUs (64 units)"
    )
    people = int(7.5 * 3600 * GPU_RATES["triple tests"] / math.comb(2000, 3))
    few = replace(sizes, scanned=2000, samples={"a": people})
    (_, said) = propose_units([job("scan_epistasis", order="3")], few)
    assert "on 8 GPUs" in said and "64" not in said.split("(")[0]
    assert len(propose_units([job("scan_epistasis", gpu=0, order="3")], sizes)) == 1


def test_quads_without_a_gpu_take_cores():
    """Of 200 sites and 5 000 samples, by the score interaction."""
    sizes = Sizes({"a": 5000}, 10**6, scanned=200)
    scan = job("scan_epistasis", gpu=0, order="4")
    wanted = math.comb(200, 4) * 5000 / (8 * CORE_RATES["quad fits"])
    assert expected_seconds(scan, sizes) == pytest.approx(START_SECONDS + wanted)
    (said,) = propose_units([scan], sizes)
    assert said.startswith("epistasis.units: 1 proposed, 0.022 hours")


def test_check_warns_of_quads_that_take_too_long(tmp_path):
    """Without a list of sites, and by the length of a list, the score and the device."""
    folder = write_study(tmp_path / "study", make_cohorts((8, 7), n_sites=40))
    config = read_config(folder)

    def said(**block) -> list[str]:
        given = config | {"device": block.pop("device", "auto")}
        given["epistasis"] = {"order": [4]} | block
        remarks = validate_study(given, folder)[2]
        return [remark for remark in remarks if "epistasis.order has 4" in remark]

    assert "names no list of sites" in said()[0] and not said(order=[2, 3])
    for n, name in ((600, "few"), (20_000, "many")):
        (folder / name).write_text("".join(f"rs{k}\n" for k in range(n)))
    (folder / "ranges").write_text("1\t0\t90000\n")
    assert not said(restrict="few") and not said(restrict="ranges")
    (remark,) = said(restrict="many")
    hours = math.comb(20_000, 4) * 15 / (8 * CORE_RATES["quad fits"]) / 3600
    assert f"many lists 20000 sites. Their quads would take about {hours:.0f} hours on 8" in remark
    assert "refuses more than 24 (24 for each of epistasis.units)" in remark
    assert not said(restrict="many", units=100_000) and not said(restrict="many", score="k2")
    assert "hours on 8 cores" in said(restrict="many", score="k2", device="cpu")[0]


def test_the_slower_of_reading_and_computing_decides_the_time():
    """A row of few samples spends more time reading; without a GPU the limit is the estimate."""
    row = job("measure_row", row="b")
    large = Sizes({"a": 10_000, "b": 10_000}, 10**7, rows=ROWS)
    read = 2 * 10_000 * 3 * (10**7 / 8)
    assert expected_seconds(row, large) == pytest.approx(10 + read / 2e9)
    computed = Sizes({"a": 10**6, "b": 10**6}, 10**4, rows=ROWS)
    assert expected_seconds(row, computed) == pytest.approx(10 + 1.5e12 * 1e4 / 2e15, rel=1e-3)
    cpu = job("measure_row", gpu=0, row="b")
    assert expected_seconds(cpu, SIZES) == pytest.approx(10 + 60, rel=0.01)
    one, two = (expected_seconds(job("close_paths", gpu=gpus), computed) - 10 for gpus in (1, 2))
    assert one == pytest.approx(2 * two)
    assert two > 1e5


def test_the_plan_equals_the_run(tmp_path, capsys):
    folder = write_study(tmp_path / "study", make_cohorts((8, 7), n_sites=200))
    before = planned_jobs(folder, ["distance"])
    assert not (folder / "results").exists()
    assert all(place < i for i, job in enumerate(before) for place in job.after)
    sizes, source = read_sizes(folder)
    assert sizes.samples == {"north": 8, "south": 7}
    assert "estimated" in source
    assert 100 < sizes.n_sites < 400
    assert main(["plan", str(folder), "distance", "--sites", "200"]) == 0
    shown = capsys.readouterr().out
    ran = finished(snakemake(folder, "distance"))
    table = tabulate(before, sizes).set_index("rule")
    assert {rule: n for rule, n in table.jobs.items() if rule != "all"} == dict(ran)
    assert f"jobs: {sum(ran.values())} to run, 0 already done; " in shown
    assert "200 sites (given by --sites)" in shown
    after = describe_plan(folder, targets=["distance"])
    assert "disk: " in shown and "disk: " in after
    assert "Nothing to be done" in after
    assert "of the panel" in after


def test_rows_share_slurm_jobs(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    monkeypatch.delenv("SNAKEMAKE_PROFILE", raising=False)
    jobs = [*[job("measure_row", row="a")] * 5, job("close_paths"), job("ingest_cohort")]

    def submitted(name: str | None = None) -> int:
        return submissions(jobs, slurm_profile(tmp_path, name))

    assert submitted() == 2 + 2
    assert submissions([], slurm_profile(tmp_path)) == 0
    # The user's own profile, that of the study, and the one that is named or set.
    for place, shared, words in (
        ("user/snakemake/slurm", 1, None),
        ("profiles/slurm", 3, None),
        ("mine", 2, str(tmp_path / "mine")),
    ):
        (tmp_path / place).mkdir(parents=True)
        text = f"groups: {{measure_row: tiles}}\ngroup-components: {{tiles: {shared}}}\n"
        (tmp_path / place / "config.yaml").write_text(text)
        assert submitted(words) == -(-5 // shared) + 2
    monkeypatch.setenv("SNAKEMAKE_PROFILE", str(tmp_path / "mine"))
    assert submitted() == 3 + 2
    with pytest.raises(UserError, match="there is no profile 'none'"):
        submitted("none")
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "none")  # as Snakemake has it: no profile
    assert submitted() == 2 + 2
    # A profile writes options as a table, as a list of texts or as one text.
    for text in (
        "groups: [measure_row=tiles]\ngroup-components: [tiles=3]\n",
        "groups: measure_row=tiles\ngroup-components: tiles=3\n",
        "groups: {measure_row: tiles}\ngroup-components: {tiles: '3'}\n",
    ):
        (tmp_path / "mine/config.yaml").write_text(text)
        assert submitted(words) == 2 + 2
    (tmp_path / "mine/config.yaml").write_text("group-components: [tiles=0]\n")
    with pytest.raises(UserError, match="group-components is not"):
        submitted(words)
    monkeypatch.setenv("SNAKEMAKE_PROFILE", words)
    (tmp_path / "mine/config.yaml").write_text("- a\n")
    with pytest.raises(UserError, match="is not a profile of Snakemake"):
        submitted()


@pytest.mark.parametrize("n_sites", [0, -3])
def test_a_number_of_sites_is_at_least_one(tmp_path, n_sites):
    with pytest.raises(UserError, match=f"--sites is {n_sites}; expected"):
        read_sizes(tmp_path, n_sites)


def test_an_error_of_snakemake_gives_one_sentence(tmp_path):
    folder = write_study(tmp_path / "study", make_cohorts((8,), n_sites=50))
    with pytest.raises(UserError, match="cannot plan") as error:
        planned_jobs(folder, ["no_such_target"])
    assert "\n" not in str(error.value)
    assert "no_such_target" in str(error.value)
    assert describe_plan(folder, targets=["distance"]).startswith("8 samples in 1 cohort, ")
