"""A core that preempts by its configuration, with a manager that does as it is told, for several tests."""

from typing import Any

from slurm_bridge.families.yunikorn.queues.records import AllocationRelease, AskId, Update, Why
from tests.unit.families.yunikorn.queues.support_configs import queue
from tests.unit.families.yunikorn.queues.support_core import FakeManager, World, application, ask, documented, node

#: Longer than an ask waits before anything is preempted for it.
PATIENCE = 31


class Site:
    """Queues, nodes of ten vcores, and what has run or ended there."""

    def __init__(
        self, *queues: Any, nodes: int = 2, fields: dict[str, Any] | None = None, schedulers: int = 1, **options: Any
    ) -> None:
        self.world = World(preemptor=None, schedulers=schedulers)
        self.document = documented(*(queues or two()), **(fields or {}))
        self.manager: FakeManager = self.world.register(self.document, **options)
        self.world.update(nodes=tuple(node(f"n{number}") for number in range(1, nodes + 1)))
        self.confirmed = 0

    # -- what happens ------------------------------------------------------------------------------------------------

    def submit(self, name: str, where: str, *vcores: int, **fields: Any) -> None:
        """An application with an ask for each of these."""
        now = self.world.clock.wall()
        self.world.update(applications=(application(name, where, submitted=now),))
        self.more(name, *vcores, **fields)

    def more(self, name: str, *vcores: int, first: int = 0, **fields: Any) -> None:
        """Further asks of it, all of this moment."""
        now = self.world.clock.wall()
        asks = tuple(
            ask(name, f"{name}-{first + number}", amount, **{"created": now, **fields})
            for number, amount in enumerate(vcores)
        )
        self.world.update(asks=asks)
        self.world.settle()

    def later(self, seconds: float = PATIENCE) -> None:
        """So much time goes by."""
        self.world.clock.advance(seconds)
        self.world.settle()

    def end(self, *keys: AskId, why: Why = Why.ASKED) -> None:
        """These are over."""
        self.world.update(releases=tuple(AllocationRelease(id=key, why=why) for key in keys))
        self.world.settle()

    def confirm(self) -> None:
        """All that are to go have gone."""
        waiting = self.manager.evictions[self.confirmed :]
        self.confirmed += len(waiting)
        self.end(*(one.victim for one in waiting), why=Why.PREEMPTED)

    def refuse(self) -> None:
        """None of those that are to go can."""
        waiting = self.manager.evictions[self.confirmed :]
        self.confirmed += len(waiting)
        self.world.core.update(Update(rm="rm", spared=tuple(one.victim for one in waiting)))
        self.world.settle()

    # -- what there is -----------------------------------------------------------------------------------------------

    @property
    def evicted(self) -> list[str]:
        """The keys of all that were to go, in order."""
        return [one.victim.key for one in self.manager.evictions]

    @property
    def running(self) -> list[str]:
        """The keys of all allocations that are committed."""
        applications = self.world.committed().applications.values()
        return sorted(key for one in applications for key in one.allocations)

    def used(self, path: str) -> int:
        """The vcores of a queue below the root, in thousandths."""
        here = self.world.committed().root
        for name in path.split("."):
            here = here.children[name]
        return int(here.allocated.get("vcore", 0))

    def marked(self) -> dict[str, int]:
        """What is being taken back."""
        assert self.world.committed().root.preempting == self.world.scheduled().root.preempting
        return dict(self.world.scheduled().root.preempting)


def two(**borrower: Any) -> tuple[Any, Any]:
    """Queue `a` is guaranteed ten vcores, queue `b` nothing."""
    return queue("a", resources={"guaranteed": {"vcore": "10"}}), queue("b", **borrower)
