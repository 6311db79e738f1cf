"""What a pod and those beside it ask for, where a container that says nothing still counts as something.

Without this, pods without requests would all look as if they fitted nowhere better than anywhere else, and would pile
up on one node.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec
import numpy as np

from slurm_bridge.cluster import columns
from slurm_bridge.cluster.columns import NodeColumns, Whole
from slurm_bridge.cluster.facts import NOTHING, Amounts
from slurm_bridge.model.pod import Container, Pod, ResourceNeeds
from slurm_bridge.translate import resources

#: What a container counts for that mentions neither a request nor a limit: milli cores, and 200 MiB in bytes.
UNSAID: Mapping[str, int] = {"cpu": 100, "memory": 200 * 2**20}

_WRITTEN: Mapping[str, str] = {"cpu": "100m", "memory": "200Mi"}


def asked(pod: Pod, resource: str) -> int:
    """What the pod asks for as it is written."""
    return columns.units(resource, resources.requests_of(pod).get(resource, Fraction(0)))


def counted(pod: Pod, resource: str) -> int:
    """What it counts for when nodes are compared: with the defaults where containers say nothing."""
    return asked(pod, resource) + _unsaid(pod, resource)


def there(nodes: NodeColumns, resource: str) -> Whole:
    """What the pods on each node count for, with the defaults; what Slurm has given to jobs where that is more."""
    of = functools.partial(_counted, resource)
    used = nodes.whole_of_pods(f"kube counted {resource}", of) if resource in UNSAID else nodes.used(resource)
    return np.maximum(used, nodes.given_away(resource))


def written(nodes: NodeColumns, resource: str) -> Whole:
    """The same of what pods request as it is written."""
    return np.maximum(nodes.used(resource), nodes.given_away(resource))


def _counted(resource: str, used: Amounts, pods: Sequence[Pod]) -> int:
    return columns.units(resource, used.get(resource, NOTHING)) + sum(_unsaid(pod, resource) for pod in pods)


def _unsaid(pod: Pod, resource: str) -> int:
    """How much the defaults add. Nearly all pods are simple, and there are many: those are only counted."""
    spec = pod.spec
    if resource not in UNSAID or (spec.resources is not None and _mentions(spec.resources, resource)):
        return 0
    silent = 0
    for container in spec.containers:
        needs = container.resources
        if resource not in needs.requests and resource not in needs.limits:
            silent += 1
    if not spec.init_containers:
        return silent * UNSAID[resource]
    if not silent and all(_mentions(one.resources, resource) for one in spec.init_containers):
        return 0
    filled = msgspec.structs.replace(
        spec,
        containers=_with_default(spec.containers, resource),
        init_containers=_with_default(spec.init_containers, resource),
    )
    return asked(msgspec.structs.replace(pod, spec=filled), resource) - asked(pod, resource)


def _mentions(needs: ResourceNeeds, resource: str) -> bool:
    return resource in needs.requests or resource in needs.limits


def _with_default(containers: Iterable[Container], resource: str) -> tuple[Container, ...]:
    found = list[Container]()
    for one in containers:
        needs = one.resources
        if not _mentions(needs, resource):
            needs = msgspec.structs.replace(needs, requests={**needs.requests, resource: _WRITTEN[resource]})
        found.append(msgspec.structs.replace(one, resources=needs))
    return tuple(found)
