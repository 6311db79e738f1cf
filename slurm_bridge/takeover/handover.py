"""The whole of a handover: refuse while a bridge acts, plan, and carry out."""

import dataclasses
from collections.abc import Callable

from slurm_bridge import errors, ports
from slurm_bridge.runtime import hands, progress
from slurm_bridge.runtime.progress import Progress
from slurm_bridge.takeover import backward, forward, locks, report, servers, steps
from slurm_bridge.takeover.execution import Execution
from slurm_bridge.takeover.servers import JobRecords
from slurm_bridge.takeover.steps import HandoverStep, OurNames


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HandoverOrder:
    """What to do. `lease` is that of our daemon. `every` lists each step, `force` asks for no acting bridge.

    `each` does several groups of steps at once, or one after the other. `told` hears of each step.
    """

    names: OurNames
    lease: tuple[str, str]
    back: bool = False
    apply: bool = False
    every: bool = False
    force: bool = False
    each: hands.Each = hands.in_turn
    told: Progress = progress.silent


def run(
    order: HandoverOrder, cluster: ports.Cluster, slurm: JobRecords, clock: ports.Clock, tell: Callable[[str], None]
) -> int:
    """Plan it, carry it out where that is ordered, and tell it line by line; BadConfiguration while a bridge acts.

    The exit status: CLEAR, or REMAINS where objects are left alone or steps could not be done.
    """
    if not order.force:
        _refuse(locks.acting(cluster, clock, order.lease, order.names.scheduler_names))
    scenery = servers.read(cluster, slurm)
    plan = (backward if order.back else forward).plan(scenery, order.names)
    every = [step for group in plan.groups for step in group]
    width = max((len(steps.subject(one)) for one in every), default=0)
    done: list[HandoverStep] = []

    def told(step: HandoverStep) -> None:
        done.append(step)
        order.told(len(done), len(every), steps.subject(step))
        if order.every:
            tell(f"{steps.subject(step):{width}}  {step.does}")

    if order.apply:
        failed = Execution(cluster, slurm, told, order.each).run(plan)
        _tell(tell, [*report.counted(done, "DONE"), *report.left(failed, "NOT DONE")])
    else:
        failed = ()
        for step in every:
            told(step)
        _tell(tell, report.counted(every, "TO DO"))
    _tell(tell, report.left(plan.left, "LEFT ALONE"))
    return report.REMAINS if plan.left or failed else report.CLEAR


def _tell(tell: Callable[[str], None], lines: list[str]) -> None:
    for line in lines:
        tell(line)


def _refuse(found: list[str]) -> None:
    if found:
        raise errors.BadConfiguration(
            "\n".join(
                [
                    "a bridge acts on these jobs and pods:",
                    *(f"  {one}" for one in found),
                    "stop both bridges (scale their Deployments to 0), or add --force if they are others",
                ]
            )
        )
