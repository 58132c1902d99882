"""Small studies as one Slurm job: which ones, what the job asks for, and how it ends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from popdesic.core.errors import UserError
from popdesic.core.limits import ONE_JOB_SAMPLES
from popdesic.study import one_job
from popdesic.study.command_line import parse
from popdesic.study.one_job import ask, job_name, minutes_of, read_profile, run_where_told, value_of
from popdesic.study.resources import ONE_JOB_CORE_HOURS, START_MB
from popdesic.study.resume import cancel_jobs
from popdesic.study.snakemake_internals import Job

#: Slurm's commands of a cluster that runs a job at once; what they are told lies in `$FAKE`.
COMMANDS = {
    "sbatch": """
for word; do
    echo "$word" >> $FAKE/asked
    case $word in --output=*) out=${word#--output=};; esac
done
cat > $FAKE/script
export SLURM_JOB_ID=7
test -e $FAKE/killed || sh $FAKE/script > $(dirname $out)/7.out 2>&1
echo 7
""",
    "squeue": "cat $FAKE/queue 2> /dev/null; rm -f $FAKE/queue",
    "sinfo": "cat $FAKE/nodes",
    "scontrol": "echo JobId=7 JobState=OUT_OF_MEMORY",
    "scancel": 'echo "$@" > $FAKE/cancelled',
}
PROFILE = """
executor: slurm
default-resources: {slurm_partition: cpu, slurm_account: "'me'", slurm_extra: "'--nice=10'"}
set-resources: {close_paths: {slurm_partition: gpu}}
"""


def job(rule: str = "ingest_cohort", threads: int = 2, mem_mb: int = 1000, gpu: int = 0) -> Job:
    return Job(rule, {}, threads, mem_mb, 5, gpu, ("a",), True)


@pytest.fixture
def cluster(tmp_path, monkeypatch) -> Path:
    """A study `study` in the current folder, the profile `mine`, and commands of Slurm on PATH."""
    for name, text in COMMANDS.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    (tmp_path / "study/config").mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/config.yaml").write_text(PROFILE)
    (tmp_path / "nodes").write_text("4|16000|1-00:00:00\n8|64000|1-00:00:00\n")
    monkeypatch.setenv("FAKE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(one_job, "run_study", lambda *_: "job by job")
    code = "import sys; print('ran', *sys.argv[1:]); sys.exit(3)"
    words = lambda study, targets, rest: [sys.executable, "-c", code, *targets, *rest]  # noqa: E731
    monkeypatch.setattr(one_job, "snakemake_command", words)
    monkeypatch.setattr(one_job, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(one_job, "ASK_SECONDS", 0.02)
    monkeypatch.setattr(one_job, "LATE_SECONDS", 0.02)
    return tmp_path


def go(*arguments: str, one: bool | None = None, people: int = 600, hours: float = 3.0, **about):
    """Run the study with the profile `mine`; its one job has two threads."""
    expected = (people, [job(**about)], [hours * 3600 / 2])
    words = ["--profile", "./mine", *arguments]
    return run_where_told(Path("study"), ["qc"], words, one, expect=lambda *_: expected)


def test_a_small_study_is_one_job_whose_output_and_status_are_those_of_the_run(cluster, capsys):
    assert go("--keep-going", threads=16, hours=1) == 3
    told = capsys.readouterr().err
    assert "600 samples: one Slurm job, 7, for the whole run" in told
    mem = f"--resources mem_mb={8 * one_job.CORE_MB}"
    assert f"\nran qc --keep-going --keep-going --rerun-incomplete --cores 8 {mem}\n" in told
    asked = (cluster / "asked").read_text().split()
    assert {"--no-requeue", "--partition=cpu", "--account=me", "--cpus-per-task=8"} <= set(asked)
    assert f"--mem={START_MB + 8 * one_job.CORE_MB}" in asked
    assert asked[-1] == "--nice=10"  # the last of two options counts
    assert not list((cluster / "study" / one_job.FOLDER).glob("*.status"))


@pytest.mark.parametrize(
    "whole, told",
    [
        (True, {}),
        (True, {"people": ONE_JOB_SAMPLES, "hours": ONE_JOB_CORE_HOURS}),
        (False, {"people": ONE_JOB_SAMPLES + 1}),
        (False, {"hours": ONE_JOB_CORE_HOURS * 1.01}),
        (True, {"people": ONE_JOB_SAMPLES + 1, "one": True}),
        (False, {"one": False}),
        (False, {"mem_mb": 64_000}),
    ],
)
def test_which_studies_are_one_job(cluster, whole, told):
    assert go(**told) == (3 if whole else "job by job")


@pytest.mark.parametrize("one", [None, True])
@pytest.mark.parametrize("words", [["-n"], ["--dry-run"], ["--unlock"]])
def test_what_only_shows_something_is_not_submitted(cluster, words, one):
    assert go(*words, one=one) == "job by job"


def test_options_that_change_the_jobs_are_left_to_snakemake(cluster):
    assert go("--config", "device=cpu") == "job by job"
    assert go("--config", "device=cpu", one=True) == 3
    assert go("--cores", "2") == 3
    assert "--cpus-per-task=2" in (cluster / "asked").read_text()


def test_no_job_asks_for_more_threads_than_any_node_has(cluster, monkeypatch, capsys):
    given: list = []
    monkeypatch.setattr(one_job, "run_study", lambda *words: given.append(list(words[2])))
    profile = ["--profile", "./mine"]
    go(one=False, threads=9)
    go(people=9_999, threads=8)
    assert given == [[*profile, "--max-threads", "8"]] * 2 and not capsys.readouterr().err
    go(people=9_999, threads=9)
    told = capsys.readouterr().err
    assert "more than 8 cores" in told and "get 8: ingest_cohort (9)." in told
    for words in (["--max-threads", "99"], ["--dry-run"]):
        go(*words, one=False, threads=9)
        assert given[-1] == [*profile, *words]
    (cluster / "nodes").write_text("no nodes\n")
    go(one=False, threads=9)
    assert given[-1] == profile
    (cluster / "nodes").write_text("8|64000|1-00:00:00\n")
    with pytest.raises(UserError, match="--cores 9 is more than the 8 of the largest node"):
        go("--cores", "9")


def test_nothing_to_do_is_said_by_snakemake(cluster):
    words = ["--profile", "./mine"]
    status = run_where_told(Path("study"), (), words, expect=lambda *_: (600, [], []))
    assert status == "job by job"


def test_without_slurm_or_its_profile(cluster, monkeypatch):
    def never(*_):
        raise AssertionError("nothing needs to be known of the study")

    study = Path("study")
    assert run_where_told(study, (), [], expect=never) == "job by job"
    with pytest.raises(UserError, match="--one-job needs sbatch"):
        run_where_told(study, (), [], True, expect=never)
    monkeypatch.setenv("PATH", "/nowhere")
    assert run_where_told(study, (), ["--profile=./mine"], expect=never) == "job by job"


@pytest.mark.parametrize(
    "of_rule, found",
    [
        ({"slurm_partition": "gpu"}, ["--partition=gpu", "--gpus=1"]),
        ({"gpu_model": "h200"}, ["--partition=cpu", "--gpus=h200:1"]),
        ({"gres": "gpu:1", "gpu": 0}, ["--partition=cpu", "--gres=gpu:1"]),
    ],
)
def test_a_gpu_is_asked_for_as_its_rules_ask(cluster, of_rule, found):
    profile = {
        "default-resources": ["slurm_partition=cpu"],
        "set-resources": {"close_paths": of_rule},
        "slurm-qos": "short",
    }
    asked = ask(profile, [job(), job("close_paths", gpu=1)], 10)
    given = [word for word in asked if word.startswith(("--partition", "--gpu", "--gres"))]
    assert given == found
    assert "--qos=short" in asked
    several = ask(profile, [job("close_paths", gpu=2), job("close_paths", gpu=1)], 10)
    assert ("--nodes=1" in several) == ("gpu" not in of_rule)
    assert [word for word in several if word != "--nodes=1"] == [
        word.replace("gpus=1", "gpus=2").replace("h200:1", "h200:2") for word in asked
    ]
    asked = ask(profile, [job(), job("close_paths", gpu=0)], 10)
    assert not [word for word in asked if word.startswith(("--gpu", "--gres"))]


def test_a_job_fits_the_largest_node_of_its_partition(cluster):
    limits = {"cpus-per-task": "8", "mem": "12000", "time": "60"}
    (cluster / "nodes").write_text("4|90000|infinite\n8+|12000+|1:00:00\n")
    asked = ask({}, [job(threads=16, mem_mb=11_000)], 9999)
    assert dict(word[2:].split("=") for word in asked if "ntasks" not in word) == limits
    assert ask({}, [job(mem_mb=11_500)], 10) is None
    assert ask({"default-resources": {"clusters": "far"}}, [job()], 10) is None
    (cluster / "nodes").write_text("no nodes\n")
    assert "--cpus-per-task=16" in ask({}, [job(threads=32)], 10)
    with pytest.raises(UserError, match="the largest job of study, 99700 MB"):
        (cluster / "nodes").write_text("8|64000|1-00:00:00\n")
        go(one=True, mem_mb=99_000)


@pytest.mark.parametrize(
    "limit, minutes",
    [("1-02:03:30", 1563.5), ("2:00:00", 120), ("30:00", 30), ("infinite", float("inf"))],
)
def test_time_limits_of_slurm(limit, minutes):
    assert minutes_of(limit) == minutes


def test_a_job_that_slurm_ends_gives_one_sentence(cluster):
    (cluster / "killed").touch()
    with pytest.raises(UserError, match=r"ended job 7 of study \(OUT_OF_MEMORY\).*--no-one-job"):
        go()


def test_two_jobs_never_run_one_study(cluster):
    (cluster / "queue").write_text("6\n")
    with pytest.raises(UserError, match=r"Slurm job 6 still runs study; .*popdesic resume study"):
        go()
    assert not (cluster / "asked").exists()


def test_resume_cancels_the_job_of_a_whole_study(cluster):
    study = Path("study")
    assert cancel_jobs(study) == 0
    assert go() == 3
    (cluster / "queue").write_text("7\n")
    assert cancel_jobs(study) == 1
    assert (cluster / "cancelled").read_text() == "7\n"


def test_the_name_of_a_job_is_that_of_its_folder(cluster, monkeypatch):
    name = job_name(Path("study"))
    monkeypatch.chdir("study")
    assert job_name(Path()) == name != job_name(Path("config"))


def test_ctrl_c_cancels_the_job(cluster, monkeypatch):
    (cluster / "killed").touch()

    def interrupt(seconds):
        monkeypatch.undo()
        monkeypatch.setenv("PATH", str(cluster / "bin"), prepend=":")
        monkeypatch.setenv("FAKE", str(cluster))
        monkeypatch.setattr(one_job, "LATE_SECONDS", 0.02)
        raise KeyboardInterrupt

    monkeypatch.setattr(one_job, "ASK_SECONDS", 100)
    monkeypatch.setattr(one_job.time, "sleep", interrupt)
    assert go() == 130
    assert (cluster / "cancelled").read_text() == "7\n"


def test_profiles_are_found_by_name_or_path(cluster):
    assert read_profile("slurm")["default-resources"]["slurm_partition"] == "cpu"
    assert read_profile("default") is read_profile("workflow") is read_profile(None) is None
    (cluster / "slurm").mkdir()
    (cluster / "slurm/config.yaml").write_text("executor: slurm\njobs: 3\n")
    assert read_profile("slurm")["jobs"] == 100
    assert read_profile("./slurm") == {"executor": "slurm", "jobs": 3}


def test_values_of_options():
    for words in (["--cores", "2"], ["--cores=2"], ["-c2"], ["-c", "2"]):
        assert value_of(["-k", *words, "--quiet"], "--cores", "-c") == "2"
    assert value_of(["-k"], "--cores") is None


def test_the_command_line_has_the_choice():
    for command in ("run", "resume"):
        for words, chosen in (([], None), (["--one-job"], True), (["--no-one-job"], False)):
            assert parse([command, *words]).one_job is chosen
