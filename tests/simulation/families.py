"""The hook families as a site switches them on, small enough for a few nodes; and a hook that takes its time."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from slurm_bridge import ports
from slurm_bridge.hooks import base
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.verdict import Wait
from tests.simulation import racks

#: Of few nodes the best ones, then all.
TIERS: Mapping[str, Any] = {
    "name": "kube-scheduler",
    "options": {"first_tier": 1, "widen_after_seconds": 2.0},
}

#: Two agents of which one is asked at a time; the second one covers a part of the nodes, and half of these is a sample.
VELA: Mapping[str, Any] = {
    "name": "vela",
    "options": {
        "clusters_percent": 50,
        "nodes_bp": 5000,
        "max_backoff_seconds": 10.0,
        "agents": [
            {"name": "all"},
            {"name": "some", "shard": {"selector": "kubernetes.io/hostname notin (n1,n01)"}},
        ],
    },
}

#: More of them, for so long that much happens meanwhile; and for longer than any test takes.
SLOW: Mapping[str, Any] = {"name": "kube-scheduler", "options": {"first_tier": 2, "widen_after_seconds": 30.0}}
PATIENT: Mapping[str, Any] = {"name": "kube-scheduler", "options": {"first_tier": 1, "widen_after_seconds": 3600.0}}

#: Two halls, by Slurm's names of the machines of any fleet; each is given so little time that it is left soon.
KAI: Mapping[str, Any] = {
    "name": "kai",
    "options": {
        "topologies": [
            {
                "name": "halls",
                "levels": ["hall"],
                "source": "copy",
                "conf": "SwitchName=east Nodes=n[1-4],n[01-03]\nSwitchName=west Nodes=n[5-7],n[04-12],s8,s04,s06,s08",
            }
        ]
    },
}

#: Three racks in two halls, and little time for each set: a gang that requires one tries them in turn.
RACKS: Mapping[str, Any] = {
    "name": "kai",
    "options": {"topologies": [{"name": "site", "levels": ["hall", "rack"], "source": "copy", "conf": racks.CONF}]},
}

#: ResourceClaims for GPUs whose indices Slurm has too.
DEVICE_ROW: Mapping[str, Any] = {"device_class": "gpu.example.com", "gres": "gpu", "index": "index"}
DEVICES: Mapping[str, Any] = {"name": "device-claims", "options": {"classes": [DEVICE_ROW]}}

USUAL_QUEUE = "root.all.default"


def queues(most: int) -> Mapping[str, Any]:
    """One queue for all, with so many CPUs; so few may be ahead that most of them wait for each other."""
    limited = {"name": "all", "resources": {"max": {"vcore": str(most)}}, "queues": [{"name": "default"}]}
    partition = {
        "name": "default",
        "placementrules": [{"name": "provided"}, {"name": "fixed", "value": USUAL_QUEUE}],
        "queues": [{"name": "root", "submitacl": "*", "queues": [limited]}],
    }
    options = {
        "ahead": 6,
        "order": False,
        "reserve_after": 3.0,
        "reserve_seconds": 30.0,
        "configuration": {"partitions": [partition]},
    }
    return {"name": "yunikorn", "options": options}


def partitions() -> Mapping[str, Any]:
    """The same for each of Slurm's partitions."""
    alone = queues(64)
    (partition,) = alone["options"]["configuration"]["partitions"]
    both = [{**partition, "name": name} for name in ("debug", "batch")]
    return {**alone, "options": {**alone["options"], "partitions": "slurm", "configuration": {"partitions": both}}}


#: With so many CPUs, always some pods wait for them.
TIGHT = 4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """CPUs: what each of two queues is entitled to, and what all have together."""

    each: int
    most: int

    @property
    def entitled(self) -> Mapping[str, int]:
        """By the paths of the queues."""
        return {"root.all.left": self.each, "root.all.right": self.each}


def rivals(shares: Shares) -> Mapping[str, Any]:
    """Below one maximum two queues that are entitled to something, and one that lives on what these leave."""
    delays = {"preemption.delay": "1s", "quota.preemption.delay": "3s"}
    leaves = [
        {"name": path.rpartition(".")[2], "resources": {"guaranteed": {"vcore": str(cpus)}}, "properties": delays}
        for path, cpus in shares.entitled.items()
    ]
    limited = {"name": "all", "resources": {"max": {"vcore": str(shares.most)}}, "properties": delays}
    partition = {
        "name": "default",
        "placementrules": [{"name": "provided"}, {"name": "fixed", "value": USUAL_QUEUE}],
        "preemption": {"quotapreemptionenabled": True},
        "queues": [
            {
                "name": "root",
                "submitacl": "*",
                "queues": [{**limited, "queues": [*leaves, {"name": "default", "properties": delays}]}],
            }
        ],
    }
    options = {"ahead": 6, "order": False, "evict_seconds": 15.0, "configuration": {"partitions": [partition]}}
    return {"name": "yunikorn", "options": options}


#: For pods and for groups: as always, when times are hard, and when there is enough.
PODS, GROUPS = ("rivals", "poor rivals", "rich rivals"), ("rival groups", "poor rival groups", "rich rival groups")
RIVALS: Mapping[str, Shares] = {
    **{name: Shares(each=2, most=most) for name, most in zip(PODS, (6, 4, 1000), strict=True)},
    **{name: Shares(each=4, most=most) for name, most in zip(GROUPS, (12, 9, 1000), strict=True)},
}

#: CPUs of the one queue of the matrix.
QUOTAS = (4, 6, 1000)

KNOWN: Mapping[str, Mapping[str, Any]] = {
    **{name: rivals(shares) for name, shares in RIVALS.items()},
    "tiers": TIERS,
    "slow tiers": SLOW,
    "patient tiers": PATIENT,
    "vela": VELA,
    "kai": KAI,
    "racks": RACKS,
    "queues": queues(64),
    "partitions": partitions(),
    "tight queues": queues(TIGHT),
    **{f"quotas of {most}": queues(most) for most in QUOTAS},
    "places": {"name": "kai", "options": {"topologies": [{"name": "site", "levels": ["hall", "rack"]}]}},
    "samples": {**VELA, "options": {**VELA["options"], "nodes_bp": 2000}},
    "rules": {"name": "kube-scheduler"},
    "devices": DEVICES,
    "any devices": {"name": "device-claims", "options": {"classes": [{**DEVICE_ROW, "without_index": "choose"}]}},
}

#: Some of them together, in order.
CHOICES: tuple[tuple[str, ...], ...] = (
    ("tiers",),
    ("slow tiers",),
    ("vela",),
    ("vela", "tiers"),
    ("slow tiers", "vela"),
    ("kai",),
    ("kai", "vela", "tiers"),
    ("queues",),
    ("queues", "vela", "tiers"),
)

#: How long the dreamer thinks, and for how long it knows what it has thought.
THINKS, KNOWS = 0.6, 20.0
_NOTHING = base.Denied(nodes={})


class Dreamer:
    """Has no answer when it is asked, and wakes the workload when there is one: also after it was closed."""

    def __init__(self, clock: ports.Clock, wake: Callable[[WorkloadKey], None]) -> None:
        self._clock, self._wake = clock, wake
        self._due: dict[WorkloadKey, float] = {}
        self._known: dict[WorkloadKey, float] = {}

    def filter(self, _session: base.Session, ask: base.Ask, _nodes: base.Nodes, /) -> base.Denied | Wait:
        """Nothing is wrong with any node, but that takes a while to find out."""
        key, now = ask.workload.root.key, self._clock.now()
        if self._known.get(key, now) > now:
            return _NOTHING
        self._due.setdefault(key, now + THINKS)
        return Wait(reason="Dreaming", message="still thinking")

    def go_on(self) -> None:
        """What another thread does beside the passes; there is no thread in this world."""
        now = self._clock.now()
        for key, due in list(self._due.items()):
            if due <= now:
                del self._due[key]
                self._known[key] = now + KNOWS
                self._wake(key)
