"""The daemon's brain without threads or sockets: fed with changes, moved on step by step by whoever owns the time.

Threads call the steps in production; a simulation calls them one after the other and gets the same behaviour.
"""

import functools
from collections.abc import Callable

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.model.job import Phase
from slurm_bridge.model.meta import Object
from slurm_bridge.model.names import NO_WORKLOAD, WorkloadKey
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler import held, news, telling, timers
from slurm_bridge.scheduler import queue as queues
from slurm_bridge.scheduler.actions import Act
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.cycle import Cycle
from slurm_bridge.scheduler.effects import look_up
from slurm_bridge.scheduler.effects.look_up import root_of
from slurm_bridge.scheduler.eviction.controller import EvictionController
from slurm_bridge.scheduler.leftovers import Leftovers
from slurm_bridge.scheduler.members import Standing, job_id_of
from slurm_bridge.scheduler.queue import Filed, Queue
from slurm_bridge.scheduler.reservations.controller import ReservationController
from slurm_bridge.scheduler.resizing import Resizes
from slurm_bridge.scheduler.shares import Shares
from slurm_bridge.scheduler.slurm_nodes import SlurmNodes
from slurm_bridge.scheduler.tools import Config, Tools
from slurm_bridge.workloads import voices

#: Changes of nodes are gathered for so long before those who wait are looked at.
NODES_SETTLE = 1.0
#: So many of those who wait for pods to come or go are looked at in a second, however many do.
STIRRED_PER_SECOND = 200
#: An apiserver or Slurm that refuses what cannot be wrong: wait before asking again.
DISAGREED = 1.0


class Core:
    """Feeds may be called by any thread; of each step one thread at a time."""

    def __init__(self, tools: Tools, census: Census, queue: Queue) -> None:
        self.tools, self.census, self.queue = tools, census, queue
        self.cycle = Cycle(tools, self._activate)
        self.evictions = EvictionController(tools, census, queue)
        self.reservations = ReservationController(tools, census, queue)
        self.leftovers = Leftovers(tools)
        self.resizes = Resizes(tools)
        self._nodes_changed: float | None = None
        self._pods_changed: float | None = None
        self._stirred = 0
        self._giving_back: list[WorkloadKey] = []
        self._slurm_nodes = SlurmNodes(tools, self.on_surroundings)
        self._waiters = telling.Waiters(tools.voice, census, queue)
        tools.mirror.on_recovery(self.retry_all)

    # Feeds

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod of ours appeared, changed or went."""
        # First what it takes of its node: that counts, whatever becomes of the rest.
        self._hear("pods", old, new, lambda: self.tools.keeper.on_pod(old, new))
        self._hear("pods", old, new, lambda: self._on_pod(old, new))

    def _hear(self, what: str, old: Object | None, new: Object | None, act: Callable[[], None]) -> None:
        """One object that we cannot cope with must not end the watch of all others; its next change is heard again."""
        shown = new or old
        if shown is not None:
            self.tools.guard.always(f"watch of {what}", "/".join(shown.key), act)

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        uid = self.census.put(old, new)
        if old is not None and new is not None and news.regrouped(old, new):
            for one in sorted(self.census.reclaim((new.uid,)) - {uid}):
                uid, left = one, uid
                self._activate(left, urgent=True)
        self.resizes.on_pod(old, new)
        if news.stirs(old, new):
            self._stir()
        pod = new or old
        if pod is None:
            return
        if new is not None and new.terminal and not (old is not None and old.terminal):
            self._learn_from(new)
        if new is None or new.terminal:
            self.tools.voice.forget(pod.uid)
        if pod.bound:
            self.tools.states.arrived(uid, pod.uid)
            self._placed(uid, pod)
        if old is not None and old.bound and (new is None or new.terminal):
            self._vacated(old.spec.node_name)
        if new is None or (news.matters(old, new) and not self._echo(uid, old, new)):
            self._activate(uid, urgent=bool(self.tools.table.of(uid)) or pod.bound)

    def _placed(self, uid: WorkloadKey, pod: Pod) -> None:
        """A member has a node: perhaps it was the last that waited."""
        crew = self.census.crew(uid)
        job_id = job_id_of(pod)
        placeholder = self.tools.table.get(job_id) if job_id is not None else None
        if crew is not None and placeholder is not None and timers.is_complete(crew, placeholder):
            self.tools.states.of(uid).leadership.starting = None
        if crew is None or not crew.count(Standing.WANTING):
            self.tools.forget(uid)

    def _activate(self, uid: WorkloadKey, *, urgent: bool = True) -> None:
        self.queue.activate(uid, urgent=urgent)

    def _echo(self, uid: WorkloadKey, old: Pod | None, new: Pod) -> bool:
        """Our own binding, come back by the watch: nothing follows from it as long as the job lives."""
        ours = old is not None and not old.bound and new.bound and not new.terminating and not new.terminal
        return ours and any(
            one.phase is Phase.RUNNING and one.job_id == job_id_of(new) for one in self.tools.table.of(uid)
        )

    def on_other_pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod that another scheduler has bound: it takes room."""
        self._hear("others' pods", old, new, lambda: self._on_other_pod(old, new))

    def _on_other_pod(self, old: Pod | None, new: Pod | None) -> None:
        self.tools.keeper.on_pod(old, new)
        if news.stirs(old, new):
            self._stir()

    def on_node(self, old: Node | None, new: Node | None) -> None:
        """A node appeared, changed or went: what it means for those who wait is looked at once it has settled."""
        self._hear("nodes", old, new, lambda: self._on_node(old, new))

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        before, known = self.tools.keeper.version, self.tools.keeper.oddity(old.metadata.name) if old else ""
        self.tools.keeper.on_node(old, new)
        why = self.tools.keeper.oddity(new.metadata.name) if new is not None else ""
        if new is not None and why not in ("", known):
            logger.warning("node {}: {}", new.metadata.name, why)
        if news.ails(old, new):
            self._stir()
        if self.tools.keeper.version != before:
            self.on_surroundings()

    def _stir(self) -> None:
        """What runs on the nodes has changed: gathered likewise, for those who were told that it counts."""
        if self._pods_changed is None:
            self._pods_changed = self.tools.clock.now()

    def on_surroundings(self) -> None:
        """Something that a hook looks at changed; gathered, like changes of nodes."""
        if self._nodes_changed is None:
            self._nodes_changed = self.tools.clock.now()

    def on_owner(self, old: Object | None, new: Object | None) -> None:
        """Somebody who groups pods, or speaks for them, has changed what counts."""
        self._hear("owners", old, new, lambda: self._on_owner(old, new))

    def _on_owner(self, old: Object | None, new: Object | None) -> None:
        changed = new or old
        if changed is None:
            return
        if new is None:
            self.tools.held.forget(changed)
        uids = self.census.named(changed.metadata.namespace, changed.metadata.name)
        # Where it is gone its pods are about to go, too; those that stay are looked at one by one.
        touched = self.census.reclaim(uids) if new is not None else frozenset()
        roots = {root for uid in uids if (root := self.census.root_of(uid)) is not None}
        for uid in sorted(touched | roots):
            self._activate(uid, urgent=bool(self.tools.table.of(uid)))

    def on_kinds(self) -> None:
        """A kind that groups pods is served from now on: some pods may belong to it."""
        for uid in sorted(self.census.reclaim(self.census.uids(), self._placed_by_a_job)):
            self._activate(uid, urgent=bool(self.tools.table.of(uid)))

    def _placed_by_a_job(self, pod: Pod) -> bool:
        """It belongs to the workload whose job it names, as far as anybody knows that job."""
        job_id = job_id_of(pod)
        return pod.bound and (job_id is None or self.tools.table.get(job_id) is not None)

    def on_job(self, uid: WorkloadKey) -> None:
        """A placeholder changed."""
        self.queue.activate(uid, urgent=True)

    def _learn_from(self, pod: Pod) -> None:
        """A kubelet that refuses a pod will refuse its replacement too."""
        if not news.refused(pod):
            return
        crew = self.census.crew(self.census.root_of(pod.uid) or NO_WORKLOAD)
        belongs = crew.root.object_key if crew is not None else voices.itself(pod).key
        controller = voices.controller(pod)
        text = f"its kubelet refused pod {pod.metadata.name}: {pod.status.reason}"
        now = self.tools.clock.now()
        self.tools.avoided.add(belongs, pod.spec.node_name, text, now)
        if controller is not None:
            self.tools.avoided.add(controller.key, pod.spec.node_name, text, now)
            self.tools.avoided.stumble(controller.key)

    def _vacated(self, node: str) -> None:
        """Whoever waits for that node to be left looks again."""
        for uid in self.tools.node_waiters.take(node):
            self.queue.activate(uid, urgent=True)

    # Steps

    def recover(self) -> None:
        """Learn from both sides all that there is: at the start, and whenever we become the leader."""
        self.tools.states.begin()
        self.resizes.begin()
        self._slurm_nodes.read()
        self.tools.mirror.recover()
        self._rejoin()
        self.leftovers.begin(self._restore(self.tools.config, fresh=True))
        self.evictions.begin()
        self.reservations.begin()
        for uid in dict.fromkeys((*self.census.roots(), *self.tools.table.uids())):
            self.queue.activate(uid, urgent=bool(self.tools.table.of(uid)))

    def _restore(self, config: Config, *, fresh: bool) -> frozenset[WorkloadKey] | None:
        """Hooks that count learn first what workloads keep; the uids of those (None: no hook counts)."""
        if not config.chain.restores:
            return None
        known = held.held(self.tools, self.census)
        config.chain.restore(known, fresh=fresh)
        return frozenset(one.uid for one in known if not one.waits)

    def _rejoin(self) -> None:
        """A bound pod belongs to the workload whose job it names, whatever it would belong to if it came today."""
        for uid in self.census.uids():
            self.tools.guard.always("recovery", uid, functools.partial(self._rejoin_one, uid))

    def _rejoin_one(self, uid: str) -> None:
        pod = self.census.get(uid)
        job_id = job_id_of(pod) if pod is not None else None
        known = self.tools.table.get(job_id) if job_id is not None else None
        if pod is not None and known is not None and look_up.may_be_by(self.tools, pod, known):
            self.census.move(uid, root_of(known.owner))

    def schedule_step(self, run: Callable[[WorkloadKey, Act], None] | None = None) -> bool:
        """Look at the next workload; False when there is none. `run` does what was decided, here or elsewhere."""
        self._nodes_step()
        self._pods_step()
        shares = self._shares()
        popped = self.queue.pop(room=self._room(shares), admits=queues.everybody if shares is None else shares.admits)
        if popped is None:
            return False
        uid, turn = popped
        self.tools.states.begin_look(uid)
        act = self._think(uid, turn=turn)
        if isinstance(act, Filed):
            self._file(uid, act)
        else:
            (run or self.carry_out)(uid, act)
        return True

    def _think(self, uid: WorkloadKey, *, turn: bool) -> Act | Filed:
        try:
            return self.cycle.look(uid, turn=turn)
        except errors.BridgeError as problem:
            return self._failed(uid, problem)
        except Exception as surprise:  # noqa: BLE001 - one workload that we cannot cope with must not stop the others
            return self._surprised(uid, surprise)

    def carry_out(self, uid: WorkloadKey, act: Act) -> None:
        """Do it, and file the workload by what came of it."""
        try:
            filed = act()
        except errors.BridgeError as problem:
            filed = self._failed(uid, problem)
        except Exception as surprise:  # noqa: BLE001 - likewise
            filed = self._surprised(uid, surprise)
        self._file(uid, filed)

    def _file(self, uid: WorkloadKey, filed: Filed) -> None:
        self.tools.states.end_look(uid)
        self.queue.done(uid, filed)

    def _surprised(self, uid: WorkloadKey, surprise: Exception) -> Filed:
        """A defect of ours: said loudly, with all that is known of it, and tried again later and later."""
        logger.bind(workload=uid).opt(exception=surprise).error("this workload could not be dealt with")
        self.tools.tally.attempt("error")
        self.tools.tally.surprise("scheduling")
        return self.tools.back_off(uid)

    def _failed(self, uid: WorkloadKey, problem: errors.BridgeError) -> Filed:
        logger.bind(workload=uid).info("not now: {}", problem)
        self.tools.tally.attempt("error")
        return Filed(after=DISAGREED) if isinstance(problem, errors.Disagreement) else self.tools.back_off(uid)

    @property
    def room(self) -> bool:
        """Slurm's queue may take one more of ours."""
        return self._room(self._shares())

    def _room(self, shares: Shares | None) -> bool:
        if self._closed() is not None:
            return False
        return self.tools.table.unstarted < self.tools.limits.window if shares is None else shares.any

    def _shares(self) -> Shares | None:
        """How namespaces share the window; None while there is enough for all, or where an order hook decides."""
        window, wanted = self.tools.limits.window, self.queue.lining_up
        if not wanted or self.tools.table.unstarted + wanted <= window or self.tools.config.chain.orders:
            return None
        return Shares.of(window, self.tools.table.unstarted_by_namespace(), self.queue.demand())

    def mirror_step(self) -> None:
        """Ask Slurm what is due."""
        self.tools.mirror.step()
        self.facts_step()

    def facts_step(self) -> None:
        """Ask Slurm for its nodes and partitions, when it is time or somebody wants to know."""
        self._slurm_nodes.step()

    def _nodes_step(self) -> None:
        """Nodes have changed, and have settled: whoever has no node yet is looked at, with what that means for him."""
        since = self._nodes_changed
        if since is None or self.tools.clock.now() - since < NODES_SETTLE:
            return
        self._nodes_changed = None
        for uid in self.census.roots():
            crew = self.census.crew(uid)
            if crew is not None and crew.count(Standing.WANTING):
                self.queue.activate(uid, urgent=self._pending(uid))

    def _pods_step(self) -> None:
        """Pods have come or gone: whoever they kept away is looked at, in the time that so many of them may take."""
        since = self._pods_changed
        if since is None or self.tools.clock.now() - since < max(NODES_SETTLE, self._stirred / STIRRED_PER_SECOND):
            return
        self._pods_changed, self._stirred = None, self.queue.stir()

    def preempt_step(self) -> None:
        """Make room for workloads that hooks name, where that is configured."""
        evict, preempt, keep = self.evictions.queue_step, self.evictions.priority_step, self.reservations.step
        for name, step in (("eviction", evict), ("preemption", preempt), ("keeping", keep)):
            try:
                self.tools.guard.one(name, "", step)
            except errors.BridgeError as problem:
                logger.info("{}: not now: {}", name, problem)

    def tell_step(self) -> None:
        """Tell who is not let in why, take back what others have a right to, and tell of resized pods what counts."""
        self.tools.guard.one("telling", "", self._tell)
        self.tools.guard.one("telling of resizes", "", self.resizes.tell)

    def _tell(self) -> None:
        why, shares = self._closed(), self._shares()
        self._give_back(shares if why is None else None)
        if why is not None:
            self._waiters.tell(lambda _namespace: why)
        elif shares is not None:
            self._waiters.tell(shares.why)
        else:
            full = None if self.room else telling.full(self.tools.limits.window)
            self._waiters.tell(lambda _namespace: full)

    def _give_back(self, shares: Shares | None) -> None:
        """Namespaces beyond their share make room: the workloads that give their jobs back are looked at."""
        for key in self._giving_back:
            if (state := self.tools.states.get(key)) is not None:
                state.returned = None
        self._giving_back.clear()
        for namespace, count in shares.to_give_back.items() if shares is not None else ():
            for one in self.tools.table.youngest_pending(namespace, count):
                self.tools.states.of(one.owner.key).returned = one.job_id
                self._giving_back.append(one.owner.key)
                self.queue.activate(one.owner.key, urgent=True)

    def _closed(self) -> telling.Why | None:
        """Why nobody is let in, however few jobs wait in Slurm."""
        if self.tools.mirror.failing:
            return telling.UNAVAILABLE
        count = self.leftovers.left()
        return telling.leftover(count) if count else None

    def _pending(self, uid: WorkloadKey) -> bool:
        return any(one.phase is Phase.PENDING for one in self.tools.table.of(uid))

    def retry_all(self) -> None:
        """Slurm answers again: nobody waits out a pause that has lost its reason."""
        for uid in self.queue.backing_off():
            self.queue.activate(uid, urgent=True)

    def configure(self, config: Config) -> None:
        """From now on this is the configuration; everybody who waits is looked at again."""
        counted = self._restore(config, fresh=False)
        self.tools.config = config
        for uid in sorted(counted or ()):
            if not held.keeps(self.tools, self.census.crew(uid), uid):
                # It ended while the new hooks were told of it: only the old ones have heard of that.
                self.tools.ended(uid)
        self.queue.reorder()
        for uid in self.census.roots():
            self.queue.activate(uid, urgent=bool(self.tools.table.of(uid)))
