"""A pod waits for its claims, and goes where their volumes are."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.rules import volumes
from slurm_bridge.model.meta import Object, ObjectMeta, OwnerReference
from slurm_bridge.model.storage import Claim, StorageClass, Volume
from slurm_bridge.model.verdict import Wait
from tests.unit.hooks.builders import cluster, node, pod

USES_DATA = ({"name": "v", "persistentVolumeClaim": {"claimName": "data"}},)


def read(kind: type[Any], **manifest: Any) -> Any:
    """An object as Kubernetes would send it."""
    return msgspec.convert({"metadata": {"name": "x", "namespace": "team"}, **manifest}, kind)


def claim(phase: str = "Bound", volume: str = "pv", storage_class: str | None = "fast") -> Claim:
    """A claim named data."""
    found: Claim = read(Claim, spec={"volumeName": volume, "storageClassName": storage_class}, status={"phase": phase})
    return msgspec.structs.replace(found, metadata=ObjectMeta(name="data", namespace="team"))


def local(zone: str) -> Volume:
    """A volume that one zone reaches."""
    row = {"key": "zone", "operator": "In", "values": [zone]}
    found: Volume = read(
        Volume, spec={"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [row]}]}}}
    )
    return found


def fast(mode: str) -> StorageClass:
    """The class of the claim."""
    return read(StorageClass, metadata={"name": "fast"}, volumeBindingMode=mode)


def storage(objects: Mapping[str, Object]) -> volumes.Storage:
    """What the cluster has, by the name that is asked for."""
    return volumes.Storage(
        claim=lambda namespace, name: objects.get(f"{namespace}/{name}"),
        volume=objects.get,
        storage_class=objects.get,
    )


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ({}, "PersistentVolumeClaim team/data does not exist"),
        ({"team/data": claim(phase="Pending", storage_class=None)}, "team/data is not bound (it is Pending)"),
        ({"team/data": claim(phase="Lost")}, "team/data is not bound (it is Lost)"),
        ({"team/data": claim(phase="Pending"), "fast": fast("Immediate")}, "team/data is not bound (it is Pending)"),
        (
            {"team/data": claim(phase="Pending", volume="")},
            "team/data is not bound, and its StorageClass fast does not exist",
        ),
        ({"team/data": claim()}, "bound to volume pv, which does not exist"),
    ],
)
def test_a_claim_that_cannot_be_used_yet(objects: Mapping[str, Object], said: str) -> None:
    """The message names the claim and what it lacks."""
    found = volumes.bound(pod(volumes=USES_DATA), storage(objects))
    assert isinstance(found, Wait)
    assert said in found.message


def test_t14_a_claim_that_waits_for_its_first_consumer_keeps_no_pod_from_a_job() -> None:
    """It has no volume that narrows the nodes; a hook has to honour it, and says on which nodes it could get one."""
    objects = {"team/data": claim(phase="Pending", volume=""), "fast": fast("WaitForFirstConsumer")}
    assert volumes.bound(pod(volumes=USES_DATA), storage(objects)) == ()


def test_a_claim_on_its_way_out() -> None:
    """A claim that is being deleted is as good as gone."""
    metadata = ObjectMeta(name="data", namespace="team", deletion_timestamp="2026-01-01T00:00:00Z")
    going = msgspec.structs.replace(claim(), metadata=metadata)
    found = volumes.bound(pod(volumes=USES_DATA), storage({"team/data": going}))
    assert isinstance(found, Wait)
    assert "is being deleted" in found.message


def test_t14_a_bound_volume_says_from_where_it_can_be_used() -> None:
    """The volume's own node affinity is a node selector."""
    found = volumes.bound(pod(volumes=USES_DATA), storage({"team/data": claim(), "pv": local("a")}))
    assert not isinstance(found, Wait)
    columns = cluster([node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"})]).columns
    assert selection.reaching(columns, found[0]).tolist() == [True, False]


def test_a_volume_without_affinity_is_everywhere() -> None:
    """Network storage has none."""
    assert selection.reaching(cluster([node("n")]).columns, read(Volume)).tolist() == [True]


def test_a_claim_that_merely_has_the_name_of_a_pods_own_is_not_used() -> None:
    """The owner that controls it has to be this very pod, and not an earlier one of the name."""
    user = pod("train", volumes=({"name": "data", "ephemeral": {}},))
    for uid, controls, is_its_own in (
        ("uid-train", True, True),
        ("uid-train", None, False),
        ("uid-before", True, False),
        ("", True, False),
    ):
        owners = (OwnerReference(api_version="v1", kind="Pod", name="train", uid=uid, controller=controls),)
        metadata = ObjectMeta(name="train-data", namespace="team", owner_references=owners if uid else ())
        objects = {"team/train-data": msgspec.structs.replace(claim(), metadata=metadata), "pv": local("a")}
        found = volumes.bound(user, storage(objects))
        assert isinstance(found, Wait) is not is_its_own
        if isinstance(found, Wait):
            assert found.reason == "VolumeNotReady"
            assert "PersistentVolumeClaim team/train-data was not created for pod team/train" in found.message


def test_claims_of_a_pod() -> None:
    """Claims by name, and those that are made for the pod; other volumes are no claims."""
    used = (
        *USES_DATA,
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "token", "projected": {}},
        {"name": "config", "configMap": {"name": "c"}},
    )
    assert tuple(volumes.claims(pod("train", volumes=used))) == ("data", "train-scratch")
