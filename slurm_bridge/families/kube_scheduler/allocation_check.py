"""An allocation looked at again: each pod on its node, beside all that run there and all that come with it.

    1 stands   what was said of such pods before still holds, there is room, and rules that what runs has a say in
               have nothing against it
    2 wrong    whatever is not as plain as that: every predicate is asked about each node, and says what is wrong

The first is what nearly every pod goes through, and costs a fraction of the second; it never lets a pod pass that the
second would stop.
"""

import collections
import dataclasses
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from slurm_bridge.cluster.columns.coded import units, units_given
from slurm_bridge.cluster.facts import NOTHING, NodeFacts
from slurm_bridge.families.kube_scheduler import classes, filters
from slurm_bridge.families.kube_scheduler.filters import Predicates, Said
from slurm_bridge.families.kube_scheduler.predicates.base import Predicate
from slurm_bridge.families.kube_scheduler.scene import Scene, with_pods
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate import resources

GONE = "the node is gone from Kubernetes"

_Facts = Mapping[str, NodeFacts]

_NOT_COMING: Mapping[str, Sequence[Pod]] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class PodStanding:
    """What holds of such a pod: the nodes that it is denied whatever runs, and the rules to be asked all the same."""

    denied: Container[str]
    asked: Predicates


#: None: nothing holds that could be built upon.
StandingOf = Callable[[Pod], PodStanding | None]


def stands(
    seen: Callable[[], Scene], facts: _Facts, pods: Iterable[Pod], nodes: Mapping[str, str], standing: StandingOf
) -> bool:
    """Nothing is wrong, as can be seen at a glance; where it cannot, `wrong` has to look. `seen` is the scene there.

    It is made where a rule is asked: for most pods the columns of this moment would be of no use.
    """
    pods = tuple(pods)
    coming, known = _coming(pods, nodes), dict[bytes, PodStanding | None]()
    asked: dict[str, Predicate] = {}
    for name, there in coming.items():
        if name not in facts:
            return False
        # Of equal pods on one node it is enough to ask about one.
        for key, pod in {classes.key(pod): pod for pod in there}.items():
            found = known[key] if key in known else known.setdefault(key, standing(pod))
            if found is None or name in found.denied:
                return False
            asked.update(found.asked)
        if not _roomy(facts[name], there):
            return False
    # Pods that start together may have terms about each other: a rule that moves for one of them is asked about all.
    return not asked or not wrong(seen(), facts, pods, nodes, asked)


def _roomy(facts: NodeFacts, coming: Iterable[Pod]) -> bool:
    """Every pod gets what it asks for.

    Counted as columns count, each pod by itself: amounts that are rounded up together would be less.
    """
    there = {pod.uid for pod in facts.pods}
    wanted = dict[str, int]()
    for pod in coming:
        if pod.uid in there:
            return False
        for name, amount in resources.requests_of(pod).items():
            wanted[name] = wanted.get(name, 0) + units(name, amount)
    for name, number in wanted.items():
        has = units_given(name, facts.allocatable.get(name, NOTHING))
        if number and number > has - units(name, facts.used.get(name, NOTHING)):
            return False
    return True


def wrong(
    scene: Scene,
    facts: _Facts,
    pods: Iterable[Pod],
    nodes: Mapping[str, str],
    predicates: Predicates,
    beside: Mapping[str, Sequence[Pod]] = _NOT_COMING,
) -> Mapping[str, Said]:
    """The nodes that cannot take the pods for them, each with the reasons; `nodes` are by the pods' uids.

    `scene` is that of the cluster as it is, for any pod. `beside` are pods by node that count as if they were there.
    """
    coming = _coming(pods, nodes)
    crowded = {name: _with(facts[name], there) for name, there in beside.items() if name in facts}
    placed = {name: _with(crowded.get(name, facts[name]), there) for name, there in coming.items() if name in facts}
    together = scene.at(placed, {name: there for name, there in crowded.items() if name not in placed})
    return {
        name: said for name, there in coming.items() if (said := _said(together, placed.get(name), there, predicates))
    }


def _coming(pods: Iterable[Pod], nodes: Mapping[str, str]) -> Mapping[str, Sequence[Pod]]:
    """The pods for each node."""
    coming: dict[str, list[Pod]] = collections.defaultdict(list)
    for pod in pods:
        if pod.uid in nodes:
            coming[nodes[pod.uid]].append(pod)
    return coming


def _with(facts: NodeFacts, coming: Sequence[Pod]) -> NodeFacts:
    """The node with these pods; a pod that counts there already is counted once."""
    there = {pod.uid: pod for pod in (*coming, *facts.pods)}
    return with_pods(facts, there.values())


def _said(together: Scene, facts: NodeFacts | None, coming: Sequence[Pod], predicates: Predicates) -> Said:
    """Of equal pods on one node it is enough to ask about one: whether it can come when all others are there."""
    if facts is None:
        return (GONE,)
    for pod in {classes.key(pod): pod for pod in coming}.values():
        without = with_pods(facts, (one for one in facts.pods if one.uid != pod.uid))
        alone = together.of(pod).at({facts.name: without})
        if said := filters.reasons_at(alone, facts.name, predicates):
            return said
    return ()
