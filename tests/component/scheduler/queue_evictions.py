"""Queues of which one borrows and another one is owed, and what becomes of their pods."""

import json
from collections.abc import Callable
from typing import Any

from slurm_bridge.model import names
from slurm_bridge.sim import faults
from tests.component.families.yunikorn.yunikorn_scenes import Queues, queue
from tests.component.scheduler.whole_core import Bridge

SOON = {"preemption.delay": "5s"}


def teams(*, least: str = "2", most: str = "4", **b: Any) -> tuple[Any, ...]:
    """Two queues share what the one above them may have; of it so many cpus are a's."""
    mine = queue("a", resources={"guaranteed": {"vcore": least}}, properties=SOON)
    return (queue("team", mine, queue("b", **b), resources={"max": {"vcore": most}}),)


def go(bridge: Bridge, seconds: float) -> None:
    """Let time pass, with a look at what has to leave at every step."""
    for _ in range(round(seconds / 0.5)):
        bridge.step(0.5)
        bridge.core.preempt_step()


def until(bridge: Bridge, condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Likewise, until it holds."""
    end = bridge.clock.now() + seconds
    while not condition():
        assert bridge.clock.now() < end, "it never came to that:\n" + "\n".join(bridge.world.journal[-30:])
        go(bridge, 0.5)


def borrowed(bridge: Bridge, *four: str, **changes: Any) -> Queues:
    """Queue b has everything, in pods of one cpu that came one after the other."""
    queues = Queues(bridge, *teams(), evict_seconds=20)
    for name in four or ("b1", "b2", "b3", "b4"):
        queues.pod(name, "root.team.b", **changes)
        bridge.run(2)
    assert len(queues.running(*(four or ("b1", "b2", "b3", "b4")))) == 4
    return queues


def evictions(bridge: Bridge) -> int:
    """How many this process has asked for."""
    return bridge.kube_calls.count(method="POST", target="/eviction")


def left(bridge: Bridge, *pods: str) -> list[str]:
    """Those of these pods that have gone, or are on their way."""
    return [name for name in pods if bridge.leaving(name)]


def notes(bridge: Bridge, name: str, key: str) -> dict[str, str]:
    """What a pod says of it."""
    found = json.loads((bridge.manifest(name)["metadata"].get("annotations") or {}).get(key, "{}"))
    assert isinstance(found, dict)
    return found


ALL = ("b1", "b2", "b3", "b4")


MARKS = (names.ANNOTATION_ROOM, names.ANNOTATION_MAKES_ROOM)


def planned(bridge: Bridge) -> None:
    """Everything is written, and the API server lets no pod go yet."""
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=1000)
    until(bridge, lambda: evictions(bridge))
