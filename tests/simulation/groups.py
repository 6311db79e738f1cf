"""The observer's memory of groups: which pod belongs to which, what each demands, and what may be left as it is."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slurm_bridge.sim.kube.store import Event, ObjectStore
from tests.simulation import membership, observed
from tests.simulation.broken_promise import Broken

#: A gang of which only a part could be bound for so long is taken back.
BIND_SECONDS = 20.0
#: So long may a watch be silent unnoticed.
DEAF = 45.0

#: What the server counts by itself.
_COUNTED = ("resourceVersion", "managedFields")
#: On these the daemon may write that they are scheduled, and nothing else.
_TOLD = "podgroups"


class Groups:
    """Learns of the objects that group pods, and sorts pods in as soon as that is possible."""

    def __init__(self, store: ObjectStore) -> None:
        self._objects = membership.Objects(store)
        self._members: dict[str, dict[str, observed.Pod]] = {}
        self._changed: dict[str, float] = {}
        self._lost: list[observed.Pod] = []
        self._praised: set[str] = set()

    def learn(self, by: str, now: float) -> None:
        """See what became of the objects; `by` is the daemon that did it."""
        for key, event in self._objects.learn():
            if _spec(event.new.manifest()) != _spec(event.old.manifest() if event.old else {}):
                self._changed[event.new.uid] = now
            if by:
                self._check_deed(key, event, by)
        lost, self._lost = self._lost, []
        for pod in lost:
            self.sort_in(pod)

    def sort_in(self, pod: observed.Pod) -> None:
        """Find the pod's group, once; a pod whose group is not known yet is looked at again."""
        if pod.group or not pod.ours:
            return
        pod.group = membership.group_of(pod.manifest, self._objects)
        if pod.group:
            self._members.setdefault(pod.group, {})[pod.uid] = pod
        else:
            self._lost.append(pod)

    def members(self, uid: str) -> Iterable[observed.Pod]:
        """All pods that were ever in this group."""
        return self._members.get(uid, {}).values()

    def rules(self, pod: observed.Pod) -> membership.Rules:
        """What the pod's group demands now."""
        return membership.ALONE if pod.group == pod.uid else membership.rules_of(pod.manifest, self._objects)

    def changed_since(self, pod: observed.Pod, moment: float) -> bool:
        """A user has changed what the group demands (by the object itself, or one of its children)."""
        parts = pod.group.split(":")
        if any(when >= moment for uid, when in self._changed.items() if uid in parts):
            return True
        children = [child["metadata"]["uid"] for uid in parts for child in self._objects.children(uid)]
        return any(self._changed.get(uid, 0.0) >= moment for uid in children)

    # -- what daemons do to groups -----------------------------------------------------------------------------------

    def _check_deed(self, key: str, event: Event, by: str) -> None:
        old, new = event.old.manifest() if event.old else {}, event.new.manifest()
        if not key.startswith(_TOLD) or _without_status(old) != _without_status(new):
            raise Broken(f"I5: {by} changed {key} {event.new.name}: {_without_status(old)} -> {_without_status(new)}")
        if _scheduled(new) and not _scheduled(old):
            uid = event.new.uid
            placed = [pod for pod in self.members(uid) if pod.node or pod.left is not None]
            wanted = new["spec"].get("minMember") or new["spec"].get("schedulingPolicy", {}).get("gang", {}).get(
                "minCount", 1
            )
            if uid in self._praised:
                raise Broken(f"I5: {by} says once more that {event.new.name} is scheduled")
            if len(placed) < wanted:
                raise Broken(f"I3: {by} says that {event.new.name} is scheduled: {len(placed)} of {wanted} pods")
            self._praised.add(uid)

    def may_end(self, pod: observed.Pod, now: float) -> bool:
        """This pod of a gang may go although its job lives: with one that was lost, or with those that got no node."""
        if pod.group == pod.uid or pod.run is None:
            return False
        mates = [one for one in self.members(pod.group) if one is not pod]
        if self.rules(pod).lost == membership.RESTART and any(_lost(one, [pod.run]) for one in mates):
            return True
        late = now >= pod.run.since + BIND_SECONDS
        return late and any(not one.node and (one.left is None or now - one.left <= DEAF) for one in mates)

    # -- at the end --------------------------------------------------------------------------------------------------

    def needless(self, uid: str) -> str:
        """Why a job of this workload should not be there any more, or nothing."""
        there = [one for one in self.members(uid) if not (one.over or one.strange)]
        if not there:
            return "outlives its pods:"
        rules = self.rules(there[0])
        if rules.suspended:
            return "is kept for a workload that may not run:"
        wanting, bound = [one for one in there if one.wanting], [one for one in there if one.node]
        if not bound and len(wanting) < rules.minimum:
            return f"is kept for {len(wanting)} of {rules.minimum} pods of"
        return ""

    def excused(self, pod: observed.Pod, runs: Sequence[observed.Run], living: Sequence[object]) -> bool:
        """This pod may go on waiting: its group may not run, is not complete, or runs and has no place for it."""
        if pod.group == membership.NOWHERE:
            return True
        if pod.group == pod.uid:
            return False
        rules, members = self.rules(pod), self.members(pod.group)
        bound = [one for one in members if one.node and not (one.over or one.strange)]
        if rules.suspended:
            return True
        if not bound:
            return sum(one.wanting for one in members) < rules.minimum and not living
        if rules.lost == membership.KEEP:
            return not any(_fits(pod, run, bound) for run in runs)
        theirs = [one for one in members if one.run in runs]
        return rules.lost == membership.FOLLOW or not any(_lost(one, runs) for one in theirs)


def _lost(pod: observed.Pod, runs: Sequence[observed.Run]) -> bool:
    """It was there, as far as a daemon could know, when a job that still runs began to place the gang, and is not."""
    if pod.left is None or pod.phase == "Succeeded":
        return False
    return any(run.begun is not None and pod.left >= run.begun - DEAF for run in runs)


def _fits(pod: observed.Pod, run: observed.Run, bound: Sequence[observed.Pod]) -> bool:
    """One of the nodes that the job holds has room for this pod."""
    for node, share in run.shares.items():
        there = [one.needs for one in bound if one.on(run, node)]
        if observed.total([pod.needs, *there]).within(share):
            return True
    return False


def _spec(manifest: Mapping[str, Any]) -> object:
    return manifest.get("spec")


def _without_status(manifest: Mapping[str, Any]) -> object:
    metadata = {key: value for key, value in manifest.get("metadata", {}).items() if value and key not in _COUNTED}
    return {**manifest, "metadata": metadata, "status": None}


def _scheduled(manifest: Mapping[str, Any]) -> bool:
    status = manifest.get("status") or {}
    lines = status.get("conditions") or ()
    said = any(line["type"] == "PodGroupScheduled" and line["status"] == "True" for line in lines)
    return said or status.get("phase") in ("Scheduled", "Scheduling", "Running")
