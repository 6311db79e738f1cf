"""The servers that the suite asks, behind one face: the real ones of the local cluster, and slurm_pocket.

Both have the same kinds of nodes and the same partitions. What only an administrator of the machine can do to a
server (kill it, freeze it) is a verb here; everything else goes through HTTP like any client's call.
"""

import abc
import dataclasses
import os
import pathlib
import subprocess
from collections.abc import Mapping, Sequence

PROJECT = pathlib.Path(__file__).resolve().parents[3]

#: SlurmUser: may choose job ids and write admin comments.
OPERATOR = "slurm"
PLAIN_USER = "alice"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Servers(abc.ABC):
    """One slurmrestd and the slurmctld behind it."""

    url: str
    socket_url: str
    operator_token: str = dataclasses.field(repr=False)
    user_token: str = dataclasses.field(repr=False)
    pause_between_looks: float

    @abc.abstractmethod
    def kill(self) -> None:
        """SIGKILL to slurmctld: what it has not saved is lost."""

    @abc.abstractmethod
    def start(self) -> None:
        """Start slurmctld again and wait until it answers."""

    @abc.abstractmethod
    def pause(self) -> None:
        """SIGSTOP to slurmctld: it takes connections and never answers."""

    @abc.abstractmethod
    def resume(self) -> None:
        """SIGCONT."""

    @abc.abstractmethod
    def batch(self, name: bytes) -> int:
        """What `sbatch --hold --job-name` does, with any bytes; the job's id."""

    @abc.abstractmethod
    def suspend(self, job_id: int) -> None:
        """What `scontrol suspend` does."""

    @abc.abstractmethod
    def keep_for_root(self, partition: str, *, only: bool) -> None:
        """RootOnly of a partition."""

    @abc.abstractmethod
    def reserve(self, name: str, node: str, seconds: int, flags: Sequence[str]) -> None:
        """A reservation of one node for the operator, from now on."""

    @abc.abstractmethod
    def pass_time(self, seconds: float) -> None:
        """Let so much time go by at once where time can be moved; the real one has to be waited for."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Real(Servers):
    """The servers that `make cluster-up` has started."""

    directory: str
    pause_between_looks: float = 0.05

    def kill(self) -> None:
        self._part("kill")

    def start(self) -> None:
        self._part("start")

    def pause(self) -> None:
        self._part("pause")

    def resume(self) -> None:
        self._part("resume")

    def suspend(self, job_id: int) -> None:
        self._scontrol("suspend", str(job_id))

    def keep_for_root(self, partition: str, *, only: bool) -> None:
        self._scontrol("update", f"PartitionName={partition}", f"RootOnly={'YES' if only else 'NO'}")

    def batch(self, name: bytes) -> int:
        quoted = "".join(f"\\x{byte:02x}" for byte in name)
        return int(
            self._run("slurm-exec", "bash", "-c", f"cd /tmp; sbatch --parsable --hold -J $'{quoted}' --wrap true")
        )

    def reserve(self, name: str, node: str, seconds: int, flags: Sequence[str]) -> None:
        chosen = (f"ReservationName={name}", f"Nodes={node}", f"Users={OPERATOR}", f"Flags={','.join(flags)}")
        self._scontrol("create", "reservation", *chosen, "StartTime=now", f"EndTime=now+{seconds}seconds")

    def pass_time(self, seconds: float) -> None:
        """Nothing: the caller waits for what it wants to see."""

    def _part(self, verb: str) -> None:
        self._run("part", "slurmctld", verb)

    def _scontrol(self, *words: str) -> None:
        self._run("slurm-exec", "scontrol", *words)

    def _run(self, script: str, *words: str) -> str:
        environment = {**os.environ, "CLUSTER_DIR": self.directory}
        command = [str(PROJECT / "hack" / "cluster" / script), *words]
        done = subprocess.run(
            command, env=environment, check=True, timeout=100, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        return done.stdout.decode(errors="replace")


def real_servers(variables: Mapping[str, str]) -> Real:
    """The running local cluster, from the variables that it has written."""
    return Real(
        url=variables["SLURMRESTD_URL"],
        socket_url=f"unix://{variables['SLURMRESTD_SOCKET']}",
        directory=variables["CLUSTER_DIR"],
        operator_token=_token(variables["SLURM_TOKEN_FILE"]),
        user_token=_token(variables["SLURM_TOKEN_FILE_USER"]),
    )


def _token(file: str) -> str:
    return pathlib.Path(file).read_text().strip().removeprefix("SLURM_JWT=")
