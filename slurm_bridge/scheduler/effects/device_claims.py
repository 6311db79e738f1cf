"""ResourceClaims of pods that Slurm has given nodes to: they get the devices of the allocation.

    1 look     which devices each claim gets (`placement.device_claims`), one allocation at a time
    2 make     claims for pods that ask by extended resources; those that are not needed any more are deleted
    3 write    a finalizer, then the status: each with the version that was looked at as a precondition
    4 wait     until the watch has told of all that was written; then the pods are bound

A restart finds on the claims what was written, and on the job what is to be written. Kubernetes' own controller takes
the devices back when the pods have ended; here only those of pods that got no node are.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.cluster.rules.devices import DeviceSight
from slurm_bridge.model import kinds
from slurm_bridge.model.devices import Consumer, ResourceClaim, group_of
from slurm_bridge.model.job import NodeShare, Phase
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.effects import claim_writes
from slurm_bridge.scheduler.effects.claim_writes import LOOK_AGAIN, MOST_WRITES, ClaimWait
from slurm_bridge.scheduler.placement import device_claims as placement
from slurm_bridge.scheduler.placement import slots
from slurm_bridge.scheduler.placement.checks import Spot
from slurm_bridge.scheduler.placement.claim_writes import (
    Allocate,
    DropClaim,
    MakeClaim,
    ReserveClaim,
    StatusWrite,
    TakeBack,
    Write,
)
from slurm_bridge.scheduler.placement.misfit import ClaimsPending, Misfit
from slurm_bridge.scheduler.placement.node_claims import FAILED, Holders
from slurm_bridge.scheduler.state import DesiredJob
from slurm_bridge.scheduler.workload_pods import PodState, WorkloadPods

#: The kinds that are patched here; the access rules of the deployment are compared with it.
WRITTEN: Final = (kinds.RESOURCECLAIMS,)
#: Why nodes are given back of pods that nothing can get devices for any more.
SWITCHED_OFF: Final = "no hook honours ResourceClaims any more, so those of this pod get no devices"
#: The API server drops the field without a word.
NOT_KEPT: Final = (
    "this cluster does not keep status.extendedResourceClaimStatus (feature gate DRAExtendedResource); "
    "ask the operators to switch it on, or ask for the devices by a ResourceClaim"
)


def settle(
    ctx: SchedulerContext, desired: DesiredJob, spots: tuple[Spot, ...], read: Placeholder
) -> Misfit | ClaimsPending | None:
    """Write what is to be written; None when every claim of these pods has its devices."""
    key = desired.workload.root.key
    sight = ctx.config.chain.devices(desired.workload.root.namespace)
    claiming = [spot.pod for spot in spots if placement.claims(spot.pod, sight)]
    if not claiming:
        return None
    if sight is None:
        return Misfit(reason=FAILED, message=SWITCHED_OFF)
    await_claims(ctx, key, claiming)
    given = _given(ctx, read)
    if isinstance(given, Misfit):
        return given
    with ctx.placing:
        asked, mates = desired.translated.devices, frozenset(pod.uid for pod in desired.workload.pods)
        nodes = dict.fromkeys(spot.node.name for spot in spots)
        try:
            found = placement.look(spots, given, asked, sight, holders(ctx, sight, nodes), mates)
        except errors.TryLater as problem:
            return _wait(ctx, nodes, str(problem)).pending(problem.retry_after or LOOK_AGAIN)
        _begin(ctx, found.writes[:MOST_WRITES])
    for name in found.others:
        ctx.claim_waiters.add(waiter(*name), key)
    if found.misfit is not None or not found.waiting:
        return found.misfit
    try:
        wait = _wait(ctx, found.waiting.values(), found.message)
        return wait.write(found.writes, lambda one: _write(ctx, one), soon=found.soon)
    finally:
        _end(ctx, found.writes[:MOST_WRITES])


def await_claims(ctx: SchedulerContext, key: WorkloadKey, pods: Iterable[Pod]) -> None:
    """A change of one of their claims wakes the workload, whatever pod it was made for."""
    sight = ctx.config.chain.devices()
    if sight is None:
        return
    for name in sorted({name for pod in pods for name in sight.names(pod)}):
        ctx.claim_waiters.add(waiter(*name), key)


def undo(ctx: SchedulerContext, pods: Iterable[Pod]) -> None:
    """Take back what these pods have got, as far as they have no node. What fails here is taken back later."""
    sight = ctx.config.chain.devices()
    if sight is None:
        return
    waiting = [pod for pod in pods if not pod.bound and placement.claims(pod, sight)]
    with ctx.placing:
        busy = ctx.device_writes.pending(sight.claim, ctx.clock.now()).busy
        found = [TakeBack(claim) for claim in _only_for(sight, waiting) if claim.uid not in busy][:MOST_WRITES]
        _begin(ctx, found)
    try:
        ctx.each(lambda one: _write(ctx, one), found)
    except errors.NotLeading:
        raise
    except errors.TryLater as problem:
        logger.info("ResourceClaims keep their devices for now: {}", problem)
    finally:
        _end(ctx, found)


def stranded(ctx: SchedulerContext, members: WorkloadPods) -> tuple[Pod, ...]:
    """Those without a node, where a claim of theirs is being deleted and has devices: nothing else would let it go."""
    sight = ctx.config.chain.devices()
    if sight is None:
        return ()
    waiting = tuple(pod for pod in members.pods(PodState.WANTING) if placement.claims(pod, sight))
    leaving = any(one.metadata.deletion_timestamp and one.held for one in _only_for(sight, waiting))
    return waiting if leaving else ()


def waiter(namespace: str, name: str) -> str:
    """Under which workloads wait for a claim."""
    return f"{kinds.RESOURCECLAIMS.kind} {namespace}/{name}"


def _only_for(sight: DeviceSight, pods: Sequence[Pod]) -> Iterator[ResourceClaim]:
    """Those of their claims that are reserved for none but these pods."""
    uids = {pod.uid for pod in pods}
    for name in sorted({name for pod in pods for name in sight.names(pod)}):
        claim = sight.claim(*name)
        users = claim.status.reserved_for if claim is not None else ()
        if claim is not None and users and all(_pod(one) and one.uid in uids for one in users):
            yield claim


def _given(ctx: SchedulerContext, read: Placeholder) -> Mapping[str, NodeShare] | Misfit:
    """What the job has of each node."""
    if read.view is None:
        return {}
    found = slots.held(read.view, ctx)
    if isinstance(found, Reject):
        return Misfit(reason=found.reason, message=found.message)
    return {share.node: share for share in itertools.chain.from_iterable(found)}


def holders(ctx: SchedulerContext, sight: DeviceSight, nodes: Iterable[str]) -> Holders:
    """Of the devices of these nodes, also of those kept back, as the claims say, and as we have written since."""
    # Read first: what the watch tells of from here on is among the claims.
    pending = ctx.device_writes.pending(sight.claim, ctx.clock.now())
    there = (one for node in nodes for one in sight.all_on(node))
    # A claim that does not say which CPUs of a group it has may have any.
    found = ((one.id, sight.holder(one.id) or (sight.holder(group_of(one.id)) if one.cpu else None)) for one in there)
    of = {device: claim for device, claim in found if claim is not None}
    of.update(pending.devices)
    return Holders(
        of=of,
        left=lambda claim: _left(ctx, claim),
        busy=pending.busy,
        doubted=pending.doubted,
    )


def _left(ctx: SchedulerContext, claim: ResourceClaim) -> bool:
    """Its pods are ours, and have ended, or have no node and no job that runs: nothing is going to use what it has."""
    users = claim.status.reserved_for
    return bool(users) and all(_pod(user) and _waits(ctx, user.uid) for user in users)


def _pod(user: Consumer) -> bool:
    """Other groups may have pods of their own."""
    return user.resource == "pods" and not user.api_group


def _waits(ctx: SchedulerContext, uid: str) -> bool:
    pod, key = ctx.pod_index.get(uid), ctx.pod_index.root_of(uid)
    if pod is None or key is None or pod.bound:
        return pod is not None and pod.terminal
    return all(one.phase in (Phase.PENDING, Phase.ENDED) for one in ctx.table.of(key))


def _begin(ctx: SchedulerContext, writes: Iterable[Write]) -> None:
    """Every look from here on sees that these claims are being written."""
    for one in writes:
        if isinstance(one, StatusWrite):
            held = one.claim.held if isinstance(one, ReserveClaim) else ()
            held = tuple(device for _, device in one.devices) if isinstance(one, Allocate) else held
            ctx.device_writes.begin(one.claim, held)


def _end(ctx: SchedulerContext, writes: Iterable[Write]) -> None:
    """No call is under way any more, also of those that were not begun."""
    for one in writes:
        if isinstance(one, StatusWrite):
            ctx.device_writes.over(one.claim, ctx.clock.now())


def _wait(ctx: SchedulerContext, nodes: Iterable[str], message: str) -> ClaimWait:
    return ClaimWait(ctx=ctx, waits=placement.WAITS, failed=FAILED, nodes=nodes, message=message)


def _write(ctx: SchedulerContext, write: Write) -> Misfit | bool:
    if isinstance(write, MakeClaim | DropClaim):
        called = "the ResourceClaim for the extended resources of a pod"
        return claim_writes.attempt(called, FAILED, lambda: _remade(ctx, write))
    called = f"ResourceClaim {'/'.join(write.claim.key)}"
    return claim_writes.attempt(called, FAILED, lambda: _written(ctx, write))


def _written(ctx: SchedulerContext, write: StatusWrite) -> bool:
    """A conflict leaves open what has happened: an earlier write may stand, of which the watch will tell."""
    try:
        if isinstance(write, TakeBack):
            return _take_back(ctx, write)
        if isinstance(write, ReserveClaim):
            _share(ctx, write)
        else:
            _allocate(ctx, write)
    except errors.Conflict:
        raise
    except (errors.OperatorMustAct, errors.Disagreement):
        ctx.device_writes.failed(write.claim)
        raise
    return True


def _remade(ctx: SchedulerContext, write: MakeClaim | DropClaim) -> Misfit | bool:
    """The claim for a pod's extended resources. Its name is always the same: one that exists already is looked at."""
    pod = write.made.pod if isinstance(write, MakeClaim) else write.pod
    if isinstance(write, MakeClaim):
        if write.missing:
            ctx.cluster.create(kinds.RESOURCECLAIMS, pod.metadata.namespace, write.made.manifest)
    elif write.claim is not None:
        ctx.cluster.delete(kinds.RESOURCECLAIMS, write.claim, version=write.claim.metadata.resource_version)
    written = ctx.cluster.patch(kinds.PODS, pod, write.changes, "status")
    if isinstance(write, MakeClaim) and written.status.extended_resource_claim_status != write.made.status:
        logger.warning("{}", NOT_KEPT)
        return Misfit(reason=FAILED, message=NOT_KEPT)
    return True


def _allocate(ctx: SchedulerContext, write: Allocate) -> None:
    claim, protection = write.claim, write.protection
    if protection is not None:
        claim = ctx.cluster.patch(kinds.RESOURCECLAIMS, claim, protection)
        ctx.device_writes.protected(claim)
    changes = write.changes(claim.metadata.resource_version)
    ctx.cluster.patch(kinds.RESOURCECLAIMS, claim, changes, "status")
    ctx.device_writes.stands(claim)


def _share(ctx: SchedulerContext, write: ReserveClaim) -> None:
    ctx.cluster.patch(kinds.RESOURCECLAIMS, write.claim, write.changes, "status")
    ctx.device_writes.stands(write.claim)


def _take_back(ctx: SchedulerContext, write: TakeBack) -> bool:
    """Only after a look at the pods themselves: a binding of which no watch has told yet would be torn."""
    claim, unused = write.claim, False
    try:
        unused = all(_unused(ctx, claim, user) for user in claim.status.reserved_for)
    finally:
        if not unused:
            ctx.device_writes.failed(claim)
    if unused:
        ctx.cluster.patch(kinds.RESOURCECLAIMS, claim, write.changes, "status")
        ctx.device_writes.stands(claim)
    return unused


def _unused(ctx: SchedulerContext, claim: ResourceClaim, user: Consumer) -> bool:
    pod = ctx.cluster.get(kinds.PODS, claim.metadata.namespace, user.name)
    return pod is not None and pod.uid == user.uid and (pod.terminal or not pod.bound)
