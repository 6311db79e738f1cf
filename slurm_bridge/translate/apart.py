"""Pods that keep away from their like: a required pod anti-affinity to their own labels on the node's name."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from slurm_bridge.model.pod import Pod

HOSTNAME = "kubernetes.io/hostname"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

Term = Mapping[str, Any]


def from_its_like(pod: Pod) -> bool:
    """Whether two pods such as this one may never share a node."""
    return any(_means_itself(term, pod) for term in _terms(pod))


def means_its_like(term: Term, pod: Pod) -> bool:
    """Whether this is such a term: it keeps its pod from nodes with others of these labels."""
    return term.get("topologyKey") == HOSTNAME and _means_itself(term, pod)


def _terms(pod: Pod) -> Iterator[Term]:
    anti = (pod.spec.affinity or {}).get("podAntiAffinity")
    found = anti.get(_REQUIRED) if isinstance(anti, Mapping) else None
    for term in found or ():
        if isinstance(term, Mapping) and term.get("topologyKey") == HOSTNAME:
            yield term


def _means_itself(term: Term, pod: Pod) -> bool:
    """A selector of namespaces is none of names: only an empty one, which takes all, is known to take the pod's own."""
    names, selector = term.get("namespaces") or (), term.get("namespaceSelector")
    if (names or selector) and pod.metadata.namespace not in names:
        return False
    wanted = term.get("labelSelector")
    return isinstance(wanted, Mapping) and _selects(wanted, pod.metadata.labels)


def _selects(selector: Term, labels: Mapping[str, str]) -> bool:
    equal = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return equal and all(_holds(row, labels) for row in selector.get("matchExpressions") or ())


def _holds(row: Term, labels: Mapping[str, str]) -> bool:
    """An operator that nobody knows holds nowhere."""
    if not isinstance(row, dict):
        return False
    rule = _OPERATORS.get(row.get("operator", ""))
    return rule is not None and rule(labels.get(row.get("key", "")), tuple(row.get("values") or ()))


_OPERATORS: Mapping[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "In": lambda found, values: found is not None and found in values,
    "NotIn": lambda found, values: found is None or found not in values,
    "Exists": lambda found, _: found is not None,
    "DoesNotExist": lambda found, _: found is None,
}
