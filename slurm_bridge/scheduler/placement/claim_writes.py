"""What is written of ResourceClaims, and of the pods that have them, between an allocation and the binding."""

import dataclasses
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from slurm_bridge.cluster.rules.devices import DeviceSight
from slurm_bridge.model import devices
from slurm_bridge.model.devices import FINALIZER, DeviceConfiguration, DeviceId, ResourceClaim
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime import json_decoder
from slurm_bridge.translate import class_resources, device_claims
from slurm_bridge.translate.class_resources import ClassClaim
from slurm_bridge.translate.device_claims import AskedDevices, PodClaim


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
        fields = [{"key": "metadata.name", "operator": "In", "values": [self.node]}]
        given: dict[AskedDevices, list[DeviceId]] = {}
        for asked, device in self.devices:
            given.setdefault(asked, []).append(device)
        results = [result for asked, found in given.items() for result in _results(self.claim, asked, found)]
        cpus = [_cpus(asked, found) for asked, found in given.items() if asked.row.capacity]
        configs = [*self.configs, *cpus]
        allocation: dict[str, Any] = {
            "devices": {"results": results, **({"config": configs} if configs else {})},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
        }
        return {
            "metadata": {"resourceVersion": version},
            "status": {"allocation": allocation, "reservedFor": [_user(pod) for pod in self.pods]},
        }


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


#: Writes of the status of a claim, of which the record of such writes is told.
StatusWrite = Allocate | ReserveClaim | TakeBack
Write = StatusWrite | MakeClaim | DropClaim


def configs(one: PodClaim, sight: DeviceSight) -> Iterable[Manifest]:
    """Parameters for the drivers, of the classes and of the claim, as kube-scheduler hands them on.

    The driver of a group of CPUs is told which ones, and by the bridge alone.
    """
    told = device_claims.drivers_of_groups(sight.rows)
    for asked in one.asked:
        found = sight.device_class(asked.row.device_class)
        for config in found.spec.config if found is not None else ():
            if config.driver not in told and (opaque := parameters(config)) is not None:
                yield {"source": "FromClass", "requests": [asked.request], "opaque": opaque}
    names = {name for asked in one.asked for name in (asked.request, asked.base)}
    for config in one.claim.spec.devices.config:
        wanted = not config.requests or names.intersection(config.requests)
        if wanted and config.driver not in told and (opaque := parameters(config)) is not None:
            requests = {"requests": list(config.requests)} if config.requests else {}
            yield {"source": "FromClaim", **requests, "opaque": opaque}


def parameters(config: DeviceConfiguration) -> Any:
    """What a driver is handed; None where there is nothing that can be read."""
    try:
        return json_decoder.decoder(object).decode(config.opaque) if config.size else None
    except (msgspec.DecodeError, RecursionError):
        return None


def _results(claim: ResourceClaim, asked: AskedDevices, found: Sequence[DeviceId]) -> Iterable[Manifest]:
    """Each device; of a group of CPUs its part, which has an id of its own that is the same at every try."""
    if asked.row.capacity:
        group = devices.group_of(found[0])
        share = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{claim.uid}/{asked.request}"))
        consumed = {asked.row.capacity: str(len(found))}
        yield {**_result(asked, group), "shareID": share, "consumedCapacity": consumed}
    else:
        yield from (_result(asked, one) for one in found)


def _result(asked: AskedDevices, one: DeviceId) -> Manifest:
    return {"request": asked.request, "driver": one.driver, "pool": one.pool, "device": one.device}


def _cpus(asked: AskedDevices, found: Sequence[DeviceId]) -> Manifest:
    """The driver of a group prepares just these of its CPUs."""
    numbers = [int(one.device.rpartition("/")[2]) for one in found]
    opaque = devices.cpu_parameters(asked.row.driver, numbers)
    return {"source": "FromClaim", "requests": [asked.request], "opaque": opaque}


def _user(pod: Pod) -> Manifest:
    return {"resource": "pods", "name": pod.metadata.name, "uid": pod.uid}
