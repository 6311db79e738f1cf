"""Many applications in many queues, put in order and gone through by the allocation pass of the queue core."""

import dataclasses
import gc
import itertools
import statistics
import time
from collections.abc import Callable

from slurm_bridge.families.yunikorn.queues import amounts, records
from slurm_bridge.families.yunikorn.queues.allocation_pass import Allocated, Passing
from slurm_bridge.families.yunikorn.queues.applications import PendingAsk
from slurm_bridge.families.yunikorn.queues.config import documents
from slurm_bridge.families.yunikorn.queues.node_search import May
from slurm_bridge.families.yunikorn.queues.nodes import PartitionNode, sorts
from slurm_bridge.families.yunikorn.queues.partition import AllocationRules, QueuePartition
from slurm_bridge.families.yunikorn.queues.records import Allocation, AllocationAsk, AskId, NodeMode
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings, SortPolicy
from slurm_bridge.families.yunikorn.queues.tree import Queue

#: What there is of each on every cluster.
APPLICATIONS, QUEUES = 10_000, 500
#: Leaf queues of one parent.
_SIBLINGS = 25

PARTITION = "default"
_UNIT = {"vcore": 1000, "memory": 4 << 30, "pods": 1}
#: An application asks for so many units at most, and has fewer than so many already.
_LARGEST, _MOST = 4, 7
#: What is free on a node of each resource, where room on nodes is not what is short.
_PLENTY = amounts.times(_UNIT, 1_000)
#: Later than this no application has come.
_NOW = float(APPLICATIONS)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """What all workloads wait for, and how much room a node has then."""

    name: str
    mode: NodeMode
    may: May | None


def _anywhere(_waiting: PendingAsk, _node: PartitionNode, _reserving: bool) -> bool:
    return True


#: As the daemon has it (Slurm queues behind the core, which asks about every node), and as a scheduler of its own.
QUOTAS = Shortage(name="quotas", mode=NodeMode.ALLOCATABLE, may=_anywhere)
NODES = Shortage(name="nodes", mode=NodeMode.FREE, may=None)
SHORTAGES = (QUOTAS, NODES)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds of processor time of whole passes: with all put in order anew, after one has ended, without any news."""

    shortage: str
    policy: str
    nodes: int
    anew: float
    one_ended: float
    unchanged: float

    @property
    def longest(self) -> float:
        """What the goal is for."""
        return max(self.anew, self.one_ended)


class Crowd:
    """A partition in which all workloads wait for more, and none gets it until another one gives something up."""

    def __init__(
        self,
        nodes: int,
        shortage: Shortage,
        policy: SortPolicy,
        *,
        queues: int = QUEUES,
        applications: int = APPLICATIONS,
    ) -> None:
        root, self.leaves = grown(queues, QueueSettings(guaranteed=amounts.times(_UNIT, 10), sort_policy=policy))
        # What waits is never old enough to keep a node: that is another case than a pass in which none gets one.
        rules = AllocationRules(mode=shortage.mode, reservation_delay=2 * _NOW)
        self.partition = QueuePartition(root, sorts(), rules)
        self.passing = Passing(self.partition, shortage.may)
        self._names = [f"node-{number:05}" for number in range(nodes)]
        self._turn = itertools.cycle(self._names)
        for name in self._names:
            self.partition.put_node(records.NodeReport(name=name, partition=PARTITION, capacity=_PLENTY))
        for number in range(applications):
            self._submit(number, self.leaves[number * _MOST % queues])
        if shortage.mode is NodeMode.FREE:
            self._fill()
        else:
            for leaf in self.leaves:
                leaf.configure(dataclasses.replace(leaf.settings, max=dict(leaf.allocated)))

    def _submit(self, number: int, leaf: Queue) -> None:
        name = f"application-{number:05}"
        self.partition.add_application(
            records.Application(name=name, partition=PARTITION, queue=leaf.path, submitted=float(number)), leaf
        )
        if number % _MOST:
            has = AllocationAsk(
                key="has", application=name, partition=PARTITION, resource=_UNIT, members=number % _MOST
            )
            nodes = tuple(itertools.islice(self._turn, has.members))
            self.partition.adopt(Allocation(ask=has, nodes=nodes))
        units = 1 + number % _LARGEST
        wants = AllocationAsk(
            key="wants",
            application=name,
            partition=PARTITION,
            resource=amounts.times(_UNIT, units),
            priority=number % 3,
            created=float(number),
            shape=f"{units} units",
        )
        self.partition.add_ask(wants)

    def _fill(self) -> None:
        """Every node has as much as is on it."""
        for node in tuple(self.partition.nodes):
            capacity = dict(node.allocated) or _UNIT
            self.partition.put_node(records.NodeReport(name=node.name, partition=PARTITION, capacity=capacity))

    def tried(self) -> int:
        """A whole pass; how many allocations it gave."""
        return sum(isinstance(one, Allocated) for one in iter(lambda: self.passing.step(_NOW), None))

    def reload(self) -> None:
        """The queues are configured otherwise: nothing that was put in order before is of any use."""
        for leaf in self.leaves:
            leaf.configure(dataclasses.replace(leaf.settings, priority_sorting=not leaf.priority_sorting))
        self.partition.follow(self.partition.rules, sorts(), documents.QueueDocument(name=documents.ROOT))

    def end_one(self, number: int) -> None:
        """An application gives up what it had from the beginning."""
        self.partition.release(AskId(partition=PARTITION, application=f"application-{number:05}", key="has"))


def grown(queues: int, settings: QueueSettings) -> tuple[Queue, list[Queue]]:
    """The root of a tree of two levels below it, and the leaves."""
    root = Queue("root")
    parents = [Queue(f"p{place}", root) for place in range(-(-queues // _SIBLINGS))]
    above = itertools.islice(itertools.cycle(parents), queues)
    return root, [Queue(f"q{place}", parent, leaf=True, settings=settings) for place, parent in enumerate(above)]


def measure(nodes: int, shortage: Shortage, policy: SortPolicy, again: int) -> Timing:
    """Time whole passes, medians of so many."""
    crowd = Crowd(nodes, shortage, policy)
    # Of every seventh application the most has to end; another one each time.
    ending = itertools.count(_MOST - 1, _MOST)
    crowd.tried()
    return Timing(
        shortage=shortage.name,
        policy=policy.value,
        nodes=nodes,
        anew=_median(again, crowd.reload, crowd.tried),
        one_ended=_median(again, lambda: crowd.end_one(next(ending)), crowd.tried),
        unchanged=_median(again, lambda: None, crowd.tried),
    )


def _median(times: int, before: Callable[[], None], act: Callable[[], object]) -> float:
    """Of the second; the first makes it worth while."""
    return statistics.median(_timed(before, act) for _ in range(times))


def _timed(before: Callable[[], None], act: Callable[[], object]) -> float:
    before()
    gc.collect()
    began = time.process_time()
    act()
    return time.process_time() - began
