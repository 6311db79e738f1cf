"""What other workloads keep of the cluster, for hooks that count it: those with a job in Slurm, or with pods on nodes.

Who they are is taken from the pods alone: what only their owners say, such as a queue, is not looked up for each.
"""

import collections
from collections.abc import Callable, Iterator

from slurm_bridge.explain.asking import Asked
from slurm_bridge.explain.looking import Sides
from slurm_bridge.hooks import chain
from slurm_bridge.hooks.held import Held
from slurm_bridge.model import kinds, names
from slurm_bridge.model.job import Phase
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root, Source, Workload
from slurm_bridge.translate import translator
from slurm_bridge.translate.translator import Translated


def restore(asked: Asked, sides: Sides, claim: Callable[[Pod], Root]) -> None:
    """Tell the hooks; nobody is looked for where none of them wants to know."""
    if asked.means.chain.restores:
        asked.means.chain.restore(tuple(_held(asked, sides, claim)), fresh=True)


def _held(asked: Asked, sides: Sides, claim: Callable[[Pod], Root]) -> Iterator[Held]:
    waiting = {
        view.owner.uid
        for view in sides.slurm.jobs()
        if view.owner is not None and view.state.phase in (Phase.PENDING, Phase.STARTING)
    }
    crews: dict[Root, list[Pod]] = collections.defaultdict(list)
    for pod in sides.cluster.list(kinds.PODS).items:
        ours = pod.bound and names.LABEL_JOB_ID in pod.metadata.labels
        if pod.terminal or not (ours or waiting):
            continue
        root = claim(pod)
        if (ours or root.uid in waiting) and root.uid != asked.workload.root.uid:
            crews[root].append(pod)
    for root, pods in crews.items():
        workload = Workload(root=root, pods=tuple(pods), sources=(_says(pods[0]),), job_name=root.name)
        translated = translator.translate(workload, asked.means.rules)
        if isinstance(translated, Translated):
            yield Held(ask=chain.asked(workload, translated), started=root.uid not in waiting)


def _says(pod: Pod) -> Source:
    return Source(kind=kinds.PODS.kind, name=pod.metadata.name, annotations=pod.metadata.annotations)
