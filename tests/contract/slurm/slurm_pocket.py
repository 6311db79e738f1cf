"""The pocket Slurm as one of the two servers that the suite asks."""

import contextlib
import dataclasses
import pathlib
import tempfile
import threading
from collections.abc import Iterator, Sequence

import slurm_http
import slurm_servers

from slurm_bridge.runtime import clock
from slurm_bridge.sim import faults, http
from slurm_bridge.sim.slurm import pocket, state

OPERATOR_TOKEN = "operator-of-the-pocket"
USER_TOKEN = "user-of-the-pocket"


class MovableClock:
    """The system's time, which can be sent ahead."""

    def __init__(self) -> None:
        self._system = clock.SystemClock()
        self._ahead = 0.0

    def now(self) -> float:
        return self._system.now() + self._ahead

    def wall(self) -> float:
        return self._system.wall() + self._ahead

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        return self._system.wait(stop, seconds)

    def advance(self, seconds: float) -> None:
        self._ahead += seconds


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pocket(slurm_servers.Servers):
    """The pocket Slurm, served from a thread of this process."""

    slurm: pocket.PocketSlurm
    clock: MovableClock
    operator_token: str = dataclasses.field(default=OPERATOR_TOKEN, repr=False)
    user_token: str = dataclasses.field(default=USER_TOKEN, repr=False)
    pause_between_looks: float = 0.005

    def kill(self) -> None:
        self.slurm.control.crash()
        self.slurm.control.down()

    def start(self) -> None:
        self.slurm.control.up()

    def pause(self) -> None:
        self.slurm.control.hang()

    def resume(self) -> None:
        self.slurm.control.up()

    def batch(self, name: bytes) -> int:
        job = {
            "name": "batch",
            "hold": True,
            "script": "#!/bin/sh",
            "environment": ["PATH=/bin"],
            "current_working_directory": "/tmp",  # noqa: S108 - nothing runs there
        }
        door = slurm_http.Door(url=self.url, token=self.operator_token)
        answer = door.ask("POST", "/slurm/v0.0.45/job/submit", {"job": job})
        assert answer.job_id, answer.complaint
        self.slurm.control.rename(answer.job_id, name)
        return answer.job_id

    def suspend(self, job_id: int) -> None:
        self.slurm.control.suspend(job_id)

    def keep_for_root(self, partition: str, *, only: bool) -> None:
        self.slurm.control.set_partition(partition, root_only=only)

    def reserve(self, name: str, node: str, seconds: int, flags: Sequence[str]) -> None:
        end = self.clock.wall() + seconds
        kept = state.Reservation(name=name, nodes=(node,), users=(slurm_servers.OPERATOR,), end=end, flags=tuple(flags))
        self.slurm.control.reserve(kept)

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)


@contextlib.contextmanager
def serving(failing: faults.Faults | None = None) -> Iterator[Pocket]:
    """A pocket Slurm for as long as the block lasts."""
    time = MovableClock()
    tokens = {OPERATOR_TOKEN: slurm_servers.OPERATOR, USER_TOKEN: slurm_servers.PLAIN_USER}
    # As many as the local cluster's, and room for those that cases add.
    config = state.PocketConfig(default_user=slurm_servers.OPERATOR, maximum_nodes=84)
    slurm = pocket.PocketSlurm(clock=time, tokens=tokens, config=config)
    with (
        pocket.PocketSlurmServer(slurm, faults=failing) as served,
        tempfile.TemporaryDirectory() as folder,
        http.Server(slurm.handler, unix_socket=pathlib.Path(folder, "slurmrestd.sock")) as local,
    ):
        yield Pocket(url=served.url, socket_url=local.url, slurm=slurm, clock=time)
