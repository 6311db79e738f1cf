"""The scheduler without threads or sockets: feeds report changes to it, and the caller runs its steps.

Threads call the steps in production; a simulation calls them one after the other and gets the same behaviour.
"""

import functools
import math
from collections.abc import Callable, Collection, Iterable

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.cluster.rules import claims, volumes
from slurm_bridge.model.devices import ResourceClaim
from slurm_bridge.model.job import Phase
from slurm_bridge.model.meta import Object
from slurm_bridge.model.names import NO_WORKLOAD, WorkloadKey, namespace_of
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.storage import Claim, Volume
from slurm_bridge.scheduler import active_usage, pod_changes, queue_notices, timers
from slurm_bridge.scheduler import queue as queues
from slurm_bridge.scheduler.actions import Act
from slurm_bridge.scheduler.context import Config, SchedulerContext
from slurm_bridge.scheduler.cycle import Cycle
from slurm_bridge.scheduler.effects import device_claims, look_up
from slurm_bridge.scheduler.effects.look_up import root_of
from slurm_bridge.scheduler.eviction.controller import EvictionController
from slurm_bridge.scheduler.leftovers import Leftovers
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.queue import FORGET, Filed, WorkQueue
from slurm_bridge.scheduler.reservations.controller import ReservationController
from slurm_bridge.scheduler.resizes import Resizes
from slurm_bridge.scheduler.shares import Shares
from slurm_bridge.scheduler.slurm_nodes import SlurmNodes
from slurm_bridge.scheduler.workload_pods import PLACED, PodState, job_id_of
from slurm_bridge.workloads import voices

#: Changes of nodes are collected for so many seconds before waiting workloads are looked at.
NODES_SETTLE = 1.0
#: At most so many workloads that wait for pods to come or go are looked at in a second.
STIRRED_PER_SECOND = 200
#: An apiserver or Slurm that refuses what cannot be wrong: wait before asking again.
DISAGREED = 1.0


class Core:
    """Feeds may be called by any thread; of each step one thread at a time."""

    def __init__(self, context: SchedulerContext, pod_index: PodIndex, queue: WorkQueue) -> None:
        self.context, self.pod_index, self.queue = context, pod_index, queue
        self.cycle = Cycle(context, functools.partial(queue.activate, urgent=True))
        self.evictions = EvictionController(context, pod_index, queue)
        self.reservations = ReservationController(context, pod_index, queue)
        self.leftovers = Leftovers(context)
        self.resizes = Resizes(context)
        self._nodes_changed: float | None = None
        self._volumes_changed: float | None = None
        self._claims_changed: float | None = None
        self._pods_changed: float | None = None
        self._stirred = 0
        self._giving_back: list[WorkloadKey] = []
        self._slurm_nodes = SlurmNodes(context, self.on_surroundings)
        self._waiters = queue_notices.Waiters(context, queue)
        context.mirror.on_recovery(self.retry_all)

    # Feeds

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod of ours appeared, changed or went."""
        # First what it takes of its node: that counts, whatever becomes of the rest.
        self._hear("pods", old, new, lambda: self.context.keeper.on_pod(old, new))
        self._hear("pods", old, new, lambda: self._on_pod(old, new))

    def _hear(self, what: str, old: Object | None, new: Object | None, act: Callable[[], None]) -> None:
        """One object that we cannot cope with must not end the watch of all others; its next change is heard again."""
        shown = new or old
        if shown is not None:
            self.context.guard.always(f"watch of {what}", "/".join(shown.key), act)

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        key = self.pod_index.put(old, new)
        if old is not None and new is not None and pod_changes.regrouped(old, new):
            for one in sorted(self.pod_index.reclaim((new.uid,)) - {key}):
                key, left = one, key
                self.queue.activate(left, urgent=True)
        self.context.table.changed(key)
        self.resizes.on_pod(old, new)
        if pod_changes.stirs(old, new):
            self._stir()
        pod = new or old
        if pod is None:
            return
        if new is not None and new.terminal and not (old is not None and old.terminal):
            self._learn_from(new)
        if new is None or new.terminal:
            self.context.status.forget(pod.uid)
        if pod.bound:
            self.context.states.arrived(key, pod.uid)
            self._placed(key, pod)
        if old is not None and old.bound and (new is None or new.terminal):
            self._vacated(old.spec.node_name)
        if new is None or (pod_changes.matters(old, new) and not self._echo(key, old, new)):
            self.queue.activate(key, urgent=bool(self.context.table.of(key)) or pod.bound)

    def _placed(self, key: WorkloadKey, pod: Pod) -> None:
        """A member has a node: perhaps it was the last that waited."""
        members = self.pod_index.workload(key)
        job_id = job_id_of(pod)
        placeholder = self.context.table.get(job_id) if job_id is not None else None
        if members is not None and placeholder is not None and timers.is_complete(members, placeholder):
            self.context.states.of(key).leadership.starting = None
        if members is None or not members.count(PodState.WANTING):
            self.context.settle(key)

    def _echo(self, key: WorkloadKey, old: Pod | None, new: Pod) -> bool:
        """Our own binding, come back by the watch: nothing follows from it as long as the job lives."""
        ours = old is not None and not old.bound and new.bound and not new.terminating and not new.terminal
        return ours and any(
            one.phase is Phase.RUNNING and one.job_id == job_id_of(new) for one in self.context.table.of(key)
        )

    def on_other_pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod that another scheduler has bound: it takes room."""
        self._hear("others' pods", old, new, lambda: self._on_other_pod(old, new))

    def _on_other_pod(self, old: Pod | None, new: Pod | None) -> None:
        self.context.keeper.on_pod(old, new)
        if pod_changes.stirs(old, new):
            self._stir()

    def on_node(self, old: Node | None, new: Node | None) -> None:
        """A node appeared, changed or went: waiting workloads are looked at when the changes have settled."""
        self._hear("nodes", old, new, lambda: self._on_node(old, new))

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        before, known = self.context.keeper.version, self.context.keeper.oddity(old.metadata.name) if old else ""
        self.context.keeper.on_node(old, new)
        why = self.context.keeper.oddity(new.metadata.name) if new is not None else ""
        if new is not None and why not in ("", known):
            logger.warning("node {}: {}", new.metadata.name, why)
        if pod_changes.ails(old, new):
            self._stir()
        if self.context.keeper.version != before:
            self.on_surroundings()

    def _stir(self) -> None:
        """What runs on the nodes has changed: collected likewise, for workloads that depend on it."""
        if self._pods_changed is None:
            self._pods_changed = self.context.clock.now()

    def on_surroundings(self, old: Object | None = None, new: Object | None = None) -> None:
        """Something that a hook looks at changed; gathered, like changes of nodes.

        Workloads that hold nodes until a claim is bound are looked at at once, others with claims when it settles.
        """
        if isinstance(old, ResourceClaim) and new is not None and _claimed_alike(old, new):
            return
        for one in (old, new):
            for key in self.context.claim_waiters.take(_claim_of(one)) if one is not None else ():
                self.queue.activate(key, urgent=True)
        if isinstance(new or old, ResourceClaim):
            self._claim_changed(old, new)
        elif isinstance(new or old, Claim | Volume):
            self._volumes_changed = self._volumes_changed or self.context.clock.now()
        elif self._nodes_changed is None:
            self._nodes_changed = self.context.clock.now()

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        """A ResourceClaim: made for a pod of ours it matters for this pod, any other for all that name claims."""
        claim = new or old
        if claim is None:
            return
        owner = next((one for one in claim.metadata.owner_references if one.controller), None)
        pod = self.pod_index.get(owner.uid) if owner is not None else None
        # Owners are words of users: what the API server says of the pod has to agree.
        ours = owner is not None and (owner.kind, owner.api_version) == ("Pod", "v1")
        key = self.pod_index.root_of(pod.uid) if pod is not None else None
        if not ours or pod is None or key is None or pod.metadata.namespace != claim.metadata.namespace:
            self._claims_changed = self._claims_changed or self.context.clock.now()
        elif not pod.bound:
            self.queue.activate(key)

    def on_owner(self, old: Object | None, new: Object | None) -> None:
        """An object that groups pods, or speaks for them, has changed in a field that counts."""
        self._hear("owners", old, new, lambda: self._on_owner(old, new))

    def _on_owner(self, old: Object | None, new: Object | None) -> None:
        changed = new or old
        if changed is None:
            return
        if new is None:
            self.context.held.deleted(changed)
        uids = self.pod_index.named(changed.metadata.namespace, changed.metadata.name)
        # Where it is gone its pods are about to go, too; those that stay are looked at one by one.
        touched = self.pod_index.reclaim(uids) if new is not None else frozenset()
        roots = {root for uid in uids if (root := self.pod_index.root_of(uid)) is not None}
        for key in sorted(touched | roots):
            self.queue.activate(key, urgent=bool(self.context.table.of(key)))

    def on_kinds(self) -> None:
        """A kind that groups pods is served from now on: some pods may belong to it."""
        for key in sorted(self.pod_index.reclaim(self.pod_index.uids(), self._placed_by_a_job)):
            self.queue.activate(key, urgent=bool(self.context.table.of(key)))

    def _placed_by_a_job(self, pod: Pod) -> bool:
        """It belongs to the workload whose job it names, as far as that job is known."""
        job_id = job_id_of(pod)
        return pod.bound and (job_id is None or self.context.table.get(job_id) is not None)

    def on_job(self, key: WorkloadKey) -> None:
        """A placeholder changed; other workloads may wait until it has got its nodes again."""
        self.queue.activate(key, urgent=True)
        members = self.pod_index.workload(key) if self.context.node_waiters else None
        for node in sorted({pod.spec.node_name for pod in members.pods(*PLACED)} if members is not None else ()):
            self._vacated(node)

    def _learn_from(self, pod: Pod) -> None:
        """A kubelet that refuses a pod will refuse its replacement too."""
        if not pod_changes.refused(pod):
            return
        members = self.pod_index.workload(self.pod_index.root_of(pod.uid) or NO_WORKLOAD)
        belongs = members.root.object_key if members is not None else voices.itself(pod).key
        controller = voices.controller(pod)
        text = f"its kubelet refused pod {pod.metadata.name}: {pod.status.reason}"
        now = self.context.clock.now()
        self.context.avoided.add(belongs, pod.spec.node_name, text, now)
        if controller is not None:
            self.context.avoided.add(controller.key, pod.spec.node_name, text, now)
            self.context.avoided.stumble(controller.key)

    def _vacated(self, node: str) -> None:
        """Workloads that wait for this node to become free are looked at again."""
        for key in self.context.node_waiters.take(node):
            if self.context.avoided.waits_for(key, node, self.context.node(node)):
                self.context.node_waiters.add(node, key)
            self.queue.activate(key, urgent=True)

    # Steps

    def recover(self) -> None:
        """Learn from both sides all that there is: at the start, and whenever we become the leader."""
        self._offer()
        self.context.states.begin()
        self.resizes.begin()
        self._slurm_nodes.read()
        self.context.mirror.recover()
        # A bound pod belongs to the workload whose job it names, whatever it would belong to if it came today.
        for uid in self.pod_index.uids():
            self.context.guard.always("recovery", uid, functools.partial(self._rejoin, uid))
        self.leftovers.begin(self._restore(self.context.config, fresh=True))
        self.evictions.begin()
        self.reservations.begin()
        for key in dict.fromkeys((*self.pod_index.roots(), *self.context.table.uids())):
            self.queue.activate(key, urgent=bool(self.context.table.of(key)))

    def stand_by(self) -> None:
        """Another replica leads, and looks at workloads; all of them are looked at anew when this one leads."""
        self.queue.clear()
        self._waiters.forget()

    def _restore(self, config: Config, *, fresh: bool) -> frozenset[WorkloadKey] | None:
        """Hooks that count learn first what workloads keep; the uids of those (None: no hook counts)."""
        if not config.chain.restores:
            return None
        known = active_usage.held(self.context, self.pod_index)
        config.chain.restore(known, fresh=fresh)
        return frozenset(one.uid for one in known if not one.waits)

    def _rejoin(self, uid: str) -> None:
        pod = self.pod_index.get(uid)
        job_id = job_id_of(pod) if pod is not None else None
        known = self.context.table.get(job_id) if job_id is not None else None
        if pod is not None and known is not None and look_up.may_be_by(self.context, pod, known):
            self.pod_index.move(uid, root_of(known.owner))

    def schedule_step(self, run: Callable[[WorkloadKey, Act], None] | None = None) -> bool:
        """Look at the next workload; False when there is none. `run` does what was decided, here or elsewhere."""
        self._nodes_step()
        self._pods_step()
        shares = self._shares()
        popped = self.queue.pop(room=self._room(shares), admits=queues.everybody if shares is None else shares.admits)
        if popped is None:
            return False
        key, turn = popped
        if not self.context.serves(namespace_of(key)):
            self._pass_over(key)
            return True
        self.context.states.begin_look(key)
        began = self.context.clock.now()
        act = self._think(key, turn=turn)
        self.context.counters.looked(self.context.clock.now() - began)
        if isinstance(act, Filed):
            self._file(key, act)
        else:
            (run or self.carry_out)(key, act)
        return True

    def _pass_over(self, key: WorkloadKey) -> None:
        """The workload is another daemon's, or is about to be: what came too late to be let go is forgotten."""
        for one in self.context.table.of(key):
            self.context.table.drop(one.job_id)
        self.queue.done(key, FORGET)

    def take_up(self, namespaces: Collection[str], pods: Iterable[Pod]) -> None:
        """Further namespaces are served, whose pods these are: their jobs are known already."""
        came = tuple(pods)
        for pod in came:
            self.on_pod(None, pod)
            self.context.guard.always("recovery", pod.uid, functools.partial(self._rejoin, pod.uid))
        self.evictions.take_up(namespaces)
        for key in dict.fromkeys((*self.pod_index.roots(), *self.context.table.uids())):
            if namespace_of(key) in namespaces:
                self.queue.activate(key, urgent=bool(self.context.table.of(key)))

    def let_go(self, namespace: str) -> None:
        """Another daemon serves this namespace from now on: nothing is known of its workloads any more.

        None of them is being looked at. What is on the servers stays as it is.
        """
        pods = [pod for uid in self.pod_index.uids() if (pod := self.pod_index.get(uid)) is not None]
        for pod in pods:
            if pod.metadata.namespace == namespace:
                self.context.status.forget(pod.uid)
        known = (*self.pod_index.roots(), *self.context.table.uids(), *(key for key, _ in self.context.states.all()))
        keys = [key for key in dict.fromkeys(known) if namespace_of(key) == namespace]
        self.pod_index.let_go(namespace)
        self.context.table.let_go(namespace)
        for key in keys:
            self._let_go(key)

    def _let_go(self, key: WorkloadKey) -> None:
        state = self.context.states.get(key)
        for uid in (*state.claimed, *state.sent) if state is not None else ():
            # A node that it counts on is noted by the watch of pods, if it has got it.
            self.context.keeper.forget(uid)
        self.context.settle(key)
        self.context.ended(key)
        self.context.node_waiters.drop(key)
        self.context.claim_waiters.drop(key)
        self.context.promised.end_all(key)
        self.queue.let_go(key)
        self.context.states.drop(key)
        self.context.table.changed(key)

    def _think(self, key: WorkloadKey, *, turn: bool) -> Act | Filed:
        try:
            return self.cycle.look(key, turn=turn)
        except errors.BridgeError as problem:
            return self._failed(key, problem)
        except Exception as surprise:  # noqa: BLE001 - one workload that we cannot cope with must not stop the others
            return self._surprised(key, surprise)

    def carry_out(self, key: WorkloadKey, act: Act) -> None:
        """Do it, and file the workload by what came of it."""
        try:
            filed = act()
        except errors.BridgeError as problem:
            filed = self._failed(key, problem)
        except Exception as surprise:  # noqa: BLE001 - likewise
            filed = self._surprised(key, surprise)
        self._file(key, filed)

    def _file(self, key: WorkloadKey, filed: Filed) -> None:
        self.context.states.end_look(key)
        self.queue.done(key, filed)
        self.context.table.changed(key)

    def _surprised(self, key: WorkloadKey, surprise: Exception) -> Filed:
        """A defect of ours: said loudly, with all that is known of it, and tried again later and later."""
        logger.bind(workload=key).opt(exception=surprise).error("this workload could not be dealt with")
        self.context.counters.attempt("error")
        self.context.counters.surprise("scheduling")
        return self.context.back_off(key)

    def _failed(self, key: WorkloadKey, problem: errors.BridgeError) -> Filed:
        logger.bind(workload=key).info("not now: {}", problem)
        self.context.counters.attempt("error")
        # Ours, not a server's: what takes more than one look goes on.
        if type(problem) is errors.TryLater and problem.retry_after is not None:
            return Filed(after=problem.retry_after)
        return Filed(after=DISAGREED) if isinstance(problem, errors.Disagreement) else self.context.back_off(key)

    @property
    def room(self) -> bool:
        """Slurm's queue may take one more of ours."""
        return self._room(self._shares())

    def _room(self, shares: Shares | None) -> bool:
        if self._closed() is not None:
            return False
        return self.context.table.unstarted < self.context.limits.window if shares is None else shares.any

    def _shares(self) -> Shares | None:
        """How namespaces share the window; None while there is enough for all, or where an order hook decides."""
        window, wanted = self.context.limits.window, self.queue.lining_up
        if not wanted or self.context.table.unstarted + wanted <= window or self.context.config.chain.orders:
            return None
        return Shares.of(window, self.context.table.unstarted_by_namespace(), self.queue.demand())

    def mirror_step(self) -> None:
        """Ask Slurm what is due."""
        self.context.mirror.step()
        self.facts_step()

    def on_slurm_nodes(self) -> None:
        """Slurm has more nodes or fewer: they are read in the next step."""
        self.context.facts_due = -math.inf

    def facts_step(self) -> None:
        """Ask Slurm for its nodes and partitions, when they are due or a workload needs them."""
        self._slurm_nodes.step()

    def _nodes_step(self) -> None:
        """Nodes have changed and settled: every workload without a node is looked at; of volumes, those with claims."""
        settled = self.context.clock.now() - NODES_SETTLE
        nodes = self._nodes_changed is not None and self._nodes_changed <= settled
        storage = self._volumes_changed is not None and self._volumes_changed <= settled
        devices = self._claims_changed is not None and self._claims_changed <= settled
        if not (nodes or storage or devices):
            return
        self._nodes_changed = None if nodes else self._nodes_changed
        self._volumes_changed = None if nodes or storage else self._volumes_changed
        self._claims_changed = None if nodes or devices else self._claims_changed
        if nodes:
            self._offer()
        for key in self.pod_index.roots():
            members = self.pod_index.workload(key)
            wanting = members.pods(PodState.WANTING) if members is not None else ()
            if any(
                nodes or (storage and volumes.claimed(pod)) or (devices and pod.spec.resource_claims) for pod in wanting
            ):
                self.queue.activate(key, urgent=any(one.phase is Phase.PENDING for one in self.context.table.of(key)))

    def _offer(self) -> None:
        """Nodes have the devices that drivers publish, where pods ask for them by extended resources."""
        self.context.keeper.offer(self.context.config.chain.offers())

    def _pods_step(self) -> None:
        """Pods have come or gone: workloads that wait for that are looked at, so many in a second."""
        since = self._pods_changed
        if since is None or self.context.clock.now() - since < max(NODES_SETTLE, self._stirred / STIRRED_PER_SECOND):
            return
        self._pods_changed, self._stirred = None, self.queue.stir()

    def preempt_step(self) -> None:
        """Make room for workloads that hooks name, where that is configured."""
        evict, preempt, keep = self.evictions.queue_step, self.evictions.priority_step, self.reservations.step
        for name, step in (("eviction", evict), ("preemption", preempt), ("keeping", keep)):
            try:
                self.context.guard.one(name, "", step)
            except errors.BridgeError as problem:
                logger.info("{}: not now: {}", name, problem)

    def tell_step(self) -> None:
        """Tell waiting workloads why they wait, evict for queues with a guarantee, and report resized pods."""
        self.context.guard.one("telling", "", self._tell)
        self.context.guard.one("telling of resizes", "", self.resizes.tell)

    def _tell(self) -> None:
        why, shares = self._closed(), self._shares()
        self._give_back(shares if why is None else None)
        if why is not None:
            self._waiters.tell(lambda _namespace: why)
        elif shares is not None:
            self._waiters.tell(shares.why)
        else:
            full = None if self.room else queue_notices.full(self.context.limits.window)
            self._waiters.tell(lambda _namespace: full)

    def _give_back(self, shares: Shares | None) -> None:
        """Namespaces beyond their share make room: the workloads that give their jobs back are looked at."""
        for key in self._giving_back:
            if (state := self.context.states.get(key)) is not None:
                state.returned = None
        self._giving_back.clear()
        for namespace, count in shares.to_give_back.items() if shares is not None else ():
            for one in self.context.table.youngest_pending(namespace, count):
                self.context.states.of(one.owner.key).returned = one.job_id
                self._giving_back.append(one.owner.key)
                self.queue.activate(one.owner.key, urgent=True)

    def _closed(self) -> queue_notices.Why | None:
        """Why no workload is submitted now, however few jobs wait in Slurm."""
        if self.context.mirror.failing:
            return queue_notices.REFUSED if self.context.mirror.refused else queue_notices.UNAVAILABLE
        count = self.leftovers.left()
        return queue_notices.leftover(count) if count else None

    def retry_all(self) -> None:
        """Slurm answers again: pauses that began because it did not are over."""
        for uid in self.queue.backing_off():
            self.queue.activate(uid, urgent=True)

    def configure(self, config: Config) -> None:
        """From now on this is the configuration; every waiting workload is looked at again."""
        counted = self._restore(config, fresh=False)
        self.context.config = config
        self._offer()
        for uid in sorted(counted or ()):
            if not active_usage.keeps(self.context, self.pod_index.workload(uid), uid):
                # It ended while the new hooks were told of it: only the old ones have heard of that.
                self.context.ended(uid)
        self.queue.reorder()
        for key in self.pod_index.roots():
            self.queue.activate(key, urgent=bool(self.context.table.of(key)))


def _claimed_alike(old: Object, new: Object) -> bool:
    """Whether nothing changed of a ResourceClaim that decides its use; drivers and users write much beside it."""
    return _what_counts(old) == _what_counts(new)


def _what_counts(claim: Object) -> object:
    if not isinstance(claim, ResourceClaim):
        return claim
    meta, status = claim.metadata, claim.status
    return claim.uid, claim.spec, status, meta.deletion_timestamp, meta.owner_references


def _claim_of(changed: Object) -> str:
    """Under which workloads wait for the claim that such a change is about."""
    return device_claims.waiter(*changed.key) if isinstance(changed, ResourceClaim) else claims.claim_of(changed)
