"""Which class stands behind an extended resource."""

import msgspec
import pytest

from slurm_bridge.families.device_claims.resource_classes import ResourceClasses
from slurm_bridge.model.devices import DeviceClass
from slurm_bridge.model.job import Gres
from slurm_bridge.translate.device_claims import DeviceRow
from tests.unit.hooks.builders import cluster, node

GPU = "example.com/gpu"


def device_class(name: str, created: str, resource: str | None = GPU) -> DeviceClass:
    """As the API server answers."""
    written = {
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"extendedResourceName": resource} if resource else {},
    }
    return msgspec.json.decode(msgspec.json.encode(written), type=DeviceClass)


OLD, NEW, SAME = (
    device_class(name, f"2026-0{month}-01T00:00:00Z") for name, month in (("old", 1), ("new", 2), ("mew", 2))
)


def found(*classes: DeviceClass, plugged: str = "0") -> ResourceClasses:
    """On a cluster whose kubelets count so many."""
    return ResourceClasses.of(classes, cluster([node("n1", allocatable={"cpu": "8", GPU: plugged})]))


def test_the_newest_class_counts_then_the_first_by_name() -> None:
    """As for kube-scheduler, in whatever order they are told."""
    for classes in ((OLD, NEW, SAME), (SAME, NEW, OLD)):
        assert found(*classes).behind(GPU) == "mew"
    assert found(OLD, NEW).behind(GPU) == "new"


def test_every_class_has_a_resource_of_its_own_name() -> None:
    """Also one that names no other."""
    nothing = found(device_class("plain", "2026-01-01T00:00:00Z", None))
    assert nothing.behind("deviceclass.resource.kubernetes.io/plain") == "plain"
    assert nothing.behind(GPU) == ""


@pytest.mark.parametrize(("plugged", "behind"), [("0", "old"), ("1", "")])
def test_a_resource_that_a_kubelet_has_devices_of_is_the_plugins(plugged: str, behind: str) -> None:
    """One that has lost them all has none to give."""
    assert found(OLD, plugged=plugged).behind(GPU) == behind


def test_only_classes_of_the_table_have_a_gres() -> None:
    """By both of their names."""
    row = DeviceRow(device_class="old", driver="gpu", gres=Gres(name="gpu", count=1), index="index")
    assert found(OLD).rows({"old": row}) == {GPU: row, "deviceclass.resource.kubernetes.io/old": row}
    assert found(OLD).rows({"other": row}) == {"deviceclass.resource.kubernetes.io/other": row}
