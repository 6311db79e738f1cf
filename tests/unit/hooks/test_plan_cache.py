"""Equal pods are planned once where every hook is steady, and each gets the plan that it would get alone."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.hooks import calls
from slurm_bridge.hooks.base import GO
from slurm_bridge.hooks.chain import Chain, Plan
from slurm_bridge.hooks.registry import HookConfig, build
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.names import JOB_PREFIX
from slurm_bridge.model.pod import Container, Pod, PodSpec, ResourceNeeds
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Root, Source, Workload
from slurm_bridge.translate import resources
from slurm_bridge.translate.rules import Rules
from slurm_bridge.translate.templates import TranslationCache
from slurm_bridge.translate.translator import Translated
from tests.unit.hooks.builders import Around, node, partition, slurm_node

RULES = Rules(cluster_id="c", partition="debug")
NODES = ("a", "b", "c", "d")


def one(number: int, cpus: str = "1", said: Mapping[str, str] | None = None, **spec: Any) -> Workload:
    """Pod team/p-number."""
    name, annotations = f"p-{number}", dict(said or {})
    container = Container(name="c", resources=ResourceNeeds(requests={"cpu": cpus, "memory": "1Gi"}))
    made = Pod(
        metadata=ObjectMeta(name=name, namespace="team", uid=f"uid-{number}", annotations=annotations),
        spec=PodSpec(containers=(container,), scheduler_name="slurm-bridge-scheduler", **spec),
    )
    root = Root(kind="Pod", namespace="team", name=name, uid=made.uid)
    source = Source(kind="Pod", name=name, annotations=annotations)
    return Workload(root=root, pods=(made,), sources=(source,), job_name=name)


def built(around: Around, *more: HookConfig) -> Chain:
    """Policy and eligibility, which are part of every chain, and these."""
    return build(more, around.make(), installed={})


class World:
    """A cluster that changes."""

    def __init__(self) -> None:
        self.cache = cluster_cache.ClusterCache(resources.requests_of)
        self._nodes = {name: node(name) for name in NODES}
        for each in self._nodes.values():
            self.cache.on_node(None, each)
        self.set_slurm(NODES)

    def set_slurm(self, names: tuple[str, ...], **terms: Any) -> None:
        made = partition("debug", *names, default=True, **terms)
        self.cache.set_slurm([slurm_node(name) for name in names], (made,))

    def change(self, what: str, name: str) -> None:
        """A node is cordoned or free again, Slurm has fewer nodes, or other terms for its partition, or a pod comes."""
        if what == "slurm":
            self.set_slurm(tuple(each for each in NODES if each != name))
        elif what in ("root", "users"):
            self.set_slurm(NODES, root_only=what == "root")
        elif what == "pod":
            self.cache.assume(f"uid-on-{name}", name, {"cpu": 1}, None)
        else:
            before, after = self._nodes[name], node(name, unschedulable=what == "cordon", version="2")
            self._nodes[name] = after
            self.cache.on_node(before, after)


def comparable(plan: Plan | Wait | Reject) -> object:
    """All of it but how long each hook took, and which record of the nodes it holds."""
    if not isinstance(plan, Plan):
        return plan
    fields = {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan)}
    lines = [line._replace(milliseconds=0.0) for line in fields.pop("lines")]
    emission = fields.pop("emission")
    return fields, lines, emission.request, emission.allowed, plan.excluded


CHANGES = ("cordon", "free", "slurm", "root", "users", "pod")
STEPS = st.one_of(
    st.tuples(st.just("plan"), st.sampled_from(["1", "2", "99"]), st.sampled_from(["", "debug", "nowhere", "x" * 300])),
    st.tuples(
        st.sampled_from(["cordon", "free", "slurm", "root", "users", "pod"]), st.sampled_from(NODES), st.just("")
    ),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, min_size=2, max_size=25))
def test_equal_pods_that_are_planned_once_have_the_plans_of_pods_that_are_planned_one_by_one(
    steps: list[tuple[str, str, str]],
) -> None:
    """Whatever happens to the nodes of either side meanwhile, and also where there is no plan."""
    world, cache = World(), TranslationCache()
    together, one_by_one = built(Around()), built(Around())
    for number, (what, which, where) in enumerate(steps):
        if what != "plan":
            world.change(what, which)
            continue
        said = {f"{JOB_PREFIX}partition": where} if where else {}
        workload = one(number, which, said)
        translated = cache.translate(workload, RULES)
        if isinstance(translated, Reject):
            continue
        alone = dataclasses.replace(translated, template=None)
        snapshot, now = world.cache.snapshot(), 100.0 + number
        found = together.plan(workload, translated, snapshot, now=now)
        assert comparable(found) == comparable(one_by_one.plan(workload, alone, snapshot, now=now))


def planned(chain: Chain, world: World, cache: TranslationCache, workload: Workload, **others: Any) -> Plan:
    translated = cache.translate(workload, RULES)
    assert isinstance(translated, Translated)
    plan = chain.plan(workload, translated, world.cache.snapshot(), now=100.0, **others)
    assert isinstance(plan, Plan), plan
    return plan


def calls_of(around: Around) -> int:
    return len(around.observer.calls)


def test_hooks_are_not_asked_about_the_second_of_equal_pods() -> None:
    """The request has its own name, owner and comment; pods on nodes do not matter to steady hooks."""
    world, cache, around = World(), TranslationCache(), Around()
    chain = built(around)
    planned(chain, world, cache, one(1))
    asked = calls_of(around)
    world.change("pod", "a")
    second = planned(chain, world, cache, one(2))
    assert calls_of(around) == asked
    assert (second.request.name, second.request.owner.uid, second.request.comment) == ("p-2", "uid-2", "team/p-2 (Pod)")
    assert [each.pods[0].uid for each in second.shapes] == ["uid-2"]


def test_hooks_are_asked_again_when_nodes_changed() -> None:
    """A cordoned node is excluded for the next pod."""
    world, cache = World(), TranslationCache()
    chain = built(Around())
    assert planned(chain, world, cache, one(1)).request.excluded_nodes == ()
    world.change("cordon", "a")
    assert planned(chain, world, cache, one(2)).request.excluded_nodes == ("a",)


def test_a_workload_that_avoids_nodes_or_goes_on_is_planned_by_itself() -> None:
    """What it met before is its own."""
    world, cache = World(), TranslationCache()
    chain = built(Around())
    first = planned(chain, world, cache, one(1))
    assert planned(chain, world, cache, one(2), avoid={"b": "bad"}).request.excluded_nodes == ("b",)
    assert planned(chain, world, cache, one(3)).request.excluded_nodes == ()
    assert planned(chain, world, cache, one(4), previous=first.state).state == first.state


class Talks:
    """Says that it is steady, and is not the bridge's own."""

    steady = True

    def admit(self, _session: object, _ask: object) -> object:
        return GO


def test_a_chain_with_any_other_hook_asks_it_about_each_pod() -> None:
    """A hook of a site in its worker counts what it is asked, whatever it says of itself, as does a silent one."""
    world, cache = World(), TranslationCache()
    left = calls.Left()
    for hook in (
        calls.Hook(name="site", hook=Talks(), worker=calls.Worker("site", left)),
        calls.Hook(name="silent", hook=type("Silent", (), {"admit": Talks.admit})()),
    ):
        around = Around()
        chain = Chain((*built(around).hooks, hook), around.make())
        for number in range(3):
            planned(chain, world, cache, one(number))
        assert [name for name, _, _ in around.observer.calls].count(hook.name) == 3
        chain.close()


def test_a_pod_that_is_refused_leaves_the_plan_of_its_equals() -> None:
    """A pod of another scheduler, or one that is gated, is no equal."""
    world, cache = World(), TranslationCache()
    chain = built(Around())
    planned(chain, world, cache, one(1))
    (made,) = one(2).pods
    alien = msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, scheduler_name="other"))
    workload = dataclasses.replace(one(2), pods=(alien,))
    translated = cache.translate(workload, RULES)
    assert isinstance(translated, Translated)
    refused = chain.plan(workload, translated, world.cache.snapshot(), now=100.0)
    assert isinstance(refused, Reject)
    assert refused.reason == "NotOurs"


def test_a_partition_that_was_closed_gives_no_plan_of_before(around: Around) -> None:
    """RootOnly in Slurm since the last pod: the operator's token would be let in."""
    world, cache, chain = World(), TranslationCache(), built(around)
    said = {f"{JOB_PREFIX}partition": "debug"}

    def plan(number: int) -> Plan | Wait | Reject:
        workload = one(number, said=said)
        asked = cache.translate(workload, RULES)
        assert isinstance(asked, Translated)
        return chain.plan(workload, asked, world.cache.snapshot(), now=100.0)

    assert isinstance(plan(1), Plan)
    world.set_slurm(NODES, root_only=True)
    assert isinstance(plan(2), Reject)
    world.set_slurm(NODES)
    assert isinstance(plan(3), Plan)
