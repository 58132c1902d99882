"""How `popdesic run` calls Snakemake, and which arguments the command line accepts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.running import planned
from support.study import FAST, make_cohorts, write_study

from popdesic.__main__ import COMMANDS, main, snakemake_arguments
from popdesic.core.errors import UserError
from popdesic.core.places import HOME, SNAKEFILE
from popdesic.study.command_line import make_parser, parse
from popdesic.study.run import find_profile, snakemake_command
from popdesic.study.snakemake_internals import record_of, write_record


@pytest.fixture
def study(tmp_path, monkeypatch) -> Path:
    (tmp_path / "config").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    return tmp_path


@pytest.mark.parametrize(
    "given, cores",
    [
        ([], True),
        (["--keep-going"], True),
        (["--config", "device=cpu"], True),
        (["--cores", "4"], False),
        (["--cores=4"], False),
        (["-c4"], False),
        (["-c", "4"], False),
        (["-j", "2"], False),
        (["--jobs=2"], False),
        (["--executor", "slurm"], False),
        (["--workflow-profile", "x"], False),
        (["--unlock"], False),
    ],
)
def test_all_cores_unless_told_otherwise(study, given, cores):
    words = snakemake_command(study, ["distance"], given)
    assert words[:7] == [
        sys.executable,
        "-P",
        "-m",
        "snakemake",
        "distance",
        "--snakefile",
        str(SNAKEFILE),
    ]
    assert words[7:9] == ["--directory", str(study)]
    default = ["--workflow-profile", str(HOME / "profiles/default")]
    default *= "--workflow-profile" not in given
    assert words[9:] == default + (["--cores", "all"] if cores else []) + given


def test_the_slurm_profile_is_found_from_any_folder(study):
    ours = str(HOME / "slurm")
    assert (HOME / "slurm/config.yaml").is_file()
    assert find_profile("slurm") == ours
    assert snakemake_command(study, [], ["--profile", "slurm"])[10:] == ["--profile", ours]
    assert snakemake_command(study, [], ["--profile=slurm"])[10:] == [f"--profile={ours}"]
    assert find_profile("sge") == "sge"  # left to Snakemake, which reports that it does not exist
    assert find_profile("workflow") == "workflow"  # a folder of the repository, but not a profile
    own = study / "xdg/snakemake/slurm/config.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("cores: 1\n")
    assert find_profile("slurm") == str(own.parent)


def test_a_profile_in_the_current_folder_is_found_by_its_path_alone(study):
    for name in ("slurm", "mine"):
        (study / name).mkdir()
        (study / name / "config.yaml").write_text("cores: 1\n")
    assert find_profile("slurm") == str(HOME / "slurm")
    assert find_profile("./slurm") == "./slurm"
    with pytest.raises(UserError, match=r"write \./mine to use it"):
        find_profile("mine")


@pytest.mark.parametrize("own_profile", ["./slurm", "xdg/snakemake/slurm"])
@pytest.mark.parametrize(
    "words", [["resume", "my-study", "--"], ["audit", "my-study", "--repair", "--"]]
)
def test_resume_and_repair_run_snakemake_in_the_users_folder(study, capfd, words, own_profile):
    """They find the user's own `slurm` profile and files relative to the current folder.

    The profile is in the current folder, given by its path, or in the user's configuration folder.
    It stops at the rows of tiles; the configuration file in the current folder asks for kinship,
    of which they need the resolution.
    """
    folder = write_study(study / "my-study", make_cohorts((16, 14)), FAST)
    damaged = "results/panel/sites.tsv"  # a result without a checksum
    (folder / damaged).parent.mkdir(parents=True)
    (folder / damaged).write_text("damaged\n")
    write_record(folder, damaged, record_of("build_panel", []))
    profile = study / own_profile / "config.yaml"
    profile.parent.mkdir(parents=True)
    profile.write_text(yaml.safe_dump({"cores": 1, "until": ["measure_row"]}))
    Path("mine.yaml").write_text(yaml.safe_dump({"compare": {"analyses": ["kinship"]}}))
    named = ["--profile", own_profile if own_profile[0] == "." else "slurm"]
    status = main([*words, *named, "--dry-run", "--configfile", "mine.yaml"])
    told = capfd.readouterr()
    assert status == 0, told
    plan = planned(told.out + told.err)
    assert plan["build_panel"] == 1
    assert (plan["measure_resolution"], plan["measure_row"]) == (1, 2)
    assert not plan["join_rows"]


@pytest.mark.parametrize(
    "words, arguments",
    [
        (["run"], []),
        (["run", "--", "--keep-going", "--", "x"], ["--keep-going", "--", "x"]),
        (["run", ".", "distance", "-n", "--cores", "2"], ["--dry-run", "--cores", "2"]),
        (["run", "--profile", "slurm", "--", "-k"], ["-k", "--profile", "slurm"]),
    ],
)
def test_options_of_run_are_passed_to_snakemake(words, arguments):
    options = parse(words)
    assert snakemake_arguments(options) == arguments
    assert options.study == Path() and options.targets == (["distance"] if "." in words else [])


def test_run_exits_with_the_status_of_snakemake(study, capfd):
    assert main(["run", "--", "--version"]) == 0
    assert capfd.readouterr().out.startswith("9.")
    assert main(["run", ".", "--", "--no-such-option"]) == 2
    assert "no-such-option" in capfd.readouterr().err


def test_a_folder_without_a_study_gives_a_one_sentence_error(study, capsys):
    for name, sentence in (("nowhere", "is not a folder"), ("empty", "has no folder config")):
        (study / "empty").mkdir(exist_ok=True)
        for command in ("run", "report"):
            assert main([command, name]) == 1
            said = capsys.readouterr().err
            assert said.startswith(f"Error: {name} {sentence}") and said.count("\n") == 1
    with pytest.raises(UserError):
        snakemake_command(study / "empty")


@pytest.mark.parametrize(
    "words, hint",
    [
        (["run", "--keep-going"], "unrecognized arguments: --keep-going; arguments for Snakemake"),
        (["check", "--", "x"], "unrecognized arguments: -- x"),
        (["check", "a", "b"], "unrecognized arguments: b"),
        ([], "required: COMMAND"),
    ],
)
def test_unknown_arguments_are_refused(words, hint, capsys):
    with pytest.raises(SystemExit) as error:
        main(words)
    assert error.value.code == 2
    assert hint in capsys.readouterr().err


def test_every_command_has_help_with_an_example(capsys):
    names = make_parser()._subparsers._group_actions[0].choices
    expected = {"init", "check", "plan", "run", "report", "audit", "resume", "path", "tune"}
    expected |= {"place", "profiles", "freeze", "impute", "paint", "ancestry", "forget", "crate"}
    expected |= {"sweeps"}
    assert expected == set(names)
    assert list(COMMANDS) == list(names)
    for name in names:
        with pytest.raises(SystemExit):
            main([name, "--help"])
        assert f"Example: popdesic {name}" in " ".join(capsys.readouterr().out.split())


def test_a_signal_ends_snakemake_and_is_reported(study, tmp_path):
    """On SIGTERM, popdesic ends Snakemake too."""
    code = (
        "import subprocess, sys; from popdesic.study import run; from pathlib import Path; "
        "run.snakemake_command = lambda *_: [sys.executable, '-c', "
        "'import time; print(1, flush=True); time.sleep(600)']; "
        "sys.exit(run.run_study(Path()))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "1\n"
    process.terminate()
    assert process.wait(120) == 128 + 15


def test_the_command_line_starts_fast():
    """Printing the version imports neither numpy nor Snakemake."""
    code = (
        "import sys; from popdesic.study.command_line import make_parser; make_parser(); "
        "print(sorted({'numpy', 'pandas', 'numba', 'yaml', 'snakemake'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
