"""A hook that answers nonsense within a record of the right type has failed, as one that raises has."""

import itertools
from typing import Any

import pytest

from slurm_bridge.hooks.base import Admit, Denied, Fields, NodeSet, Rank, Sample, Scores, Subsets, Tiers
from slurm_bridge.hooks.chain import Chain, Plan
from slurm_bridge.hooks.orderly import Orderly
from slurm_bridge.model.verdict import Reject, Wait
from tests.unit.hooks.builders import Around, cluster, hook, node, pod, translated, workload

ANY: Any = None
NONSENSE = (
    ("admit", Admit(note=ANY or 5)),
    ("admit", Wait(reason=ANY or 5, message="m")),
    ("admit", Wait(reason="R", message="m", retry_after=ANY or "soon")),
    ("admit", Reject(reason="R", message=ANY)),
    ("sample", Sample(nodes=ANY or ["a"])),
    ("sample", Sample(nodes=ANY)),
    ("filter", Denied(nodes=ANY or ["a"])),
    ("filter", Denied(nodes=ANY or {"a": "a reason that is no tuple"})),
    ("filter", Denied(nodes={"a": ANY})),
    ("score", Scores(nodes=ANY or ["a"])),
    ("score", Scores(nodes=ANY or {"a": "high", "b": 1.0})),
    ("score", Scores(nodes={"a": float("nan")})),
    ("score", Scores(nodes={"a": 1.0}, tiers=ANY or 7)),
    ("score", Scores(nodes={"a": 1.0, "b": 2.0}, tiers=Tiers(count=0))),
    ("score", Scores(nodes={"a": 1.0, "b": 2.0}, tiers=Tiers(first=-3))),
    ("score", Scores(nodes={"a": 1.0, "b": 2.0}, tiers=Tiers(widen_after=ANY))),
    ("subset", Subsets(sets=ANY)),
    ("subset", Subsets(sets=(ANY or frozenset({"a"}),))),
    ("subset", Subsets(sets=(NodeSet(nodes=ANY or ["a"]),))),
    ("subset", Subsets(sets=(NodeSet(nodes=frozenset({"a"}), name=ANY),))),
    ("express", Fields(priority=ANY or "high")),
    ("express", Fields(partition=ANY or 5)),
)


@pytest.mark.parametrize(("phase", "answer"), NONSENSE)
def test_nonsense_is_the_failure_of_its_hook(around: Around, phase: str, answer: object) -> None:
    """It is held, or skipped, as configured; nobody else stumbles over it."""
    snapshot = cluster([node(name) for name in "abc"])
    for on_error, kind in (("hold", Wait), ("skip", Plan), ("reject", Reject)):
        chain = Chain([hook("site", on_error, **{phase: answer})], around.make())
        found = chain.plan(workload(), translated(), snapshot, now=1.0)
        assert isinstance(found, kind)
        assert isinstance(found, Plan) or found.reason == "HookFailed"


def test_the_log_names_the_field(around: Around) -> None:
    """And what was wrong with it."""
    chain = Chain([hook("site", score=Scores(nodes=ANY or {"a": "high"}))], around.make())
    chain.plan(workload(), translated(), cluster([node("a")]), now=1.0)
    assert "Scores.nodes has 'high' among its values, which have to be numbers" in str(around.log.said)


def test_keys_that_cannot_be_compared_do_not_stop_the_queue(around: Around) -> None:
    """They stand in some order, always the same one."""
    keys = {"a": {"x": 1}, "b": 5, "c": (1, None), "d": (1, "x"), "e": None}
    chain = Chain([hook("site", order=lambda one: Rank(key=keys[one.root.name]))], around.make())
    some = [workload(pod(name)) for name in keys]
    assert len(sorted(some, key=chain.order_key)) == len(some)
    assert chain.order_key(some[0]) == chain.order_key(some[0])


def test_keys_are_in_their_own_order_where_they_have_one() -> None:
    """The wrapping is not to be noticed."""
    keys = [(1, "b"), (1, "a"), (0, "z")]
    assert [one.key for one in sorted(map(Orderly, keys))] == sorted(keys)
    assert all((Orderly(one) == Orderly(other)) == (one == other) for one, other in itertools.product(keys, keys))
