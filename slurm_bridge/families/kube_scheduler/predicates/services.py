"""CheckServiceAffinity: pods of one service come to nodes that agree in some labels."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import pydantic

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.families.kube_scheduler.predicates import attributes, reasons
from slurm_bridge.families.kube_scheduler.predicates.base import Failures, PredicateRule, always, failing
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model.selectors import Requirement


class Arguments(pydantic.BaseModel, frozen=True, extra="forbid"):
    """In which labels the nodes have to agree."""

    labels: Annotated[tuple[str, ...], pydantic.Field(min_length=1)]


def build(args: Mapping[str, Any]) -> PredicateRule:
    """The predicate for these labels."""
    keys = Arguments.model_validate(dict(args)).labels

    def service_affinity(scene: Scene) -> Failures:
        chosen = scene.pod.spec.node_selector
        wanted = {key: chosen[key] for key in keys if key in chosen}
        if len(wanted) < len(keys):
            wanted = {**_of_companion(scene, keys), **wanted}
        met = selection.all_met(scene.columns, [Requirement(key, "In", (value,)) for key, value in wanted.items()])
        return failing(scene.columns.present & ~met, reasons.SERVICE_AFFINITY)

    return PredicateRule(failures=service_affinity, needs=frozenset({Need.SERVICES}), moving=always)


def _of_companion(scene: Scene, keys: tuple[str, ...]) -> Mapping[str, str]:
    """These labels of the node on which the first pod of the same service is."""
    own = scene.pod.metadata.labels
    selectors = scene.lookup.service_selectors(scene.pod.metadata.namespace)
    served = any(one and one.items() <= own.items() for one in selectors)
    node = _companion(scene) if served else None
    labels = node.node.metadata.labels if node is not None else {}
    return {key: labels[key] for key in keys if key in labels}


def _companion(scene: Scene) -> NodeFacts | None:
    """The node of the first pod, by name, that has all labels of this one."""
    found: list[tuple[str, NodeFacts]] = []
    wanted = [Requirement(key, "In", (value,)) for key, value in scene.pod.metadata.labels.items()]
    namespace = scene.pod.metadata.namespace
    for columns, rows in scene.parts:
        pods = columns.pods
        alike = attributes.in_namespaces(pods, lambda one: one == namespace) & selection.all_met(pods, wanted)
        for row in np.flatnonzero(alike & pods.present & rows[pods.node_rows]).tolist():
            pod, facts = pods.pods[row], columns.facts[pods.node_rows[row]]
            if pod is not None and facts is not None:
                found.append((pod.metadata.name, facts))
    return min(found, key=lambda one: one[0])[1] if found else None
