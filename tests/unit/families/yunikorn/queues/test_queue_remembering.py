"""What a pass remembers of those before it saves time, and decides nothing."""

import dataclasses
from collections.abc import Callable, Iterable

import hypothesis
from hypothesis import strategies as st

from slurm_bridge.families.yunikorn.queues import nodes, plans
from slurm_bridge.families.yunikorn.queues.allocation_pass import Allocated, Passing
from slurm_bridge.families.yunikorn.queues.applications import PendingAsk
from slurm_bridge.families.yunikorn.queues.config import documents
from slurm_bridge.families.yunikorn.queues.node_search import May
from slurm_bridge.families.yunikorn.queues.nodes import PartitionNode
from slurm_bridge.families.yunikorn.queues.partition import AllocationRules, QueuePartition
from slurm_bridge.families.yunikorn.queues.plans import PreemptionPlan
from slurm_bridge.families.yunikorn.queues.records import Allocation, AllocationAsk, NodeMode
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings, SortPolicy
from slurm_bridge.families.yunikorn.queues.tree import Queue, find
from tests.examples import examples
from tests.unit.families.yunikorn.queues.support_core import application, ask, ask_id, node

#: The queue and the user of each application.
APPLICATIONS = {
    "a1": ("root.p.a", "ann"),
    "a2": ("root.p.a", "bob"),
    "b1": ("root.p.b", "ann"),
    "b2": ("root.p.b", "bob"),
    "c1": ("root.c", "ann"),
    "c2": ("root.c", "eve"),
}

Results = list[tuple[str, object]]


class World:
    """A partition, the time, and the pass over it: one that remembers, or one that begins anew with every step."""

    def __init__(self, mode: NodeMode, *, limited: bool, patient: bool, ahead: int, remembers: bool) -> None:
        root = Queue("root")
        above = Queue("p", root, settings=QueueSettings(max={"vcore": 9_000}, max_applications=3))
        Queue("a", above, leaf=True, settings=QueueSettings(max={"vcore": 5_000}, sort_policy=SortPolicy.FAIR))
        Queue("b", above, leaf=True, settings=QueueSettings(backoff=2, backoff_delay=5))
        Queue("c", root, leaf=True, settings=QueueSettings(max_applications=1))
        self.document = _limits() if limited else documents.QueueDocument(name="root")
        rules = AllocationRules(mode=mode, reservation_delay=1_000 if patient else 2, reservation_timeout=50)
        self.partition = QueuePartition(root, nodes.sorts(), rules, self.document)
        self.now = 100.0
        self._ahead, self._remembers = ahead, remembers
        self._passing = Passing(self.partition, self.may)
        for number, size in enumerate((3_000, 5_000, 8_000)):
            self.partition.put_node(node(f"n{number}", size))
        for name in APPLICATIONS:
            self.enter(name)

    @property
    def may(self) -> May | None:
        return self._has_place if self._ahead else None

    def _has_place(self, waiting: PendingAsk, one: PartitionNode, reserving: bool) -> bool:
        """As many may be there as there are places ahead; some kinds never go to the first node."""
        there = sum(len(known.allocations) for known in self.partition.applications.values())
        return there < self._ahead and not (waiting.ask.shape == "shy" and one.name == "n0") and not reserving

    def enter(self, name: str) -> None:
        if name not in self.partition.applications:
            queue, user = APPLICATIONS[name]
            leaf = find(self.partition.root, queue)
            assert leaf is not None
            self.partition.add_application(application(name, queue, user=user), leaf)

    def allocation(self, number: int) -> list[Allocation]:
        """The one of this number, none where there is none at all."""
        there = [one for known in self.partition.applications.values() for one in known.allocations.values()]
        return [there[number % len(there)]] if there else []

    def results(self) -> Results:
        """A whole pass."""
        found: Results = []
        while (one := self._step()) is not None:
            assert len(found) < 100
            if isinstance(one, Allocated):
                found.append((f"{one.allocation.ask.application} {one.allocation.ask.key}", one.allocation.nodes))
            else:
                found.append((f"{one.ask.application} {one.ask.key}", one.node))
        return [*found, ("landed", self.partition.land())]

    def _step(self) -> object:
        if self._remembers:
            return self._passing.step(self.now)
        for one in self.partition.applications.values():
            self.partition.leaf(one.queue).open()
        return Passing(self.partition, self.may).step(self.now)


def _limits() -> documents.QueueDocument:
    """Ann may have so much below p, bob so many applications, and eve may start two anywhere."""
    ann = documents.Limit(users=("ann",), max_resources={"vcore": 4_000})
    bob = documents.Limit(users=("bob",), max_applications=1)
    eve = documents.Limit(users=("eve",), max_applications=2, max_resources={"vcore": 3_000})
    return documents.QueueDocument(
        name="root", limits=(eve,), queues=(documents.QueueDocument(name="p", limits=(ann, bob)),)
    )


Action = Callable[[World], None]


def asks(name: str, key: str, vcore: int, members: int, old: float, **fields: str) -> Action:
    """One more waits, or another one of its key; what has been given is not asked for."""

    def act(world: World) -> None:
        world.enter(name)
        if key not in world.partition.applications[name].allocations:
            world.partition.add_ask(ask(name, key, vcore, members=members, created=world.now - old, **fields))

    return act


def releases(number: int) -> Action:
    """One of those that there are."""

    def act(world: World) -> None:
        for one in world.allocation(number):
            world.partition.release(one.ask.id)

    return act


def withdraws(number: int) -> Action:
    """One of those that wait."""

    def act(world: World) -> None:
        waiting = [one for known in world.partition.applications.values() for one in known.in_order()]
        for one in waiting[number % len(waiting) :][:1] if waiting else ():
            world.partition.withdraw(world.partition.applications[one.ask.application], one.ask.key)

    return act


def undoes(number: int, again: bool, pause: float) -> Action:
    """Others have refused what was given."""

    def act(world: World) -> None:
        for one in world.allocation(number):
            world.partition.undo(one, again=one.ask if again else None)
            world.partition.applications[one.ask.application].refused_until = world.now + pause

    return act


def stands(name: str, on: str) -> Action:
    """Something that was decided elsewhere, as large as it may be."""

    def act(world: World) -> None:
        standing: AllocationAsk = ask(name, "stands", 1_500)
        world.enter(name)
        if "stands" not in world.partition.applications[name].allocations and world.partition.nodes.get(on):
            world.partition.adopt(Allocation(ask=standing, nodes=(on,)))

    return act


def evicts(number: int, asker: str, key: str, on: str) -> Action:
    """One is to go for an ask, if that waits."""

    def act(world: World) -> None:
        victims = tuple(one.ask.id for one in world.allocation(number))
        plan = PreemptionPlan(victims=victims, message="room", asker=ask_id(asker, key), node=on)
        plans.carry_out(world.partition, plan, world.now)

    return act


def lowers(path: str, maximum: int) -> Action:
    """Or raises: the queue is configured otherwise."""

    def act(world: World) -> None:
        queue = find(world.partition.root, path)
        assert queue is not None
        queue.configure(dataclasses.replace(queue.settings, max={"vcore": maximum}))
        world.partition.follow(world.partition.rules, nodes.sorts(), world.document)

    return act


def passes_time(seconds: float) -> Action:
    """So much of it goes by."""

    def act(world: World) -> None:
        world.now += seconds

    return act


NAMES, KEYS, NODES = st.sampled_from([*APPLICATIONS]), st.sampled_from("xyz"), st.sampled_from(["n0", "n1", "n2"])
SIZES, NUMBERS = st.sampled_from([500, 1_500, 3_000, 5_000]), st.integers(0, 30)
ASKS: st.SearchStrategy[Action] = st.builds(
    asks,
    NAMES,
    KEYS,
    SIZES,
    st.sampled_from([1, 1, 1, 2, 3]),
    st.sampled_from([0.0, 0.0, 9.0]),
    required_node=st.sampled_from(["", "", "", "", "n0"]),
    shape=st.sampled_from(["", "shy", "any"]),
)
#: What gives something back, and little else.
RETURNS: st.SearchStrategy[Action] = st.one_of(
    st.builds(releases, NUMBERS),
    st.builds(withdraws, NUMBERS),
    st.builds(undoes, NUMBERS, st.booleans(), st.sampled_from([-1.0, 3.0])),
    st.builds(lambda name: lambda world: world.partition.remove_application(name), NAMES),
)
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    ASKS,
    RETURNS,
    RETURNS,
    st.builds(stands, NAMES, NODES),
    st.builds(evicts, NUMBERS, NAMES, KEYS, st.sampled_from(["", "n1", "n2"])),
    st.builds(lowers, st.sampled_from(["root.p", "root.p.b", "root.c"]), st.sampled_from([2_000, 6_000])),
    st.builds(lambda name, size: lambda world: world.partition.put_node(node(name, size)), NODES, SIZES),
    st.builds(lambda name: lambda world: world.partition.remove_node(name), NODES),
    st.builds(passes_time, st.sampled_from([1.0, 4.0, 30.0])),
)


@hypothesis.settings(max_examples=examples(300))
@hypothesis.given(
    st.lists(ASKS, min_size=4, max_size=18),
    st.lists(st.lists(ACTIONS, min_size=1, max_size=2), max_size=12),
    st.sampled_from(NodeMode),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from([0, 0, 0, 4, 8]),
)
def test_a_pass_that_remembers_gives_what_one_gives_that_begins_anew(
    first: list[Action], later: list[list[Action]], mode: NodeMode, how: tuple[bool, bool], ahead: int
):
    """The same, in the same order, on the same nodes, whatever happens between passes."""
    assert_agree((first, *later), mode, how, ahead)


def assert_agree(steps: Iterable[list[Action]], mode: NodeMode, how: tuple[bool, bool], ahead: int = 0) -> Results:
    """Both give the same after each step; what they give after the last one."""
    limited, patient = how
    remembers, forgets = (
        World(mode, limited=limited, patient=patient, ahead=ahead, remembers=one) for one in (True, False)
    )
    found: Results = []
    for actions in steps:
        for world in (remembers, forgets):
            for action in actions:
                action(world)
        found = remembers.results()
        assert found == forgets.results()
    return found


def test_whoever_keeps_a_node_and_may_not_start_hides_nothing_that_limits_give_back() -> None:
    """He is looked at before all others: that limits stop him now says nothing of those whom they stopped before."""
    waiting = [
        asks("a1", "x", 3_000, 1, 0.0),
        asks("a1", "y", 500, 1, 0.0),
        asks("a2", "x", 500, 1, 0.0),
        asks("b1", "x", 1_500, 1, 0.0),
        asks("b2", "x", 500, 1, 0.0, required_node="n0"),
    ]
    steps = [waiting, [releases(1)], [releases(0)]]
    assert assert_agree(steps, NodeMode.FREE, (True, False)) == [("b1 x", ("n2",)), ("landed", 0)]
