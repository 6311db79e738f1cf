"""Hooks that count what workloads keep hear of it when they begin, and when a workload keeps nothing any more."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from slurm_bridge.daemon import configuration
from slurm_bridge.hooks import calls, chain
from slurm_bridge.hooks.base import Denied
from slurm_bridge.hooks.lifecycle import ActiveUsage
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model import kinds, names
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE


class Counts:
    """A hook that keeps what it is told; `meanwhile` happens before it is."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.over: list[str] = []
        self.told: list[tuple[bool, dict[str, bool]]] = []
        self.members: list[list[str]] = []
        self.leaving: dict[str, str] = {}
        self.queues: dict[str, str] = {}
        self._meanwhile = meanwhile

    def filter(self, *_: object) -> Denied:
        """It has nothing against anybody."""
        return Denied(nodes={})

    def ended(self, workload: str) -> None:
        self.over.append(workload)

    def restored(self, held: Sequence[ActiveUsage], _views: Mapping[Need, View], *, fresh: bool) -> None:
        self._meanwhile()
        self.leaving = {one.ask.workload.lead.metadata.name: one.makes_room_for for one in held if one.leaves}
        self.queues = {one.ask.workload.lead.metadata.name: one.ask.hints.get("queue", "") for one in held}
        self.members = [[pod.metadata.name for pod in one.ask.workload.pods] for one in held]
        self.told.append((fresh, {one.ask.workload.lead.metadata.name: one.started for one in held}))


class Fails(Counts):
    """One that cannot."""

    def restored(self, *_: object, **__: object) -> None:
        raise ArithmeticError


def counting(bridge: Bridge, *hooks: Any) -> None:
    """From now on there are these."""
    config = bridge.core.context.config
    own = [calls.Hook(name=f"counts-{number}", hook=one) for number, one in enumerate(hooks)]
    both = chain.Chain([*config.chain.hooks, *own], ChainServices(clock=bridge.clock, settle=configuration.settle()))
    both.see(config.chain._layers.views)
    bridge.core.configure(dataclasses.replace(config, chain=both))


def test_a_new_configuration_tells_who_has_a_job_and_who_runs(bridge: Bridge) -> None:
    """And leaves out who has nothing."""
    bridge.bound("runs")
    bridge.waiting("waits")
    bridge.pod("nowhere", spec={"nodeSelector": {"kubernetes.io/hostname": "nowhere"}})
    bridge.step()
    counting(bridge, hook := Counts())
    assert hook.told == [(False, {"runs": True, "waits": False})]


def test_a_new_leadership_tells_it_afresh(bridge: Bridge) -> None:
    """From pods and placeholders alone."""
    bridge.bound("runs")
    counting(bridge, hook := Counts())
    bridge.core.recover()
    assert hook.told[-1] == (True, {"runs": True})


def test_of_a_group_that_runs_only_those_count_who_have_a_place(bridge: Bridge) -> None:
    """Whoever came after them and waits for one to leave uses up nothing, and does not make it look unfinished."""
    together = {names.GROUP: "pair", names.GROUP_SIZE: "2"}
    for name in ("g1", "g2"):
        bridge.pod(name, labels=together)
    bridge.run(10)
    bridge.pod("g3", labels=together)
    bridge.run(10)
    assert [bool(bridge.node_of(name)) for name in ("g1", "g2", "g3")] == [True, True, False]
    counting(bridge, hook := Counts())
    assert hook.told == [(False, {"g1": True})]
    assert hook.members == [["g1", "g2"]]


def test_what_runs_stays_in_its_queue_whatever_else_its_annotations_say(bridge: Bridge) -> None:
    """A queue would else lose a workload that nobody moved, and another one pay for it."""
    bridge.bound("runs", annotations={names.JOB_PREFIX + "queue": "root.left"})
    bridge.annotate("runs", timelimit="soon")
    bridge.hear()
    counting(bridge, hook := Counts())
    assert hook.queues == {"runs": "root.left"}


TOGETHER = {names.GROUP: "pair", names.GROUP_SIZE: "2"}


def pair(bridge: Bridge) -> Counts:
    """A group of two that runs, of which one is done."""
    for name in ("g1", "g2"):
        bridge.pod(name, labels=TOGETHER)
    bridge.until(lambda: bridge.node_of("g1") and bridge.node_of("g2"))
    bridge.status("g1", phase="Succeeded")
    bridge.hear()
    counting(bridge, hook := Counts())
    return hook


def test_of_a_group_that_runs_those_count_who_are_done(bridge: Bridge) -> None:
    """Its job keeps their nodes until the last of them is."""
    hook = pair(bridge)
    assert hook.told == [(False, {"g1": True})]
    assert hook.members == [["g1", "g2"]]


def test_who_comes_for_one_that_is_done_has_its_place(bridge: Bridge) -> None:
    """One place counts once."""
    pair(bridge)
    bridge.pod("g3", labels=TOGETHER)
    bridge.hear()
    counting(bridge, hook := Counts())
    assert hook.members == [["g2", "g3"]]


def test_whoever_is_done_counts_until_its_job_is_over(bridge: Bridge) -> None:
    """Its pod ended while nobody looked; what its job keeps nobody else can have."""
    bridge.bound("done")
    bridge.status("done", phase="Succeeded")
    bridge.hear()
    counting(bridge, hook := Counts())
    assert hook.told == [(False, {"done": True})]
    bridge.run(5)
    assert len(hook.over) == 1
    counting(bridge, hook := Counts())
    assert hook.told == [(False, {})]


def test_whoever_has_gone_for_another_leaves_until_its_job_is_over(bridge: Bridge) -> None:
    """What its pods said is still true; one that was done by itself made room for nobody."""
    for name in ("goes", "ends"):
        bridge.bound(name)
    note = {names.ANNOTATION_MAKES_ROOM: json.dumps({"uid": "1-2-3", "for": "default/asker"})}
    bridge.kube.merge(kinds.PODS, (NAMESPACE, "goes"), {"metadata": {"annotations": note}})
    for name in ("goes", "ends"):
        bridge.status(name, phase="Failed")
    bridge.hear()
    counting(bridge, hook := Counts())
    assert hook.leaving == {"goes": "1-2-3"}


def test_who_ends_while_a_new_hook_is_told_has_ended_for_it(bridge: Bridge) -> None:
    """The hooks before it have heard of that, and it has not."""
    bridge.bound("short")
    key = bridge.key("short")

    def ends() -> None:
        bridge.status("short", phase="Succeeded")
        bridge.run(5)

    counting(bridge, hook := Counts(ends))
    assert hook.told == [(False, {"short": True})]
    assert key in hook.over


def test_a_hook_that_fails_to_listen_keeps_nobody_from_listening(bridge: Bridge) -> None:
    """Nor the daemon from starting."""
    bridge.bound("runs")
    counting(bridge, Fails(), hook := Counts())
    assert hook.told == [(False, {"runs": True})]


def test_a_binding_ends_nothing(bridge: Bridge) -> None:
    """What runs keeps its node."""
    counting(bridge, hook := Counts())
    bridge.bound("a")
    bridge.run(5)
    assert not hook.over


def _finishes(bridge: Bridge) -> None:
    bridge.bound("a")
    bridge.status("a", phase="Succeeded")


def _is_deleted_while_it_runs(bridge: Bridge) -> None:
    bridge.bound("a")
    bridge.delete("a", grace=0)


def _is_deleted_while_it_waits(bridge: Bridge) -> None:
    bridge.waiting("a")
    bridge.delete("a", grace=0)


def _is_cancelled_and_parked(bridge: Bridge) -> None:
    job = bridge.waiting("a")
    bridge.slurm.control.end(job.job_id, "CANCELLED")


@pytest.mark.parametrize(
    "ends", [_finishes, _is_deleted_while_it_runs, _is_deleted_while_it_waits, _is_cancelled_and_parked]
)
def test_whoever_keeps_nothing_has_ended(bridge: Bridge, ends: Callable[[Bridge], None]) -> None:
    """The pods are over, and so is the job; or the pods are parked, and wait without one."""
    counting(bridge, hook := Counts())
    key = names.NO_WORKLOAD
    bridge.slurm.control.unpause()
    ends(bridge)
    if bridge.exists("a"):
        key = bridge.key("a")
    bridge.run(10)
    assert hook.over
    assert set(hook.over) <= {key, *hook.over[:1]}
