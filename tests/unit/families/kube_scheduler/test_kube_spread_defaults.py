"""Topology spread constraints that pods without any have by configuration."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pydantic
import pytest

from slurm_bridge.families.kube_scheduler.options import KubeSchedulerOptions
from slurm_bridge.families.kube_scheduler.predicates import reasons
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model.meta import ObjectMeta, OwnerReference
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.services import Controller, ControllerSpec, Service, ServiceSpec
from tests.unit.families.kube_scheduler import scenes
from tests.unit.families.kube_scheduler.kube_hook_scenes import Objects, chained, cluster, denied, hooked, scores
from tests.unit.families.kube_scheduler.scenes import HOST, ZONE, node, spread
from tests.unit.hooks.builders import Around

WEB = {"app": "web"}
NODES = [
    node("n0", labels={ZONE: "x", HOST: "n0"}),
    node("n1", labels={ZONE: "x", HOST: "n1"}),
    node("n2", labels={HOST: "n2"}),
]
APART = {"topology_key": HOST, "max_skew": 1, "when_unsatisfiable": "DoNotSchedule"}
WISHES = [
    {"topology_key": HOST, "max_skew": 3, "when_unsatisfiable": "ScheduleAnyway"},
    {"topology_key": ZONE, "max_skew": 5, "when_unsatisfiable": "ScheduleAnyway"},
]


def pod(name: str = "p", *, owner: str = "", kind: str = "ReplicaSet", **others: Any) -> Pod:
    """A pod of a controller, or of none."""
    made = scenes.pod(name, **{"labels": WEB, **others})
    references = (OwnerReference(api_version="apps/v1", kind=kind, name=owner, uid=owner, controller=True),)
    metadata = ObjectMeta(
        namespace="team", name=name, uid=name, labels=made.metadata.labels, owner_references=references if owner else ()
    )
    return Pod(metadata=metadata, spec=made.spec, status=made.status)


def controller(name: str, labels: Mapping[str, str]) -> Controller:
    """One that selects pods by these labels."""
    selector: dict[str, object] = {"matchLabels": dict(labels)}
    return Controller(metadata=ObjectMeta(namespace="team", name=name), spec=ControllerSpec(selector=selector))


def service(labels: Mapping[str, str], namespace: str = "team") -> Service:
    """One that selects pods by these labels."""
    return Service(metadata=ObjectMeta(namespace=namespace, name="s"), spec=ServiceSpec(selector=dict(labels)))


class Cluster:
    """The hook over some nodes, with what it can look up."""

    def __init__(self, around: Around, *, nodes: Iterable[Node] = NODES, **options: Any) -> None:
        self.hook = hooked(
            predicates=["EvenPodsSpread"], priorities=[{"name": "PodTopologySpread", "args": {"scale": 100}}], **options
        )
        self.chain = chained(around, self.hook)
        self.nodes = list(nodes)

    def has(self, version: int = 1, **objects: Iterable[Any]) -> None:
        """Objects by the name of their need."""
        found = {Need[need]: Objects(*some, version=version) for need, some in objects.items()}
        self.chain.see({**dict.fromkeys(self.hook.needs, Objects()), **found})

    def denied(self, subject: Pod, *running: Pod) -> set[str]:
        """The nodes that it may not come to; the reason is always the same."""
        found = dict(denied(self.chain, self.hook, cluster(self.nodes, running), subject).nodes)
        assert set(found.values()) <= {(reasons.SPREAD,)}
        return set(found)

    def scores(self, subject: Pod, *running: Pod) -> dict[str, int]:
        """By node."""
        rated = scores(self.chain, self.hook, cluster(self.nodes, running), subject).nodes
        return {name: int(score) for name, score in rated.items()}


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_pods_of_a_controller_get_the_constraints_of_the_cluster(around: Around, kind: str) -> None:
    """The pods that count are those that the controller selects."""
    world = Cluster(around, default_spread_constraints=[APART])
    world.has(**{f"{kind.upper()}S": [controller("web", WEB), controller("other", {"app": "other"})]})
    running = [pod("r", on="n0"), pod("o", on="n1", labels={"app": "other"})]
    assert world.denied(pod(owner="web", kind=kind), *running) == {"n0"}
    assert world.denied(pod(owner="gone", kind=kind), *running) == set()
    assert world.denied(pod(), *running) == set()


def test_pods_of_a_service_get_them_too(around: Around) -> None:
    """By the labels of all services that select the pod, and of its controller, together."""
    world = Cluster(around, default_spread_constraints=[APART])
    both = {**WEB, "tier": "front"}
    running = [pod("r", on="n0", labels=WEB), pod("b", on="n1", labels=both)]
    world.has(SERVICES=[service(WEB), service({"app": "db"}), service(WEB, namespace="other")])
    assert world.denied(pod(), *running) == {"n0", "n1"}
    world.has(2, SERVICES=[service(WEB)], REPLICASETS=[controller("front", both)])
    assert world.denied(pod(labels=both, owner="front"), *running) == {"n1"}


def test_a_constraint_of_its_own_stands_in_place_of_all_of_them(around: Around) -> None:
    """Even a wish."""
    world = Cluster(around, default_spread_constraints=[APART])
    world.has(SERVICES=[service(WEB)])
    wish = spread(ZONE, WEB, whenUnsatisfiable="ScheduleAnyway")
    assert world.denied(pod(topology_spread_constraints=(wish,)), pod("r", on="n0")) == set()


def test_a_service_that_comes_changes_the_answer(around: Around) -> None:
    """Although neither nodes nor pods have changed."""
    world = Cluster(around, default_spread_constraints=[APART])
    world.has()
    assert world.denied(pod(), pod("r", on="n0")) == set()
    world.has(2, SERVICES=[service(WEB)])
    assert world.denied(pod(), pod("r", on="n0")) == {"n0"}


RUNNING = [pod("r0", on="n0"), pod("r1", on="n0"), pod("r2", on="n2")]


def test_defaults_of_a_list_are_rated_where_all_labels_are(around: Around) -> None:
    """Hosts: 2 and 0 pods times ln 4, and 2; zone: 2 pods times ln 3, and 4. The node without a zone has nothing."""
    world = Cluster(around, default_spread_constraints=WISHES)
    world.has(SERVICES=[service(WEB)])
    assert world.scores(pod(), *RUNNING) == {"n0": 72, "n1": 100, "n2": 0}


def test_defaults_of_the_system_are_rated_by_the_labels_that_are_there(around: Around) -> None:
    """Hosts: 2, 0 and 1 pods times ln 5, and 2; zone: 2 pods times ln 4, and 4, on the nodes that have one."""
    world = Cluster(around, spread_defaulting="system")
    world.has(SERVICES=[service(WEB)])
    assert world.scores(pod(), *RUNNING) == {"n0": 33, "n1": 58, "n2": 100}
    assert world.denied(pod(), *RUNNING) == set()
    # It belongs to nothing, and is not rated.
    assert set(world.scores(pod(labels={}), *RUNNING).values()) == {0}


def test_needs_follow_the_defaults() -> None:
    """Services and controllers are watched where there are any."""
    spread_only: dict[str, Any] = {"predicates": ["EvenPodsSpread"], "priorities": ()}
    assert hooked(**spread_only).needs == frozenset()
    looked_up = {Need.SERVICES, Need.REPLICASETS, Need.STATEFULSETS}
    assert hooked(**spread_only, spread_defaulting="system").needs == looked_up
    assert hooked(**spread_only, default_spread_constraints=[APART]).needs == looked_up


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"spread_defaulting": "system", "default_spread_constraints": [APART]},
            "default_spread_constraints: must be empty with spread_defaulting: system",
        ),
        (
            {"default_spread_constraints": [APART, {**APART, "max_skew": 2}]},
            f"default_spread_constraints: has {HOST} with DoNotSchedule twice",
        ),
        ({"default_spread_constraints": [{**APART, "max_skew": 0}]}, "greater than or equal to 1"),
        ({"default_spread_constraints": [{**APART, "labelSelector": {}}]}, "Extra inputs are not permitted"),
    ],
)
def test_defaults_that_make_no_sense_are_refused(options: dict[str, Any], said: str) -> None:
    """As kube-scheduler refuses them; selectors follow from the pod."""
    with pytest.raises(pydantic.ValidationError, match=re.escape(said)):
        KubeSchedulerOptions.model_validate(options)
