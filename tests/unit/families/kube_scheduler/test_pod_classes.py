"""Which pods are of one class."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from slurm_bridge.families.kube_scheduler import classes
from slurm_bridge.model import names
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Pod, SchedulingGroup, Toleration
from tests.unit.hooks.builders import owned_by, pod

TOKEN = {"projected": {"sources": []}}


def changed(one: Pod, **meta: Any) -> Pod:
    """The same pod with other metadata."""
    return msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, **meta))


ALIKE: Mapping[str, Pod] = {
    "name and uid": pod("another"),
    "status": pod(phase="Running"),
    "gates": pod(gates=["g"]),
    "group": pod(scheduling_group=SchedulingGroup(pod_group_name="g")),
    "token": pod(volumes=({"name": "kube-api-access-abc12", **TOKEN},)),
    "annotations of others": changed(pod(), annotations={"example.com/seen": "yes"}),
    "an owner that does not control": changed(
        pod(), owner_references=(msgspec.structs.replace(owned_by("Job"), controller=None),)
    ),
}

DIFFERENT: Mapping[str, Pod] = {
    "namespace": changed(pod(), namespace="other"),
    "labels": changed(pod(), labels={"a": "b"}),
    "controller": changed(pod(), owner_references=(owned_by("ReplicaSet"),)),
    "annotation": changed(pod(), annotations={names.JOB_PREFIX + "partition": "gpu"}),
    "requests": pod(requests={"cpu": "1"}),
    "selector": pod(node_selector={"a": "b"}),
    "tolerations": pod(tolerations=(Toleration(key="a"),)),
    "priority": pod(priority=7),
    "affinity": pod(affinity={"nodeAffinity": {}}),
    "claim": pod(volumes=({"name": "v", "persistentVolumeClaim": {"claimName": "c"}},)),
    "a claim of its own": pod(volumes=({"name": "v", "ephemeral": {}},)),
}


@pytest.mark.parametrize("what", ALIKE)
def test_pods_that_no_rule_tells_apart(what: str) -> None:
    """What was worked out for one holds for the other."""
    assert classes.key(ALIKE[what]) == classes.key(pod())


@pytest.mark.parametrize("what", DIFFERENT)
def test_pods_that_a_rule_could_tell_apart(what: str) -> None:
    """Each is a class of its own."""
    keys = [classes.key(one) for one in (pod(), *DIFFERENT.values())]
    assert keys.count(classes.key(DIFFERENT[what])) == 1


def test_volumes_are_told_apart_by_what_they_are() -> None:
    """Their names are for the containers; but a claim that is made for one pod is that pod's alone."""

    def using(name: str, volume: str, **source: Any) -> bytes:
        return classes.key(pod(name, volumes=({"name": volume, **source},)))

    claim = {"persistentVolumeClaim": {"claimName": "c"}}
    assert using("p", "v", **claim) == using("q", "w", **claim)
    assert using("p", "v", ephemeral={}) != using("q", "v", ephemeral={})
    before = pod("p", volumes=({"name": "v", "ephemeral": {}},))
    assert classes.key(changed(before, uid="another")) != classes.key(before)


def test_the_order_in_which_labels_are_written_is_no_matter() -> None:
    """Manifests are mappings."""
    one, other = ({"a": "1", "b": "2"}, {"b": "2", "a": "1"})
    assert classes.key(changed(pod(), labels=one)) == classes.key(changed(pod(), labels=other))


def test_a_pod_is_read_once() -> None:
    """Asking again gives the same key; of very many pods the older ones are read again."""
    first = pod(requests={"cpu": "1"})
    key = classes.key(first)
    assert classes.key(first) is key
    for number in range(classes.MOST_PODS):
        classes.key(Pod(metadata=ObjectMeta(name=f"p{number}")))
    again = classes.key(first)
    assert again == key
    assert again is not key
