"""Where pods differ, hooks are asked for each kind of them, and a message names whom it is about."""

import pytest

from slurm_bridge.hooks import sieve
from slurm_bridge.hooks.base import Ask, Denied, Nodes, Sample, Session
from slurm_bridge.hooks.calls import Hook
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.hooks.sieve import Avoid, Sieved
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.translate.shapes import Shape
from tests.unit.hooks.builders import Around, cluster, gang, hook, node, pod, request, shape

FOUR = cluster([node(name) for name in "abcd"])

LEADER = pod("leader")
WORKERS = tuple(pod(f"worker-{number}") for number in range(3))
SHAPES = (shape(LEADER), shape(*WORKERS))


def ask(*shapes: Shape) -> Ask:
    """About all pods of these shapes."""
    return Ask(workload=gang(*(one for each in shapes for one in each.pods)), request=request(), shapes=shapes)


def sifted(around: Around, *hooks: Hook, avoid: Avoid | None = None) -> tuple[Sieved, ...]:
    """What is left for the leader, and for its workers."""
    with Chain(hooks, around.make()).session(FOUR, now=0.0) as session:
        return sieve.sift(session, ask(*SHAPES), avoid or {})


def denies(**nodes: str) -> Hook:
    """A filter: for the first pod that it is asked about, the nodes that it denies."""

    def deny(_session: Session, asked: Ask, _nodes: Nodes) -> Denied:
        return Denied.because("node(s) were full", nodes[asked.workload.pods[0].metadata.name.partition("-")[0]])

    return hook("f", filter=deny)


def test_each_shape_has_its_own_nodes(around: Around) -> None:
    """In the order of the shapes."""
    assert [one.nodes for one in sifted(around, denies(leader="abc", worker="d"))] == [{"d"}, {"a", "b", "c"}]


def test_hooks_see_one_shape_at_a_time(around: Around) -> None:
    """The workload without all other pods, and the request of all."""
    seen: list[tuple[str, int, tuple[Pod, ...], int]] = []

    def look(_session: Session, asked: Ask, _nodes: Nodes) -> Denied:
        seen.append((asked.workload.root.name, asked.request.tasks, asked.workload.pods, len(asked.shapes)))
        return Denied(nodes={})

    sifted(around, hook(filter=look))
    assert seen == [("train", 1, (LEADER,), 1), ("train", 1, WORKERS, 1)]


@pytest.mark.parametrize("shapes", [(), (shape(*WORKERS),)])
def test_equal_pods_are_one_question(shapes: tuple[Shape, ...], around: Around) -> None:
    """However many there are: one call of each hook, with the very question of the caller."""
    asked: list[Ask] = []
    chain = Chain([hook(filter=lambda _s, one, _n: asked.append(one) or Denied(nodes={}))], around.make())
    whole = Ask(workload=gang(*WORKERS), request=request(), shapes=shapes)
    with chain.session(FOUR, now=0.0) as session:
        (only,) = sieve.sift(session, whole, {})
    assert (len(asked), asked[0] is whole, only.members, only.nodes) == (1, True, "", FOUR.names)


def test_each_shape_is_sampled(around: Around) -> None:
    """The nodes worth looking at may be others for others."""

    def sample(_session: Session, asked: Ask, _nodes: Nodes) -> Sample:
        return Sample(nodes=frozenset("ab" if asked.workload.pods[0] is LEADER else "c"))

    assert [one.nodes for one in sifted(around, hook(sample=sample))] == [{"a", "b"}, {"c"}]


def test_avoided_nodes_are_avoided_by_all(around: Around) -> None:
    """What refused one member is no place for its group."""
    found = sifted(around, denies(leader="a", worker="b"), avoid={"c": "node(s) refused the pod"})
    assert [one.nodes for one in found] == [{"b", "d"}, {"a", "d"}]


def test_lines_say_whom_they_are_about(around: Around) -> None:
    """And nothing of it sticks to what is said later about all."""
    with Chain([denies(leader="abc", worker="")], around.make()).session(FOUR, now=0.0) as session:
        sieve.sift(session, ask(*SHAPES), {})
        assert [str(line) for line in session.lines] == [
            "filter f 4 → 1 nodes for 1 of 4 pods (leader) (0.0 ms): 3 node(s) were full",
            "filter f 4 → 4 nodes for 3 of 4 pods (worker-0, worker-1, worker-2) (0.0 ms)",
        ]
        assert session.members == ""


def test_nowhere_names_the_members(around: Around) -> None:
    """How many of how many, which, and why in the words of Kubernetes; only the reasons of those."""
    with Chain([denies(leader="a", worker="abcd")], around.make()).session(FOUR, now=0.0) as session:
        found = sieve.nowhere(session, sieve.sift(session, ask(*SHAPES), {}))
    assert found == Wait(
        reason="Unschedulable",
        message="no node for 3 of 4 pods (worker-0, worker-1, worker-2): 0/4 nodes are available: 4 node(s) were full.",
    )


def test_somewhere_for_all_is_no_obstacle(around: Around) -> None:
    """They need not be the same nodes."""
    with Chain([denies(leader="ab", worker="cd")], around.make()).session(FOUR, now=0.0) as session:
        assert sieve.nowhere(session, sieve.sift(session, ask(*SHAPES), {})) is None


def test_a_message_stays_short(around: Around) -> None:
    """With many members, and with many kinds of them that have no node."""
    with Chain([], around.make()).session(FOUR, now=0.0) as session:
        kinds = [Sieved(nodes=frozenset(), denied=(), members=f"kind {number}") for number in range(9)]
        found = sieve.nowhere(session, kinds)
    assert found is not None
    assert found.message.endswith("kind 2: 0/4 nodes are available. 6 more kinds of pods have none either.")
    many = shape(*(pod(f"w-{number}") for number in range(600)))
    assert sieve.members(many, 601) == "600 of 601 pods (w-0, w-1, w-2, …)"
