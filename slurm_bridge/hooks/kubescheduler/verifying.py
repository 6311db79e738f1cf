"""An allocation looked at again: each pod on its node, beside all that run there and all that come with it."""

import collections
from collections.abc import Iterable, Mapping, Sequence

from slurm_bridge.hooks import classes
from slurm_bridge.hooks.facts import NodeFacts
from slurm_bridge.hooks.kubescheduler import filtering
from slurm_bridge.hooks.kubescheduler.filtering import Predicates, Said
from slurm_bridge.hooks.kubescheduler.scene import Scene, with_pods
from slurm_bridge.model.pod import Pod

GONE = "the node is gone from Kubernetes"

_Facts = Mapping[str, NodeFacts]


def wrong(
    scene: Scene, facts: _Facts, pods: Iterable[Pod], nodes: Mapping[str, str], predicates: Predicates
) -> Mapping[str, Said]:
    """The nodes that cannot take who is to come there, each with the reasons; `nodes` are by the pods' uids.

    `scene` is that of the cluster as it is, for any pod.
    """
    coming: dict[str, list[Pod]] = collections.defaultdict(list)
    for pod in pods:
        if pod.uid in nodes:
            coming[nodes[pod.uid]].append(pod)
    placed = {name: _with(facts[name], there) for name, there in coming.items() if name in facts}
    together = scene.at(placed)
    return {
        name: said for name, there in coming.items() if (said := _said(together, placed.get(name), there, predicates))
    }


def _with(facts: NodeFacts, coming: Sequence[Pod]) -> NodeFacts:
    """The node when they have come; who counts there already is counted once."""
    there = {pod.uid: pod for pod in (*coming, *facts.pods)}
    return with_pods(facts, there.values())


def _said(together: Scene, facts: NodeFacts | None, coming: Sequence[Pod], predicates: Predicates) -> Said:
    """Of equal pods on one node it is enough to ask about one: whether it can come when all others are there."""
    if facts is None:
        return (GONE,)
    for pod in {classes.key(pod): pod for pod in coming}.values():
        without = with_pods(facts, (one for one in facts.pods if one.uid != pod.uid))
        alone = together.of(pod).at({facts.name: without})
        if said := filtering.reasons_at(alone, facts.name, predicates):
            return said
    return ()
