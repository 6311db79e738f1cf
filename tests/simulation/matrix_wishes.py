"""What a workload of the matrix asks for, drawn by dice, and its manifests."""

import dataclasses
import enum
import random
from collections.abc import Collection, Mapping
from typing import Any

from slurm_bridge.model import kinds, names
from tests.simulation import matrix_park, rack_users
from tests.simulation.troupes import Made, Manifest

APP = {"app": "asked"}
ANCHOR = {"app": "anchor"}
LEADER = "leader"
HOST = "kubernetes.io/hostname"


class Shape(enum.StrEnum):
    """Pods alone, a group of equal ones, and a leader with workers of another size."""

    SINGLES = "singles"
    GANG = "gang"
    HET = "het"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """`spread`, `apart` and `near` are topology keys; `near` are pods of the same label, or `anchor`, or the leader."""

    shape: Shape
    pods: int
    cpus: int
    leader_cpus: int = 0
    disk: bool = False
    zones: tuple[str, ...] = ()
    tolerates: bool = False
    few: bool = False
    spread: str = ""
    apart: str = ""
    near: str = ""
    near_whom: str = ""
    port: bool = False
    required: str = ""
    preferred: str = ""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The CPUs of each pod in order."""
        first = self.leader_cpus if self.shape is Shape.HET else self.cpus
        return (first, *(self.cpus,) * (self.pods - 1))

    @property
    def neighbourly(self) -> bool:
        """What a pod asks depends on where others are."""
        return bool(self.spread or self.apart or self.near or self.port)

    def without(self, name: str) -> "Wish":
        """The same, not asking for this."""
        return dataclasses.replace(self, **{name: _NOTHING[name]})

    def asked(self) -> list[str]:
        """What it asks for beside CPUs."""
        return [name for name, nothing in _NOTHING.items() if getattr(self, name) != nothing]


_NOTHING: Mapping[str, Any] = {"disk": False, "zones": (), "few": False, "spread": "", "apart": "", "near": ""} | {
    "port": False,
    "required": "",
}


def drawn(dice: random.Random, shape: Shape, families: Collection[str]) -> Wish:
    """Something that these families understand."""
    pods = dice.choice((1, 2, 3)) if shape is Shape.SINGLES else dice.choice((2, 3, 4))
    wish = Wish(
        shape=shape,
        pods=pods,
        cpus=dice.choice((1, 1, 2, 4, 8)),
        leader_cpus=dice.choice((2, 3)),
        disk=dice.random() < 0.3,
        zones=tuple(dice.sample(("z1", "z2", "z3"), dice.choice((1, 2)))) if dice.random() < 0.2 else (),
        tolerates=dice.random() < 0.3,
        few=dice.random() < 0.2,
    )
    if wish.shape is Shape.HET and wish.cpus == wish.leader_cpus:
        wish = dataclasses.replace(wish, leader_cpus=wish.cpus + 1)
    if "rules" in families and dice.random() < 0.7:
        wish = _with_neighbours(dice, wish)
    if "places" in families and shape is not Shape.SINGLES:
        required, preferred = dice.choice((("", ""), ("rack", ""), ("hall", ""), ("hall", "rack"), ("", "rack")))
        wish = dataclasses.replace(wish, required=required, preferred=preferred)
    return wish


def _with_neighbours(dice: random.Random, wish: Wish) -> Wish:
    """Slurm chooses the nodes of a leader and its workers: not all that they could ask for is certain to be found."""
    het = wish.shape is Shape.HET
    which = dice.choice(("apart", "near", "near", "port") if het else ("spread", "apart", "near", "port"))
    if which == "port":
        return dataclasses.replace(wish, port=True)
    key = HOST if het else dice.choice(("zone", HOST))
    if which != "near":
        return dataclasses.replace(wish, **{which: key})
    whom = dice.choice(("app", "anchor", *(("leader",) if het else ())))
    return dataclasses.replace(wish, near="zone", near_whom=whom)


def manifests(wish: Wish, dice: random.Random) -> list[Made]:
    """Everything that its user creates."""
    words = {rack_users.REQUIRED: wish.required, rack_users.PREFERRED: wish.preferred}
    words |= {names.JOB_PREFIX + "partition": matrix_park.FEW if wish.few else ""}
    given = {key: value for key, value in words.items() if value}
    if wish.shape is Shape.SINGLES:
        return [_pod(wish, f"s{number}", number, given) for number in range(wish.pods)]
    form = dice.choice((_job, _group) if wish.shape is Shape.GANG else (_leader_worker_set, _group))
    return form(wish, given)


def _pod(wish: Wish, name: str, number: int, words: Mapping[str, str], labels: Mapping[str, str] | None = None) -> Made:
    template = _template(wish, leader=number == 0)
    metadata = {**template["metadata"], "name": name}
    metadata["annotations"] = {**metadata["annotations"], **words}
    metadata["labels"] = {**metadata["labels"], **(labels or {})}
    return kinds.PODS, {"metadata": metadata, "spec": template["spec"]}


def _group(wish: Wish, words: Mapping[str, str]) -> list[Made]:
    labels = {names.GROUP: "g", names.GROUP_SIZE: str(wish.pods)}
    return [_pod(wish, f"g-{number}", number, words, labels) for number in range(wish.pods)]


def _job(wish: Wish, words: Mapping[str, str]) -> list[Made]:
    metadata = {"name": "g", "annotations": {names.ANNOTATION_GANG: "true", **words}}
    spec = {"parallelism": wish.pods, "completions": wish.pods, "completionMode": "Indexed", "backoffLimit": 20}
    return [(kinds.JOBS, {"metadata": metadata, "spec": {**spec, "template": _template(wish, leader=False)}})]


def _leader_worker_set(wish: Wish, words: Mapping[str, str]) -> list[Made]:
    template = {
        "size": wish.pods,
        "leaderTemplate": _template(wish, leader=True, restart="Always"),
        "workerTemplate": _template(wish, leader=False, restart="Always"),
    }
    spec = {"replicas": 1, "startupPolicy": "LeaderCreated", "leaderWorkerTemplate": template}
    return [(kinds.LEADERWORKERSETS, {"metadata": {"name": "g", "annotations": dict(words)}, "spec": spec})]


def _template(wish: Wish, *, leader: bool, restart: str = "Never") -> Manifest:
    """A pod of it."""
    leads = leader and wish.shape is Shape.HET
    cpus = wish.leader_cpus if leads else wish.cpus
    container: Manifest = {"name": "main", "image": "none"}
    container["resources"] = {"requests": {"cpu": str(cpus), "memory": "100Mi"}}
    if wish.port:
        container["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    spec: Manifest = {
        "schedulerName": names.SCHEDULER_NAME,
        "restartPolicy": restart,
        "containers": [container],
        "terminationGracePeriodSeconds": 3,
        "affinity": _affinity(wish, leads=leads),
    }
    if wish.disk:
        spec["nodeSelector"] = {"disk": "ssd"}
    if wish.tolerates:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if wish.spread:
        one = {"maxSkew": 1, "topologyKey": wish.spread, "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [{**one, "labelSelector": {"matchLabels": APP}}]
    labels = {**APP, **({LEADER: "yes"} if leads else {})}
    return {"metadata": {"labels": labels, "annotations": {"kwok.local/outcome": "run"}}, "spec": spec}


def _affinity(wish: Wish, *, leads: bool) -> Manifest:
    found: Manifest = {}
    if wish.zones:
        terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": list(wish.zones)}]}]
        found["nodeAffinity"] = {_REQUIRED: {"nodeSelectorTerms": terms}}
    if wish.apart:
        found["podAntiAffinity"] = {_REQUIRED: [_term(wish.apart, APP)]}
    if wish.near and not (leads and wish.near_whom == "leader"):
        whom = {"app": APP, "anchor": ANCHOR, "leader": {LEADER: "yes"}}[wish.near_whom]
        found["podAffinity"] = {_REQUIRED: [_term(wish.near, whom)]}
    return found


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _term(key: str, labels: Mapping[str, str]) -> Manifest:
    return {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels)}}
