"""A real Slurm on one machine, in its own folder: munged, slurmctld, slurmd, fake GPUs.

Runs as root or as an ordinary user, without systemd and without touching any Slurm installed on the
machine. Two partitions share all nodes: `cpu`, the default, and `gpu`. Run as a program
(`PYTHONPATH=tests python -m slurm.sandbox`), it tests whether a Slurm can be started here.

Each of several nodes has a slurmd in namespaces of its own: its own hostname, and own folders of
temporary files, of caches and of shared memory. These have the same path on every node and other
content, as /tmp of a cluster. So a path that a job of one node leaves for a job of another is
missing there. One node needs none of that, and runs also in a chroot, which allows no namespaces.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = (
    *("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel"),
    *("setpriv", "unshare"),
)
SBIN = "/usr/sbin:/sbin"
#: Attempts to start, each with new ports, because another process may take a port first.
STARTS = 3
#: Size of a node's own disk, megabytes.
DISK_MB = 128
#: Seconds after which the controller gives up a node that does not answer.
PATIENCE = 20

SLURM_CONF = """\
ClusterName=popdesic
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory,CR_LLN
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
MinJobAge=3600
KillWait=2
SlurmdTimeout={patience}
TaskProlog={folder}/bin/own_folders
ReturnToService=2
GresTypes=gpu
NodeName=DEFAULT CPUs={cpus} RealMemory={memory} Gres=gpu:fake:{gpus}
{nodes}
PartitionName=cpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=gpu Nodes=ALL MaxTime=INFINITE State=UP
"""

#: What a node is before its slurmd starts: name, and folders that it shares with no other node.
NODE = """\
#!/bin/sh -e
# node NAME COMMAND...
hostname "$1"
mount -t tmpfs -o size={disk}m tmpfs {folder}/own
mkdir {folder}/own/tmp {folder}/own/cache
mount -t tmpfs tmpfs /dev/shm
shift
exec setpriv --pdeathsig TERM "$@"
"""
OWN_FOLDERS = """\
#!/bin/sh
echo export TMPDIR={folder}/own/tmp
echo export XDG_CACHE_HOME={folder}/own/cache
"""


def missing_programs() -> list[str]:
    """Programs of Slurm and munge that are not installed."""
    path = f"{os.environ['PATH']}:{SBIN}"
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


def _free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for s in held:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


class Sandbox:
    """Context manager: a running Slurm below `folder`, stopped on leaving."""

    def __init__(
        self,
        folder: Path,
        *,
        cpus: int = 8,
        memory: int = 65536,
        gpus: int = 2,
        nodes: tuple[str, ...] = ("node1",),
    ):
        self.folder = folder.resolve()
        self.size = {"cpus": cpus, "memory": memory, "gpus": gpus}
        self.nodes = nodes
        #: Fewer GPUs than the controller is told, by node.
        self.lost_gpus: dict[str, int] = {}
        self.daemons: dict[str, subprocess.Popen] = {}

    @property
    def environment(self) -> dict[str, str]:
        """Environment in which Slurm's commands talk to this Slurm."""
        skipped = ("PYTHONDONTWRITEBYTECODE", "CUDA_VISIBLE_DEVICES")
        kept = {
            k: v
            for k, v in os.environ.items()
            if k not in skipped and not k.startswith(("SLURM_", "SBATCH_"))
        }
        path = f"{self.folder / 'bin'}:{kept['PATH']}:{SBIN}"
        return kept | {"SLURM_CONF": str(self.folder / "etc/slurm.conf"), "PATH": path}

    def _write(self) -> None:
        for name in ("etc", "munge", "state", "spool", "dev", "bin", "own"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "munge").chmod(0o755)
        key = self.folder / "munge/munge.key"
        key.unlink(missing_ok=True)
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        gpus = self.size["gpus"]
        for k in range(gpus):
            device = self.folder / f"dev/nvidia{k}"
            device.unlink(missing_ok=True)
            device.symlink_to("/dev/null")
        etc, ports = self.folder / "etc", _free_ports(1 + len(self.nodes))
        text = SLURM_CONF.format(
            user=pwd.getpwuid(os.getuid()).pw_name,
            host=socket.gethostname().split(".")[0],
            ports=ports,
            folder=self.folder,
            patience=PATIENCE,
            nodes="\n".join(
                f"NodeName={node} NodeHostname={node} NodeAddr=127.0.0.1 Port={port}"
                for node, port in zip(self.nodes, ports[1:], strict=True)
            ),
            **self.size,
        )
        (etc / "slurm.conf").write_text(text)
        self.write_gpus()
        # slurmd loads a cgroup plugin even if nothing uses it: its mount point need not exist.
        (etc / "cgroup.conf").write_text(
            f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={self.folder}/no-cgroup\n"
        )
        for name, text in (("node", NODE), ("own_folders", OWN_FOLDERS)):
            (self.folder / "bin" / name).write_text(text.format(folder=self.folder, disk=DISK_MB))
            (self.folder / "bin" / name).chmod(0o755)
        if len(self.nodes) == 1:  # others make them on a disk of their own
            for name in ("tmp", "cache"):
                (self.folder / "own" / name).mkdir(exist_ok=True)
        # The executor plugin drops SLURM_* from its inner srun, and with it this cluster's address.
        srun = shutil.which("srun")
        wrapper = self.folder / "bin/srun"
        wrapper.write_text(f'#!/bin/sh\nexport SLURM_CONF={etc}/slurm.conf\nexec {srun} "$@"\n')
        wrapper.chmod(0o755)

    def write_gpus(self) -> None:
        """What each node finds of the GPUs that the controller is told of."""
        lines = []
        for node in self.nodes:
            count = self.size["gpus"] - self.lost_gpus.get(node, 0)
            files = f"File={self.folder}/dev/nvidia[0-{count - 1}]" if count else "Count=0"
            lines.append(f"NodeName={node} Name=gpu Type=fake {files}\n")
        (self.folder / "etc/gres.conf").write_text("AutoDetect=off\n" + "".join(lines))

    def start(self, name: str, *arguments: str, node: str | None = None) -> None:
        """Start one daemon in the foreground, with its output in `{name}.out`.

        It ends when this process ends for any reason, so that no daemon is left behind.
        """
        program = shutil.which(name, path=self.environment["PATH"])
        words = ["setpriv", "--pdeathsig", "TERM"]
        if node and len(self.nodes) > 1:
            words = ["unshare", "--mount", "--uts", str(self.folder / "bin/node"), node]
            if os.getuid():  # a user's own namespaces, in which the user may mount
                words[1:1] = ["--map-current-user", "--keep-caps"]
        if node:
            name = f"{name}.{node}"
        with open(self.folder / f"{name}.out", "ab") as out:
            self.daemons[name] = subprocess.Popen(
                [*words, program, *arguments],
                env=self.environment,
                cwd=self.folder,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def stop(self, name: str) -> None:
        """Stop one daemon and wait for its end."""
        daemon = self.daemons.pop(name, None)
        if daemon is None:
            return
        daemon.terminate()
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def start_node(self, node: str) -> None:
        """Start a node."""
        self.start("slurmd", "-D", "-N", node, node=node)

    def kill_node(self, node: str) -> None:
        """End a node at once with all that runs there, as if it lost its power."""
        daemon = self.daemons.pop(f"slurmd.{node}")
        space = Path(f"/proc/{daemon.pid}/ns/mnt").readlink()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "ns/mnt").readlink() == space:
                    os.kill(int(process.name), signal.SIGKILL)
            except (OSError, ProcessLookupError):
                continue
        daemon.wait()

    def restart_controller(self) -> None:
        """Stop slurmctld and start it again with the state that it saved."""
        self.stop("slurmctld")
        self.start("slurmctld", "-D")
        self.until_idle()

    def call(self, *words: str) -> str:
        """Output of one of Slurm's commands."""
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=300
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def jobs(self) -> list[dict[str, str]]:
        """Output of `scontrol show job` for every job, including finished ones."""
        blocks = self.call("scontrol", "--oneliner", "show", "job").splitlines()
        return [
            dict(word.split("=", 1) for word in block.split() if "=" in word) for block in blocks
        ]

    def until_idle(self, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        state = ""
        while time.monotonic() < end:
            try:
                state = self.call("sinfo", "--noheader", "--format=%T")
            except RuntimeError as error:
                state = str(error)
            if state.split() and set(state.split()) <= {"idle", "mixed", "allocated"}:
                return
            if any(daemon.poll() is not None for daemon in self.daemons.values()):
                break  # waiting does not help
            time.sleep(0.2)
        files = sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")])
        logs = "\n".join(f"{p.name}:\n{p.read_text(errors='replace')[-2000:]}" for p in files)
        raise RuntimeError(f"Slurm's node is not ready ({state.strip()}):\n{logs}")

    def __enter__(self) -> Sandbox:
        for trial in range(1, STARTS + 1):
            self._write()
            try:
                self._start_all()
                return self
            except BaseException as error:
                self.__exit__()
                if trial == STARTS or not isinstance(error, RuntimeError):
                    raise
        raise AssertionError

    def _start_all(self) -> None:
        munge = self.folder / "munge"
        files = [f"--{k}={munge}/munge.{k.split('-')[0]}" for k in ("socket", "log-file")]
        files += [f"--pid-file={munge}/munged.pid", f"--seed-file={munge}/munged.seed"]
        self.start("munged", "--foreground", "--force", f"--key-file={munge}/munge.key", *files)
        end = time.monotonic() + 60
        while not (munge / "munge.socket").exists() and time.monotonic() < end:
            time.sleep(0.05)
        self.start("slurmctld", "-D", "-c")
        for node in self.nodes:
            self.start_node(node)
        self.until_idle()

    def __exit__(self, *_: object) -> None:
        if "slurmctld" in self.daemons and len(self.daemons) > 2:
            for partition in ("cpu", "gpu"):
                subprocess.run(
                    ["scancel", f"--partition={partition}"],
                    env=self.environment,
                    capture_output=True,
                    timeout=30,
                )
        for name in reversed(list(self.daemons)):  # nodes first, munged last
            self.stop(name)


def main() -> int:
    """Start and stop a Slurm; return 0 if that worked."""
    if missing := missing_programs():
        print(f"no Slurm can be started here: {', '.join(missing)} not found", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        try:
            with Sandbox(Path(folder)) as sandbox:
                print(sandbox.call("sinfo"), end="")
        except RuntimeError as error:
            print(f"no Slurm can be started here: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
