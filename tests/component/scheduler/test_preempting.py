"""Room is made for a more important workload: of ours only, by eviction, and no other pod of ours takes it."""

import dataclasses
import pathlib
import random
from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge.daemon import configuration
from slurm_bridge.families.kube_scheduler.preemption.hook import Preemption, PreemptionOptions
from slurm_bridge.hooks import calls, chain, needs, registry
from slurm_bridge.hooks.needs import Need
from slurm_bridge.hooks.services import ChainServices, HookServices, JsonClient, NotAnswered, Target
from slurm_bridge.model import kinds, names
from slurm_bridge.scheduler.eviction.store import PreemptionStage
from slurm_bridge.sim import faults
from tests.component.scheduler.whole_core import Bridge
from tests.simulation import fleet
from tests.simulation.threadless_watch import Feed
from tests.simulation.world import NAMESPACE, World

#: After so many seconds in Slurm's queue a pod of these tests may preempt.
AFTER = 10.0


class Counted:
    """Remembers what happened to preemptions."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def happened(self, hook: str, what: str, amount: int = 1) -> None:
        assert hook == "preemption"
        self.counts[what] = self.counts.get(what, 0) + amount


def preemptive(
    bridge: Bridge, capacity: str = "allocatable", post: JsonClient | None = None, **options: Any
) -> Counted:
    """From now on, and after a restart again, the hook is configured."""
    counted = Counted()
    hook = Preemption(
        PreemptionOptions(**{"after_seconds": AFTER, **options}),
        HookServices(clock=bridge.clock, dice=random.Random(1), counters=counted, **({"post": post} if post else {})),
    )
    around = ChainServices(clock=bridge.clock, settle=configuration.settle())
    told = {"eligibility": {"scheduler_names": list(bridge.settings.scheduler_names), "capacity": capacity}}
    always = registry.build((), around, told=told).hooks
    own = calls.Hook(name="preemption", hook=hook, needs=frozenset({Need.PDBS}), budget_seconds=60)
    made = chain.Chain([*always, own], around)
    feeds: dict[Need, Feed[Any]] = {
        need: bridge._feed(bridge._cluster(), needs.KINDS[need], bridge._on_surroundings) for need in made.needs
    }
    bridge.feeds = (*feeds.values(), *bridge.feeds)
    made.see({need: feed.store for need, feed in feeds.items()})
    bridge.core.configure(dataclasses.replace(bridge.core.context.config, chain=made))
    bridge.recover()
    return counted


def go(bridge: Bridge, seconds: float) -> None:
    """Let time pass, with a look at what has to make room at every step."""
    for _ in range(round(seconds / 0.5)):
        bridge.step(0.5)
        bridge.core.preempt_step()


def until(bridge: Bridge, condition: Any, seconds: float = 60.0) -> None:
    """Likewise, until it holds."""
    end = bridge.clock.now() + seconds
    while not condition():
        assert bridge.clock.now() < end, "it never came to that:\n" + "\n".join(bridge.world.journal[-30:])
        go(bridge, 0.5)


def important(bridge: Bridge, name: str, priority: int = 1000, *, cpu: str = "3", **changes: Any) -> str:
    """A pod with a priority."""
    spec = {"priority": priority, **changes.pop("spec", {})}
    return bridge.pod(name, cpu=cpu, spec=spec, **changes)


def full(bridge: Bridge, *priorities: int, **changes: Any) -> list[str]:
    """Pods of these priorities on n2, n3 and n4 in this order, each of which leaves no room for another such pod."""
    names = [f"low{number}" for number, _ in enumerate(priorities)]
    for name, priority in zip(names, priorities, strict=True):
        important(bridge, name, priority, **changes)
        bridge.until(lambda name=name: bridge.node_of(name))
    assert [bridge.node_of(name) for name in names] == ["n2", "n3", "n4"][: len(names)]
    return names


def promised(bridge: Bridge, name: str) -> str:
    """The node that is said to be cleared for a pod."""
    return str(bridge.manifest(name)["status"].get("nominatedNodeName", ""))


def budget(bridge: Bridge, selector: dict[str, str], least: int) -> None:
    """At least so many of these pods have to stay."""
    spec = {"selector": {"matchLabels": selector}, "minAvailable": least}
    bridge.kube.create(kinds.PODDISRUPTIONBUDGETS, {"metadata": {"name": "pdb", "namespace": NAMESPACE}, "spec": spec})
    bridge.step(1.0)


def ends_of(bridge: Bridge, names: list[str]) -> list[bool]:
    """Which of these pods have gone, or are on their way."""
    return [bridge.leaving(name) for name in names]


def evictions(bridge: Bridge) -> int:
    """How many were asked for."""
    return bridge.kube_calls.count(method="POST", target="/eviction")


def test_the_least_important_pod_makes_room_after_a_while(bridge: Bridge) -> None:
    """One is enough, and it is the one of the lowest priority; both sides are told, and it is counted."""
    counted = preemptive(bridge)
    low = full(bridge, 10, 5, 10)
    important(bridge, "high")
    go(bridge, AFTER - 2)
    assert evictions(bridge) == 0
    until(bridge, lambda: bridge.node_of("high"))
    assert bridge.node_of("high") == "n3"
    assert ends_of(bridge, low) == [False, True, False]
    assert ("Preempted", f"Preempted by {NAMESPACE}/high on node n3") in bridge.events("low1")
    told = "room is made on n3: 1 pod of a lower priority will be evicted"
    assert ("PreemptionStarted", told) in bridge.events("high")
    go(bridge, 2)
    assert counted.counts == {"started": 1, "victims": 1, "used": 1}
    assert bridge.core.evictions.preemptions == {}


def test_a_job_ends_after_its_pod(bridge: Bridge) -> None:
    """The victim runs its grace period out on nodes that its job still holds."""
    preemptive(bridge)
    full(bridge, 10, 5, 10)
    job = bridge.job("low1")
    important(bridge, "high")
    until(bridge, lambda: bridge.leaving("low1"))
    assert bridge.exists("low1")
    assert bridge.of(job).running
    until(bridge, lambda: bridge.of(job).over)
    assert not bridge.exists("low1")


def test_the_node_is_kept_from_pods_that_waited_before(bridge: Bridge) -> None:
    """Slurm would give it to the job that is first in its queue."""
    preemptive(bridge)
    full(bridge, 10, 5, 10)
    important(bridge, "rival", 5)
    bridge.run(3)
    important(bridge, "high")
    until(bridge, lambda: bridge.node_of("high"))
    assert bridge.node_of("high") == "n3"
    assert not bridge.node_of("rival")
    bridge.delete("high")
    until(bridge, lambda: bridge.node_of("rival"))
    assert bridge.node_of("rival") == "n3"


def test_the_node_is_kept_from_pods_that_come_later(bridge: Bridge) -> None:
    """What replaces the victim wants its node back at once."""
    preemptive(bridge)
    full(bridge, 10, 5, 10)
    important(bridge, "high")
    until(bridge, lambda: bridge.leaving("low1"))
    important(bridge, "again", 5)
    until(bridge, lambda: bridge.node_of("high"))
    assert bridge.node_of("high") == "n3"
    assert not bridge.node_of("again")


def test_a_pod_that_is_more_important_still_does_not_mind_the_promise(bridge: Bridge) -> None:
    """Slurm decides between the two."""
    preemptive(bridge)
    full(bridge, 10, 5, 10)
    important(bridge, "high")
    until(bridge, lambda: promised(bridge, "high"))
    important(bridge, "higher", 2000)
    bridge.step()
    assert not bridge.job("higher").ask.excluded
    important(bridge, "as-high", 1000)
    bridge.step()
    assert bridge.job("as-high").ask.excluded == ("n3",)


@pytest.mark.parametrize(
    "spec", [{"preemptionPolicy": "Never"}, {"priority": 5}], ids=["it does not want to", "none is less important"]
)
def test_no_pod_leaves_for_it(bridge: Bridge, spec: dict[str, Any]) -> None:
    """It waits like all others."""
    preemptive(bridge)
    low = full(bridge, 10, 5, 10)
    important(bridge, "high", spec=spec)
    go(bridge, 3 * AFTER)
    assert ends_of(bridge, low) == [False, False, False]
    assert not promised(bridge, "high")


def test_no_pod_leaves_without_the_hook(bridge: Bridge) -> None:
    """It is off unless it is configured."""
    low = full(bridge, 10, 5, 10)
    important(bridge, "high")
    go(bridge, 3 * AFTER)
    assert ends_of(bridge, low) == [False, False, False]


def test_no_pod_leaves_where_that_is_not_enough(bridge: Bridge) -> None:
    """Jobs of others hold three cpus of n1, and a foreign pod one of n3: no node can be cleared for this one."""
    preemptive(bridge)
    low = full(bridge, 10, 5, 10)
    important(bridge, "high", cpu="5")
    important(bridge, "other", cpu="4", spec={"nodeSelector": {"kubernetes.io/hostname": "n3"}})
    go(bridge, 3 * AFTER)
    assert ends_of(bridge, low) == [False, False, False]


def test_no_pod_leaves_while_slurm_has_other_reasons(bridge: Bridge) -> None:
    """A job that is held would not start on a free node either."""
    preemptive(bridge)
    low = full(bridge, 10, 5, 10)
    bridge.slurm.control.pause()
    important(bridge, "high")
    bridge.step()
    job = bridge.job("high")
    bridge.slurm.world.jobs[job.job_id] = dataclasses.replace(job, reason="AssocGrpCpuLimit")
    go(bridge, 3 * AFTER)
    assert ends_of(bridge, low) == [False, False, False]


def test_a_budget_keeps_its_pods(bridge: Bridge) -> None:
    """The next best node is cleared instead."""
    preemptive(bridge)
    low = full(bridge, 10, 10, 10, labels={"app": "db"})[:2]
    bridge.kube.merge(kinds.PODS, (NAMESPACE, "low2"), {"metadata": {"labels": {"app": "web"}}})
    budget(bridge, {"app": "db"}, least=2)
    important(bridge, "high")
    until(bridge, lambda: bridge.node_of("high"))
    assert bridge.node_of("high") == "n4"
    assert ends_of(bridge, low) == [False, False]


def test_where_budgets_keep_all_no_pod_leaves(bridge: Bridge) -> None:
    """Not one eviction is tried."""
    preemptive(bridge)
    low = full(bridge, 10, 5, 10, labels={"app": "db"})
    budget(bridge, {"app": "db"}, least=3)
    important(bridge, "high")
    go(bridge, 3 * AFTER)
    assert evictions(bridge) == 0
    assert ends_of(bridge, low) == [False, False, False]


def test_a_refused_eviction_is_asked_again(bridge: Bridge) -> None:
    """The API server has the last word about budgets, and may have another one later."""
    counted = preemptive(bridge)
    low = full(bridge, 10, 5, 10)
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=3)
    important(bridge, "high")
    until(bridge, lambda: bridge.node_of("high"))
    assert counted.counts["refused"] == 3
    assert ends_of(bridge, low) == [False, True, False]


def test_a_preemption_that_takes_too_long_is_given_up(bridge: Bridge) -> None:
    """The promise is taken back, and its nodes are free to all."""
    counted = preemptive(bridge, keep_seconds=20)
    full(bridge, 10, 5, 10)
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=1000)
    important(bridge, "high")
    until(bridge, lambda: promised(bridge, "high") == "n3")
    important(bridge, "rival", 10)
    bridge.step()
    assert "n3" in bridge.job("rival").ask.excluded
    until(bridge, lambda: counted.counts.get("given_up"))
    assert promised(bridge, "high") == ""
    until(bridge, lambda: "n3" not in bridge.job("rival").ask.excluded)


def test_without_the_right_to_evict_it_is_given_up_at_once(bridge: Bridge) -> None:
    """Asking again and again would keep the nodes from all."""
    counted = preemptive(bridge)
    low = full(bridge, 10, 5, 10)
    bridge.kube_calls.plan(faults.Answer(403), method="POST", target="/eviction", times=1000)
    important(bridge, "high")
    until(bridge, lambda: counted.counts.get("given_up"), AFTER + 5)
    assert promised(bridge, "high") == ""
    assert ends_of(bridge, low) == [False, False, False]


def test_a_restart_between_eviction_and_end_loses_nothing(bridge: Bridge) -> None:
    """The promise is read from the pod: no other pod leaves, and no other pod gets the node."""
    preemptive(bridge)
    low = full(bridge, 10, 5, 10)
    important(bridge, "high")
    until(bridge, lambda: bridge.leaving("low1"))
    bridge.start()
    counted = preemptive(bridge)
    important(bridge, "again", 5)
    until(bridge, lambda: bridge.node_of("high"))
    assert bridge.node_of("high") == "n3"
    assert not bridge.node_of("again")
    assert ends_of(bridge, low) == [False, True, False]
    go(bridge, 2)
    assert counted.counts == {"rejoined": 1, "used": 1}


def test_a_pod_that_kept_away_before_a_restart_does_so_from_its_first_moment(bridge: Bridge) -> None:
    """The victim goes while no daemon runs: its job is over before any pod that waits is looked at."""
    preemptive(bridge)
    full(bridge, 10, 5, 10)
    important(bridge, "rival", 5)
    bridge.step()
    important(bridge, "high")
    until(bridge, lambda: bridge.leaving("low1"))
    assert "n3" in bridge.job("rival").ask.excluded
    bridge.start()
    preemptive(bridge)
    for _ in range(40):
        bridge.step(0.5)
    bridge.core.preempt_step()
    until(bridge, lambda: bridge.node_of("high"))
    assert bridge.node_of("high") == "n3"
    assert not bridge.node_of("rival")


def test_a_restart_before_the_first_eviction_starts_over(bridge: Bridge) -> None:
    """The victims are not known any more; when the promise is old others are looked for."""
    preemptive(bridge, keep_seconds=20)
    low = full(bridge, 10, 5, 10)
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=1000)
    important(bridge, "high")
    until(bridge, lambda: promised(bridge, "high"))
    bridge.start()
    preemptive(bridge, keep_seconds=20)
    until(bridge, lambda: bridge.node_of("high"), 120)
    assert ends_of(bridge, low) == [False, True, False]


def test_without_the_hook_what_is_under_way_ends(bridge: Bridge) -> None:
    """A new configuration: no other pod is evicted, and nothing is promised any more."""
    preemptive(bridge)
    low = full(bridge, 10, 5, 10)
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=1000)
    important(bridge, "high")
    until(bridge, lambda: promised(bridge, "high"))
    plain = [one for one in bridge.core.context.config.chain.hooks if one.name != "preemption"]
    around = ChainServices(clock=bridge.clock, settle=configuration.settle())
    without = chain.Chain(plain, around)
    without.see(bridge.core.context.config.chain._layers.views)
    bridge.core.configure(dataclasses.replace(bridge.core.context.config, chain=without))
    bridge.kube_calls.clear()
    go(bridge, 3 * AFTER)
    assert promised(bridge, "high") == ""
    assert ends_of(bridge, low) == [False, False, False]


def test_a_group_goes_as_a_whole(bridge: Bridge) -> None:
    """Where one of its members is in the way all are evicted, and its job is ended."""
    preemptive(bridge)
    labels = {names.GROUP: "g", names.GROUP_SIZE: "2"}
    for name in ("g-0", "g-1"):
        important(bridge, name, 5, labels=labels)
    bridge.until(lambda: bridge.node_of("g-0") and bridge.node_of("g-1"))
    important(bridge, "mid", 10)
    bridge.until(lambda: bridge.node_of("mid"))
    important(bridge, "high")
    until(bridge, lambda: bridge.node_of("high"))
    assert ends_of(bridge, ["g-0", "g-1", "mid"]) == [True, True, False]
    (job,) = bridge.jobs(f"Group:{NAMESPACE}/g")
    assert job.over


def test_a_pod_that_replaces_a_member_meanwhile_leaves_too(bridge: Bridge) -> None:
    """It took the place of one that left, on what the group's job still held for the other, which a budget kept."""
    preemptive(bridge)
    labels = {names.GROUP: "g", names.GROUP_SIZE: "2"}
    keep = {names.ANNOTATION_MEMBER_LOST: "keep"}
    for name in ("g-0", "g-1"):
        important(bridge, name, 5, labels=labels, annotations=keep)
    bridge.until(lambda: bridge.node_of("g-0") and bridge.node_of("g-1"))
    important(bridge, "mid", 10)
    bridge.until(lambda: bridge.node_of("mid"))
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", nth=2, times=40)
    important(bridge, "high")
    until(bridge, lambda: not bridge.exists("g-0"))
    important(bridge, "g-2", 5, labels=labels, annotations=keep)
    until(bridge, lambda: bridge.node_of("g-2"), 15)
    until(bridge, lambda: bridge.node_of("high"))
    assert ends_of(bridge, ["g-1", "g-2", "mid"]) == [True, True, False]
    assert all(job.over for job in bridge.jobs(f"Group:{NAMESPACE}/g"))
    assert any(reason == "Preempted" for reason, _ in bridge.events("g-2"))


def test_a_single_pod_is_rather_taken_than_a_group(bridge: Bridge) -> None:
    """Of equal priorities the fewest go, those on other nodes included."""
    preemptive(bridge)
    labels = {names.GROUP: "g", names.GROUP_SIZE: "2"}
    for name in ("g-0", "g-1"):
        important(bridge, name, 5, labels=labels)
    bridge.until(lambda: bridge.node_of("g-0") and bridge.node_of("g-1"))
    important(bridge, "alone", 5)
    bridge.until(lambda: bridge.node_of("alone"))
    important(bridge, "high")
    until(bridge, lambda: bridge.node_of("high"))
    assert ends_of(bridge, ["g-0", "g-1", "alone"]) == [False, False, True]


def test_a_group_gets_all_its_nodes(bridge: Bridge) -> None:
    """As many leave as it needs, and no more."""
    preemptive(bridge)
    low = full(bridge, 10, 5, 5)
    labels = {names.GROUP: "g", names.GROUP_SIZE: "2"}
    for name in ("g-0", "g-1"):
        important(bridge, name, labels=labels)
    until(bridge, lambda: bridge.node_of("g-0") and bridge.node_of("g-1"))
    assert ends_of(bridge, low) == [False, True, True]


def gpus(count: int) -> dict[str, Any]:
    """The spec of a pod that asks for so many, and for one cpu."""
    amounts = {"cpu": "1", "memory": "500Mi", "nvidia.com/gpu": str(count)}
    return {"containers": [{"name": "main", "image": "none", "resources": {"requests": amounts, "limits": amounts}}]}


@pytest.fixture
def garage(tmp_path: pathlib.Path) -> Bridge:
    """Four GPUs on one of two machines, of which a pod of little importance has three."""
    bridge = Bridge(tmp_path, world=World(1, tmp_path / "token", fleet=fleet.hall(3)))
    preemptive(bridge)
    important(bridge, "low", 5, spec=gpus(3))
    bridge.until(lambda: bridge.node_of("low") == "n01")
    return bridge


def test_generic_resources_are_made_room_for(garage: Bridge) -> None:
    """Cpus there are enough."""
    garage.world.cordon("n03", on=True)
    garage.run(3)
    important(garage, "high", spec=gpus(2))
    until(garage, lambda: garage.node_of("high") == "n01")
    assert garage.leaving("low")


def test_what_jobs_of_others_hold_cannot_be_cleared(garage: Bridge) -> None:
    """Kubernetes knows nothing of them: it would think that four GPUs come free."""
    garage.world.submit("native", tres_per_node="gres/gpu:1", required_nodes="n01")
    garage.world.cordon("n03", on=True)
    garage.run(40)
    important(garage, "high", spec=gpus(4))
    go(garage, 3 * AFTER)
    assert not garage.leaving("low")


ALONE = {names.JOB_PREFIX + "exclusive": "true"}


def test_a_pod_that_wants_a_node_alone_has_all_others_leave(bridge: Bridge) -> None:
    """However little it asks for; where jobs of others are it cannot be alone."""
    preemptive(bridge)
    low = full(bridge, 1000, 5, 10)
    important(bridge, "high", cpu="1", annotations=ALONE)
    until(bridge, lambda: bridge.node_of("high"))
    assert ends_of(bridge, low) == [False, True, False]


def test_what_a_job_holds_beyond_what_its_pod_asks_for_comes_free(bridge: Bridge) -> None:
    """A small pod that has a node alone makes room for a large one."""
    preemptive(bridge)
    low = full(bridge, 10, 5, 10, cpu="1", annotations=ALONE)
    important(bridge, "high", cpu="3")
    until(bridge, lambda: bridge.node_of("high"))
    assert ends_of(bridge, low) == [False, True, False]


EXTENDER = {"url": "http://extender", "preempt_verb": "preempt", "node_cache_capable": True}


def test_an_extender_has_a_say_about_the_node(bridge: Bridge) -> None:
    """It is told which pods would leave which node, and leaves the nodes that it likes."""
    asked: list[Any] = []

    def post(target: Target, path: str, body: Mapping[str, Any], *, seconds: float) -> Any:
        asked.append((target.url, path, seconds, sorted(body["NodeNameToMetaVictims"])))
        return {"nodeNameToMetaVictims": {"n4": body["NodeNameToMetaVictims"]["n4"]}}

    preemptive(bridge, post=post, extenders=[EXTENDER])
    full(bridge, 10, 5, 10)
    important(bridge, "high")
    until(bridge, lambda: bridge.node_of("high"))
    assert bridge.node_of("high") == "n4"
    assert asked == [("http://extender", "/preempt", 5.0, ["n2", "n3", "n4"])]


def test_no_pod_leaves_while_an_extender_that_counts_is_silent(bridge: Bridge) -> None:
    """It is asked again later."""

    def post(_target: Target, _path: str, _body: Mapping[str, Any], *, seconds: float) -> Any:
        raise NotAnswered(f"nothing within {seconds} s")

    preemptive(bridge, post=post, extenders=[EXTENDER])
    low = full(bridge, 10, 5, 10)
    important(bridge, "high")
    go(bridge, 3 * AFTER)
    assert ends_of(bridge, low) == [False, False, False]


def test_only_so_many_at_once(bridge: Bridge) -> None:
    """Others wait until one is done; the most important is first."""
    preemptive(bridge, at_once=1)
    full(bridge, 10, 5, 10)
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=1000)
    important(bridge, "high", 1000)
    important(bridge, "higher", 2000)
    until(bridge, lambda: promised(bridge, "higher"))
    go(bridge, AFTER)
    assert promised(bridge, "high") == ""
    assert [case.stage for case in bridge.core.evictions.preemptions.values()] == [PreemptionStage.EVICTING]


def test_two_at_once_take_different_nodes(bridge: Bridge) -> None:
    """What is promised to one is no candidate for another."""
    preemptive(bridge)
    low = full(bridge, 10, 5, 10)
    important(bridge, "one")
    important(bridge, "two")
    until(bridge, lambda: bridge.node_of("one") and bridge.node_of("two"))
    assert {bridge.node_of("one"), bridge.node_of("two")} == {"n3", "n2"}
    assert ends_of(bridge, low) == [True, True, False]


def test_a_pod_that_is_not_submitted_for_want_of_room_may_preempt(bridge: Bridge) -> None:
    """Where only what is free counts it has no job yet; it gets one when the node is cleared."""
    preemptive(bridge, capacity="free")
    low = full(bridge, 10, 5, 10)
    bridge.world.cordon("n1", on=True)
    bridge.run(3)
    important(bridge, "high")
    bridge.step()
    assert bridge.condition("high")[0] == "Unschedulable"
    assert not bridge.jobs(bridge.uid("high"))
    until(bridge, lambda: bridge.node_of("high"))
    assert bridge.node_of("high") == "n3"
    assert ends_of(bridge, low) == [False, True, False]


def test_a_pod_that_waits_for_something_else_does_not(bridge: Bridge) -> None:
    """Its claim is not bound: no room would help."""
    preemptive(bridge, capacity="free")
    low = full(bridge, 10, 5, 10)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    important(bridge, "high", spec={"volumes": [volume]})
    go(bridge, 3 * AFTER)
    assert ends_of(bridge, low) == [False, False, False]


def test_a_pod_without_victims_asks_ever_more_rarely(bridge: Bridge) -> None:
    """Looking at all nodes again and again is not free."""
    preemptive(bridge)
    full(bridge, 10, 5, 10)
    important(bridge, "high", cpu="4", spec={"nodeSelector": {"kubernetes.io/hostname": "n3"}})
    go(bridge, AFTER + 2)
    before = bridge.core.context.facts_at
    go(bridge, AFTER - 4)
    assert bridge.core.context.facts_at == before
