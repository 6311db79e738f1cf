"""Both pocket servers with the node controller between them, moved by hand: no thread, no socket.

world = NodeWorld(tmp_path)     Slurm with its own nodes, Kubernetes with none
world.add("w1", "w2")           external nodes appear in Kubernetes
world.settle()                  passes until the controller changes nothing more
"""

import pathlib
import random
import threading
from collections.abc import Callable
from typing import Any

from slurm_bridge import ports
from slurm_bridge.controllers.nodes.controller import NodeController, NodePorts
from slurm_bridge.controllers.nodes.options import NodeOptions
from slurm_bridge.kube.client import KubeClient
from slurm_bridge.model import kinds, names
from slurm_bridge.model.devices import ResourceSlice
from slurm_bridge.model.node import Node
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.sim import wire
from slurm_bridge.sim.kube import access, world
from slurm_bridge.sim.slurm import state
from slurm_bridge.sim.slurm.pocket import PocketSlurm
from slurm_bridge.slurm.client import SlurmClient
from slurm_bridge.slurm.settings import SlurmSettings
from tests.direct_kube import DirectAccess
from tests.direct_line import Line
from tests.direct_pool import DirectPool

CLUSTER_ID = "k1"
PREFIX = f"slurm-bridge({CLUSTER_ID}): "
EXTERNAL = {names.LABEL_EXTERNAL_NODE: "true"}
CAPACITY = {"cpu": "8", "memory": "16000Mi", "pods": "110"}

#: More passes at one moment mean that something spins.
MOST_PASSES = 12


class NodeWorld:
    """`line` and `kube_line` break calls to Slurm and to Kubernetes and count them; `notes` are the events."""

    def __init__(
        self,
        folder: pathlib.Path,
        slurm: PocketSlurm | None = None,
        after_call: Callable[[], None] = lambda: None,
        **options: Any,
    ) -> None:
        self.clock = VirtualClock()
        self.kube = world.PocketKube(clock=self.clock, tokens={"token": access.User(name="bridge")})
        self.slurm = slurm or PocketSlurm(clock=self.clock)
        self._after_call = after_call
        self.line = Line(self._respond, clock=self.clock)
        self.kube_line = Line(self.kube.handler, clock=self.clock)
        self.notes: list[ports.Note] = []
        self._reader = KubeClient(
            DirectAccess(Line(self.kube.handler, clock=self.clock), token="token"),
            clock=self.clock,
            dice=random.Random(1),
        )
        self._token, self._given = folder / "token", options
        self._token.write_text(self.slurm.secret)
        self.restart()

    def _respond(self, request: wire.Request) -> wire.Response:
        answer = self.slurm.handler(request)
        self._after_call()
        return answer

    def restart(self, **options: Any) -> None:
        """Another process takes over, with these options."""
        self._given |= options
        settings = SlurmSettings(
            url="http://pocket", token_file=self._token, cache_ttl=0.0, read_first_pause=0.001, read_longest_pause=0.002
        )
        self.port = SlurmClient(
            settings, clock=self.clock, stop=threading.Event(), connect=lambda _: DirectPool(self.line)
        )
        self.cluster = KubeClient(DirectAccess(self.kube_line, token="token"), clock=self.clock, dice=random.Random(1))
        given = NodePorts(
            cluster=self.cluster,
            slurm=self.port,
            clock=self.clock,
            nodes=self.seen,
            note=self.notes.append,
            slices=self.slices,
        )
        self.controller = NodeController(
            NodeOptions(**{"cluster_id": CLUSTER_ID, "settle_seconds": 0.0, **self._given}), given
        )

    # -- Kubernetes

    def add(self, *nodes: str, labels: dict[str, str] | None = None, **capacity: str) -> None:
        """External nodes whose kubelets have reported everything, unless other labels are given."""
        self.kube.add_nodes(*nodes, capacity={**CAPACITY, **capacity}, labels=EXTERNAL if labels is None else labels)
        for number, name in enumerate(nodes):
            address = [{"type": "InternalIP", "address": f"10.0.0.{number + 1}"}]
            self.kube.merge(kinds.NODES, ("", name), {"status": {"addresses": address}}, "status")

    def change(self, name: str, **changes: Any) -> None:
        """Merge metadata or a spec into a node."""
        self.kube.merge(kinds.NODES, ("", name), changes)

    def label(self, name: str, key: str, value: str | None) -> None:
        self.change(name, metadata={"labels": {key: value}})

    def annotate(self, name: str, key: str, value: str | None) -> None:
        self.change(name, metadata={"annotations": {key: value}})

    def cordon(self, name: str, *, wanted: bool = True) -> None:
        self.change(name, spec={"unschedulable": wanted or None})

    def resize(self, name: str, **capacity: str) -> None:
        """The kubelet reports other resources."""
        amounts = {**CAPACITY, **capacity}
        self.kube.merge(kinds.NODES, ("", name), {"status": {"allocatable": amounts, "capacity": amounts}}, "status")

    def delete(self, name: str) -> None:
        self.kube.delete(kinds.NODES, ("", name))
        self.kube.settle()

    def seen(self) -> tuple[Node, ...]:
        """As an informer has it."""
        return self._reader.list(kinds.NODES).items

    def slices(self) -> tuple[ResourceSlice, ...] | None:
        """As an informer has them."""
        return self._reader.list(kinds.RESOURCESLICES).items

    # -- Slurm

    def node(self, name: str) -> Any:
        """Its record in Slurm, None where there is none."""
        return self.slurm.world.nodes.get(name)

    def drained(self, name: str) -> str | None:
        """The reason, None while it takes jobs."""
        node = self.slurm.world.nodes[name]
        return node.reason if node.drain else None

    def occupy(self, name: str) -> int:
        """A native job of another user holds the node; its id."""
        node = self.slurm.world.nodes[name]
        share = state.Share(node=name, cpus=1, memory_mib=1)
        grant = state.Grant(shares=(share,), partition="debug")
        job = state.SlurmJob(job_id=self.slurm.world.issue_id(), ask=state.RequestedJob(), user="alice")
        self.slurm.world.put(job)
        self.slurm.world.start(job, grant)
        assert node.cpus > 0
        return job.job_id

    # -- the controller

    def settle(self, seconds: float = 0.0) -> int:
        """Passes until nothing is sent; how many sent something. Then time passes, and it is done again."""
        acted = self._passes()
        if seconds:
            self.clock.advance(seconds)
            acted += self._passes()
        return acted

    def _passes(self) -> int:
        for number in range(MOST_PASSES):
            before = len(self.orders())
            self.controller.step()
            if len(self.orders()) == before:
                return number
        raise AssertionError(f"it does not come to rest: {self.orders()[-6:]}")

    def orders(self) -> list[str]:
        """All calls that change something in Slurm."""
        return [f"{call.method} {call.target}" for call in self.line.faults.journal if call.method != "GET"]

    def told(self) -> list[tuple[str, str]]:
        """Events by node and reason."""
        return [(note.name, note.reason) for note in self.notes]
