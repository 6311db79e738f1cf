"""yunikorn: what follows from the tree of queues: limits, priorities, who may do what."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from slurm_bridge.errors import BadConfiguration
from slurm_bridge.families.yunikorn.queues import acl, placement, priorities, tree
from slurm_bridge.families.yunikorn.queues.amounts import Known
from slurm_bridge.families.yunikorn.queues.priorities import PriorityPolicy
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings
from slurm_bridge.families.yunikorn.queues.tree import Queue
from tests.conformance.fields import Fields

Result = Mapping[str, Any]
Operation = Callable[[Fields], Result]
Configured = Callable[[Fields], QueueSettings]
Filled = Callable[[Queue, Fields], None]


def _grown(written: Fields, configured: Configured, filled: Filled, parent: Queue | None = None) -> Queue:
    """The queue and all below it; what is in it is filled in from below."""
    children = written.records("children", ())
    queue = Queue(written.text("name"), parent, leaf=not children, settings=configured(written))
    for child in children:
        _grown(child, configured, filled, queue)
    filled(queue, written)
    return queue


def _found(root: Queue, path: str) -> Queue:
    queue = tree.find(root, path)
    assert queue is not None, f"{path}: the case has no such queue"
    return queue


# -- headroom --------------------------------------------------------------------------------------------------------


def _limits(written: Fields) -> QueueSettings:
    return QueueSettings(max=written.mapping("max", None), max_applications=written.whole("max_applications", 0))


def _usage(queue: Queue, written: Fields) -> None:
    """Usage that is written replaces the sum of the children."""
    queue.release(dict(queue.allocated) if written.has("allocated") else None)
    queue.allocate(written.mapping("allocated", None))
    # Here an application runs as soon as it is accepted: what is in flight counts as running.
    queue.running = written.whole("running", 0) + len(written.texts("allocating_accepted", ()))


def _each(limit: Callable[[Queue], Known]) -> Operation:
    def operation(given: Fields) -> Result:
        root = _grown(given.fields("tree"), _limits, _usage)
        return {"result": {path: limit(_found(root, path)) for path in given.texts("queues")}}

    return operation


def _can_run(given: Fields) -> Result:
    """One that runs already is not asked for."""
    queue = _found(_grown(given.fields("tree"), _limits, _usage), given.text("queue"))
    return {"can_run": _is_accepted(given) or tree.can_run(queue)}


def _is_accepted(given: Fields) -> bool:
    here = given.fields("tree")
    for name in given.text("queue").split(".")[1:]:
        here = next(child for child in here.records("children", ()) if child.text("name") == name)
    return given.text("app", "") in here.texts("allocating_accepted", ())


HEADROOM: Mapping[str, Operation] = {
    "headroom": _each(tree.headroom),
    "max_headroom": _each(tree.max_headroom),
    "effective_max": _each(tree.effective_max),
    "fair_max": _each(operator.attrgetter("fair_max")),
    "can_run": _can_run,
}


# -- queue_priorities ------------------------------------------------------------------------------------------------

_POLICIES = {policy.value: policy for policy in PriorityPolicy}


def _offset(written: Fields) -> QueueSettings:
    fenced = written.has("priority_policy")
    policy = written.choice("priority_policy", _POLICIES) if fenced else PriorityPolicy.DEFAULT
    return QueueSettings(offset=written.whole("offset", 0), priority_policy=policy)


def _asked(queue: Queue, written: Fields) -> None:
    asks = [ask for app in written.records("apps", ()) if app.text("name") for ask in app.wholes("asks")]
    if queue.leaf:
        queue.set_waiting(priorities.highest(asks))


def _queue_priorities(given: Fields) -> Result:
    root = _grown(given.fields("tree"), _offset, _asked)
    passed = {queue.path: queue.priority for queue in tree.downward(root)}
    return {"priorities": {path: None if one == priorities.NOTHING else one for path, one in passed.items()}}


# -- acl -------------------------------------------------------------------------------------------------------------


def _parse(given: Fields) -> Result:
    try:
        parsed = acl.parse(given.text("acl"))
    except BadConfiguration:
        return {"error": True}
    return {"all_allowed": parsed.everybody, "users": sorted(parsed.users), "groups": sorted(parsed.groups)}


def _check(given: Fields) -> Result:
    return {"allowed": acl.parse(given.text("acl")).allows(given.text("user"), given.texts("groups"))}


def _guarded(written: Fields) -> QueueSettings:
    submit, admin = (acl.parse(written.text(key, "")) for key in ("submitacl", "adminacl"))
    return QueueSettings(submit_acl=submit, admin_acl=admin)


def _may(allowed: Callable[[Queue, str, tuple[str, ...]], bool]) -> Operation:
    def operation(given: Fields) -> Result:
        queue = _found(_grown(given.fields("tree"), _guarded, _empty), given.text("queue"))
        return {"allowed": allowed(queue, given.text("user"), given.texts("groups"))}

    return operation


def _may_administer(queue: Queue, user: str, groups: tuple[str, ...]) -> bool:
    return any(above.admin_acl.allows(user, groups) for above in queue.lineage)


def _empty(_queue: Queue, _written: Fields) -> None:
    """Nothing of what is in a queue matters."""


ACL: Mapping[str, Operation] = {
    "parse": _parse,
    "check": _check,
    "submit": _may(placement.may_submit),
    "admin": _may(_may_administer),
}


def _checked(operations: Mapping[str, Operation]) -> Callable[[Fields, Fields], None]:
    def check(given: Fields, expect: Fields) -> None:
        expect.compare(given.choice("op", operations)(given))

    return check


FILES: Mapping[str, Callable[[Fields, Fields], None]] = {
    "headroom": _checked(HEADROOM),
    "queue_priorities": lambda given, expect: expect.compare(_queue_priorities(given)),
    "acl": _checked(ACL),
}
