"""yunikorn: resource arithmetic, quantities, orders of queues, applications, asks and nodes."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slurm_bridge.families.yunikorn.queues import amounts, orders, quantities
from slurm_bridge.families.yunikorn.queues.amounts import Amount, Known
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings, SortPolicy
from slurm_bridge.families.yunikorn.queues.tree import Queue, State
from tests.conformance.fields import Fields

Result = Mapping[str, Any]
Operation = Callable[[Fields], Result]

#: What a queue or an application has pending where the case leaves it out.
_SOMETHING: Amount = {"vcore": 1}

_POLICIES = {policy.value: policy for policy in SortPolicy}


# -- shares ----------------------------------------------------------------------------------------------------------


def _known(given: Fields, *names: str) -> list[Known]:
    return [given.mapping(name, None) for name in names]


def _share_of(given: Fields) -> float:
    return amounts.fair_share(*_known(given, "allocated", "guaranteed", "fair_max"))


def _compared(left: Sequence[float], right: Sequence[float]) -> Result:
    """By the keys that usages are sorted by."""
    one, other = amounts.share_key(left), amounts.share_key(right)
    return {"result": (one > other) - (one < other)}


def _fair_share_compare(given: Fields) -> Result:
    return _compared([_share_of(given.fields("left"))], [_share_of(given.fields("right"))])


def _compare_shares(given: Fields) -> Result:
    return _compared(given.numbers("left", None) or (), given.numbers("right", None) or ())


def _usage_ratio(given: Fields) -> Result:
    left, right, total = _known(given, "left", "right", "total")
    types = given.mapping("types", None) if given.has("types") else None
    return _compared(amounts.shares_of_types(left, total, types), amounts.shares_of_types(right, total, types))


def _fairness_ratio(given: Fields) -> Result:
    """The largest share of the left one through that of the right one; 1 where both are nothing."""
    left, right, total = _known(given, "left", "right", "total")
    one, other = ((amounts.shares(side, total)[-1:] or [0.0])[0] for side in (left, right))
    if other:
        return {"ratio": one / other}
    return {"ratio": math.copysign(math.inf, one) if one else 1.0}


def _fits(test: Callable[[Known, Known], bool]) -> Operation:
    return lambda given: {"fits": test(*_known(given, "smaller", "larger"))}


SHARES: Mapping[str, Operation] = {
    "fair_share": lambda given: {"share": _share_of(given)},
    "fair_share_compare": _fair_share_compare,
    "shares": lambda given: {"shares": amounts.shares(*_known(given, "resource", "total"))},
    "compare_shares": _compare_shares,
    "usage_ratio": _usage_ratio,
    "usage_ratio_types": _usage_ratio,
    "fairness_ratio": _fairness_ratio,
    "fit_in": _fits(amounts.fit_in),
    "fit_in_max_undefined": _fits(amounts.fit_in_max_undefined),
    "fit_in_actual": _fits(amounts.fit_in_actual),
    "fit_in_score": lambda given: {"score": amounts.fit_in_score(*_known(given, "fit", "available"))},
    "type_matching": lambda given: {"percent": amounts.type_matching(*_known(given, "resource", "other"))},
}


def _shares(given: Fields, expect: Fields) -> None:
    expect.compare(given.choice("op", SHARES)(given))


# -- quantities ------------------------------------------------------------------------------------------------------


def _parsed(kind: str, text: str) -> Result:
    try:
        return {"value": quantities.parse(kind, text)}
    except quantities.Overflow:
        return {"error": "overflow"}
    except quantities.BadQuantity:
        return {"error": "invalid"}


def _quantities(given: Fields, expect: Fields) -> None:
    expect.compare(_parsed(given.text("type"), given.text("text")))


# -- orders ----------------------------------------------------------------------------------------------------------


def _settings(given: Fields, guaranteed: Known = None) -> QueueSettings:
    by_priority = given.flag("priority_enabled")
    return QueueSettings(
        guaranteed=guaranteed, sort_policy=given.choice("policy", _POLICIES), priority_sorting=by_priority
    )


def _queue_sorting(given: Fields, expect: Fields) -> None:
    parent = Queue("root", settings=_settings(given))
    for written in given.records("queues"):
        _child(parent, written)
    expect.compare({"order": [queue.name for queue in orders.sorted_queues(parent)]})


def _child(parent: Queue, written: Fields) -> None:
    settings = QueueSettings(guaranteed=written.mapping("guaranteed", None))
    queue = Queue(written.text("name"), parent, leaf=True, settings=settings)
    queue.fair_max = written.mapping("fair_max", None)
    queue.allocate(written.mapping("allocated", None))
    queue.add_pending(written.mapping("pending", _SOMETHING))
    queue.set_waiting(written.whole("priority", 0))
    queue.turn(State.STOPPED if written.flag("stopped", default=False) else State.ACTIVE)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Application:
    name: str
    allocated: Amount
    pending: Amount
    priority: int
    submitted: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    name: str
    priority: int
    created: float


def _applications(given: Fields) -> Result:
    leaf = Queue("leaf", leaf=True, settings=_settings(given, given.mapping("queue_resource", None)))
    order: orders.Applications[_Application] = orders.Applications(leaf)
    for written in given.records("apps"):
        application = _Application(
            name=written.text("name"),
            allocated=written.mapping("allocated", {}),
            pending=written.mapping("pending", _SOMETHING),
            priority=written.whole("priority", 0),
            submitted=written.number("submitted", 0),
        )
        order.put(application)
    return {"order": [application.name for application in order]}


def _requests(given: Fields) -> Result:
    asks = [
        _Ask(name=ask.text("name"), priority=ask.whole("priority", 0), created=ask.number("created"))
        for ask in given.records("requests")
    ]
    return {"order": [ask.name for ask in sorted(asks, key=orders.ask_key)]}


def _application_sorting(given: Fields, expect: Fields) -> None:
    sort = given.choice("op", {"requests": _requests}) if given.has("op") else _applications
    expect.compare(sort(given))


def _node_sorting(given: Fields, expect: Fields) -> None:
    policy, weights = orders.node_policy(given.text("policy", "")), given.mapping("weights", None)
    scores = {
        node.text("name"): orders.node_score(node.mapping("capacity"), node.mapping("allocated", {}), policy, weights)
        for node in given.records("nodes")
    }
    order = sorted(scores, key=lambda name: orders.node_key(scores[name], name))
    expect.compare({"policy": policy.value, "scores": scores, "order": order})


FILES: Mapping[str, Callable[[Fields, Fields], None]] = {
    "shares": _shares,
    "quantities": _quantities,
    "queue_sorting": _queue_sorting,
    "application_sorting": _application_sorting,
    "node_sorting": _node_sorting,
}
