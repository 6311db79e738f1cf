"""Administrators who act while a pass is under way, servers that lie or answer slowly, and many nodes that leave."""

import dataclasses

import pytest

from slurm_bridge.controllers.nodes import departures
from slurm_bridge.controllers.nodes.controller import LOST_SECONDS, PASS_SECONDS
from slurm_bridge.controllers.nodes.options import Managed
from slurm_bridge.model import names
from slurm_bridge.model.node import Taint
from slurm_bridge.sim import faults
from tests.component.nodes.node_world import NodeWorld
from tests.component.nodes.test_registration import registered
from tests.component.nodes.test_taints import patches, taints

MAPPED = {names.LABEL_SLURM_NODE_NAME: "ext019"}
NAME, EXTERNAL = names.LABEL_SLURM_NODE_NAME, names.LABEL_EXTERNAL_NODE
LISTING = r"/nodes/($|\?)"
TAINT = Taint.parse("slinky.slurm.net/managed-node=slurm-bridge-scheduler:NoExecute")


def prepared(world: NodeWorld, order: str) -> str:
    """A node for which this order comes next; its name in Slurm."""
    if order == "delete":
        registered(world, "w1")
        job_id = world.occupy("w1")
        world.resize("w1", cpu="16")
        world.settle()
        world.slurm.control.end(job_id)
        return "w1"
    world.add("k19", labels=MAPPED)
    world.cordon("k19")
    if order != "drain":
        world.settle()
        world.cordon("k19", wanted=False)
    if order == "clear":
        world.slurm.control.crash(lose_seconds=0)
    return "ext019"


@pytest.mark.parametrize("order", ["drain", "undrain", "clear", "delete"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_drain_before_any_reading_of_the_pass_is_kept(world: NodeWorld, order: str, nth: int) -> None:
    """The administrator drains while the pass decides; only the order itself can still be overtaken."""
    name = prepared(world, order)
    before = len(world.orders())
    drain = faults.Meanwhile(lambda: world.slurm.control.drain(name, "badfan"))
    world.line.faults.plan(drain, method="GET", target=LISTING, nth=nth)
    world.controller.step()
    assert world.line.faults.pending == 0
    assert world.drained(name) == "badfan"
    assert len(world.orders()) == before


def test_a_drain_while_the_api_server_is_asked_is_kept(world: NodeWorld) -> None:
    """The questions about nodes that leave come before Slurm is read."""
    name = prepared(world, "undrain")
    registered(world, "w1")
    world.cordon("k19")
    world.settle()
    world.cordon("k19", wanted=False)
    world.delete("w1")
    drain = faults.Meanwhile(lambda: world.slurm.control.drain(name, "badfan"))
    world.kube_line.faults.plan(drain, method="GET", target="/nodes/w1")
    world.settle()
    assert world.kube_line.faults.pending == 0
    assert world.drained(name) == "badfan"


def test_a_listing_that_is_never_new_is_not_acted_on(world: NodeWorld) -> None:
    """slurmctld's clock steps back: it says for long that nothing has changed."""
    name = prepared(world, "undrain")
    world.cordon("k19")
    world.controller.step()
    world.controller.step()
    world.slurm.control.drain(name, "badfan")
    world.cordon("k19", wanted=False)
    world.line.faults.plan(faults.Answer(status=304), method="GET", target="update_time", times=1000)
    before = len(world.orders())
    for _ in range(10):
        world.controller.step()
        world.clock.advance(1)
    assert (world.drained(name), len(world.orders())) == ("badfan", before)


def test_a_change_is_seen_within_a_minute_whatever_slurms_clock_says(world: NodeWorld) -> None:
    """All nodes are read although Slurm would say that none has changed."""
    prepared(world, "drain")
    world.settle(5)
    world.slurm.control.resume("ext019")
    world.line.faults.plan(faults.Answer(status=304), method="GET", target="update_time", times=1000)
    world.settle(61)
    assert world.drained("ext019") is not None


def test_an_order_without_an_effect_is_given_after_a_pause_only(world: NodeWorld) -> None:
    """Slurm says that it is done, and it is not."""
    prepared(world, "drain")
    world.line.faults.plan(faults.Answer(status=200, body=b"{}"), method="POST", times=1000)
    for _ in range(5):
        world.controller.step()
    assert len(world.orders()) == 1
    world.clock.advance(LOST_SECONDS)
    world.controller.step()
    assert len(world.orders()) == 2


@pytest.mark.parametrize("fault", [faults.Hang(), faults.Answer(status=503)])
def test_the_first_order_without_an_answer_ends_the_pass(world: NodeWorld, fault: faults.Fault) -> None:
    """Nodes that are adopted one by one do not each wait for a server that is silent."""
    several = [f"w{number}" for number in range(10)]
    world.add(*several)
    for name in several:
        world.label(name, NAME, f"x{name}")
    world.controller.step()
    before = len(world.orders())
    world.line.faults.plan(fault, method="POST", times=1000)
    world.controller.step()
    assert len(world.orders()) - before <= 2
    world.line.faults.clear()
    for _ in range(3):
        world.settle(LOST_SECONDS)
    assert all(world.node(f"x{name}").comment for name in several)


def test_a_slow_slurm_gets_no_more_orders_after_some_seconds(world: NodeWorld) -> None:
    """A pass with nodes of GRES takes no longer than its bound and the calls that were begun."""
    world.restart(gres={"nvidia.com/gpu": "gpu"})
    world.add(*(f"w{number}" for number in range(40)), **{"nvidia.com/gpu": "4"})
    world.line.faults.plan(faults.Delay(3.0), method="POST", times=1000)
    begun = world.clock.now()
    world.controller.step()
    assert world.clock.now() - begun <= PASS_SECONDS + 5 * 3.0
    world.line.faults.clear()
    world.settle()
    assert all(world.node(f"w{number}") for number in range(40))


def many(world: NodeWorld) -> list[str]:
    found = [f"w{number:02}" for number in range(24)]
    registered(world, *found)
    for name in found:
        world.delete(name)
    return found


def test_many_nodes_that_leave_at_once_wait(world: NodeWorld) -> None:
    """An empty API server is more likely a mistake; if they stay away, they are deleted."""
    found = many(world)
    world.settle(departures.PAUSE_SECONDS - 1)
    assert world.orders() == []
    world.settle(2)
    assert not any(world.node(name) for name in found)


def test_many_nodes_that_come_back_in_time_never_left(world: NodeWorld) -> None:
    """Nothing was done, and the next such time begins anew."""
    found = many(world)
    world.settle(departures.PAUSE_SECONDS - 1)
    world.add(*found)
    world.settle(departures.PAUSE_SECONDS)
    for name in found:
        world.delete(name)
    world.settle(departures.PAUSE_SECONDS - 1)
    assert world.orders() == []


def test_some_that_leave_do_not_wait(world: NodeWorld) -> None:
    """Of 24 nodes 20 may go at once."""
    found = [f"w{number:02}" for number in range(24)]
    registered(world, *found)
    for name in found[:20]:
        world.delete(name)
    world.settle()
    assert [name for name in found if world.node(name)] == found[20:]


def test_other_resources_are_confirmed_by_the_api_server(world: NodeWorld) -> None:
    """What the informer says may be old, and a deletion cannot be undone."""
    registered(world, "w1")
    world.resize("w1", cpu="16")
    world.controller.step()
    assert world.drained("w1") is not None
    back = faults.Meanwhile(lambda: world.resize("w1"))
    world.kube_line.faults.plan(back, method="GET", target="/nodes/w1")
    world.settle()
    assert world.kube_line.faults.pending == 0
    assert not any(order.startswith("DELETE") for order in world.orders())
    assert world.drained("w1") is None


def test_a_registered_node_keeps_its_taint_while_it_is_added_anew(world: NodeWorld) -> None:
    """Pods without the toleration would come between the deletion and the addition."""
    world.restart(taint=TAINT)
    registered(world, "w1")
    world.kube_line.faults.forget()
    world.resize("w1", cpu="16")
    world.settle(10)
    assert world.node("w1").cpus == 16
    assert (taints(world, "w1"), patches(world)) == ([str(TAINT)], 0)


def test_a_node_whose_row_cannot_be_read_keeps_its_taint(world: NodeWorld) -> None:
    """It may be there, label or not."""
    world.restart(taint=TAINT, managed=Managed.ALL)
    world.add("ext001", labels={})
    world.settle()
    world.kube_line.faults.forget()
    world.slurm.control.drain("ext002", "x")
    odd = faults.Garble(lambda body: body.replace(b'"ext001"', b'"ext001","cpus":"many"', 1))
    world.line.faults.plan(odd, method="GET", target=LISTING, times=1000)
    world.settle(90)
    assert "ext001" in world.port.node_listing().unreadable
    assert (taints(world, "ext001"), patches(world)) == ([str(TAINT)], 0)


@pytest.mark.parametrize("status", [403, 500, 502])
def test_one_node_that_cannot_be_tainted_does_not_stop_the_others(world: NodeWorld, status: int) -> None:
    """It is tried again after a pause."""
    world.restart(taint=TAINT)
    registered(world, "x1")
    world.kube_line.faults.forget()
    world.kube_line.faults.plan(faults.Answer(status=status), method="PATCH", target="/nodes/w1", times=1000)
    registered(world, "w1", "w2")
    for _ in range(5):
        world.settle(1)
    assert taints(world, "w2") == [str(TAINT)]
    assert world.kube_line.faults.count(method="PATCH", target="/nodes/w1") == 1
    world.kube_line.faults.clear()
    world.settle(61)
    assert taints(world, "w1") == [str(TAINT)]


def test_a_name_that_moves_to_another_node_of_the_same_kind(world: NodeWorld) -> None:
    """The record follows, so that the first node can be added under its new name."""
    world.add("k1", "k2")
    world.label("k2", EXTERNAL, None)
    world.label("k1", NAME, "gpu1")
    world.settle()
    world.label("k1", NAME, "gpu1-old")
    world.label("k2", NAME, "gpu1")
    world.label("k2", EXTERNAL, "true")
    world.settle(10)
    assert '"node":"k2"' in world.node("gpu1").comment
    assert '"node":"k1"' in world.node("gpu1-old").comment


def test_a_forged_record_of_a_static_node_blocks_no_name(world: NodeWorld) -> None:
    """Only nodes that a bridge can have added are former ones."""
    record = 'slurm-bridge/1 {"cluster":"k1","shape":"0123456789abcdef","node":"w1"}'
    world.slurm.world.put_node(dataclasses.replace(world.node("ext003"), comment=record))
    world.add("w1")
    world.settle(10)
    assert world.node("w1") is not None


def test_features_that_changed_before_the_record_was_written(world: NodeWorld) -> None:
    """The record has what the node has, so the change follows."""
    world.restart(feature_labels=("pool",))
    world.add("w1", labels={EXTERNAL: "true", "pool": "slow"})
    world.controller.step()
    world.label("w1", "pool", "fast")
    world.settle(10)
    assert set(world.node("w1").features) == {"slurm-bridge", "fast"}
    assert world.drained("w1") is None
