"""Pods that never share a node with pods like themselves: a required pod anti-affinity to their own labels."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

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
    wanted = term.get("labelSelector")
    return isinstance(wanted, Mapping) and _selects(wanted, pod.metadata.labels)


def _selects(selector: Term, labels: Mapping[str, str]) -> bool:
    """A selector with a value of another type in the place of its map or its list selects nothing."""
    equal, rows = selector.get("matchLabels") or {}, _list(selector, "matchExpressions")
    if not isinstance(equal, Mapping) or rows is None:
        return False
    return all(labels.get(key) == value for key, value in equal.items()) and all(_holds(row, labels) for row in rows)


def _holds(row: object, labels: Mapping[str, str]) -> bool:
    """An unknown operator never matches, and neither does a row of another type."""
    if not isinstance(row, Mapping):
        return False
    key, operator, values = row.get("key", ""), row.get("operator", ""), _list(row, "values")
    if not isinstance(key, str) or not isinstance(operator, str) or values is None:
        return False
    rule = _OPERATORS.get(operator)
    return rule is not None and rule(labels.get(key), values)


def _list(written: Term, name: str) -> Sequence[Any] | None:
    """Empty where the field is missing; None where its value has another type."""
    found = written.get(name)
    return found or () if isinstance(found, list | tuple | None) else None


_OPERATORS: Mapping[str, Callable[[str | None, Sequence[Any]], bool]] = {
    "In": lambda found, values: found is not None and found in values,
    "NotIn": lambda found, values: found is None or found not in values,
    "Exists": lambda found, _: found is not None,
    "DoesNotExist": lambda found, _: found is None,
}
