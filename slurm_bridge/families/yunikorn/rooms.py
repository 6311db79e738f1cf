"""Room on nodes for a workload that waits in a queue: which others have to leave so that all its pods find a place.

cleared   what all hooks would say if every workload that may leave had left: their filters bound the search
search    node by node the fewest that have to leave; a gang takes one place after the other
checked   what all hooks would say without just these: what stays may repel a pod by more than amounts

The search has a limit, so that others do not wait for it however many pods come and may leave. Room that is not found
within that is none.

Kubernetes and Slurm both count. What belongs to others, pods of other schedulers and Slurm's native jobs, stays.
"""

import collections
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from slurm_bridge.cluster import columns, hypothetical
from slurm_bridge.cluster.snapshot import NOTHING, Amounts, ClusterSnapshot
from slurm_bridge.hooks.base import Nodes
from slurm_bridge.hooks.evictions import Answers, QueueSituation, Site
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate import resources

#: Nodes that are compared at most: of those from which workloads may leave, and of those with room as they are.
MOST_NODES = 200
#: Ways whose nodes hooks refuse, before the search ends.
MOST_REFUSED = 32
#: What one search may cost, in victims that are looked at, counted anew on each node for each pod that comes.
MOST_STEPS = 200_000

Way = tuple[int, ...]
May = Callable[[Sequence[int]], bool]


@dataclasses.dataclass(slots=True)
class Effort:
    """What one search may still cost. Others wait for its end: it must not take the longer the more users submit."""

    left: int = MOST_STEPS
    #: Nodes of ways that hooks refuse.
    refused: set[str] = dataclasses.field(default_factory=set)
    #: Nodes whose room is another workload's, and after each way those of that way.
    taken: Nodes = frozenset()
    nodes: Nodes = frozenset()

    @property
    def is_spent(self) -> bool:
        """What has not been found by now is not looked for."""
        return self.left <= 0


@dataclasses.dataclass(slots=True)
class _Place:
    """A node: what is left of it, and what each victim would leave there, by the victim's number."""

    effort: Effort
    site: Site
    left: dict[str, Fraction]
    freed: Mapping[int, Amounts]


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class _Offer:
    """The victims that make room on a node; a smaller one is better. `cost`: so many pods leave for each that comes."""

    cost: Fraction
    way: Way
    node: str


def ways(
    situation: QueueSituation, victims: Sequence[Sequence[WorkloadKey]], may: May, effort: Effort
) -> Iterator[Way]:
    """The ways to make room, those for which the fewest pods leave first; victims are named by their numbers."""
    leaving = _near([tuple(pod for key in keys for pod in situation.placed(key)) for keys in victims])
    cleared = situation.answers(hypothetical.without(situation.snapshot, itertools.chain.from_iterable(leaving)))
    if cleared is None:
        return
    found = set[Way]()
    for within in cleared.sets:
        for way, nodes in _search(situation, cleared, within, leaving, may, effort):
            if way in found:
                continue
            if _holds(situation, nodes, (pod for number in way for pod in leaving[number])):
                found.add(way)
                effort.nodes = nodes
                yield way
            else:
                effort.refused.update(nodes)
            if len(effort.refused) >= MOST_REFUSED:
                return
        if effort.is_spent:
            return


def _near(leaving: Sequence[tuple[Pod, ...]]) -> list[tuple[Pod, ...]]:
    """The same; of victims that are on none of the nodes that are compared no pod leaves."""
    on_nodes = collections.Counter(pod.spec.node_name for pods in leaving for pod in pods)
    near = {name for name, _ in on_nodes.most_common(MOST_NODES)}
    return [pods if any(pod.spec.node_name in near for pod in pods) else () for pods in leaving]


def _holds(situation: QueueSituation, nodes: Nodes, gone: Iterable[Pod]) -> bool:
    """All hooks let its pods run there, once these have gone."""
    answers = situation.answers(hypothetical.without(situation.snapshot, gone))
    return answers is not None and nodes <= answers.nodes and any(nodes <= within for within in answers.sets)


def _search(
    situation: QueueSituation,
    cleared: Answers,
    within: Nodes,
    leaving: Sequence[Sequence[Pod]],
    may: May,
    effort: Effort,
) -> Iterator[tuple[Way, Nodes]]:
    """Each time without the nodes that were refused meanwhile."""
    usable = (cleared.nodes & within).difference(situation.avoided, effort.taken)
    from_there = collections.Counter(pod.spec.node_name for pods in leaving for pod in pods)
    crowded = sorted(usable & from_there.keys(), key=lambda name: (-from_there[name], name))[:MOST_NODES]
    roomy = sorted((usable & _roomy(situation.snapshot, situation.ask.workload.lead)).difference(crowded))
    places = _places(situation.sites(cleared.request, (*crowded, *roomy[:MOST_NODES])), leaving, effort)
    pods, sizes = situation.ask.workload.pods, [len(pods) for pods in leaving]
    if len(pods) == 1:
        for offer in sorted(_offers(places, pods, (), sizes, may)):
            yield offer.way, frozenset({offer.node})
        return
    while (found := _together(places, pods, sizes, may, effort)) is not None:
        way, nodes = found
        yield way, nodes
        if not nodes & effort.refused:
            return


def _places(sites: Iterable[Site], leaving: Sequence[Sequence[Pod]], effort: Effort) -> list[_Place]:
    number_of = {pod.uid: number for number, pods in enumerate(leaving) for pod in pods}
    found = []
    for site in sites:
        left, freed = dict(site.has), dict[int, dict[str, Fraction]]()
        for pod in (pod for party in site.parties for pod in party.here):
            needs, number = site.needs_of(pod), number_of.get(pod.uid)
            _add(left, needs, -1)
            if number is not None:
                _add(freed.setdefault(number, {}), needs, 1)
        found.append(_Place(effort=effort, site=site, left=left, freed=freed))
    return found


def _together(
    places: Sequence[_Place], pods: Sequence[Pod], sizes: Sequence[int], may: May, effort: Effort
) -> tuple[Way, Nodes] | None:
    """A place for each pod of a gang, the largest first; what one of them takes or frees counts for the next."""
    open_ = [
        dataclasses.replace(place, left=dict(place.left)) for place in places if place.site.node not in effort.refused
    ]
    by_node, gone, nodes = {place.site.node: place for place in open_}, list[int](), set[str]()
    coming = sorted(pods, key=_size, reverse=True)
    for count, pod in enumerate(coming):
        best = min(_offers(open_, coming[count:], tuple(gone), sizes, may), default=None)
        if best is None or effort.is_spent:
            return None
        for number in best.way:
            gone.append(number)
            for place in open_:
                _add(place.left, place.freed.get(number, {}), 1)
        here = by_node[best.node]
        _add(here.left, here.site.needs_of(pod), -1)
        nodes.add(best.node)
    return tuple(gone), frozenset(nodes)


def _size(pod: Pod) -> tuple[Fraction, Fraction]:
    asked = resources.requests_of(pod)
    return asked.get("cpu", NOTHING), asked.get("memory", NOTHING)


def _offers(
    places: Iterable[_Place], coming: Sequence[Pod], gone: Way, sizes: Sequence[int], may: May
) -> Iterator[_Offer]:
    """For the first of the pods that come; that there is room for others, too, makes an offer better."""
    for place in places:
        if place.effort.is_spent:
            return
        way = _fewest(place, coming[0], gone, sizes, may)
        if way is not None:
            leave = sum(sizes[number] for number in way)
            yield _Offer(cost=Fraction(leave, _count(place, way, coming)), way=way, node=place.site.node)


def _count(place: _Place, way: Way, coming: Sequence[Pod]) -> int:
    """For so many pods like the first there is room then."""
    if len(coming) == 1 or not way:
        return 1
    left, needs = dict(place.left), place.site.needs_of(coming[0])
    for number in way:
        _add(left, place.freed[number], 1)
    most = min((left.get(name, NOTHING) // amount for name, amount in needs.items() if amount), default=1)
    return max(1, min(len(coming), most))


def _fewest(place: _Place, pod: Pod, gone: Way, sizes: Sequence[int], may: May) -> Way | None:
    """By the order of victims, or the larger ones first, whichever takes fewer."""
    lacking = {name: amount - place.left.get(name, NOTHING) for name, amount in place.site.needs_of(pod).items()}
    lacking = {name: amount for name, amount in lacking.items() if amount > 0}
    place.effort.left -= 1
    if not lacking:
        return ()
    help_ = [number for number in sorted(place.freed) if number not in gone]
    place.effort.left -= len(help_)
    larger = sorted(help_, key=lambda number: (sizes[number], -_share(place.freed[number], lacking)))
    found = [way for order in (help_, larger) if (way := _enough(place, lacking, order, gone, may)) is not None]
    return min(found, key=lambda way: (sum(sizes[number] for number in way), way), default=None)


def _share(amounts: Amounts, lacking: Amounts) -> Fraction:
    return min(amounts.get(name, NOTHING) / amount for name, amount in lacking.items())


def _enough(place: _Place, lacking: Amounts, order: Iterable[int], gone: Way, may: May) -> Way | None:
    """As many as it takes, without those that turn out not to be needed."""
    taken: list[int] = []
    for number in order:
        if _covers(place, taken, lacking):
            break
        if may((*gone, *taken, number)):
            taken.append(number)
    if not _covers(place, taken, lacking):
        return None
    for number in reversed(tuple(taken)):
        others = [other for other in taken if other != number]
        if _covers(place, others, lacking):
            taken = others
    return tuple(sorted(taken))


def _covers(place: _Place, numbers: Sequence[int], lacking: Amounts) -> bool:
    place.effort.left -= len(numbers)
    freed: dict[str, Fraction] = {}
    for number in numbers:
        _add(freed, place.freed[number], 1)
    return all(freed.get(name, NOTHING) >= amount for name, amount in lacking.items())


def _add(amounts: dict[str, Fraction], more: Amounts, sign: int) -> None:
    for name, amount in more.items():
        amounts[name] = amounts.get(name, NOTHING) + sign * amount


def _roomy(snapshot: ClusterSnapshot, pod: Pod) -> Nodes:
    """The nodes that have what the pod asks for left, on both sides."""
    seen = snapshot.columns
    mask = seen.present
    for name, amount in resources.requests_of(pod).items():
        if amount > 0:
            taken = np.maximum(seen.used(name), seen.given_away(name))
            mask = mask & (seen.allocatable(name) - taken >= columns.units(name, amount))
    return seen.nodes(mask)
