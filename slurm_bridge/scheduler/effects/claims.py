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
from slurm_bridge.scheduler.effects import claim_writes
from slurm_bridge.scheduler.effects.claim_writes import ClaimWait
from slurm_bridge.scheduler.placement import claims
from slurm_bridge.scheduler.placement.checks import Spot
from slurm_bridge.scheduler.placement.claims import ClaimChooser, ClaimsFound, KeepVolume, Write
from slurm_bridge.scheduler.placement.misfit import ClaimsPending, Misfit

#: The kinds that are patched here; the access rules of the deployment are compared with it.
WRITTEN: Final = (kinds.PERSISTENTVOLUMECLAIMS, kinds.PERSISTENTVOLUMES)


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
        return _wait(ctx, found).write(found.writes, lambda one: _write(ctx, one))
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
    return _wait(ctx, found).pending(None) if waiting else None


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


def _wait(ctx: SchedulerContext, found: ClaimsFound) -> ClaimWait:
    return ClaimWait(
        ctx=ctx, waits=claims.WAITS, failed=claims.FAILED, nodes=found.waiting.values(), message=found.message
    )


def _write(ctx: SchedulerContext, write: Write) -> Misfit | bool:
    def patch() -> bool:
        if isinstance(write, KeepVolume):
            ctx.cluster.patch(kinds.PERSISTENTVOLUMES, write.volume, write.changes)
        else:
            ctx.cluster.patch(kinds.PERSISTENTVOLUMECLAIMS, write.claim, write.changes)
        return True

    return claim_writes.attempt(f"PersistentVolumeClaim {'/'.join(write.claim.key)}", claims.FAILED, patch)


def _chooser(ctx: SchedulerContext, read: Placeholder) -> ClaimChooser:
    def lives(job_id: JobId) -> bool:
        known = ctx.table.get(job_id)
        return known is not None and known.alive

    return ClaimChooser(cluster=read.owner.cluster, job_id=read.job_id, lives=lives)
