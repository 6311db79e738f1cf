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

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from slurm_bridge.cluster.rules import cpus, devices
from slurm_bridge.cluster.rules.devices import DeviceSight, NodeDevice
from slurm_bridge.model.devices import FINALIZER, DeviceConfiguration, DeviceId, ResourceClaim
from slurm_bridge.model.job import Cores, Gres, NodeShare
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime import json_decoder
from slurm_bridge.scheduler.placement.checks import Spot
from slurm_bridge.scheduler.placement.misfit import Misfit, unseen
from slurm_bridge.translate import class_resources, device_claims
from slurm_bridge.translate.class_resources import ClassClaim
from slurm_bridge.translate.device_claims import AskedDevices, ClaimKey, Option, PodClaim, Unrequestable, Wish

#: The reason on pods that hold nodes and wait for their devices.
WAITS: Final = "WaitsForDevices"
#: The reason why an allocation is given back.
FAILED: Final = "DeviceAllocationFailed"
#: So many are named in a message.
MOST_NAMED: Final = 3

#: `gpu:a100:2(IDX:0,3-5)`
_DEVICES: Final = re.compile(r"([^,()]+):([0-9]+)\(IDX:([0-9,-]+)\)")
_MOST_INDEX: Final = 4096


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Allocate:
    """A claim gets these devices, for these pods on this node."""

    claim: ResourceClaim
    pods: tuple[Pod, ...]
    node: str
    devices: tuple[tuple[AskedDevices, DeviceId], ...]
    configs: tuple[Manifest, ...] = ()

    @property
    def protection(self) -> Manifest | None:
        """What is written first, so that the claim stays while it has devices; None where it has been."""
        meta = self.claim.metadata
        if FINALIZER in meta.finalizers:
            return None
        return {"metadata": {"resourceVersion": meta.resource_version, "finalizers": [*meta.finalizers, FINALIZER]}}

    def changes(self, version: str) -> Manifest:
        """Of the status, in exactly this version of the claim."""
        found = [
            {"request": asked.request, "driver": one.driver, "pool": one.pool, "device": one.device}
            for asked, one in self.devices
        ]
        fields = [{"key": "metadata.name", "operator": "In", "values": [self.node]}]
        allocation: dict[str, Any] = {
            "devices": {"results": found, **({"config": list(self.configs)} if self.configs else {})},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
        }
        return {
            "metadata": {"resourceVersion": version},
            "status": {"allocation": allocation, "reservedFor": [_user(pod) for pod in self.pods]},
        }


def _user(pod: Pod) -> Manifest:
    return {"resource": "pods", "name": pod.metadata.name, "uid": pod.uid}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReserveClaim:
    """A claim that has its devices for other pods of the workload is also for these."""

    claim: ResourceClaim
    pods: tuple[Pod, ...]

    @property
    def changes(self) -> Manifest:
        """Of the status."""
        before = [
            {"resource": one.resource, "name": one.name, "uid": one.uid} for one in self.claim.status.reserved_for
        ]
        return {
            "metadata": {"resourceVersion": self.claim.metadata.resource_version},
            "status": {"reservedFor": [*before, *map(_user, self.pods)]},
        }


@dataclasses.dataclass(frozen=True, slots=True)
class TakeBack:
    """A claim whose pods have no node loses its devices."""

    claim: ResourceClaim

    @property
    def changes(self) -> Manifest:
        """Of the status."""
        version = self.claim.metadata.resource_version
        return {"metadata": {"resourceVersion": version}, "status": {"allocation": None, "reservedFor": None}}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MakeClaim:
    """The claim for the extended resources of a pod is made where it is `missing`, and the pod's status names it."""

    made: ClassClaim
    missing: bool

    @property
    def changes(self) -> Manifest:
        """Of the pod's status."""
        return {"status": {"extendedResourceClaimStatus": class_resources.written(self.made.status)}}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DropClaim:
    """A claim that was made for a pod's extended resources, and is not what the pod needs, is deleted."""

    pod: Pod
    claim: ResourceClaim | None

    @property
    def changes(self) -> Manifest:
        """Of the pod's status."""
        return {"status": {"extendedResourceClaimStatus": None}}


Write = Allocate | ReserveClaim | TakeBack | MakeClaim | DropClaim


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Holders:
    """Which claim has a device, or is about to get it; `left` says of a claim that nothing uses it any more.

    By uid: claims that are `busy` are being written; those that are `doubted` may have lost their devices. What was
    written into those that are `unknown`, these and others, no watch has told of yet.
    """

    of: Mapping[DeviceId, ResourceClaim]
    left: Callable[[ResourceClaim], bool]
    busy: frozenset[str] = frozenset()
    doubted: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DevicesFound:
    """What is to be written, what is waited for (by node), and other claims that have to change; or what is wrong.

    `soon`: some of it may pass without a change of a claim.
    """

    writes: tuple[Write, ...] = ()
    waiting: Mapping[str, str] = dataclasses.field(default_factory=dict)
    others: tuple[ClaimKey, ...] = ()
    soon: bool = False
    misfit: Misfit | None = None

    @property
    def message(self) -> str:
        """For the owner of the pods."""
        named = list(self.waiting)[:MOST_NAMED]
        more = f" and {len(self.waiting) - MOST_NAMED} more" if len(self.waiting) > MOST_NAMED else ""
        return f"waits for {', '.join(named)}{more}"


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
    view = _DeviceLook(sight, holders, asked, mates)
    for there in by_node.values():
        misfit = view.node(there, given.get(there[0].slurm_name))
        if misfit is not None:
            return DevicesFound(misfit=misfit)
    return DevicesFound(writes=tuple(view.writes), waiting=view.waiting, others=tuple(view.others), soon=view.soon)


@dataclasses.dataclass(frozen=True, slots=True)
class _ClaimUse:
    """A claim, and the pods without a node that use it: several only where these are of one gang."""

    claim: PodClaim
    spots: list[Spot]

    @property
    def node(self) -> str:
        """The same for all of them."""
        return self.spots[0].node.name

    @property
    def uids(self) -> frozenset[str]:
        """Of the pods."""
        return frozenset(spot.pod.uid for spot in self.spots)


@dataclasses.dataclass(frozen=True, slots=True)
class _Need:
    """One request of one claim."""

    use: _ClaimUse
    asked: AskedDevices


class _DeviceLook:
    """The claims of one allocation, node by node."""

    def __init__(
        self, sight: DeviceSight, holders: Holders, asked: Mapping[str, tuple[Gres, ...]], mates: Collection[str]
    ) -> None:
        # Equal pods ask the same of the same devices, and others wait meanwhile.
        self._sight, self._holders, self._asked, self._mates = sight.once(), holders, asked, mates
        self._lacks: dict[tuple[Wish, str], str] = {}
        self.writes: list[Write] = []
        #: What is waited for in words, and the node.
        self.waiting: dict[str, str] = {}
        self.others: list[ClaimKey] = []
        self.soon = False

    def node(self, spots: Sequence[Spot], share: NodeShare | None) -> Misfit | None:
        """All pods that come on one node share what the job has there."""
        node, given = spots[0].node.name, given_by(share)
        kept: set[DeviceId] = set()
        needs: list[_Need] = []
        uses: dict[ClaimKey, _ClaimUse] = {}

        def types(asked: AskedDevices, _claim: ResourceClaim) -> Sequence[str]:
            return sorted(self._sight.types(asked, self._sight.on(node)))

        for spot in spots:
            found = self._sight.options(spot.pod, types)
            if isinstance(found, Unrequestable):
                return Misfit(reason=FAILED, message=found.message)
            chosen = self._chosen(spot, found)
            self._old(spot, chosen)
            for one in chosen:
                if one.made is None or self._stands(one.claim, one.made, spot):
                    uses.setdefault(one.claim.key, _ClaimUse(one, [])).spots.append(spot)
        for use in uses.values():
            if self._busy(use.claim.claim, node) or any(self._unknown(asked, node) for asked in use.claim.asked):
                continue
            if use.claim.claim.status.allocation is None:
                needs += [_Need(use, asked) for asked in use.claim.asked]
            elif self._settled(use, given, kept):
                kept.update(use.claim.claim.held)
        # What has to change first decides what is left for the others.
        ready = node not in self.waiting.values()
        return self._serve(node, needs, given, kept) if needs and ready else None

    def _chosen(self, spot: Spot, found: Sequence[Option]) -> Option:
        """Of the alternatives that Slurm was asked for, those that the claims have, else the first of the node."""
        same = device_claims.meant(found, self._asked.get(spot.pod.uid))
        if len(same) == 1:
            return same[0]
        kept = [one for one in same if all(each.claim.status.allocation is None or each.served for each in one)] or same
        return next((one for one in kept if not self._lacking(device_claims.wish(one), spot.node.name)), kept[0])

    def _lacking(self, wish: Wish, node: str) -> str:
        if (wish, node) not in self._lacks:
            self._lacks[wish, node] = self._sight.judged(wish, node)[0]
        return self._lacks[wish, node]

    def _stands(self, claim: ResourceClaim, made: ClassClaim, spot: Spot) -> bool:
        """Whether the claim for its extended resources is as it has to be."""
        called, node = f"ResourceClaim {'/'.join(claim.key)}", spot.node.name
        if claim.metadata.deletion_timestamp is not None:
            if claim.status.allocation is not None and not self._busy(claim, node):
                self._take_back(claim, _ClaimUse(PodClaim(claim=claim, asked=()), [spot]))
            self.waiting[f"{called} to be deleted"] = node
        elif claim.uid and not made.is_as_made(claim):
            self._drop(claim, spot)
        elif not claim.uid or spot.pod.status.extended_resource_claim_status != made.status:
            self.writes.append(MakeClaim(made=made, missing=not claim.uid))
            self.waiting[f"{called}, which is made for the pod's extended resources"] = node
        else:
            return True
        return False

    def _old(self, spot: Spot, chosen: Option) -> None:
        """A pod that needs no such claim any more must not name one: its kubelet would wait for it."""
        named, key = spot.pod.status.extended_resource_claim_status, spot.pod.metadata.namespace
        if named is not None and all(one.made is None for one in chosen):
            claim = self._sight.claim(key, named.resource_claim_name)
            ours = claim is not None and class_resources.of_the_bridge(spot.pod, claim)
            self._drop(claim if ours else None, spot)

    def _drop(self, claim: ResourceClaim | None, spot: Spot) -> None:
        node = spot.node.name
        if claim is not None and claim.status.allocation is not None:
            if not self._busy(claim, node):
                self._take_back(claim, _ClaimUse(PodClaim(claim=claim, asked=()), [spot]))
            return
        # A lost answer may have given it devices: a deleted claim with devices would stay, and hold up the pod.
        if claim is not None and self._written(claim, node, self._holders.unknown):
            return
        self.writes.append(DropClaim(pod=spot.pod, claim=claim))
        self.waiting[f"pod {'/'.join(spot.pod.key)} to lose a ResourceClaim that it does not need"] = node

    def _busy(self, claim: ResourceClaim, node: str) -> bool:
        """What is being written is not looked at: it may be out of date already."""
        return self._written(claim, node, self._holders.busy)

    def _written(self, claim: ResourceClaim, node: str, uids: Collection[str]) -> bool:
        if claim.uid not in uids:
            return False
        self.waiting[f"ResourceClaim {'/'.join(claim.key)}, which is being written"] = node
        self.soon = True
        return True

    def _unknown(self, asked: AskedDevices, node: str) -> bool:
        """A driver that is started anew publishes its devices again: what is unknown is not gone."""
        row = asked.row
        if self._sight.device_class(row.device_class) is None:
            self.waiting[f"DeviceClass {row.device_class}"] = node
            return True
        if not any(one.id.driver == row.driver for one in self._sight.on(node)):
            self.waiting[f"driver {row.driver} to publish its devices of node {node}"] = node
            return True
        return False

    def _settled(self, use: _ClaimUse, given: "JobDevices", kept: Collection[DeviceId]) -> bool:
        """Whether a claim with devices has those that it would get now; `kept` are those of other claims of the job."""
        claim = use.claim.claim
        users = {user.uid for user in claim.status.reserved_for}
        # Kubernetes' controller adds pods that have ended now and then, and takes them out again.
        doubted = claim.uid in self._holders.doubted
        if not doubted and self._right(use, given) and not any(device in kept for device in claim.held):
            if use.uids <= users:
                return True
            if users.intersection(self._mates) and users <= use.uids.union(self._mates):
                late = tuple(spot.pod for spot in use.spots if spot.pod.uid not in users)
                self.writes.append(ReserveClaim(claim=claim, pods=late))
                self.waiting[f"ResourceClaim {'/'.join(claim.key)} to be there for all its pods"] = use.node
                return False
        self.soon = self.soon or doubted
        self._take_back(claim, use)
        return False

    def _take_back(self, claim: ResourceClaim, use: _ClaimUse) -> None:
        """Its pod has no node: they are of an earlier allocation. What it gets instead is looked at afterwards."""
        called = f"ResourceClaim {'/'.join(claim.key)}"
        users = {user.uid for user in claim.status.reserved_for}
        if users and users <= use.uids:
            self.writes.append(TakeBack(claim))
            self.waiting[f"{called} to give back devices of an earlier allocation"] = use.node
        else:
            self.waiting[f"{called}, which has devices for others"] = use.node
            self.others.append(claim.key)

    def _right(self, use: _ClaimUse, given: "JobDevices") -> bool:
        """Whether it has what it would get now."""
        one = use.claim
        allocation = one.claim.status.allocation
        results = allocation.devices.results if allocation is not None else ()
        there = {device.id: device for device in self._sight.on(use.node)}
        for asked in one.asked:
            found = [result.id for result in results if result.request == asked.request]
            allowed = self._allowed(use.node, asked, given)
            if isinstance(allowed, str) or (allowed is None and not asked.row.chosen):
                return False
            if len(found) != asked.count or not all(
                device in there and (allowed is None or there[device].index(asked.row) in allowed) for device in found
            ):
                return False
        return sum(asked.count for asked in one.asked) == len(results)

    def _serve(
        self, node: str, needs: Sequence[_Need], given: "JobDevices", kept: Collection[DeviceId]
    ) -> Misfit | None:
        """A device for each need: of those that nothing has, else of those that something has still."""
        choices: list[tuple[NodeDevice, ...]] = []
        each: list[_Need] = []
        for need in needs:
            found = self._candidates(node, need.asked, given)
            if isinstance(found, Misfit):
                return found
            # A device more than there are is enough to know that there are too few.
            count = min(need.asked.count, len(found) + 1)
            choices += [tuple(one for one in found if one.id not in kept)] * count
            each += [need] * count
        free = devices.assigned(
            [[one.id for one in found if self._free(one.id, need)] for need, found in zip(each, choices, strict=True)]
        )
        if free is not None:
            self._allocate(each, free)
            return None
        wanted = devices.assigned([[one.id for one in found] for found in choices])
        if wanted is None:
            first = needs[0].use.claim.claim
            text = (
                f"node {node} has no devices for ResourceClaim {'/'.join(first.key)} among those that Slurm allocated "
                f"there ({given.text or 'no index'})"
            )
            return _failed(text, node)
        taken = [device for need, device in zip(each, wanted, strict=True) if not self._free(device, need)]
        # What another claim of this job may have by a lost answer, the watch does not tell if it was never written.
        own = {need.use.claim.claim.key for need in needs}
        self.soon = self.soon or any(self._holders.of[device].key in own for device in taken)
        self._wait_for(node, taken)
        return None

    def _free(self, device: DeviceId, need: _Need) -> bool:
        """No claim has it, but that of the need: what another one may have, it may have got by a lost answer."""
        holder = self._holders.of.get(device)
        return holder is None or holder.key == need.use.claim.claim.key

    def _candidates(self, node: str, asked: AskedDevices, given: "JobDevices") -> tuple[NodeDevice, ...] | Misfit:
        allowed, row = self._allowed(node, asked, given), asked.row
        if isinstance(allowed, str):
            return _failed(f"node {node}: {allowed}", node)
        found = self._sight.fitting(asked, self._sight.on(node))
        if allowed is None and not row.chosen:
            text = f"Slurm gave no indices of gres {row.gres.name} on node {node}, and DeviceClass {row.device_class} "
            return _failed(f"{text}needs them (without_index: refuse)", node)
        return found if allowed is None else tuple(one for one in found if one.index(row) in allowed)

    def _allowed(self, node: str, asked: AskedDevices, given: "JobDevices") -> frozenset[int] | str | None:
        """By index; None where Slurm gives no indices, in words where it cannot be told which CPUs it gives."""
        return cpus.given(given.cores, asked.row, self._sight.on(node)) if asked.row.cpus else given.of(asked)

    def _allocate(self, needs: Sequence[_Need], found: Sequence[DeviceId]) -> None:
        by_claim: dict[ClaimKey, list[tuple[_Need, DeviceId]]] = {}
        for need, device in zip(needs, found, strict=True):
            by_claim.setdefault(need.use.claim.claim.key, []).append((need, device))
        for key, pairs in by_claim.items():
            use = pairs[0][0].use
            self.writes.append(
                Allocate(
                    claim=use.claim.claim,
                    pods=tuple(spot.pod for spot in use.spots),
                    node=use.node,
                    devices=tuple((each.asked, device) for each, device in pairs),
                    configs=tuple(self._configs(use.claim)),
                )
            )
            self.waiting[f"ResourceClaim {'/'.join(key)} to get its devices"] = use.node

    def _configs(self, one: PodClaim) -> Iterable[Manifest]:
        """Parameters for the drivers, of the classes and of the claim, as kube-scheduler hands them on."""
        for asked in one.asked:
            found = self._sight.device_class(asked.row.device_class)
            for config in found.spec.config if found is not None else ():
                if (opaque := parameters(config)) is not None:
                    yield {"source": "FromClass", "requests": [asked.request], "opaque": opaque}
        names = {name for asked in one.asked for name in (asked.request, asked.base)}
        for config in one.claim.spec.devices.config:
            wanted = not config.requests or names.intersection(config.requests)
            if wanted and (opaque := parameters(config)) is not None:
                requests = {"requests": list(config.requests)} if config.requests else {}
                yield {"source": "FromClaim", **requests, "opaque": opaque}

    def _wait_for(self, node: str, taken: Iterable[DeviceId]) -> None:
        holding = {self._holders.of[device].key: (self._holders.of[device], device) for device in taken}
        for key, (claim, device) in holding.items():
            self.waiting[f"device {device} of node {node}, which ResourceClaim {'/'.join(key)} still has"] = node
            self.others.append(key)
            if not self._busy(claim, node) and self._holders.left(claim):
                self.writes.append(TakeBack(claim))


def parameters(config: DeviceConfiguration) -> Any:
    """What a driver is handed; None where there is nothing."""
    return json_decoder.decoder(object).decode(config.opaque) if config.size else None


@dataclasses.dataclass(frozen=True, slots=True)
class JobDevices:
    """The indices that a job has on one node, by name and type, in lower case, and its cores; `text` is in words."""

    text: str
    rows: tuple[tuple[Gres, frozenset[int]], ...]
    cores: Cores | None = None

    def of(self, asked: AskedDevices) -> frozenset[int] | None:
        """Those that a request may use; None where Slurm gives none, or the devices have none."""
        wanted = asked.row.gres
        found = [
            numbers
            for gres, numbers in self.rows
            if gres.name == wanted.name.lower() and wanted.type.lower() in ("", gres.type)
        ]
        return frozenset[int]().union(*found) if found and asked.row.index else None


def given_by(share: NodeShare | None) -> JobDevices:
    """What a job has of one node."""
    if share is None:
        return indices("")
    devices = indices(share.devices)
    cores = f"cores {share.cores.bits:#x}" if share.cores is not None else ""
    return dataclasses.replace(devices, text=", ".join(filter(None, (devices.text, cores))), cores=share.cores)


def indices(text: str) -> JobDevices:
    """What `gpu:a100:2(IDX:0-1),nic:1(IDX:0)` says."""
    rows = []
    for head, count, numbers in _DEVICES.findall(text):
        name, _, kind = head.strip().lower().partition(":")
        rows.append((Gres(name=name, type=kind, count=int(count)), frozenset(_numbers(numbers))))
    return JobDevices(text, tuple(rows))


def _numbers(text: str) -> Iterable[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            yield from range(int(first), min(int(last or first), int(first) + _MOST_INDEX) + 1)


def _failed(text: str, node: str) -> Misfit:
    return unseen(FAILED, text, (node,))
