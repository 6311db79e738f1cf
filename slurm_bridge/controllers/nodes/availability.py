"""What Slurm says of a node, on the Kubernetes node: labels, a condition, and if configured a taint or a cordon. Pure.

    Slurm's node                           condition            taint, cordon
    DOWN, FAIL, NOT_RESPONDING (external)  True                 if configured
    DRAIN, reason of an administrator      True                 if configured
    DRAIN, reason of this bridge           as if it were not    as if it were not
    MAINTENANCE                            True                 if configured
    RESERVED, not by a bridge              True                 no
    in service                             False, if it is there removed, if the bridge has set them
    not in Slurm                           False, if it is there removed, if the bridge has set them

The bridge owns its own labels and the taint of its own key. A cordon is the bridge's if the annotation `cordoned-for`
names the state for which the bridge has cordoned. A node that an administrator had cordoned before has no such
annotation. When an administrator uncordons, the annotation says `lifted`, and until Slurm gives the node jobs again the
bridge neither cordons nor uncordons it.

The annotation `state-of` names the bridge that has written all this: another one neither adds to it nor removes it.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from slurm_bridge.model import names, texts
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.node import Node, Taint
from slurm_bridge.model.slurmnode import SlurmNode

CONDITION: Final = "SlurmUnavailable"
TAINT: Final = names.NODE_PREFIX + "unavailable"
LABEL_STATE: Final = names.SCHEDULER_PREFIX + "slurm-state"
LABEL_REASON: Final = names.SCHEDULER_PREFIX + "slurm-reason"
ANNOTATION_CORDONED: Final = names.SCHEDULER_PREFIX + "cordoned-for"
#: Names the bridge, by its `cluster_id`, whose marks are on the node.
ANNOTATION_OWNER: Final = names.SCHEDULER_PREFIX + "slurm-state-of"
#: Names those of the next ones that the bridge has set.
ANNOTATION_HOLDS: Final = names.SCHEDULER_PREFIX + "scale-down-held"
#: With these annotations, Cluster Autoscaler and Karpenter do not remove a node.
HOLDS: Final = ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt")

#: The words that count, the strongest first, and what each means.
WORDS: Final[Mapping[str, str]] = {
    "DOWN": "Slurm runs no jobs on it",
    "FAIL": "Slurm expects it to fail",
    "NOT_RESPONDING": "Slurm starts no jobs on it until `scontrol reconfigure`",
    "DRAIN": "Slurm starts no new jobs on it",
    "MAINTENANCE": "a maintenance reservation holds it",
    "RESERVED": "only jobs of the reservation start on it",
}
#: Words of nodes on which some jobs start.
_OPEN: Final = frozenset({"RESERVED"})
_RESERVED: Final = frozenset({"RESERVED", "MAINTENANCE"})

_MOST_REASON = 400
_MOST_LABEL = 63
_LIFTED = ".lifted"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Marking:
    """How the state of a node in Slurm is shown on the Kubernetes node. `taint` is the effect, "" for no taint.

    With `hold`, autoscalers are asked to keep a node on which jobs run.
    """

    taint: str = ""
    cordon: bool = False
    hold: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OutOfService:
    """Why Slurm gives a node no jobs."""

    word: str
    reason: str = ""

    @property
    def message(self) -> str:
        said = f", reason: {texts.bounded(self.reason, _MOST_REASON)}" if self.reason else ""
        return f"Slurm node is {self.word}{said}: {WORDS[self.word]}"

    @property
    def closed(self) -> bool:
        """No job at all starts there."""
        return self.word not in _OPEN

    @property
    def label(self) -> str:
        """The reason as far as the value of a label can hold it."""
        return re.sub(r"[^A-Za-z0-9._-]+", "-", self.reason)[:_MOST_LABEL].strip("._-")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """The writes that make a Kubernetes node show Slurm's state; empty where it shows it already."""

    node: Manifest = dataclasses.field(default_factory=dict)
    status: Manifest = dataclasses.field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.node or self.status)


def unavailable(node: SlurmNode | None, own_reason: str, reservation: str = "") -> OutOfService | None:
    """Why Slurm gives it no jobs, None where it does. A drain whose reason begins with `own_reason` does not count.

    `reservation` is the one that an administrator has made for the node.
    """
    if node is None:
        return None
    counts = {
        "DRAIN": not node.reason.startswith(own_reason),
        "NOT_RESPONDING": node.external,
        "RESERVED": bool(reservation),
    }
    word = next((word for word in WORDS if word in node.states and counts.get(word, True)), None)
    if word is None:
        return None
    return OutOfService(word=word, reason=reservation if word in _RESERVED else node.reason)


def writes(
    node: Node, state: OutOfService | None, marking: Marking, now: str, *, by: str, busy: bool = False
) -> Writes:
    """What a bridge, `by` its cluster_id, has to write on a Kubernetes node; a `busy` one has jobs.

    `now` is the time as Kubernetes writes it.
    """
    if node.metadata.annotations.get(ANNOTATION_OWNER, by) != by:
        return Writes()
    labels, spec = _labels(node, state), _spec(node, state, marking)
    hold = marking.hold and busy
    annotations = (
        _cordon_mark(node, state, marking) | _holds(node, hold=hold) | _owner(node, by if state or hold else None)
    )
    metadata: Manifest = {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value}
    body = {key: value for key, value in (("metadata", metadata), ("spec", spec)) if value}
    if body:
        # For this version of the node only: taints are a list, and an administrator may cordon at the same moment.
        body["metadata"] = {**metadata, "resourceVersion": node.metadata.resource_version}
    condition = _condition(node, state, now)
    return Writes(node=body, status={"status": {"conditions": [condition]}} if condition else {})


def _owner(node: Node, wanted: str | None) -> Manifest:
    return {} if node.metadata.annotations.get(ANNOTATION_OWNER) == wanted else {ANNOTATION_OWNER: wanted}


def _labels(node: Node, state: OutOfService | None) -> Manifest:
    wanted = {LABEL_STATE: state.word, LABEL_REASON: state.label or None} if state else {}
    now = node.metadata.labels
    return {key: wanted.get(key) for key in (LABEL_STATE, LABEL_REASON) if now.get(key) != wanted.get(key)}


def _condition(node: Node, state: OutOfService | None, now: str) -> Manifest:
    there = next((one for one in node.status.conditions if one.type == CONDITION), None)
    if state is None and (there is None or there.status == "False"):
        return {}
    status, reason, message = (
        ("False", "InService", "Slurm starts jobs on it") if state is None else ("True", state.word, state.message)
    )
    if there is not None and (there.status, there.reason, there.message) == (status, reason, message):
        return {}
    since = there.last_transition_time if there is not None and there.status == status else None
    return {
        "type": CONDITION,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": since or now,
    }


def _spec(node: Node, state: OutOfService | None, marking: Marking) -> Manifest:
    spec: Manifest = {}
    kept = [one for one in node.spec.taints if one.key != TAINT]
    wanted = (
        [Taint(key=TAINT, value=state.word, effect=marking.taint)] if state and state.closed and marking.taint else []
    )
    if [(one.value, one.effect) for one in node.spec.taints if one.key == TAINT] != [
        (one.value, one.effect) for one in wanted
    ]:
        spec["taints"] = [msgspec.to_builtins(one) for one in (*kept, *wanted)]
    cordon = _cordon(node, state, marking)
    if cordon is not None and cordon != node.spec.unschedulable:
        spec["unschedulable"] = cordon
    return spec


def _cordon(node: Node, state: OutOfService | None, marking: Marking) -> bool | None:
    """Whether the node is to be cordoned, None where that is not for the bridge to say."""
    mark = node.metadata.annotations.get(ANNOTATION_CORDONED)
    if mark is not None and mark.endswith(_LIFTED):
        return None
    if state is None or not state.closed or not marking.cordon:
        return None if mark is None else False
    return None if mark == state.word else True


def _cordon_mark(node: Node, state: OutOfService | None, marking: Marking) -> Manifest:
    mark = node.metadata.annotations.get(ANNOTATION_CORDONED)
    if state is None or not state.closed or not marking.cordon:
        wanted = None
    elif mark is None:
        wanted = None if node.spec.unschedulable else state.word
    elif mark.endswith(_LIFTED):
        wanted = mark
    elif mark == state.word and not node.spec.unschedulable:
        wanted = state.word + _LIFTED
    else:
        wanted = state.word
    return {} if wanted == mark else {ANNOTATION_CORDONED: wanted}


def _holds(node: Node, *, hold: bool) -> Manifest:
    """The marks of autoscalers; those that an administrator has set are neither taken over nor removed."""
    now = node.metadata.annotations
    ours = [key for key in now.get(ANNOTATION_HOLDS, "").split(",") if key in HOLDS]
    if not hold:
        return dict.fromkeys((*ours, ANNOTATION_HOLDS)) if ANNOTATION_HOLDS in now else {}
    wanted = [key for key in HOLDS if key in ours or key not in now]
    changes: Manifest = {key: "true" for key in wanted if now.get(key) != "true"}
    if wanted and sorted(ours) != sorted(wanted):
        changes[ANNOTATION_HOLDS] = ",".join(wanted)
    return changes


def cordoned_here(node: Node) -> bool:
    """The bridge has cordoned the node for what Slurm says, so Slurm is not told of that cordon."""
    mark = node.metadata.annotations.get(ANNOTATION_CORDONED)
    return node.spec.unschedulable and mark is not None and not mark.endswith(_LIFTED)
