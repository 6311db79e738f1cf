"""Clusters in which something may be preempted, for several tests."""

import itertools
from collections.abc import Iterable, Mapping

from slurm_bridge.families.yunikorn.queues import amounts, tree
from slurm_bridge.families.yunikorn.queues.amounts import Amount
from slurm_bridge.families.yunikorn.queues.preemptors import attempts, facts
from slurm_bridge.families.yunikorn.queues.preemptors.facts import (
    Asker,
    AttemptAllocation,
    AttemptRefused,
    AttemptScene,
    ImaginedNodes,
    Outcome,
    Planned,
)
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings
from slurm_bridge.families.yunikorn.queues.tree import Queue
from tests.unit.families.yunikorn.queues.support_trees import root_of


class Cluster:
    """Queues, nodes and what runs; each allocation is newer than those before it."""

    def __init__(
        self,
        *paths: str,
        nodes: Mapping[str, Amount] | None = None,
        settings: Mapping[str, QueueSettings] | None = None,
    ) -> None:
        self.root = root_of(*paths, settings=settings)
        self.capacity = dict(nodes or {})
        self.running: dict[str, AttemptAllocation] = {}
        self._times = itertools.count()

    def queue(self, path: str) -> Queue:
        found = tree.find(self.root, f"root.{path}")
        assert found is not None, path
        return found

    def run(self, key: str, queue: str, *nodes: str, resource: Amount, **details: object) -> AttemptAllocation:
        """An allocation with a member on each of these nodes."""
        facts_of_it = {"created": float(next(self._times)), **details}
        standing = AttemptAllocation(key=key, queue=self.queue(queue), resource=resource, nodes=nodes, **facts_of_it)  # type: ignore[arg-type]
        self.take(standing)
        return standing

    def take(self, standing: AttemptAllocation) -> None:
        self.running[str(standing.key)] = standing
        standing.queue.allocate(total(standing))

    def end(self, standing: AttemptAllocation) -> None:
        del self.running[str(standing.key)]
        standing.queue.release(total(standing))

    def serve(self, asker: Asker, plan: Planned) -> None:
        """Carry the plan out: the victims end, the ask runs on the nodes that were held for it."""
        for victim in plan.victims:
            self.end(victim)
        self.take(
            AttemptAllocation(
                key=asker.key,
                queue=asker.queue,
                resource=asker.resource,
                nodes=plan.nodes,
                priority=asker.priority,
                created=float(next(self._times)),
            )
        )

    def ask(self, queue: str, resource: Amount, *, members: int = 1, priority: int = 0, key: str = "ask") -> Asker:
        return Asker(key=key, queue=self.queue(queue), resource=resource, members=members, priority=priority)

    def scene(self, **details: object) -> AttemptScene:
        rooms = ImaginedNodes(facts.room(name, most, self.running.values()) for name, most in self.capacity.items())
        return AttemptScene(standing=self.standing, nodes=rooms, **details)  # type: ignore[arg-type]

    def standing(self, queue: Queue) -> list[AttemptAllocation]:
        return [one for one in self.running.values() if one.queue is queue]

    def attempt(self, asker: Asker, **details: object) -> Outcome:
        return attempts.try_preemption(asker, self.scene(**details))


def total(standing: AttemptAllocation) -> Amount:
    """What all its members have."""
    return amounts.times(standing.resource, len(standing.nodes))


def victims(outcome: Outcome) -> list[str]:
    """Their keys, in order; the reason fails the test where there is no plan."""
    assert isinstance(outcome, Planned), outcome
    return [str(victim.key) for victim in outcome.victims]


def reason(outcome: Outcome) -> str:
    """Why nothing is preempted."""
    assert isinstance(outcome, AttemptRefused), outcome
    return outcome.reason.value


def guarantees(**guaranteed: Amount) -> dict[str, QueueSettings]:
    """Settings by path below the root, which is written with underscores."""
    return {f"root.{path.replace('_', '.')}": QueueSettings(guaranteed=amount) for path, amount in guaranteed.items()}


def below(queues: Iterable[Queue]) -> dict[str, set[str]]:
    """By queue, the types of its guarantee that it does not have."""
    return {
        queue.path: {kind for kind, least in (queue.guaranteed or {}).items() if queue.allocated.get(kind, 0) < least}
        for queue in queues
    }
