"""A pocket slurmrestd with jobs of all kinds, and a hand between it and its client.

Orders are answered from memory, as they were answered once: no case changes anything for the next one.
"""

import pathlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slurm_bridge.model.job import Done, Gres, JobRequest, Memory
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.sim.slurm import state
from slurm_bridge.sim.slurm.pocket import PocketSlurm
from slurm_bridge.sim.wire import Request, Response
from slurm_bridge.slurm.client import SlurmClient
from slurm_bridge.slurm.settings import SlurmSettings
from tests.direct_line import Line
from tests.direct_pool import DirectPool

CLUSTER = "fuzz"
RUNNING, PENDING, HET, GPUS, OTHERS = (JobId(50_000_000 + number) for number in (1, 2, 10, 3, 4))
NEW = JobId(50_000_900)

#: The answer instead, and the rows of it that are not as they were.
Spoiler = Callable[[Response], tuple[Response, Sequence[Any]]]


def owner(name: str, cluster: str = CLUSTER) -> Owner:
    """Whose job it is."""
    return Owner(cluster=cluster, kind="Pod", namespace="team", name=name, uid=f"{name}-uid")


def request(name: str, job_id: JobId | None, **fields: Any) -> JobRequest:
    """A small job."""
    given = {"memory": Memory(mib=100), "partition": "debug", **fields}
    return JobRequest(name=name, owner=given.pop("owner", None) or owner(name), job_id=job_id, **given)


def _requests() -> Sequence[JobRequest]:
    part = request("het", None, tasks=2)
    return (
        request("running", RUNNING, tasks=2, cpus_per_task=2),
        request("pending", PENDING, hold=True, excluded_nodes=("n1", "n2")),
        request("gpus", GPUS, gres=(Gres(name="gpu", count=2),)),
        request("others", OTHERS, owner=owner("others", "another")),
        request("het", HET, components=(part,)),
        *(request(f"more{number}", JobId(RUNNING + 100 + number)) for number in range(4)),
    )


ORDERS: Mapping[str, Callable[[SlurmClient], Any]] = {
    "submit": lambda slurm: slurm.submit(request("new", NEW, hold=True)),
    "update": lambda slurm: slurm.update(NEW, request("new", NEW, tasks=2)),
    "note": lambda slurm: slurm.note(NEW, owner("new")),
    "assign": lambda slurm: slurm.assign(NEW, owner("new"), "", 7),
    "reserve": lambda slurm: slurm.reserve("kept", ["n8"], "root", 600),
    "unreserve": lambda slurm: slurm.unreserve("kept"),
    "cancel": lambda slurm: slurm.cancel(NEW),
    "cancel many": lambda slurm: slurm.cancel_many([NEW, JobId(NEW + 1)]),
}


class Office:
    """The pocket, and what is done to its answers."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.clock = VirtualClock()
        gres = (state.Gres(name="gpu", type="v100", count=4),)
        machines = [
            state.Node(name=f"n{number}", cpus=16, memory_mib=64_000, gres=gres if number % 2 else ())
            for number in range(1, 9)
        ]
        every = tuple(one.name for one in machines)
        self.pocket = PocketSlurm(
            clock=self.clock,
            nodes=machines,
            partitions=(
                state.Partition(name="debug", nodes=every, default=True),
                state.Partition(name="batch", nodes=every),
            ),
            reservations=(),
            config=state.PocketConfig(configuring_seconds=0.0),
        )
        self._spoiler: Spoiler | None = None
        self._target = ""
        #: How each order was answered the first time; from memory as soon as all have been given.
        self._heard: dict[tuple[str, str], Response] = {}
        self._canned = False
        self._token = folder / "token"
        self._token.write_text(self.pocket.secret)
        self.touched: Sequence[Any] = ()
        self.asked = 0
        self._furnish()

    def _furnish(self) -> None:
        client = self.client()
        for wanted in _requests():
            done = client.submit(wanted)
            assert isinstance(done, Done), done
        self.clock.advance(5.0)
        self.pocket.tick()
        kept = client.reserve("course", ["n7"], "root", 10**8)
        assert isinstance(kept, Done), kept
        self._heard.clear()
        for order in ORDERS.values():
            order(client)
        self._canned = True

    def client(self) -> SlurmClient:
        """As the daemon makes one."""
        settings = SlurmSettings(url="http://slurm", token_file=self._token, cache_ttl=0.0)
        line = Line(self._handle, clock=self.clock)
        return SlurmClient(settings, clock=self.clock, stop=threading.Event(), connect=lambda _: DirectPool(line))

    def reset(self) -> None:
        """Nothing is spoiled."""
        self.spoil(None)
        self.asked = 0

    def spoil(self, spoiler: Spoiler | None) -> None:
        """What is asked next gets such an answer, each time that it is asked; everything else a good one."""
        self._spoiler, self._target, self.touched = spoiler, "", ()

    def _handle(self, asked: Request) -> Response:
        self.asked += 1
        answer = self._answer(asked)
        if self._spoiler is None or asked.path == "/openapi/v3":
            return answer
        self._target = self._target or asked.target
        if asked.target != self._target:
            return answer
        spoiled, self.touched = self._spoiler(answer)
        return spoiled

    def _answer(self, asked: Request) -> Response:
        door = (asked.method, asked.path)
        if asked.method == "GET":
            return self.pocket.handler(asked)
        if not self._canned:
            self._heard[door] = self.pocket.handler(asked)
        return self._heard[door]


def related(name: str, touched: Any) -> bool:
    """The row of this name is the touched one, or it is named in it: as the leader of a component is."""
    text = touched if isinstance(touched, bytes) else str(touched).encode("utf-8", "replace")
    return name.encode() in text or (name == str(HET) and _PART in text)


#: What Slurm calls the component: the distance of its id, which Slurm counted, to that of its leader.
_PART = b"1+"
