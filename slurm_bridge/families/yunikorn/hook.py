"""The hook "yunikorn": workloads wait in queues until these let them in, and go to what their queue is in Slurm.

admit    known to no queue: it enters one, and waits      commit   one that was held up by another hook before
         no queue takes it: refused                                enters its queue only now
         its queue has not let it in: waits, and why      order    as the queues have let them in
         let in, or in Slurm already: goes on             express  account, qos and partition of the queue
verify   one with whole nodes counts as those it has
"""

import dataclasses
import functools
import threading
from collections.abc import Mapping, Sequence
from typing import ClassVar

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.yunikorn import (
    admin,
    demands,
    node_scores,
    node_sorts,
    people,
    picture,
    queue_reasons,
    restorer,
    setup,
    whole_nodes,
)
from slurm_bridge.families.yunikorn.manager import Manager
from slurm_bridge.families.yunikorn.members import QueueMember, Stage
from slurm_bridge.families.yunikorn.node_scores import Measure
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.families.yunikorn.partition_size import PartitionMeasure
from slurm_bridge.families.yunikorn.passed_over import Passed
from slurm_bridge.families.yunikorn.picture import Picture
from slurm_bridge.families.yunikorn.restorer import RestoredWorkload
from slurm_bridge.families.yunikorn.setup import LOCAL, OFF, Setup
from slurm_bridge.hooks.base import GO, Admit, Ask, Audience, Fields, Mode, Nodes, Rank, Scores, Session
from slurm_bridge.hooks.evictions import Clearance, Recall
from slurm_bridge.hooks.lifecycle import ActiveUsage
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.model.names import JOB_PREFIX, NO_WORKLOAD, WorkloadKey
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload

#: Whether any node would take one that waits is asked no more often.
_LOOK_AGAIN = 60.0
_NO_SCORES = Scores(nodes={})
_NO_FIELDS = Fields()
_HELD = Admit(note="held by another hook before; it enters its queue when no other holds it")
_SOON = 1.0
#: Of so many queues it is remembered what they are in Slurm.
_MOST_QUEUES = 1024


class Yunikorn:
    """What is known outlives it: the hook of the next configuration takes over the manager, and with it the queues."""

    name = "yunikorn"
    Options: ClassVar = YunikornOptions
    services = True
    #: A queue is an account, a qos and a partition in Slurm, and no way to share nodes.
    keeps_exclusive: ClassVar = True
    needs = frozenset({Need.NAMESPACES, Need.PRIORITYCLASSES})

    def __init__(self, options: YunikornOptions, services: HookServices, made: Setup | None = None) -> None:
        self.desk = admin.QueueAdmin(made or setup.make(options, services.clock.wall()), services.carried)
        self._setup = self.desk.setup
        for warning in self.desk.news:
            services.log.warning(f"configuration of the queues: {warning}")
        self.evict_seconds, self.reserve_seconds = options.evict_seconds, options.reserve_seconds
        #: Where Slurm decides on the order, no workload is passed over.
        self.reservations = options.reservations if options.mode == LOCAL else 0
        self._passed = Passed(options.reserve_after)
        self._services = services
        self._manager: Manager | None = None
        self._lock = threading.Lock()
        self._sizes = (
            PartitionMeasure(self._setup, self._running) if self._setup.own else Measure(self._setup.partition)
        )
        self._demands = demands.Demands(options)
        #: Every workload of a queue gets the same.
        self._fields = functools.lru_cache(maxsize=_MOST_QUEUES)(self._setup.fields)
        #: Workloads that this hook has let go on in a pass that has not ended, as far as is known.
        self._trying = NO_WORKLOAD
        #: Workloads that other hooks have stopped after that: they enter a queue when nothing else holds them.
        self._stopped: set[WorkloadKey] = set()
        if options.order and options.mode == LOCAL:
            self.order = self._rank

    # -- what the framework tells ------------------------------------------------------------------------------------

    def restored(self, held: Sequence[ActiveUsage], views: Mapping[Need, View], *, fresh: bool) -> None:
        """Workloads with a job, or on nodes, count before others are let in."""
        namespaces, classes = views.get(Need.NAMESPACES), views.get(Need.PRIORITYCLASSES)
        options = self._setup.options
        seen = self._services.snapshot()
        known = [restorer.known(one, demands.demand(one.ask, options, namespaces, seen, classes)) for one in held]
        with self._lock:
            inherited = self._services.carried.value
            if isinstance(inherited, Manager) and not fresh:
                inherited.follow(self._setup, known)
                self._manager = inherited
                return
            if isinstance(inherited, Manager):
                inherited.close()
            self._manager = self._begun(known)

    def _begun(self, known: Sequence[RestoredWorkload]) -> Manager:
        manager = Manager(self._setup, self._services)
        self._services.carried.value = manager
        manager.begin(known)
        return manager

    def forget(self, workload: WorkloadKey) -> None:
        """All its pods have nodes, or none of them wants one."""
        if self._manager is not None:
            self._manager.started(workload)

    def ended(self, workload: WorkloadKey) -> None:
        """It keeps nothing, in Slurm or on a node."""
        self._stopped.discard(workload)
        if self._manager is not None:
            self._manager.leave(workload)

    def close(self) -> None:
        """Where no other hook has taken over, the core ends."""
        manager = self._manager
        if manager is not None and manager.setup is self._setup:
            manager.close()
            if self._services.carried.value is manager:
                self._services.carried.value = None

    def picture(self) -> Picture | None:
        """The queues as they are shown; None before it is known what runs in them."""
        manager = self._manager
        return picture.picture(manager, self._services.clock.wall()) if manager is not None else None

    # -- evictions --------------------------------------------------------------------------------------------------

    def recalls(self) -> Mapping[WorkloadKey, Recall]:
        """As the queues want it."""
        if self._manager is None:
            return {}
        self._manager.engine.turn()
        return self._manager.evictions.recalls()

    def recalled(self, workload: WorkloadKey) -> Recall | None:
        """The same of one workload."""
        return self._manager.evictions.recall(workload) if self._manager is not None else None

    def rooms(self) -> Mapping[WorkloadKey, Clearance]:
        """The workload for which that is."""
        return self._manager.evictions.rooms() if self._manager is not None else {}

    def gone(self, workload: WorkloadKey) -> None:
        """What it used belongs to the workload for which it was made free."""
        if self._manager is not None:
            self._manager.gone(workload)

    def spared(self, workload: WorkloadKey, *, refused: bool) -> None:
        """The queues may want another victim."""
        if self._manager is not None:
            self._manager.spared(workload, refused=refused)

    def count(self, what: str, amount: int = 1) -> None:
        """In the metric of what hooks do beside the passes."""
        self._services.counters.happened(self.name, what, amount)

    # -- nodes that are kept -----------------------------------------------------------------------------------------

    def passed(self) -> Sequence[WorkloadKey]:
        """Those that wait in Slurm while smaller ones, which queues let in later, have started."""
        if self._manager is None or not self.reservations:
            return ()
        return self._passed.now(self._manager, self._services.clock.now())

    def keeps(self, nodes: frozenset[str]) -> None:
        """For its size the cluster has them all the same."""
        self._sizes.keeps(nodes)

    # -- phases ------------------------------------------------------------------------------------------------------

    def admit(self, session: Session, ask: Ask) -> Admit | Wait | Reject:
        """Whether its queue has let it in."""
        uid, manager = ask.workload.root.key, self._at_work(session)
        if manager is None:
            return _not_yet()
        self.conclude(session)
        self.measure(session.snapshot, session.now)
        mixed = people.several(ask.workload, self._setup.options.users)
        if mixed and self._setup.options.mode != OFF:
            return Reject(reason="QueueRejected", message=mixed)
        member = self._member(manager, session, ask)
        if member is None:
            return _HELD
        answer = self._answer(manager, member, session)
        if isinstance(answer, Wait) and self._goes_nowhere(manager, member, session, ask):
            self._stopped.add(uid)
            manager.leave(uid)
            return _HELD
        if isinstance(answer, Admit) and not session.placed and session.mode is Mode.REAL:
            self._trying = uid
        return answer

    def commit(self, session: Session, ask: Ask) -> Admit | Wait | Reject:
        """No other hook holds it: it enters its queue now, if it has not yet."""
        uid, manager = ask.workload.root.key, self._at_work(session)
        if manager is None:
            return _not_yet()
        self._trying = NO_WORKLOAD
        self._stopped.discard(uid)
        member = self._member(manager, session, ask)
        return GO if member is None else self._answer(manager, member, session)

    def verify(self, session: Session, workload: Workload, nodes: Mapping[str, str]) -> Admit:
        """A workload with nodes of its own has them now: these are what its queue counts."""
        manager = self._manager
        member = manager.members.get(workload.root.key) if manager is not None else None
        asked = member.demand.asked if member is not None else None
        if manager is None or member is None or asked is None or session.mode is not Mode.REAL:
            return GO
        bound = (pod.spec.node_name for pod in workload.pods)
        total = whole_nodes.of_nodes({*nodes.values(), *filter(None, bound)}, asked, session.snapshot)
        manager.recount(dataclasses.replace(member.demand, total=total))
        return GO

    def _rank(self, workload: Workload) -> Rank:
        """In the order in which queues let them in; after these those that are new or wait."""
        manager = self._manager
        member = manager.members.get(workload.root.key) if manager is not None else None
        if member is not None and member.stage is Stage.GIVEN:
            return Rank(key=(0, member.turn, ""))
        return Rank(key=(1, -workload.priority, workload.created))

    def express(self, _session: Session, ask: Ask) -> Fields:
        """What its queue is in Slurm."""
        manager = self._manager
        member = manager.members.get(ask.workload.root.key) if manager is not None else None
        if self._setup.options.mode == OFF or member is None or not member.queue:
            return _NO_FIELDS
        return self._fields(member.queue)

    def score(self, session: Session, ask: Ask, nodes: Nodes) -> Scores:
        """By the order of nodes that the application or its partition chose; none where neither did."""
        sort = self._setup.partition.node_sort
        chosen = ask.hints.get("node-sort-policy", "") or sort.policy
        options = self._setup.options
        if not chosen or options.mode == OFF or chosen not in self._node_sorts:
            return _NO_SCORES
        found = node_scores.scores(session.snapshot, chosen, sort)
        partition = self.express(session, ask).partition or ask.request.partition
        among = session.columns.mask(nodes) & whole_nodes.inside(partition, session.snapshot, session.columns)
        tiers = node_scores.tiers(session.columns, found, among, ask, options.node_sort_seconds)
        return Scores(nodes=found, tiers=tiers)

    @property
    def _node_sorts(self) -> tuple[str, ...]:
        return node_sorts.names(self._setup.partition.node_sort.registered)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _at_work(self, session: Session) -> Manager | None:
        """None before the running workloads are known; in a run without effects they never are."""
        with self._lock:
            if self._manager is None and session.mode is Mode.SIMULATED:
                self._manager = self._begun(())
            return self._manager

    def measure(self, snapshot: ClusterSnapshot, now: float) -> None:
        """How large the cluster is, if that may have changed and was not looked at just now."""
        manager = self._manager
        # Mostly it is not due, and a workload that waits in a queue needs no columns.
        if manager is not None and self._sizes.is_due(snapshot.use_version, now):
            manager.measure(self._sizes.news(snapshot, now))

    def _running(self) -> Mapping[str, int]:
        return self._manager.running() if self._manager is not None else {}

    @property
    def dead(self) -> tuple[str, ...]:
        """Threads of the core that have ended without being told to."""
        return self._manager.engine.dead if self._manager is not None else ()

    def conclude(self, session: Session) -> None:
        """The pass before has ended without a job: what its workload was given is others'.

        One that no node can take must not use up its queue. It is asked again when whatever holds it changes.
        """
        stopped, self._trying = self._trying, NO_WORKLOAD
        if stopped and self._manager is not None and session.mode is Mode.REAL:
            self._stopped.add(stopped)
            self._manager.leave(stopped)

    def _member(self, manager: Manager, session: Session, ask: Ask) -> QueueMember | None:
        """As the core knows it, or comes to know it now; None for one that is to enter only at the end of its pass."""
        uid = ask.workload.root.key
        namespaces, classes = session.view(Need.NAMESPACES), session.view(Need.PRIORITYCLASSES)
        wanted = self._demands.of(ask, namespaces, classes, session.snapshot)
        unknown = _unknown(wanted.node_sort, self._node_sorts) if wanted.node_sort else ""
        if unknown:
            wanted = dataclasses.replace(wanted, problem=wanted.problem or unknown)
        member = manager.members.get(uid)
        if member is None and session.placed:
            return manager.adopt(wanted, started=False)
        if member is None and uid in self._stopped:
            return None
        if member is None:
            return manager.enter(wanted, placed=session.placed)
        same = member.stands_for(wanted)
        # One that had to go, and has no job any more, lines up anew, behind the one that it made room for.
        went = session.mode is Mode.REAL and not session.placed and manager.is_over(member)
        if not (same or went) and session.placed and wanted.is_within(member.demand) and manager.recount(wanted):
            # It keeps what it was given: only more than that is asked for again.
            return member
        if not same or went:
            return manager.enter(wanted, placed=session.placed)
        if wanted.asked is not None and member.demand.asked is None:
            # Another hook has sent it into a partition of Slurm in which jobs do not share nodes.
            manager.recount(wanted)
        if session.placed:
            manager.seen(member)
        return member

    def _goes_nowhere(self, manager: Manager, member: QueueMember, session: Session, ask: Ask) -> bool:
        """Others might have to go for it, although no node would take it then: what keeps it is not its queue."""
        due = session.mode is Mode.REAL and not session.placed and session.now >= member.looked + _LOOK_AGAIN
        if not due or not queue_reasons.may_preempt(manager, member):
            return False
        member.looked = session.now
        return not session.filter_nodes(ask, session.snapshot.names)

    def _answer(self, manager: Manager, member: QueueMember, session: Session) -> Admit | Wait | Reject:
        """By how far it has come."""
        if self._setup.options.mode == OFF:
            note = f"queue {member.queue}" if member.queue else "in no queue"
            return Admit(note=f"{note}, for information only", audience=Audience.OPERATOR)
        if member.stage is Stage.REFUSED:
            return Reject(reason="QueueRejected", message=member.why)
        if member.stage is Stage.GIVEN and member.queue:
            title = member.demand.identity.title
            of = f", application {title}" if title != member.demand.title else ""
            return Admit(note=f"queue {member.queue}{of}{member.demand.note}")
        if session.mode is Mode.SIMULATED:
            # A run without effects shows what comes after the queue.
            return GO
        manager.look_around()
        return queue_reasons.waits(manager, member, session.now)


def _unknown(sort: str, known: Sequence[str]) -> str:
    """What is wrong with an order of nodes, "" where there is such a one."""
    if sort in known:
        return ""
    allowed = f"{', '.join(known[:-1])} or {known[-1]}"
    return f"annotation {JOB_PREFIX}node-sort-policy is {sort!r}: use {allowed}, or leave the annotation out"


def _not_yet() -> Wait:
    return Wait(reason="QueueWaiting", message="it is not known yet what runs in the queues", retry_after=_SOON)
