"""What users, and servers that have gone wrong, may write: seeded builders of text, numbers, marks and specs.

Each takes the dice first. Most of what they make is ordinary, because a manifest that is wrong everywhere is refused at
its first wrong word and says nothing about the others.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from slurm_bridge.families.kai import wishes
from slurm_bridge.model import names
from slurm_bridge.translate import annotations

T = TypeVar("T")
Json = dict[str, Any]

#: Text that has stopped programs before: ends of lines, escapes of terminals, directions, digits that are no ASCII.
ODD: Sequence[str] = (
    "",
    " ",
    "a\nb",
    "a\r\nJOBID PARTITION",
    "\x1b[31mred",
    "\x00",
    "\x7f",
    "\x9b2J",
    "\u202egnp",
    "\u2028",
    "\ufeff",
    "\N{FULLWIDTH DIGIT NINE}",
    "²",
    "٣",
    "é",
    "\U0001f4a9",
    "../../etc",
    "%s%n",
    "{}",
    "[1-3]",
    "n[1-100000]",
    "a,b,,c",
    "a" * 300,
    "null",
    "None",
    "true",
    "-1",
    "0",
    "1e9",
    "1e999999999",
    "0x10",
    "1_000",
    "9" * 25,
    "nan",
    "root",
    "*",
    '{"mark":"slurm-bridge/1"}',
    "a:b:c",
    "gpu:0",
    "gpu:-1",
    "gpu:99999999999",
)

#: Larger than any pod needs.
LARGE: Sequence[Callable[[], str]] = (
    lambda: "[" * 60_000,
    lambda: '{"a":' * 20_000,
    lambda: "9" * 4_400,
    lambda: "x" * 60_000,
    lambda: "," * 20_000,
    lambda: ("gpu:1," * 8_000)[:-1],
    lambda: "\n" * 10_000,
    lambda: "([" * 500,
)

QUANTITIES: Sequence[object] = ("1", "500m", "2", "1500m", "1Gi", "512Mi", "4G", 1, 0.5, "0", "100m", "2e3")
ODD_QUANTITIES: Sequence[object] = (
    "-1",
    "",
    "1e99",
    "9223372036854775807",
    "99999999999999999999999999",
    "1.0000000000000000000000001",
    "0.0000001n",
    "1KiB",
    "abc",
    "1 Gi",
    2**63,
    -5,
    1e300,
    True,
    None,
    "65534",
    "5000000000",
    "9Ei",
    "٣",
)

#: Harmless values of our annotations, by key.
SENSIBLE: dict[str, Sequence[str]] = {
    "account": ("physics", "chemistry"),
    "user-id": ("ann", "1001", "0", "99", "slurm", "root", "munge", "daemon"),
    "group-id": ("staff", "1001", "0", "root"),
    "qos": ("high", "normal"),
    "partition": ("debug", "batch", "debug,batch", "secret"),
    "priority": ("1", "100000", "4294967294", "0"),
    "gres": ("gpu:1", "gpu", "gpu:v100:2", "none", "gpu=2", "gres/gpu:2"),
    "timelimit": ("1", "90", "71582788", "71582789"),
    "min-nodes": ("1", "2", "4294967293"),
    "max-nodes": ("1", "3"),
    "cpu-per-task": ("1", "500m", "65533", "65534"),
    "mem-per-node": ("1Gi", "8Gi", "1"),
    "licenses": ("matlab:1",),
    "constraints": ("gpu&ssd", "((((((((("),
    "gang": ("true", "false"),
    "member-lost": ("keep", "restart-group"),
    "exclusive": ("true", "false"),
    "queue": ("root.research", "root.all.default", "root..x"),
}

OURS: Sequence[str] = tuple(annotations.BY_KEY)
#: Read by the bridge beside those, and written by users all the same.
OTHERS: Sequence[str] = (
    names.ANNOTATION_PARKED,
    names.ANNOTATION_ROOM,
    names.ANNOTATION_MAKES_ROOM,
    names.ANNOTATION_RETRY,
    names.ANNOTATION_SLURM_NODE,
    names.GROUP,
    names.GROUP_SIZE,
    names.ANNOTATION_COMPLETION_INDEX,
    names.ANNOTATION_LWS_SIZE,
    names.ANNOTATION_LWS_EXCLUSIVE,
    names.ANNOTATION_JOBSET_EXCLUSIVE,
    wishes.TOPOLOGY,
    wishes.REQUIRED,
    wishes.PREFERRED,
    "scheduler.alpha.kubernetes.io/preferAvoidPods",
    "yunikorn.apache.org/task-groups",
    names.SCHEDULER_PREFIX + "battery-min-level",
    names.SCHEDULER_PREFIX + "geo-target",
)
MARKS: Sequence[str] = (
    names.LABEL_JOB_ID,
    names.GROUP,
    names.GROUP_SIZE,
    names.LABEL_COSCHEDULING,
    names.LABEL_JOBSET_NAME,
    names.LABEL_JOBSET_UID,
    names.LABEL_JOBSET_ATTEMPT,
    names.LABEL_JOBSET_PART,
    names.LABEL_JOBSET_GLOBAL_INDEX,
    names.LABEL_LWS_NAME,
    names.LABEL_LWS_GROUP,
    names.LABEL_LWS_WORKER,
    "queue",
    "applicationId",
    "app",
)


def chance(dice: random.Random, part: float) -> bool:
    """True in so many of all cases."""
    return dice.random() < part


def one(dice: random.Random, *choices: tuple[float, Callable[[], T]]) -> T:
    """One of several makers, by their weights."""
    weights = [weight for weight, _ in choices]
    return dice.choices([make for _, make in choices], weights)[0]()


def text(dice: random.Random, *usual: str) -> str:
    """Mostly one of the usual words; now and then an unexpected one."""
    return one(
        dice,
        (10.0, lambda: dice.choice(usual) if usual else dice.choice(("a", "web", "x1"))),
        (2.0, lambda: dice.choice(ODD)),
        (1.0, lambda: "".join(chr(_letter(dice)) for _ in range(dice.randint(1, 30)))),
        (0.1, dice.choice(LARGE)),
    )


def _letter(dice: random.Random) -> int:
    """Any letter that JSON can carry: halves of pairs are no letters."""
    found = dice.choice((dice.randrange(0x20, 0x7F), dice.randrange(0x20), dice.randrange(0x80, 0x3000)))
    return found if not 0xD800 <= found <= 0xDFFF else 0x20


def quantity(dice: random.Random) -> object:
    """An amount."""
    return dice.choice(QUANTITIES) if chance(dice, 0.85) else dice.choice(ODD_QUANTITIES)


def said(dice: random.Random, most: int = 4) -> Json:
    """Annotations, most of them about jobs."""
    found: Json = {}
    for _ in range(dice.randint(0, most)):
        if chance(dice, 0.6):
            key = dice.choice(OURS) if chance(dice, 0.95) else text(dice, "acount", "partitions")
            found[names.JOB_PREFIX + key] = text(dice, *SENSIBLE.get(key, ("1", "2", "true")))
        else:
            found[dice.choice(OTHERS)] = _note(dice)
    if chance(dice, 0.01):
        found |= {f"{names.JOB_PREFIX}unknown-{number}": "x" for number in range(3000)}
    if chance(dice, 0.005):
        found["example.com/large"] = "x" * 250_000
    return found


def _note(dice: random.Random) -> str:
    intent = text(dice, "ab12", "cd34")
    return text(
        dice,
        '{"job":1,"why":"x","intent":"a"}',
        '{"job":[],"why":{},"intent":7}',
        '["a"]',
        '{"pods":[{"uid":"x","node":"n1"}],"for":"y"}',
        "3",
        "1",
        intent,
    )


def spec(dice: random.Random) -> Json:
    """What a pod asks for."""
    found: Json = {
        "schedulerName": names.SCHEDULER_NAME,
        "containers": [container(dice) for _ in range(dice.choice((1, 1, 1, 2, 3)))],
    }
    extras: Sequence[tuple[float, str, Callable[[], object]]] = (
        (0.1, "initContainers", lambda: [container(dice)]),
        (0.1, "nodeSelector", lambda: {text(dice, "disk", "zone"): text(dice, "ssd", "a")}),
        (0.2, "affinity", lambda: affinity(dice)),
        (0.15, "tolerations", lambda: tolerations(dice)),
        (0.1, "overhead", lambda: {"cpu": quantity(dice)}),
        (0.1, "serviceAccountName", lambda: text(dice, "default", "robot")),
        (0.1, "priority", lambda: dice.choice((0, 1, -5, 2**31 - 1, 10**9))),
        (0.1, "activeDeadlineSeconds", lambda: dice.choice((1, 60, 2**31, 10**12, 0, -1))),
        (0.05, "topologySpreadConstraints", lambda: [nested(dice, 3)]),
        (0.1, "volumes", lambda: [volume(dice) for _ in range(dice.randint(1, 3))]),
        (0.03, "resourceClaims", lambda: [{"name": text(dice, "gpu")}]),
        (0.03, "schedulingGates", lambda: [{"name": text(dice, "example.com/wait")}]),
        (0.05, "nodeName", lambda: text(dice, "n1", "n2", "n9")),
        (0.05, "hostNetwork", lambda: True),
        (0.1, "schedulingGroup", lambda: {"podGroupName": text(dice, "group", "set")}),
        (0.05, "preemptionPolicy", lambda: text(dice, "Never", "PreemptLowerPriority")),
        (0.03, "terminationGracePeriodSeconds", lambda: dice.choice((0, 30, 2**40, -1))),
        (0.03, "resources", lambda: resources(dice)),
    )
    found |= {name: make() for part, name, make in extras if chance(dice, part)}
    return found


def container(dice: random.Random) -> Json:
    """One container."""
    found: Json = {"name": text(dice, "main"), "image": "none", "resources": resources(dice)}
    if chance(dice, 0.1):
        port = dice.choice((80, 0, 65536, -1))
        found["ports"] = [{"containerPort": 80, "hostPort": port, "protocol": text(dice, "TCP", "UDP")}]
    return found


def resources(dice: random.Random) -> Json:
    """Requests and limits."""
    kinds = ("cpu", "memory", "nvidia.com/gpu", "amd.com/gpu", "ephemeral-storage", "example.com/thing", "pods")
    wanted = {kind: quantity(dice) for kind in kinds if chance(dice, 0.3)}
    return {"requests": wanted, **({"limits": {**wanted, "cpu": quantity(dice)}} if chance(dice, 0.3) else {})}


def affinity(dice: random.Random) -> Json:
    """Rules about nodes and neighbours: right, large, deep, or of another shape."""
    return one(
        dice,
        (3.0, lambda: {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [term(dice)]}}}),
        (
            1.0,
            lambda: {"nodeAffinity": {_PREFERRED: [{"weight": dice.choice((1, 100, -3)), "preference": term(dice)}]}},
        ),
        (1.0, lambda: {"podAntiAffinity": {_REQUIRED: [neighbour(dice)]}}),
        (1.0, lambda: {"podAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": neighbour(dice)}]}}),
        (1.0, lambda: nested(dice, 4)),
        (0.3, lambda: {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [term(dice) for _ in range(150)]}}}),
        (0.05, lambda: {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [absent(n) for n in range(3000)]}}}),
        (0.2, lambda: deep(dice.choice((50, 200)))),
    )


_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def term(dice: random.Random) -> Json:
    """One term of a node selector."""
    operator = text(dice, "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
    values = [text(dice, "a", "b", "3") for _ in range(dice.randint(0, 3))]
    where = dice.choice(("matchExpressions", "matchExpressions", "matchFields"))
    return {where: [{"key": text(dice, "zone", "disk", "metadata.name"), "operator": operator, "values": values}]}


def absent(number: int) -> Json:
    """A term about a label that no node has."""
    return {"matchExpressions": [{"key": f"absent-{number}", "operator": "Exists"}]}


def neighbour(dice: random.Random) -> Json:
    """One term about other pods."""
    selector = one(
        dice,
        (3.0, lambda: {"matchLabels": {"app": text(dice, "web")}}),
        (1.0, lambda: {"matchExpressions": [{"key": "app", "operator": text(dice, "In", "Exists"), "values": ["x"]}]}),
        (1.0, lambda: nested(dice, 3)),
    )
    return {"labelSelector": selector, "topologyKey": text(dice, "kubernetes.io/hostname", "zone")}


def tolerations(dice: random.Random) -> list[Json]:
    """A few, now and then very many."""
    count = 2000 if chance(dice, 0.03) else dice.randint(1, 3)
    effects = ("NoSchedule", "NoExecute", "PreferNoSchedule", "")
    return [
        {"key": f"k{number}", "operator": dice.choice(("Equal", "Exists", "odd")), "effect": dice.choice(effects)}
        for number in range(count)
    ]


def volume(dice: random.Random) -> Json:
    """One volume."""
    return one(
        dice,
        (2.0, lambda: {"name": "v", "persistentVolumeClaim": {"claimName": text(dice, "data")}}),
        (1.0, lambda: {"name": "v", "emptyDir": {}}),
        (1.0, lambda: {"name": "v", "persistentVolumeClaim": nested(dice, 2)}),
        (1.0, lambda: nested(dice, 3)),
    )


def nested(dice: random.Random, levels: int) -> Json:
    """An object of any shape whose keys are those that readers look for."""
    keys = (
        "labelSelector",
        "matchLabels",
        "matchExpressions",
        "nodeAffinity",
        "topologyKey",
        "name",
        "values",
        "key",
        "a",
    )
    return {dice.choice(keys): anything(dice, levels) for _ in range(dice.randint(0, 3))}


def anything(dice: random.Random, levels: int) -> object:
    """Any JSON."""
    if levels <= 0 or chance(dice, 0.3):
        return dice.choice((None, True, 0, -1, 1.5, 10**25, "", "x", text(dice)))
    if chance(dice, 0.3):
        return [anything(dice, levels - 1) for _ in range(dice.randint(0, 3))]
    return nested(dice, levels - 1)


def deep(levels: int) -> Json:
    """So many objects in each other."""
    found: Json = {}
    for _ in range(levels):
        found = {"nodeAffinity": found}
    return found
