"""Nodes are kept for a workload that others pass: by promise among ours, by Slurm's reservation among all."""

import pathlib
from typing import Any

import msgspec
import pytest

from slurm_bridge.model.job import Done
from slurm_bridge.scheduler.reservations import node_record
from slurm_bridge.sim.slurm import state
from tests.component.families.yunikorn.yunikorn_scenes import Queues, queue
from tests.component.scheduler.traffic import LASTS, OPTIONS, Traffic, emptied, record, reserved
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.observer import CLUSTER_ID

pytestmark = pytest.mark.thorough


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus, on one of which another scheduler has a pod for good."""
    return emptied(tmp_path)


def restart(traffic: Traffic, **options: Any) -> None:
    """Another process in the same world, with the same queues."""
    bridge = traffic.bridge
    bridge.start()
    traffic.queues = Queues(bridge, queue("a"), **(OPTIONS | options))
    while not all(feed.store.synced for feed in bridge.feeds):
        bridge.hear()
    bridge.recover()


def test_without_it_a_large_workload_waits_for_as_long_as_small_ones_come(bridge: Bridge) -> None:
    """Each of them finds room for itself, and never is a whole node free."""
    traffic = Traffic(bridge, reservations=0)
    traffic.queues.pod("large", cpu="4")
    traffic.flow(120)
    assert not bridge.node_of("large")
    assert reserved(bridge) == []


def test_a_large_workload_starts_although_small_ones_keep_coming(bridge: Bridge) -> None:
    """No other pod comes to the node that is kept, and nothing of that is left when it has it."""
    traffic = Traffic(bridge)
    traffic.held()
    (kept,) = reserved(bridge)
    (slurm_node,) = kept.nodes
    job = bridge.job("large")
    assert bridge.of(job).ask.reservation == kept.name
    assert record(bridge, job).reserved.split()[1] == slurm_node
    before = {one.job_id for one in bridge.slurm.world.jobs_on(slurm_node)}
    seen = set(before)

    def started() -> bool:
        seen.update(one.job_id for one in bridge.slurm.world.jobs_on(slurm_node))
        return bool(bridge.node_of("large"))

    traffic.until(started)
    assert seen == before | {job.job_id}
    traffic.flow(3)
    assert reserved(bridge) == []
    assert record(bridge, job).reserved == ""
    assert bridge.core.reservations.kept == ()
    assert bridge.core.context.promised.nodes == frozenset()


def test_it_is_not_begun_before_another_workload_has_passed(bridge: Bridge) -> None:
    """A workload that waits because nothing has started since is the next one anyway."""
    traffic = Traffic(bridge)
    for number in range(160):
        if number == 80:
            traffic.queues.pod("large", cpu="4")
        traffic.step(0.5)
    assert reserved(bridge) == []


def test_others_of_ours_do_not_ask_for_the_nodes(bridge: Bridge) -> None:
    """Their jobs leave them out, and those that wait are told why; its own pods say which nodes are kept."""
    traffic = Traffic(bridge)
    traffic.held()
    (slurm_node,) = reserved(bridge)[0].nodes
    traffic.flow(4)
    newest = bridge.jobs(bridge.uid(traffic.made[-1]))[-1]
    assert slurm_node in newest.ask.excluded
    reason, message = bridge.condition("large")
    assert reason == "SlurmJobPending"
    assert f"; node {slurm_node} is kept for it until " in message


def test_jobs_that_are_not_ours_do_not_get_the_nodes(bridge: Bridge) -> None:
    """A native job of the highest priority waits for it like all others."""
    traffic = Traffic(bridge)
    traffic.held()
    (slurm_node,) = reserved(bridge)[0].nodes
    fields: dict[str, Any] = {
        "required_nodes": [slurm_node],
        "priority": {"set": True, "number": 10_000},
        "user_id": "alice",
    }
    native = bridge.world.submit("rival", **fields)
    traffic.until(lambda: bridge.node_of("large"))
    assert bridge.slurm.world.jobs[native].pending


def test_nodes_are_for_all_again_when_its_time_is_over(bridge: Bridge) -> None:
    """The job waits on in its place; for a while nothing is kept for it."""
    traffic = Traffic(bridge)
    traffic.held()
    job = bridge.job("large")
    for _ in range(round(LASTS)):
        bridge.step(1)
        bridge.core.preempt_step()
    assert reserved(bridge) == []
    assert bridge.job("large").job_id == job.job_id
    assert (bridge.of(job).ask.reservation, record(bridge, job).reserved) == ("", "")
    traffic.flow(20)
    assert reserved(bridge) == []


def test_it_is_prolonged_for_as_long_as_it_is_needed(bridge: Bridge) -> None:
    """It would go by itself long before its time is over."""
    traffic = Traffic(bridge, reserve_seconds=600)
    traffic.held()
    ends = reserved(bridge)[0].end
    for _ in range(200):
        bridge.step(1)
        bridge.core.preempt_step()
    assert reserved(bridge)[0].end > ends + 120


def test_a_workload_that_has_gone_leaves_nothing(bridge: Bridge) -> None:
    """Neither in Slurm nor among promises."""
    traffic = Traffic(bridge)
    traffic.held()
    bridge.delete("large", grace=0)
    traffic.flow(4)
    assert reserved(bridge) == []
    assert bridge.core.context.promised.nodes == frozenset()


def test_nodes_that_it_may_not_have_any_more_are_given_up(bridge: Bridge) -> None:
    """An administrator drains the node: another one is kept."""
    traffic = Traffic(bridge)
    traffic.held()
    (before,) = reserved(bridge)[0].nodes
    bridge.slurm.control.drain(before)
    bridge.core.context.refresh_facts()
    traffic.until(lambda: reserved(bridge) and reserved(bridge)[0].nodes != (before,))
    traffic.until(lambda: bridge.node_of("large"))


def test_a_restart_goes_on(bridge: Bridge) -> None:
    """The same reservation, for as long as it was to last; no other pod comes to the node meanwhile."""
    traffic = Traffic(bridge)
    traffic.held()
    (kept,) = reserved(bridge)
    says = record(bridge, bridge.job("large")).reserved
    restart(traffic)
    assert bridge.core.context.promised.nodes == {bridge.core.context.keeper.snapshot().by_slurm[kept.nodes[0]]}
    traffic.flow(2)
    assert [one.name for one in reserved(bridge)] == [kept.name]
    assert record(bridge, bridge.job("large")).reserved == says
    traffic.until(lambda: bridge.node_of("large"))
    traffic.flow(2)
    assert reserved(bridge) == []


def test_a_restart_gives_back_what_was_used(bridge: Bridge) -> None:
    """It started while no daemon ran."""
    traffic = Traffic(bridge)
    traffic.held()
    (node,) = reserved(bridge)[0].nodes
    for job in bridge.slurm.world.jobs_on(node):
        bridge.slurm.control.end(job.job_id)
    bridge.world.pass_time(2)
    assert bridge.job("large").running
    restart(traffic)
    traffic.flow(2)
    assert reserved(bridge) == []
    assert record(bridge, bridge.job("large")).reserved == ""


def test_a_restart_removes_what_no_job_speaks_of(bridge: Bridge) -> None:
    """The process before ended between reservation and record; those of others stay."""
    traffic = Traffic(bridge)
    for name in (f"{node_record.prefix(CLUSTER_ID)}left", f"{node_record.prefix('another')}theirs", "held-by-hand"):
        bridge.slurm.control.reserve(state.Reservation(name=name, nodes=("n2",)))
    restart(traffic)
    traffic.flow(2)
    assert reserved(bridge) == []
    assert {f"{node_record.prefix('another')}theirs", "held-by-hand"} <= bridge.slurm.world.reservations.keys()


def test_what_the_leader_before_orders_late_is_given_back(bridge: Bridge) -> None:
    """Its orders come to Slurm when this one has read all records already."""
    traffic = Traffic(bridge, reserve_after=10_000)
    traffic.queues.pod("large", cpu="4")
    traffic.until(lambda: bridge.jobs(bridge.uid("large")))
    slurm, job = bridge.core.context.slurm, bridge.job("large")
    known = bridge.known(job)
    assert known is not None
    says = node_record.NodeRecord(nodes=("s4",), until=int(bridge.slurm.world.now + LASTS), priority=job.priority)
    owner, name = msgspec.structs.replace(known.owner, reserved=says.text), node_record.name(known.owner)
    assert isinstance(slurm.reserve(name, says.nodes, bridge.of(job).user, 10_000), Done)
    assert isinstance(slurm.assign(known.job_id, owner, name, node_record.FIRST), Done)
    for _ in range(60):
        traffic.step(0.5)
    assert reserved(bridge) == []
    job = bridge.of(job)
    assert (job.priority, job.ask.reservation, record(bridge, job).reserved) == (1, "", "")


def test_a_record_that_a_late_change_has_brought_back_does_not_stay(bridge: Bridge) -> None:
    """It would say of nodes that they are kept; those of a case that goes on stay."""
    traffic = Traffic(bridge)
    traffic.held()
    says = record(bridge, bridge.job("large")).reserved
    small = bridge.job(next(name for name in traffic.made if bridge.phase(name) == "Running"))
    known = bridge.known(small)
    assert known is not None
    bridge.core.context.slurm.note(known.job_id, msgspec.structs.replace(known.owner, reserved=says))
    bridge.core.context.mirror.look(known.job_id, known.owner, tell=False)
    traffic.step(0.5)
    assert record(bridge, small).reserved == ""
    assert record(bridge, bridge.job("large")).reserved == says
