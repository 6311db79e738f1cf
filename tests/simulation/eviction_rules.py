"""When a pod may be evicted although its job lives: for another workload of ours that waits, and both say so.

I7   the workload that a victim's note names waits, and names this victim in its own note; and before the first of
     its victims is evicted, each of them has its note
I10  for a queue only pods go whose queue has more than it is entitled to, and only for one that is entitled to it;
     for no queue only while there is more than there may be. No pod is told to go twice
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from slurm_bridge.model import names
from slurm_bridge.sim import wire
from slurm_bridge.sim.slurm import state
from tests.simulation import observed
from tests.simulation.broken_promise import Broken
from tests.simulation.groups import DEAF, Groups
from tests.simulation.queue_guarantees import Realm

Manifest = Mapping[str, Any]
Pods = Mapping[str, observed.Pod]

_EVICTION = re.compile(r"/api/v1/namespaces/[^/]+/pods/[^/]+/eviction")
_CREATED = 201


def learn(pod: observed.Pod, manifest: Manifest, now: float, by: str) -> None:
    """What it says, and when it got its node, stopped waiting, and was over. To be told after everything else."""
    before, pod.makes_room = pod.makes_room, _note(manifest, names.ANNOTATION_MAKES_ROOM)
    if isinstance(pod.makes_room.get("uid"), str):
        pod.makes_room = {**pod.makes_room, "uid": _uid(pod.makes_room["uid"])}
    pod.room = _note(manifest, names.ANNOTATION_ROOM)
    if isinstance(pod.room.get("victims"), dict):
        pod.room = {**pod.room, "victims": {_uid(key): name for key, name in pod.room["victims"].items()}}
    if before != pod.makes_room:
        pod.noted_by = by
    if pod.node and pod.placed is None:
        pod.placed = now
    pod.waited = None if pod.wanting else now if pod.waited is None else pod.waited
    pod.ended = None if not pod.over else now if pod.ended is None else pod.ended


def _uid(key: str) -> str:
    """The last part of what tells a workload from all others: kind, namespace and name stand before it."""
    return key.split("/", 3)[-1]


def _note(manifest: Manifest, key: str) -> Manifest:
    """Users may have written anything there."""
    try:
        found = json.loads((manifest["metadata"].get("annotations") or {}).get(key, "{}"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class Evicted:
    """Remembers which pods were told to go. Without a realm no queue may have pods evicted."""

    def __init__(self, groups: Groups, now: Callable[[], float]) -> None:
        self.realm: Realm | None = None
        self._groups, self._now = groups, now
        self._told: dict[str, tuple[str, float]] = {}
        #: Groups of which one has gone, each with the group that it goes for.
        self._begun: set[tuple[str, str]] = set()
        #: How many went for a queue: for a workload that waits, and for none.
        self.for_others = self.for_no_workload = 0

    def around(self, handler: wire.Handler, who: str) -> wire.Handler:
        """Kubernetes as this daemon reaches it."""

        def passed(request: wire.Request) -> wire.Response:
            if request.method != "POST" or not _EVICTION.fullmatch(request.path):
                return handler(request)
            uid = msgspec.json.decode(request.body)["deleteOptions"]["preconditions"]["uid"]
            told, when = self._told.get(uid, ("", 0.0))
            if told == who or (told and self._now() - when > DEAF):
                raise Broken(f"I10: {who} tells pod {uid} to go, as {told} has at {when:.1f}")
            response = handler(request)
            if response.status == _CREATED:
                self._told[uid] = who, self._now()
            return response

        return passed

    # -- one pod that was evicted ------------------------------------------------------------------------------------

    def properly(self, pod: observed.Pod, manifests: Mapping[str, Manifest], pods: Pods, by: str) -> bool:
        """By an eviction, and for a workload that waits."""
        mine = manifests[pod.uid]
        conditions = mine["status"].get("conditions", ())
        if not any(one.get("reason") == "EvictionByEvictionAPI" for one in conditions):
            return False
        nodes = {one.node for one in self._groups.members(pod.group) if one.node}
        waiting = (manifests[one.uid] for one in pods.values() if one.ours and one.wanting and one.uid in manifests)
        if any(_is_more_important(one, mine) and one["status"].get("nominatedNodeName") in nodes for one in waiting):
            return True
        return self._makes_room(pod, pods, by)

    def _makes_room(self, pod: observed.Pod, pods: Pods, by: str) -> bool:
        """For a queue, as its note says; a group that is torn goes to its end, also when no workload waits any more."""
        asker = pod.makes_room.get("uid")
        if asker is None or asker == pod.group or not pod.makes_room.get("for"):
            return False
        those = [one for one in self._groups.members(asker) if self._waited(one)]
        if self.realm is not None:
            self._check_queues(pod, those, tuple(pods.values()), self.realm, by)
        if asker and (pod.group, asker) not in self._begun and not self._is_agreed(pod, those, by):
            return False
        self._begun.add((pod.group, asker))
        self.for_others += bool(asker)
        self.for_no_workload += not asker
        return True

    def _is_agreed(self, pod: observed.Pod, those: Iterable[observed.Pod], by: str) -> bool:
        """The workload of its note has this group among its victims, and each of these victims has its note."""
        told = [one for one in those if pod.group in (one.room.get("victims") or {})]
        return bool(told) and all(self._says(uid, pod, by) for one in told for uid in one.room["victims"])

    def _check_queues(
        self, pod: observed.Pod, those: Collection[observed.Pod], every: Collection[observed.Pod], realm: Realm, by: str
    ) -> None:
        now = self._now()
        if not realm.may_lose(pod, every, now):
            raise Broken(f"I10: {by} evicted {pod.key}, whose queue {realm.queue_of(pod)} has what it is entitled to")
        if those and not realm.may_ask(those, every, now):
            raise Broken(f"I10: {by} evicted {pod.key} for {those}, whose queue is not entitled to that much")
        if not pod.makes_room["uid"] and not realm.is_too_much(every, now):
            raise Broken(f"I10: {by} evicted {pod.key} for no workload, and there is no more than there may be")

    def _waited(self, pod: observed.Pod) -> bool:
        """As far as a daemon may know, it still waits."""
        return pod.wanting or (pod.waited is not None and self._now() - pod.waited <= DEAF and bool(pod.room))

    def _says(self, victim: str, like: observed.Pod, by: str) -> bool:
        """That it goes for the same, unless it leaves already; or another leader beside this one has its own idea."""
        there = [one for one in self._groups.members(victim) if one.node and not (one.over or one.strange)]
        asker = like.makes_room["uid"]
        said = any(one.makes_room.get("uid") == asker or one.noted_by not in ("", by) for one in there)
        return said or all(one.leaving for one in there)

    # -- at the end --------------------------------------------------------------------------------------------------

    def excuses(self, pod: observed.Pod, pods: Pods, holds: Mapping[str, int]) -> bool:
        """It waits in its queue, and rightly so; this is what the jobs of each group hold."""
        if self.realm is None:
            return False
        there = {
            one.group: one for one in pods.values() if one.ours and one.standing and (one.node or one.group in holds)
        }
        others = ((one, max(self._counted(uid), holds.get(uid, 0))) for uid, one in there.items())
        return pod.group not in there and self.realm.excuses(tuple(self._groups.members(pod.group)), others)

    def _counted(self, group: str) -> int:
        """Its job has the places of those that it has lost, and a restart counts the pods that wait for one of them."""
        return int(
            observed.total(one.needs for one in self._groups.members(group) if not (one.gone or one.strange)).cpu
        )

    def left(self, pods: Pods) -> Iterable[str]:
        """What is written on pods and of no use any more."""
        for pod in pods.values():
            if pod.over or pod.leaving or pod.strange or not pod.ours:
                continue
            if pod.makes_room:
                yield f"I10: {pod.key} says that it goes, and stays: {pod.makes_room}"
            if pod.room and pod.node:
                yield f"I10: {pod.key} has a node, and says that others go for it: {pod.room}"


def holds(jobs: Iterable[tuple[str, state.SlurmJob]]) -> Mapping[str, int]:
    """How many CPUs the living jobs of each group have, or want."""
    found: dict[str, int] = {}
    for uid, job in jobs:
        if not job.over:
            cpus = sum(share.cpus for share in job.grant.shares) if job.grant is not None else job.ask.minimum_cpus
            found[uid] = found.get(uid, 0) + cpus
    return found


def _is_more_important(one: Manifest, mine: Manifest) -> bool:
    important: bool = one["spec"].get("priority", 0) > mine["spec"].get("priority", 0)
    return important
