"""kai: layers of node sets, attempts on them, whole workloads, and the division among queues."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slurm_bridge.families.kai.topology import GPU, WHOLE
from slurm_bridge.hooks.base import Ask, NodeSet, Subsets
from slurm_bridge.hooks.calls import Hook, HookCaller, Unobserved
from slurm_bridge.hooks.pass_context import Layers, Stopped
from slurm_bridge.hooks.services import Silent
from slurm_bridge.hooks.session import Session
from slurm_bridge.model.job import JobRequest, Memory
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.runtime.clock import VirtualClock
from tests.conformance import kube_records
from tests.conformance.fields import Fields, Malformed
from tests.conformance.kai_arithmetic import allocation, fairshare
from tests.conformance.kai_arithmetic.allocation import TaskGroup
from tests.conformance.kai_arithmetic.bench import Bench, Machine, TaskRequest
from tests.conformance.kai_arithmetic.fairshare import Divided, QueueClaim
from tests.conformance.kai_topology import constraint, job, topologies

Result = Mapping[str, Any]
Names = Sequence[str]
Labels = Mapping[str, Mapping[str, str]]
Divide = Callable[[Names], Sequence[Names]]


# -- nodesets_layering -----------------------------------------------------------------------------------------------


class _Stub:
    """A plugin of the cases as a hook of the framework; sets of that have no order, so that names get theirs back."""

    def __init__(self, every: Names, divide: Divide) -> None:
        self._every = every
        self._divide = divide

    def subset(self, _session: Session, _ask: Ask, _tasks: object, nodes: frozenset[str]) -> Subsets:
        sets = self._divide([name for name in self._every if name in nodes])
        return Subsets(sets=tuple(NodeSet(nodes=frozenset(one)) for one in sets))


class _Unchanged:
    """A plugin whose business it is not."""

    def subset(self, _session: Session, _ask: Ask, _tasks: object, _nodes: frozenset[str]) -> Subsets:
        return Subsets(relevant=False)


def _contains(given: Fields, _labels: Labels) -> Divide:
    text = given.text("text")
    return lambda nodes: [[one for one in nodes if text in one], [one for one in nodes if text not in one]]


def _by_label(given: Fields, labels: Labels) -> Divide:
    label = given.text("label")

    def divide(nodes: Names) -> Sequence[Names]:
        values = sorted({labels[name][label] for name in nodes if label in labels[name]})
        return [[name for name in nodes if labels[name].get(label) == value] for value in values]

    return divide


def _empty(_given: Fields, _labels: Labels) -> Divide:
    return lambda _nodes: []


def _empty_set(_given: Fields, _labels: Labels) -> Divide:
    return lambda _nodes: [[]]


def _duplicate(_given: Fields, _labels: Labels) -> Divide:
    return lambda nodes: [nodes, nodes]


def _first(given: Fields, _labels: Labels) -> Divide:
    count = given.whole("count")
    return lambda nodes: [nodes[:count]]


def _explicit(given: Fields, _labels: Labels) -> Divide:
    sets = given.mapping("sets")
    return lambda nodes: sets[",".join(nodes)]


def _error(given: Fields, _labels: Labels) -> Divide:
    message = given.text("message")

    def divide(_nodes: Names) -> Sequence[Names]:
        raise RuntimeError(message)

    return divide


def _error_if(given: Fields, _labels: Labels) -> Divide:
    node, message = given.text("node"), given.text("message")

    def divide(nodes: Names) -> Sequence[Names]:
        if node in nodes:
            raise RuntimeError(message)
        return [nodes]

    return divide


_STUBS: Mapping[str, Callable[[Fields, Labels], Divide]] = {
    "contains": _contains,
    "by_label": _by_label,
    "empty": _empty,
    "empty_set": _empty_set,
    "duplicate": _duplicate,
    "first": _first,
    "explicit": _explicit,
    "error": _error,
    "error_if": _error_if,
}


def _layer(given: Fields) -> Result:
    """By a pass of the framework over a chain of these hooks."""
    labels = _labels(given)
    every = list(labels)
    hooks = tuple(
        Hook(name=f"plugin-{number}", hook=_hook(one, every, labels))
        for number, one in enumerate(given.records("plugins"))
    )
    try:
        sets = _session(hooks, every).subset_nodes(_ASK, (), frozenset(every))
    except Stopped as stopped:
        return {"error": str(_first_cause(stopped))}
    return {"sets": [[name for name in every if name in one.nodes] for one in sets]}


def _labels(given: Fields) -> Labels:
    """Of nodes that are written with their labels, or as names alone."""
    try:
        return {name: {} for name in given.texts("nodes")}
    except Malformed:
        return {one.text("name"): one.mapping("labels") for one in given.records("nodes")}


def _hook(given: Fields, every: Names, labels: Labels) -> object:
    if given.text("kind") == "unchanged":
        return _Unchanged()
    return _Stub(every, given.choice("kind", _STUBS)(given, labels))


def _session(hooks: tuple[Hook, ...], names: Names) -> Session:
    caller = HookCaller(VirtualClock(), Unobserved())
    layers = Layers(hooks, caller, lambda _: Silent(), random.Random(0))
    return Session(layers, kube_records.named(names), now=0.0)


def _first_cause(error: BaseException) -> BaseException:
    return error if error.__cause__ is None else _first_cause(error.__cause__)


def _attempt(given: Fields) -> Result:
    free = given.mapping("free")
    bench = Bench([Machine(name=name, total={GPU: amount}) for name, amount in free.items()])
    tasks = [
        TaskRequest(name=one.text("name"), resources={GPU: one.whole("gpus")}, only=_only(one))
        for one in given.records("tasks")
    ]
    tried = allocation.attempt(bench, given.list("sets"), lambda nodes: allocation.seat_all(bench, tasks, nodes))
    return {
        "tried": tried.tried,
        "committed": tried.committed,
        "placement": bench.placement,
        "free_after": {name: bench.free(name, GPU) for name in free},
    }


def _only(given: Fields) -> frozenset[str] | None:
    return frozenset(given.texts("only")) if given.has("only") else None


# -- allocate --------------------------------------------------------------------------------------------------------


def _allocate(given: Fields) -> Result:
    bench = Bench(map(_machine, given.records("nodes")), topologies(given))
    wanted = given.fields("job")
    done = allocation.allocate(bench, job(wanted), _group(wanted, WHOLE))
    return {
        "status": "pending" if done.nodes is None else "allocated",
        "sets_tried": done.tried,
        "node_set": None if done.nodes is None else sorted(done.nodes),
        "placement": done.placement,
        "errors": done.errors,
    }


def _machine(given: Fields) -> Machine:
    return Machine(
        name=given.text("name"),
        labels=given.mapping("labels"),
        total=given.mapping("total"),
        used=given.mapping("used", {}),
    )


def _group(given: Fields, name: str) -> TaskGroup:
    asked = given.fields("constraint", None)
    return TaskGroup(
        name=name,
        constraint=None if asked is None else constraint(asked),
        tasks=tuple(_task(one) for one in given.records("tasks", ())),
        groups=tuple(_group(one, one.text("name")) for one in given.records("groups", ())),
    )


def _task(given: Fields) -> TaskRequest:
    return TaskRequest(
        name=given.text("name"), resources=given.mapping("resources"), selector=given.mapping("selector", {})
    )


# -- fair_share_division ---------------------------------------------------------------------------------------------


def _claim(given: Fields) -> QueueClaim:
    return QueueClaim(
        request=given.number("request"),
        deserved=given.number("deserved", None),
        weight=given.number("weight"),
        max=given.number("max", None),
        priority=given.whole("priority", 0),
        created=given.number("created", 0),
        usage=given.number("usage", 0),
        share=given.number("share", 0),
    )


_DIVISIONS: Mapping[str, Callable[[float, Mapping[str, QueueClaim], float], Divided]] = {
    "divide": fairshare.divide,
    "over_quota": fairshare.over_quota,
}


def _divide(given: Fields) -> Result:
    divide = given.choice("op", _DIVISIONS)
    claims = {name: _claim(one) for name, one in given.named("queues").items()}
    done = divide(given.number("total"), claims, given.number("k_value", 0))
    return {"shares": done.shares, "remaining": done.remaining}


_ASK = Ask(
    workload=Workload(
        root=Root(kind="Pod", namespace="", name="workload", uid="uid"), pods=(), sources=(), job_name="workload"
    ),
    request=JobRequest(
        name="workload",
        owner=Owner(cluster="", kind="Pod", namespace="", name="workload", uid="uid"),
        memory=Memory(mib=0),
    ),
)

_LAYERING: Mapping[str, Callable[[Fields], Result]] = {"layer": _layer, "attempt": _attempt}


def _check_layering(given: Fields, expect: Fields) -> None:
    expect.compare(given.choice("op", _LAYERING)(given))


FILES = {
    "nodesets_layering": _check_layering,
    "allocate": lambda given, expect: expect.compare(_allocate(given)),
    "fair_share_division": lambda given, expect: expect.compare(_divide(given)),
}
