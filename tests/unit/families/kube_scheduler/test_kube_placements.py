"""Pods with rules about their neighbours are placed one by one, and Slurm is asked for just these nodes."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kube_scheduler import classes, gangs, placements, scene
from slurm_bridge.families.kube_scheduler.filters import Predicates
from slurm_bridge.hooks import chain as chains
from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.hooks.base import Deny
from slurm_bridge.hooks.chain import Chain, Plan
from slurm_bridge.model.pod import Container, ContainerPort, Pod
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.translate import demands
from slurm_bridge.translate.shapes import Form
from slurm_bridge.translate.translator import Translated
from tests.effort import Work
from tests.unit.families.kube_scheduler.kube_hook_scenes import chained, cluster, hooked
from tests.unit.families.kube_scheduler.scenes import HOST, ZONE, near, node, pod, spread, term
from tests.unit.hooks.builders import Around, gang, request, shape, workload

WEB = {"app": "web"}
FOUR = [node(name, labels={ZONE: zone}) for name, zone in (("a", "1"), ("b", "1"), ("c", "2"), ("d", "2"))]


def web(name: str, **others: Any) -> Pod:
    """A small pod with the label."""
    return pod(name, labels=WEB, **{"requests": {"cpu": 1, "memory": 1}, **others})


def spreading(name: str, key: str = HOST) -> Pod:
    """One that has to lie evenly."""
    return web(name, topology_spread_constraints=(spread(key, WEB),))


def asking(work: Workload) -> Translated:
    """As many tasks as it has pods, and what these ask of their place."""
    tasks = len(work.pods)
    form = Form.TASKS if tasks > 1 else Form.SINGLE
    shapes = (shape(*work.pods),)
    return Translated(request=request(tasks=tasks), values=(), demands=demands.of(work), form=form, shapes=shapes)


def planned(chain: Chain, work: Workload, snapshot: ClusterSnapshot, **others: Any) -> Plan | Wait | Reject:
    """What the chain makes of it."""
    return chain.plan(work, asking(work), snapshot, **{"now": VirtualClock().wall(), **others})


def offered(found: object, nodes: Sequence[Any] = FOUR) -> set[str]:
    """The nodes that Slurm may choose from."""
    assert isinstance(found, Plan), found
    return {one.metadata.name for one in nodes} - set(found.request.excluded_nodes)


def test_equal_pods_of_a_burst_do_not_collide(around: Around) -> None:
    """Eight pods with a hard spread on four idle nodes: each is asked for on one node, and two come on each."""
    chain, snapshot = chained(around, hooked()), cluster(FOUR)
    found = [offered(planned(chain, workload(spreading(f"p{number}")), snapshot)) for number in range(8)]
    assert all(len(one) == 1 for one in found)
    names = [name for one in found for name in one]
    assert {names.count(name) for name in "abcd"} == {2}


def test_a_pod_that_asks_nothing_of_its_neighbours_may_go_anywhere(around: Around) -> None:
    """Nothing is chosen in Slurm's place."""
    found = planned(chained(around, hooked()), workload(web("p")), cluster(FOUR))
    assert offered(found) == {"a", "b", "c", "d"}


def test_a_gang_is_spread_as_it_asks(around: Around) -> None:
    """As many nodes as that takes, and as many pods on each."""
    work = gang(*(spreading(f"p{number}") for number in range(8)))
    found = planned(chained(around, hooked()), work, cluster(FOUR))
    assert isinstance(found, Plan)
    assert (found.request.minimum_nodes, found.request.maximum_nodes, found.request.tasks_per_node) == (4, 4, 2)
    assert offered(found) == {"a", "b", "c", "d"}


def test_a_gang_that_wants_to_be_together_is_asked_for_in_one_zone(around: Around) -> None:
    """The first pod may go anywhere, and the others follow it."""
    together = near("podAffinity", term(ZONE, WEB))
    work = gang(*(web(f"p{number}", affinity=together, requests={"cpu": 6}) for number in range(2)))
    found = offered(planned(chained(around, hooked()), work, cluster(FOUR)))
    assert found in ({"a", "b"}, {"c", "d"})


def test_pods_with_a_port_of_the_host_come_on_different_nodes(around: Around) -> None:
    """One node has a port once."""
    serving = (Container(name="c", ports=(ContainerPort(host_port=8080),)),)
    work = gang(*(pod(f"p{number}", labels=WEB, containers=serving) for number in range(3)))
    found = planned(chained(around, hooked()), work, cluster(FOUR))
    assert isinstance(found, Plan)
    assert (found.request.minimum_nodes, found.request.tasks_per_node) == (3, 1)


def test_the_pods_of_an_indexed_job_are_equal_although_each_has_its_number(around: Around) -> None:
    """The label with the number is no word of any rule about neighbours."""
    numbered = [
        pod(
            f"p{number}",
            labels={**WEB, "batch.kubernetes.io/job-completion-index": str(number)},
            topology_spread_constraints=(spread(HOST, WEB),),
        )
        for number in range(4)
    ]
    found = planned(chained(around, hooked()), gang(*numbered), cluster(FOUR))
    assert isinstance(found, Plan)
    assert (found.request.minimum_nodes, found.request.tasks_per_node) == (4, 1)


def test_pods_that_a_rule_tells_apart_are_not_placed_as_equal_ones(around: Around) -> None:
    """Slurm may give any of its tasks any of its nodes."""
    ranked = [
        pod(
            f"p{number}",
            labels={**WEB, "rank": str(number)},
            topology_spread_constraints=(spread(HOST, {"rank": "0"}),),
        )
        for number in range(2)
    ]
    found = planned(chained(around, hooked()), gang(*ranked), cluster(FOUR))
    assert isinstance(found, Plan)
    assert found.request.tasks_per_node is None


@pytest.mark.security("input")
@pytest.mark.parametrize("odd", [7, "x", [1], {"labelSelector": 7}, {"labelSelector": {"matchLabels": ["a"]}}])
def test_terms_that_make_no_sense_tell_no_pods_apart(odd: object) -> None:
    """They stop nothing, whatever an API server of another kind lets through."""
    pods = [pod(f"p{number}", labels={"n": str(number)}, affinity={"podAffinity": odd}) for number in range(2)]
    assert classes.exchangeable(pods)


@pytest.mark.parametrize("large", "abcd")
def test_no_node_is_asked_for_more_than_it_has(around: Around, large: str) -> None:
    """Slurm gives every node of a job the same number of tasks: two on the large one would be two on all of them."""
    together = near("podAffinity", term(ZONE, WEB))
    sizes = {name: {"cpu": 16 if name == large else 8} for name in "abcd"}
    nodes = [node(name, labels={ZONE: "1"}, allocatable=size) for name, size in sizes.items()]
    work = gang(*(web(f"p{number}", affinity=together, requests={"cpu": 8}) for number in range(4)))
    found = planned(chained(around, hooked()), work, cluster(nodes))
    assert isinstance(found, Plan), found
    assert (found.request.minimum_nodes, found.request.tasks_per_node) == (4, 1)


def test_a_job_that_slurm_could_never_start_is_not_submitted(around: Around) -> None:
    """Two pods fit on the large node and one on the small one, and Slurm would ask both for two."""
    together = near("podAffinity", term(ZONE, WEB))
    sizes = {"a": {"cpu": 16}, "b": {"cpu": 8}}
    nodes = [node(name, labels={ZONE: "1"}, allocatable=size) for name, size in sizes.items()]
    work = gang(*(web(f"p{number}", affinity=together, requests={"cpu": 8}) for number in range(3)))
    found = planned(chained(around, hooked()), work, cluster(nodes))
    assert isinstance(found, Wait)
    assert f"2 {placements.UNEVEN}" in found.message


@pytest.mark.parametrize("names", ["abcd", "bcda", "cdab", "dabc"])
def test_another_zone_is_tried_where_the_first_one_would_be_uneven(around: Around, names: str) -> None:
    """The first zone has room for three pods, but not for as many on each of its nodes; the second one has."""
    together = near("podAffinity", term(ZONE, WEB))
    sizes = dict(zip(names, ((16, "1"), (8, "1"), (16, "2"), (16, "2")), strict=True))
    nodes = [node(name, labels={ZONE: sizes[name][1]}, allocatable={"cpu": sizes[name][0]}) for name in "abcd"]
    work = gang(*(web(f"p{number}", affinity=together, requests={"cpu": 8}) for number in range(3)))
    assert offered(planned(chained(around, hooked()), work, cluster(nodes))) == set(names[2:])


@pytest.mark.parametrize("names", ["abcd", "bcda", "cdab", "dabc"])
def test_a_number_of_pods_between_all_and_one_may_be_the_even_one(around: Around, names: str) -> None:
    """Nodes for four, three and three: seven pods come on three nodes with three on each, and not with four or two."""
    together = near("podAffinity", term(ZONE, WEB))
    sizes = dict(zip(names, (8, 6, 6, 2), strict=True))
    nodes = [node(name, labels={ZONE: "1"}, allocatable={"cpu": sizes[name]}) for name in "abcd"]
    work = gang(*(web(f"p{number}", affinity=together, requests={"cpu": 2}) for number in range(7)))
    found = planned(chained(around, hooked()), work, cluster(nodes))
    assert isinstance(found, Plan), found
    assert (found.request.minimum_nodes, found.request.tasks_per_node) == (3, 3)


def test_a_gang_that_waits_is_asked_for_on_another_number_of_nodes_that_are_free(around: Around) -> None:
    """Its job waits for two full nodes, with two pods on each; four other nodes have room for one pod each."""
    small = [node(name, labels={ZONE: zone}, allocatable={"cpu": 1}) for name, zone in zip("efgh", "1122", strict=True)]
    large = [node(name, labels={ZONE: zone}, allocatable={"cpu": 2}) for name, zone in zip("ab", "12", strict=True)]
    nodes = [*large, *small]

    def filled(names: str) -> list[Pod]:
        return [pod(f"r{one}", on=one, requests={"cpu": 2 if one in "ab" else 1}) for one in names]

    chain, work = chained(around, hooked()), gang(*(spreading(f"p{number}", ZONE) for number in range(4)))
    first = planned(chain, work, cluster(nodes, filled("efgh")))
    assert isinstance(first, Plan)
    assert (first.request.minimum_nodes, first.request.tasks_per_node) == (2, 2)
    full = planned(chain, work, cluster(nodes, filled("abefgh")), previous=first.state)
    assert offered(full, nodes) == {"a", "b"}
    freed = planned(chain, work, cluster(nodes, filled("ab")), previous=first.state)
    assert offered(freed, nodes) == set("efgh")
    both = planned(chain, work, cluster(nodes), previous=first.state)
    assert len(offered(both, nodes)) == 4, "a job that could start stays as it is"


def test_a_gang_evens_out_what_lies_unevenly(around: Around) -> None:
    """Of three pods two come where there is none yet, and the third beside the one that runs already."""
    running = [web("r", on="a")]
    work = gang(*(spreading(f"p{number}", ZONE) for number in range(3)))
    found = planned(chained(around, hooked()), work, cluster(FOUR, running))
    assert isinstance(found, Plan), found
    assert offered(found) & {"a", "b"}
    assert offered(found) & {"c", "d"}


def test_workers_that_want_to_be_near_their_leader_are_asked_for_with_it(around: Around) -> None:
    """No leader runs yet: all of them are tried in one zone, then in the other."""
    leader = web("leader", requests={"cpu": 2, "memory": 1})
    leader = msgspec.structs.replace(
        leader, metadata=msgspec.structs.replace(leader.metadata, labels={**WEB, "role": "leader"})
    )
    together = near("podAffinity", term(ZONE, {"role": "leader"}))
    workers = [web(f"w{number}", affinity=together) for number in range(2)]
    work = gang(leader, *workers)
    asked = Translated(
        request=request(tasks=3),
        values=(),
        demands=demands.of(work),
        form=Form.BOUND,
        shapes=(shape(leader), shape(*workers)),
    )
    found = chained(around, hooked()).plan(work, asked, cluster(FOUR), now=VirtualClock().wall())
    assert isinstance(found, Plan), found
    tried = {one.nodes for one in found.course.attempts}
    assert tried == {frozenset("ab"), frozenset("cd")}
    for busy, free in (("ab", "cd"), ("cd", "ab")):
        full = [pod(f"r{name}", on=name, requests={"cpu": 8}) for name in busy]
        last = PlanState(version=found.course.version, attempt=len(found.course.attempts) - 1, started=20.0)
        stays = chained(around, hooked()).plan(work, asked, cluster(FOUR, full), now=30.0, previous=last)
        assert offered(stays) == set(free)


@pytest.mark.security("fairness")
def test_few_members_of_a_gang_and_few_of_their_terms_are_compared() -> None:
    """Users may write any number of both, and other users do not wait for that."""
    affinity = near("podAffinity", *(term(ZONE, {"none": str(number)}) for number in range(100)))
    pods = [web(f"p{number}", affinity=affinity, node_selector={"kind": str(number)}) for number in range(600)]
    work = gang(*pods)
    with Work() as done:
        found = gangs.keys(chains.asked(work, asking(work)), lambda _: {})
    assert found == []
    assert 0 < done.calls["Term.selects"] <= gangs.MOST_KINDS**3


def test_a_gang_that_fits_nowhere_says_which_pod_has_no_node(around: Around) -> None:
    """Three pods that keep each other out of their zone, and two zones."""
    apart = near("podAntiAffinity", term(ZONE, WEB))
    work = gang(*(web(f"p{number}", affinity=apart) for number in range(3)))
    found = planned(chained(around, hooked()), work, cluster(FOUR))
    assert isinstance(found, Wait)
    assert found.moving
    assert "no node for pod team/p2 (3 of 3)" in found.message
    assert "4 node(s) didn't match pod anti-affinity rules" in found.message


def test_nodes_with_room_come_first(around: Around) -> None:
    """A pod is not sent to wait for a full node while another would take it."""
    full = [pod(f"r{name}", on=name, requests={"cpu": 8}) for name in "abd"]
    found = planned(chained(around, hooked()), workload(spreading("p")), cluster(FOUR, full))
    assert offered(found) == {"c"}


def test_a_full_cluster_is_waited_for_in_slurm(around: Around) -> None:
    """The nodes are chosen as if they were empty."""
    full = [pod(f"r{name}", on=name, requests={"cpu": 8}) for name in "abcd"]
    found = planned(chained(around, hooked()), gang(*(spreading(f"p{one}") for one in range(4))), cluster(FOUR, full))
    assert len(offered(found)) == 4
    assert isinstance(found, Plan)
    assert found.request.tasks_per_node == 1


def test_a_plan_stays_as_it_is_while_the_job_waits(around: Around) -> None:
    """The same nodes are asked for again, also when scores or others moved."""
    full = [pod(f"r{name}", on=name, requests={"cpu": 8}) for name in "abcd"]
    chain, work = chained(around, hooked()), workload(spreading("p"))
    first = planned(chain, work, cluster(FOUR, full))
    assert isinstance(first, Plan)
    planned(chain, workload(spreading("other")), cluster(FOUR, full))
    again = planned(chain, work, cluster(FOUR, full), previous=first.state)
    assert offered(again) == offered(first)


def test_other_nodes_are_offered_when_the_time_of_the_chosen_ones_is_over(around: Around) -> None:
    """What the bridge knows of the room on a node may be old."""
    chain, work, snapshot = chained(around, hooked()), workload(spreading("p")), cluster(FOUR)
    first = planned(chain, work, snapshot)
    assert isinstance(first, Plan)
    assert first.window_seconds == 15.0
    later = PlanState(version=first.state.version, attempt=1, started=20.0)
    assert offered(planned(chain, work, snapshot, previous=later)) == {"a", "b", "c", "d"}


def test_what_waits_for_any_node_counts_on_none(around: Around) -> None:
    """Of a job that may get any node it is not known which one others have to keep away from."""
    apart = near("podAntiAffinity", term(HOST, WEB))
    one = node("a")
    chain, snapshot = chained(around, hooked()), cluster([one])
    work = workload(web("p", affinity=apart))
    first = planned(chain, work, snapshot)
    assert isinstance(first, Plan)
    hidden = planned(chain, workload(web("q", affinity=apart)), snapshot)
    assert isinstance(hidden, Plan)


def test_pods_that_are_bound_are_forgotten_as_plans(around: Around) -> None:
    """They count where they run."""
    hook = hooked()
    chain, snapshot = chained(around, hook), cluster(FOUR)
    work = workload(spreading("p"))
    (taken,) = offered(planned(chain, work, snapshot))
    hook.forget(work.root.key)
    elsewhere = next(name for name in "abcd" if name != taken)
    moved = cluster(FOUR, [web("p", on=elsewhere)])
    found = [offered(planned(chain, workload(spreading(f"q{one}")), moved)) for one in range(3)]
    assert {name for one in found for name in one} == set("abcd") - {elsewhere}


def test_an_allocation_waits_for_the_pods_that_make_it_right(around: Around) -> None:
    """The fifth pod is on a node already taken, and the four before it have no nodes yet: it is not given back."""
    chain, snapshot = chained(around, hooked()), cluster(FOUR, [web("r", on="a")])
    for number in range(3):
        planned(chain, workload(spreading(f"p{number}")), snapshot)
    fifth = workload(spreading("p5"))
    (chosen,) = offered(planned(chain, fifth, snapshot))
    said = chain.verify(fifth, {"uid-p5": "a"}, snapshot)
    assert isinstance(said, Wait)
    assert said.reason == "NeighboursPending"
    there = cluster(FOUR, [web("r", on="a"), *(web(f"x{name}", on=name) for name in "bcd")])
    assert chain.verify(fifth, {"uid-p5": chosen}, there) is None


def test_an_allocation_that_nothing_makes_right_is_given_back(around: Around) -> None:
    """Waiting would only hold the node."""
    chain, snapshot = chained(around, hooked()), cluster(FOUR, [web("r", on="a")])
    alone = workload(spreading("p"))
    planned(chain, alone, snapshot)
    said = chain.verify(alone, {"uid-p": "a"}, snapshot)
    assert isinstance(said, Deny)
    assert said.nodes == {"a"}


def test_memory_of_plans_is_bounded_and_grows_old() -> None:
    """Neither many workloads nor one whose plan came to nothing keep others away for ever."""
    kept = placements.PlannedPods()
    one = placements.PodPlacement(nodes={"uid-p": "a"}, coming={"a": [web("p")]})
    for number in range(placements.MOST_WORKLOADS + 5):
        kept.put(workload(web(f"p{number}")).root.key, one, 0.0)
    other = workload(web("other")).root.key
    assert len(kept.beside(other, 1.0, lambda _node, _pod: False)["a"]) == placements.MOST_WORKLOADS
    assert kept.beside(other, placements.STALE_SECONDS + 1, lambda _node, _pod: False) == {}


def test_a_very_large_gang_is_not_placed_pod_by_pod(around: Around) -> None:
    """It would take too long; its allocation is verified all the same."""
    work = gang(*(spreading(f"p{number}") for number in range(placements.MOST_PODS + 1)))
    found = planned(chained(around, hooked()), work, cluster(FOUR))
    assert isinstance(found, Plan)
    assert found.request.tasks_per_node is None


def test_what_another_namespace_plans_keeps_no_pod_away(around: Around) -> None:
    """A stranger's pods cost neither nodes nor time."""
    chain, snapshot = chained(around, hooked()), cluster(FOUR)
    mine = workload(spreading("p"))
    expected = offered(planned(chain, mine, snapshot))
    fresh = chained(around, hooked())
    for number in range(3):
        planned(fresh, workload(spreading(f"theirs{number}"), namespace="stranger"), snapshot)
    assert offered(planned(fresh, mine, snapshot)) == expected


def test_a_gang_that_fits_nowhere_ends_the_search() -> None:
    """Whatever domain it begins in, its last pod finds no node: all nodes are looked at so often, and no more."""
    nodes = [node(f"n{number}", labels={ZONE: str(number // 10)}) for number in range(200)]
    asked: list[str] = []

    def rules(one: Pod) -> Predicates:
        asked.append(one.uid)
        return {"never": lambda seen: ((seen.columns.present, "node(s) say no"),) if one.uid == "uid-p15" else ()}

    snapshot = cluster(nodes)
    together = near("podAffinity", term(ZONE, WEB))
    pods = [web(f"p{number}", affinity=together) for number in range(16)]
    placer = placements.Placer(
        seen=lambda one: scene.scene(snapshot, one, capacity="allocatable"),
        rules=rules,
        request=request(tasks=16),
        nodes=snapshot.columns.present,
        scores=np.zeros(len(snapshot.columns)),
        turn=0,
    )
    found = placer.place(pods, {}, None)
    assert isinstance(found, placements.Unplaced)
    assert (found.number, found.reasons) == (16, {"node(s) say no": 200})
    assert len(asked) <= 3 * (placements.MOST_LOOKS + len(pods))


def test_a_member_that_joins_a_waiting_gang_has_a_node_too(around: Around) -> None:
    """What was planned without it is of no use, although another number of nodes is another job."""
    chain, snapshot = chained(around, hooked()), cluster(FOUR)
    two, three = (gang(*(spreading(f"p{number}") for number in range(count))) for count in (2, 3))
    first = planned(chain, two, snapshot)
    assert isinstance(first, Plan)
    grown = planned(chain, three, snapshot, previous=first.state)
    assert isinstance(grown, Plan)
    assert grown.request.minimum_nodes * grown.request.tasks_per_node >= 3
