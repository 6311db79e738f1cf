"""Hooks that remember workloads hear when nobody of one waits any more: what waits in vain for years is few."""

import dataclasses
from collections.abc import Callable

import pytest

from slurm_bridge.daemon import configuration
from slurm_bridge.hooks import calls, chain
from slurm_bridge.hooks.base import Denied
from slurm_bridge.hooks.services import ChainServices
from tests.component.scheduler.whole_core import Bridge


class Remembers:
    """A hook that is told whom to forget."""

    def __init__(self) -> None:
        self.forgotten: list[str] = []

    def filter(self, *_: object) -> Denied:
        """It has nothing against anybody."""
        return Denied(nodes={})

    def forget(self, workload: str) -> None:
        """So it is."""
        self.forgotten.append(workload)


def remembering(bridge: Bridge) -> Remembers:
    """From now on there is one."""
    made, config = Remembers(), bridge.core.context.config
    own = calls.Hook(name="remembers", hook=made)
    around = ChainServices(clock=bridge.clock, settle=configuration.settle())
    both = chain.Chain([*config.chain.hooks, own], around)
    both.see(config.chain._layers.views)
    bridge.core.configure(dataclasses.replace(config, chain=both))
    return made


def _starts(bridge: Bridge) -> None:
    bridge.bound("a")


def _is_deleted(bridge: Bridge) -> None:
    bridge.waiting("a")
    bridge.delete("a", grace=0)


def _is_deleted_before_it_asks(bridge: Bridge) -> None:
    bridge.pod("a", spec={"nodeSelector": {"kubernetes.io/hostname": "nowhere"}})
    bridge.step()
    bridge.delete("a", grace=0)


@pytest.mark.parametrize("ends", [_starts, _is_deleted, _is_deleted_before_it_asks])
def test_whoever_waits_no_more_is_forgotten(bridge: Bridge, ends: Callable[[Bridge], None]) -> None:
    """It has its node, or it went."""
    hook = remembering(bridge)
    ends(bridge)
    bridge.run(10)
    assert set(hook.forgotten) != set()


def test_whoever_waits_is_not_forgotten(bridge: Bridge) -> None:
    """However long."""
    hook = remembering(bridge)
    bridge.waiting("a")
    bridge.run(60)
    assert hook.forgotten == []


def test_a_foreign_hook_is_not_called_for_it() -> None:
    """It takes its time in a worker, and whoever binds a pod has none."""
    own = Remembers()
    foreign = calls.Hook(name="remembers", hook=own, worker=calls.Worker("remembers", calls.Left()))
    foreign.forget("uid")
    assert own.forgotten == []
