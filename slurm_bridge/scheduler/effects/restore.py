"""A slurmctld that crashes forgets the jobs of its last seconds, and with them the nodes of pods that run there.

Such pods have done nothing wrong and their nodes are still their own in all but Slurm's memory: the same job is asked
for again, under the same id and pinned to those nodes.

    granted the nodes          all is as it was
    not granted for a while    another job has them: the pods are ended, as if their job had been
    refused                    likewise

Where ids cannot be chosen the pods would name another job than they have; there the job counts as ended.
"""

import dataclasses

from loguru import logger

from slurm_bridge.hooks import emitter
from slurm_bridge.mirror import readings
from slurm_bridge.model.job import Done, JobRequest, Refusal, Refused, Unknown
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.scheduler import workload_pods
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.effects import end
from slurm_bridge.scheduler.effects.cancel import withdraw
from slurm_bridge.scheduler.effects.exclusive import as_submitted
from slurm_bridge.scheduler.queue import AT_ONCE, Filed
from slurm_bridge.scheduler.state import DesiredJob
from slurm_bridge.scheduler.workload_pods import WorkloadPods
from slurm_bridge.translate import limits
from slurm_bridge.translate.translator import Translated

#: Fields of the lost job that hooks, defaults and Slurm itself had a say in.
AS_SHOWN = ("partition", "account", "qos", "user", "time_limit_minutes")
#: How long the old node may take to be granted again. The pod is there and fits, whatever Slurm has counted meanwhile:
#: there is no hurry to end it.
PATIENCE = 600.0


def restore(ctx: SchedulerContext, desired: DesiredJob, placeholder: Placeholder, members: WorkloadPods) -> Filed:
    """Ask for the same job again."""
    pod = desired.workload.lead
    request = _request(ctx, desired, placeholder)
    if request is None:
        return end.doubt(ctx, members, placeholder)
    outcome = ctx.slurm.submit(request)
    if isinstance(outcome, Done):
        ctx.states.begin_regaining(members.root.key)
        ctx.table.put(readings.submitted(outcome.job_id, request.owner, ctx.clock.now()), tell=False)
        ctx.mirror.nudge()
        text = f"Slurm has forgotten job {outcome.job_id}; it is submitted again for the nodes of its pods"
        ctx.status.group(desired.workload, "SlurmJobRestored", text, warning=True)
        logger.bind(workload="/".join(pod.key)).warning(text)
        return Filed(after=PATIENCE)
    return _not_yet(ctx, members, placeholder, outcome)


def _not_yet(
    ctx: SchedulerContext, members: WorkloadPods, placeholder: Placeholder, outcome: Refused | Unknown
) -> Filed:
    if isinstance(outcome, Unknown) or outcome.why is Refusal.BUSY:
        return ctx.back_off(members.root.key)
    if outcome.why is Refusal.EXISTS:
        # By a submit of ours whose answer was lost, or Slurm has remembered: both are what is wanted.
        found = ctx.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
        if found is not None:
            return AT_ONCE
    logger.bind(workload=str(members.root)).warning("job cannot be restored: {}", outcome.message)
    return end.doubt(ctx, members, placeholder)


def _request(ctx: SchedulerContext, desired: DesiredJob, placeholder: Placeholder) -> JobRequest | None:
    """What the pods ask for, with what hooks and partitions made of it as Slurm last showed it.

    None where Slurm has not all nodes of the pods any more.
    """
    snapshot, view = ctx.keeper.snapshot(), placeholder.view
    facts = limits.SlurmFacts(
        partitions=snapshot.partitions,
        nodes=tuple(snapshot.slurm_nodes.values()),
        heterogeneous=placeholder.view is not None and placeholder.view.het_job_id is not None,
    )
    exclusive = as_submitted(ctx, desired, placeholder, snapshot)
    translated = dataclasses.replace(
        desired.translated, request=dataclasses.replace(desired.translated.request, exclusive=exclusive)
    )
    settled = limits.settle(translated, facts)
    asked = (settled if isinstance(settled, Translated) else translated).request
    shown = {field: getattr(view, field) for field in AS_SHOWN if getattr(view, field, None)}
    owner, job_id = placeholder.owner, placeholder.job_id
    parts = _nodes_of(desired, len(asked.components) + 1)
    found = [
        emitter.pinned(dataclasses.replace(one, **shown), snapshot, nodes)
        for one, nodes in zip((asked, *asked.components), parts, strict=True)
    ]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    first, *more = known
    return dataclasses.replace(first, owner=owner, job_id=job_id, components=tuple(more))


def pending(ctx: SchedulerContext, members: WorkloadPods, placeholder: Placeholder) -> Filed:
    """A job that pends again while its pods run: wait for their nodes, but not for ever."""
    ctx.states.begin_regaining(members.root.key)
    left = placeholder.since + PATIENCE - ctx.clock.now()
    if left > 0:
        return Filed(after=left)
    text = f"Slurm job {placeholder.job_id} was forgotten, and its nodes were not granted again"
    if not withdraw(ctx, placeholder, text):
        return Filed(after=ctx.pause(members.root.key))
    return end.end_all(ctx, members, placeholder, "LOST", text)


def _nodes_of(desired: DesiredJob, parts: int) -> list[tuple[str, ...]]:
    """Slurm's nodes that the pods are on: of each shape, or of all together."""
    groups = [shape.pods for shape in desired.translated.shapes]
    if parts != len(groups):
        groups = [desired.workload.pods]
    return [tuple(dict.fromkeys(workload_pods.slurm_node_of(pod) for pod in group)) for group in groups]
