"""What other workloads use of the cluster, for hooks that count it: those with a job in Slurm, or with pods on nodes.

Annotations of their owners count, as in the daemon: the queue of a Job may be set on the Job.
"""

import collections
import dataclasses
from collections.abc import Callable, Iterator, Sequence

from slurm_bridge.explain.cluster_view import Servers
from slurm_bridge.explain.context import Inquiry
from slurm_bridge.hooks import chain
from slurm_bridge.hooks.lifecycle import ActiveUsage
from slurm_bridge.model import kinds, names
from slurm_bridge.model.job import Phase
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root, Source, Workload
from slurm_bridge.scheduler import pod_index
from slurm_bridge.translate import translator
from slurm_bridge.translate.translator import Translated


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OtherWorkloads:
    """`claim` finds the workload of another pod; `whole` gathers it; None if only its pods count."""

    claim: Callable[[Pod], Root] = pod_index.alone
    whole: Callable[[Root, Sequence[Pod]], Workload | None] = lambda _root, _pods: None


#: Each pod is a workload of its own, without owners.
ALONE = OtherWorkloads()


def restore(inquiry: Inquiry, servers: Servers, others: OtherWorkloads) -> None:
    """Report the usage to the hooks; nothing is read unless a hook needs it."""
    if inquiry.means.chain.restores:
        inquiry.means.chain.restore(tuple(_held(inquiry, servers, others)), fresh=True)


def _held(inquiry: Inquiry, servers: Servers, others: OtherWorkloads) -> Iterator[ActiveUsage]:
    waiting = {
        view.owner.key
        for view in servers.slurm.jobs()
        if view.owner is not None and view.state.phase in (Phase.PENDING, Phase.STARTING)
    }
    crews: dict[Root, list[Pod]] = collections.defaultdict(list)
    for pod in servers.cluster.list(kinds.PODS).items:
        ours = pod.bound and names.LABEL_JOB_ID in pod.metadata.labels
        if pod.terminal or not (ours or waiting):
            continue
        root = others.claim(pod)
        if (ours or root.key in waiting) and root.key != inquiry.workload.root.key:
            crews[root].append(pod)
    for root, pods in crews.items():
        workload = others.whole(root, pods)
        if workload is None:
            # These pods alone, without owners.
            said = Source(kind=kinds.PODS.kind, name=pods[0].metadata.name, annotations=pods[0].metadata.annotations)
            workload = Workload(root=root, pods=tuple(pods), sources=(said,), job_name=root.name)
        translated = translator.translate(workload, inquiry.means.rules)
        if isinstance(translated, Translated):
            yield ActiveUsage(ask=chain.asked(workload, translated), started=root.key not in waiting)
