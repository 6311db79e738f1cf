"""The core with its one thread, and the one node that stands for all of Slurm."""

import functools
from collections.abc import Callable, Mapping

from slurm_bridge.families.shared.inline import InlineBudget
from slurm_bridge.families.yunikorn.queues import partition_names
from slurm_bridge.families.yunikorn.queues.committed import CommittedPartition
from slurm_bridge.families.yunikorn.queues.config.documents import Document
from slurm_bridge.families.yunikorn.queues.core import QueueCore
from slurm_bridge.families.yunikorn.queues.ledger import RejectedApplication
from slurm_bridge.families.yunikorn.queues.ports import Callback
from slurm_bridge.families.yunikorn.queues.quantities import LARGEST
from slurm_bridge.families.yunikorn.queues.records import NodeMode, NodeReport, Registration, Rooms, Update
from slurm_bridge.families.yunikorn.setup import PARTITION, Setup
from slurm_bridge.families.yunikorn.turns import PATIENCE, CoreTurns
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.runtime.threads import Supervisor

RM = "slurm-bridge"
#: The one node.
SLURM = "slurm"


class Engine:
    """The core works when it is told something, where that is quickly done. Without threads it always does.

    That of a `partition` works in its own thread only: those that tell it something do not wait for a slow pass.
    """

    def __init__(self, services: HookServices, inline: InlineBudget | None = None, partition: str = "") -> None:
        self._services = services
        self._core = QueueCore(services.clock, self._report)
        self._kinds: set[str] = set()
        self._size: Mapping[str, int] = {}
        failed = functools.partial(self._report, "pass")
        own = bool(partition)
        self._name = f"queue core {partition}".strip()
        self._turns = CoreTurns(
            self._core.settle, failed, services.clock, threads=services.threads, inline=inline, own=own
        )
        self._threads: Supervisor | None = None
        self._began = False

    def begin(self, document: Document, manager: Callback, known: Update, rooms: Rooms | None = None) -> None:
        """Register with all that is known already; it is settled before other requests are handled."""
        registration = Registration(
            rm=RM, configuration=document, mode=NodeMode.ALLOCATABLE, predicates=True, rooms=rooms
        )
        self._core.register_resource_manager(registration, manager)
        self._core.update(known)
        self._core.settle()
        self._began = True
        if self._services.threads:
            self._threads = Supervisor(lambda name, error: self._report(name, error or RuntimeError("it ended")))
            self._threads.add(self._name, self._turns.serve)
            self._threads.start()

    def close(self) -> None:
        """The thread ends; nothing is decided any more, whatever is still reported."""
        self._began = False
        if self._threads is not None:
            self._threads.stop.set()
            self._turns.wake()

    @property
    def dead(self) -> tuple[str, ...]:
        """Its thread, if that has ended without being told to."""
        return (self._name,) if self._threads is not None and self._threads.failed else ()

    def send(self, update: Update) -> None:
        """Tell the core, and let it work."""
        self._core.update(update)
        self.turn()

    def ask(self, update: Update) -> None:
        """Tell the core, and have its answer where that is quick. The caller holds no lock that a callback takes."""
        self._core.update(update)
        if self._began:
            self._turns.take(PATIENCE)

    def leave(self, update: Update) -> None:
        """Tell the core something for which no caller waits."""
        self._core.update(update)
        if self._began:
            self._turns.leave()

    def turn(self) -> None:
        """Let it do what there is to do, also because time has passed."""
        if self._began:
            self._turns.take()

    @property
    def may_take_time(self) -> bool:
        """Whether a question of the core may be answered slowly; else its own thread is woken, which asks again."""
        if not self._turns.may_take_time:
            self._turns.wake()
        return self._turns.may_take_time

    # -- the node ----------------------------------------------------------------------------------------------------

    def widened(self, total: Mapping[str, int]) -> tuple[NodeReport, ...]:
        """The node, where it has to hold something that it did not before."""
        if total.keys() <= self._kinds:
            return ()
        self._kinds |= total.keys()
        return (self._node(),)

    def measure(self, size: Mapping[str, int]) -> bool:
        """So large is the cluster; whether that is news."""
        changed = size != self._size
        self._size = size
        return changed

    @property
    def size(self) -> Mapping[str, int]:
        """As it was measured last; nothing before that."""
        return self._size

    @property
    def is_measured(self) -> bool:
        """The size of the cluster is known: preemption makes room there, too."""
        return bool(self._size)

    def nudge(self) -> None:
        """Have the core look again at asks without a place."""
        self.leave(Update(rm=RM, nodes=(self._node(),)))

    def _node(self) -> NodeReport:
        capacity = dict.fromkeys(self._kinds, LARGEST)
        return NodeReport(name=SLURM, partition=PARTITION, capacity=capacity, size=self._size)

    # -- what is shown -----------------------------------------------------------------------------------------------

    def check(self, setup: Setup) -> None:
        """Refused where this configuration cannot take the place of the one in force."""
        self.committed(lambda known: known.check(setup.partition))

    def committed(self, look: Callable[[CommittedPartition], object]) -> object:
        """The committed state as it is shown; None before there is any."""
        with self._core.cache.ledger.lock:
            known = self._core.cache.ledger.partitions.get(partition_names.normalised(RM, PARTITION))
            return look(known) if known is not None else None

    @property
    def rejected(self) -> tuple[RejectedApplication, ...]:
        """The last ones that no queue took."""
        return self._core.cache.rejected

    def _report(self, name: str, error: Exception) -> None:
        self._services.counters.happened("yunikorn", "error")
        self._services.log.warning(f"{self._name}: {name}: {type(error).__name__}: {error}")
