from slurm_bridge.explain.cluster_view import ListedObjects
from slurm_bridge.model import kinds
from slurm_bridge.model.devices import (
    BY_DEVICE,
    AllocatedDevice,
    AllocatedDevices,
    ClaimAllocation,
    ResourceClaim,
    ResourceClaimStatus,
)
from slurm_bridge.model.meta import Object, ObjectMeta


def test_a_list_is_a_view_that_never_changes() -> None:
    """Hooks find its objects by name, or all of them, at one version."""
    one = Object(metadata=ObjectMeta(namespace="ns", name="a", uid="u"))
    view = ListedObjects(kinds.PODS, [one])
    assert (view.get("ns", "a"), view.get("ns", "b")) == (one, None)
    assert (tuple(view.all()), len(view)) == ((one,), 1)
    assert view.version == ListedObjects(kinds.PODS, []).version


def test_claims_are_found_by_their_devices() -> None:
    """As in a store that follows changes."""
    held = AllocatedDevice(request="gpu", driver="d", pool="n1", device="gpu-0")
    status = ResourceClaimStatus(allocation=ClaimAllocation(devices=AllocatedDevices(results=(held,))))
    one = ResourceClaim(metadata=ObjectMeta(namespace="ns", name="a", uid="u"), status=status)
    view = ListedObjects(kinds.RESOURCECLAIMS, [one])
    assert (view.where(BY_DEVICE, "d/n1/gpu-0"), view.where(BY_DEVICE, "d/n1/gpu-1")) == ((one,), ())
