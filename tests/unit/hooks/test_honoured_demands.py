"""A hook says what it sees to, and a pod that asks for anything else waits with the name of a hook that would."""

import dataclasses
from typing import Any

import pytest

from slurm_bridge.hooks import honoured_demands, registry
from slurm_bridge.hooks.base import Admit, Ask
from slurm_bridge.hooks.chain import Chain, Plan
from slurm_bridge.hooks.registry import HookConfig
from slurm_bridge.model.features import Feature, FeatureDemand
from slurm_bridge.model.verdict import Reject, Wait
from tests.unit.hooks.builders import Around, cluster, hook, node, translated, workload
from tests.unit.hooks.test_registry import Plain, built, wrong

ONE = cluster([node("a")])


def demand(feature: Feature, name: str = "a", **fields: Any) -> FeatureDemand:
    """One field of one pod."""
    return FeatureDemand(feature=feature, subject=f"Pod team/{name}", field=f"spec.{feature.name.lower()}", **fields)


def planned(chain: Chain, *demands: FeatureDemand) -> Plan | Wait | Reject:
    """What becomes of a pod that asks for these."""
    return chain.plan(workload(), dataclasses.replace(translated(), demands=demands), ONE, now=100.0)


class Ports(Plain):
    """A site's hook that sees to ports."""

    honours = (Feature.HOST_PORTS,)


class Wrong(Plain):
    honours = ("ports",)


def test_a_hook_of_a_site_honours_what_it_declares(around: Around) -> None:
    """As those that ship do; and nothing else."""
    chain = built(around, HookConfig(name="site"), site=Ports)
    assert chain.hooks[-1].honours == {Feature.HOST_PORTS}
    assert chain.unhonoured(dataclasses.replace(translated(), demands=(demand(Feature.HOST_PORTS),))) is None
    found = chain.unhonoured(dataclasses.replace(translated(), demands=(demand(Feature.POD_AFFINITY),)))
    assert found is not None
    assert found.reason == honoured_demands.REASON


def test_a_declaration_in_other_words_is_refused(around: Around) -> None:
    """Before anything runs, with the words that there are."""
    said = wrong(around, HookConfig(name="site"), site=Wrong)
    assert "hook site: honours 'ports', use one of TOPOLOGY_SPREAD, POD_AFFINITY," in said
    assert said.endswith("of model.features.Feature")


def test_hooks_before_it_have_their_say_first(around: Around) -> None:
    """Whoever may not be here at all is told that; queues count nobody who waits for a hook."""
    chain = Chain([hook("no", admit=Reject(reason="R", message="m")), hook("q", capacity=pytest.fail)], around.make())
    found = planned(chain, demand(Feature.HOST_PORTS))
    assert isinstance(found, Reject)
    chain = Chain([hook("yes", admit=Admit()), hook("q", capacity=pytest.fail)], around.make())
    assert isinstance(planned(chain, demand(Feature.HOST_PORTS)), Wait)


def test_hooks_see_what_is_asked_for(around: Around) -> None:
    """In the ask, which a site's hook may look at."""
    asked: list[Ask] = []
    seeing = hook("site", admit=lambda _session, ask: asked.append(ask) or Admit())
    planned(Chain([seeing], around.make()), demand(Feature.HOST_PORTS))
    assert [one.feature for one in asked[0].demands] == [Feature.HOST_PORTS]


def test_the_message_names_each_field_and_some_of_many(around: Around) -> None:
    """A pod of a group, its field, the hook, and what else would help."""
    chain = Chain([], around.make())
    found = planned(chain, *(demand(Feature.POD_AFFINITY, f"p{number}") for number in range(5)))
    assert isinstance(found, Wait)
    assert found.message.startswith(
        "Pod team/p0: spec.pod_affinity needs hook kube-scheduler (predicate MatchInterPodAffinity), which is not part "
        "of this cluster's chain; operators add it to `hooks`, or the pod only prefers to be near others; Pod team/p1: "
    )
    assert found.message.endswith("; and 2 more")
    assert found.warning


@pytest.mark.parametrize("feature", Feature)
def test_every_feature_has_its_advice(feature: Feature) -> None:
    """Of a hook that ships."""
    assert registry.shipped(honoured_demands.ADVICE[feature].hook.partition(" ")[0]) is not None


def test_the_shipped_chain_honours_what_the_advice_says(around: Around) -> None:
    """kube-scheduler's hook as it is by default, and device-claims with a table of classes."""
    advised = set(honoured_demands.ADVICE)
    table = {"classes": [{"device_class": "gpu.x.io", "gres": "gpu", "index": "index"}]}
    chain = registry.build([HookConfig(name="device-claims", options=table)], around.make(), {})
    assert chain.hooks[-1].honours == {Feature.RESOURCE_CLAIMS, Feature.CLASS_RESOURCES}
    advised -= chain.hooks[-1].honours
    families = [HookConfig(name=name) for name in ("preemption", "vela")]
    for chain in (registry.build([], around.make(), {}), registry.build(families, around.make(), {})):
        assert not any(one.honours for one in chain.hooks)
        chain.close()
    chain = registry.build([HookConfig(name="kube-scheduler")], around.make(), {})
    assert chain.hooks[-1].honours == advised


def test_what_is_ignored_is_told() -> None:
    """Once for all fields."""
    lacking = [demand(Feature.HOST_PORTS), demand(Feature.POD_AFFINITY)]
    assert honoured_demands.obstacle(lacking, strict=False) is None
    assert honoured_demands.ignored(lacking) == (
        "Pod team/a: spec.host_ports, spec.pod_affinity is ignored (unhonoured: ignore), because no hook honours it"
    )
    assert honoured_demands.ignored([]) == ""
