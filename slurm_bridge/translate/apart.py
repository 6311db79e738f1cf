"""Pods that never share a node with pods like themselves: a required pod anti-affinity to their own labels."""

from collections.abc import Mapping, Sequence
from typing import Any

from slurm_bridge.model import selectors
from slurm_bridge.model.pod import Pod

HOSTNAME = "kubernetes.io/hostname"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

Term = Mapping[str, Any]


def from_its_like(pod: Pod) -> bool:
    """Whether two pods like this one may never share a node."""
    anti = (pod.spec.affinity or {}).get("podAntiAffinity")
    terms = (_list(anti, _REQUIRED) if isinstance(anti, Mapping) else None) or ()
    return any(means_its_like(term, pod) for term in terms if isinstance(term, Mapping))


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
