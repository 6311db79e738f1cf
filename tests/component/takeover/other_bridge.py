"""A cluster that another bridge has scheduled, and the command that takes it over, between the pocket servers."""

import dataclasses
import json
import random
import threading
from collections.abc import Callable
from typing import Any

from slurm_bridge.kube.client import KubeClient
from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from slurm_bridge.slurm.client import SlurmClient
from slurm_bridge.slurm.settings import SlurmSettings
from slurm_bridge.takeover import handover
from slurm_bridge.takeover.handover import HandoverOrder
from slurm_bridge.takeover.steps import OurNames
from slurm_bridge.workloads import base, known
from tests.component.scheduler.whole_core import Bridge
from tests.direct_kube import DirectAccess
from tests.direct_line import Line
from tests.direct_pool import DirectPool
from tests.simulation.observer import CLUSTER_ID
from tests.simulation.world import NAMESPACE

FINALIZER = "scheduler.slinky.slurm.net/finalizer"
TAINT = {"key": "slinky.slurm.net/managed-node", "value": names.SCHEDULER_NAME, "effect": "NoExecute"}
#: An administrator's own, with the time at which it was added.
OWN_TAINT = {"key": "site/own", "effect": "NoExecute", "value": "x", "timeAdded": "2026-01-01T00:00:00Z"}
LEASE = (NAMESPACE, "slurm-bridge")


@dataclasses.dataclass
class Takeover:
    """The command in a world, and all lines that it has printed."""

    bridge: Bridge
    lines: list[str] = dataclasses.field(default_factory=list)
    kube_calls: faults.Faults = dataclasses.field(default_factory=faults.Faults)
    slurm_calls: faults.Faults = dataclasses.field(default_factory=faults.Faults)

    def run(self, *, back: bool = False, apply: bool = True, force: bool = False, every: bool = True) -> int:
        """One life of it; the exit status."""
        cluster, slurm = self.cluster(), self._slurm()
        memory, options = known.DirectObjects(cluster), known.Options()
        ours = OurNames(
            cluster_id=CLUSTER_ID,
            scheduler_names=(names.SCHEDULER_NAME,),
            claim=lambda pod: base.claim(pod, memory, options),
        )
        order = HandoverOrder(names=ours, lease=LEASE, back=back, apply=apply, force=force, every=every)
        return handover.run(order, cluster, slurm, self.bridge.clock, self.lines.append)

    def cluster(self) -> KubeClient:
        """Kubernetes as the command reaches it."""
        kube = self.bridge.kube
        line = Line(kube.handler, clock=self.bridge.clock, faults=self.kube_calls)
        return KubeClient(DirectAccess(line, token=kube.token), clock=self.bridge.clock, dice=random.Random(1))

    def _slurm(self) -> SlurmClient:
        line = Line(self.bridge.slurm.handler, clock=self.bridge.clock, faults=self.slurm_calls)
        chosen = SlurmSettings(
            url="http://slurm", token_file=self.bridge.folder / "token", api_versions=("v0.0.45",), cache_ttl=0.0
        )
        return SlurmClient(chosen, clock=self.bridge.clock, stop=threading.Event(), connect=lambda _: DirectPool(line))

    def writes(self) -> int:
        """How many calls have changed something, or tried to."""
        made = (*self.kube_calls.journal, *self.slurm_calls.journal)
        return sum(one.method != "GET" for one in made)


def job(bridge: Bridge, *pods: str, waits: bool = False, **fields: Any) -> int:
    """A job of the other bridge, with its record."""
    record = json.dumps({"pods": [f"{NAMESPACE}/{pod}" for pod in pods]}, separators=(",", ":"))
    memory = {"set": True, "number": 500 * len(pods)}
    fields = {
        "admin_comment": record,
        "tasks": len(pods),
        "memory_per_node": memory,
        **({"priority": 0} if waits else {}),
        **fields,
    }
    job_id = bridge.world.submit("-".join(pods), **fields)
    bridge.world.pass_time(2)
    return job_id


def nodes_of(bridge: Bridge, job_id: int) -> list[str]:
    """Kubernetes' names of the nodes that a job holds."""
    grant = bridge.slurm.world.jobs[job_id].grant
    assert grant is not None
    by_slurm = {slurm: kube for kube, slurm in bridge.world.fleet.nodes.items()}
    return [by_slurm[name] for name in grant.nodes]


def pod(bridge: Bridge, name: str, job_id: int, node: str = "", **changes: Any) -> str:
    """One of its pods, bound or not."""
    labels = {names.LABEL_JOB_ID: str(job_id), **changes.pop("labels", {})}
    annotations = {names.ANNOTATION_SLURM_NODE: node} if node else {}
    spec = {"nodeName": node} if node else {}
    spec |= changes.pop("spec", {})
    finalizers = [*changes.pop("finalizers", ["site/keeps-it"] if node else []), FINALIZER]
    return bridge.pod(name, labels=labels, annotations=annotations, finalizers=finalizers, spec=spec, **changes)


def running(bridge: Bridge, name: str, **changes: Any) -> int:
    """A pod on the node of its running job."""
    job_id = job(bridge, name)
    pod(bridge, name, job_id, nodes_of(bridge, job_id)[0], finalizers=[], **changes)
    return job_id


def waiting(bridge: Bridge, name: str) -> int:
    """A pod whose job pends."""
    job_id = job(bridge, name, waits=True)
    pod(bridge, name, job_id)
    return job_id


def tainted(bridge: Bridge) -> None:
    """Every node has the taint of the other bridge beside one of the administrator's."""
    for name in bridge.world.fleet.nodes:
        there = [OWN_TAINT, TAINT] if name == "n1" else [TAINT]
        bridge.kube.merge(kinds.NODES, ("", name), {"spec": {"taints": there}})


def taints(bridge: Bridge, node: str) -> list[Any]:
    """The taints of a node."""
    found = bridge.kube.get(kinds.NODES, "", node)
    assert found is not None
    return list(found["spec"].get("taints") or ())


def killed_before(number: int) -> Callable[[], object]:
    """Raises when it is called for this time."""
    left = [number]

    def strike() -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Ended

    return strike


class Ended(BaseException):
    """The process was killed."""
