"""Whether a workload of the matrix fits anywhere: every way to place it is tried, on what the two servers say.

It shares no code with the daemon. What it knows beside kube-scheduler's rules is what the documents say of jobs: pods
of different sizes are on one node where some node is large enough, else no node has both; a group with rules about its
neighbours gets the same number of tasks on each node; a domain of a topology holds all pods.
"""

import collections
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.model import kinds
from tests.simulation import matrix_park
from tests.simulation.matrix_park import ParkWorld
from tests.simulation.matrix_wishes import ANCHOR, APP, HOST, LEADER, Shape, Wish

Labels = Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One node: what is free on it for all jobs, and the labels of the pods that are there."""

    name: str
    labels: Labels
    cpus: int
    free: int
    tainted: bool
    few: bool
    pods: tuple[Labels, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A pod to place."""

    cpus: int
    labels: Labels

    @property
    def leads(self) -> bool:
        return LEADER in self.labels


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A pod on a node."""

    member: Member
    spot: Spot


def spots(world: ParkWorld, waiting: set[str]) -> list[Spot]:
    """As the servers say. Jobs of `waiting` workloads, by uid, take nothing: these are the ones to be placed."""
    taken: collections.Counter[str] = collections.Counter()
    for job in world.slurm.world.jobs.values():
        owner = world.observer.owner(job)
        if job.grant is not None and not job.over and (owner is None or owner.uid not in waiting):
            taken.update({share.node: share.cpus for share in job.grant.shares})
    there: dict[str, list[Labels]] = collections.defaultdict(list)
    for pod in world.kube.list(kinds.PODS):
        if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            there[pod["spec"]["nodeName"]].append(pod["metadata"].get("labels") or {})
    few = world.slurm.world.partitions[matrix_park.FEW].nodes
    return [_spot(node, taken, there, few) for node in world.kube.list(kinds.NODES)]


def _spot(
    node: Mapping[str, Any], taken: Mapping[str, int], there: Mapping[str, Sequence[Labels]], few: Sequence[str]
) -> Spot:
    name, cpus = node["metadata"]["name"], int(node["status"]["allocatable"]["cpu"])
    return Spot(
        name=name,
        labels=node["metadata"]["labels"],
        cpus=cpus,
        free=cpus - taken.get(name, 0),
        tainted=bool(node["spec"].get("taints")),
        few=name in few,
        pods=tuple(there.get(name, ())),
    )


def fits(wish: Wish, ground: Sequence[Spot]) -> bool:
    """All of a group, or one pod of those that are alone."""
    open_spots = [spot for spot in ground if _suits(wish, spot)]
    members = _members(wish)
    if wish.shape is not Shape.HET:
        return _placeable(wish, members, ground, open_spots, lambda _placed: True)
    return any(
        _placeable(wish, sized, ground, some, allows) for sized, some, allows in _forms(wish, members, open_spots)
    )


def _members(wish: Wish) -> list[Member]:
    het = wish.shape is Shape.HET
    sizes = wish.sizes[:1] if wish.shape is Shape.SINGLES else wish.sizes
    leader = {**APP, LEADER: "yes"}
    return [Member(cpus=cpus, labels=leader if het and number == 0 else APP) for number, cpus in enumerate(sizes)]


def _suits(wish: Wish, spot: Spot) -> bool:
    """Whatever runs."""
    return (
        (not wish.disk or spot.labels.get("disk") == "ssd")
        and (not wish.zones or spot.labels["zone"] in wish.zones)
        and (wish.tolerates or not spot.tainted)
        and (not wish.few or spot.few)
    )


Allows = Callable[[Sequence[Placed]], bool]


def _forms(
    wish: Wish, members: Sequence[Member], some: Sequence[Spot]
) -> Iterator[tuple[Sequence[Member], Sequence[Spot], Allows]]:
    """How one job can hold a leader and its workers: on one node; else apart; else each as large as the largest."""
    total = sum(member.cpus for member in members)
    alone = wish.port or wish.apart == HOST
    if not alone and any(spot.cpus >= total for spot in some):
        yield members, some, lambda placed: len({one.spot.name for one in placed}) == 1
        return
    if _apart(members, some, alone=alone):
        yield members, some, _no_shared_node
        return
    most = max(member.cpus for member in members)
    yield [dataclasses.replace(member, cpus=most) for member in members], some, lambda _placed: True


def _apart(members: Sequence[Member], some: Sequence[Spot], *, alone: bool) -> bool:
    """There are enough large nodes, were all of them empty."""
    leader, *workers = members
    if not any(spot.cpus >= leader.cpus for spot in some):
        return False
    missing, nodes = len(workers), 0
    for slots in sorted((spot.cpus // workers[0].cpus for spot in some), reverse=True):
        if missing <= 0 or not slots:
            break
        missing, nodes = missing - (1 if alone else slots), nodes + 1
    return missing <= 0 and nodes + 1 <= len(some)


def _no_shared_node(placed: Sequence[Placed]) -> bool:
    leading = {one.spot.name for one in placed if one.member.leads}
    return not any(one.spot.name in leading for one in placed if not one.member.leads)


def _placeable(
    wish: Wish, members: Sequence[Member], ground: Sequence[Spot], some: Sequence[Spot], allows: Allows
) -> bool:
    def search(left: Sequence[Member], placed: tuple[Placed, ...]) -> bool:
        if not left:
            return allows(placed) and _even(wish, placed)
        for spot in some:
            one = Placed(member=left[0], spot=spot)
            if _may(wish, one, placed, ground) and search(left[1:], (*placed, one)):
                return True
        return False

    return search(members, ())


def _even(wish: Wish, placed: Sequence[Placed]) -> bool:
    """With rules about neighbours each node gives as much as the one with the most pods."""
    if not wish.neighbourly or len(placed) < 2:
        return True
    counts = collections.Counter(one.spot.name for one in placed)
    largest = max(one.member.cpus for one in placed)
    most = max(counts.values())
    return all(one.spot.free >= most * largest for one in placed) or wish.shape is Shape.HET


def _may(wish: Wish, one: Placed, placed: Sequence[Placed], ground: Sequence[Spot]) -> bool:
    """The next pod may come here, after these."""
    here = [before for before in placed if before.spot is one.spot]
    if sum(before.member.cpus for before in here) + one.member.cpus > one.spot.free:
        return False
    if wish.required and any(before.spot.labels[wish.required] != one.spot.labels[wish.required] for before in placed):
        return False
    if wish.port and (here or any(_is(labels, APP) for labels in one.spot.pods)):
        return False
    crowd = [*((spot, labels) for spot in ground for labels in spot.pods), *((p.spot, p.member.labels) for p in placed)]
    if wish.apart and _near(wish.apart, one.spot, crowd, APP):
        return False
    if wish.near and not _accepts_company(wish, one, crowd):
        return False
    return not wish.spread or _lies_evenly(wish, one, crowd, ground)


Crowd = Sequence[tuple[Spot, Labels]]


def _is(labels: Labels, wanted: Labels) -> bool:
    return labels.items() >= wanted.items()


def _near(key: str, spot: Spot, crowd: Crowd, wanted: Labels) -> bool:
    return any(other.labels[key] == spot.labels[key] for other, labels in crowd if _is(labels, wanted))


def _accepts_company(wish: Wish, one: Placed, crowd: Crowd) -> bool:
    """The first pod of those that want to be near their like may go anywhere."""
    if wish.near_whom == "leader" and one.member.leads:
        return True
    wanted: Labels = {"app": APP, "anchor": ANCHOR, "leader": {LEADER: "yes"}}[wish.near_whom]
    first = wish.near_whom == "app" and not any(_is(labels, wanted) for _, labels in crowd)
    return first or _near(wish.near, one.spot, crowd, wanted)


def _lies_evenly(wish: Wish, one: Placed, crowd: Crowd, ground: Sequence[Spot]) -> bool:
    """Domains are those of nodes that the pod's selector and affinity leave; taints and partitions do not matter."""
    counted = dataclasses.replace(wish, tolerates=True, few=False)
    counts = {spot.labels[wish.spread]: 0 for spot in ground if _suits(counted, spot)}
    for spot, labels in crowd:
        if _is(labels, APP) and _suits(counted, spot):
            counts[spot.labels[wish.spread]] += 1
    return counts[one.spot.labels[wish.spread]] + 1 - min(counts.values()) <= 1
