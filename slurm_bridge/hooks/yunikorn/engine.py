"""The core with its threads, and the one node that stands for all of Slurm."""

from collections.abc import Callable, Mapping

from slurm_bridge.hooks.background import Backstage
from slurm_bridge.hooks.yunikorn.setup import PARTITION, Setup
from slurm_bridge.queues import naming
from slurm_bridge.queues.committed import Partition
from slurm_bridge.queues.config.documents import Document
from slurm_bridge.queues.core import Core
from slurm_bridge.queues.ledger import RejectedApplication
from slurm_bridge.queues.ports import Callback
from slurm_bridge.queues.quantities import LARGEST
from slurm_bridge.queues.records import Mode, Node, Registration, Update
from slurm_bridge.runtime.threads import Supervisor

RM = "slurm-bridge"
#: The one node.
SLURM = "slurm"


class Engine:
    """Without threads the core does everything when it is told."""

    def __init__(self, backstage: Backstage) -> None:
        self._backstage = backstage
        self._core = Core(backstage.clock, self._report)
        self._kinds: set[str] = set()
        self._size: Mapping[str, int] = {}
        self._threads: Supervisor | None = None
        self._began = self._settling = False

    def begin(self, document: Document, manager: Callback, known: Update) -> None:
        """Register with all that is known already; it has come to something before anybody else is heard."""
        registration = Registration(rm=RM, configuration=document, mode=Mode.ALLOCATABLE, predicates=True)
        self._core.register_resource_manager(registration, manager)
        self._core.update(known)
        self._core.settle()
        self._began = True
        if self._backstage.threads:
            self._threads = Supervisor(lambda name, error: self._report(name, error or RuntimeError("it ended")))
            for name, target in self._core.tasks():
                self._threads.add(name, target)
            self._threads.start()

    def close(self) -> None:
        """The threads end; nothing is decided any more."""
        if self._threads is not None:
            self._threads.stop.set()

    def send(self, update: Update) -> None:
        """Tell the core."""
        self._core.update(update)
        self.turn()

    def turn(self) -> None:
        """Without threads: let it do what there is to do, also because time has passed."""
        # What is sent from within the callback is handled by whoever has called it.
        if self._began and not self._backstage.threads and not self._settling:
            self._settling = True
            try:
                self._core.settle()
            finally:
                self._settling = False

    # -- the node ----------------------------------------------------------------------------------------------------

    def widened(self, total: Mapping[str, int]) -> tuple[Node, ...]:
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
    def is_measured(self) -> bool:
        """It is known how large the cluster is: who makes room for somebody then makes it there, too."""
        return bool(self._size)

    def nudge(self) -> None:
        """Have the core look again at those who found nobody's place."""
        self.send(Update(rm=RM, nodes=(self._node(),)))

    def _node(self) -> Node:
        capacity = dict.fromkeys(self._kinds, LARGEST)
        return Node(name=SLURM, partition=PARTITION, capacity=capacity, size=self._size)

    # -- what is shown -----------------------------------------------------------------------------------------------

    def check(self, setup: Setup) -> None:
        """Refused where this configuration cannot take the place of the one in force."""
        self.committed(lambda known: known.check(setup.partition))

    def committed(self, look: Callable[[Partition], object]) -> object:
        """What somebody sees who looks at the committed state; None before there is any."""
        with self._core.cache.ledger.lock:
            known = self._core.cache.ledger.partitions.get(naming.normalised(RM, PARTITION))
            return look(known) if known is not None else None

    @property
    def rejected(self) -> tuple[RejectedApplication, ...]:
        """The last ones that no queue took."""
        return self._core.cache.rejected

    def _report(self, name: str, error: Exception) -> None:
        self._backstage.tally.happened("yunikorn", "error")
        self._backstage.log.warning(f"queue core: {name}: {type(error).__name__}: {error}")
