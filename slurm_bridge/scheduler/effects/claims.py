"""Claims of pods that Slurm has given nodes to: a node is selected for them, or a volume kept, until all are bound."""

from collections.abc import Iterable, Mapping
from typing import Final

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.cluster.rules import attachments
from slurm_bridge.cluster.rules.attachments import ClaimKey
from slurm_bridge.model import kinds
from slurm_bridge.model.names import JobId, WorkloadKey
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.placement import claims
from slurm_bridge.scheduler.placement.checks import Spot
from slurm_bridge.scheduler.placement.claims import ClaimChooser, ClaimsFound, KeepVolume, Write
from slurm_bridge.scheduler.placement.misfit import ClaimsPending, Misfit

#: The kinds that are patched here; the access rules of the deployment are compared with it.
WRITTEN: Final = (kinds.PERSISTENTVOLUMECLAIMS, kinds.PERSISTENTVOLUMES)
#: So many claims are written for one workload before others have their turn.
MOST_WRITES: Final = 100
#: After so many seconds it goes on, likewise with a claim or volume that changed under our hands.
LOOK_AGAIN: Final = 1.0
#: The same where the API server, or a webhook of it, did not serve the write: it may be out of order for all.
UNSERVED: Final = 10.0


def settle(
    ctx: SchedulerContext, key: WorkloadKey, spots: tuple[Spot, ...], read: Placeholder
) -> Misfit | ClaimsPending | None:
    """Write what is to be written; None when every claim of these pods is bound to a volume in reach.

    A change of one of the claims wakes the workload. A restart finds on the claims what was written.
    """
    storage = ctx.config.chain.storage
    if storage is None or not _awaited(ctx, key, spots):
        return None
    found = claims.look(spots, storage, ctx.keeper.snapshot().columns, _chooser(ctx, read))
    if found.misfit is None and found.waiting:
        return _wait(ctx, found)
    ctx.claim_waiters.drop(key)
    return found.misfit


def unread(ctx: SchedulerContext, key: WorkloadKey, spots: tuple[Spot, ...]) -> ClaimsPending | None:
    """Claims whose volume is not known yet. Two watches tell of them, and what is not known is not missing."""
    storage, waiting = ctx.config.chain.storage, dict[ClaimKey, str]()
    if storage is None:
        return None
    for name, node in _awaited(ctx, key, spots).items():
        claim = storage.claim(*name)
        named = claim.spec.volume_name if claim is not None and claim.status.phase != "Lost" else None
        if named and storage.volume(named) is None:
            waiting[name] = node
    found = ClaimsFound(waiting=waiting)
    return _pending(ctx, found, found.message, None) if waiting else None


def _awaited(ctx: SchedulerContext, key: WorkloadKey, spots: tuple[Spot, ...]) -> Mapping[ClaimKey, str]:
    """The claims of these pods with the nodes of these; before the look, so that what changes meanwhile wakes them."""
    used = {name: spot.node.name for spot in spots for name in attachments.claims(spot.pod)}
    for name in used:
        ctx.claim_waiters.add("/".join(name), key)
    return used


def undo(ctx: SchedulerContext, pods: Iterable[Pod], read: Placeholder) -> None:
    """Take back what this job has selected for claims that have no volume. What fails here is overwritten later."""
    storage = ctx.config.chain.storage
    if storage is None:
        return
    chooser = _chooser(ctx, read)
    for name in sorted({name for pod in pods for name in attachments.claims(pod)}):
        claim = storage.claim(*name)
        if claim is None or claim.spec.volume_name or not chooser.chose(claim):
            continue
        try:
            ctx.cluster.patch(kinds.PERSISTENTVOLUMECLAIMS, claim, claims.undone(claim))
        except errors.BridgeError as problem:
            logger.info("PersistentVolumeClaim {} keeps its selected node: {}", "/".join(name), problem)


def _wait(ctx: SchedulerContext, found: ClaimsFound) -> Misfit | ClaimsPending:
    """Write what there is to write; what could not be written is looked at again, and so is what is left."""
    try:
        results = ctx.each(lambda one: _write(ctx, one), found.writes[:MOST_WRITES])
    except errors.NotLeading:
        raise
    except errors.TryLater as problem:
        logger.info("claims are written later: {}", problem)
        pause = max(UNSERVED, problem.retry_after or 0.0)
        return _pending(ctx, found, f"{found.message}; not written yet: {problem}", pause)
    misfit = next((one for one in results if isinstance(one, Misfit)), None)
    again = not all(results) or len(found.writes) > MOST_WRITES
    return misfit or _pending(ctx, found, found.message, LOOK_AGAIN if again else None)


def _pending(ctx: SchedulerContext, found: ClaimsFound, message: str, after: float | None) -> ClaimsPending:
    return ClaimsPending.at(
        found.waiting.values(),
        waits=claims.WAITS,
        failed=claims.FAILED,
        message=message,
        retry_after=after,
        patience=ctx.limits.volume_seconds,
    )


def _write(ctx: SchedulerContext, write: Write) -> Misfit | bool:
    """Whether it is written."""
    name = "/".join(write.claim.key)
    try:
        if isinstance(write, KeepVolume):
            ctx.cluster.patch(kinds.PERSISTENTVOLUMES, write.volume, write.changes)
        else:
            ctx.cluster.patch(kinds.PERSISTENTVOLUMECLAIMS, write.claim, write.changes)
    except (errors.Conflict, errors.NotFound) as problem:
        logger.info("PersistentVolumeClaim {} is looked at again: {}", name, problem)
        return False
    except (errors.OperatorMustAct, errors.Disagreement) as problem:
        return Misfit(reason=claims.FAILED, message=f"PersistentVolumeClaim {name} cannot be bound: {problem}")
    return True


def _chooser(ctx: SchedulerContext, read: Placeholder) -> ClaimChooser:
    def lives(job_id: JobId) -> bool:
        known = ctx.table.get(job_id)
        return known is not None and known.alive

    return ClaimChooser(cluster=read.owner.cluster, job_id=read.job_id, lives=lives)
