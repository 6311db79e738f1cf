"""Gangs of which Slurm chooses the nodes, and whose pods have to be near each other: domain by domain."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kube_scheduler import gangs
from slurm_bridge.hooks import chain as chains
from slurm_bridge.hooks.base import NodeSet
from slurm_bridge.hooks.chain import Plan
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.translate import demands
from slurm_bridge.translate.shapes import Form
from slurm_bridge.translate.translator import Translated
from tests.effort import Work
from tests.unit.families.kube_scheduler.kube_hook_scenes import chained, cluster, hooked
from tests.unit.families.kube_scheduler.scenes import HOST, ZONE, near, node, pod, term
from tests.unit.hooks.builders import Around, gang, request, shape

WEB, DB = {"app": "web"}, {"app": "db"}
FOUR = [node(name, labels={ZONE: zone}) for name, zone in (("a", "1"), ("b", "1"), ("c", "2"), ("d", "2"))]
TOGETHER = term(ZONE, WEB)


def web(name: str, *terms: dict[str, Any], **others: Any) -> Pod:
    """A small pod that has to be near pods of its kind, and of others."""
    affinity = near("podAffinity", TOGETHER, *terms) | others.pop("more", {})
    return pod(name, labels=WEB, requests={"cpu": 1, "memory": 1}, affinity=affinity, **others)


def counted(*pods: Pod, nodes: int = 2) -> tuple[Workload, Translated]:
    """A gang of equal pods that asks for a number of nodes, and so is not placed pod by pod."""
    work = gang(*pods)
    asked = Translated(
        request=request(tasks=len(pods), minimum_nodes=nodes),
        values=(),
        demands=demands.of(work),
        form=Form.TASKS,
        shapes=(shape(*pods),),
    )
    return work, asked


def planned(around: Around, snapshot: ClusterSnapshot, *pods: Pod) -> Plan | Wait | Reject:
    """What the chain makes of such a gang."""
    return chained(around, hooked()).plan(*counted(*pods), snapshot, now=VirtualClock().wall())


def tried(found: object) -> set[frozenset[str] | None]:
    """The sets of nodes of all attempts."""
    assert isinstance(found, Plan), found
    return {one.nodes for one in found.course.attempts}


def offered(found: object) -> set[str]:
    """The nodes that Slurm may choose from."""
    assert isinstance(found, Plan), found
    return set("abcd") - set(found.request.excluded_nodes)


def domains(nodes: Sequence[Node], key: str, *, least: int = 1) -> Sequence[NodeSet]:
    """Those of a gang of two."""
    affinity = near("podAffinity", term(key, WEB))
    pods = [pod(f"p{number}", labels=WEB, affinity=affinity, requests={"cpu": 1}) for number in range(2)]
    names = frozenset(one.metadata.name for one in nodes)
    ask = chains.asked(*counted(*pods, nodes=least))
    return gangs.domains(ask, cluster(nodes).columns, names, [key])


def test_nodes_without_the_label_are_in_no_domain(around: Around) -> None:
    """They have the most room, and no pod is near another one there."""
    nodes = [*FOUR[:2], *(node(f"u{number}") for number in range(3))]
    assert tried(planned(around, cluster(nodes), web("p0"), web("p1"))) == {frozenset("ab")}


def test_a_gang_waits_while_no_node_has_the_label(around: Around) -> None:
    """Its pods say which one; as soon as some node has it, there is a domain."""
    nodes = [node(name) for name in "abc"]
    found = planned(around, cluster(nodes), web("p0"), web("p1"))
    assert isinstance(found, Wait), found
    assert found.moving
    assert found.message == (
        f"unschedulable on cluster: its pods near each other: no node that they can have is labelled with {ZONE}"
    )
    labelled = [*nodes, *FOUR[3:], node("e", labels={ZONE: "2"})]
    assert tried(planned(around, cluster(labelled), web("p0"), web("p1"))) == {frozenset("de")}


def test_pods_that_a_gang_keeps_away_from_exclude_their_nodes(around: Around) -> None:
    """Whatever it says of its own members."""
    apart = near("podAntiAffinity", term(HOST, DB))
    nodes, running = [*FOUR, node("e", labels={ZONE: "1"})], [pod("r", on="a", labels=DB), pod("s", on="c", labels=DB)]
    found = planned(around, cluster(nodes, running), web("p0", more=apart), web("p1", more=apart))
    assert tried(found) == {frozenset("be")}


def test_running_pods_that_keep_a_gang_away_exclude_their_domain(around: Around) -> None:
    """Their word counts as for any other pod."""
    running = [pod("r", on="a", labels=DB, affinity=near("podAntiAffinity", term(ZONE, WEB)))]
    assert tried(planned(around, cluster(FOUR, running), web("p0"), web("p1"))) == {frozenset("cd")}


def test_a_leader_that_has_to_be_near_others_takes_its_workers_there(around: Around) -> None:
    """Only what members are to meet is left for later."""
    leader = pod("leader", labels={"role": "leader"}, affinity=near("podAffinity", term(ZONE, DB)))
    together = near("podAffinity", term(ZONE, {"role": "leader"}))
    workers = [pod(f"w{number}", labels=WEB, affinity=together) for number in range(2)]
    work, asked = counted(leader, *workers)
    asked = dataclasses.replace(asked, form=Form.BOUND, shapes=(shape(leader), shape(*workers)))
    snapshot = cluster(FOUR, [pod("r", on="c", labels=DB)])
    assert tried(chained(around, hooked()).plan(work, asked, snapshot, now=0.0)) == {frozenset("cd")}


def test_terms_that_no_single_pod_meets_are_not_met_by_two(around: Around) -> None:
    """As in kube-scheduler: of a member that meets one term and a pod that meets the other, neither counts."""
    fast = {"disk": "fast"}
    pods = [web(f"p{number}", term(ZONE, fast)) for number in range(2)]
    found = planned(around, cluster(FOUR, [pod("r", on="c", labels=fast)]), *pods)
    assert isinstance(found, Wait), found
    assert found.moving
    assert "4 node(s) didn't match pod affinity rules" in found.message
    found = planned(around, cluster(FOUR, [pod("r", on="c", labels=WEB | fast)]), *pods)
    assert offered(found) == {"c", "d"}


@pytest.mark.security("fairness")
def test_pods_of_another_namespace_neither_keep_it_away_nor_are_kept_away(around: Around) -> None:
    """Pods of another namespace exclude no node for a gang, unless a term names the namespace of the other side."""
    apart = near("podAntiAffinity", term(HOST, DB))
    against = near("podAntiAffinity", term(ZONE, WEB))
    running = [pod("r", on=name, labels=DB, namespace="stranger", affinity=against) for name in "ac"]
    found = planned(around, cluster(FOUR, running), web("p0", more=apart), web("p1", more=apart))
    assert tried(found) == {frozenset("ab"), frozenset("cd")}


@pytest.mark.security("input")
@pytest.mark.parametrize("odd", [7, "x", {"labelSelector": 7}, {"topologyKey": ["a"]}])
def test_terms_that_make_no_sense_beside_one_that_does_stop_nothing(around: Around, odd: object) -> None:
    """An affinity term that selects no pod keeps its own gang waiting, and what is not a term is ignored."""
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TOGETHER, odd]}}
    pods = [pod(f"p{number}", labels=WEB, affinity=affinity) for number in range(2)]
    found = planned(around, cluster(FOUR), *pods)
    assert isinstance(found, Wait if isinstance(odd, dict) else Plan), found


def test_no_more_domains_are_made_than_are_tried() -> None:
    """Those with the most room; of 300 hosts no set for each."""
    nodes = [node(f"n{number}", allocatable={"cpu": 10 if number == 250 else 8}) for number in range(300)]
    with Work() as done:
        found = domains(nodes, HOST)
    assert len(found) == gangs.MOST_DOMAINS
    assert found[0].nodes == {"n250"}
    assert done.calls["NodeColumns.nodes"] <= gangs.MOST_DOMAINS


def test_where_no_domain_has_enough_nodes_the_pods_say_what_they_asked_for(around: Around) -> None:
    """Two nodes are needed, and each zone has one."""
    nodes = [node("a", labels={ZONE: "1"}), node("b", labels={ZONE: "2"})]
    work, asked = counted(*(web(f"p{number}") for number in range(2)), nodes=2)
    found = chained(around, hooked()).plan(work, asked, cluster(nodes), now=VirtualClock().wall())
    assert isinstance(found, Wait), found
    said = f"its pods have to be near each other, on nodes with the same {ZONE}"
    assert found.message == f"unschedulable on cluster: {said}"


def test_domains_with_too_few_nodes_do_not_take_the_place_of_others() -> None:
    """However much room they have: the job would never start there."""
    large = [node(f"l{number}", labels={ZONE: f"l{number}"}, allocatable={"cpu": 90}) for number in range(20)]
    found = domains([*large, *FOUR], ZONE, least=2)
    assert [one.nodes for one in found[:2]] == [frozenset("ab"), frozenset("cd")]
