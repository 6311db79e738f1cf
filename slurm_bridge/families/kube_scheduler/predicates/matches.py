"""Which of the pods on nodes an affinity term means; labels are compared as everywhere, by `cluster.selecting`."""

from collections.abc import Callable

import numpy as np

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.columns import Mask, PodColumns
from slurm_bridge.cluster.rules.neighbours import NamespaceLabels, Term
from slurm_bridge.families.kube_scheduler.predicates import attributes


def meant(pods: PodColumns, term: Term, labels_of: NamespaceLabels) -> Mask:
    """The pods that an affinity term means."""
    if term.selector is None:
        return np.zeros(len(pods), np.bool_)
    here = in_namespaces(pods, lambda namespace: term.covers(namespace, labels_of))
    return here & selection.all_met(pods, term.selector)


def in_namespaces(pods: PodColumns, holds: Callable[[str], bool]) -> Mask:
    """The pods of namespaces that pass."""
    return attributes.namespaces(pods).where(holds)
