"""yunikorn/allocation: what steps of the allocation pass give, which node an ask gets, and who may bring a gang."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from slurm_bridge.families.yunikorn.queues import node_search, nodes, records, tree
from slurm_bridge.families.yunikorn.queues.allocation_pass import Passing
from slurm_bridge.families.yunikorn.queues.applications import PendingAsk
from slurm_bridge.families.yunikorn.queues.nodes import NodesOfPartition
from slurm_bridge.families.yunikorn.queues.partition import AllocationRules, QueuePartition
from slurm_bridge.families.yunikorn.queues.records import Allocation, AllocationAsk, AskId, NodeMode
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings, SortPolicy
from slurm_bridge.families.yunikorn.queues.tree import Queue
from tests.conformance.fields import Fields, Malformed

_PARTITION = "default"
_SORTS: Mapping[str, SortPolicy] = {"fifo": SortPolicy.FIFO, "fair": SortPolicy.FAIR}
_OTHER = AskId(partition=_PARTITION, application="other", key="other")


class _World:
    """One partition and its clock."""

    def __init__(self, given: Fields) -> None:
        rules = AllocationRules(
            node_sort=given.text("node_sort", "fair"),
            reservation_delay=given.number("reservation_delay", 2),
        )
        self.partition = QueuePartition(_tree(given.fields("tree"), None), nodes.sorts(), rules)
        self.passing = Passing(self.partition)
        self.now = 0.0
        self.nodes = [_node(one) for one in given.records("nodes")]
        for node in self.nodes:
            self.partition.put_node(node)

    def add(self, application: records.Application, queue: str, asks: list[Callable[[float], AllocationAsk]]) -> None:
        if application.name not in self.partition.applications:
            leaf = tree.find(self.partition.root, queue)
            assert leaf is not None, queue
            self.partition.add_application(application, leaf)
        for ask in asks:
            self.partition.add_ask(ask(self.now))

    def steps(self, number: int) -> None:
        for _ in range(number):
            self.passing.step(self.now)

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def make_schedulable(self, name: str) -> None:
        record = next(one for one in self.nodes if one.name == name)
        self.partition.put_node(
            records.NodeReport(name=name, partition=_PARTITION, capacity=record.capacity, schedulable=True)
        )

    def release(self, name: str) -> None:
        for allocation in tuple(self.partition.applications[name].allocations.values()):
            self.partition.release(allocation.ask.id)

    def withdraw(self, name: str) -> None:
        application = self.partition.applications[name]
        for key in tuple(application.asks):
            self.partition.withdraw(application, key)

    def state(self) -> Mapping[str, Any]:
        known = self.partition.applications
        held = sorted(
            (one.id.application, one.id.key, node) for one in self.partition.holders.values() for node in one.on
        )
        return {
            "allocated": {name: len(one.allocations) for name, one in known.items()},
            "pending": {name: len(one.asks) for name, one in known.items()},
            "per_node": {node.name: len(node.allocations) for node in self.partition.nodes},
            "reservations": [{"app": app, "ask": ask, "node": node} for app, ask, node in held],
        }


def _tree(given: Fields, parent: Queue | None) -> Queue:
    children = given.records("children", ())
    settings = QueueSettings(
        guaranteed=given.mapping("guaranteed", None),
        max=given.mapping("max", None),
        sort_policy=given.choice("app_sort", _SORTS) if given.has("app_sort") else None,
    )
    queue = Queue(given.text("name"), parent, leaf=not children, settings=settings)
    for child in children:
        _tree(child, queue)
    return queue


def _node(given: Fields) -> records.NodeReport:
    return records.NodeReport(
        name=given.text("name"),
        partition=_PARTITION,
        capacity=given.mapping("capacity"),
        schedulable=given.flag("schedulable", True),
    )


def _asks(given: Fields, application: str) -> list[Callable[[float], AllocationAsk]]:
    """Asks that are as old as they say, or as the moment in which they come."""
    created = given.number("created", None)
    key, count = given.text("key"), given.whole("count", None)
    ask = functools.partial(
        AllocationAsk,
        application=application,
        partition=_PARTITION,
        resource=given.mapping("resource"),
        priority=given.whole("priority", 0),
        required_node=given.text("required_node", ""),
    )
    keys = [key] if count is None else [f"{key}-{number}" for number in range(1, count + 1)]
    return [functools.partial(_created, functools.partial(ask, key=one), created) for one in keys]


def _created(ask: Callable[..., AllocationAsk], created: float | None, now: float) -> AllocationAsk:
    return ask(created=now if created is None else created)


def _application(given: Fields) -> Callable[[_World], None]:
    name, queue = given.text("name"), given.text("queue")
    application = records.Application(name=name, partition=_PARTITION, queue=queue, submitted=given.number("submitted"))
    asks = [ask for one in given.records("asks") for ask in _asks(one, name)]
    return lambda world: world.add(application, queue, asks)


def _named(act: Callable[[_World, str], None]) -> Callable[[Fields, str], Callable[[_World], None]]:
    def read(given: Fields, key: str) -> Callable[[_World], None]:
        name = given.text(key)
        return lambda world: act(world, name)

    return read


def _steps(given: Fields, key: str) -> Callable[[_World], None]:
    number = given.whole(key)
    return lambda world: world.steps(number)


def _advance(given: Fields, key: str) -> Callable[[_World], None]:
    seconds = given.number(key)
    return lambda world: world.advance(seconds)


_ACTIONS: Mapping[str, Callable[[Fields, str], Callable[[_World], None]]] = {
    "steps": _steps,
    "advance": _advance,
    "add_asks": lambda given, key: _application(given.fields(key)),
    "remove_app": _named(lambda world, name: world.partition.remove_application(name)),
    "remove_node": _named(lambda world, name: world.partition.remove_node(name)),
    "make_schedulable": _named(_World.make_schedulable),
    "release_allocations": _named(_World.release),
    "withdraw_asks": _named(_World.withdraw),
}


def _action(given: Fields) -> Callable[[_World], None]:
    if len(given.names) != 1 or given.names[0] not in _ACTIONS:
        raise Malformed(f"{given.where}: has {', '.join(given.names)}; an action is one of {', '.join(_ACTIONS)}")
    name = given.names[0]
    return _ACTIONS[name](given, name)


def _simulate(given: Fields) -> Mapping[str, Any]:
    world = _World(given)
    actions = [_application(one) for one in given.records("apps")]
    actions += [_action(one) for one in given.records("script")]
    for act in actions:
        act(world)
    return world.state()


def _pick_node(given: Fields) -> Mapping[str, Any]:
    book = NodesOfPartition(nodes.sorts(), NodeMode.FREE)
    for one in given.records("nodes"):
        _in_use(one, book)
    wanted = given.fields("ask")
    ask = AllocationAsk(
        key="ask", application="app", partition=_PARTITION, resource=wanted.mapping("resource"),
        created=-wanted.number("age"),
    )  # fmt: skip
    waiting = PendingAsk(ask, "fair")
    if wanted.flag("reserved", False):
        waiting.on["elsewhere"] = 0.0
    found = node_search.pick(
        waiting,
        book,
        reserving=node_search.may_reserve(waiting, (), now=0.0, delay=AllocationRules().reservation_delay),
        may=node_search.anywhere,
        score=functools.partial(book.score, "fair"),
    )
    node = found.nodes[0] if found.nodes else found.reserve
    return {"result": "allocate" if found.nodes else "reserve" if found.reserve else "none", "node": node or None}


def _in_use(given: Fields, book: NodesOfPartition) -> None:
    node = _node(given)
    book.put(node)
    taken = AllocationAsk(key=node.name, application="other", partition=_PARTITION, resource=given.mapping("allocated"))
    book.add(Allocation(ask=taken, nodes=(node.name,)))
    if given.flag("reserved", False):
        book.hold(node.name, _OTHER, 0.0)


def _timeout(given: Fields) -> Mapping[str, Any]:
    return {
        "cancelled": node_search.overdue(
            fits_headroom=given.flag("fits_headroom"),
            seconds=60 * given.number("reserved_minutes_ago"),
            timeout=AllocationRules().reservation_timeout,
        )
    }


def _gang(given: Fields) -> Mapping[str, Any]:
    path = given.records("queues")
    queue: Queue | None = None
    for depth, one in enumerate(path):
        settings = QueueSettings(
            max=one.mapping("max", None),
            sort_policy=one.choice("app_sort", _SORTS) if one.has("app_sort") else None,
        )
        queue = Queue(f"q{depth}", queue, leaf=depth == len(path) - 1, settings=settings)
    assert queue is not None
    reason = node_search.gang_obstacle(queue, given.mapping("placeholders"))
    return {"accepted": not reason, "reason": reason or None}


_OPERATIONS: Mapping[str, Callable[[Fields], Mapping[str, Any]]] = {
    "simulate": _simulate,
    "pick_node": _pick_node,
    "reservation_timeout": _timeout,
    "gang_admission": _gang,
}


def _check(given: Fields, expect: Fields) -> None:
    expect.compare(given.choice("op", _OPERATIONS)(given))


FILES: Mapping[str, Callable[[Fields, Fields], None]] = {"allocation": _check}
