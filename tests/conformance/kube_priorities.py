"""kube: what the priorities give, how scores become one, how many nodes are looked at, which host is taken."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.cluster.rules import volumes
from slurm_bridge.families.kube_scheduler import scene, selection
from slurm_bridge.families.kube_scheduler.extenders import verdicts
from slurm_bridge.families.kube_scheduler.matrix import Prioritized
from slurm_bridge.families.kube_scheduler.options import ExtenderOptions
from slurm_bridge.families.kube_scheduler.predicates.base import Failures, Predicate
from slurm_bridge.families.kube_scheduler.priorities import allocation, images, numbers, shape, table
from slurm_bridge.families.kube_scheduler.priorities.rule import BadPriority, HostPriority, PriorityConfig
from slurm_bridge.families.kube_scheduler.priority_chain import PrioritiesFailed, Prioritizer
from slurm_bridge.families.kube_scheduler.scene import Lookup, Scene
from slurm_bridge.hooks.services import JsonClient, NotAnswered, Target
from slurm_bridge.hooks.session import Session
from slurm_bridge.model.pod import Pod
from tests.conformance import kube_records
from tests.conformance.fields import Fields
from tests.conformance.kube_cycle import cycle, host
from tests.conformance.kube_cycle.fiterror import FitError
from tests.conformance.kube_cycle.host import HostTurns, NothingToSelect

Result = Mapping[str, Any]
Operation = Callable[[Fields], Result]

_NOTHING = Fields({}, "nothing")


def _scene(given: Fields) -> tuple[Scene, Session]:
    """The pod, the nodes with their pods, and the services that select by these labels."""
    snapshot = kube_records.cluster(given.records("nodes"), given.records("existing", ()))
    selectors = [kube_records.labels(one) for one in given.records("selectors", ())]
    pod = kube_records.pod(given.fields("pod") if given.has("pod") else _NOTHING)
    lookup = Lookup(service_selectors=lambda _namespace: selectors)
    return scene.scene(snapshot, pod, lookup=lookup), kube_records.session(snapshot)


def _run(configs: list[PriorityConfig], given: Fields) -> Prioritized:
    seen, session = _scene(given)
    return Prioritizer(configs).run(seen, session, session.snapshot.names)


def _scores(found: Prioritized) -> dict[str, int]:
    return {one.host: one.score for one in host.hosts(found)}


def _rated(name: str, args: Callable[[Fields], dict[str, Any]] = lambda _: {}) -> Operation:
    """The scores, and what they were before reduce, under both names that the files have for it."""

    def operation(given: Fields) -> Result:
        seen, session = _scene(given)
        try:
            config = table.configured(name, 1, args(given))
        except BadPriority:
            return {"error": True}
        run = [
            Prioritizer([one]).run(seen, session, session.snapshot.names)
            for one in (config, dataclasses.replace(config, reduce=None))
        ]
        if not run[0].rows:
            return {"skip": True}
        scores, raw = map(_scores, run)
        return {"scores": scores, "raw": raw, "counts": raw}

    return operation


def _pairs(given: Fields, key: str) -> dict[str, Any]:
    """A list of pairs where there is one; null is an argument as well."""
    if given.null(key):
        return {key: None}
    return {key: given.list(key)} if given.has(key) else {}


def _points(scale: int) -> Callable[[Fields], dict[str, Any]]:
    return lambda given: {"scale": scale, **_pairs(given, "shape"), **_pairs(given, "resources")}


def _resources(given: Fields) -> dict[str, Any]:
    return _pairs(given, "resources")


def _label(given: Fields) -> dict[str, Any]:
    return {"label": given.text("label")}


def _presence(given: Fields) -> dict[str, Any]:
    return {"label": given.text("label"), "presence": given.flag("presence")}


def _hard_weight(given: Fields) -> dict[str, Any]:
    return {"hard_pod_affinity_weight": given.whole("hard_affinity_weight", 1)}


def _broken_linear(given: Fields) -> Result:
    function = shape.checked([(place, score) for place, score in given.list("shape")])
    return {"values": [function.at(place) for place in given.wholes("p")]}


def _validate_shape(given: Fields) -> Result:
    try:
        shape.checked([(place, score) for place, score in given.list("shape")])
    except shape.BadShape as bad:
        return {"valid": False, "error": str(bad)}
    return {"valid": True}


def _validate_resources(given: Fields) -> Result:
    fields = allocation.invalid([(name, weight) for name, weight in given.list("resources")])
    return {"valid": not fields, "invalid_fields": list(fields)}


def _image_name(given: Fields) -> Result:
    return {"image": images.normalized(given.text("image"))}


def _num_feasible(given: Fields) -> Result:
    return {"nodes": selection.num_feasible_nodes(given.whole("percentage"), given.whole("num_nodes"))}


def _select_host(given: Fields) -> Result:
    scored = [HostPriority(host, score) for host, score in given.list("priority_list")]
    turns = HostTurns(given.whole("counter", 0))
    try:
        return {"hosts": [host.select_host(scored, turns) for _ in range(given.whole("calls", 1))]}
    except NothingToSelect as nothing:
        return {"error": str(nothing)}


def _normalize(given: Fields) -> Result:
    scores = given.mapping("scores")
    raw, every = np.array(list(scores.values()), np.int64), np.ones(len(scores), np.bool_)
    found = numbers.normalized(raw, every, given.whole("max"), reverse=given.flag("reverse"))
    return {"scores": dict(zip(scores, found.tolist(), strict=True))}


OF_TEN: Mapping[str, Operation] = {
    "LeastRequested": _rated("LeastRequested"),
    "MostRequested": _rated("MostRequested"),
    "BalancedAllocation": _rated("BalancedResourceAllocation"),
    "RequestedToCapacityRatio": _rated("RequestedToCapacityRatio", _points(10)),
    "broken_linear": _broken_linear,
    "validate_shape": _validate_shape,
}

OF_HUNDRED: Mapping[str, Operation] = {
    "LeastAllocated": _rated("LeastAllocated", _resources),
    "MostAllocated": _rated("MostAllocated", _resources),
    "BalancedAllocation": _rated("BalancedAllocationState", _resources),
    "RequestedToCapacityRatio": _rated("RequestedToCapacityRatio", _points(100)),
    "validate_resources": _validate_resources,
}

PLACEMENT: Mapping[str, Operation] = {
    "NodeAffinity": _rated("NodeAffinity"),
    "TaintToleration": _rated("TaintToleration"),
    "ImageLocality": _rated("ImageLocality"),
    "NodeLabel": _rated("NodeLabel", _presence),
    "SelectorSpread": _rated("SelectorSpread"),
    "ServiceAntiAffinity": _rated("ServiceAntiAffinity", _label),
    "InterPodAffinity": _rated("InterPodAffinity", _hard_weight),
    "NodePreferAvoidPods": _rated("NodePreferAvoidPods"),
    "EqualPriority": _rated("EqualPriority"),
    "normalize_image_name": _image_name,
}


def _table(given: Fields) -> Callable[..., HostPriority]:
    """A map that says what is written; a text where a score belongs is no answer that anybody could use."""
    raw = given.mapping("scores")
    return lambda _pod, _session, facts: HostPriority(facts.name, raw[facts.name])


def _plugin(given: Fields) -> PriorityConfig:
    reduce = given.fields("reduce", None)
    return PriorityConfig(
        name=given.text("name"),
        weight=given.whole("weight"),
        map=_table(given),
        reduce=numbers.normalize(reduce.whole("max"), reverse=reduce.flag("reverse")) if reduce else None,
    )


def _extender(given: Fields, number: int) -> ExtenderOptions:
    """One that is not interested manages a resource that no pod here uses."""
    managed = () if given.flag("interested", True) else ("example.com/unused",)
    return ExtenderOptions(
        url=f"http://extender-{number}", prioritize_verb="rate", weight=given.whole("weight"), managed_resources=managed
    )


def _answer(given: Fields) -> list[dict[str, Any]] | None:
    """What an extender answers; None: nothing."""
    scores = given.mapping("scores")
    if given.flag("error", False):
        return None
    return [{"Host": host, "Score": score} for host, score in scores.items()]


def _posting(answers: Mapping[str, Any]) -> JsonClient:
    def post(target: Target, _path: str, _body: Mapping[str, Any], *, seconds: float) -> Any:
        if answers[target.url] is None:
            raise NotAnswered(f"{target.url} does not answer within {seconds} s")
        return answers[target.url]

    return post


def _prioritize(given: Fields) -> Result:
    snapshot = kube_records.named(given.texts("nodes"))
    session, pod = kube_records.session(snapshot), kube_records.pod(_NOTHING)
    written = given.records("extenders", ())
    extenders = [_extender(one, number) for number, one in enumerate(written)]
    post = _posting({one.url: _answer(fields) for one, fields in zip(extenders, written, strict=True)})
    said = verdicts.ask(extenders, post, pod, tuple(snapshot.nodes.values()))
    configs = [_plugin(one) for one in given.records("plugins")]
    try:
        found = Prioritizer(configs).run(scene.scene(snapshot, pod), session, snapshot.names, extended=said.rows)
    except PrioritiesFailed:
        return {"error": True}
    return {"scores": _scores(found)}


def _fails(_pod: Pod, _session: object, facts: NodeFacts) -> HostPriority:
    raise RuntimeError(f"no score for {facts.name}")


def _equal(_pod: Pod, _session: object, facts: NodeFacts) -> HostPriority:
    return HostPriority(facts.name, 1)


def _numeric(_pod: Pod, _session: object, facts: NodeFacts) -> HostPriority:
    return HostPriority(facts.name, int(facts.name))


def _reverse_numeric(_pod: Pod, _session: object, nodes: Sequence[NodeFacts]) -> list[HostPriority]:
    ends = max(int(one.name) for one in nodes) + min(int(one.name) for one in nodes)
    return [HostPriority(one.name, ends - int(one.name)) for one in nodes]


_PRIORITIES: Mapping[str, Mapping[str, Any]] = {
    "equal": {"map": _equal},
    "numeric": {"map": _numeric},
    "reverse_numeric": {"function": _reverse_numeric},
    "error": {"map": _fails},
}

_FAKE = "Nodes failed the fake predicate"


def _passing(holds: Callable[[str], bool]) -> Predicate:
    """A predicate that only looks at names."""

    def predicate(seen: Scene) -> Failures:
        return ((np.array([not holds(name) for name in seen.columns.names.tolist()], np.bool_), _FAKE),)

    return predicate


def _predicates(given: Fields, pod: Pod) -> dict[str, Predicate]:
    occupied = given.texts("occupied", ())
    stubs: dict[str, Predicate] = {
        "true": _passing(lambda _name: True),
        "false": _passing(lambda _name: False),
        "name_equals_node": _passing(lambda name: name == pod.metadata.name),
        "no_pods": _passing(lambda name: name not in occupied),
    }
    return {name: stubs[name] for name in given.texts("predicates")}


def _schedule(given: Fields) -> Result:
    snapshot = kube_records.named(given.texts("nodes"))
    pod, claims = kube_records.pod(given.fields("pod")), kube_records.claims(given.named("claims", {}))
    storage = volumes.Storage(
        claim=lambda _namespace, name: claims.get(name), volume=lambda _name: None, storage_class=lambda _name: None
    )
    rated = [
        PriorityConfig(name=one.text("name"), weight=one.whole("weight"), **one.choice("name", _PRIORITIES))
        for one in given.records("priorities")
    ]
    by = cycle.Algorithm(
        predicates=_predicates(given, pod),
        prioritizer=Prioritizer(rated),
        pick=HostTurns(),
        always_check_all=given.flag("always_check_all", False),
    )
    seen = scene.scene(snapshot, pod, lookup=Lookup(storage=storage))
    return _told(cycle.schedule(seen, kube_records.session(snapshot), by))


def _told(found: cycle.Scheduled | cycle.Unscheduled | FitError) -> Result:
    match found:
        case FitError(nodes=nodes, reasons=reasons):
            failed = {name: list(said) for name, said in reasons.items()}
            return {"fit_error": {"num_all_nodes": nodes, "failed": failed, "message": found.message}}
        case cycle.Unscheduled(message=message):
            return {"error": message}
        case cycle.Scheduled(host=host):
            return {"host": host}


#: The operations of `combine_and_select` that are about scores; the adapter of that file has the others.
COMBINE: Mapping[str, Operation] = {
    "prioritize": _prioritize,
    "num_feasible_nodes": _num_feasible,
    "normalize": _normalize,
    "select_host": _select_host,
}


def _zero_request(given: Fields) -> Result:
    names = ("LeastRequested", "BalancedResourceAllocation", "SelectorSpread")
    return {"scores": _scores(_run([table.configured(name) for name in names], given))}


def _by(operations: Mapping[str, Operation]) -> Callable[[Fields, Fields], None]:
    return lambda given, expect: expect.compare(given.choice("op", operations)(given))


FILES: Mapping[str, Callable[[Fields, Fields], None]] = {
    "priorities_0_10": _by(OF_TEN),
    "priorities_0_100": _by(OF_HUNDRED),
    "priorities_placement": _by(PLACEMENT),
    "schedule": lambda given, expect: expect.compare(_schedule(given)),
    "zero_request": lambda given, expect: expect.compare(_zero_request(given)),
}
