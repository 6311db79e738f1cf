"""Required pod affinity and anti-affinity: which pods a pod wants near, or not near, and how far near reaches."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from slurm_bridge.model import selectors
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.selectors import Labels, Requirement
from slurm_bridge.translate import sizes

#: The labels of a namespace, None for an unknown one.
NamespaceLabels = Callable[[str], Labels | None]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclasses.dataclass(frozen=True, slots=True)
class Term:
    """Pods in these namespaces whose labels meet all requirements, on nodes with the same value of a label.

    `selector` None: no pod. `among`: namespaces by their labels, beside those that are named; None: only those named.
    """

    topology_key: str
    selector: tuple[Requirement, ...] | None
    namespaces: frozenset[str]
    among: tuple[Requirement, ...] | None = None

    def covers(self, namespace: str, labels_of: NamespaceLabels) -> bool:
        """Whether pods of a namespace are meant."""
        if namespace in self.namespaces:
            return True
        if self.among is None:
            return False
        labels = labels_of(namespace) if self.among else {}
        return labels is not None and selectors.all_hold(self.among, labels)

    def selects(self, pod: Pod, labels_of: NamespaceLabels) -> bool:
        """Whether a pod is meant."""
        if self.selector is None or not self.covers(pod.metadata.namespace, labels_of):
            return False
        return selectors.all_hold(self.selector, pod.metadata.labels)


def required(pod: Pod) -> tuple[Term, ...]:
    """The pods that have to be near."""
    return tuple(_terms(pod, "podAffinity"))


def forbidden(pod: Pod) -> tuple[Term, ...]:
    """The pods that must not be near."""
    return tuple(_terms(pod, "podAntiAffinity"))


def term(written: Mapping[str, Any], namespace: str) -> Term:
    """One term as it is written; without any word about namespaces it means the pod's own.

    A term with a key, a list of namespaces or a selector of them that makes no sense means no pod.
    """
    try:
        found = msgspec.convert(written, _WrittenTerm)
    except msgspec.ValidationError:
        return _odd(written, namespace)
    named, whole = found.namespaces or (), found.namespace_selector
    return Term(
        topology_key=found.topology_key,
        selector=None if found.label_selector is None else found.label_selector.requirements(),
        namespaces=frozenset(named) if named or whole is not None else frozenset((namespace,)),
        among=None if whole is None else whole.requirements(),
    )


class _Selector(msgspec.Struct, rename="camel", gc=False):
    """As the API server has it."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Requirement, ...] | None = None

    def requirements(self) -> tuple[Requirement, ...]:
        """As `selectors.read` has them."""
        rows = self.match_expressions or ()
        if not self.match_labels:
            return rows
        return (*(Requirement(key, "In", (value,)) for key, value in self.match_labels.items()), *rows)


class _WrittenTerm(msgspec.Struct, rename="camel", gc=False):
    """Likewise: read in one go, because strangers write thousands of terms."""

    topology_key: str = ""
    label_selector: _Selector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: _Selector | None = None


def _odd(written: Mapping[str, Any], namespace: str) -> Term:
    """What the API server would not take, as far as it makes sense."""
    key, whole = selectors.words((written.get("topologyKey", ""),)), written.get("namespaceSelector")
    named, among = selectors.words(written.get("namespaces")), selectors.read(whole)
    if key is None or named is None or (among is None and whole is not None):
        return Term(topology_key="", selector=None, namespaces=frozenset())
    return Term(
        topology_key=key[0],
        selector=selectors.read(written.get("labelSelector")),
        namespaces=frozenset(named) if named or among is not None else frozenset({namespace}),
        among=among,
    )


def rows(pod: Pod, kind: str, when: str) -> Sequence[Mapping[str, Any]]:
    """What a pod writes of one kind and strength, row by row; something else in its place is no row.

    No more of them are read than a pod may have that we place: those of other schedulers may have any number.
    """
    affinity = (pod.spec.affinity or {}).get(kind)
    written = affinity.get(when) if isinstance(affinity, dict | Mapping) else None
    if not isinstance(written, list | tuple):
        return ()
    return [row for row in written[: sizes.MOST_TERMS] if isinstance(row, dict | Mapping)]


def _terms(pod: Pod, kind: str) -> Iterator[Term]:
    for written in rows(pod, kind, REQUIRED):
        yield term(written, pod.metadata.namespace)
