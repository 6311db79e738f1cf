"""The daemon's own core between two recorders: fed by hand, and heard when it says that it was surprised."""

import functools
import pathlib
import random
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import loguru
import msgspec

from slurm_bridge import ports
from slurm_bridge.daemon import assembly, configuration
from slurm_bridge.hooks import needs
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.informers.store import Store
from slurm_bridge.kube import codec
from slurm_bridge.model import kinds
from slurm_bridge.model.job import Gres
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import Partition, SlurmNode
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.settings.model import Settings
from slurm_bridge.workloads import kind_table, known
from tests.component.scheduler import whole_core
from tests.fuzz import recorder, rules, runner
from tests.fuzz.strangers import Shelf
from tests.simulation import families

_POLICY: Mapping[str, Any] = {"name": "policy", "options": rules.POLICY}
_ELIGIBILITY: Mapping[str, Any] = {"name": "eligibility"}
#: What comes after policy and eligibility, for each chain of hooks.
CHAINS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "plain": (),
    "kube-scheduler": ({"name": "kube-scheduler"},),
    "vela": (families.VELA,),
    "kai": (families.KAI,),
    "yunikorn": (families.queues(10_000),),
    "preemption": ({"name": "kube-scheduler"}, {"name": "preemption"}),
}


@functools.cache
def settings(chain: str) -> Settings:
    """As shipped, with these hooks and a policy for two namespaces."""
    return whole_core.configured(pathlib.Path("/nowhere"), hooks=[_POLICY, _ELIGIBILITY, *CHAINS[chain]])


class Errors:
    """What the core logs when it catches something unexpected."""

    def __init__(self) -> None:
        self.caught: list[str] = []

    def listen(self) -> None:
        """In place of every other listener: thousands of cases are not worth a log."""
        loguru.logger.remove()
        loguru.logger.add(self._hear, level="WARNING", backtrace=False, diagnose=False)

    def leave(self) -> None:
        """As it was."""
        loguru.logger.remove()
        loguru.logger.add(sys.stderr)

    def _hear(self, message: "loguru.Message") -> None:
        found = message.record["exception"]
        if found is not None and found.value is not None:
            self.caught.append(runner.place(found.value))


ERRORS = Errors()


def nodes(count: int) -> tuple[list[Node], list[SlurmNode]]:
    """The same machines on either side, some of them with GPUs."""
    mine, theirs = [], []
    for number in range(1, count + 1):
        gpus = 4 if number % 4 == 0 else 0
        mine.append(_node(f"n{number}", gpus))
        gres = (Gres(name="gpu", count=gpus, type="v100"),) if gpus else ()
        states = frozenset({"IDLE", "EXTERNAL"})
        theirs.append(SlurmNode(name=f"n{number}", states=states, cpus=64, memory_mib=256_000, gres=gres))
    return mine, theirs


def _node(name: str, gpus: int) -> Node:
    capacity = {"cpu": "64", "memory": "256000Mi", "pods": "110", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    metadata = {"name": name, "uid": f"node-{name}", "resourceVersion": "1"}
    metadata["labels"] = {"kubernetes.io/hostname": name, "zone": f"z{len(name)}"}
    status = {"allocatable": capacity, "capacity": capacity, "conditions": [{"type": "Ready", "status": "True"}]}
    return codec.codec(kinds.NODES).one(msgspec.json.encode({"metadata": metadata, "status": status}))


@functools.cache
def machines(count: int) -> tuple[Sequence[Node], Sequence[SlurmNode], Sequence[Partition]]:
    """Made once, as they never change."""
    mine, theirs = nodes(count)
    every = tuple(one.name for one in theirs)
    parts = [Partition(name=name, states=frozenset({"UP"}), nodes=every) for name in ("debug", "batch", "secret")]
    return mine, theirs, parts


class Mind:
    """One core that knows some machines, and the objects of a shelf."""

    def __init__(self, shelf: Shelf, *, chain: str = "plain", size: int = 8) -> None:
        self.clock = VirtualClock()
        self._others: list[Pod] = []
        mine, theirs, parts = machines(size)
        self.cluster, self.slurm = recorder.Cluster(shelf), recorder.Slurm(theirs, parts)
        self.stores = {kind: _store(kind, shelf) for kind in kind_table.WATCHED}
        self.told = whole_core.Told()
        #: What hooks see beside nodes and pods.
        self.seen: dict[needs.Need, Store[Any]] = {}
        around = ChainServices(
            clock=self.clock,
            dice=random.Random(4),
            settle=configuration.settle(),
            limits=configuration.attempt_limits(settings(chain)),
            threads=False,
        )
        outside = assembly.CoreInputs(
            cluster=self.cluster,
            slurm=self.slurm,
            clock=self.clock,
            dice=random.Random(3),
            known=known.Stores(self.stores),
            counters=self.told,
            around=around,
            views=self._views,
        )
        made = assembly.build(settings(chain), outside)
        self.core, self.reporter = made.core, made.reporter
        for node in mine:
            self.core.on_node(None, node)
        self.core.facts_step()
        self.begin(shelf)

    def look(self) -> bool:
        """The next workload; False when there is none."""
        return self.core.schedule_step()

    def pods(self, *pods: Pod) -> None:
        """They appear."""
        for pod in pods:
            self.core.on_pod(None, pod)

    def others(self, *pods: Pod) -> None:
        """They run, and another scheduler has placed them."""
        for pod in pods:
            self.core.on_other_pod(None, pod)
        self._others += pods

    def begin(self, shelf: Shelf) -> None:
        """Begin without pods, and with these objects: like a new core, for less time."""
        for pod in [pod for uid in self.core.pod_index.uids() if (pod := self.core.pod_index.get(uid)) is not None]:
            self.core.on_pod(pod, None)
        for other in self._others:
            self.core.on_other_pod(other, None)
        self._others.clear()
        for placeholder in self.core.context.table.all():
            self.core.context.table.drop(placeholder.job_id)
        while self.look():
            pass
        # Long enough for whatever is remembered of refusals, owners and nodes.
        self.clock.advance(3600.0)
        self.slurm.clear()
        self.cluster.shelf = shelf
        for recorded in (self.cluster.said, self.cluster.deleted, self.cluster.bound, ERRORS.caught):
            recorded.clear()
        for seen in self.seen.values():
            seen.replace(ports.Listing(items=(), resource_version="1"))
        for kind, store in self.stores.items():
            store.replace(ports.Listing(items=shelf.all(kind), resource_version="1"))

    def _views(self, wanted: frozenset[needs.Need]) -> Mapping[needs.Need, needs.View]:
        """Empty at first."""
        for need in wanted:
            self.seen.setdefault(need, Store()).mark_synced()
        return {need: self.seen[need] for need in wanted}


def _store(kind: kinds.Kind[Any], shelf: Shelf) -> Store[Any]:
    made: Store[Any] = Store(kind_table.INDEXES.get(kind))
    made.replace(ports.Listing(items=shelf.all(kind), resource_version="1"))
    made.mark_synced()
    return made
