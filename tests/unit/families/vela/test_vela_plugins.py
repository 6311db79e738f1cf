"""Filter and score plugins over the columns of a cluster."""

import math
from typing import Any

import hypothesis
import msgspec
import numpy as np
import pytest
from hypothesis import strategies as st

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.vela import catalogue
from slurm_bridge.families.vela.catalogue import PluginOptions
from slurm_bridge.families.vela.plugins import fit, geo
from slurm_bridge.families.vela.plugins.geo import Coordinates
from slurm_bridge.families.vela.scene import SamplingScene
from slurm_bridge.model.node import Node, Taint
from slurm_bridge.model.pod import Container, Pod, ResourceNeeds
from slurm_bridge.translate import resources
from tests.unit.families.vela.support_vela import limited, whole
from tests.unit.hooks.builders import node, pod, tolerate

NOW = 1_700_000_000.0
_degrees = st.tuples(st.floats(-90, 90), st.floats(-180, 180))


def seen(*nodes: Any, pods: tuple[Pod, ...] = ()) -> ClusterSnapshot:
    """These nodes with these pods."""
    made = cluster_cache.ClusterCache(resources.requests_of)
    for one in nodes:
        made.on_node(None, one)
    for one in pods:
        made.on_pod(None, one)
    return made.snapshot()


def fitting(name: str, one: Pod, snapshot: ClusterSnapshot, **args: Any) -> dict[str, bool]:
    """What a filter says of every node."""
    (plugin,) = catalogue.filters([PluginOptions(name=name, args=args)])
    rows = np.flatnonzero(snapshot.columns.present)
    answers = plugin.fits(SamplingScene(one, snapshot.columns, NOW), rows).tolist()
    return dict(zip(snapshot.columns.names[rows].tolist(), answers, strict=True))


def scored(name: str, one: Pod, snapshot: ClusterSnapshot, **args: Any) -> dict[str, int]:
    """What a score plugin says of every node."""
    (scorer,) = catalogue.scorers([PluginOptions(name=name, args=args)])
    rows = np.flatnonzero(snapshot.columns.present)
    answers = scorer.plugin.score(SamplingScene(one, snapshot.columns, NOW), rows).tolist()
    return dict(zip(snapshot.columns.names[rows].tolist(), answers, strict=True))


def busy(name: str, where: str, **requests: Any) -> Pod:
    """A pod that runs there."""
    return pod(name, requests=requests, node_name=where, phase="Running")


class TestResourcesFit:
    CLUSTER = seen(node("full"), node("free"), pods=(busy("x", "full", cpu="12", memory="48Gi"),))

    def test_what_is_in_use_is_slurms_matter(self):
        """Unless it is configured otherwise, limits are compared with all that a node has."""
        assert fitting("ResourcesFit", limited(limits={"cpu": "8"}), self.CLUSTER) == {"full": True, "free": True}

    def test_free_compares_with_what_is_free(self):
        """At this moment."""
        found = fitting("ResourcesFit", limited(limits={"cpu": "8"}), self.CLUSTER, capacity="free")
        assert found == {"full": False, "free": True}

    def test_a_resource_that_no_node_has_fits_nowhere(self):
        """It counts as 0."""
        found = fitting("ResourcesFit", limited(limits={"example.com/fpga": "1"}), self.CLUSTER)
        assert found == {"full": False, "free": False}

    def test_use_counts_in_the_scores(self):
        """Free nodes are best, or full ones."""
        one = limited(limits={"cpu": "1"})
        assert scored("ResourcesFit", one, self.CLUSTER) == {"full": 25, "free": 100}
        assert scored("ResourcesFit", one, self.CLUSTER, mode="MostAllocated") == {"full": 75, "free": 0}

    def test_requests_count_and_limits_where_nothing_is_requested(self):
        """As Kubernetes does; limits alone count where that is configured."""
        small = seen(node("small", allocatable={"cpu": "4"}), node("large", allocatable={"cpu": "64"}))
        both = pod("p", requests={"cpu": "2"})
        limits = ResourceNeeds(requests={"cpu": "2"}, limits={"cpu": "8"})
        bounded = msgspec.structs.replace(
            both, spec=msgspec.structs.replace(both.spec, containers=(Container(name="c", resources=limits),))
        )
        large = {"small": False, "large": True}
        assert fitting("ResourcesFit", pod("p", requests={"cpu": "8"}), small) == large
        assert fitting("ResourcesFit", limited(limits={"cpu": "8"}), small) == large
        assert fitting("ResourcesFit", bounded, small) == {"small": True, "large": True}
        assert fitting("ResourcesFit", bounded, small, amounts="limits") == large

    def test_limits_of_all_containers_are_added(self):
        """In the units of columns; what has no limit counts nothing."""
        one = limited(limits={"cpu": "500m", "memory": "1Ki"})
        spec = msgspec.structs.replace(one.spec, containers=(*one.spec.containers * 2, Container(name="free")))
        two = msgspec.structs.replace(one, spec=spec)
        assert SamplingScene(two, self.CLUSTER.columns, NOW).limits == {"cpu": 1000, "memory": 2048}

    def test_exact_percentages_are_not_cut(self):
        """29 % are 29 although 0.29 is no binary fraction."""
        amounts = {"cpu": whole(100), "memory": whole(100)}
        left = {"cpu": whole(71), "memory": whole(71)}
        assert fit.score({}, amounts.__getitem__, left.__getitem__, "MostAllocated").tolist() == [29]

    def test_a_node_without_a_resource_has_none_of_it_in_use(self):
        """Nothing is divided by nothing."""
        nothing = whole(0)
        assert fit.score({}, lambda _: nothing, lambda _: nothing).tolist() == [100]


class TestNodeRules:
    def test_each_rule_keeps_nodes_away(self):
        """The words for it are those of other hooks."""
        tainted = Taint(key="gpu", value="yes", effect="NoSchedule")
        cluster = seen(
            node("good", labels={"zone": "a"}),
            node("elsewhere", labels={"zone": "b"}),
            node("tainted", labels={"zone": "a"}, taints=[tainted]),
            node("cordoned", labels={"zone": "a"}, unschedulable=True),
            node("unready", labels={"zone": "a"}, ready=False),
            node("leaving", labels={"zone": "a"}, deleting=True),
        )
        here = {
            name for name, fits in fitting("NodeRules", limited(node_selector={"zone": "a"}), cluster).items() if fits
        }
        assert here == {"good"}
        patient = limited(tolerations=(tolerate("gpu"), tolerate("node.kubernetes.io/unschedulable")))
        everywhere = {name for name, fits in fitting("NodeRules", patient, cluster).items() if fits}
        assert everywhere == {"good", "elsewhere", "tainted", "cordoned"}

    def test_required_affinity_counts(self):
        """As the node selector does."""
        term = {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}
        wanted = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
        cluster = seen(node("n", labels={"zone": "a"}), node("m", labels={"zone": "b"}))
        assert fitting("NodeRules", limited(affinity=wanted), cluster) == {"n": False, "m": True}


class TestGeoLocation:
    @hypothesis.given(_degrees, _degrees)
    def test_distances_are_the_same_there_and_back(self, one: tuple[float, float], other: tuple[float, float]):
        """And never longer than half way around."""
        there = geo.distance(Coordinates(*one), np.array([other[0]]), np.array([other[1]]))[0]
        back = geo.distance(Coordinates(*other), np.array([one[0]]), np.array([one[1]]))[0]
        assert there == pytest.approx(back, abs=1e-3)
        assert 0 <= there <= math.pi * geo.EARTH_RADIUS_KM + 1e-6

    def test_nodes_without_a_readable_place_are_nowhere(self):
        """They do not fit where a target is given."""
        key = geo.GeoOptions().node_location
        cluster = seen(_at("near", key, "48.2, 16.37"), _at("far", key, "0,0"), _at("odd", key, "Vienna"), node("none"))
        one = limited(annotations={geo.GeoOptions().pod_target: "48.2,16.37"})
        assert fitting("GeoLocation", one, cluster) == {"near": True, "far": False, "odd": False, "none": False}
        assert scored("GeoLocation", one, cluster) == {"near": 100, "far": 0, "odd": 0, "none": 0}
        assert set(scored("GeoLocation", limited(), cluster).values()) == {100}

    def test_the_distance_can_be_widened(self):
        """By the pod itself."""
        options = geo.GeoOptions()
        cluster = seen(_at("n", options.node_location, "0,11"))
        asked = {options.pod_target: "0,10", options.pod_max_distance_km: "150"}
        assert scored("GeoLocation", limited(annotations=asked), cluster) == {"n": 27}

    @pytest.mark.parametrize("text", ["", "1", "1,2,3", "91,0", "0,181", "nan,0", "1e1,0"])
    def test_what_is_no_place_is_an_error(self, text: str):
        """Which says what one looks like."""
        with pytest.raises(ValueError, match="is not LATITUDE,LONGITUDE"):
            geo.parse(text)

    def test_a_target_that_is_no_place_is_an_error(self):
        """Which names the annotation, and repeats no more of it than it takes to recognise it."""
        one = limited(annotations={geo.GeoOptions().pod_target: "Vienna" * 1000})
        with pytest.raises(ValueError, match=r"annotation .*geo-target: 'Vienna.*\.\.\.' is not LATITUDE") as error:
            scored("GeoLocation", one, seen(node("n")))
        assert len(str(error.value)) < 250

    @pytest.mark.parametrize("text", ["0", "-1", "inf", "nan", "ten", "10 km", "9" * 5000])
    def test_what_is_no_distance_is_an_error(self, text: str):
        """Which names the annotation."""
        options = geo.GeoOptions()
        asked = {options.pod_target: "0,10", options.pod_max_distance_km: text}
        with pytest.raises(ValueError, match=r"annotation .*geo-max-distance-km: .* is not a number above 0") as error:
            scored("GeoLocation", limited(annotations=asked), seen(node("n")))
        assert len(str(error.value)) < 250


class TestBatteryLevel:
    OPTIONS = catalogue.BatteryLevel.Options()

    def test_a_minimum_keeps_weak_nodes_away(self):
        """A node without a battery is never weak, one that says nonsense has none."""
        level, capacity = self.OPTIONS.node_level, self.OPTIONS.node_capacity_mah
        cluster = seen(
            node("strong", labels={level: "80", capacity: "5000"}),
            node("weak", labels={level: "20", capacity: "5000"}),
            node("small", labels={level: "90", capacity: "100"}),
            node("unknown", labels={level: "90"}),
            node("odd", labels={level: "full"}),
            node("wired"),
        )
        asked = {self.OPTIONS.pod_min_level: "50", self.OPTIONS.pod_min_capacity_mah: "1000"}
        found = fitting("BatteryLevel", limited(annotations=asked), cluster)
        assert {name for name, fits in found.items() if fits} == {"strong", "odd", "wired"}
        assert all(fitting("BatteryLevel", limited(), cluster).values())

    def test_a_minimum_that_is_no_number_is_an_error(self):
        """Which names the annotation and the value."""
        one = limited(annotations={self.OPTIONS.pod_min_level: "much"})
        with pytest.raises(ValueError, match="battery-min-level: 'much' is not a whole number"):
            fitting("BatteryLevel", one, seen(node("n")))
        long = limited(annotations={self.OPTIONS.pod_min_level: "much" * 1000})
        with pytest.raises(ValueError, match="is not a whole number") as error:
            fitting("BatteryLevel", long, seen(node("n")))
        assert len(str(error.value)) < 250


class TestLeastRecentlyUsed:
    def test_the_longest_unused_node_is_the_best(self):
        """By the youngest pod there; a node without any has never been used."""
        half = "1996-12-24T11:06:40Z"  # about half of the time until now
        pods = (
            pod("x", node_name="new", phase="Running", metadata={"creation_timestamp": "2023-11-14T22:13:20Z"}),
            pod("y", node_name="new", phase="Running", metadata={"creation_timestamp": half}),
            pod("z", node_name="old", phase="Running", metadata={"creation_timestamp": half}),
        )
        found = scored("LeastRecentlyUsed", limited(), seen(node("new"), node("old"), node("never"), pods=pods))
        assert found == {"new": 0, "old": 49, "never": 100}


class TestCatalogue:
    def test_an_unknown_plugin_is_named_with_what_there_is(self):
        """Of that use."""
        with pytest.raises(
            ValueError, match="plugin Fastest: is not one that scores; these are ResourcesFit, GeoLocation"
        ):
            catalogue.Score.model_validate("Fastest")

    def test_a_plugin_of_the_other_use_is_not_one(self):
        """BatteryLevel only filters."""
        with pytest.raises(ValueError, match="plugin BatteryLevel: is not one that scores"):
            catalogue.Score.model_validate("BatteryLevel")

    def test_arguments_are_checked(self):
        """Also those for a plugin that takes none."""
        with pytest.raises(ValueError, match="mode"):
            catalogue.Score.model_validate({"name": "ResourcesFit", "args": {"mode": "Best"}})
        with pytest.raises(ValueError, match="plugin NodeRules: takes no args, and is given strict"):
            catalogue.Filter.model_validate({"name": "NodeRules", "args": {"strict": True}})


def _at(name: str, key: str, place: str) -> Node:
    one = node(name)
    return msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, annotations={key: place}))
