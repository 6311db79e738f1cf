"""Two workloads whose nodes came at the same moment are bound by several threads, and still see each other."""

import dataclasses
import threading
from collections.abc import Callable, Mapping
from typing import Any

from slurm_bridge.hooks import base, chain
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler.actions import Act
from tests import wait
from tests.component.scheduler.whole_core import Bridge
from tests.unit.hooks.builders import hook

#: The other thread would be done by then, if it was not kept waiting.
DONE = 0.3


class Meanwhile:
    """A verify hook that lets something else happen after all others have said yes, once."""

    def __init__(self) -> None:
        self.act: Callable[[], Any] = lambda: None

    def __call__(self, *_: object) -> base.Admit:
        act, self.act = self.act, lambda: None
        act()
        return base.GO


def only_one(session: base.Session, workload: Workload, nodes: Mapping[str, str]) -> base.Admit | base.Deny:
    """A verify hook for which one of these pods on a node is enough, as for those that want the same port of it."""
    for uid, node in nodes.items():
        others = [one for one in session.snapshot.nodes[node].pods if one.uid != uid]
        if any(one.spec.scheduler_name == workload.lead.spec.scheduler_name for one in others):
            return base.Deny(message="one is there", nodes=frozenset([node]))
    return base.GO


def test_of_two_that_want_the_same_port_one_gets_it(bridge: Bridge) -> None:
    """What one was allowed counts before the other is looked at."""
    bridge.recover()
    meanwhile = Meanwhile()
    one_port = hook(verify=only_one)
    both = chain.Chain([one_port, hook(name="meanwhile", verify=meanwhile)], ChainServices(clock=bridge.clock))
    bridge.core.configure(dataclasses.replace(bridge.core.context.config, chain=both))
    acts = started_together(bridge, "a", "b")
    begun = threading.Event()

    def carry_out_the_other() -> None:
        begun.set()
        bridge.core.carry_out(*acts[1])

    second = threading.Thread(target=carry_out_the_other)

    def run_the_other() -> None:
        second.start()
        assert begun.wait(wait.PATIENCE)
        second.join(DONE)

    meanwhile.act = run_the_other
    bridge.core.carry_out(*acts[0])
    second.join()
    assert sorted(bool(bridge.node_of(name)) for name in "ab") == [False, True]
    bridge.until(lambda: bridge.node_of("a") and bridge.node_of("b"))
    assert bridge.node_of("a") != bridge.node_of("b")


def started_together(bridge: Bridge, *names: str) -> list[tuple[str, Act]]:
    """What the daemon is about to do once Slurm has started the jobs of all these pods on one node."""
    bridge.slurm.control.pause()
    for name in names:
        bridge.pod(name)
    bridge.step()
    bridge.slurm.control.unpause()
    bridge.world.pass_time(1.0)
    bridge.core.mirror_step()
    acts: list[tuple[str, Act]] = []
    while bridge.core.schedule_step(lambda uid, act: acts.append((uid, act))):
        pass
    jobs = [bridge.job(name) for name in names]
    assert len({job.grant and job.grant.nodes for job in jobs}) == 1
    assert len(acts) == len(names)
    return acts
