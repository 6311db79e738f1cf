"""The rank of each member among the tasks of its job, and among those on its node, as its program sees them.

    bound      it keeps the number that its binding has written
    indexed    its index in its Job or group, where no two members have the same and all are below the number of tasks
    others     the first free number behind the member before it, in rank order; where there is none, the first free one

So ranks are the same whenever they are worked out, no two members of a running gang have the same, and a member that
is made again gets the number of the one that it replaces, as far as the order of the members tells which one that is.
"""

import itertools
from collections.abc import Collection, Mapping, Sequence

from slurm_bridge.model import names
from slurm_bridge.model.pod import Pod
from slurm_bridge.workloads import gangs, voices


def ranks(pods: Sequence[Pod], tasks: int) -> dict[str, int]:
    """By uid, for pods in rank order."""
    indices = {pod.uid: index for pod in pods if (index := gangs.index_of(pod)) is not None}
    apart = len(set(indices.values())) == len(pods) and max(indices.values(), default=tasks) < tasks
    return _numbered(pods, names.ANNOTATION_RANK, indices if apart else {}, tasks)


def local_ranks(pods: Sequence[Pod], nodes: Mapping[str, str]) -> dict[str, int]:
    """Likewise among the pods on each node; `nodes` are the pods' nodes by uid."""
    on: dict[str, list[Pod]] = {}
    for pod in pods:
        on.setdefault(nodes[pod.uid], []).append(pod)
    found: dict[str, int] = {}
    for there in on.values():
        found |= _numbered(there, names.ANNOTATION_LOCAL_RANK, {}, len(there))
    return found


def _numbered(pods: Sequence[Pod], key: str, wanted: Mapping[str, int], count: int) -> dict[str, int]:
    """A number for each pod: the one that is written, the wanted one if it is free, else the next free one."""
    found: dict[str, int] = {}
    taken: set[int] = set()

    def take(pod: Pod, number: int | None) -> None:
        if number is not None and number not in taken:
            taken.add(number)
            found[pod.uid] = number

    for pod in pods:
        take(pod, voices.number(pod.metadata.annotations.get(key)) if pod.bound else None)
    for pod in pods:
        if pod.uid not in found:
            take(pod, wanted.get(pod.uid))
    before = -1
    for pod in pods:
        if pod.uid not in found:
            behind = _free(taken, before + 1)
            take(pod, behind if behind < count else _free(taken, 0))
        before = found[pod.uid]
    return found


def _free(taken: Collection[int], first: int) -> int:
    return next(number for number in itertools.count(first) if number not in taken)
