"""Several profiles by scheduler name, and a KubeSchedulerConfiguration as their source."""

import re
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.families.kube_scheduler import plugins
from slurm_bridge.families.kube_scheduler.options import KubeSchedulerOptions
from slurm_bridge.families.kube_scheduler.predicates.standard import PREDICATES
from slurm_bridge.families.kube_scheduler.priorities.table import PRIORITIES
from slurm_bridge.model.features import Feature
from tests.unit.families.kube_scheduler.kube_hook_scenes import chained, cluster, denied, profiled, scores
from tests.unit.families.kube_scheduler.scenes import node, pod
from tests.unit.hooks.builders import Around

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
NODES = [node("full-sun", labels={"pool": "batch"}, unschedulable=True), node("shade", labels={"pool": "web"})]


def read(**document: Any) -> KubeSchedulerOptions:
    """The options that follow from such a document."""
    return KubeSchedulerOptions.model_validate({"configuration": {**HEAD, **document}})


def profile(name: str = "", *, args: dict[str, dict[str, Any]] | None = None, **points: Any) -> dict[str, Any]:
    """One profile: arguments by plugin, sets of plugins by extension point."""
    config = [{"name": plugin, "args": given} for plugin, given in (args or {}).items()]
    return {"schedulerName": name, "pluginConfig": config, "plugins": points}


def named(*names: str) -> list[dict[str, str]]:
    """Plugins by name."""
    return [{"name": name} for name in names]


def test_a_document_that_says_nothing_is_the_default_profile_of_kube_scheduler() -> None:
    """Plugins, order and weights of kube-scheduler 1.36."""
    made = read()
    assert [one.name for one in made.predicates] == list(plugins.PREDICATES.values())
    assert [(one.name, one.weight) for one in made.priorities] == [
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("LeastAllocated", 1),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("BalancedAllocation", 1),
        ("ImageLocality", 1),
    ]
    assert (made.percentage_of_nodes, made.spread_defaulting, made.profiles) == (0, "system", ())


def test_a_disabled_plugin_neither_filters_nor_scores() -> None:
    made = read(profiles=[profile(multiPoint={"disabled": named("TaintToleration")})])
    assert "PodToleratesNodeTaints" not in [one.name for one in made.predicates]
    assert "TaintToleration" not in [one.name for one in made.priorities]


def test_a_plugin_can_be_disabled_as_a_score_alone() -> None:
    made = read(profiles=[profile(score={"disabled": named("TaintToleration")})])
    assert "PodToleratesNodeTaints" in [one.name for one in made.predicates]
    assert "TaintToleration" not in [one.name for one in made.priorities]


def test_what_is_enabled_for_scores_replaces_the_weight_for_all_points() -> None:
    score = {"disabled": named("*"), "enabled": [{"name": "ImageLocality", "weight": 7}, {"name": "NodeAffinity"}]}
    made = read(profiles=[profile(score=score)])
    assert [(one.name, one.weight) for one in made.priorities] == [("ImageLocality", 7), ("NodeAffinity", 1)]


def test_a_plugin_that_is_enabled_at_one_point_goes_first_there() -> None:
    made = read(profiles=[profile(filter={"enabled": named("PodTopologySpread")})])
    assert made.predicates[0].name == "EvenPodsSpread"
    assert len(made.predicates) == len(plugins.PREDICATES)


def test_arguments_of_plugins_are_those_of_predicates_and_priorities() -> None:
    strategy = {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": "example.com/fpga", "weight": 3}],
        "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]},
    }
    args = {
        "NodeResourcesFit": {"ignoredResources": ["example.com/licence"], "scoringStrategy": strategy},
        "InterPodAffinity": {"kind": "InterPodAffinityArgs", "hardPodAffinityWeight": 5},
    }
    made = read(profiles=[profile(args=args)])
    fits = next(one for one in made.predicates if one.name == "PodFitsResources")
    ratio = next(one for one in made.priorities if one.name == "RequestedToCapacityRatio")
    assert fits.args == {"ignored_resources": ["example.com/licence"]}
    assert ratio.args == {"scale": 100, "shape": [(0, 0), (100, 10)], "resources": [("example.com/fpga", 3)]}
    assert made.hard_pod_affinity_weight == 5


def test_an_extender_is_asked_as_the_document_says() -> None:
    extender = {
        "urlPrefix": "https://extender.example/scheduler",
        "filterVerb": "filter",
        "enableHTTPS": True,
        "httpTimeout": "1m30s",
        "tlsConfig": {"caFile": "/etc/ca.crt"},
        "managedResources": [{"name": "example.com/fpga", "ignoredByScheduler": True}],
    }
    made = read(extenders=[extender])
    (one,) = made.extenders
    assert (one.url, one.timeout_seconds, one.ca_file) == ("https://extender.example/scheduler", 90.0, "/etc/ca.crt")
    assert next(row for row in made.predicates if row.name == "PodFitsResources").args == {
        "ignored_resources": ["example.com/fpga"]
    }


BAD = {
    "kind": ({"kind": "Pod"}, "configuration.kind: Input should be 'KubeSchedulerConfiguration'"),
    "unknown": ({"profile": []}, "configuration.profile: Extra inputs are not permitted"),
    "plugin": (
        {"profiles": [profile(filter={"enabled": named("Nope")})]},
        "configuration.profiles.0.plugins.filter: Nope: neither a plugin of kube-scheduler, nor installed",
    ),
    "weight": (
        {"profiles": [profile(args={"InterPodAffinity": {"hardPodAffinityWeight": 101}})]},
        "configuration.profiles.0.pluginConfig.0.args.hardPodAffinityWeight: ",
    ),
    "groups": (
        {"profiles": [profile(args={"NodeResourcesFit": {"ignoredResourceGroups": ["example.com"]}})]},
        "configuration.profiles.0.pluginConfig.0.args.ignoredResourceGroups: ",
    ),
    "strange args": (
        {"profiles": [profile(args={"Nope": {}})]},
        "configuration.profiles.0.pluginConfig.0: Nope takes no args here",
    ),
    "no shape": (
        {"profiles": [profile(args={"NodeResourcesFit": {"scoringStrategy": {"type": "RequestedToCapacityRatio"}}})]},
        "NodeResourcesFit: RequestedToCapacityRatio needs requestedToCapacityRatio.shape",
    ),
    "bind": ({"extenders": [{"urlPrefix": "http://a", "bindVerb": "bind"}]}, "configuration.extenders.0.bindVerb: "),
    "https": (
        {"extenders": [{"urlPrefix": "http://a", "enableHTTPS": True}]},
        "configuration.extenders.0: with enableHTTPS, urlPrefix must begin with https://, not 'http://a'",
    ),
    "time": (
        {"extenders": [{"urlPrefix": "http://a", "httpTimeout": "soon"}]},
        "configuration.extenders.0.httpTimeout: must be a time such as 5s or 1m30s, not 'soon'",
    ),
    "twice": ({"profiles": [profile("a"), profile("a")]}, "configuration: profiles: schedulerName a is given twice"),
    "unnamed": ({"profiles": [profile("a"), profile()]}, "profiles: with several, each needs a schedulerName"),
}


@pytest.mark.parametrize(("document", "words"), BAD.values(), ids=BAD)
def test_what_the_bridge_does_not_do_is_refused_with_its_place(document: dict[str, Any], words: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=re.escape(words)):
        read(**document)


def test_an_option_and_the_document_that_it_follows_from_are_not_mixed() -> None:
    with pytest.raises(pydantic.ValidationError, match="priorities: cannot be given together with configuration"):
        KubeSchedulerOptions.model_validate({"configuration": HEAD, "priorities": []})


def test_options_that_no_document_has_stand_beside_it() -> None:
    assert KubeSchedulerOptions.model_validate({"configuration": HEAD, "tiers": 1}).tiers == 1


@given(
    st.lists(st.sampled_from([*plugins.PREDICATES, "*"]), unique=True),
    st.lists(st.sampled_from([*plugins.PREDICATES, *plugins.PRIORITIES]), unique=True),
)
def test_whatever_is_switched_on_and_off_each_plugin_stands_once(off: list[str], on: list[str]) -> None:
    made = read(profiles=[profile(multiPoint={"disabled": named(*off), "enabled": named(*on)})])
    filters, ratings = [one.name for one in made.predicates], [one.name for one in made.priorities]
    assert len(set(filters)) == len(filters)
    assert len(set(ratings)) == len(ratings)
    assert set(filters) <= PREDICATES.keys()
    assert set(ratings) <= PRIORITIES.keys()
    assert set(filters) >= {plugins.PREDICATES[name] for name in on if name in plugins.PREDICATES}
    assert not {plugins.PREDICATES[name] for name in {*off} - {*on, "*"}} & set(filters)


def test_pods_are_placed_by_the_profile_of_their_scheduler_name(around: Around) -> None:
    """What a profile leaves out is as in the options of the hook."""
    hook = profiled(
        predicates=["CheckNodeUnschedulable"], priorities=[], profiles=[{"scheduler_name": "any", "predicates": []}]
    )
    chain, seen = chained(around, hook), cluster(NODES)
    assert denied(chain, hook, seen, pod(scheduler_name="any")).nodes == {}
    for other in ("slurm-bridge", "", "ANY", "any\n" * 1000):
        assert set(denied(chain, hook, seen, pod(scheduler_name=other)).nodes) == {"full-sun"}


def test_scores_are_those_of_the_profile(around: Around) -> None:
    batch = {
        "required": [],
        "preferred": [
            {"weight": 1, "preference": {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["batch"]}]}}
        ],
    }
    web = {"schedulerName": "web", "plugins": {"score": {"disabled": named("*")}}}
    document = {
        **HEAD,
        "profiles": [
            profile(
                "batch",
                args={
                    "NodeAffinity": {
                        "addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": batch["preferred"]}
                    }
                },
            ),
            web,
        ],
    }
    hook = profiled(configuration=document)
    chain, seen = chained(around, hook), cluster(NODES)
    rated = scores(chain, hook, seen, pod(scheduler_name="batch")).nodes
    assert rated["full-sun"] > rated["shade"]
    assert scores(chain, hook, seen, pod(scheduler_name="web")).nodes == {}


def test_only_what_every_profile_honours_is_honoured() -> None:
    """A pod whose profile looks at no host ports must not be told that they are honoured."""
    assert Feature.HOST_PORTS in profiled().honours
    assert Feature.HOST_PORTS not in profiled(profiles=[{"scheduler_name": "any", "predicates": []}]).honours


def test_a_scheduler_name_has_one_profile() -> None:
    with pytest.raises(pydantic.ValidationError, match="profiles: scheduler_name any is given twice"):
        profiled(profiles=[{"scheduler_name": "any"}, {"scheduler_name": "any"}])
