"""How pods become the workload that they belong to.

A pod is claimed from memory, once and again when an object that it names changes. A workload is gathered when the
scheduler takes it from its queue; that may read an owner from the API server that no watch has delivered yet.
"""

import dataclasses
from typing import Any, Final

from slurm_bridge import errors
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.workloads import gangs, kind_table, voices
from slurm_bridge.workloads.given import Given, Members
from slurm_bridge.workloads.kind_spec import KindSpec
from slurm_bridge.workloads.kinds import pod
from slurm_bridge.workloads.known import Known, Options

#: Seconds, where the server names no time of its own.
RETRY_AFTER: Final = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class Moved:
    """By what is known now, the pods belong to this other workload."""

    root: Root


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadObject:
    """The object that makes or groups the pods of a workload."""

    kind: Kind[Any]
    object: Object


def handles(pod: Pod) -> tuple[str, ...]:
    """The names of all objects in the pod's namespace whose change may change the workload of the pod.

    They follow from the pod alone, so an index by these names finds the pod again whatever is known by then.
    """
    owners = (reference.name for reference in pod.metadata.owner_references)
    return tuple(dict.fromkeys((*owners, *(name for kind in kind_table.KINDS for name in kind.handles(pod)))))


def claim(pod: Pod, known: Known, options: Options) -> Root:
    """The workload that this pod belongs to, by what is known now."""
    return _claimed(pod, known, options)[0]


def gather(root: Root, members: Members, given: Given, *, started: bool = False) -> Workload | Wait | Moved | None:
    """The whole workload. Wait: it is incomplete, or an owner cannot be read. None: it has no members.

    `started`: some members have nodes. The members stay together whatever has become known since, in any number.
    """
    if given.started != started:
        given = dataclasses.replace(given, started=started)
    try:
        first = members.any()
    except LookupError:
        return None
    try:
        return _recorded(_gathered(root, members, first, given), given)
    except errors.TryLater as error:
        message = f"the owners of pod {first.metadata.name} could not be read: {error}"
        return Wait(reason="OwnerUnreadable", message=message, retry_after=error.retry_after or RETRY_AFTER)


def subject(root: Root, known: Known) -> WorkloadObject | None:
    """The object behind this workload, None when the workload is a pod or a mere name, or the object is gone."""
    uid, _, _ = root.uid.partition(":")
    for kind in kind_table.SPECS:
        found = known.find(kind, root.namespace, root.name) if kind.kind == root.kind else None
        if found is not None and found.uid == uid:
            return WorkloadObject(kind=kind, object=found)
    return None


def _recorded(found: Workload | Wait | Moved, given: Given) -> Workload | Wait | Moved:
    """With the users that created the objects above the pods, where records of these count."""
    if given.options.creators and isinstance(found, Workload):
        return dataclasses.replace(found, creators=voices.creators(found, given.owners))
    return found


def _gathered(root: Root, members: Members, first: Pod, given: Given) -> Workload | Wait | Moved:
    claimed, kind = _claimed(first, given.known, given.options)
    if claimed.key != root.key:
        if not given.started:
            return _elsewhere(root, claimed, first, given)
        # A workload that has started stays as it is, although its pods would be grouped otherwise today.
        return pod.gather(root, members, given) if root.kind == pod.SPEC.name else gangs.rest(root, members, given)
    try:
        found = kind.gather(root, members, given)
    except LookupError:
        # The last member was deleted meanwhile; that event wakes the scheduler.
        return Wait(reason=gangs.INCOMPLETE, message=f"no pod of {root} is there")
    # An owner that was read meanwhile may group the pods otherwise.
    better = claim(first, given.known, given.options)
    same = better.key == root.key or given.started
    return found if same else _elsewhere(root, better, first, given)


def _elsewhere(root: Root, claimed: Root, first: Pod, given: Given) -> Wait | Moved:
    """The pods belong to another workload; but where their owner was deleted, they are about to be deleted, too."""
    if not given.owners.resolve(first).gone:
        return Moved(claimed)
    message = f"an owner of pod {first.metadata.name} of {root} has been deleted; the pod will be deleted too"
    return Wait(reason="OwnerGone", message=message, retry_after=RETRY_AFTER)


def _claimed(claimed: Pod, known: Known, options: Options) -> tuple[Root, KindSpec]:
    for kind in kind_table.KINDS:
        found = kind.claim(claimed, known, options)
        if found is not None:
            return found, kind
    raise AssertionError(f"no kind claims pod {claimed.key}, although the last one claims every pod")
