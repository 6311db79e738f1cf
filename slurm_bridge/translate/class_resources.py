"""Extended resources of DeviceClasses: the claim that a pod with them gets, as kube-scheduler makes it.

The claim has a request for each container and resource. Containers that end before others begin use the devices of
these, and of what they need beside it the largest is enough for all. The pod's status says which request is whose.
"""

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from slurm_bridge.model import quantity
from slurm_bridge.model.devices import DeviceRequest, ExactRequest, ResourceClaim
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Container, ExtendedClaimStatus, Pod, RequestMapping

#: Resources of this domain are devices of the class that follows.
DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"
#: Names of this domain are Kubernetes' own, and no class of devices may take them.
_NATIVE: Final = "kubernetes.io/"

#: On claims that were made so.
ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"

#: So many of them are looked at: each is a device at least, and a claim has no more devices.
MOST_RESOURCES: Final = 32

#: Of the pod's name, in the name of its claim.
_LONGEST: Final = 200

#: The DeviceClass behind a resource; "" where there is none, or where nodes have the resource by a device plugin.
ClassOf = Callable[[str], str]


def no_class(_resource: str) -> str:
    """No class stands behind any resource."""
    return ""


def may_be_of_a_class(resource: str) -> bool:
    """Whether a DeviceClass may stand behind this resource."""
    return "/" in resource and (resource.startswith(DEVICE_CLASS) or _NATIVE not in resource)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClassClaim:
    """The claim for all such resources of a pod; `requests` are in the order of their names."""

    pod: Pod
    name: str
    requests: tuple[DeviceRequest, ...]
    mappings: tuple[RequestMapping, ...]

    @property
    def status(self) -> ExtendedClaimStatus:
        """What the pod's status says of it."""
        return ExtendedClaimStatus(resource_claim_name=self.name, request_mappings=self.mappings)

    @property
    def manifest(self) -> Manifest:
        """To be created."""
        meta = self.pod.metadata
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid, "controller": True}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": self.name,
                "namespace": meta.namespace,
                "annotations": {ANNOTATION: "true"},
                "ownerReferences": [owner],
            },
            "spec": {"devices": {"requests": list(map(_written, self.requests))}},
        }

    def is_as_made(self, claim: ResourceClaim) -> bool:
        """It asks for just this, and was made for this pod."""
        devices = claim.spec.devices
        same = tuple(sorted(devices.requests, key=_name)) == self.requests
        return same and not devices.constraints and not devices.config and made_for(self.pod, claim)


def made_for(pod: Pod, claim: ResourceClaim) -> bool:
    """The claim belongs to this pod."""
    return any(one.controller and one.uid == pod.uid for one in claim.metadata.owner_references)


def of_the_bridge(pod: Pod, claim: ResourceClaim) -> bool:
    """The bridge has made it for the pod's extended resources: a pod has other claims that are made for it."""
    return claim.metadata.name == name_of(pod) and ANNOTATION in claim.metadata.annotations and made_for(pod, claim)


def name_of(pod: Pod) -> str:
    """The same one each time: a claim whose creation was not answered is found by it."""
    digest = hashlib.blake2b(pod.uid.encode(), digest_size=5).hexdigest()
    return f"{pod.metadata.name[:_LONGEST].rstrip('.-')}-extended-resources-{digest}"


def names(pod: Pod) -> Iterator[str]:
    """The resources of a pod behind which a class may stand."""
    for one in (*pod.spec.init_containers, *pod.spec.containers):
        for needs in (one.resources.limits, one.resources.requests):
            yield from filter(may_be_of_a_class, needs)


def of(pod: Pod, class_of: ClassOf) -> ClassClaim | None:
    """What the pod's claim has to be; None where no class stands behind any of its resources."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    requests: list[DeviceRequest] = []
    mappings: list[RequestMapping] = []
    asked = (one for one in sorted(set(names(pod))) if class_of(one) and any(_count(each, one) for each in containers))
    # With one more there are too many devices for any claim, which is told where they are counted.
    of_classes = list(itertools.islice(asked, MOST_RESOURCES + 1))
    places = [{name: place for place, name in enumerate(sorted(_amounts(one)))} for one in containers if of_classes]
    for resource in of_classes:
        for_this = _Requests(containers, places, len(pod.spec.init_containers), resource, class_of(resource))
        requests += for_this.requests
        mappings += for_this.mappings
    if not requests:
        return None
    return ClassClaim(pod=pod, name=name_of(pod), requests=tuple(sorted(requests, key=_name)), mappings=tuple(mappings))


class _Requests:
    """The requests for one resource, and whose they are."""

    def __init__(
        self,
        containers: Sequence[Container],
        places: Sequence[Mapping[str, int]],
        initial: int,
        resource: str,
        device_class: str,
    ) -> None:
        self._resource, self._class, self._places = resource, device_class, places
        self.mappings: list[RequestMapping] = []
        ending = [one.restart_policy != "Always" and place < initial for place, one in enumerate(containers)]
        staying = [
            None if ends else self._staying(*one) for one, ends in zip(enumerate(containers), ending, strict=True)
        ]
        largest = self._largest([one for one in enumerate(containers) if ending[one[0]]], staying)
        self.requests = [one for one in (largest, *staying) if one is not None]

    def _staying(self, place: int, container: Container) -> DeviceRequest | None:
        """What a container has for as long as the pod runs."""
        count = _count(container, self._resource)
        if count == 0:
            return None
        request = self._request(place, count)
        self._map(container, request.name)
        return request

    def _largest(
        self, ending: Sequence[tuple[int, Container]], staying: Sequence[DeviceRequest | None]
    ) -> DeviceRequest | None:
        """What containers that end need beside those of the containers that begin after them."""
        largest: DeviceRequest | None = None
        beside: list[Container] = []
        for place, one in ending:
            left = _count(one, self._resource)
            for request in filter(None, staying[place:]):
                if left > 0:
                    self._map(one, request.name)
                    left -= _size(request)
            if left > 0:
                beside.append(one)
                largest = largest if largest and left <= _size(largest) else self._request(place, left)
        if largest is not None:
            for one in beside:
                self._map(one, largest.name)
        return largest

    def _request(self, place: int, count: int) -> DeviceRequest:
        exactly = ExactRequest(device_class_name=self._class, count=count)
        return DeviceRequest(name=f"container-{place}-request-{self._places[place][self._resource]}", exactly=exactly)

    def _map(self, container: Container, request: str) -> None:
        self.mappings.append(
            RequestMapping(container_name=container.name, resource_name=self._resource, request_name=request)
        )


def written(status: ExtendedClaimStatus) -> Manifest:
    """As the pod's status has it."""
    found = [
        {"containerName": one.container_name, "resourceName": one.resource_name, "requestName": one.request_name}
        for one in status.request_mappings
    ]
    return {"resourceClaimName": status.resource_claim_name, "requestMappings": found}


def _written(request: DeviceRequest) -> Mapping[str, Any]:
    return {"name": request.name, "exactly": dict(_exactly(request))}


def _exactly(request: DeviceRequest) -> Iterator[tuple[str, Any]]:
    if request.exactly is not None:
        yield "deviceClassName", request.exactly.device_class_name
        yield "allocationMode", request.exactly.allocation_mode
        yield "count", request.exactly.count


def _name(request: DeviceRequest) -> str:
    return request.name


def _size(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


def _amounts(container: Container) -> Mapping[str, str | int | float]:
    """The API server takes a limit for a request that is left out."""
    return {**container.resources.limits, **container.resources.requests}


def _count(container: Container, resource: str) -> int:
    """Amounts that cannot be read are told where the pod is translated."""
    try:
        amount = quantity.parse(_amounts(container).get(resource, 0))
    except ValueError:
        return 0
    return int(amount) if amount > 0 and amount == Fraction(int(amount)) else 0
