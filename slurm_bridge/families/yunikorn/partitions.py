"""The hook with `partitions: slurm`: queues for each partition of Slurm, with a core and a thread of their own.

A workload is in the queues of the Slurm partition that it asks for, and of Slurm's default partition where it asks for
none. Nothing is shared between two of them but what the scheduler asks of all: a slow or failing one holds up no other.
"""

import collections
import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.errors import BadConfiguration
from slurm_bridge.families.yunikorn import partition_check, setup
from slurm_bridge.families.yunikorn.hook import Yunikorn
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.families.yunikorn.partition_admin import PartitionsAdmin
from slurm_bridge.families.yunikorn.picture import Picture
from slurm_bridge.families.yunikorn.setup import LOCAL, OFF
from slurm_bridge.hooks.base import GO, Admit, Ask, Fields, Mode, Nodes, Rank, Scores, Session
from slurm_bridge.hooks.evictions import Clearance, Recall
from slurm_bridge.hooks.lifecycle import ActiveUsage
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.hooks.services import CarriedState, HookServices
from slurm_bridge.model import names as keys
from slurm_bridge.model import texts
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.slurmnode import Partition
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload

_LOOK_AGAIN = 120.0
_NO_SCORES = Scores(nodes={})
_NO_FIELDS = Fields()
_ANNOTATION = f"annotation {keys.JOB_PREFIX}partition"


@dataclasses.dataclass(frozen=True, slots=True)
class CarriedPartitions:
    """What outlives a configuration: what each partition hands on, and the partition of each workload."""

    states: dict[str, CarriedState] = dataclasses.field(default_factory=dict)
    where: dict[WorkloadKey, str] = dataclasses.field(default_factory=dict)

    def losses(self, names: Collection[str]) -> tuple[str, ...]:
        """Partitions that are not among these, and cannot go: workloads count in them."""
        used = collections.Counter(self.where.values())
        return tuple(
            f"partition {name}: cannot go while {used[name]} workloads are in its queues"
            for name in self.states
            if name not in names and used[name]
        )


class YunikornPartitions:
    """Each partition is a hook of its own; this one says which of them a workload is for."""

    name = "yunikorn"
    needs = Yunikorn.needs

    def __init__(self, options: YunikornOptions, services: HookServices) -> None:
        found = services.carried.value
        self._carried = found if isinstance(found, CarriedPartitions) else CarriedPartitions()
        self._services, self._mode = services, options.mode
        self._check = partition_check.PartitionCheck(setup.make_all(options, services.clock.wall()))
        shared = self._check.overlaps(services.snapshot())
        problems = (*dict.fromkeys(shared.values()), *self._carried.losses(self._check.setups))
        if problems:
            raise BadConfiguration("\n".join(problems))
        self._hooks = {name: Yunikorn(one.options, self._behind(name), one) for name, one in self._check.setups.items()}
        desks = [one.desk for one in self._hooks.values()]
        self.desk = PartitionsAdmin(options, desks, services.snapshot, self._carried.losses)
        self.evict_seconds, self.reserve_seconds = options.evict_seconds, options.reserve_seconds
        self.reservations = options.reservations if options.mode == LOCAL else 0
        self._seen: Sequence[Partition] = ()
        self._told = frozenset[str]()
        if options.order and options.mode == LOCAL:
            self.order = self._rank

    def _behind(self, name: str) -> HookServices:
        carried = self._carried.states.setdefault(name, CarriedState())
        return dataclasses.replace(self._services, carried=carried)

    # -- what the framework tells ------------------------------------------------------------------------------------

    def restored(self, held: Sequence[ActiveUsage], views: Mapping[Need, View], *, fresh: bool) -> None:
        """Each partition is told of its own workloads. One in a partition without queues counts nowhere."""
        self._services.carried.value = self._carried
        snapshot, where = self._services.snapshot(), self._carried.where
        if fresh:
            where.clear()
        theirs: dict[str, list[ActiveUsage]] = {name: [] for name in self._hooks}
        for one in held:
            name = where.get(one.uid, "")
            name = name if name in theirs else self._known(one.ask, snapshot)
            if name in theirs:
                where[one.uid] = name
                theirs[name].append(one)
        for name, hook in self._hooks.items():
            hook.restored(theirs[name], views, fresh=fresh)

    def _known(self, ask: Ask, snapshot: ClusterSnapshot) -> str:
        """The partition in which it keeps something: the one that has its nodes, whatever it asks for by now."""
        names = self._check.asked(ask.request.partition, snapshot)
        on = {pod.spec.node_name for pod in ask.workload.pods if pod.spec.node_name}
        nodes = [facts.slurm for node in on if (facts := snapshot.nodes.get(node)) is not None and facts.slurm]
        there = {name for node in nodes for name in node.partitions}
        theirs = [name for name in (*names, *self._hooks) if name in there and name in self._hooks]
        return next(iter(theirs), names[0] if len(names) == 1 else "")

    def forget(self, workload: WorkloadKey) -> None:
        """All its pods have nodes, or none of them wants one."""
        hook = self._of(workload)
        if hook is not None:
            hook.forget(workload)

    def ended(self, workload: WorkloadKey) -> None:
        """It keeps nothing, in Slurm or on a node."""
        hook = self._of(workload)
        if hook is not None:
            hook.ended(workload)
            self._carried.where.pop(workload, None)

    def close(self) -> None:
        """Where no other hook has taken over, the cores end."""
        for hook in self._hooks.values():
            hook.close()

    @property
    def dead(self) -> tuple[str, ...]:
        """Threads of a core that have ended without being told to."""
        return tuple(name for hook in self._hooks.values() for name in hook.dead)

    def picture(self) -> Picture | None:
        """That of each partition; None before it is known what runs in them."""
        found = [one for hook in self._hooks.values() if (one := hook.picture()) is not None]
        if not found:
            return None
        return {"mode": self._mode, "partitions": found, "problems": self._check.problems(self._services.snapshot())}

    # -- evictions ---------------------------------------------------------------------------------------------------

    def recalls(self) -> Mapping[WorkloadKey, Recall]:
        """As the queues of all partitions want it; on the way they are measured, for that goes on by itself."""
        snapshot = self._services.snapshot()
        for hook in self._hooks.values():
            hook.measure(snapshot, self._services.clock.wall())
        return {key: one for hook in self._hooks.values() for key, one in hook.recalls().items()}

    def recalled(self, workload: WorkloadKey) -> Recall | None:
        """The same of one workload."""
        hook = self._of(workload)
        return hook.recalled(workload) if hook is not None else None

    def rooms(self) -> Mapping[WorkloadKey, Clearance]:
        """The workloads for which that is."""
        return {key: one for hook in self._hooks.values() for key, one in hook.rooms().items()}

    def gone(self, workload: WorkloadKey) -> None:
        """What it used belongs to the workload for which it was made free."""
        hook = self._of(workload)
        if hook is not None:
            hook.gone(workload)

    def spared(self, workload: WorkloadKey, *, refused: bool) -> None:
        """The queues may want another victim."""
        hook = self._of(workload)
        if hook is not None:
            hook.spared(workload, refused=refused)

    def count(self, what: str, amount: int = 1) -> None:
        """In the metric of what hooks do beside the passes."""
        self._services.counters.happened(self.name, what, amount)

    # -- nodes that are kept -----------------------------------------------------------------------------------------

    def passed(self) -> Sequence[WorkloadKey]:
        """The first of each partition, then the second of each: no partition is served before the others."""
        found = [list(hook.passed()) for hook in self._hooks.values()]
        most = max(map(len, found), default=0)
        return [one[place] for place in range(most) for one in found if place < len(one)]

    def keeps(self, nodes: frozenset[str]) -> None:
        """For their sizes the partitions have them all the same."""
        for hook in self._hooks.values():
            hook.keeps(nodes)

    # -- phases ------------------------------------------------------------------------------------------------------

    def admit(self, session: Session, ask: Ask) -> Admit | Wait | Reject:
        """Whether its queue, in its partition, has let it in."""
        self._tell(session.snapshot)
        for hook in self._hooks.values():
            hook.conclude(session)
        key, real = ask.workload.root.key, session.mode is Mode.REAL
        home = self._home(ask, session.snapshot)
        has_job = session.placed and not isinstance(home, str)
        if real and self._carried.where.get(key) not in (None, home) and not has_job:
            # It asks for another partition now, or for none that has queues: what its job stands for counts until then.
            self.ended(key)
        if not isinstance(home, str):
            return GO if self._mode == OFF else home
        if real:
            self._carried.where[key] = home
        return self._hooks[home].admit(session, ask)

    def commit(self, session: Session, ask: Ask) -> Admit | Wait | Reject:
        """No other hook holds it: it enters its queue now, if it has not yet."""
        hook = self._at(session, ask)
        return hook.commit(session, ask) if hook is not None else GO

    def express(self, session: Session, ask: Ask) -> Fields:
        """What its queue is in Slurm."""
        hook = self._at(session, ask)
        return hook.express(session, ask) if hook is not None else _NO_FIELDS

    def score(self, session: Session, ask: Ask, nodes: Nodes) -> Scores:
        """By the order of nodes that the application or its partition chose."""
        hook = self._at(session, ask)
        return hook.score(session, ask, nodes) if hook is not None else _NO_SCORES

    def verify(self, session: Session, workload: Workload, nodes: Mapping[str, str]) -> Admit:
        """A workload with nodes of its own has them now."""
        hook = self._of(workload.root.key)
        return hook.verify(session, workload, nodes) if hook is not None else GO

    def _rank(self, workload: Workload) -> Rank:
        """In the order in which its queues let it in; those that are in no queue yet come after these."""
        hook = self._of(workload.root.key)
        rank: Rank | None = hook.order(workload) if hook is not None else None
        return rank or Rank(key=(1, -workload.priority, workload.created))

    # -- inside ------------------------------------------------------------------------------------------------------

    def _of(self, workload: WorkloadKey) -> Yunikorn | None:
        return self._hooks.get(self._carried.where.get(workload, ""))

    def _at(self, session: Session, ask: Ask) -> Yunikorn | None:
        """A pass without effects leaves no trace of where it is."""
        hook = self._of(ask.workload.root.key)
        home = self._home(ask, session.snapshot) if hook is None else ""
        return self._hooks.get(home) if isinstance(home, str) and hook is None else hook

    def _home(self, ask: Ask, snapshot: ClusterSnapshot) -> str | Wait | Reject:
        """The partition whose queues it belongs to, or why it has none."""
        names = self._check.asked(ask.request.partition, snapshot)
        if not names and not snapshot.partitions:
            return Wait(reason="QueueWaiting", message="it is not known yet which partitions Slurm has")
        if len(names) != 1 or names[0] not in self._hooks:
            return Reject(reason="QueueRejected", message=self._nowhere(names))
        shared = self._check.overlaps(snapshot).get(names[0])
        if shared is not None:
            return Wait(reason="QueueWaiting", message=shared, retry_after=_LOOK_AGAIN, warning=True)
        return names[0]

    def _nowhere(self, names: Sequence[str]) -> str:
        there = ", ".join(sorted(self._hooks))
        if len(names) > 1:
            return (
                f"asks for the Slurm partitions {texts.listed(names)}, and a workload is in the queues of one: "
                f"name one of {there} in the {_ANNOTATION}"
            )
        if names:
            return f"Slurm partition {names[0]} has no queues: partitions with queues are {there}"
        return f"names no Slurm partition, and Slurm has no default: name one of {there} in the {_ANNOTATION}"

    def _tell(self, snapshot: ClusterSnapshot) -> None:
        """Log what is wrong between the queues and Slurm's partitions, when it is something else than before."""
        if snapshot.partitions is self._seen:
            return
        self._seen, found = snapshot.partitions, frozenset(self._check.problems(snapshot))
        for problem in sorted(found - self._told):
            self._services.log.warning(f"configuration of the queues: {problem}")
        self._told = found


class QueuesBuilder:
    """Makes the hook that the options ask for."""

    Options: ClassVar = YunikornOptions
    services = True

    def __call__(self, options: YunikornOptions, services: HookServices) -> Yunikorn | YunikornPartitions:
        """One set of queues for all of Slurm, or one for each partition."""
        return Yunikorn(options, services) if options.partitions == "one" else YunikornPartitions(options, services)


builder = QueuesBuilder()
