"""Pods that never share a node with pods like themselves: a required pod anti-affinity to their own labels."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.model import selectors
from slurm_bridge.model.pod import Pod

HOSTNAME = "kubernetes.io/hostname"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

Term = Mapping[str, Any]


def from_its_like(pod: Pod) -> bool:
    """Whether two pods like this one may never share a node."""
    return any(_means_itself(term, pod) for term in _terms(pod))


def means_its_like(term: Term, pod: Pod) -> bool:
    """Whether this term keeps the pod from nodes with pods of the same labels."""
    return term.get("topologyKey") == HOSTNAME and _means_itself(term, pod)


def _terms(pod: Pod) -> Iterator[Term]:
    anti = (pod.spec.affinity or {}).get("podAntiAffinity")
    for term in (_list(anti, _REQUIRED) if isinstance(anti, Mapping) else None) or ():
        if isinstance(term, Mapping) and term.get("topologyKey") == HOSTNAME:
            yield term


def _means_itself(term: Term, pod: Pod) -> bool:
    """Of selectors of namespaces only an empty one, which selects all, is known to select the pod's own."""
    names, selector = _list(term, "namespaces"), term.get("namespaceSelector")
    if names is None or ((names or selector) and pod.metadata.namespace not in names):
        return False
    return selectors.selects(term.get("labelSelector"), pod.metadata.labels)


def _list(written: Term, name: str) -> Sequence[Any] | None:
    """Empty where the field is missing; None where its value has another type."""
    found = written.get(name)
    return found or () if isinstance(found, list | tuple | None) else None
