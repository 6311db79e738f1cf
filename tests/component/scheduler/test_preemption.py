"""Room is made for a more important workload: of ours only, by eviction, and no other pod of ours takes it."""

import dataclasses
from typing import Any

import pytest

from slurm_bridge.daemon import configuration
from slurm_bridge.hooks import chain
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model import kinds
from slurm_bridge.sim import faults
from tests.component.scheduler.preemptive_bridge import (
    AFTER,
    ends_of,
    full,
    go,
    important,
    preemptive,
    promised,
    until,
)
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE


def budget(bridge: Bridge, selector: dict[str, str], least: int) -> None:
    """At least so many of these pods have to stay."""
    spec = {"selector": {"matchLabels": selector}, "minAvailable": least}
    bridge.kube.create(kinds.PODDISRUPTIONBUDGETS, {"metadata": {"name": "pdb", "namespace": NAMESPACE}, "spec": spec})
    bridge.step(1.0)


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


def test_a_preemption_goes_on_while_namespaces_come_and_go(bridge: Bridge) -> None:
    """Of several daemons each has its namespaces: another one that is taken up or let go changes nothing here."""
    counted = preemptive(bridge)
    low = full(bridge, 10, 5, 10)
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=3)
    important(bridge, "high")
    until(bridge, lambda: promised(bridge, "high") == "n3")
    (case,) = bridge.core.evictions.preemptions.values()
    for _ in range(3):
        bridge.core.take_up({"elsewhere"}, ())
        bridge.core.let_go("elsewhere")
        go(bridge, 0.5)
    assert list(bridge.core.evictions.preemptions.values()) == [case]
    until(bridge, lambda: bridge.node_of("high"))
    assert ends_of(bridge, low) == [False, True, False]
    assert "rejoined" not in counted.counts
