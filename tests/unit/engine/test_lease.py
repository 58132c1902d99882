"""Leases of devices, tested with real processes."""

import contextlib
import fcntl
import multiprocessing
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from popdesic.core.errors import UserError
from popdesic.core.places import SHARES_DEVICES
from popdesic.engine.lease import (
    SHARES,
    TooFewGpusError,
    is_granted,
    lease_device,
    lease_devices,
    lock_folder,
    shares_of,
)

#: Seconds until a process counts as hanging.
PATIENCE = 300
HOLD = """
import sys, time
from pathlib import Path
from popdesic.engine.lease import lease_device
print(lease_device(int(sys.argv[2]), folder=Path(sys.argv[1]), environment={}), flush=True)
time.sleep(600)
"""
#: The same for a number of shares of one device.
HOLD_SHARES = HOLD.replace("int(sys.argv[2])", "1, shares=lambda _: int(sys.argv[2])")
PACKAGE = Path(__file__).parents[3] / "src"


@pytest.fixture
def hold(tmp_path):
    """A function that starts a process which leases one of `count` devices and keeps it."""
    started = []

    def start(count: int, code: str = HOLD) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), str(count)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_every_process_gets_its_own_device(tmp_path, hold):
    processes = [hold(3) for _ in range(3)]
    assert sorted(int(process.stdout.readline()) for process in processes) == [0, 1, 2]
    with pytest.raises(UserError, match="all 3 GPUs of this machine are taken") as error:
        lease_device(3, folder=tmp_path, environment={}, patience=0)
    assert "\n" not in str(error.value)


def test_a_killed_process_releases_its_device(tmp_path, hold):
    first = hold(1)
    assert first.stdout.readline() == "0\n"
    second = hold(1)
    time.sleep(0.5)
    assert second.poll() is None
    first.send_signal(signal.SIGKILL)
    assert second.stdout.readline() == "0\n"


#: The same for several of three devices.
HOLD_SEVERAL = HOLD.replace("lease_device(int(sys.argv[2])", "lease_devices(3, int(sys.argv[2])")
HOLD_SEVERAL = HOLD_SEVERAL.replace("import lease_device", "import lease_devices")


def test_several_devices_are_taken_whole_and_by_one_process_at_a_time(tmp_path, hold):
    """Two of three, while one is taken; then another two, of which only one is free."""
    single = hold(3)
    assert said(single, PATIENCE) == "0\n"
    first = hold(2, HOLD_SEVERAL)
    assert said(first, PATIENCE) == "[1, 2]\n"
    second, third = hold(2, HOLD_SEVERAL), hold(2, HOLD_SEVERAL)
    single.kill()
    assert said(second, 3) + said(third, 1) == ""
    first.kill()
    began = [one for one in (second, third) if said(one, 5)]
    assert len(began) == 1, "both wait, or both have three devices"
    began[0].kill()
    other = second if began[0] is third else third
    assert len(said(other, PATIENCE).split(",")) == 2


def test_single_devices_and_several_do_not_wait_for_each_other(hold):
    """Many processes of both kinds on three devices: all get theirs, one after the other."""
    waiting = [hold(3) for _ in range(4)] + [hold(2, HOLD_SEVERAL) for _ in range(3)]
    end = time.monotonic() + PATIENCE
    while waiting:
        assert time.monotonic() < end, "processes wait for each other"
        for process in [one for one in waiting if said(one, 0.1)]:
            process.kill()
            waiting.remove(process)


def test_fewer_devices_than_asked_for(tmp_path):
    granted = {"SLURM_JOB_ID": "1", "CUDA_VISIBLE_DEVICES": "4"}
    for environment in ({}, granted):
        with pytest.raises(
            TooFewGpusError, match=r"POPDESIC_CLOSURE_GPUS is 2, .* finds 1 GPU here"
        ) as error:
            lease_devices(1, 2, folder=tmp_path, environment=environment)
        assert "\n" not in str(error.value)
    granted["CUDA_VISIBLE_DEVICES"] = "4,6"
    assert lease_devices(2, 2, folder=tmp_path / "none", environment=granted) == [0, 1]


def test_devices_are_given_back_by_a_process_that_did_not_get_all(tmp_path, hold):
    assert said(hold(3), PATIENCE) == "0\n"
    with pytest.raises(UserError, match="all 3 GPUs of this machine are taken"):
        lease_devices(3, 3, folder=tmp_path, environment={}, patience=0)
    assert said(hold(2, HOLD_SEVERAL), PATIENCE) == "[1, 2]\n"


SNAKEFILE = """
rule all:
    input:
        expand("{job}.txt", job=range(8)),

rule hold:
    output:
        "{job}.txt",
    resources:
        gpu=1,
    shell:
        "PYTHONPATH=PACKAGE PYTHON hold.py > {output}"
"""


#: A job holds its device until four of the eight do, and the later four until all have begun: a
#: busy machine may start them far apart.
TIMED = """
start, late = time.time(), any(Path(".").glob("*.ended"))
Path(f"{os.getpid()}.begun").touch()
while len(list(Path(".").glob("*.begun"))) < (8 if late else 4) and time.time() < start + 120:
    time.sleep(0.1)
Path(f"{os.getpid()}.ended").touch()
print(start, time.time())
"""


def test_snakemake_keeps_four_devices_busy(tmp_path):
    """`--resources gpu=4`: four jobs at a time, each on its own device."""
    hold = HOLD.replace("sys.argv[2]", "'4'").replace("Path(sys.argv[1])", "Path('locks')")
    (tmp_path / "hold.py").write_text("import os" + hold.replace("time.sleep(600)\n", TIMED))
    text = SNAKEFILE.replace("PACKAGE", str(PACKAGE)).replace("PYTHON ", f"{sys.executable} ")
    (tmp_path / "Snakefile").write_text(text)
    words = ["-m", "snakemake", "--cores", "8", "--resources", "gpu=4", "--quiet", "all"]
    subprocess.run([sys.executable, *words], cwd=tmp_path, check=True, timeout=PATIENCE)
    held = [tuple(map(float, path.read_text().split())) for path in tmp_path.glob("*.txt")]
    assert {device for device, _, _ in held} == {0, 1, 2, 3}
    for device, start, end in held:
        beside = [one for one in held if one[1] < end and one[2] > start]
        assert [one[0] for one in beside].count(device) == 1
        assert len(beside) >= 4, "jobs run beside each other"


# --- shares of a device -------------------------------------------------------------------------


def said(process: subprocess.Popen, seconds: float) -> str:
    """What a process has printed within some time; nothing while it waits."""
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    return process.stdout.readline() if ready else ""


def wait_in_line(folder: Path) -> None:
    """Wait until a process stands in line for device 0: it then keeps the device's gate."""
    gate, end = folder / f"popdesic-gpu-0-gate.{os.getuid()}.lock", time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(FileNotFoundError), gate.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return
        assert time.monotonic() < end, "nobody stands in line"
        time.sleep(0.05)


def test_small_jobs_share_a_device_as_far_as_its_memory_goes(hold):
    """3 + 3 of 8 shares run beside each other; a third job of 3 waits until one ends."""
    first, second = (hold(3, HOLD_SHARES) for _ in range(2))
    assert [said(process, PATIENCE) for process in (first, second)] == ["0\n", "0\n"]
    third = hold(3, HOLD_SHARES)
    assert said(third, 3) == ""
    first.kill()
    assert said(third, PATIENCE) == "0\n"


def test_a_job_that_needs_a_whole_device_is_not_passed_by_small_ones(tmp_path, hold):
    small = hold(2, HOLD_SHARES)
    assert said(small, PATIENCE) == "0\n"
    whole = hold(SHARES, HOLD_SHARES)
    wait_in_line(tmp_path)
    assert said(whole, 1) == ""
    late = hold(1, HOLD_SHARES)  # there is room for it, but it stands in line
    assert said(late, 3) == ""
    small.kill()
    assert said(whole, PATIENCE) == "0\n"
    assert said(late, 3) == ""
    whole.kill()
    assert said(late, PATIENCE) == "0\n"


def test_small_jobs_spread_over_idle_devices(hold):
    code = HOLD_SHARES.replace("(1, shares", "(2, shares")
    devices = [said(hold(2, code), PATIENCE) for _ in range(3)]
    assert sorted(devices[:2]) == ["0\n", "1\n"]
    assert devices[2] in ("0\n", "1\n")


def test_a_waiting_job_that_dies_leaves_the_line(tmp_path, hold):
    small = hold(2, HOLD_SHARES)
    assert said(small, PATIENCE) == "0\n"
    whole = hold(SHARES, HOLD_SHARES)
    wait_in_line(tmp_path)
    assert said(whole, 1) == ""
    whole.kill()
    assert said(hold(1, HOLD_SHARES), PATIENCE) == "0\n"


def test_shares_add_up_to_no_more_than_the_device(tmp_path, monkeypatch):
    """Many processes that come and go: never more than SHARES are out at a time."""
    import popdesic.engine.lease as lease

    monkeypatch.setattr(lease, "POLL_SECONDS", 0.01)
    out, most = FORK.Value("i", 0), FORK.Value("i", 0)

    def run(wanted: int) -> None:
        lease_device(1, shares=lambda _: wanted, folder=tmp_path, environment={})
        with out.get_lock():
            out.value += wanted
            most.value = max(most.value, out.value)
        time.sleep(0.02)
        with out.get_lock():
            out.value -= wanted

    processes = [FORK.Process(target=run, args=(1 + k % 5,)) for k in range(30)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode == 0
    assert SHARES // 2 < most.value <= SHARES
    assert out.value == 0


def test_two_users_share_a_device(shared):
    alice, bob = As(ALICE, shared, 1, shares=4), As(BOB, shared, 1, shares=4)
    assert (alice.got, bob.got) == (0, 0)
    third = As(BOB + 1, shared, 1, shares=1)
    assert "are taken" in third.got
    for process in (alice, bob, third):
        process.end()


def test_shares_of_memory():
    card = 80 << 30
    assert shares_of(None, card) == SHARES
    assert [shares_of(gb << 30, card) for gb in (0, 1, 10, 11, 79, 80, 500)] == [
        *(1, 1, 1, 2, 8, 8, SHARES)
    ]


def test_a_grant_is_of_a_scheduler():
    assert is_granted({"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "2"})
    assert not is_granted({"SLURM_JOB_ID": "7"})
    assert not is_granted({"CUDA_VISIBLE_DEVICES": "2"})


def test_jobs_of_a_workflow_share_the_devices_of_a_grant(tmp_path):
    """Their locks are of the scheduler's job: another job of it may call its own device 2, too."""
    granted = {"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "2", SHARES_DEVICES: "1"}
    assert not is_granted(granted)
    assert lease_device(1, folder=tmp_path, environment=granted) == 0
    locks = {path.name.rsplit(".", 2)[0] for path in tmp_path.iterdir()}
    assert locks == {f"popdesic-gpu-7-2-{share}" for share in [*range(SHARES), "gate"]}


def test_a_process_keeps_its_device(tmp_path):
    """A second call returns the same device, also for another folder of locks."""
    for folder in (tmp_path / "a", tmp_path / "b", tmp_path / "a"):
        assert lease_device(2, folder=folder, environment={}) == 0
    assert len(list(tmp_path.glob("*/*.lock"))) == 2 * (SHARES + 1)


def test_a_device_assigned_by_the_scheduler_is_not_locked(tmp_path):
    granted = {"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "2"}
    for _ in range(2):
        assert lease_device(1, folder=tmp_path / "none", environment=granted) == 0
    assert not (tmp_path / "none").exists()


def test_visible_devices_are_locked_by_name(tmp_path, hold):
    """Index 0 of a process that sees only device 1 is not device 0."""
    assert hold(1).stdout.readline() == "0\n"
    code = HOLD.replace("environment={}", "environment={'CUDA_VISIBLE_DEVICES': '1'}")
    other = subprocess.run(
        [sys.executable, "-c", code.replace("time.sleep(600)", ""), str(tmp_path), "1"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
    )
    assert other.stdout == "0\n"
    names = {
        f"popdesic-gpu-{device}-{share}.{os.getuid()}.lock"
        for device in (0, 1)
        for share in [*range(SHARES), "gate"]
    }
    assert {path.name for path in tmp_path.iterdir()} == names


def test_a_folder_that_cannot_be_made_gives_a_one_sentence_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="lock files of the GPUs cannot be kept there") as error:
        lease_device(1, folder=tmp_path / "file" / "locks", environment={})
    assert "\n" not in str(error.value)


# --- several users ------------------------------------------------------------------------------

#: Two user numbers without a name, which exist on any system.
ALICE, BOB = 54_321, 54_322
FORK = multiprocessing.get_context("fork")  # modules imported as root may be unreadable for them


@pytest.fixture
def shared():
    """A folder like /tmp: owned by root, sticky, writable for all users."""
    if os.getuid():
        pytest.skip("only root can take the part of two users")
    # in /tmp, whose parent folders all users may enter
    folder = Path(tempfile.mkdtemp(prefix="popdesic-lease-", dir="/tmp"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def become(user: int, umask: int) -> None:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    os.umask(umask)


def user_leases(user: int, folder: Path, count: int, said, hold, umask: int, shares: int) -> None:
    become(user, umask)
    options = {"folder": folder, "environment": {}, "patience": 0}
    try:
        said.put(lease_device(count, shares=lambda _: shares, **options))
    except BaseException as error:
        said.put(f"{type(error).__name__}: {error}")
    hold.wait(PATIENCE)


class As:
    """A process of a user that leases a device and keeps it until `end`."""

    def __init__(
        self, user: int, folder: Path, count: int, umask: int = 0o022, shares: int = SHARES
    ):
        said, self.hold = FORK.Queue(), FORK.Event()
        arguments = (user, folder, count, said, self.hold, umask, shares)
        self.process = FORK.Process(target=user_leases, args=arguments)
        self.process.start()
        self.got = said.get(timeout=PATIENCE)

    def end(self) -> None:
        self.hold.set()
        self.process.join(PATIENCE)
        assert self.process.exitcode == 0


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_two_users_share_the_devices(shared, umask):
    alice = As(ALICE, shared, 2, umask)
    bob = As(BOB, shared, 2, umask)
    assert (alice.got, bob.got) == (0, 1)
    third = As(ALICE, shared, 2, umask)
    assert "all 2 GPUs of this machine are taken" in third.got
    alice.end()
    again = As(BOB, shared, 2, umask)
    assert again.got == 0
    for process in (bob, third, again):
        process.end()
    last = As(ALICE, shared, 1, umask)
    assert last.got == 0
    last.end()


def deletes_and_replaces(user: int, lease: Path, said) -> None:
    become(user, 0o022)
    mine = lease.with_name("mine")
    mine.write_text("")
    for act in (lease.unlink, lambda: mine.replace(lease), lambda: lease.rename(mine)):
        try:
            act()
            said.put("done")
        except PermissionError:
            said.put("refused")
    said.put(os.access(lease, os.W_OK))


def test_no_user_deletes_or_replaces_the_lease_of_another(shared):
    alice = As(ALICE, shared, 1)
    lease, *more = shared.glob("*-[0-7].*.lock")
    assert len(more) == SHARES - 1
    assert stat.S_IMODE(lease.stat().st_mode) == 0o644
    assert lease.stat().st_uid == ALICE
    said = FORK.Queue()
    process = FORK.Process(target=deletes_and_replaces, args=(BOB, lease, said))
    process.start()
    assert [said.get(timeout=PATIENCE) for _ in range(4)] == [*["refused"] * 3, False]
    process.join(PATIENCE)
    bob = As(BOB, shared, 1)
    assert "are taken" in bob.got
    alice.end()
    bob.end()


def test_the_folder_is_where_only_root_can_delete():
    folder = lock_folder().stat()
    if folder.st_uid == 0 and folder.st_mode & stat.S_IWOTH:
        assert folder.st_mode & stat.S_ISVTX


@pytest.mark.parametrize("kind", ["link", "file", "fifo", "folder"])
def test_obstacles_left_by_another_user_give_a_one_sentence_error(shared, kind):
    """A link is not followed, a pipe does not hang, and nothing is changed."""
    lease, target = shared / f"popdesic-gpu-0-3.{ALICE}.lock", shared / "target"
    target.write_text("keep")
    target.chmod(0o600)
    {
        "link": lambda: lease.symlink_to(target),
        "file": lambda: lease.write_text("keep"),
        "fifo": lambda: os.mkfifo(lease),
        "folder": lease.mkdir,
    }[kind]()
    os.chown(lease, BOB, BOB, follow_symlinks=False)
    alice = As(ALICE, shared, 1)
    assert alice.got.startswith("UserError"), alice.got
    assert "this lock file of a GPU cannot be opened" in alice.got
    assert "\n" not in alice.got
    alice.end()
    assert target.read_text() == "keep"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    # A lock file under another user's name blocks no device.
    bob = As(BOB, shared, 1)
    assert bob.got == 0
    bob.end()


def user_races(user: int, folder: Path, count: int, holders, collisions, rounds: int) -> None:
    become(user, 0o022)
    for _ in range(rounds):
        child = os.fork()
        if not child:
            device = lease_device(count, folder=folder, environment={})
            with holders.get_lock():
                holders[device] += 1
                collisions.value += holders[device] > 1
            time.sleep(0.01)
            with holders.get_lock():
                holders[device] -= 1
            os._exit(0)
        os.waitpid(child, 0)


@pytest.mark.slow
def test_users_who_start_at_once_never_share_a_device(shared, monkeypatch):
    import popdesic.engine.lease as lease

    monkeypatch.setattr(lease, "POLL_SECONDS", 0.01)
    holders, collisions = FORK.Array("i", 2), FORK.Value("i", 0)
    users = [ALICE, ALICE, BOB, BOB, BOB + 1, BOB + 2]
    arguments = (shared, 2, holders, collisions, 30)
    racing = [FORK.Process(target=user_races, args=(user, *arguments)) for user in users]
    for process in racing:
        process.start()
    for process in racing:
        process.join(PATIENCE)
        assert process.exitcode == 0
    assert collisions.value == 0
    assert list(holders) == [0, 0]
