"""Objects as the API server lists and watches them, some of them spoiled, through the codec and every handler.

An object that cannot be read is an error of its own; what the handlers make of one that can be read must neither stop
them nor end anything.
"""

import dataclasses
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge import errors, ports
from slurm_bridge.hooks import needs
from slurm_bridge.informers.store import Store
from slurm_bridge.kube import codec
from slurm_bridge.model import budget, groups, kinds, meta, names, node, pod, services, storage
from slurm_bridge.model.kinds import Kind
from slurm_bridge.workloads import kind_table
from slurm_bridge.workloads.kinds import kai_podgroup
from tests.fuzz import generators, mutations, recorded_core, strangers
from tests.fuzz.generators import Json
from tests.fuzz.recorded_core import Mind
from tests.fuzz.runner import Watch

FIELDS = mutations.fields_of(budget, groups, meta, node, pod, services, storage)

#: Looks after all events of a case.
MOST_LOOKS = 40
_TYPES = ("ADDED", "MODIFIED", "DELETED")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One object as bytes: how it is told, whether it is as it was made, and whether it still says which one it is."""

    kind: str
    type: str
    body: bytes
    whole: bool
    named: bool
    uid: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What one daemon is told: as pages of lists, or line by line."""

    chain: str
    listed: bool
    events: Sequence[Event]


class Objects:
    """The target."""

    name = "objects"

    def __init__(self) -> None:
        self._minds: dict[str, Mind] = {}

    def make(self, dice: random.Random) -> Case:
        """A few objects of some kinds; one in four is spoiled."""
        chain = dice.choice(list(recorded_core.CHAINS))
        events = [_event(dice, number) for number in range(dice.randint(2, 8))]
        return Case(chain=chain, listed=generators.chance(dice, 0.4), events=events)

    def check(self, case: Case, watch: Watch) -> Iterable[str]:
        """Tell all, then look."""
        shelf = strangers.Shelf()
        mind = self._minds.pop(case.chain, None) or Mind(shelf, chain=case.chain)
        mind.begin(shelf)
        found = list(self._told(case, mind, watch))
        if not found:
            self._minds[case.chain] = mind
        return found

    def _told(self, case: Case, mind: Mind, watch: Watch) -> Iterator[str]:
        handlers = _Handlers(mind)
        for name in dict.fromkeys(event.kind for event in case.events):
            mine = [event for event in case.events if event.kind == name]
            yield from handlers.tell(name, mine, watch, listed=case.listed)
        for _ in range(MOST_LOOKS):
            with watch("look"):
                if not mind.look():
                    break
        for step in (mind.core.mirror_step, mind.core.preempt_step, mind.core.tell_step):
            with watch(step.__name__):
                step()
        while mind.reporter.step():
            pass
        yield from (f"crash: {place}" for place in recorded_core.ERRORS.caught)
        if mind.cluster.deleted:
            yield "conclusion: a pod is deleted because of one reading"
        handlers.close()


class _Handlers:
    """What the daemon's feeds do, without their threads."""

    def __init__(self, mind: Mind) -> None:
        self._mind = mind
        self._pods: Store[Any] = Store()
        self._nodes: Store[Any] = Store()

    def tell(self, name: str, events: Sequence[Event], watch: Watch, *, listed: bool) -> Iterator[str]:
        """Through the codec into the store, and on to the handler."""
        store, handler = self._where(name)
        whole = {event.uid for event in events if event.whole}
        hidden = f"reach: a spoiled object hides the others in a {'list' if listed else 'watch'}"
        try:
            with watch("codec"):
                told = _listed(name, events) if listed else _watched(name, events)
        except errors.BridgeError:
            # A line of a watch that does not say how far the watch has come ends it: then the objects are listed.
            if listed or all(event.named for event in events):
                yield hidden
            return
        if not whole.issubset({change.object.uid for change in told}):
            yield hidden
        for change in told:
            for one in store.take(change):
                with watch(f"handler of {name}"):
                    handler(one.old, one.new)

    def _where(self, name: str) -> tuple[Store[Any], Callable[[Any, Any], object]]:
        core, kind = self._mind.core, _KINDS[name]
        if kind is kinds.PODS:
            return self._pods, self._on_pod
        if kind is kinds.NODES:
            return self._nodes, core.on_node
        if kind in self._mind.stores:
            return self._mind.stores[kind], core.on_owner
        need = next(one for one, watched in needs.KINDS.items() if watched is kind)
        return self._mind.seen.setdefault(need, Store()), core.on_surroundings

    def _on_pod(self, old: Any, new: Any) -> None:
        ours = (new or old).spec.scheduler_name == names.SCHEDULER_NAME
        (self._mind.core.on_pod if ours else self._mind.core.on_other_pod)(old, new)

    def close(self) -> None:
        """All that were told of go again."""
        for store, handler in ((self._pods, self._on_pod), (self._nodes, self._mind.core.on_node)):
            for change in store.replace(ports.Listing(items=(), resource_version="9")):
                handler(change.old, change.new)


def _listed(name: str, events: Sequence[Event]) -> list[Any]:
    body = b'{"metadata":{"resourceVersion":"5"},"items":[' + b",".join(event.body for event in events) + b"]}"
    return [ports.Put(one) for one in codec.codec(_KINDS[name]).page(body, _unread).items or ()]


def _watched(name: str, events: Sequence[Event]) -> list[Any]:
    lines = b"".join(f'{{"type":"{event.type}","object":'.encode() + event.body + b"}\n" for event in events)
    told = codec.codec(_KINDS[name]).changes(lines, _unread)
    return [change for change in told if not isinstance(change, ports.Bookmark)]


def _unread(_met: object) -> None:
    """The daemon counts and logs it; here it is expected."""


def _event(dice: random.Random, number: int) -> Event:
    name = dice.choice(list(_KINDS))
    made = _MAKERS.get(name, _plain)(dice, name)
    uid = f"{name}-{number}-uid" if generators.chance(dice, 0.8) else f"{name}-uid"
    told = {"uid": uid, "resourceVersion": str(dice.randrange(2, 10**6)), **made["metadata"]}
    # Without a name nothing is stored: of every object that comes from an API server one is known.
    made["metadata"] = {**told, "uid": uid, "name": told.get("name") or name}
    whole = generators.chance(dice, 0.75)
    named = whole or generators.chance(dice, 0.7)
    body = mutations.encode(made) if whole else _spoiled(dice, made, named=named)
    whole = whole and _readable(name, body)
    return Event(kind=name, type=dice.choice(_TYPES), body=body, whole=whole, named=named, uid=uid)


def _readable(name: str, body: bytes) -> bool:
    """Alone; an amount that is no amount makes an object unreadable, too."""
    try:
        codec.codec(_KINDS[name]).one(body)
    except errors.BadAnswer:
        return False
    return True


def _spoiled(dice: random.Random, made: Json, *, named: bool) -> bytes:
    """All of it, or all but the metadata."""
    spoil = mutations.misspell if generators.chance(dice, 0.2) else _bent
    if not named:
        return spoil(dice, made)
    rest = {key: value for key, value in made.items() if key != "metadata"}
    after = spoil(dice, rest)[1:]
    return mutations.encode({"metadata": made["metadata"]})[:-1] + (b"," + after if after != b"}" else after)


def _bent(dice: random.Random, made: Json) -> bytes:
    return mutations.encode(mutations.spoil(dice, made, dice.randint(1, 3), FIELDS))


def _pod(dice: random.Random, _name: str) -> Json:
    made = next(strangers.pods(dice, dice.randrange(3)))
    if generators.chance(dice, 0.3):
        made["spec"]["nodeName"] = dice.choice(("n1", "n2", "gone"))
        made["metadata"]["labels"][names.LABEL_JOB_ID] = generators.text(dice, "50000001", "0", "7")
    if generators.chance(dice, 0.2):
        made["status"] = {"phase": dice.choice(("Failed", "Succeeded", "Running")), "reason": "OutOfcpu"}
    if generators.chance(dice, 0.1):
        made["metadata"]["deletionTimestamp"] = generators.text(dice, "2026-01-01T00:00:00Z")
    return made


def _node(dice: random.Random, _name: str) -> Json:
    amounts = {kind: generators.quantity(dice) for kind in ("cpu", "memory", "pods", "nvidia.com/gpu")}
    wanted = {key: amount for key, amount in amounts.items() if isinstance(amount, str | int | float)}
    labels = {
        "zone": "a",
        "kubernetes.io/hostname": "x",
        names.LABEL_SLURM_NODE_NAME: generators.text(dice, "n1", "n2"),
    }
    return {
        "metadata": {"name": generators.text(dice, "n1", "n2", "n77"), "labels": labels},
        "spec": {"taints": [{"key": generators.text(dice, "k"), "effect": "NoSchedule"}]},
        "status": {"allocatable": wanted, "capacity": wanted, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _group(dice: random.Random, name: str) -> Json:
    key = {
        "jobs": dice.choice(("job", "setjob")),
        "jobsets": "jobset",
        "leaderworkersets": "lws",
        "mpijobs": "mpijob",
    }.get(name, name)
    made = strangers.manifest(dice.choice(strangers.NAMESPACES), key)
    made["metadata"]["annotations"] = generators.said(dice)
    made["status"] = {
        "succeeded": dice.choice((0, 1, 10**9)),
        "failedIndexes": generators.text(dice, "1,3-5", "0-4294967295"),
    }
    return made


def _plain(dice: random.Random, name: str) -> Json:
    """An object of any other kind."""
    spec: Mapping[str, Json] = {
        "persistentvolumeclaims": {"volumeName": "v", "storageClassName": "c", "resources": generators.resources(dice)},
        "persistentvolumes": {
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "team", "name": "data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [generators.term(dice)]}},
        },
        "services": {"selector": {"app": "web"}},
        "replicasets": {"selector": {"matchLabels": {"app": "web"}}},
        "statefulsets": {"selector": generators.nested(dice, 3)},
        "poddisruptionbudgets": {"selector": generators.nested(dice, 3)},
        "csinodes": {"drivers": [{"name": "d", "allocatable": {"count": dice.choice((0, 5, 2**31))}}]},
    }
    namespace = {} if not _KINDS[name].namespaced else {"namespace": dice.choice(strangers.NAMESPACES)}
    metadata = {"name": generators.text(dice, "data", "v", "c", "n1"), **namespace, "labels": {"app": "web"}}
    found: Json = {"metadata": metadata, "spec": spec.get(name, {})}
    if name == "storageclasses":
        found |= {"provisioner": "p", "allowedTopologies": [generators.nested(dice, 3)]}
    return found


_KINDS: Mapping[str, Kind[Any]] = {
    "podgroup": kinds.PODGROUPS,
    "coscheduling": kinds.COSCHEDULING_PODGROUPS,
    "kai": kai_podgroup.PODGROUPS,
    **{kind.plural: kind for kind in kind_table.WATCHED if kind.plural != "podgroups"},
    **{kind.plural: kind for kind in needs.KINDS.values() if kind is not kinds.PODS},
    "nodes": kinds.NODES,
    "pods": kinds.PODS,
}
_MAKERS: Mapping[str, Callable[[random.Random, str], Json]] = {
    "pods": _pod,
    "nodes": _node,
    **dict.fromkeys(("jobs", "jobsets", "leaderworkersets", "mpijobs", "podgroup", "coscheduling", "kai"), _group),
}
