"""From the members of a gang to its workload: not before the minimum is there, and in the order of their ranks."""

import dataclasses
from collections.abc import Callable
from typing import Final

from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Deadline, Gang, MemberLost, Root, Source, Workload
from slurm_bridge.workloads import ranks, voices
from slurm_bridge.workloads.given import Given, Members

INCOMPLETE: Final = "GangIncomplete"
MISSING: Final = "GroupMissing"

#: How soon a minimum is looked at again that falls while members end: no change of any pod announces that.
PROGRESS: Final = 5.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GangPlan:
    """What a kind knows of a gang before it looks at each member.

    `called` is what people call it, `sources` the voices for a first member, `lost` what the kind does about a member
    that is lost, `retry_after` for a minimum that may fall.
    """

    called: str
    job_name: str
    minimum: int
    sources: Callable[[Pod], tuple[Source, ...]]
    size: int | None = None
    controller: Root | None = None
    suspended: str = ""
    lost: MemberLost = MemberLost.KEEP
    retry_after: float | None = None
    deadline: Deadline | None = None


def whole(root: Root, plan: GangPlan, members: Members, given: Given) -> Workload | Wait:
    """The workload, or who is missing: found out by counting, so that thousands may come one by one."""
    least = 1 if plan.suspended or given.started else plan.minimum
    if len(members) < least:
        return _incomplete(plan, len(members))
    pods = tuple(sorted(members.all(), key=ranks.rank))
    if len(pods) < least:
        # Some went while we looked.
        return _incomplete(plan, len(pods))
    sources = plan.sources(pods[0])
    lost = voices.member_lost(sources, given.options.member_lost or plan.lost)
    return Workload(
        root=root,
        pods=pods,
        sources=sources,
        job_name=plan.job_name,
        controller=plan.controller or voices.controller(pods[0]),
        gang=Gang(minimum=plan.minimum, size=plan.size, member_lost=lost),
        suspended=plan.suspended,
        deadline=plan.deadline,
    )


def rest(root: Root, members: Members, given: Given) -> Workload | Wait:
    """The members of a gang that has started and would be grouped otherwise today."""
    chain = given.owners.resolve(members.any())
    plan = GangPlan(
        called=str(root),
        job_name=root.name,
        minimum=1,
        sources=lambda first: (voices.own(first), *voices.above(chain)),
        suspended=voices.suspended(chain),
    )
    return whole(root, plan, members, given)


def _incomplete(plan: GangPlan, there: int) -> Wait:
    are = "is" if there == 1 else "are"
    message = f"{there} of {plan.minimum} pods of {plan.called} {are} there"
    return Wait(reason=INCOMPLETE, message=message, retry_after=plan.retry_after)


def missing(root: Root) -> Wait:
    """The object that groups the pods is not there, or has not been heard of yet: its appearance wakes them."""
    return Wait(reason=MISSING, message=f"{root}, which the pods name, does not exist")
