"""The workload of a gang: made when the minimum of members is there, with the members in the order of their ranks."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any, Final

from slurm_bridge.model import names
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Deadline, Gang, MemberLost, Root, Source, Workload
from slurm_bridge.workloads import voices
from slurm_bridge.workloads.given import Given, Members
from slurm_bridge.workloads.known import Known

INCOMPLETE: Final = "GangIncomplete"
MISSING: Final = "GroupMissing"

#: Sorts members, in the order of the parts that `rank` names.
Rank = tuple[int, int, int, str]

#: Sorts behind every number.
_NO_NUMBER: Final = 2**31

_TRAILING: Final = re.compile(r"-([0-9]{1,9})$")

#: Seconds until a gang is gathered again whose minimum falls as members end: no event of a pod announces that.
PROGRESS: Final = 5.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GangPlan:
    """What a kind knows of a gang without looking at each member.

    `called` names the gang in messages, `sources` are the objects whose annotations count, from the first member,
    `lost` is the policy of the kind for a lost member, `retry_after` is set where the minimum may fall. `topmost` is
    the highest controller, where the object of the gang makes its pods.
    """

    called: str
    job_name: str
    minimum: int
    sources: Callable[[Pod], tuple[Source, ...]]
    size: int | None = None
    controller: Root | None = None
    topmost: Root | None = None
    suspended: str = ""
    lost: MemberLost = MemberLost.KEEP
    retry_after: float | None = None
    deadline: Deadline | None = None


def whole(root: Root, plan: GangPlan, members: Members, given: Given) -> Workload | Wait:
    """The workload, or how many members are missing. A gang that is incomplete is counted, not looked through."""
    least = 1 if plan.suspended or given.started else plan.minimum
    if len(members) < least:
        return _incomplete(plan, len(members))
    pods = tuple(sorted(members.all(), key=rank))
    if len(pods) < least:
        # Some were deleted meanwhile.
        return _incomplete(plan, len(pods))
    sources = plan.sources(pods[0])
    lost = voices.member_lost(sources, given.options.member_lost or plan.lost)
    return Workload(
        root=root,
        pods=pods,
        sources=sources,
        job_name=plan.job_name,
        controller=plan.controller or voices.controller(pods[0]),
        topmost=plan.topmost,
        gang=Gang(minimum=plan.minimum, size=plan.size, member_lost=lost),
        suspended=plan.suspended,
        deadline=plan.deadline,
    )


def rest(root: Root, members: Members, given: Given) -> Workload | Wait:
    """The workload of a gang that has started, and whose members would be grouped otherwise today."""
    chain = given.owners.resolve(members.any())
    plan = GangPlan(
        called=str(root),
        job_name=root.name,
        minimum=1,
        sources=lambda first: (voices.own(first), *voices.above(chain)),
        suspended=voices.suspended(chain),
    )
    return whole(root, plan, members, given)


def rank(pod: Pod) -> Rank:
    """The Job's place in the JobSet, the index in the Job or group, the number at the end of the name, the name.

    The order in which the programs of the members count themselves.
    """
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    job = labels.get(names.LABEL_JOBSET_GLOBAL_INDEX)
    within = labels.get(names.LABEL_LWS_WORKER) or annotations.get(names.ANNOTATION_COMPLETION_INDEX)
    trailing = _TRAILING.search(pod.metadata.name)
    number = int(trailing.group(1)) if trailing else _NO_NUMBER
    return _number(job), _number(within), number, pod.metadata.name


def index_of(pod: Pod) -> int | None:
    """Its place among the members of its Job or group, where a controller counts them."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    return voices.number(labels.get(names.LABEL_LWS_WORKER) or annotations.get(names.ANNOTATION_COMPLETION_INDEX))


def _number(text: str | None) -> int:
    # Most pods have no such label, and every look at a gang asks for both.
    found = voices.number(text) if text else None
    return _NO_NUMBER if found is None else found


def _incomplete(plan: GangPlan, there: int) -> Wait:
    are = "is" if there == 1 else "are"
    message = f"{there} of {plan.minimum} pods of {plan.called} {are} there"
    return Wait(reason=INCOMPLETE, message=message, retry_after=plan.retry_after)


def named(kind: Kind[Any], name: str, pod: Pod, known: Known) -> Root | None:
    """The group that a pod names, whether or not it exists; None where it names none, or the server has none."""
    namespace = pod.metadata.namespace
    if not name or not known.served(kind):
        return None
    group = known.find(kind, namespace, name)
    # Several kinds have this name; all of them may be in one cluster.
    uid = group.uid if group is not None else f"{kind.kind}.{kind.group}:{namespace}/{name}"
    return Root(kind=kind.kind, namespace=namespace, name=name, uid=uid)


def missing(root: Root) -> Wait:
    """The object that groups the pods does not exist or was not delivered yet; its arrival wakes the workload."""
    return Wait(reason=MISSING, message=f"{root}, which the pods name, does not exist")
