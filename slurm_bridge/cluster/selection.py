"""Which nodes (or pods) a selector means: `rules.selectors` and `rules.affinity`, over whole columns at once."""

import functools
from collections.abc import Iterable
from typing import Protocol

import numpy as np

from slurm_bridge.cluster.columns import Coded, Mask, NodeColumns
from slurm_bridge.cluster.rules import affinity
from slurm_bridge.cluster.rules.affinity import Term
from slurm_bridge.model import selectors
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.selectors import Requirement
from slurm_bridge.model.storage import Volume


class Labelled(Protocol):
    """Columns over things that have labels."""

    def __len__(self) -> int: ...

    @property
    def present(self) -> Mask: ...

    def label(self, key: str) -> Coded[str | None]: ...


def meets(found: Coded[str | None], present: Mask, requirement: Requirement) -> Mask:
    """The rows whose value meets a requirement. Most ask for some values, and need not look at every one there is."""
    match requirement.operator:
        case "In":
            return found.among(requirement.values)
        case "NotIn":
            return present & ~found.among(requirement.values)
        case "Exists":
            return present & ~found.among((None,))
        case "DoesNotExist":
            return found.among((None,))
    rule = selectors.OPERATORS.get(requirement.operator)
    if rule is None:
        return np.zeros_like(present)
    return found.where(lambda value: rule(value, requirement.values))


def all_met(table: Labelled, requirements: Iterable[Requirement]) -> Mask:
    """The rows whose labels meet every requirement; without any, all of them."""
    masks = [meets(table.label(one.key), table.present, one) for one in requirements]
    return functools.reduce(np.logical_and, masks) if masks else table.present


def accepting(columns: NodeColumns, pod: Pod) -> Mask:
    """The nodes that a pod's node selector and required node affinity accept."""
    wanted = [Requirement(key, "In", (value,)) for key, value in pod.spec.node_selector.items()]
    chosen, selector = all_met(columns, wanted), affinity.required(pod)
    return chosen if selector is None else chosen & selected(columns, selector)


def selected(columns: NodeColumns, selector: Term) -> Mask:
    """The nodes on which one of a node selector's terms holds."""
    masks = [_term(columns, term) for term in selector.get("nodeSelectorTerms") or ()]
    return functools.reduce(np.logical_or, masks) if masks else np.zeros_like(columns.present)


def reaching(columns: NodeColumns, volume: Volume) -> Mask:
    """The nodes from which a volume can be used."""
    reach = volume.spec.node_affinity
    return columns.present if reach is None or reach.required is None else selected(columns, reach.required)


def _term(columns: NodeColumns, term: Term) -> Mask:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return np.zeros_like(columns.present)
    found = all_met(columns, map(selectors.requirement, expressions))
    return functools.reduce(np.logical_and, (_field(columns, selectors.requirement(row)) for row in fields), found)


def _field(columns: NodeColumns, wanted: Requirement) -> Mask:
    """A node has one field to be selected by, its name."""
    if wanted.operator not in affinity.FIELD_OPERATORS:
        return np.zeros_like(columns.present)
    listed = columns.mask(wanted.values if wanted.key == affinity.NAME else ())
    return listed if wanted.operator == "In" else columns.present & ~listed
