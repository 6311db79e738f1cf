"""A full cluster and more important pods, and what becomes of the others."""

import dataclasses
import random
from typing import Any

from slurm_bridge.daemon import configuration
from slurm_bridge.families.kube_scheduler.preemption.hook import Preemption, PreemptionOptions
from slurm_bridge.hooks import calls, chain, needs, registry
from slurm_bridge.hooks.needs import Need
from slurm_bridge.hooks.services import ChainServices, HookServices, JsonClient
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.threadless_watch import Feed

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


def ends_of(bridge: Bridge, names: list[str]) -> list[bool]:
    """Which of these pods have gone, or are on their way."""
    return [bridge.leaving(name) for name in names]


EXTENDER = {"url": "http://extender", "preempt_verb": "preempt", "node_cache_capable": True}
