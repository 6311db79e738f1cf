"""What nodes are: their labels, their taints, and the pods that their administrators would rather not have there."""

import functools
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import numpy as np

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.columns import Whole
from slurm_bridge.cluster.rules import taints
from slurm_bridge.families.kube_scheduler.priorities import numbers
from slurm_bridge.families.kube_scheduler.priorities.numbers import NEWER
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.model.node import Node, Taint
from slurm_bridge.runtime import written

#: What a node without a preference says; also the score of every node where nothing is preferred.
EQUAL = 1

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

#: The effect of a taint that is only a wish.
SOFT = "PreferNoSchedule"

#: Where a node's owner lists the controllers whose pods it would rather not run.
PREFER_AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"

#: Whose pods can be avoided.
AVOIDABLE = frozenset({"ReplicationController", "ReplicaSet"})

Controllers = frozenset[tuple[str, str]]

#: The longest text of that annotation: a longer one avoids no pod.
_MOST_AVOIDED: Final = 65_536


class _Controller(msgspec.Struct, frozen=True):
    kind: str
    uid: str


class _Signature(msgspec.Struct, frozen=True, rename="camel"):
    pod_controller: _Controller


class _Avoid(msgspec.Struct, frozen=True, rename="camel"):
    pod_signature: _Signature


class _Avoids(msgspec.Struct, frozen=True, rename="camel"):
    prefer_avoid_pods: list[_Avoid] | None = None


def equal(scene: Scene) -> Whole:
    """All alike."""
    return numbers.constant(len(scene.columns), EQUAL)


def node_affinity(maximum: int) -> Callable[[Scene], Whole]:
    """The weights of all preferences that hold on a node; one without conditions does on the scale to 10 only."""

    def rated(scene: Scene) -> Whole:
        total = numbers.constant(len(scene.columns), 0)
        affinity = (scene.pod.spec.affinity or {}).get("nodeAffinity")
        written = affinity.get(PREFERRED) if isinstance(affinity, Mapping) else None
        for row in (*scene.lookup.added_affinity.preferred, *(written or ())):
            preference = row.get("preference") or {}
            if not row.get("weight"):
                continue
            if preference.get("matchExpressions") or preference.get("matchFields"):
                holding = selection.selected(scene.columns, {"nodeSelectorTerms": (preference,)})
                total = total + int(row["weight"]) * holding
            elif maximum < NEWER:
                total = total + int(row["weight"]) * scene.columns.present
        return total

    return rated


def taint_toleration(scene: Scene) -> Whole:
    """How many of a node's wishes to be left alone the pod does not tolerate; fewer are better."""
    tolerations = tuple(one for one in scene.pod.spec.tolerations if one.effect in ("", SOFT))
    tainted = scene.columns.of_node("kube soft taints", _soft)
    if not any(tainted.values):
        return numbers.constant(len(scene.columns), 0)

    def untolerated(soft: tuple[Taint, ...]) -> int:
        return sum(not any(taints.tolerates(toleration, taint) for toleration in tolerations) for taint in soft)

    return tainted.whole(untolerated)


def node_label(label: str, maximum: int, *, presence: bool) -> Callable[[Scene], Whole]:
    """Whether a node has a label, whatever its value, is what counts."""

    def rated(scene: Scene) -> Whole:
        return scene.columns.label(label).whole(lambda value: maximum * ((value is not None) is presence))

    return rated


def prefer_avoid(maximum: int) -> Callable[[Scene], Whole]:
    """Nothing where the node's owner would rather not have the pods of this pod's controller."""

    def rated(scene: Scene) -> Whole:
        owners = scene.pod.metadata.owner_references
        kinds = ((one.kind, one.uid) for one in owners if one.controller and one.kind in AVOIDABLE)
        controller = next(kinds, None)
        if controller is None:
            return numbers.constant(len(scene.columns), maximum)
        avoided = scene.columns.of_node(
            "kube avoided controllers", lambda node: _listed(node.metadata.annotations.get(PREFER_AVOID, ""))
        )
        return np.where(avoided.where(lambda listed: controller in listed), 0, maximum).astype(np.int64)

    return rated


def _soft(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.spec.taints if taint.effect == SOFT)


@functools.lru_cache(maxsize=1024)
def _listed(annotation: str) -> Controllers:
    """What cannot be read avoids no pod, as in kube-scheduler: one odd annotation must not stop every pod."""
    found = written.read(annotation, _Avoids, most=_MOST_AVOIDED) if annotation else None
    rows = found.prefer_avoid_pods or () if isinstance(found, _Avoids) else ()
    makers = (row.pod_signature.pod_controller for row in rows)
    return frozenset((one.kind, one.uid) for one in makers)
