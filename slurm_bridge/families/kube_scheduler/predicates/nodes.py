"""Predicates about what a node is: its name, labels, taints and conditions."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np
import pydantic

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.columns import Mask, NodeColumns
from slurm_bridge.cluster.rules import taints
from slurm_bridge.families.kube_scheduler.predicates import attributes, reasons
from slurm_bridge.families.kube_scheduler.predicates.attributes import Conditions
from slurm_bridge.families.kube_scheduler.predicates.base import PASSED, Failures, Predicate, PredicateRule, failing
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.model import quantity
from slurm_bridge.model.pod import ResourceNeeds
from slurm_bridge.model.selectors import Requirement


class LabelArguments(pydantic.BaseModel, frozen=True, extra="forbid"):
    """`presence`: whether nodes have to have all these labels, or none of them; their values do not matter."""

    labels: Annotated[tuple[str, ...], pydantic.Field(min_length=1)]
    presence: bool = True


def host_name(scene: Scene) -> Failures:
    """HostName: a pod that names its node fits no other."""
    wanted = scene.pod.spec.node_name
    if not wanted:
        return PASSED
    others = scene.columns.present.copy()
    row = scene.columns.row(wanted)
    if row is not None:
        others[row] = False
    return failing(others, reasons.HOST_NAME)


def node_selector(scene: Scene) -> Failures:
    """MatchNodeSelector: node selector and required node affinity, after that which all pods have."""
    columns, spec, enforced = scene.columns, scene.pod.spec, scene.lookup.added_affinity.required
    left, outside = columns.present, PASSED
    if enforced is not None:
        meeting = selection.selected(columns, enforced)
        left, outside = left & meeting, failing(left & ~meeting, reasons.ENFORCED_AFFINITY)
    if not spec.node_selector and not spec.affinity:
        return outside
    return (*outside, *failing(left & ~selection.accepting(columns, scene.pod), reasons.NODE_SELECTOR))


def tolerating(*effects: str) -> Predicate:
    """PodToleratesNodeTaints: every taint of these effects is tolerated."""

    def tolerates_taints(scene: Scene) -> Failures:
        tolerations = scene.pod.spec.tolerations
        tainted = attributes.taints(scene.columns)
        return failing(
            tainted.where(lambda found: taints.untolerated(found, tolerations, effects) is not None), reasons.TAINTS
        )

    return tolerates_taints


def unschedulable(scene: Scene) -> Failures:
    """CheckNodeUnschedulable: a cordoned node takes only pods that tolerate the mark of it."""
    if taints.untolerated((taints.UNSCHEDULABLE,), scene.pod.spec.tolerations) is None:
        return PASSED
    return failing(_cordoned(scene.columns), reasons.UNSCHEDULABLE)


def condition(scene: Scene) -> Failures:
    """CheckNodeCondition: ready, with its network, and not cordoned, whatever the pod tolerates."""
    return (
        *failing(_troubled(scene.columns, "Ready"), reasons.NOT_READY),
        *failing(_troubled(scene.columns, "NetworkUnavailable"), reasons.NETWORK_UNAVAILABLE),
        *failing(_cordoned(scene.columns), reasons.UNSCHEDULABLE),
    )


def memory_pressure(scene: Scene) -> Failures:
    """CheckNodeMemoryPressure: pods that ask for nothing are the first to be put out, so they do not come."""
    spec = scene.pod.spec
    needs = (spec.resources, *(one.resources for one in (*spec.containers, *spec.init_containers)))
    if any(_asks(one) for one in needs if one is not None):
        return PASSED
    return failing(_pressed(scene.columns, "MemoryPressure"), reasons.MEMORY_PRESSURE)


def disk_pressure(scene: Scene) -> Failures:
    """CheckNodeDiskPressure."""
    return failing(_pressed(scene.columns, "DiskPressure"), reasons.DISK_PRESSURE)


def pid_pressure(scene: Scene) -> Failures:
    """CheckNodePIDPressure."""
    return failing(_pressed(scene.columns, "PIDPressure"), reasons.PID_PRESSURE)


def label_presence(args: Mapping[str, Any]) -> PredicateRule:
    """CheckNodeLabelPresence: nodes that have these labels, or those that have none of them."""
    wanted = LabelArguments.model_validate(dict(args))
    operator = "Exists" if wanted.presence else "DoesNotExist"
    requirements = tuple(Requirement(key, operator) for key in wanted.labels)

    def has_labels(scene: Scene) -> Failures:
        met = selection.all_met(scene.columns, requirements)
        return failing(scene.columns.present & ~met, reasons.LABEL_PRESENCE)

    return PredicateRule(failures=has_labels)


def _asks(needs: ResourceNeeds) -> bool:
    """For something that counts for the quality of service: a pod that asks only for other things is best effort."""
    return any(
        quantity.parse(amount) > 0
        for written in (needs.requests, needs.limits)
        for name, amount in written.items()
        if name in ("cpu", "memory")
    )


def ill(name: str) -> Callable[[Scene], bool]:
    """Whether this condition is not fine on some node: a kubelet's word, which moves as what runs does."""

    def some_trouble(scene: Scene) -> bool:
        return any(name == one for found in attributes.troubles(scene.columns).values for one, _ in found)

    return some_trouble


def _troubled(columns: NodeColumns, name: str) -> Mask:
    """Nodes of which a condition is said, and is not fine."""
    return _where(columns, lambda found: any(one == name for one, _ in found))


def _pressed(columns: NodeColumns, name: str) -> Mask:
    """Nodes under pressure for certain."""
    return _where(columns, lambda found: (name, "True") in found)


def _where(columns: NodeColumns, holds: Callable[[Conditions], bool]) -> Mask:
    coded = attributes.troubles(columns)
    if not any(map(holds, coded.values)):
        return np.zeros(len(columns), np.bool_)
    return coded.where(holds)


def _cordoned(columns: NodeColumns) -> Mask:
    return attributes.unschedulable(columns).where(bool)
