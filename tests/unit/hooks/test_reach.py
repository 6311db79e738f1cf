"""Which nodes a job can have, and when it could never start on them."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks import reach
from slurm_bridge.hooks.base import Denied, Nodes
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.hooks.emitter import Emitter
from slurm_bridge.hooks.reach import Reach
from slurm_bridge.hooks.sieve import Sieved
from slurm_bridge.model.job import JobRequest
from slurm_bridge.model.verdict import Wait
from tests.unit.hooks.builders import Around, cluster, node, partition, request

ABCD = [node(name) for name in "abcd"]
FOUR = cluster(ABCD)
SPLIT = cluster(ABCD, partition("one", "a", "b"), partition("two", "c", "d"))


def sieved(nodes: str, members: str = "", seen: ClusterSnapshot = FOUR) -> Sieved:
    """What the filters have left."""
    denied = Denied.because(f"node(s) were not for {members or 'it'}", seen.names - frozenset(nodes))
    return Sieved(nodes=frozenset(nodes), denied=(denied,), members=members)


def het(*parts: JobRequest) -> JobRequest:
    """A heterogeneous request of a leader and these parts."""
    return request(components=parts)


def reached(around: Around, asked: JobRequest, *found: Sieved, seen: ClusterSnapshot = FOUR, told: str = "") -> Reach:
    """The nodes of a request that has some."""
    with Chain([], around.make()).session(seen, now=0.0) as session:
        got = reach.reach(session, asked, found, Emitter(), told)
    assert isinstance(got, Reach), got
    return got


def missed(around: Around, asked: JobRequest, *found: Sieved, seen: ClusterSnapshot = FOUR, told: str = "") -> str:
    """Why there are too few."""
    with Chain([], around.make()).session(seen, now=0.0) as session:
        got = reach.reach(session, asked, found, Emitter(), told)
    assert isinstance(got, Wait), got
    assert got.reason == "Unschedulable"
    return got.message


def test_one_kind_of_pods_has_what_is_left(around: Around) -> None:
    """The very same set: what is derived of it is kept under it."""
    only = sieved("abc")
    got = reached(around, request(), only)
    assert got.parts == ({"a", "b", "c"},)
    assert got.every is only.nodes


def test_one_job_has_the_nodes_that_all_can_use(around: Around) -> None:
    """Any pod may come on any node of the job."""
    assert reached(around, request(), sieved("abc", "x"), sieved("bcd", "y"), sieved("abd", "z")).parts == ({"b"},)


def test_no_common_node_is_said_with_the_reason_for_the_form(around: Around) -> None:
    """Each kind has nodes, and the user learns why they do not help."""
    said = missed(around, request(), sieved("ab", "1 of 3 pods (x)"), sieved("c", "2 of 3 pods (y, z)"), told="No het.")
    assert said == (
        "no node that all pods of the job can use (2 for 1 of 3 pods (x), 1 for 2 of 3 pods (y, z)): "
        "0/4 nodes are available: 2 node(s) were not for 1 of 3 pods (x), "
        "2 node(s) were not for 2 of 3 pods (y, z). No het."
    )


def test_each_part_has_the_nodes_of_its_shape(around: Around) -> None:
    """They need not have any in common."""
    got = reached(around, het(request()), sieved("ab", "x"), sieved("c", "y"))
    assert (got.parts, got.every) == (({"a", "b"}, {"c"}), {"a", "b", "c"})


def test_parts_never_share_a_node(around: Around) -> None:
    """Two parts that can only use the same node would wait in Slurm for ever."""
    said = missed(around, het(request()), sieved("a", "x"), sieved("a", "y"))
    assert said == (
        "too few nodes; parts of a heterogeneous job share no node: "
        "1 needed for x: 1/4 nodes are available: 3 node(s) were not for x.; "
        "1 needed for y: 1/4 nodes are available: 3 node(s) were not for y."
    )


def test_partitions_narrow_each_part(around: Around) -> None:
    """And who has no node there is named."""
    narrow = het(request(partition="two"))
    got = reached(around, narrow, sieved("abcd", "x"), sieved("bcd", "y"), seen=SPLIT)
    assert got.parts == ({"a", "b", "c", "d"}, {"c", "d"})
    said = missed(around, narrow, sieved("abcd", "x"), sieved("b", "y"), seen=SPLIT)
    assert said == (
        "no node for y: 0/4 nodes are available: 1 node(s) are not in Slurm partition two, 3 node(s) were not for y."
    )


def test_fewer_nodes_than_the_user_asks_for(around: Around) -> None:
    """Slurm would keep such a job waiting without a word."""
    wide = request(minimum_nodes=3)
    assert reached(around, wide, sieved("abc")).every == {"a", "b", "c"}
    said = missed(around, wide, sieved("ab"))
    assert said == "too few nodes: 3 needed: 2/4 nodes are available: 2 node(s) were not for it."


@pytest.mark.parametrize(
    ("asked", "fewest"),
    [
        (request(), 1),
        (request(maximum_nodes=3), 3),
        (request(minimum_nodes=2, maximum_nodes=5), 2),
        (het(request(minimum_nodes=2), request()), 4),
    ],
)
def test_how_many_nodes_it_takes(around: Around, asked: JobRequest, fewest: int) -> None:
    """As few as it can do with; parts need nodes of their own."""
    kinds = [sieved("abcd", name) for name in "xyz"][: 1 + len(asked.components)]
    assert reached(around, asked, *kinds).count == fewest


def test_what_suits() -> None:
    """Nodes among which the job could start: enough of them, and other ones for each part."""
    plain = Reach(parts=(frozenset("abc"),), least=(2,), every=frozenset("abc"), count=2)
    assert [plain.suits(frozenset(nodes)) for nodes in ("ab", "a", "")] == [True, False, False]
    parts = Reach(parts=(frozenset("ab"), frozenset("bc")), least=(1, 1), every=frozenset("abc"), count=2)
    assert [parts.suits(frozenset(nodes)) for nodes in ("ab", "bc", "b", "a")] == [True, True, False, False]


def test_many_parts_that_need_many_nodes() -> None:
    """More nodes than Python's stack is deep."""
    nodes = frozenset(map(str, range(3000)))
    assert reach.apart([nodes, nodes, nodes], [1000, 1000, 1000])
    assert not reach.apart([nodes, nodes, nodes], [1000, 1000, 1001])


_sets = st.lists(
    st.tuples(st.frozensets(st.sampled_from("abcde")), st.integers(min_value=1, max_value=2)), min_size=1, max_size=4
)


def _by_trying(sets: Sequence[Nodes], least: Sequence[int]) -> bool:
    """Every choice of nodes for every part."""
    choices = (itertools.combinations(sorted(nodes), count) for nodes, count in zip(sets, least, strict=True))
    return any(len({name for part in chosen for name in part}) == sum(least) for chosen in itertools.product(*choices))


@given(_sets)
def test_apart_finds_different_nodes_where_there_are_some(parts: list[tuple[Nodes, int]]) -> None:
    """Exactly then when some choice gives every part enough of its own."""
    sets, least = [nodes for nodes, _ in parts], [count for _, count in parts]
    assert reach.apart(sets, least) is _by_trying(sets, least)


@given(st.lists(st.frozensets(st.sampled_from("abcd"), min_size=1), min_size=1, max_size=4))
def test_a_plain_job_reaches_exactly_the_common_nodes(sets: list[Nodes]) -> None:
    """In whichever order the shapes come; and where it is nothing, that is an obstacle."""
    common = frozenset.intersection(*sets)
    for order in (sets, sets[::-1]):
        with Chain([], Around().make()).session(FOUR, now=0.0) as session:
            kinds = [sieved("".join(nodes), f"kind {number}") for number, nodes in enumerate(order)]
            got = reach.reach(session, request(), kinds, Emitter())
        assert (got.every if isinstance(got, Reach) else frozenset()) == common
