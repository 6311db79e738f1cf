"""Two namespaces: one whose objects have uids that all users know, and one whose pods claim to belong to them.

uids are no secrets: those of gangs stand in every job's record, which Slurm shows to its users.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from slurm_bridge.kube import codec
from slurm_bridge.model import kinds, names
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.workloads import kind_table
from slurm_bridge.workloads.kinds import kai_podgroup, mpijob
from tests.fuzz import generators
from tests.fuzz.generators import Json

T = TypeVar("T", bound=Object)

VICTIM, HOSTILE = "team", "evil"
NAMESPACES: Sequence[str] = (VICTIM, HOSTILE)

#: Of each kind one object in each namespace, all of one name.
_KINDS: Mapping[str, Kind[Any]] = {
    "job": kinds.JOBS,
    "jobset": kinds.JOBSETS,
    "lws": kinds.LEADERWORKERSETS,
    "podgroup": kinds.PODGROUPS,
    "coscheduling": kinds.COSCHEDULING_PODGROUPS,
    "kai": kai_podgroup.PODGROUPS,
    "setjob": kinds.JOBS,
    "replicaset": kinds.REPLICASETS,
    "mpijob": mpijob.MPIJOBS,
}
_SPECS: Mapping[str, Json] = {
    "job": {"parallelism": 3, "completions": 3},
    "jobset": {"replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": {"parallelism": 2}}}]},
    "lws": {"replicas": 2, "leaderWorkerTemplate": {"size": 2}},
    "podgroup": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    "coscheduling": {"minMember": 2},
    "kai": {"subGroups": [{"name": "a", "minMember": 1}, {"name": "b", "parent": "a"}]},
    "setjob": {"parallelism": 2},
    "replicaset": {},
    "mpijob": {"mpiReplicaSpecs": {"Launcher": {}, "Worker": {"replicas": 2}}},
}
_NAMES: Mapping[str, str] = {**dict.fromkeys(_KINDS, "set"), "setjob": "set-w-0", "job": "job"}

#: Whose uid it is, by uid.
OWNED: dict[str, str] = {f"{namespace}-{key}-uid": namespace for namespace in NAMESPACES for key in _KINDS}


def uid(namespace: str, key: str) -> str:
    """The uid of an object that is there."""
    return f"{namespace}-{key}-uid"


def manifest(namespace: str, key: str) -> Json:
    """One of the objects, as the API server has it."""
    marks: Json = {}
    if key == "setjob":
        marks = {
            "labels": {
                names.LABEL_JOBSET_NAME: "set",
                names.LABEL_JOBSET_UID: uid(namespace, "jobset"),
                names.LABEL_JOBSET_ATTEMPT: "0",
            },
            "ownerReferences": [reference(namespace, "jobset")],
        }
    kind = _KINDS[key]
    metadata: Json = {"name": _NAMES[key], "namespace": namespace, "uid": uid(namespace, key), **marks}
    version = f"{kind.group}/{kind.versions[0]}" if kind.group else kind.versions[0]
    return {"apiVersion": version, "kind": kind.kind, "metadata": metadata, "spec": _SPECS[key]}


def reference(namespace: str, key: str) -> Json:
    """An owner reference to it, as its controller writes it."""
    kind = _KINDS[key]
    version = f"{kind.group}/{kind.versions[0]}" if kind.group else kind.versions[0]
    found = {"apiVersion": version, "kind": kind.kind, "name": _NAMES[key], "controller": True}
    return {**found, "uid": uid(namespace, key)}


class Shelf:
    """Everything that is there, as the daemon's caches and the API server have it. Counts the questions."""

    def __init__(self, forged: Sequence[Json] = ()) -> None:
        self._objects: dict[tuple[str, str, str, str], Object] = {}
        self.asked = 0
        for namespace in NAMESPACES:
            for key in _KINDS:
                self.put(_KINDS[key], manifest(namespace, key))
        for one in forged:
            self.put(kinds.JOBS, one)

    def put(self, kind: Kind[Any], manifest: Json) -> None:
        """One more object."""
        made = codec.codec(kind).one(msgspec.json.encode(manifest))
        self._objects[kind.group, kind.kind, *made.key] = made

    def all(self, kind: Kind[T]) -> tuple[T, ...]:
        """What there is of this kind."""
        return tuple(one for key, one in self._objects.items() if key[:2] == (kind.group, kind.kind))  # type: ignore[misc]

    def served(self, _kind: Kind[Any]) -> str | None:
        """This cluster has every kind."""
        return "v1"

    def get(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """As the API server says."""
        self.asked += 1
        return self._objects.get((kind.group, kind.kind, namespace, name))  # type: ignore[return-value]


GROUPING = kind_table.WATCHED


def forged_jobs(dice: random.Random) -> list[Json]:
    """Jobs of the hostile namespace that call themselves parts of the other's gangs."""
    return [_forged_job(dice, number) for number in range(dice.choice((0, 0, 1, 2)))]


def _forged_job(dice: random.Random, number: int) -> Json:
    labels = {
        names.LABEL_JOBSET_NAME: dice.choice(("set", "other")),
        names.LABEL_JOBSET_UID: dice.choice([uid(VICTIM, "jobset"), uid(HOSTILE, "jobset"), "free-uid"]),
        names.LABEL_JOBSET_ATTEMPT: dice.choice(("0", "1")),
    }
    owners = [_reference(dice)] if generators.chance(dice, 0.7) else []
    metadata = {"labels": labels, "ownerReferences": owners, "uid": f"forged-{number}"}
    metadata["resourceVersion"] = str(dice.randrange(10**9))
    spec = {"parallelism": 100, "completions": 100}
    made = {"metadata": {"name": f"forged-{number}", "namespace": HOSTILE, **metadata}, "spec": spec}
    return {**made, "status": {"succeeded": dice.choice((0, 1, 99))}}


def pods(dice: random.Random, number: int) -> Iterator[Json]:
    """Some pods that may belong together."""
    template = {"annotations": generators.said(dice), "spec": generators.spec(dice)}
    together = [_belonging(dice) for _ in range(2)]
    for place in range(dice.choice((1, 1, 2, 2, 3, 4))):
        namespace = dice.choice(NAMESPACES)
        own = generators.chance(dice, 0.3)
        belongs = dice.choice(together)
        marks = belongs["labels"] if generators.chance(dice, 0.8) else {}
        annotations = generators.said(dice) if own else template["annotations"]
        metadata: Json = {
            "name": f"p{number}-{place}",
            "namespace": namespace,
            "uid": f"pod-{number}-{place}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {**marks, **_odd_labels(dice)},
            "annotations": {**annotations, **belongs["annotations"]},
            "ownerReferences": belongs["owners"],
        }
        asked: Any = generators.spec(dice) if own else template["spec"]
        group = {"schedulingGroup": {"podGroupName": "set"}} if generators.chance(dice, 0.15) else {}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {**asked, **group},
            "status": _status(dice),
        }


def _status(dice: random.Random) -> Json:
    return (
        {"phase": "Pending"} if generators.chance(dice, 0.95) else {"phase": generators.text(dice, "Running", "Failed")}
    )


def _odd_labels(dice: random.Random) -> Json:
    if not generators.chance(dice, 0.2):
        return {}
    return {dice.choice(generators.MARKS): generators.text(dice, "1", "0", "50000001") for _ in range(2)}


def _belonging(dice: random.Random) -> Json:
    """The marks of one way to belong somewhere: as a controller leaves them, or with one word that is not true."""
    whose = dice.choice(NAMESPACES)
    ways = ("jobset", "lws", "job", "coscheduling", "kai", "group", "mpijob", "owners", "alone")
    way = dice.choice(ways)
    labels: Json = {}
    annotations: Json = {}
    owners: list[Json] = []
    if way == "jobset":
        labels = {
            names.LABEL_JOBSET_NAME: generators.text(dice, "set"),
            names.LABEL_JOBSET_UID: dice.choice([uid(whose, "jobset"), *OWNED, generators.text(dice)]),
            names.LABEL_JOBSET_ATTEMPT: generators.text(dice, "0", "0", "1"),
            names.LABEL_JOBSET_PART: "w",
        }
        owners = [_bent(dice, reference(whose, "setjob"))]
    elif way == "mpijob":
        labels = {names.LABEL_MPI_NAME: generators.text(dice, "set")}
        owners = [_bent(dice, reference(whose, "mpijob"))]
    elif way == "lws":
        labels = {
            names.LABEL_LWS_NAME: "set",
            names.LABEL_LWS_GROUP: generators.text(dice, "0", "1"),
            names.LABEL_LWS_WORKER: generators.text(dice, "0", "1"),
        }
        annotations = {names.ANNOTATION_LWS_SIZE: generators.text(dice, "2")}
    elif way == "job":
        owners = [_bent(dice, reference(whose, "job"))]
        annotations = {
            names.ANNOTATION_GANG: "true",
            names.ANNOTATION_COMPLETION_INDEX: generators.text(dice, "0", "1"),
        }
    elif way == "coscheduling":
        labels = {names.LABEL_COSCHEDULING: generators.text(dice, "set")}
    elif way == "kai":
        labels = {names.LABEL_KAI_SUBGROUP: generators.text(dice, "a", "b")}
        annotations = {names.ANNOTATION_KAI_GROUP: generators.text(dice, "set")}
    elif way == "group":
        where = labels if generators.chance(dice, 0.5) else annotations
        where |= {names.GROUP: generators.text(dice, "crew"), names.GROUP_SIZE: generators.text(dice, "1", "2", "3")}
    elif way == "owners":
        count = 2000 if generators.chance(dice, 0.03) else dice.randint(1, 5)
        owners = [_bent(dice, _reference(dice)) for _ in range(count)]
    return {"labels": labels, "annotations": annotations, "owners": owners}


def _reference(dice: random.Random) -> Json:
    key = dice.choice(list(_KINDS))
    return reference(dice.choice(NAMESPACES), key)


def _bent(dice: random.Random, owner: Json) -> Json:
    """Mostly as it was; now and then with a version that no API server knows, or another kind, name or uid."""
    if generators.chance(dice, 0.5):
        return owner
    field = dice.choice(("apiVersion", "kind", "name", "uid", "controller"))
    bent: Mapping[str, object] = {
        "apiVersion": generators.text(dice, "batch/v9", "x.example/v1", "v1"),
        "kind": generators.text(dice, "JobSet", "Job", "LeaderWorkerSet", "PodGroup", "Pod"),
        "name": generators.text(dice, "set", "job", f"other-{dice.randrange(10**6)}"),
        "uid": dice.choice([*OWNED, generators.text(dice, "u")]),
        "controller": dice.choice((True, False, None)),
    }
    return {**owner, field: bent[field]}
