"""Kubernetes JSON becomes frozen records that keep what matters and nothing else."""

import msgspec
import pytest

from slurm_bridge.model import meta, names, node, pod
from slurm_bridge.workloads import kind_table

POD = b"""{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"team","uid":"u","resourceVersion":"7",
"creationTimestamp":null,"managedFields":[{"manager":"kubectl","fieldsV1":{"f:spec":{}}}],"labels":{"x":"y"}},
"spec":{"schedulerName":"s","schedulingGroup":{"podGroupName":"g"},"containers":[{"name":"c","ports":[{"hostPort":80,
"containerPort":80,"hostIP":"127.0.0.1"}],"resources":{"requests":{"cpu":"500m","memory":1024}}}]},
"status":{"phase":"Pending","unheardOf":[1,2]}}"""


def read_pod() -> pod.Pod:
    """The pod above as a record."""
    return msgspec.json.decode(POD, type=pod.Pod)


def test_a_pod_keeps_what_the_bridge_needs() -> None:
    """Identity, marks, needs and group are read under Kubernetes' own names."""
    found = read_pod()
    assert found.key == ("team", "a")
    assert found.spec.scheduling_group == pod.SchedulingGroup(pod_group_name="g")
    assert found.spec.containers[0].resources.requests == {"cpu": "500m", "memory": 1024}
    assert found.spec.containers[0].ports[0].host_ip == "127.0.0.1"
    assert (found.bound, found.gated, found.terminal, found.terminating) == (False, False, False, False)


def test_managed_fields_and_unknown_fields_leave_no_trace() -> None:
    """A cache of many pods must not carry what nobody reads."""
    again = msgspec.json.encode(read_pod())
    assert b"managedFields" not in again
    assert b"unheardOf" not in again


def test_a_record_cannot_be_changed() -> None:
    """What is cached is shared, and what is shared is frozen."""
    with pytest.raises(AttributeError):
        read_pod().spec.node_name = "n1"  # type: ignore[misc]


def test_every_kind_reads_the_smallest_object() -> None:
    """No field of any record is required beyond the metadata that every object has."""
    for kind in kind_table.RESOURCES:
        assert msgspec.json.decode(b'{"metadata":{"name":"x"}}', type=kind.record).metadata.name == "x"


def test_no_two_kinds_share_a_place() -> None:
    """Group and plural lead to one row."""
    places = [(kind.group, kind.plural) for kind in kind_table.RESOURCES]
    assert len(places) == len(set(places))


def test_a_node_is_known_to_slurm_by_its_label_or_its_name() -> None:
    """Administrators may map names; without a label both sides use the same."""
    plain = node.Node(metadata=meta.ObjectMeta(name="kube-1"))
    mapped = node.Node(metadata=meta.ObjectMeta(name="kube-1", labels={names.LABEL_SLURM_NODE_NAME: "ext1"}))
    assert (plain.slurm_name, mapped.slurm_name) == ("kube-1", "ext1")


def test_a_node_is_ready_when_its_kubelet_says_so() -> None:
    """Unknown is not ready."""
    lines = [meta.Condition(type="Ready", status=status) for status in ("True", "False", "Unknown")]
    found = [node.Node(metadata=meta.ObjectMeta(), status=node.NodeStatus(conditions=(line,))).ready for line in lines]
    assert found == [True, False, False]
