"""Pods that never share a node: by a required anti-affinity to pods with their own labels, or by a port of the host."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.model import selectors
from slurm_bridge.model.pod import ContainerPort, Pod

HOSTNAME = "kubernetes.io/hostname"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

Term = Mapping[str, Any]


def from_its_like(pod: Pod) -> bool:
    """Whether two pods like this one may never share a node."""
    anti = (pod.spec.affinity or {}).get("podAntiAffinity")
    terms = (_list(anti, _REQUIRED) if isinstance(anti, Mapping) else None) or ()
    return any(means_its_like(term, pod) for term in terms if isinstance(term, Mapping))


def common_port(pods: Iterable[Pod]) -> int | None:
    """A port of the host that all of these pods claim: no two of them can be on one node."""
    left: set[tuple[str, str, int]] | None = None
    for pod in pods:
        mine = {(one.protocol or "TCP", one.host_ip, one.host_port) for one in _ports(pod)}
        left = mine if left is None else left & mine
        if not left:
            return None
    return min(port for _, _, port in left) if left else None


def _ports(pod: Pod) -> Iterator[ContainerPort]:
    """Init containers that end before the others start hold none."""
    staying = (one for one in pod.spec.init_containers if one.restart_policy == "Always")
    for container in (*pod.spec.containers, *staying):
        yield from (port for port in container.ports if port.host_port > 0)


def means_its_like(term: Term, pod: Pod) -> bool:
    """Whether this term keeps the pod from nodes with pods of the same labels.

    Of selectors of namespaces only an empty one, which selects all, is known to select the pod's own.
    """
    if term.get("topologyKey") != HOSTNAME:
        return False
    names, selector = _list(term, "namespaces"), term.get("namespaceSelector")
    if names is None or ((names or selector) and pod.metadata.namespace not in names):
        return False
    return selectors.selects(term.get("labelSelector"), pod.metadata.labels)


def _list(written: Term, name: str) -> Sequence[Any] | None:
    """Empty where the field is missing; None where its value has another type."""
    found = written.get(name)
    return found or () if isinstance(found, list | tuple | None) else None
