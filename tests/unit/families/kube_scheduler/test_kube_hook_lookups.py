"""What the hook looks up, checks again and asks others for."""

import importlib.metadata
from typing import Any

import pytest

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kube_scheduler.predicates import own, reasons
from slurm_bridge.families.kube_scheduler.priorities import table
from slurm_bridge.hooks.base import Ask
from slurm_bridge.hooks.chain import Chain, asked
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model.meta import Object, ObjectMeta
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.services import Controller, ControllerSpec, Service, ServiceSpec
from slurm_bridge.model.storage import (
    Claim,
    ClaimSpec,
    CsiNode,
    CsiNodeSpec,
    Driven,
    DriverLimit,
    NodeDriver,
    Volume,
    VolumeReach,
    VolumeSpec,
)
from slurm_bridge.model.verdict import Wait
from slurm_bridge.runtime import packages
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.runtime.json_decoder import decoder
from tests.unit.families.kube_scheduler import scenes
from tests.unit.families.kube_scheduler.kube_hook_scenes import (
    TWO,
    Objects,
    Silence,
    chained,
    cluster,
    denied,
    hooked,
    scores,
)
from tests.unit.families.kube_scheduler.scenes import HOST, ZONE, claiming, near, node, pod, term
from tests.unit.hooks.builders import Around, partition, request, slurm_node, translated, workload

NOTHING: dict[str, Any] = {"predicates": (), "priorities": ()}


def bound(name: str, where: str) -> tuple[Claim, Volume]:
    """A claim and its volume, which one node reaches."""
    row = {"key": HOST, "operator": "In", "values": [where]}
    reach = VolumeReach(required={"nodeSelectorTerms": [{"matchExpressions": [row]}]})
    claim = Claim(metadata=ObjectMeta(namespace="team", name=name), spec=ClaimSpec(volume_name=f"pv-{name}"))
    csi = Driven(driver="csi.example.com", volume_handle=name)
    return claim, Volume(metadata=ObjectMeta(name=f"pv-{name}"), spec=VolumeSpec(node_affinity=reach, csi=csi))


def stored(*pairs: tuple[Claim, Volume], version: int = 1) -> dict[Need, Objects]:
    """These as they are watched."""
    claims, volumes = zip(*pairs, strict=True)
    return {Need.PVCS: Objects(*claims, version=version), Need.PVS: Objects(*volumes)}


def test_equal_pods_with_different_volumes(around: Around) -> None:
    """Each node has to be right for all of them."""
    hook = hooked()
    chain = chained(around, hook, stored(bound("x", "a"), bound("y", "b")))
    snapshot = cluster([*TWO, node("c")])
    one = denied(chain, hook, snapshot, pod("x", volumes=claiming("x")))
    assert one.nodes.keys() == {"b", "c"}
    both = denied(chain, hook, snapshot, pod("x", volumes=claiming("x")), pod("y", volumes=claiming("y")))
    assert both.nodes.keys() == {"a", "b", "c"}


def test_a_changed_claim_is_another_question(around: Around) -> None:
    """An answer about a pod with claims holds until claims change; others do not care."""
    hook = hooked()
    chain, snapshot = chained(around, hook, stored(bound("x", "a"))), cluster(TWO)
    using, plain = pod("x", volumes=claiming("x")), pod("y")
    before = denied(chain, hook, snapshot, plain)
    assert denied(chain, hook, snapshot, using).nodes.keys() == {"b"}
    chain.see({**dict.fromkeys(hook.needs, Objects()), **stored(bound("x", "b"), version=2)})
    assert denied(chain, hook, snapshot, using).nodes.keys() == {"a"}
    assert denied(chain, hook, snapshot, plain) is before


def test_limits_come_from_csi_nodes(around: Around) -> None:
    """What a driver says of a node."""
    hook = hooked(predicates=["MaxCSIVolumeCount"])
    none = NodeDriver(name="csi.example.com", allocatable=DriverLimit(count=0))
    silent = NodeDriver(name="other.example.com")
    without = decoder(CsiNode).decode(b'{"metadata": {"name": "b"}, "spec": {"drivers": null}}')
    limits = Objects(CsiNode(metadata=ObjectMeta(name="a"), spec=CsiNodeSpec(drivers=(none, silent))), without)
    chain = chained(around, hook, {**stored(bound("x", "a")), Need.CSINODES: limits})
    assert denied(chain, hook, cluster(TWO), pod(volumes=claiming("x"))).nodes.keys() == {"a"}


def test_services_and_namespaces_are_looked_up(around: Around) -> None:
    """Only where they are needed."""
    services = Objects(
        Service(metadata=ObjectMeta(namespace="team", name="s"), spec=ServiceSpec(selector={"app": "web"})),
        Service(metadata=ObjectMeta(namespace="team", name="headless")),
    )
    spaces = Objects(Object(metadata=ObjectMeta(name="other", labels={"kind": "shared"})))
    among = {"namespaceSelector": {"matchLabels": {"kind": "shared"}}}
    web = pod(labels={"app": "web"}, affinity=near("podAntiAffinity", term(HOST, {"app": "db"}, **among)))
    running = [pod("w", on="a", labels={"app": "web"}), pod("d", on="b", labels={"app": "db"}, namespace="other")]
    affine = {"name": "CheckServiceAffinity", "args": {"labels": [ZONE]}}
    hook = hooked(predicates=[affine, "MatchInterPodAffinity"])
    assert hook.needs == {Need.SERVICES, Need.NAMESPACES}
    chain = chained(around, hook, {Need.SERVICES: services, Need.NAMESPACES: spaces})
    snapshot = cluster([*TWO, node("c", labels={ZONE: "1"}), node("d", labels={ZONE: "2"})], running)
    assert dict(denied(chain, hook, snapshot, web).nodes) == dict.fromkeys("bd", (reasons.SERVICE_AFFINITY,))
    alone = hooked(predicates=["MatchInterPodAffinity"])
    only = chained(around, alone, {Need.NAMESPACES: spaces})
    assert dict(denied(only, alone, snapshot, web).nodes) == {"b": (reasons.POD_ANTI_AFFINITY,)}


def test_needs_follow_the_options() -> None:
    """What is not configured is not watched."""
    assert hooked(**NOTHING).needs == frozenset()
    storage = {Need.PVCS, Need.PVS, Need.STORAGECLASSES}
    assert hooked(predicates=["CheckVolumeBinding"]).needs == storage
    assert hooked().needs == {*storage, Need.CSINODES, Need.NAMESPACES}


def test_controllers_are_looked_up(around: Around) -> None:
    """Pods of one controller lie apart from each other."""
    selector: dict[str, object] = {"matchLabels": {"app": "web"}}
    owner = Controller(metadata=ObjectMeta(namespace="team", name="set"), spec=ControllerSpec(selector=selector))
    hook = hooked(priorities=[{"name": "SelectorSpread"}])
    assert {Need.SERVICES, Need.REPLICASETS, Need.STATEFULSETS} <= hook.needs
    chain = chained(around, hook, {Need.STATEFULSETS: Objects(owner, Controller(metadata=ObjectMeta(name="odd")))})
    plain = [node("a"), node("b")]
    found = scores(chain, hook, cluster(plain, [pod("w", on="a", labels={"app": "web"})]), pod(labels={"app": "web"}))
    assert found.nodes["b"] > found.nodes["a"]


EXTENDER = {"url": "http://extender", "filter_verb": "filter", "prioritize_verb": "rate", "weight": 3}


def test_extenders_have_their_say(around: Around) -> None:
    """They deny some of what predicates leave, with their own words, and their scores are a row."""
    says = Silence(
        filter={"nodes": {"items": [{"metadata": {"name": "b"}}]}, "failedNodes": {"a": "too loud"}},
        rate=[{"host": "b", "score": 2}],
    )
    hook = hooked(extenders=[EXTENDER], post=says)
    chain, snapshot = chained(around, hook), cluster(TWO)
    assert dict(denied(chain, hook, snapshot, pod()).nodes) == {"a": ("too loud",)}
    assert scores(chain, hook, snapshot, pod()).nodes["b"] == 6
    hook.close()


def test_a_pod_waits_for_an_extender_that_is_silent(around: Around) -> None:
    """Its word counts, so nothing is submitted without it."""
    found = chained(around, hooked(extenders=[EXTENDER])).plan(workload(pod()), translated(), cluster(TWO), now=0.0)
    assert isinstance(found, Wait)
    assert "nobody is there" in found.message


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"predicates": ["HostName", "Host"]}, "predicate Host: neither built in nor installed"),
        ({"predicates": ["HostName", "HostName"]}, "predicate HostName: is configured twice"),
        ({"predicates": [{"name": "HostName", "args": {"x": 1}}]}, "predicate HostName: takes no args"),
    ],
)
def test_a_wrong_configuration_is_told(options: dict[str, Any], told: str) -> None:
    """With the name of its culprit."""
    with pytest.raises(ValueError, match=told):
        hooked(**options)


def left_of(chain: Chain, snapshot: ClusterSnapshot, subject: Pod) -> set[str]:
    """The nodes that filters leave for a pod."""
    with chain.session(snapshot, now=1.0) as session:
        return set(session.filter_nodes(asked(workload(subject), translated()), snapshot.names))


def test_pods_that_were_promised_nodes_do_not_take_each_others_answers(around: Around) -> None:
    """Each leaves room for the other, and none for itself: equal as they are, their rivals are not the same."""
    one, two = (pod(name, nominated=on, requests={"cpu": 6}) for name, on in (("one", "a"), ("two", "b")))
    follows = scenes.keeper([node("a"), node("b")], [])
    for subject in (one, two):
        follows.on_pod(None, subject)
    chain = chained(around, hooked(predicates=["GeneralPredicates"], capacity="free"))
    assert [left_of(chain, follows.snapshot(), subject) for subject in (one, two)] == [{"a"}, {"b"}]


def test_a_sites_own_predicate_is_asked_about_every_pod(around: Around, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may look at the name, which is no part of what makes pods equal."""
    module = "tests.unit.families.kube_scheduler.test_kube_own_predicates"
    offered = importlib.metadata.EntryPoint(name="named", value=f"{module}:named", group=own.GROUP)
    monkeypatch.setattr(packages, "offered", {own.GROUP: {"named": offered}, table.GROUP: {}}.get)
    chain, snapshot = chained(around, hooked(predicates=["named"])), cluster([node("a"), node("b")])
    assert [left_of(chain, snapshot, pod(name)) for name in "ab"] == [{"a"}, {"b"}]


def test_affinity_of_namespaces_by_their_labels_has_to_see_them() -> None:
    """For the priority as for the predicate."""
    assert Need.NAMESPACES in hooked(predicates=[], priorities=[{"name": "InterPodAffinity"}]).needs


def test_in_a_burst_scores_of_an_equal_pod_count_for_a_moment(around: Around) -> None:
    """While only pods come and go; then, for another shape, and when nodes change, they are worked out anew."""
    clock, lines = VirtualClock(), list[str]()
    hook = hooked(
        priorities=[{"name": "LeastRequested"}],
        score_seconds=0.25,
        clock=clock,
        finest=lambda made: lines.extend(made()),
    )
    room = {"cpu": "4", "memory": "4Gi", "pods": "10"}
    follows = scenes.keeper([node("a", allocatable=room), node("b", allocatable=room)])
    follows.set_slurm([slurm_node("a"), slurm_node("b")], [partition("debug", "a", "b", default=True)])

    def scores(cpu: str = "1") -> dict[str, float]:
        seen, asked = follows.snapshot(), Ask(workload=workload(pod(requests={"cpu": cpu})), request=request())
        with chained(around, hook).session(seen, now=0.0) as session:
            return dict(hook.score(session, asked, seen.names).nodes)

    first = scores()
    follows.on_pod(None, pod("there", requests={"cpu": "2"}, on="a"))
    assert scores() == first
    assert len(lines) == 4
    other = scores("2")
    assert other["a"] < other["b"]
    clock.advance(0.3)
    again = scores()
    assert again["a"] < again["b"]
    follows.on_node(None, node("c", allocatable=room))
    assert scores().keys() == {"a", "b", "c"}
