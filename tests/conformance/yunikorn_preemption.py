"""yunikorn: what is preempted for an ask that waits, and of a queue whose maximum was lowered.

The case files state YuniKorn's own rules, which look at a guarantee before a removal and not after it: the attempts
here are not guarded.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slurm_bridge.families.yunikorn.queues import amounts, tree
from slurm_bridge.families.yunikorn.queues.preemptors import (
    attempts,
    balance,
    candidates,
    facts,
    quota,
    required,
    units,
)
from slurm_bridge.families.yunikorn.queues.preemptors.balance import Balance
from slurm_bridge.families.yunikorn.queues.preemptors.facts import (
    Asker,
    AttemptAllocation,
    AttemptRefused,
    AttemptScene,
    ImaginedNodes,
    Planned,
)
from slurm_bridge.families.yunikorn.queues.priorities import PriorityPolicy
from slurm_bridge.families.yunikorn.queues.settings import PreemptionPolicy, QueueSettings
from slurm_bridge.families.yunikorn.queues.tree import Queue
from tests.conformance.fields import Fields

Result = Mapping[str, Any]
Operation = Callable[[Fields], Result]

_PRIORITIES = {policy.value: policy for policy in PriorityPolicy}
_PREEMPTIONS = {policy.value: policy for policy in PreemptionPolicy}


# -- records ---------------------------------------------------------------------------------------------------------


def _settings(written: Fields) -> QueueSettings:
    fenced, ruled = written.has("priority_policy"), written.has("preemption_policy")
    return QueueSettings(
        max=written.mapping("max", None),
        guaranteed=written.mapping("guaranteed", None),
        offset=written.whole("offset", 0),
        priority_policy=written.choice("priority_policy", _PRIORITIES) if fenced else PriorityPolicy.DEFAULT,
        preemption_policy=written.choice("preemption_policy", _PREEMPTIONS) if ruled else PreemptionPolicy.DEFAULT,
    )


def _grown(written: Fields, parent: Queue | None = None) -> Queue:
    children = written.records("children", ())
    queue = Queue(written.text("name"), parent, leaf=not children, settings=_settings(written))
    for child in children:
        _grown(child, queue)
    return queue


def _filled(queue: Queue, written: Fields) -> None:
    """Usage that is written replaces the sum of what is below."""
    for child, inner in zip(queue.children.values(), written.records("children", ()), strict=True):
        _filled(child, inner)
    if written.has("allocated"):
        queue.allocate(amounts.minus(written.mapping("allocated", None), queue.allocated))
    queue.mark_preempting(written.mapping("preempting", None))


def _found(root: Queue, path: str) -> Queue:
    queue = tree.find(root, path)
    assert queue is not None, f"{path}: the case has no such queue"
    return queue


def _tree(given: Fields) -> tuple[Queue, list[AttemptAllocation]]:
    written = given.fields("tree")
    root = _grown(written)
    standing = [_standing(one, _found(root, one.text("queue"))) for one in given.records("allocations", ())]
    for one in standing:
        one.queue.allocate(one.resource)
    _filled(root, written)
    return root, standing


def _standing(written: Fields, queue: Queue, node: str = "") -> AttemptAllocation:
    return AttemptAllocation(
        key=written.text("key"),
        queue=queue,
        resource=written.mapping("resource", {}),
        nodes=(written.text("node", node),),
        priority=written.whole("priority", 0),
        created=written.number("created", 0),
        allow_preempt_self=written.flag("allow_preempt_self", default=True),
        originator=written.flag("originator", default=False),
        required_node=written.text("required_node", ""),
        preempted=written.flag("preempted", default=False),
        released=written.flag("released", default=False),
    )


def _asker(written: Fields, queue: Queue) -> Asker:
    return Asker(
        key=written.text("key", "ask"),
        queue=queue,
        resource=written.mapping("resource", {}),
        priority=written.whole("priority", 0),
    )


def _alone() -> Queue:
    """The queue of what is given without one."""
    return Queue("root", leaf=True)


def _of(standing: Iterable[AttemptAllocation]) -> Callable[[Queue], list[AttemptAllocation]]:
    return lambda queue: [one for one in standing if one.queue is queue]


def _keys(found: Iterable[AttemptAllocation]) -> list[Any]:
    return [one.key for one in found]


# -- guarantees ------------------------------------------------------------------------------------------------------


def _preemptable(given: Fields) -> Result:
    root, _ = _tree(given)
    seen = Balance(root)
    return {"result": {path: seen.preemptable(_found(root, path)) for path in given.texts("queues")}}


def _remaining(given: Fields) -> Result:
    root, _ = _tree(given)
    seen = Balance(_found(root, given.text("ask_queue")))
    return {"result": {path: seen.remaining(_found(root, path)) for path in given.texts("queues")}}


def _under(given: Fields) -> Result:
    return {"result": not balance.is_over(given.mapping("ask"), given.mapping("remaining", None))}


def _over(given: Fields) -> Result:
    return {"result": balance.is_over(given.mapping("ask"), given.mapping("remaining", None))}


# -- attempts --------------------------------------------------------------------------------------------------------


def _preconditions(given: Fields) -> Result:
    ask = given.fields("ask")
    asker = Asker(
        key="ask",
        queue=_alone(),
        resource=ask.mapping("resource", {}),
        created=ask.number("created"),
        required_node=ask.text("required_node", ""),
        allow_preempt_other=ask.flag("allow_preempt_other", default=True),
        triggered=ask.flag("triggered", default=False),
        last_check=ask.number("last_check", float("-inf")),
    )
    delay = given.number("preemption_delay", attempts.DELAY)
    return {"allowed": attempts.is_allowed(asker, now=given.number("now"), delay=delay)}


def _victim_order(given: Fields) -> Result:
    queue = _alone()
    found = units.units(_standing(one, queue) for one in given.records("allocations"))
    return {"order": _keys(units.parts(units.victim_order(found)))}


def _candidates(given: Fields) -> Result:
    root, standing = _tree(given)
    asker = _asker(given.fields("ask"), _found(root, given.fields("ask").text("queue")))
    found = candidates.candidates(asker, Balance(asker.queue), _of(standing))
    return {"fence": found.fence.path, "victims": sorted(_keys(units.parts(found.units)))}


def _try_preemption(given: Fields) -> Result:
    root, standing = _tree(given)
    ended = [one.text("key") for one in given.records("allocations") if one.flag("released_meanwhile", default=False)]
    asker = _asker(given.fields("ask"), _found(root, given.fields("ask").text("queue")))
    nodes = given.records("nodes")
    reserved = {node.text("name"): node.flag("reserved", default=False) for node in nodes}
    acceptable = given.texts("acceptable_nodes", tuple(reserved))
    scene = AttemptScene(
        standing=_of(standing),
        nodes=ImaginedNodes(_room(node, standing) for node in nodes),
        acceptable=lambda node, _victims: node in acceptable,
        held=reserved.__getitem__,
        nodes_tried=given.flag("nodes_tried", default=False),
        guarded=False,
    )
    outcome = attempts.try_preemption(asker, scene)
    if isinstance(outcome, AttemptRefused):
        return {"result": "none", "reason": outcome.reason.value, "victims": []}
    if any(victim.key in ended for victim in outcome.victims):
        # Here the cache says so, when the victims are to be evicted.
        return {"result": "none", "reason": "victims_released", "victims": []}
    return {"result": "preempt", "node": outcome.nodes[0], "victims": sorted(_keys(outcome.victims))}


def _room(node: Fields, standing: Iterable[AttemptAllocation]) -> facts.ImaginedNode:
    schedulable = node.flag("schedulable", default=True)
    return facts.room(node.text("name"), node.mapping("capacity"), standing, schedulable=schedulable)


def _required_node(given: Fields) -> Result:
    queue, name = _alone(), given.fields("node").text("name", "node")
    standing = [_standing(one, queue, name) for one in given.records("allocations")]
    node = facts.room(name, given.fields("node").mapping("capacity"), standing)
    asker = _asker(given.fields("ask"), queue)
    outcome = required.try_preemption(asker, node, standing, guarded=False)
    victims = _keys(outcome.victims) if isinstance(outcome, Planned) else []
    return {"candidates": len(required.candidates(asker, standing)), "victims": victims}


# -- quota -----------------------------------------------------------------------------------------------------------


def _beyond_quota(given: Fields) -> Result:
    path = [
        (queue.mapping("guaranteed", None), queue.mapping("used", None))
        for queue in given.records("guaranteed_on_path", ())
    ]
    maximum, used = given.mapping("max", None), given.mapping("used", None)
    return {"preemptable": quota.preemptable(maximum, used, given.mapping("preempting", None), path)}


def _distribute(given: Fields) -> Result:
    root, _ = _tree(given)
    leaves = quota.distribute(root, given.mapping("preemptable"))
    return {"leaves": {leaf.path: amount for leaf, amount in leaves.items()}}


def _standing_alone(given: Fields) -> list[AttemptAllocation]:
    queue = _alone()
    return [_standing(one, queue) for one in given.records("allocations")]


def _quota_candidates(given: Fields) -> Result:
    found = quota.candidates(given.mapping("preemptable", None), _standing_alone(given))
    return {"candidates": _keys(units.parts(found))}


def _quota_sort(given: Fields) -> Result:
    found = units.units(_standing_alone(given))
    ordered = quota.ordered(found, given.mapping("preemptable"), given.mapping("max", None))
    return {"order": _keys(units.parts(ordered))}


def _quota_victims(given: Fields) -> Result:
    found = units.units(_standing_alone(given))
    claim = quota.victims(found, given.mapping("preemptable", None), given.mapping("max", None))
    return {"victims": _keys(units.parts(claim.victims)), "claimed": claim.claimed}


PREEMPTION: Mapping[str, Operation] = {
    "preemptable": _preemptable,
    "remaining_guaranteed": _remaining,
    "ask_queue_under_guaranteed": _under,
    "victim_queue_over_guaranteed": _over,
    "preconditions": _preconditions,
    "victim_order": _victim_order,
    "candidates": _candidates,
    "try_preemption": _try_preemption,
    "required_node": _required_node,
}
QUOTA: Mapping[str, Operation] = {
    "preemptable": _beyond_quota,
    "distribute": _distribute,
    "candidates": _quota_candidates,
    "sort": _quota_sort,
    "victims": _quota_victims,
}


def _checked(operations: Mapping[str, Operation]) -> Callable[[Fields, Fields], None]:
    def check(given: Fields, expect: Fields) -> None:
        expect.compare(given.choice("op", operations)(given))

    return check


FILES = {"preemption": _checked(PREEMPTION), "quota_preemption": _checked(QUOTA)}
