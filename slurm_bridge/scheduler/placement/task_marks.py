"""What a binding tells a pod of its task: the annotations from which Slurm's environment in its containers is made."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

from slurm_bridge.model import hostlist, names
from slurm_bridge.model.job import NodeShare
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.placement import ranks, slots
from slurm_bridge.scheduler.placement.checks import Spot
from slurm_bridge.scheduler.state import DesiredJob
from slurm_bridge.scheduler.workload_pods import slurm_node_of
from slurm_bridge.translate import gres

#: Each pod of a gang carries the list of nodes.
MOST_NODE_LIST: Final = 4096
#: The longest name in DNS.
MOST_MASTER: Final = 253

#: The annotations of each pod, by its uid.
TaskMarks = Mapping[str, Mapping[str, str]]


def of(ctx: SchedulerContext, desired: DesiredJob, spots: Sequence[Spot], read: Placeholder) -> TaskMarks:
    """Of each pod that is about to be bound; none where the environment is not asked for."""
    if desired.translated.hints.get(names.ENVIRONMENT, "false") == "false" or read.view is None:
        return {}
    found = slots.held(read.view, ctx)
    shares = () if isinstance(found, Reject) else tuple(itertools.chain.from_iterable(found))
    listed = tuple(dict.fromkeys(share.node for share in shares)) or read.view.nodes or ()
    return _of_pods(desired.workload.pods, spots, listed, shares, records.places_of(read.owner), ctx)


def _of_pods(
    pods: Sequence[Pod],
    spots: Sequence[Spot],
    listed: Sequence[str],
    shares: Sequence[NodeShare],
    places: int,
    ctx: SchedulerContext,
) -> TaskMarks:
    coming = {spot.pod.uid: spot.slurm_name for spot in spots}
    nodes = {pod.uid: coming.get(pod.uid) or slurm_node_of(pod) or "" for pod in pods}
    tasks = max(places, len(pods))
    rank, local = ranks.ranks(pods, tasks), ranks.local_ranks(pods, nodes)
    devices = {share.node: _devices(share) for share in shares}
    number = {node: place for place, node in enumerate(listed)}
    of_job = _of_job(listed, tasks, _master(pods, spots, rank, ctx) if tasks > 1 else "localhost")
    return {
        uid: of_job
        | {
            names.ANNOTATION_RANK: str(rank[uid]),
            names.ANNOTATION_NODE_NUMBER: str(number.get(node, 0)),
            names.ANNOTATION_LOCAL_RANK: str(local[uid]),
        }
        | ({names.ANNOTATION_DEVICES: devices[node]} if devices.get(node) else {})
        for uid, node in coming.items()
    }


def _devices(share: NodeShare) -> str:
    counted = [one for one in share.gres if one.count]
    return share.devices or (gres.write(counted) if counted else "")


def _of_job(listed: Sequence[str], tasks: int, master: str) -> dict[str, str]:
    """What all its pods are told alike."""
    text = hostlist.in_order(listed)
    short = len(text) <= MOST_NODE_LIST
    return {
        names.ANNOTATION_NODE_LIST if short else names.ANNOTATION_LEFT_OUT: text if short else "nodelist",
        names.ANNOTATION_NODE_COUNT: str(len(listed)),
        names.ANNOTATION_TASK_COUNT: str(tasks),
        names.ANNOTATION_MASTER: master,
    }


def _master(pods: Sequence[Pod], spots: Sequence[Spot], rank: Mapping[str, int], ctx: SchedulerContext) -> str:
    """Where the member of rank 0 is reached; while it is missing, what the others were told."""
    first = min(pods, key=lambda pod: rank[pod.uid])
    told = (pod.metadata.annotations.get(names.ANNOTATION_MASTER, "") for pod in pods if pod.bound)
    earlier = next((text for text in told if 0 < len(text) <= MOST_MASTER), "")
    if rank[first.uid] != 0 and earlier:
        return earlier
    if first.spec.hostname and first.spec.subdomain:
        return f"{first.spec.hostname}.{first.spec.subdomain}"
    coming = next((spot.node for spot in spots if spot.pod.uid == first.uid), None)
    node = coming or ctx.node(first.spec.node_name)
    return node.node.address if node is not None else first.spec.node_name
