"""The steps of a handover: each is at most one write, and what it needs to be sure beforehand."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from slurm_bridge.model import names
from slurm_bridge.model.job import JobView, Phase
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.node import Node, Taint
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OurNames:
    """What is ours: the `cluster_id`, the scheduler names, and to which workload a pod belongs."""

    cluster_id: str
    scheduler_names: tuple[str, ...]
    claim: Callable[[Pod], Root]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scenery:
    """Both servers at one moment. `unreadable` are pods that exist and could not be read."""

    jobs: Sequence[JobView]
    pods: Sequence[Pod]
    nodes: Sequence[Node]
    unreadable: frozenset[tuple[str, str]] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AdoptJob:
    """Write our owner record into a running job of the other bridge."""

    job: JobView
    owner: Owner
    does = "write the owner record into a running job"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReturnJob:
    """Write the other bridge's record into a running job of ours."""

    job: JobView
    text: str
    does = "write the other bridge's record into a running job"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CancelJob:
    """Cancel a job that has no pod on a node: its pods are submitted anew. `owner`: first, our record with a note."""

    job: JobView
    pods: tuple[Pod, ...]
    owner: Owner | None = None
    does = "cancel a job that has no pod on a node"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChangePod:
    """Write or remove (None) labels and annotations, and leave out a finalizer, in one patch."""

    pod: Pod
    does: str
    labels: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    annotations: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    finalizers: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChangeNode:
    """Leave out the other bridge's taint."""

    node: Node
    taints: tuple[Taint, ...]
    does = "remove the taint from a node"


HandoverStep = AdoptJob | ReturnJob | CancelJob | ChangePod | ChangeNode


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeftAlone:
    """An object that is not touched, and why."""

    subject: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HandoverPlan:
    """`groups` of steps: within a group the next step is only right after the one before."""

    groups: tuple[tuple[HandoverStep, ...], ...]
    left: tuple[LeftAlone, ...]


def subject(step: HandoverStep) -> str:
    """The object that a step changes."""
    if isinstance(step, ChangePod):
        return f"pod {'/'.join(step.pod.key)}"
    if isinstance(step, ChangeNode):
        return f"node {step.node.metadata.name}"
    return f"job {step.job.job_id}"


#: A job in one of these phases holds nodes, or has held them a moment ago.
HOLDING = frozenset({Phase.STARTING, Phase.RUNNING, Phase.STOPPED})


def changed(
    pod: Pod,
    does: str,
    *,
    labels: Mapping[str, str | None] | None = None,
    annotations: Mapping[str, str | None] | None = None,
) -> ChangePod | None:
    """These labels and annotations, and no finalizer of the other bridge; None where the pod is so already."""
    meta = pod.metadata
    left = tuple(one for one in meta.finalizers if one != names.FINALIZER_OF_ANOTHER)
    new_labels = {key: text for key, text in (labels or {}).items() if meta.labels.get(key) != text}
    new_annotations = {key: text for key, text in (annotations or {}).items() if meta.annotations.get(key) != text}
    finalizers = left if left != meta.finalizers else None
    if not new_labels and not new_annotations and finalizers is None:
        return None
    return ChangePod(pod=pod, does=does, labels=new_labels, annotations=new_annotations, finalizers=finalizers)
