"""What other workloads keep of the cluster, for hooks that count it: those with a job in Slurm, or with pods on nodes.

As for the daemon, their owners speak for them, too: the queue of a Job may be said on the Job.
"""

import collections
import dataclasses
from collections.abc import Callable, Iterator, Sequence

from slurm_bridge.explain.asking import Asked
from slurm_bridge.explain.looking import Sides
from slurm_bridge.hooks import chain
from slurm_bridge.hooks.lifecycle import ActiveUsage
from slurm_bridge.model import kinds, names
from slurm_bridge.model.job import Phase
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root, Source, Workload
from slurm_bridge.scheduler import census
from slurm_bridge.translate import translator
from slurm_bridge.translate.translator import Translated


def _unknown(_root: Root, _pods: Sequence[Pod]) -> Workload | None:
    """Nobody has looked at owners."""
    return None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """`claim` says to which workload any other pod belongs, `whole` what that is; None where its pods speak alone."""

    claim: Callable[[Pod], Root] = census.alone
    whole: Callable[[Root, Sequence[Pod]], Workload | None] = _unknown


#: Each pod is a workload of its own, and nobody else speaks for it.
ALONE = Others()


def restore(asked: Asked, sides: Sides, others: Others) -> None:
    """Tell the hooks; nobody is looked for where none of them wants to know."""
    if asked.means.chain.restores:
        asked.means.chain.restore(tuple(_held(asked, sides, others)), fresh=True)


def _held(asked: Asked, sides: Sides, others: Others) -> Iterator[ActiveUsage]:
    waiting = {
        view.owner.key
        for view in sides.slurm.jobs()
        if view.owner is not None and view.state.phase in (Phase.PENDING, Phase.STARTING)
    }
    crews: dict[Root, list[Pod]] = collections.defaultdict(list)
    for pod in sides.cluster.list(kinds.PODS).items:
        ours = pod.bound and names.LABEL_JOB_ID in pod.metadata.labels
        if pod.terminal or not (ours or waiting):
            continue
        root = others.claim(pod)
        if (ours or root.key in waiting) and root.key != asked.workload.root.key:
            crews[root].append(pod)
    for root, pods in crews.items():
        workload = others.whole(root, pods) or _by_themselves(root, pods)
        translated = translator.translate(workload, asked.means.rules)
        if isinstance(translated, Translated):
            yield ActiveUsage(ask=chain.asked(workload, translated), started=root.key not in waiting)


def _by_themselves(root: Root, pods: Sequence[Pod]) -> Workload:
    """As far as its pods say."""
    said = Source(kind=kinds.PODS.kind, name=pods[0].metadata.name, annotations=pods[0].metadata.annotations)
    return Workload(root=root, pods=tuple(pods), sources=(said,), job_name=root.name)
