"""The claims that the bridge makes for extended resources of pods: made, named by the pod's status, and deleted."""

from slurm_bridge.model.devices import ResourceClaim
from slurm_bridge.scheduler.placement import claim_state
from slurm_bridge.scheduler.placement.checks import Spot
from slurm_bridge.scheduler.placement.claim_writes import DropClaim, MakeClaim
from slurm_bridge.scheduler.placement.node_claims import (
    NOTHING,
    DevicesFound,
    NodeClaims,
    being_written,
    called,
    joined,
    waits,
)
from slurm_bridge.translate import class_resources
from slurm_bridge.translate.device_claims import Option, PodClaim


def missing(there: NodeClaims, one: PodClaim, spot: Spot) -> DevicesFound:
    """What has to happen until such a claim is as it has to be; other claims are."""
    claim, made = one.claim, one.made
    if made is None:
        return NOTHING
    if claim.metadata.deletion_timestamp is not None:
        freed = _freed(there, claim, spot) if claim.status.allocation is not None else NOTHING
        return joined([freed, waits(there, f"{called(claim)} to be deleted")])
    if claim.uid and not made.is_as_made(claim):
        return _dropped(there, claim, spot)
    if not claim.uid or spot.pod.status.extended_resource_claim_status != made.status:
        write = MakeClaim(made=made, missing=not claim.uid)
        return waits(there, f"{called(claim)}, which is made for the pod's extended resources", write)
    return NOTHING


def superfluous(there: NodeClaims, spot: Spot, chosen: Option) -> DevicesFound:
    """A pod that needs no such claim any more must not name one: its kubelet would wait for it."""
    named = spot.pod.status.extended_resource_claim_status
    if named is None or any(one.made is not None for one in chosen):
        return NOTHING
    claim = there.sight.claim(spot.pod.metadata.namespace, named.resource_claim_name)
    ours = claim is not None and class_resources.of_the_bridge(spot.pod, claim)
    return _dropped(there, claim if ours else None, spot)


def _dropped(there: NodeClaims, claim: ResourceClaim | None, spot: Spot) -> DevicesFound:
    if claim is not None and claim.status.allocation is not None:
        return _freed(there, claim, spot)
    # A lost answer may have given it devices. The deletion decides: if so, the version that was looked at is not the
    # last one, and it is refused; if not, no write that is still on its way meets this version any more.
    written = being_written(there, claim) if claim is not None else NOTHING
    if written.waiting:
        return written
    words = f"pod {'/'.join(spot.pod.key)} to lose a ResourceClaim that it does not need"
    return waits(there, words, DropClaim(pod=spot.pod, claim=claim))


def _freed(there: NodeClaims, claim: ResourceClaim, spot: Spot) -> DevicesFound:
    written = being_written(there, claim)
    return written if written.waiting else claim_state.taken_back(there, claim, {spot.pod.uid})
