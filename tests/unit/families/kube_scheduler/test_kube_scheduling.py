"""One pod from filter to host."""

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster.rules import volumes
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kube_scheduler import scene
from slurm_bridge.families.kube_scheduler.predicates.base import Failures, Predicate
from slurm_bridge.families.kube_scheduler.priorities import table
from slurm_bridge.families.kube_scheduler.priorities.rule import HostPriority, PriorityConfig
from slurm_bridge.families.kube_scheduler.priority_chain import Prioritizer
from slurm_bridge.families.kube_scheduler.scene import Lookup, Scene
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.storage import Claim
from tests.conformance.kube_cycle import cycle
from tests.conformance.kube_cycle.cycle import Algorithm, Scheduled, Unscheduled
from tests.conformance.kube_cycle.fiterror import FitError
from tests.conformance.kube_cycle.host import HostTurns
from tests.unit.families.kube_scheduler.scoring import a_pass, asking, machine, machines, there


def refusing(*names: str, reason: str = "no") -> Predicate:
    """A predicate that fails on these nodes."""

    def predicate(seen: Scene) -> Failures:
        return ((np.isin(seen.columns.names.astype(str), names), reason),)

    return predicate


def by(predicates: Mapping[str, Predicate] | None = None, *priorities: PriorityConfig, **others: Any) -> Algorithm:
    """An algorithm; without priorities all nodes are alike."""
    given: dict[str, Any] = {"pick": HostTurns(), **others}
    return Algorithm(predicates=predicates or {}, prioritizer=Prioritizer(priorities), **given)


def scheduled(
    snapshot: ClusterSnapshot, algorithm: Algorithm, pod: Pod | None = None, lookup: Lookup | None = None
) -> Scheduled | Unscheduled | FitError:
    """Where a pod goes."""
    seen = scene.scene(snapshot, pod or asking(), lookup=lookup or Lookup())
    return cycle.schedule(seen, a_pass(snapshot), algorithm)


def host(found: Scheduled | Unscheduled | FitError) -> str:
    """The host of a success."""
    assert isinstance(found, Scheduled)
    return found.host


def test_the_best_of_those_that_fit_is_taken() -> None:
    """The emptiest, but for the one that a predicate rules out."""
    snapshot = there([machine(name, cpu=cpu, memory="8Gi") for name, cpu in (("a", "2"), ("b", "8"), ("c", "4"))])
    algorithm = by({"p": refusing("b")}, table.configured("LeastRequested"))
    assert host(scheduled(snapshot.snapshot(), algorithm, asking("p", {"cpu": "1", "memory": "1Gi"}))) == "c"


def test_a_single_node_is_taken_without_scores() -> None:
    """A failing priority does not matter then."""

    def fails(*_: Any) -> HostPriority:
        raise RuntimeError("never asked")

    found = scheduled(machines("a", "b"), by({"p": refusing("b")}, PriorityConfig(name="x", map=fails)))
    assert found == Scheduled(host="a")


def test_a_failing_priority_is_an_obstacle_with_its_details() -> None:
    """The details are for operators."""

    def fails(*_: Any) -> HostPriority:
        raise RuntimeError("broken")

    found = scheduled(machines("a", "b"), by(None, PriorityConfig(name="x", map=fails)))
    assert isinstance(found, Unscheduled)
    assert found.message == "priority failed"
    assert "priority x failed on node a: RuntimeError: broken" in found.detail


def test_where_nothing_fits_every_node_says_why() -> None:
    """And the message counts all nodes."""
    found = scheduled(machines("a", "b"), by({"p": refusing("a", "b", reason="node(s) were odd")}))
    assert isinstance(found, FitError)
    assert dict(found.reasons) == {"a": ("node(s) were odd",), "b": ("node(s) were odd",)}
    assert found.message == "0/2 nodes are available: 2 node(s) were odd."


def test_without_nodes_nothing_is_asked() -> None:
    """In kube-scheduler's words."""
    assert scheduled(machines(), by()) == Unscheduled(message="no nodes available to schedule pods")


def test_a_claim_that_is_being_deleted_stops_the_pod() -> None:
    """Before any predicate is asked."""
    claim = Claim(metadata=ObjectMeta(name="data", namespace="team", deletion_timestamp="2026-01-01T00:00:00Z"))
    storage = volumes.Storage(
        claim=lambda namespace, name: claim if (namespace, name) == ("team", "data") else None,
        volume=lambda _name: None,
        storage_class=lambda _name: None,
    )
    pod = asking(volumes=({"name": "v", "persistentVolumeClaim": {"claimName": "data"}},))
    found = scheduled(machines("a"), by({"p": refusing("a")}), pod, Lookup(storage=storage))
    assert found == Unscheduled(message='persistentvolumeclaim "data" is being deleted')


def test_equally_good_nodes_take_turns() -> None:
    """Nobody is always the first."""
    algorithm, snapshot = by(), machines("a", "b", "c")
    assert [host(scheduled(snapshot, algorithm)) for _ in range(4)] == ["a", "b", "c", "a"]


@given(st.integers(101, 400), st.integers(1, 60), st.integers(0, 2**32))
def test_as_many_nodes_are_rated_as_are_enough(number: int, percentage: int, seed: int) -> None:
    """And the host is one of them."""
    snapshot = machines(*(f"n{place:03d}" for place in range(number)))
    algorithm = by(percentage_of_nodes=percentage, pick=random.Random(seed).randrange)
    found = scheduled(snapshot, algorithm)
    assert isinstance(found, Scheduled)
    assert found.prioritized is not None
    rated = set(found.prioritized.by_name)
    assert len(rated) == max(100, number * percentage // 100)
    assert found.host in rated
