"""Priorities about what nodes are and who is there."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.families.kube_scheduler import classes, scene
from slurm_bridge.families.kube_scheduler.priorities import images, interpod, table
from slurm_bridge.families.kube_scheduler.priority_chain import Prioritizer
from slurm_bridge.families.kube_scheduler.scene import Lookup
from slurm_bridge.model.meta import OwnerReference
from slurm_bridge.model.node import Taint
from slurm_bridge.model.pod import Container, Pod, Toleration
from slurm_bridge.model.selectors import Requirement
from tests.unit.families.kube_scheduler.scoring import asking, by_name, machine, rated, run, there

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def services(*selectors: Mapping[str, str]) -> Lookup:
    """Services that select by these labels."""
    return Lookup(service_selectors=lambda _: selectors)


def near(labels: Mapping[str, str], key: str = "zone", **others: Any) -> dict[str, Any]:
    """A term of inter-pod affinity."""
    return {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": key, **others}


def preferring(*terms: Mapping[str, Any], kind: str = "podAffinity", weight: int = 5) -> dict[str, Any]:
    """These terms as wishes."""
    return {kind: {PREFERRED: [{"weight": weight, "podAffinityTerm": term} for term in terms]}}


def spread(key: str, skew: int = 1, selector: Mapping[str, str] | None = None, **others: Any) -> dict[str, Any]:
    """A wish for an even spread."""
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(selector or {"app": "web"})},
        **others,
    }


def test_a_preference_for_a_name_is_a_preference() -> None:
    """Fields are conditions like labels; an operator that fields do not know holds nowhere."""
    field = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    wishes = [
        {"weight": 2, "preference": {"matchFields": [field]}},
        {"weight": 7, "preference": {"matchFields": [{**field, "operator": "Exists"}]}},
    ]
    pod = asking(affinity={"nodeAffinity": {PREFERRED: wishes}})
    assert rated("NodeAffinity", [machine("a"), machine("b")], pod) == {"a": 0, "b": 10}


@pytest.mark.parametrize(
    ("scale", "expected"), [(10, {"a": 10, "b": 9}), (100, {"a": 100, "b": 0})], ids=["older", "as 1.36"]
)
def test_a_preference_without_conditions(scale: int, expected: dict[str, int]) -> None:
    """It holds everywhere for policies of older releases, and nowhere for kube-scheduler 1.36."""
    named = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]}
    wishes = [{"weight": 99, "preference": {}}, {"weight": 99}, {"weight": 2, "preference": named}]
    pod = asking(affinity={"nodeAffinity": {PREFERRED: wishes}})
    nodes = [machine("a", labels={"zone": "x"}), machine("b")]
    assert rated("NodeAffinity", nodes, pod, args={"scale": scale}) == expected


def test_scores_reach_to_a_hundred_on_the_newer_scale() -> None:
    """Every priority that normalises has both."""
    soft = Taint(key="old", effect="PreferNoSchedule")
    nodes = [machine("a", taints=(soft, Taint(key="slow", effect="PreferNoSchedule"))), machine("b", taints=(soft,))]
    assert rated("TaintToleration", nodes, asking(), args={"scale": 100}) == {"a": 0, "b": 50}


@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "c"]), max_size=3), min_size=1, max_size=5),
    st.sets(st.sampled_from(["a", "b", "c"])),
)
def test_taints_are_counted_as_they_are_written(taints: list[list[str]], tolerated: set[str]) -> None:
    """The fewer that are not tolerated the better."""
    nodes = [
        machine(f"n{number}", taints=[Taint(key=key, effect="PreferNoSchedule") for key in keys])
        for number, keys in enumerate(taints)
    ]
    pod = asking(tolerations=tuple(Toleration(key=key, operator="Exists") for key in tolerated))
    raw = [sum(key not in tolerated for key in keys) for keys in taints]
    expected = [10 - 10 * one // max(raw) if max(raw) else 10 for one in raw]
    assert list(rated("TaintToleration", nodes, pod).values()) == expected


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("app", "app:latest"),
        ("host:5000/app", "host:5000/app:latest"),
        ("host:5000/app:1", "host:5000/app:1"),
        ("app@sha256:0123", "app@sha256:0123"),
    ],
)
def test_an_image_without_a_tag_is_the_latest(image: str, name: str) -> None:
    """A colon in front of the last slash is a port's, and a digest is as good as a tag."""
    assert images.normalized(image) == name


def test_images_are_looked_up_anew_where_nodes_changed() -> None:
    """What was looked up before is kept for the others."""
    mib = 2**20
    pod = asking(containers=(Container(name="c", image="app:1"),))
    rate = images.image_locality(10)
    keeper = there([machine("a", images={"app:1": 1000 * mib}), machine("b")])
    first = rate(scene.scene(keeper.snapshot(), pod))
    assert first.tolist() == [4, 0]
    changed = machine("b", images={"app:1": 1000 * mib})
    keeper.on_node(machine("b"), changed)
    assert rate(scene.scene(keeper.snapshot(), pod)).tolist() == [10, 10]


def of_images(*images: str, init: Iterable[str] = (), volumes: Iterable[str] = ()) -> Pod:
    """A pod of these images."""
    return asking(
        containers=tuple(Container(name=f"c{number}", image=one) for number, one in enumerate(images)),
        init_containers=tuple(Container(name=f"i{number}", image=one) for number, one in enumerate(init)),
        volumes=tuple({"name": f"v{number}", "image": {"reference": one}} for number, one in enumerate(volumes)),
    )


@pytest.mark.parametrize(
    ("pod", "older", "newer"),
    [
        # One container: (600 - 23) / (1000 - 23) of the scale, on both nodes.
        (of_images("app:1"), (5, 5), (59, 59)),
        # Two: 1200 MiB on a; half of it on b. Newer releases divide by 2000 - 23.
        (of_images("app:1", "app:1"), (10, 10), (59, 59)),
        (of_images("app:1", "tool:1"), (8, 5), (44, 29)),
        # An image of an init container, and of a volume: 300 MiB more on a, of which half count.
        (of_images("app:1", init=["tool:1"]), (5, 5), (44, 29)),
        (of_images("app:1", volumes=["tool:1"]), (5, 5), (89, 59)),
    ],
)
def test_images_that_a_node_has(pod: Pod, older: tuple[int, int], newer: tuple[int, int]) -> None:
    """Init containers and image volumes count on the scale to 100 only, where each container raises the upper bound."""
    mib = 2**20
    nodes = [machine("a", images={"app:1": 600 * mib, "tool:1": 600 * mib}), machine("b", images={"app:1": 600 * mib})]
    for scale, expected in ((10, older), (100, newer)):
        found = rated("ImageLocality", nodes, pod, args={"scale": scale})
        assert (found["a"], found["b"]) == expected


def test_pods_with_different_image_volumes_are_of_different_classes() -> None:
    """Scores of one do not stand for the other."""
    assert classes.key(of_images("app:1", volumes=["a:1"])) != classes.key(of_images("app:1", volumes=["b:1"]))


def test_an_unreadable_wish_to_avoid_pods_avoids_nobody() -> None:
    """One odd annotation must not stop every pod."""
    key = "scheduler.alpha.kubernetes.io/preferAvoidPods"
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="r", uid="u", controller=True)
    good = {"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "u"}}}]}
    nodes = [
        machine("bad", annotations={key: "{"}),
        machine("odd", annotations={key: json.dumps({"preferAvoidPods": ["x"]})}),
        machine("list", annotations={key: "[]"}),
        machine("good", annotations={key: json.dumps(good)}),
    ]
    pod = asking(metadata={"owner_references": (owner,)})
    assert rated("NodePreferAvoidPods", nodes, pod) == {"bad": 10, "good": 0, "list": 10, "odd": 10}


def test_pods_that_are_going_do_not_count_for_spreading() -> None:
    """Their place is nearly free."""
    going = {"deletion_timestamp": "2026-01-01T00:00:00Z"}
    pods = [
        asking("x", node="a", labels={"app": "web"}, metadata=going),
        asking("y", node="b", labels={"app": "web"}),
    ]
    found = rated(
        "SelectorSpread",
        [machine("a"), machine("b")],
        asking(labels={"app": "web"}),
        pods,
        lookup=services({"app": "web"}),
    )
    assert found == {"a": 10, "b": 0}


def test_controllers_spread_as_services_do() -> None:
    """A replica set's selector counts, an empty one and a service without one do not."""
    lookup = Lookup(
        service_selectors=lambda _: ({},),
        controller_selectors=lambda _: (
            (),
            (Requirement("app", "In", ("web",)),),
            (Requirement("app", "In", ("db",)),),
        ),
    )
    pods = [asking("x", node="a", labels={"app": "web"}), asking("y", node="b", labels={"app": "db"})]
    found = rated("SelectorSpread", [machine("a"), machine("b")], asking(labels={"app": "web"}), pods, lookup=lookup)
    assert found == {"a": 0, "b": 10}


@given(
    st.lists(st.tuples(st.sampled_from(["", "z1", "z2", "z3"]), st.integers(0, 4)), min_size=1, max_size=6),
)
def test_spreading_over_zones_follows_its_rule(nodes: list[tuple[str, int]]) -> None:
    """A third for the node and two for the zone; in exact numbers."""
    machines = [machine(f"n{i}", labels={ZONE: zone} if zone else {}) for i, (zone, _) in enumerate(nodes)]
    pods = [
        asking(f"p{i}-{j}", node=f"n{i}", labels={"app": "web"})
        for i, (_, count) in enumerate(nodes)
        for j in range(count)
    ]
    most = max(count for _, count in nodes)
    zones: dict[str, int] = {}
    for zone, count in nodes:
        if zone:
            zones[zone] = zones.get(zone, 0) + count
    expected = {}
    for i, (zone, count) in enumerate(nodes):
        score = Fraction(10 * (most - count), most) if most else Fraction(10)
        if zone:
            top = max(zones.values())
            score = score / 3 + (Fraction(10 * (top - zones[zone]), top) if top else Fraction(10)) * 2 / 3
        expected[f"n{i}"] = int(score)
    found = rated("SelectorSpread", machines, asking(labels={"app": "web"}), pods, lookup=services({"app": "web"}))
    assert found == expected


def test_only_the_first_service_counts_for_service_anti_affinity() -> None:
    """As in kube-scheduler."""
    nodes = [machine("a", labels={"rack": "1"}), machine("b", labels={"rack": "2"}), machine("c")]
    pods = [asking("x", node="a", labels={"app": "web"}), asking("y", node="b", labels={"tier": "front"})]
    lookup = services({"app": "web"}, {"tier": "front"})
    pod = asking(labels={"app": "web", "tier": "front"})
    found = rated("ServiceAntiAffinity", nodes, pod, pods, {"label": "rack"}, lookup=lookup)
    assert found == {"a": 0, "b": 10, "c": 0}


@given(
    st.lists(
        st.tuples(st.sampled_from(["x", "y", ""]), st.lists(st.sampled_from("ab"), max_size=3)), min_size=1, max_size=5
    ),
    st.sampled_from(["podAffinity", "podAntiAffinity"]),
    st.integers(1, 100),
)
def test_interpod_affinity_follows_its_rule(nodes: list[tuple[str, list[str]]], kind: str, weight: int) -> None:
    """Every pod that is meant adds to all nodes of its place."""
    machines = [machine(f"n{i}", labels={"zone": zone} if zone else {}) for i, (zone, _) in enumerate(nodes)]
    pods = [
        asking(f"p{i}-{j}", node=f"n{i}", labels={"app": app})
        for i, (_, apps) in enumerate(nodes)
        for j, app in enumerate(apps)
    ]
    sign = 1 if kind == "podAffinity" else -1
    raw = [sign * weight * sum(apps.count("a") for other, apps in nodes if zone and other == zone) for zone, _ in nodes]
    low, high = min(0, *raw), max(0, *raw)
    expected = [10 * (one - low) // (high - low) if high > low else 0 for one in raw]
    pod = asking(affinity=preferring(near({"app": "a"}), kind=kind, weight=weight))
    assert list(rated("InterPodAffinity", machines, pod, pods).values()) == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # 0 is no bound: of two neighbourhoods that are both wished for, one is the worst.
        ((2, 3), (0, 100)),
        ((1, 1), (0, 0)),
        # 100 * (29 / 100) is a little less than 29 in floating point, and what follows the point is cut off.
        ((0, 29, 100), (0, 28, 100)),
    ],
)
def test_interpod_affinity_shares_out_the_newer_scale(counts: Sequence[int], expected: Sequence[int]) -> None:
    """As kube-scheduler 1.36: between the worst and the best of the nodes that fit."""
    nodes = [machine(f"n{i}", labels={"zone": f"z{i}"}) for i in range(len(counts))]
    pods = [
        asking(f"p{i}-{j}", node=f"n{i}", labels={"app": "a"}) for i, count in enumerate(counts) for j in range(count)
    ]
    pod = asking(affinity=preferring(near({"app": "a"}), weight=1))
    assert tuple(rated("InterPodAffinity", nodes, pod, pods, {"scale": 100}).values()) == tuple(expected)


def test_wishes_of_pods_that_are_there_count_as_well() -> None:
    """What others prefer, would rather avoid and must have, each for as many pods as say so."""
    nodes = [machine(name, labels={"zone": name}) for name in ("likes", "shuns", "needs", "other")]
    pods = [
        asking("l1", node="likes", affinity=preferring(near({"app": "web"}), weight=2)),
        asking("l2", node="likes", affinity=preferring(near({"app": "web"}), weight=2)),
        asking("s", node="shuns", affinity=preferring(near({"app": "web"}), kind="podAntiAffinity", weight=6)),
        asking("n", node="needs", affinity={"podAffinity": {REQUIRED: [near({"app": "web"})]}}),
        asking("o", node="other", affinity=preferring(near({"app": "db"}), weight=50)),
    ]
    pod, args = asking(labels={"app": "web"}), {"hard_pod_affinity_weight": 3}
    found = rated("InterPodAffinity", nodes, pod, pods, args)
    assert found == {"likes": 10, "needs": 9, "other": 6, "shuns": 0}


@pytest.mark.security("input")
@pytest.mark.parametrize(
    "wishes",
    [
        True,
        [7],
        [{"weight": "x", "podAffinityTerm": near({"app": "web"})}],
        [{"weight": 10**25, "podAffinityTerm": near({"app": "web"})}],
        [{"weight": 101, "podAffinityTerm": near({"app": "web"})}],
        [{"weight": 1, "podAffinityTerm": [1]}],
        [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": [1]}}}}],
    ],
)
def test_wishes_that_make_no_sense_count_for_nothing(wishes: object) -> None:
    """An invalid preference of a running pod does not affect the scores of other pods."""
    nodes = [machine("a", labels={"zone": "1"}), machine("b", labels={"zone": "2"})]
    odd = asking("x", node="a", affinity={"podAffinity": {interpod.PREFERRED: wishes}})
    assert set(rated("InterPodAffinity", nodes, asking(labels={"app": "web"}), [odd]).values()) == {0}


def test_a_term_means_its_namespaces() -> None:
    """Its own pod's where it names none, all for an empty selector of namespaces."""
    nodes = [machine("a", labels={"zone": "1"}), machine("b", labels={"zone": "2"})]
    pods = [asking("x", node="a", labels={"app": "db"}, namespace="elsewhere")]
    scores = {
        "own": near({"app": "db"}),
        "named": near({"app": "db"}, namespaces=["elsewhere"]),
        "all": near({"app": "db"}, namespaceSelector={}),
    }
    found = {
        name: rated("InterPodAffinity", nodes, asking(affinity=preferring(term)), pods)["a"]
        for name, term in scores.items()
    }
    assert found == {"own": 0, "named": 10, "all": 10}


def spreading(nodes: Sequence[tuple[str, int]], *wishes: Mapping[str, Any], **spec: Any) -> dict[str, int]:
    """Scores of nodes by zone and number of pods of the kind that is counted."""
    machines = [
        machine(f"n{i}", labels={HOST: f"n{i}", **({"zone": zone} if zone else {})})
        for i, (zone, _) in enumerate(nodes)
    ]
    pods: list[Pod] = [
        asking(f"p{i}-{j}", node=f"n{i}", labels={"app": "web"})
        for i, (_, count) in enumerate(nodes)
        for j in range(count)
    ]
    pod = asking(labels={"app": "web"}, topology_spread_constraints=wishes, **spec)
    return rated("PodTopologySpread", machines, pod, pods, {"scale": 100})


def test_the_emptiest_place_is_the_best() -> None:
    """Over zones: all nodes of one score alike."""
    assert spreading([("x", 3), ("x", 0), ("y", 1)], spread("zone")) == {"n0": 25, "n1": 25, "n2": 100}


def test_every_node_is_a_place_of_its_own() -> None:
    """Over hosts."""
    assert spreading([("x", 2), ("x", 0), ("y", 1)], spread(HOST)) == {"n0": 0, "n1": 100, "n2": 33}


def test_a_node_outside_the_topology_is_worth_nothing() -> None:
    """And the pods there count for nobody."""
    assert spreading([("", 7), ("x", 1), ("y", 1)], spread("zone")) == {"n0": 0, "n1": 100, "n2": 100}


def test_nodes_that_the_pod_cannot_use_do_not_count() -> None:
    """Unless the constraint says that they do."""
    nodes, chosen = [("x", 0), ("x", 4), ("y", 1)], {"node_selector": {HOST: "n0"}}
    assert spreading(nodes, spread("zone"), **chosen)["n0"] == 100
    assert spreading(nodes, spread("zone", nodeAffinityPolicy="Ignore"), **chosen)["n0"] < 50


def test_a_wish_over_fewer_places_weighs_less() -> None:
    """By the logarithm of their number, and by its own skew."""
    zones, hosts = math.log(2 + 2), math.log(4 + 2)
    burden = [3 * zones + 3 * hosts, 3 * zones, 1 * zones + 1 * hosts, 1 * zones]
    low, high = (round(bound) for bound in (min(burden), max(burden)))
    expected = {f"n{i}": 100 * (high + low - round(one)) // high for i, one in enumerate(burden)}
    assert spreading([("x", 3), ("x", 0), ("y", 1), ("y", 0)], spread("zone"), spread(HOST)) == expected


def test_a_wish_that_selects_every_pod_counts_none() -> None:
    """As kube-scheduler, which takes an empty selector for one that has nothing to count."""
    wish = {**spread("zone"), "labelSelector": {}}
    assert spreading([("x", 3), ("y", 0)], wish) == {"n0": 100, "n1": 100}


def test_a_pod_without_wishes_is_not_rated() -> None:
    """A hard constraint is a predicate's matter."""
    assert set(spreading([("x", 1), ("y", 0)], {**spread("zone"), "whenUnsatisfiable": "DoNotSchedule"}).values()) == {
        0
    }


def test_pods_elsewhere_count_where_only_some_nodes_are_judged() -> None:
    """A node that is looked at as if somebody had left it still belongs to its zone."""
    nodes = [machine(name, labels={"zone": zone}) for name, zone in (("a", "1"), ("b", "1"), ("c", "2"))]
    keeper = there(nodes, [asking("x", node="b", labels={"app": "db"})])
    whole = scene.scene(keeper.snapshot(), asking(affinity=preferring(near({"app": "db"}))))
    some = whole.at({name: keeper.snapshot().nodes[name] for name in ("a", "c")})
    rate = interpod.interpod(1)
    assert rate(whole).tolist() == [5, 5, 0]
    assert rate(some).tolist() == [5, 0]


def test_a_node_that_went_leaves_no_score_behind() -> None:
    """Its row is a hole until another node takes it."""
    keeper = there([machine(name, labels={ZONE: "z"}) for name in ("a", "b", "c")])
    assert keeper.snapshot().columns.row("b") == 1
    keeper.on_node(machine("b"), None)
    snapshot = keeper.snapshot()
    found = run(Prioritizer([table.configured(name) for name in ("Equal", "SelectorSpread")]), snapshot)
    assert by_name(found) == {"a": 11, "c": 11}
    assert dict(found.shown.rows[0].scores) == {"a": 1, "c": 1}
