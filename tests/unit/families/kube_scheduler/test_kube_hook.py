"""The hook "kube-scheduler" in a chain: what it denies, remembers, rates and checks at the end."""

import importlib.metadata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kube_scheduler.hook import KubeScheduler
from slurm_bridge.families.kube_scheduler.options import KubeSchedulerOptions
from slurm_bridge.families.kube_scheduler.predicates import own, reasons
from slurm_bridge.families.kube_scheduler.priorities import table
from slurm_bridge.hooks import background, calls
from slurm_bridge.hooks.background import Backstage, NotAnswered, Target
from slurm_bridge.hooks.base import Ask, Denied, Deny, Scores
from slurm_bridge.hooks.chain import Chain, Plan, asked
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model.meta import Object, ObjectMeta
from slurm_bridge.model.node import Node
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
from tests.unit.families.kube_scheduler import scenes
from tests.unit.families.kube_scheduler.scenes import HOST, ZONE, claiming, near, node, pod, term
from tests.unit.hooks.builders import Around, gang, partition, request, shape, slurm_node, translated, workload

NOTHING: dict[str, Any] = {"predicates": (), "priorities": ()}


class Objects:
    """What is watched of one kind."""

    def __init__(self, *objects: Object, version: int = 1) -> None:
        self._objects = objects
        self.version = version

    def get(self, namespace: str, name: str) -> Object | None:
        return next((one for one in self._objects if one.key == (namespace, name)), None)

    def all(self) -> Sequence[Object]:
        return self._objects

    def __len__(self) -> int:
        return len(self._objects)


class Silence:
    """Extenders that say what the test wrote down, or nothing."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers

    def __call__(self, _target: Target, path: str, _body: Mapping[str, Any], *, seconds: float) -> Any:
        assert seconds > 0
        if path.strip("/") not in self._answers:
            raise NotAnswered("nobody is there")
        return self._answers[path.strip("/")]


def hooked(**options: Any) -> KubeScheduler:
    """The hook, with whatever it asks asked at once; each pod is rated for itself unless something else is said."""
    post = options.pop("post", Silence())
    backstage = Backstage(
        clock=options.pop("clock", VirtualClock()),
        post=post,
        threads=False,
        finest=options.pop("finest", background.unheard),
    )
    return KubeScheduler(
        KubeSchedulerOptions.model_validate({"priorities": [], "score_seconds": 0, **options}), backstage
    )


def chained(around: Around, hook: KubeScheduler, views: Mapping[Need, Objects] | None = None) -> Chain:
    """A chain of this hook alone."""
    made = Chain([calls.Hook(name=hook.name, hook=hook, needs=hook.needs, budget_seconds=60)], around.make())
    made.see({**dict.fromkeys(hook.needs, Objects()), **(views or {})})
    return made


def cluster(nodes: Sequence[Node], pods: Iterable[Pod] = ()) -> ClusterSnapshot:
    """A snapshot in which Slurm knows all nodes."""
    follows = scenes.keeper(nodes, pods)
    names = [one.metadata.name for one in nodes]
    follows.set_slurm(map(slurm_node, names), [partition("debug", *names, default=True)])
    return follows.snapshot()


def ask(*pods: Pod) -> Ask:
    """What a chain asks about these pods."""
    return asked(workload(*pods), translated())


def denied(chain: Chain, hook: KubeScheduler, snapshot: ClusterSnapshot, *pods: Pod) -> Denied:
    """What the hook itself answers within a pass."""
    with chain.session(snapshot, now=0.0) as session:
        found = hook.filter(session, ask(*pods), snapshot.names)
    assert isinstance(found, Denied)
    return found


def scores(chain: Chain, hook: KubeScheduler, snapshot: ClusterSnapshot, *pods: Pod) -> Scores:
    """Likewise for scores."""
    with chain.session(snapshot, now=0.0) as session:
        return hook.score(session, ask(*pods), snapshot.names)


TWO = [node("a", labels={ZONE: "1"}), node("b", labels={ZONE: "2"})]


def test_a_pod_that_fits_nowhere_is_told_so(around: Around) -> None:
    """The message is kube-scheduler's."""
    chain = chained(around, hooked())
    found = chain.plan(workload(pod(requests={"cpu": 9})), translated(), cluster(TWO), now=0.0)
    assert isinstance(found, Wait)
    assert found.message == "0/2 nodes are available: 2 Insufficient cpu."


def test_a_full_cluster_is_no_reason_to_wait(around: Around) -> None:
    """What is in use is Slurm's queue's matter, unless capacity is `free`."""
    full = cluster(TWO, [pod("r1", on="a", requests={"cpu": 8}), pod("r2", on="b", requests={"cpu": 8})])
    asking = workload(pod(requests={"cpu": 1}))
    assert isinstance(chained(around, hooked()).plan(asking, translated(), full, now=0.0), Plan)
    free = chained(around, hooked(capacity="free")).plan(asking, translated(), full, now=0.0)
    assert isinstance(free, Wait)


def test_equal_pods_get_the_same_record(around: Around) -> None:
    """As long as nothing changes that matters to them, pods that come and go change nothing."""
    hook = hooked()
    chain, follows = chained(around, hook), scenes.keeper(TWO)
    first = denied(chain, hook, follows.snapshot(), pod("x", requests={"cpu": 9}))
    follows.on_pod(None, pod("r", on="a", requests={"cpu": 1}))
    assert denied(chain, hook, follows.snapshot(), pod("y", requests={"cpu": 9})) is first
    follows.on_node(None, node("c"))
    assert denied(chain, hook, follows.snapshot(), pod("y", requests={"cpu": 9})) is not first


def test_pods_that_care_who_is_there_are_looked_at_again(around: Around) -> None:
    """An answer about neighbours holds until somebody moves."""
    hook = hooked()
    chain, follows = chained(around, hook), scenes.keeper(TWO)
    away = pod(affinity=near("podAntiAffinity", term(HOST, {"app": "web"})))
    first = denied(chain, hook, follows.snapshot(), away)
    assert denied(chain, hook, follows.snapshot(), away) is first
    follows.on_pod(None, pod("r", on="a", labels={"app": "web"}))
    assert dict(denied(chain, hook, follows.snapshot(), away).nodes) == {"a": (reasons.POD_ANTI_AFFINITY,)}


def test_pressure_counts_at_once(around: Around) -> None:
    """A kubelet's word does not move the version by which answers are kept, and is heard all the same."""
    hook = hooked()
    chain, follows = chained(around, hook), scenes.keeper(TWO)
    assert not denied(chain, hook, follows.snapshot(), pod()).nodes
    follows.on_node(TWO[0], node("a", labels={ZONE: "1"}, conditions={"DiskPressure": "True"}))
    assert dict(denied(chain, hook, follows.snapshot(), pod()).nodes) == {"a": (reasons.DISK_PRESSURE,)}
    follows.on_node(None, TWO[0])
    assert not denied(chain, hook, follows.snapshot(), pod()).nodes


def test_promised_nodes(around: Around) -> None:
    """Where what is free counts, so does a pod that was promised the node."""
    hook = hooked(capacity="free")
    chain = chained(around, hook)
    snapshot = cluster(TWO, [pod("w", nominated="a", requests={"cpu": 8}, priority=1)])
    assert dict(denied(chain, hook, snapshot, pod(requests={"cpu": 1})).nodes) == {"a": ("Insufficient cpu",)}
    assert not denied(chain, hook, snapshot, pod(requests={"cpu": 1}, priority=2)).nodes


def test_of_several_shapes_one_that_fits_is_enough(around: Around) -> None:
    """A node is denied when no shape can use it."""
    hook = hooked()
    left, right = pod("l", node_selector={ZONE: "1"}), pod("r", node_selector={ZONE: "3"})
    chain, snapshot = chained(around, hook), cluster(TWO)
    both = asked(gang(left, right), translated(shapes=(shape(left), shape(right))))
    with chain.session(snapshot, now=0.0) as session:
        found = hook.filter(session, both, snapshot.names)
    assert isinstance(found, Denied)
    assert dict(found.nodes) == {"b": (reasons.NODE_SELECTOR,)}


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
    limits = Objects(CsiNode(metadata=ObjectMeta(name="a"), spec=CsiNodeSpec(drivers=(none, silent))))
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


def test_scores_come_with_their_matrix_and_tiers(around: Around) -> None:
    """The emptier node is better; tiers are as configured."""
    hook = hooked(
        priorities=[{"name": "LeastRequestedPriority", "weight": 2}], tiers=2, first_tier=1, widen_after_seconds=5
    )
    used = [pod("r", on="a", requests={"cpu": 4, "memory": 512})]
    found = scores(chained(around, hook), hook, cluster(TWO, used), pod(requests={"cpu": 1, "memory": 1}))
    assert found.nodes["b"] > found.nodes["a"]
    assert found.tiers is not None
    assert (found.tiers.count, found.tiers.first, found.tiers.widen_after) == (2, 1, 5.0)
    assert found.matrix is not None
    assert [(row.name, row.weight) for row in found.matrix.rows] == [("LeastRequestedPriority", 2)]


def test_every_score_can_be_read(around: Around) -> None:
    """As kube-scheduler logs it, for whoever wants it that fine."""
    lines: list[str] = []
    hook = hooked(priorities=[{"name": "EqualPriority"}], finest=lambda made: lines.extend(made()))
    scores(chained(around, hook), hook, cluster(TWO), pod())
    assert lines == ["team/new -> a: EqualPriority, Score: (1)", "team/new -> b: EqualPriority, Score: (1)"]


def test_its_own_rules_are_not_foreign() -> None:
    """They are called where they are, and not in a worker."""
    assert not hooked().foreign


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


def test_only_some_nodes_are_rated(around: Around) -> None:
    """With a percentage, as many as kube-scheduler would look at."""
    many = [node(f"n{number}") for number in range(150)]
    hook = hooked(priorities=[{"name": "LeastRequestedPriority"}], percentage_of_nodes=30)
    found = scores(chained(around, hook), hook, cluster(many), pod(requests={"cpu": 1}))
    assert len(found.nodes) == 100


class TestVerify:
    def verify(self, snapshot: ClusterSnapshot, nodes: Mapping[str, str], *pods: Pod, **options: Any) -> Any:
        """What is said of these places for pods, by name."""
        hook = hooked(**options)
        places = {f"uid-{name}": where for name, where in nodes.items()}
        return chained(Around(), hook).verify(workload(*pods), places, snapshot)

    def test_free_counts_without_the_pod_itself(self) -> None:
        """A pod that is counted there already is not in its own way; others are."""
        half = {"cpu": 5}
        own = cluster(TWO, [pod("new", on="a", requests=half)])
        assert self.verify(own, {"new": "a"}, pod(requests=half)) is None
        others = cluster(TWO, [pod("r", on="a", requests=half)])
        found = self.verify(others, {"new": "a"}, pod(requests=half))
        assert isinstance(found, Deny)
        assert found.nodes == {"a"}
        assert found.message == "nodes that Slurm allocated cannot take the pods: a: Insufficient cpu"

    def test_members_of_a_gang_count_for_each_other(self) -> None:
        """Two that each fit do not fit together; beside each other they do."""
        pair = [pod("x", requests={"cpu": 5}), pod("y", requests={"cpu": 5})]
        assert isinstance(self.verify(cluster(TWO), {"x": "a", "y": "a"}, *pair), Deny)
        assert self.verify(cluster(TWO), {"x": "a", "y": "b"}, *pair) is None

    def test_members_that_do_not_want_each_other_near(self) -> None:
        """Domains reach over nodes, so members on other nodes count too."""
        away = near("podAntiAffinity", term(ZONE, {"app": "web"}))
        pair = [pod(name, labels={"app": "web"}, affinity=away) for name in "xy"]
        assert self.verify(cluster(TWO), {"x": "a", "y": "b"}, *pair) is None
        same_zone = cluster([TWO[0], node("c", labels={ZONE: "1"})])
        found = self.verify(same_zone, {"x": "a", "y": "c"}, *pair)
        assert isinstance(found, Deny)
        assert found.nodes == {"a", "c"}

    def test_a_node_that_is_gone(self) -> None:
        """It cannot take anybody."""
        found = self.verify(cluster(TWO), {"new": "gone"}, pod())
        assert isinstance(found, Deny)
        assert "gone: the node is gone from Kubernetes" in found.message

    def test_a_pod_without_a_node_is_no_matter(self) -> None:
        """Whoever places decides on those."""
        assert self.verify(cluster(TWO), {}, pod()) is None


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
