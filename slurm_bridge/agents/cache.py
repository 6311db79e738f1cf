"""What an agent knows: nodes and their pods as the API server tells, and Slurm's nodes where its shard needs them."""

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.informers.informer import Informer
from slurm_bridge.informers.reflector import ReflectorSubject
from slurm_bridge.model import kinds
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.slurmnode import Partition, SlurmNode
from slurm_bridge.telemetry.collectors import InformerNumbers
from slurm_bridge.translate import resources

#: The time between two looks at Slurm's partitions: only administrators change them.
LOOK: Final = 30.0
#: The same after a look that failed.
RETRY: Final = 2.0

#: Pods that take something of a node now.
_PLACED: Final = ports.Scope(fields="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")


class Machines(Protocol):
    """The part of Slurm that says which nodes are in a partition."""

    def nodes(self) -> Sequence[SlurmNode]: ...

    def partitions(self) -> Sequence[Partition]: ...


class AgentCache:
    """Filled by watches; read by any thread. `machines` None: what Slurm says is not needed."""

    def __init__(
        self,
        cluster: ports.Cluster,
        clock: ports.Clock,
        dice: random.Random,
        *,
        machines: Machines | None = None,
        partition: str = "",
    ) -> None:
        self._cluster, self._clock, self._dice = cluster, clock, dice
        self._machines, self._partition = machines, partition
        self._keeper = ClusterCache(resources.requests_of)
        self._unknown = "" if machines is None else "not asked yet"
        self._informers = {
            "nodes": self._informer(kinds.NODES, ports.EVERYWHERE, self._keeper.on_node),
            "pods": self._informer(kinds.PODS, _PLACED, self._keeper.on_pod),
        }

    def snapshot(self) -> ClusterSnapshot:
        """The whole cluster now, of which a shard is a part."""
        return self._keeper.snapshot()

    def start(self) -> None:
        """Follow the API server."""
        for informer in self._informers.values():
            informer.start()

    def stop(self) -> None:
        """Follow it no more."""
        for informer in self._informers.values():
            informer.stop()

    def problem(self) -> str:
        """What is missing before anything can be answered; empty when nothing is."""
        missing = [name for name, informer in self._informers.items() if not informer.store.synced]
        if missing:
            return f"not listed yet: {', '.join(missing)}"
        return f"Slurm's partition {self._partition}: {self._unknown}" if self._unknown else ""

    def dead(self) -> tuple[str, ...]:
        """Watches whose thread has ended."""
        return tuple(name for name, informer in self._informers.items() if not informer.alive)

    def numbers(self) -> dict[str, Callable[[], InformerNumbers]]:
        """What each watch shows of itself."""
        return {name: one.numbers for name, one in self._informers.items()}

    def follow_slurm(self, stop: threading.Event) -> None:
        """The thread that asks Slurm; without a need for it, it only waits for the stop."""
        while not stop.is_set():
            self._clock.wait(stop, LOOK if self._machines is None or self._look(self._machines) else RETRY)

    def _look(self, machines: Machines) -> bool:
        """What was known stays known while Slurm does not answer."""
        try:
            nodes, partitions = machines.nodes(), machines.partitions()
        except errors.BridgeError as problem:
            logger.warning("cannot read Slurm's nodes and partitions: {}", problem)
            self._unknown = str(problem) if self._unknown else ""
            return False
        self._keeper.set_slurm(nodes, partitions)
        names = sorted(one.name for one in partitions)
        self._unknown = "" if self._partition in names else f"there is none of this name; there are {', '.join(names)}"
        return not self._unknown

    def _informer(self, kind: Kind[Any], scope: ports.Scope, handler: Callable[[Any, Any], None]) -> Informer[Any]:
        subject = ReflectorSubject(cluster=self._cluster, kind=kind, scope=scope)
        return Informer(subject, clock=self._clock, dice=self._dice, handlers=(handler,))
