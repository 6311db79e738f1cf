"""Members onto the nodes that Slurm gave."""

import dataclasses
from collections.abc import Sequence

from hypothesis import assume, given
from hypothesis import strategies as st

from slurm_bridge.model.job import Gres, NodeShare
from slurm_bridge.model.verdict import Reject
from slurm_bridge.scheduler.placement import place
from slurm_bridge.scheduler.placement.place import Member, Part
from slurm_bridge.translate.shapes import Needs
from tests.effort import Work


def gpus(count: int, kind: str = "") -> tuple[Gres, ...]:
    """GPUs of one type, or of none."""
    return (Gres(name="gpu", count=count, type=kind),)


def member(number: int, cpus: int = 1, gres: tuple[Gres, ...] = (), node: str | None = None, mib: int = 10) -> Member:
    """One that waits, or is bound."""
    return Member(uid=f"u{number}", cpus=cpus, memory_mib=mib, gres=gres, node=node, name=f"pod-{number}")


def equal(count: int, cpus: int = 1, gres: tuple[Gres, ...] = ()) -> tuple[Member, ...]:
    """Members that ask the same."""
    return tuple(member(number, cpus, gres) for number in range(count))


def share(node: str, cpus: int = 64, gres: tuple[Gres, ...] = (), mib: int = 100_000) -> NodeShare:
    """Much of a node, where nothing else is said."""
    return NodeShare(node=node, cpus=cpus, memory_mib=mib, gres=gres)


def put(*parts: Part, per_node: int | None = None) -> dict[str, str]:
    """The placing of what can be placed."""
    placed = place.place(parts, per_node=per_node)
    assert isinstance(placed, dict), placed
    return placed


def nodes_of(members: Sequence[Member], shares: Sequence[NodeShare], **how: Needs) -> list[str]:
    """The nodes of these members, in rank order."""
    placed = put(Part(members=tuple(members), shares=tuple(shares), **how))
    return [placed[one.uid] for one in members]


def refusal(*parts: Part, per_node: int | None = None) -> str:
    """What is said of an allocation that is too small."""
    placed = place.place(parts, per_node=per_node)
    assert isinstance(placed, Reject)
    assert placed.reason == "AllocationTooSmall"
    return placed.message


def test_a_single_pod_takes_the_first_node_and_the_others_stay_empty() -> None:
    """A minimum of nodes that the user set."""
    assert nodes_of(equal(1), [share("a"), share("b")]) == ["a"]


def test_eight_gpus_are_placed_as_slurm_shared_them_out() -> None:
    """4 + 4, in rank order."""
    shares = [share("a", 4, gpus(4)), share("b", 4, gpus(4))]
    assert nodes_of(equal(8, 1, gpus(1)), shares) == ["a"] * 4 + ["b"] * 4


def test_unequal_shares_are_filled_as_they_are() -> None:
    """Slurm's counts decide, not evenness."""
    assert nodes_of(equal(4), [share("a", 1), share("b", 3)]) == ["a", "b", "b", "b"]


def test_whole_nodes_are_shared_out_evenly() -> None:
    """Each node was asked for: none stays empty beside one that is crowded."""
    assert nodes_of(equal(5), [share("a"), share("b"), share("c")]) == ["a", "a", "b", "b", "c"]


def test_nodes_come_in_slurms_order_whatever_their_names() -> None:
    """Not sorted."""
    assert nodes_of(equal(2), [share("z", 1), share("a", 1)]) == ["z", "a"]


def test_one_per_node_is_a_cap() -> None:
    """However much room there is."""
    part = Part(members=equal(2), shares=(share("a"), share("b")))
    assert put(part, per_node=1) == {"u0": "a", "u1": "b"}
    assert "holds 1 already" in refusal(Part(members=equal(2), shares=(share("a"),)), per_node=1)


def test_one_per_node_caps_members_that_differ_too() -> None:
    """With their own needs."""
    part = Part(members=(member(0, 2), member(1, 1)), shares=(share("a"), share("b")))
    assert put(part, per_node=1) == {"u0": "a", "u1": "b"}


def test_slots_are_what_a_member_takes_where_tasks_are_equal() -> None:
    """A small worker beside a large leader takes a large slot: the node has no more of them."""
    members = (member(0, 4, gpus(2)), member(1, 1, gpus(1)), member(2, 1, gpus(1)))
    shares = [share("a", 8, gpus(4)), share("b", 4, gpus(2))]
    slots = Needs(cpus=4, memory_mib=10, gres=gpus(2))
    assert nodes_of(members, shares, slots=slots) == ["a", "a", "b"]


def test_a_member_that_outgrew_its_slot_takes_what_it_needs() -> None:
    """The larger of the two counts."""
    members = (member(0, 6), member(1, 2))
    shares = [share("a", 6), share("b", 2)]
    assert nodes_of(members, shares, slots=Needs(cpus=2, memory_mib=10)) == ["a", "b"]


def test_members_that_differ_share_one_node_by_their_sums() -> None:
    """A leader with 2 GPUs and two workers with 1 on one node of 4."""
    members = (member(0, 2, gpus(2)), member(1, 1, gpus(1)), member(2, 1, gpus(1)))
    assert nodes_of(members, [share("a", 4, gpus(4))]) == ["a", "a", "a"]


def test_components_are_placed_each_on_its_own_nodes() -> None:
    """Whatever room another has."""
    leader = Part(members=(member(0, 1, gpus(2)),), shares=(share("a", 1, gpus(2)),))
    workers = Part(members=(member(1), member(2)), shares=(share("b", 1), share("c", 1)))
    assert put(leader, workers) == {"u0": "a", "u1": "b", "u2": "c"}


def test_t26_bound_members_never_move() -> None:
    """Not even to restore the order; the others take what is left."""
    members = (member(0), member(1, node="a"), member(2), member(3, node="b"))
    assert nodes_of(members, [share("a", 2), share("b", 2)]) == ["a", "a", "b", "b"]
    swapped = (member(0, node="b"), member(1), member(2), member(3, node="a"))
    assert nodes_of(swapped, [share("a", 2), share("b", 2)]) == ["b", "a", "b", "a"]


def test_t26_a_newcomer_takes_the_slot_that_was_left() -> None:
    """Where its predecessor was, also when its name sorts last."""
    members = (member(0, node="a"), member(2, node="b"), member(3, node="b"), member(9))
    assert nodes_of(members, [share("a", 2), share("b", 2)]) == ["a", "b", "b", "a"]


def test_a_member_bound_elsewhere_takes_nothing_here() -> None:
    """Its node is no part of this job any more."""
    members = (member(0, node="old"), member(1))
    assert nodes_of(members, [share("a", 1)]) == ["old", "a"]


def test_t27_too_few_cpus_are_named_with_their_node() -> None:
    """What is needed, and what is left where."""
    text = refusal(Part(members=equal(3, 2), shares=(share("a", 4), share("b", 1))))
    assert "member pod-2 (3 of 3), which needs 2 cpus" in text
    assert "node a has left 0 of 4 cpus; node b has left 1 of 1 cpus" in text


def test_t27_too_few_gpus_are_named_with_their_type() -> None:
    """And only that: there are cpus enough."""
    text = refusal(Part(members=equal(2, 1, gpus(1, "a100")), shares=(share("a", 8, gpus(1, "a100")),)))
    assert "needs 1 cpus, 10 MiB of memory, 1 gpu:a100" in text
    assert "0 of 1 gpu:a100" in text
    assert "cpus;" not in text


def test_t27_too_little_memory_is_named() -> None:
    """In MiB."""
    text = refusal(Part(members=equal(2), shares=(share("a", 8, mib=15),)))
    assert "node a has left 5 of 15 MiB of memory" in text


def test_t27_of_many_nodes_a_few_are_named() -> None:
    """Nobody reads five hundred."""
    text = refusal(Part(members=equal(9), shares=tuple(share(f"n{number}", 1) for number in range(8))))
    assert "5 more nodes have no room either" in text


def test_no_nodes_at_all_are_told_apart() -> None:
    """Slurm contradicts itself then."""
    placed = place.place([Part(members=equal(1), shares=())])
    assert isinstance(placed, Reject)
    assert placed.reason == "SlurmAllocationEmpty"


def test_a_gres_count_of_zero_is_unknown() -> None:
    """The cpus alone then say how many fit; so does a GRES of which nothing is told."""
    for told in (gpus(0, "a100"), ()):
        shares = [share("a", 2, told), share("b", 2, told)]
        assert nodes_of(equal(4, 1, gpus(1, "a100")), shares) == ["a", "a", "b", "b"]


def test_memory_of_zero_is_unknown() -> None:
    """A cluster that does not count memory."""
    assert nodes_of(equal(2), [share("a", 2, mib=0)]) == ["a", "a"]


def test_a_type_that_is_not_among_the_counted_ones_is_none() -> None:
    """Slurm counted the GPUs there, and they are others."""
    assert "0 of 0 gpu:a100" in refusal(
        Part(members=equal(1, 1, gpus(1, "a100")), shares=(share("a", 8, gpus(4, "v100")),))
    )


def test_typed_and_untyped_gpus_come_from_the_same_stock() -> None:
    """One of any kind and two of one kind are three."""
    members = (member(0, 1, gpus(1)), member(1, 1, gpus(2, "v100")))
    assert nodes_of(members, [share("a", 8, gpus(3, "v100"))]) == ["a", "a"]
    assert "of 2 gpu" in refusal(Part(members=members, shares=(share("a", 8, gpus(2, "v100")),)))


def test_two_thousand_members_on_five_hundred_nodes_cost_little() -> None:
    """Also when every fourth of them is of another shape, and when there is no room for the last."""
    shares = tuple(share(f"n{number}", 4, mib=40) for number in range(500))
    mixed = tuple(member(number, 1 + (number % 8 == 0), mib=5 + number % 4) for number in range(1600))
    with Work() as work:
        nodes_of(equal(2000), shares)
        nodes_of(mixed, shares)
        refusal(Part(members=equal(2001), shares=shares))
    assert work.total < 20 * 6000


# -- whatever the numbers --------------------------------------------------------------------------------------------

COUNTS = st.integers(0, 4)


@st.composite
def needs(draw: st.DrawFn) -> Needs:
    """What somebody asks for."""
    gres = draw(st.sampled_from(["", "v100", "a100"]))
    count = draw(st.integers(0, 2))
    return Needs(
        cpus=draw(st.integers(1, 3)),
        memory_mib=draw(st.integers(1, 3)),
        gres=gpus(count, gres) if count else (),
    )


@st.composite
def shares_of(draw: st.DrawFn) -> tuple[NodeShare, ...]:
    """Small shares of a few nodes."""
    names = draw(st.permutations([f"n{number}" for number in range(draw(st.integers(1, 5)))]))
    return tuple(
        NodeShare(
            node=name,
            cpus=draw(st.integers(1, 9)),
            memory_mib=draw(st.integers(1, 9)),
            gres=tuple(Gres(name="gpu", type=kind, count=draw(COUNTS)) for kind in draw(KINDS)),
        )
        for name in names
    )


KINDS = st.sampled_from([(), ("v100",), ("v100", "a100")])


@st.composite
def alike(draw: st.DrawFn) -> Part:
    """Equal members."""
    need = draw(needs())
    members = tuple(
        Member(uid=f"u{number}", cpus=need.cpus, memory_mib=need.memory_mib, gres=need.gres)
        for number in range(draw(st.integers(1, 12)))
    )
    return Part(members=members, shares=draw(shares_of()))


@st.composite
def mixed(draw: st.DrawFn) -> Part:
    """Members that differ."""
    found = [draw(needs()) for _ in range(draw(st.integers(1, 12)))]
    members = tuple(
        Member(uid=f"u{number}", cpus=need.cpus, memory_mib=need.memory_mib, gres=need.gres)
        for number, need in enumerate(found)
    )
    return Part(members=members, shares=draw(shares_of()), slots=draw(st.none() | needs()))


PARTS = st.one_of(alike(), mixed())
CAPS = st.none() | st.integers(1, 4)


def total(members: Sequence[Member], kind: str) -> int:
    """How many GPUs they ask for."""
    return sum(one.count for each in members for one in each.gres if kind in ("", one.type))


def placing(part: Part, cap: int | None) -> dict[str, str]:
    """Where its members come; parts that have no place for all of them are none of a case."""
    placed = place.place([part], per_node=cap)
    assume(isinstance(placed, dict))
    assert isinstance(placed, dict)
    return placed


@given(PARTS, CAPS)
def test_no_node_gets_more_than_its_share(part: Part, cap: int | None) -> None:
    """Of cpus, memory, every type of GPU and all together; nor more members than allowed."""
    placed = placing(part, cap)
    for one in part.shares:
        there = [each for each in part.members if placed[each.uid] == one.node]
        slots = part.slots or Needs(cpus=0, memory_mib=0)
        assert sum(max(each.cpus, slots.cpus) for each in there) <= one.cpus
        assert sum(max(each.memory_mib, slots.memory_mib) for each in there) <= one.memory_mib
        assert cap is None or len(there) <= cap
        counted = sum(gres.count for gres in one.gres)
        for kind in ("", "v100", "a100") if counted else ():
            assert total(there, kind) <= sum(gres.count for gres in one.gres if kind in ("", gres.type))


@given(alike(), CAPS)
def test_rank_order_follows_node_order(part: Part, cap: int | None) -> None:
    """Of equal members none is on an earlier node than one before it."""
    placed = placing(part, cap)
    order = [one.node for one in part.shares]
    found = [order.index(placed[one.uid]) for one in part.members]
    assert found == sorted(found)


@given(PARTS, CAPS, st.data())
def test_t26_placing_anew_after_any_were_bound_changes_nothing(
    part: Part, cap: int | None, data: st.DataObject
) -> None:
    """Whichever of them, and then whichever more."""
    placed = placing(part, cap)
    for _ in range(2):
        part = bound(part, placed, data.draw(st.sets(st.sampled_from(part.members))))
        assert place.place([part], per_node=cap) == placed


@given(alike(), CAPS, st.data())
def test_t26_newcomers_too_are_placed_the_same_way_whenever_asked(
    part: Part, cap: int | None, data: st.DataObject
) -> None:
    """Some are bound anywhere; of the others, whichever are bound first."""
    nodes = [one.node for one in part.shares]
    anywhere = {one.uid: data.draw(st.sampled_from(nodes)) for one in part.members}
    part = bound(part, anywhere, data.draw(st.sets(st.sampled_from(part.members))))
    placed = placing(part, cap)
    part = bound(part, placed, data.draw(st.sets(st.sampled_from(part.members))))
    assert place.place([part], per_node=cap) == placed


def bound(part: Part, placed: dict[str, str], some: set[Member]) -> Part:
    """The same part when some members have been bound where they were placed."""
    members = tuple(
        dataclasses.replace(one, node=one.node or (placed[one.uid] if one in some else None)) for one in part.members
    )
    return dataclasses.replace(part, members=members)


@given(alike(), CAPS)
def test_equal_members_are_refused_only_when_there_is_no_room(part: Part, cap: int | None) -> None:
    """Counted by hand: what each share is enough for, together."""
    one, room = part.members[0], 0
    for each in part.shares:
        counts = [each.cpus // one.cpus, each.memory_mib // one.memory_mib]
        counted = sum(gres.count for gres in each.gres)
        counts.extend(
            sum(has.count for has in each.gres if gres.type in ("", has.type)) // gres.count
            for gres in (one.gres if counted else ())
        )
        room += min(counts) if cap is None else min(*counts, cap)
    assert isinstance(place.place([part], per_node=cap), dict) == (room >= len(part.members))
