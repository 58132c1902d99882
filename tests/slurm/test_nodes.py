"""Two nodes that share a study and nothing else: their own names, caches and temporary folders.

Each test of a fault prints its row of the table in docs/faults.md.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm.sandbox import Sandbox, missing_programs
from support.running import ROOT, contents, environment, snakemake
from support.study import FAST, make_cohorts, write_sheets, write_study

from popdesic.study.one_job import job_name

pytestmark = pytest.mark.slurm

#: Rows of tiles in jobs of their own; jobs are asked for more often than is polite on a cluster.
APART = ["--group-components", "tiles=1"]
QUICK = ["--slurm-init-seconds-before-status-checks", "5", "--latency-wait", "5"]
COHORTS = make_cohorts((8, 7, 6), n_sites=200)


@pytest.fixture(scope="module")
def two(request: pytest.FixtureRequest, tmp_path_factory) -> Iterator[Sandbox]:
    """A running Slurm of two nodes with a fake GPU each."""
    if not request.config.getoption("--require-slurm"):
        pytest.skip("a real Slurm is started with --require-slurm alone: it takes some minutes")
    assert not missing_programs()
    folder = tmp_path_factory.mktemp("nodes")
    with Sandbox(folder, nodes=("node1", "node2"), gpus=1) as sandbox:
        yield sandbox


def start(folder: Path, slurm: Sandbox, *arguments: str) -> subprocess.Popen:
    """Start a run of the study, its output in `run.out`."""
    words = ["-m", "snakemake", "--profile", "slurm", "--directory", str(folder), *APART, *QUICK]
    with open(folder / "run.out", "wb") as out:
        return subprocess.Popen(
            [sys.executable, *words, *arguments],
            cwd=ROOT,
            env=environment() | slurm.environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )


def run(folder: Path, slurm: Sandbox, *arguments: str, fails: bool = False) -> str:
    """Run the study to its end; return the output."""
    process = start(folder, slurm, *arguments)
    try:
        process.wait(900)
    finally:
        process.kill()
    output = (folder / "run.out").read_text()
    print(output)
    assert (process.returncode != 0) == fails, output[-3000:]
    return output


def of(folder: Path, slurm: Sandbox) -> list[dict[str, str]]:
    return [job for job in slurm.jobs() if job.get("WorkDir") == str(folder)]


def rules_by_node(jobs: list[dict[str, str]]) -> dict[str, set[str]]:
    """Rules that ran on each node."""
    found: dict[str, set[str]] = {}
    for job in jobs:
        rule = re.search(r"/slurm_logs/(?:rule_|group_tiles_)(\w+)", job["StdOut"])[1]
        found.setdefault(job["BatchHost"], set()).add(rule)
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, str]:
    """Contents of the study's results, made on one machine."""
    folder = write_study(tmp_path_factory.mktemp("local"), COHORTS, FAST | {"device": "auto"})
    snakemake(folder, "distance")
    return contents(folder)


def test_nodes_share_nothing_but_the_study(two: Sandbox, tmp_path):
    """A file in the temporary folder of one node is missing on the other, at the same path."""
    out = tmp_path / "said"
    for node, script in (
        ("node1", 'hostname; echo mine > "$TMPDIR/mark"; cat "$TMPDIR/mark"'),
        ("node2", 'hostname; cat "$TMPDIR/mark"'),
    ):
        words = ["sbatch", "--wait", f"--output={out}.{node}", "--mem=50", f"--nodelist={node}"]
        subprocess.run(
            [*words, f"--wrap={script}"],
            env=two.environment,
            timeout=120,
            stdout=subprocess.DEVNULL,
        )
    assert Path(f"{out}.node1").read_text().split() == ["node1", "mine"]
    assert Path(f"{out}.node2").read_text().splitlines()[0] == "node2"
    assert "No such file or directory" in Path(f"{out}.node2").read_text()


@pytest.fixture
def encoded(tmp_path) -> Path:
    """The study with all that comes before the distances, whose rows are jobs of a GPU."""
    folder = write_study(tmp_path / "study", COHORTS, FAST | {"device": "auto"})
    snakemake(folder, "encode")
    return folder


def test_jobs_of_a_gpu_land_on_both_nodes(two: Sandbox, encoded, undisturbed):
    run(encoded, two, "distance", "--until", "measure_row")
    jobs = of(encoded, two)
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    rows = [job for job in jobs if job.get("TresPerJob") == "gres:gpu:1"]
    assert {job["BatchHost"] for job in rows} == {"node1", "node2"}
    assert all("measure_row" in rules for rules in rules_by_node(rows).values())
    assert contents(encoded).items() <= undisturbed.items()
    # The GPUs are not real: every log of a row says that the CPU of its node computes.
    for log in (encoded / "logs/measure_row").glob("*.log"):
        assert re.search(r"granted a GPU.* can be used on node[12] \(", log.read_text())


@pytest.mark.slow
def test_a_node_without_the_gpu_it_promised_says_so(two: Sandbox, encoded):
    """With `device: gpu` the run ends with one sentence that names the node."""
    write_sheets(encoded, COHORTS, FAST | {"device": "gpu"})
    output = run(encoded, two, "distance", "--retries", "0", fails=True)
    says = r"device is 'gpu', but no GPU can be used on this machine, node[12] \(.*"
    assert any(re.search(says, line) for line in output.splitlines()[-8:])
    assert not list((encoded / "results").rglob("*.tmp"))
    print("fault node without its GPU:", re.search(says, output)[0])


@pytest.mark.slow
def test_a_node_that_lost_its_gpu_gets_no_job_of_one(two: Sandbox, encoded, undisturbed):
    """Slurm notices a device file that is gone as slurmd starts; the other node does the work."""
    two.kill_node("node2")
    two.lost_gpus["node2"] = 1
    two.write_gpus()
    try:
        two.start_node("node2")
        wait_for_state(two, "node2", "inval", "drain", "down")
        run(encoded, two, "distance")
        assert {job["BatchHost"] for job in of(encoded, two)} == {"node1"}
        assert contents(encoded) == undisturbed
    finally:
        two.kill_node("node2")
        two.lost_gpus.clear()
        two.write_gpus()
        two.start_node("node2")
        wait_for_state(two, "node2", "drained")  # until an administrator resumes it
        for state in ("DOWN", "RESUME"):
            two.call("scontrol", "update", "NodeName=node2", f"State={state}", "Reason=test")
        two.until_idle()


def wait_for_state(slurm: Sandbox, node: str, *states: str) -> None:
    end = time.monotonic() + 120
    while not (found := slurm.call("sinfo", "-hN", "-n", node, "-o", "%T")).startswith(states):
        assert time.monotonic() < end, found
        time.sleep(0.2)


def test_a_full_disk_of_one_node_stops_no_run(two: Sandbox, tmp_path, undisturbed):
    """Caches and temporary files of a node find no room; results are written into the study."""
    fill = 'head -c 1G /dev/zero >"$TMPDIR/full"; test $(df --output=avail "$TMPDIR" | tail -1) = 0'
    words = ["sbatch", "--wait", "--output=/dev/null", "--mem=50", "--nodelist=node2"]
    subprocess.run([*words, f"--wrap={fill}"], env=two.environment, timeout=120, check=True)
    folder = write_study(tmp_path / "study", COHORTS, FAST)
    try:
        output = run(folder, two, "ingest", "--retries", "0")
    finally:
        free = [*words, '--wrap=rm "$TMPDIR/full"']
        subprocess.run(free, env=two.environment, timeout=120, check=True)
    print(output[-2000:])
    assert set(rules_by_node(of(folder, two))) == {"node1", "node2"}
    assert contents(folder).items() <= undisturbed.items()


def test_the_node_of_a_small_study_dies(two: Sandbox, tmp_path, undisturbed):
    """Whoever waits for its one job is told; `popdesic resume` continues on the other node."""
    study = write_study(tmp_path / "study", COHORTS, FAST | {"device": "auto"})
    place = environment() | two.environment | {"PYTHONPATH": str(ROOT / "src")}
    words = [sys.executable, "-m", "popdesic", "run", str(study), "ingest", "--profile", "slurm"]
    process = subprocess.Popen(words, env=place, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 300
    while not any((study / ".snakemake/locks").glob("*")):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.05)
    (job,) = (job for job in two.jobs() if job["JobName"] == job_name(study))
    node = job["BatchHost"]
    two.kill_node(node)
    try:
        told = process.communicate(timeout=300)[1]
        assert process.returncode
        assert f"Slurm ended job {job['JobId']} of {study} (NODE_FAIL)" in told.splitlines()[-1]
        words[3:] = ["resume", str(study), "--", "ingest"]
        done = subprocess.run(words, env=place, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, done.stderr
    finally:
        two.start_node(node)
        two.until_idle()
    again = max(two.jobs(), key=lambda job: int(job["JobId"]))
    assert again["JobState"] == "COMPLETED" and again["BatchHost"] != node
    equal = contents(study).items() <= undisturbed.items()
    print(f"fault node of a small study dies: {told.splitlines()[-1]} bytes equal {equal}")
    assert equal


@pytest.mark.slow
def test_a_cohort_arrives_and_jobs_of_both_kinds_land_on_both_nodes(
    two: Sandbox, tmp_path, undisturbed
):
    """Founders first, then a newcomer: results are those of one machine."""
    config = FAST | {"device": "auto"}
    folder = write_study(tmp_path / "study", COHORTS[:2], config)
    run(folder, two, "distance")
    write_study(folder, COHORTS, config)
    run(folder, two, "distance")
    jobs = of(folder, two)
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    found = rules_by_node(jobs)
    print(found)
    assert set(found) == {"node1", "node2"}
    for rule in ("ingest_cohort", "measure_row"):  # of the CPU, and of a GPU
        assert all(rule in rules for rules in found.values())
    assert contents(folder) == undisturbed
    assert "Nothing to be done" in snakemake(folder, "--dry-run", "distance")


@pytest.mark.slow
def test_a_node_that_dies_is_replaced_by_the_other(two: Sandbox, tmp_path, undisturbed):
    folder = write_study(tmp_path / "study", COHORTS, FAST | {"device": "auto"})
    process = start(folder, two, "ingest")
    try:
        end = time.monotonic() + 300
        while not (lost := [j for j in of(folder, two) if on(j, "node2")]):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.1)
        time.sleep(3)  # its step runs, as a rule
        two.kill_node("node2")
        begun = time.monotonic()
        code = process.wait(900)
        print(f"{time.monotonic() - begun:.0f} s after the node died the run ended")
    finally:
        process.kill()
        two.start_node("node2")
        two.until_idle()
    output = (folder / "run.out").read_text()
    print(output)
    for job in of(folder, two):
        print(job["JobId"], job["JobState"], job["BatchHost"], job.get("Restarts"))
    assert code == 0
    assert lost
    assert contents(folder).items() <= undisturbed.items()


def on(job: dict[str, str], node: str) -> bool:
    return job["JobState"] == "RUNNING" and job["BatchHost"] == node
