"""What ResourceClaims get of the devices that Slurm has allocated, before their pods are bound. Pure.

    the claim                                               what follows
    ──────────────────────────────────────────────────────  ─────────────────────────────────────────────────────────
    is gone, is being deleted, cannot be asked for          the nodes are given back
    is being written, or taken back, at this moment         wait
    has devices of this allocation, for its pod             nothing
    has them for other pods of its gang only                it is shared with this pod
    has others, for its pod that has no node: an earlier    they are taken back, then as below
    job's, or a changed one's
    has devices for other pods, or for none                 wait
    has none                                                those of the allocation, by their indices

    the claim for extended resources                        what follows
    ──────────────────────────────────────────────────────  ─────────────────────────────────────────────────────────
    is not made, or not named by the pod's status           it is made, and named; then as above
    is not what the pod needs, or not needed any more       it loses its devices, then it is deleted
    is being deleted                                        it loses its devices, then it is made anew
    was not made by the bridge, but the status names it     it stays, and the status names none any more

    the devices of the allocation                           what follows
    ──────────────────────────────────────────────────────  ─────────────────────────────────────────────────────────
    Slurm gives indices, and a device with each is there    the claims get just these; of CPUs those of its cores
    Slurm gives none, and the table says `choose`           any that no other claim has
    Slurm gives none otherwise, or a device is missing      the nodes are given back, and the node is avoided
    the driver publishes none there now                     wait
    another claim still has one of them                     wait: its pod is on its way out
    another claim of the job has, or may have, it           that one keeps it, this one gets another one, or waits
    that claim's pods have no node and no job that runs     it is taken back, for Slurm has given the device away

No claim is written over: what it has is taken back first, with the version that was looked at as a precondition. No
pod is bound before all claims of its gang have their devices.
"""

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from slurm_bridge.cluster.rules.devices import DeviceSight
from slurm_bridge.model.devices import DeviceId, ResourceClaim
from slurm_bridge.model.job import Gres, NodeShare
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler.placement import claim_state, device_choice, job_devices, made_claims
from slurm_bridge.scheduler.placement.checks import Spot
from slurm_bridge.scheduler.placement.misfit import Misfit
from slurm_bridge.scheduler.placement.node_claims import (
    FAILED,
    ClaimNeed,
    ClaimUse,
    DevicesFound,
    Holders,
    NodeClaims,
    Units,
    joined,
)
from slurm_bridge.translate.device_claims import AskedDevices, ClaimKey, Option, Unrequestable, Wish

#: The reason on pods that hold nodes and wait for their devices.
WAITS: Final = "WaitsForDevices"


def claims(pod: Pod, sight: DeviceSight | None) -> bool:
    """Whether a pod has claims, gets one, or names one in its status; of a hook that is gone none is asked."""
    asks = bool(pod.spec.resource_claims) if sight is None else sight.asks(pod)
    return asks or pod.status.extended_resource_claim_status is not None


def look(
    spots: Sequence[Spot],
    given: Mapping[str, NodeShare],
    asked: Mapping[str, tuple[Gres, ...]],
    sight: DeviceSight,
    holders: Holders,
    mates: Collection[str] = (),
) -> DevicesFound:
    """By the tables above.

    `given` is what the job has of each node, by Slurm's name; `asked` is what Slurm was asked for each pod, by uid.
    `mates` are the uids of all pods of the workload, also of those that have a node.
    """
    by_node: dict[str, list[Spot]] = {}
    for spot in spots:
        if claims(spot.pod, sight):
            by_node.setdefault(spot.node.name, []).append(spot)
    # Equal pods ask the same of the same devices, and others wait meanwhile.
    once = sight.once()

    def on(node: str, there: Sequence[Spot]) -> NodeClaims:
        @functools.cache
        def lacking(wish: Wish) -> str:
            return once.judged(wish, node)[0]

        has = job_devices.given_by(given.get(there[0].slurm_name))
        return NodeClaims(
            node=node,
            sight=once,
            holders=holders,
            given=has,
            asked=asked,
            units=Units(sight.all_on(node)),
            mates=mates,
            lacking=lacking,
        )

    return joined(_until_wrong(_on_node(on(node, there), there) for node, there in by_node.items()))


def _until_wrong(found: Iterator[DevicesFound]) -> Iterator[DevicesFound]:
    """What is wrong with one node is enough: others are not looked at."""
    for one in found:
        yield one
        if one.misfit is not None:
            return


def _on_node(there: NodeClaims, spots: Sequence[Spot]) -> DevicesFound:
    """All pods that come on one node share what the job has there."""
    found: list[DevicesFound] = []
    uses: dict[ClaimKey, ClaimUse] = {}
    for spot in spots:
        options = _options(there, spot)
        if isinstance(options, Unrequestable):
            return DevicesFound(misfit=Misfit(reason=FAILED, message=options.message))
        option = claim_state.chosen(there, spot, options)
        found.append(made_claims.superfluous(there, spot, option))
        for one in option:
            first = made_claims.missing(there, one, spot)
            found.append(first)
            if not first.waiting:
                uses.setdefault(one.claim.key, ClaimUse(one, [])).spots.append(spot)
    kept: set[DeviceId] = set()
    needs: list[ClaimNeed] = []
    for use in uses.values():
        first = claim_state.unsettled(there, use, kept)
        found.append(first)
        if first.waiting:
            continue
        if use.claim.claim.status.allocation is None:
            needs += [ClaimNeed(use, asked) for asked in use.claim.asked]
        else:
            kept.update(use.claim.claim.held)
    # What has to change first decides what is left for the others.
    if needs and not any(one.waiting for one in found):
        found.append(device_choice.serve(there, needs, kept))
    return joined(found)


def _options(there: NodeClaims, spot: Spot) -> tuple[Option, ...] | Unrequestable:
    def forms(asked: AskedDevices, _claim: ResourceClaim) -> Sequence[AskedDevices]:
        return there.sight.forms(asked, there.node)

    return there.sight.options(spot.pod, forms)
