"""The most terms that a pod may have; more are refused before any node is compared.

Each term of a selector is compared with every node, and the API server takes some ten thousand of them in one pod.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from slurm_bridge.model.pod import Pod

#: LayoutTerms of each list, labels of the node selector, tolerations, constraints, and claims of devices.
MOST_TERMS: Final = 100
#: Conditions (matchExpressions, matchFields, matchLabels) of all terms of one list of a pod together.
MOST_CONDITIONS: Final = 500
#: Values of all these conditions together.
MOST_VALUES: Final = 10_000

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

_Count = tuple[str, int, int]


def problem(pods: Iterable[Pod]) -> str:
    """Which field of these pods has too many entries, "" where none has."""
    for pod in pods:
        spec = pod.spec
        if not (
            spec.affinity
            or spec.node_selector
            or spec.tolerations
            or spec.topology_spread_constraints
            or spec.resource_claims
        ):
            continue
        for field, count, most in _counts(pod):
            if count > most:
                namespace, name = pod.key
                return f"Pod {namespace}/{name}: {field} has {count} entries; at most {most} are allowed"
    return ""


def _counts(pod: Pod) -> Iterator[_Count]:
    spec = pod.spec
    yield "spec.nodeSelector", len(spec.node_selector), MOST_TERMS
    yield "spec.tolerations", len(spec.tolerations), MOST_TERMS
    yield "spec.resourceClaims", len(spec.resource_claims), MOST_TERMS
    yield "spec.topologySpreadConstraints", len(spec.topology_spread_constraints), MOST_TERMS
    yield from _selecting("spec.topologySpreadConstraints", spec.topology_spread_constraints)
    if spec.affinity is not None:
        yield from _affinity(spec.affinity)


def _affinity(affinity: Mapping[str, Any]) -> Iterator[_Count]:
    nodes = _map(affinity.get("nodeAffinity"))
    required, preferred = _list(_map(nodes.get(_REQUIRED)).get("nodeSelectorTerms")), _list(nodes.get(_PREFERRED))
    yield f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms", len(required), MOST_TERMS
    yield f"spec.affinity.nodeAffinity.{_PREFERRED}", len(preferred), MOST_TERMS
    for kind in ("podAffinity", "podAntiAffinity"):
        for when in (_REQUIRED, _PREFERRED):
            field, rows = f"spec.affinity.{kind}.{when}", _list(_map(affinity.get(kind)).get(when))
            yield field, len(rows), MOST_TERMS
            yield from _selecting(field, [_map(row).get("podAffinityTerm", row) for row in rows])
    terms = [*map(_map, required), *(_map(_map(one).get("preference")) for one in preferred)]
    conditions = [
        row for term in terms for name in ("matchExpressions", "matchFields") for row in _list(term.get(name))
    ]
    yield "the matchExpressions of spec.affinity.nodeAffinity", len(conditions), MOST_CONDITIONS
    values = sum(len(_list(_map(row).get("values"))) for row in conditions)
    yield "the values of spec.affinity.nodeAffinity", values, MOST_VALUES


def _selecting(field: str, terms: Iterable[object]) -> Iterator[_Count]:
    """What selects pods: each key that is named is compared with all of them."""
    names = ("labelSelector", "namespaceSelector")
    selectors = [_map(_map(term).get(name)) for term in terms for name in names]
    conditions = [row for one in selectors for row in _list(one.get("matchExpressions"))]
    labels = sum(len(_map(one.get("matchLabels"))) for one in selectors)
    yield f"the label selectors of {field}", len(conditions) + labels, MOST_CONDITIONS
    yield f"the values of {field}", sum(len(_list(_map(row).get("values"))) for row in conditions), MOST_VALUES


def _map(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _list(found: object) -> Sequence[Any]:
    return found if isinstance(found, Sequence) and not isinstance(found, str) else ()
