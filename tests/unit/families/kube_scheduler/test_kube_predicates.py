"""Predicates about one node: what it is, what it has, and who is on it."""

from typing import Any

import pytest

from slurm_bridge.families.kube_scheduler.options import STANDARD_PREDICATES
from slurm_bridge.families.kube_scheduler.predicates import reasons, standard
from slurm_bridge.families.kube_scheduler.predicates.base import BadPredicate
from slurm_bridge.model.node import Taint
from slurm_bridge.model.pod import Container, ContainerPort, Toleration
from tests.unit.families.kube_scheduler import scenes
from tests.unit.families.kube_scheduler.scenes import node, pod, said, seen

TAINTED = node("t", taints=(Taint(key="gpu", value="yes", effect="NoExecute"),))


def wants(**requests: Any) -> Any:
    """A pod with these requests, on a cluster where half of everything is used."""
    running = pod("r", on="a", requests={"cpu": 4, "memory": 512})
    return seen(pod(requests=requests), [node("a")], [running])


def test_free_counts_what_runs() -> None:
    """Where what is free counts, a node in use has too little for what it could carry empty."""
    assert said("PodFitsResources", wants(cpu=5, memory=600)) == {"a": ("Insufficient cpu", "Insufficient memory")}


def test_allocatable_does_not_count_what_runs() -> None:
    """What is merely in use is the queue's matter: only more than the node has is refused."""
    running = pod("r", on="a", requests={"cpu": 8})
    full = seen(pod(requests={"cpu": 8}), [node("a")], [running], capacity="allocatable")
    assert said("PodFitsResources", full) == {}
    assert said("PodFitsResources", full.of(pod(requests={"cpu": "8001m"}))) == {"a": ("Insufficient cpu",)}


@pytest.mark.parametrize(
    ("asked", "lacking"),
    [
        ({"memory": 1}, ()),
        ({"memory": 1, "cpu": 0}, ()),
        ({}, ()),
        ({"cpu": "1m"}, ("Insufficient cpu",)),
        ({"cpu": "1m", "memory": "1Ti"}, ("Insufficient cpu", "Insufficient memory")),
    ],
)
def test_a_node_that_has_given_away_too_much(asked: dict[str, Any], lacking: tuple[str, ...]) -> None:
    """It takes pods that ask for nothing of what it lacks: only what is asked for is compared."""
    crowded = seen(pod(requests=asked), [node("a")], [pod("r", on="a", requests={"cpu": 9})])
    assert said("PodFitsResources", crowded) == ({"a": lacking} if lacking else {})


def test_overhead_counts() -> None:
    """A sandbox takes its part beside the containers."""
    assert said("PodFitsResources", seen(pod(requests={"cpu": 8}, overhead={"cpu": "1m"}), [node("a")])) == {
        "a": ("Insufficient cpu",)
    }


def test_ignored_resources_are_not_looked_at() -> None:
    """Somebody else answers for them."""
    at = seen(pod(requests={"example.com/x": 1}), [node("a")])
    assert said("PodFitsResources", at, ignored_resources=["example.com/x"]) == {}
    assert said("GeneralPredicates", at, ignored_resources=["example.com/x"]) == {}
    assert said("GeneralPredicates", at) == {"a": ("Insufficient example.com/x",)}


def test_a_general_failure_tells_everything() -> None:
    """All four are asked, and all reasons are told, resources first."""
    at = seen(pod(requests={"cpu": 9}, node_selector={"x": "y"}), [node("a")])
    assert said("GeneralPredicates", at) == {"a": ("Insufficient cpu", reasons.NODE_SELECTOR)}


def test_a_node_that_nobody_has() -> None:
    """A pod that names a node that is not there fits nowhere."""
    at = seen(pod(on="gone"), [node("a"), node("b")])
    assert said("HostName", at) == {"a": (reasons.HOST_NAME,), "b": (reasons.HOST_NAME,)}


@pytest.mark.parametrize(
    ("name", "toleration", "denied"),
    [
        ("PodToleratesNodeTaints", {}, True),
        ("PodToleratesNodeTaints", {"key": "gpu", "operator": "Exists"}, False),
        ("PodToleratesNodeNoExecuteTaints", {}, True),
    ],
)
def test_taints(name: str, toleration: dict[str, str], denied: bool) -> None:
    """A taint keeps the pod away unless it is tolerated."""
    tolerations = (Toleration(**toleration),) if toleration else ()
    assert (said(name, seen(pod(tolerations=tolerations), [TAINTED])) == {"t": (reasons.TAINTS,)}) is denied


def test_conditions_are_all_told() -> None:
    """Not ready, no network and cordoned, in this order, whatever is tolerated."""
    bad = node("a", conditions={"Ready": "Unknown", "NetworkUnavailable": "True"}, unschedulable=True)
    expected = (reasons.NOT_READY, reasons.NETWORK_UNAVAILABLE, reasons.UNSCHEDULABLE)
    assert said("CheckNodeCondition", seen(pod(), [bad, node("b")])) == {"a": expected}


@pytest.mark.parametrize(
    ("needs", "denied"),
    [({}, True), ({"example.com/x": 1}, True), ({"cpu": 0}, True), ({"memory": "1Mi"}, False)],
)
def test_memory_pressure_is_for_those_who_ask_for_nothing(needs: dict[str, Any], denied: bool) -> None:
    """A pod that asks for cpu or memory has a better claim than that."""
    at = seen(pod(requests=needs), [node("a", conditions={"MemoryPressure": "True"})])
    assert bool(said("CheckNodeMemoryPressure", at)) is denied


def test_pressure_that_nobody_knows_is_none() -> None:
    """Only what is certain keeps pods away."""
    at = seen(pod(), [node("a", conditions={"DiskPressure": "Unknown", "PIDPressure": "Unknown"})])
    assert said("CheckNodeDiskPressure", at) == said("CheckNodePIDPressure", at) == {}


@pytest.mark.parametrize(("presence", "denied"), [(True, {"b"}), (False, {"a"})])
def test_label_presence(presence: bool, denied: set[str]) -> None:
    """Nodes with the label, or those without, whatever its value is."""
    at = seen(pod(), [node("a", labels={"retiring": "soon"}), node("b")])
    assert said("CheckNodeLabelPresence", at, labels=["retiring"], presence=presence).keys() == denied


def claiming_port(port: int, **others: Any) -> Container:
    """A container that takes a port of its host."""
    return Container(name="c", ports=(ContainerPort(host_port=port, **others),))


@pytest.mark.parametrize(
    ("taken", "denied"),
    [
        ({"containers": (claiming_port(80),)}, True),
        ({"containers": (claiming_port(80, host_ip="10.0.0.1"),)}, True),
        ({"containers": (claiming_port(81),)}, False),
        ({"containers": (claiming_port(80, protocol="UDP"),)}, False),
        ({"init_containers": (claiming_port(80),)}, False),
    ],
)
def test_host_ports(taken: dict[str, Any], denied: bool) -> None:
    """A port is taken on all addresses or on one; init containers that have ended hold none."""
    at = seen(pod(containers=(claiming_port(80),)), [node("a"), node("b")], [pod("r", on="a", **taken)])
    assert said("PodFitsHostPorts", at) == ({"a": (reasons.HOST_PORTS,)} if denied else {})


def test_a_sidecar_keeps_its_port() -> None:
    """It runs for as long as the pod does."""
    sidecar = Container(name="s", restart_policy="Always", ports=(ContainerPort(host_port=80),))
    at = seen(pod(containers=(claiming_port(80),)), [node("a")], [pod("r", on="a", init_containers=(sidecar,))])
    assert said("PodFitsHostPorts", at) == {"a": (reasons.HOST_PORTS,)}


def disk(kind: str, **source: Any) -> tuple[dict[str, Any], ...]:
    """The volumes of a pod that names one disk."""
    return ({"name": "data", kind: source},)


READ = {"readOnly": True}


@pytest.mark.parametrize(
    ("mine", "theirs", "denied"),
    [
        (disk("gcePersistentDisk", pdName="d"), disk("gcePersistentDisk", pdName="d"), True),
        (disk("gcePersistentDisk", pdName="d", **READ), disk("gcePersistentDisk", pdName="d", **READ), False),
        (disk("gcePersistentDisk", pdName="d", **READ), disk("gcePersistentDisk", pdName="d"), True),
        (disk("gcePersistentDisk", pdName="d"), disk("gcePersistentDisk", pdName="e"), False),
        (disk("awsElasticBlockStore", volumeID="v", **READ), disk("awsElasticBlockStore", volumeID="v", **READ), True),
        (disk("iscsi", iqn="i"), disk("iscsi", iqn="i"), True),
        (disk("rbd", monitors=["a", "b"], image="i"), disk("rbd", monitors=["b"], pool="rbd", image="i"), True),
        (disk("rbd", monitors=["a"], image="i"), disk("rbd", monitors=["b"], image="i"), False),
        (disk("gcePersistentDisk", pdName="d"), disk("awsElasticBlockStore", volumeID="d"), False),
    ],
)
def test_disks(mine: Any, theirs: Any, denied: bool) -> None:
    """The same disk twice, unless both only read it and its kind bears that."""
    at = seen(pod(volumes=mine), [node("a")], [pod("r", on="a", volumes=theirs)])
    assert said("NoDiskConflict", at) == ({"a": (reasons.DISK_CONFLICT,)} if denied else {})


def test_service_affinity_follows_the_first_pod() -> None:
    """Pods of a service go where one of them is, in the labels that count; the pod's own selector wins."""
    nodes = [node("a", labels={"rack": "1"}), node("b", labels={"rack": "2"}), node("c", labels={"rack": "1"})]
    look = scenes.lookup(service_selectors=lambda namespace: ({"app": "web"},) if namespace == "team" else ())
    first = [pod("r1", on="a", labels={"app": "web"}), pod("r2", on="b", labels={"app": "web"})]
    at = seen(pod(labels={"app": "web"}), nodes, first, lookup=look)
    assert said("CheckServiceAffinity", at, labels=["rack"]) == {"b": (reasons.SERVICE_AFFINITY,)}
    chosen = at.of(pod(labels={"app": "web"}, node_selector={"rack": "2"}))
    assert said("CheckServiceAffinity", chosen, labels=["rack"]).keys() == {"a", "c"}
    assert said("CheckServiceAffinity", at.of(pod(labels={"app": "other"})), labels=["rack"]) == {}


def test_every_standard_predicate_exists() -> None:
    """The default names nothing that is not there, and a pod that asks for nothing passes all of them."""
    at = seen(pod(), [node("a")])
    assert not any(said(name, at) for name in STANDARD_PREDICATES)


@pytest.mark.parametrize(
    ("name", "args", "told"),
    [
        ("HostNam", {}, "HostNam: neither built in nor installed"),
        ("HostName", {"colour": "red"}, "predicate HostName: takes no args, and was given colour"),
        ("CheckNodeLabelPresence", {}, "predicate CheckNodeLabelPresence: args.labels: Field required"),
        ("PodFitsResources", {"ignored": []}, "args.ignored: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_configuration_names_what_is_wrong(name: str, args: dict[str, Any], told: str) -> None:
    """The predicate, the argument, and what is allowed."""
    with pytest.raises(BadPredicate, match=told):
        standard.build(name, args, {})
