"""The port's verbs about nodes: added, changed and deleted, many in one call."""

import dataclasses
import secrets
from typing import Any

import pytest
from slurm_port import Port

from slurm_bridge.model.job import Done, Gres, Outcome, Refusal, Refused
from slurm_bridge.model.slurmnode import NewNodes, NodeChange, NodeListing, NodeOrder, NodeShape, SlurmNode

SHAPE = NodeShape(cores=4, memory_mib=4000)
DRAIN = NodeChange(order=NodeOrder.DRAIN, reason="contract")


def named(count: int) -> tuple[str, ...]:
    """Names that nothing else has."""
    word = secrets.token_hex(3)
    return tuple(f"c{word}x{number}" for number in range(1, count + 1))


def asked(port: Port, *names: str, **fields: Any) -> Outcome:
    """Add nodes, each with an address of its own; they go when the case is over."""
    port.desk.added.extend(names)
    addresses = {name: f"10.0.0.{number}" for number, name in enumerate(names, start=1)}
    return port.client.create_nodes(NewNodes(**{"addresses": addresses, "shape": SHAPE, **fields}))


def added(port: Port, count: int = 1, **fields: Any) -> tuple[str, ...]:
    """The names of new nodes."""
    names = named(count)
    assert isinstance(asked(port, *names, **fields), Done)
    return names


def seen(port: Port) -> dict[str, SlurmNode]:
    return {node.name: node for node in port.client.node_listing().nodes}


def refusal(outcome: Outcome) -> Refusal | None:
    return outcome.why if isinstance(outcome, Refused) else None


def test_nodes_are_added_as_they_are_described(port: Port) -> None:
    """Cores and threads, memory, GRES, features, topology, and the reason; in service, without a job."""
    shape = NodeShape(
        cores=4,
        threads_per_core=2,
        memory_mib=4000,
        gres=(Gres(name="gpu", type="a100", count=2),),
        partitions=("dynamic",),
    )
    names = added(port, 2, shape=shape, features=("one", "two"), topology="racks:core:rack2", reason="a b(c): d, e")
    for name in names:
        node = seen(port)[name]
        assert (node.cpus, node.threads_per_core, node.memory_mib) == (8, 2, 4000)
        assert node.gres == (Gres(name="gpu", type="a100", count=2),)
        assert set(node.features) == {"one", "two", "dynamic"}
        assert (node.topology, node.reason, node.partitions) == ("racks:core:rack2", "a b(c): d, e", ("dynamic",))
        assert (node.external, node.dynamic, node.vacant, node.out_of_service) == (True, True, True, False)


@pytest.mark.parametrize(
    "gres",
    [
        (Gres(name="gpu", count=1),),
        (Gres(name="gpu", count=8),),
        (Gres(name="gpu", type="a100", count=2), Gres(name="gpu", type="v100", count=1)),
    ],
)
def test_devices_are_added_one_by_one(port: Port, gres: tuple[Gres, ...]) -> None:
    """One, several, and several of two types."""
    (name,) = added(port, shape=dataclasses.replace(SHAPE, gres=gres))
    assert seen(port)[name].gres == gres


def test_a_node_that_exists_is_not_added(port: Port) -> None:
    """EXISTS, also where only one of several does; it is unharmed."""
    (name,) = added(port)
    before = seen(port)[name]
    assert refusal(asked(port, *named(1), name)) is Refusal.EXISTS
    assert seen(port)[name] == before


def test_a_topology_that_slurm_does_not_have_is_refused(port: Port) -> None:
    """INVALID, and the node is not there."""
    (name,) = named(1)
    assert refusal(asked(port, name, topology="nowhere:x")) is Refusal.INVALID
    assert name not in seen(port)


@pytest.mark.parametrize("name", ["ALL", "default", "a b", "a,b", "n[1-2]", "", "-x", 'x"', "x\nNodeName=y"])
def test_a_name_that_slurm_reads_otherwise_is_not_sent(port: Port, name: str) -> None:
    """INVALID, for every order."""
    new = NewNodes(addresses={name: "10.0.0.1"}, shape=SHAPE)
    orders = (port.client.create_nodes(new), port.client.delete_nodes([name]), port.client.change_nodes([name], DRAIN))
    assert [refusal(one) for one in orders] == [Refusal.INVALID] * 3


@pytest.mark.parametrize(
    "field", [{"reason": 'x" Feature="y'}, {"features": ("a b",)}, {"topology": "a b"}, {"features": ('a"',)}]
)
def test_a_text_that_would_leave_its_place_is_not_sent(port: Port, field: dict[str, Any]) -> None:
    """INVALID: a line of slurm.conf has no way to write it."""
    (name,) = named(1)
    assert refusal(asked(port, name, **field)) is Refusal.INVALID
    assert name not in seen(port)


def test_many_nodes_are_drained_and_undrained_in_one_call(port: Port) -> None:
    """With the reason; the undrain takes it away."""
    names = added(port, 3)
    assert isinstance(port.client.change_nodes(names, DRAIN), Done)
    assert [(seen(port)[name].draining, seen(port)[name].reason) for name in names] == [(True, "contract")] * 3
    assert isinstance(port.client.change_nodes(names, NodeChange(order=NodeOrder.UNDRAIN)), Done)
    assert [(seen(port)[name].draining, seen(port)[name].reason) for name in names] == [(False, "")] * 3


def test_a_reason_is_cleared_without_a_change_of_state(port: Port) -> None:
    """And the comment is written in the same call."""
    (name,) = added(port, reason="contract")
    assert isinstance(port.client.change_nodes([name], NodeChange(comment='x/1 {"a":"b"}', reason="")), Done)
    node = seen(port)[name]
    assert (node.comment, node.reason, node.draining) == ('x/1 {"a":"b"}', "", False)


def test_features_and_topology_change_in_place(port: Port) -> None:
    """More of them, fewer, and none of the topology."""
    (name,) = added(port, features=("one", "two"))
    for features, topology in ((("one", "two", "three"), "racks:core:rack2"), (("one",), "")):
        change = NodeChange(features=features, topology=topology)
        assert isinstance(port.client.change_nodes([name], change), Done)
        node = seen(port)[name]
        assert (set(node.features), node.topology) == (set(features), topology)


def test_nodes_before_an_unknown_one_are_changed(port: Port) -> None:
    """UNKNOWN_NODE does not mean that nothing was done, nor that all others were changed."""
    (name,) = added(port)
    assert refusal(port.client.change_nodes(["a-nowhere", name], DRAIN)) is Refusal.UNKNOWN_NODE
    assert not seen(port)[name].draining
    assert refusal(port.client.change_nodes([name, "z-nowhere"], DRAIN)) is Refusal.UNKNOWN_NODE
    assert seen(port)[name].draining


def test_idle_nodes_are_deleted_beside_a_busy_one(port: Port) -> None:
    """BUSY does not mean that nothing was done; the busy one and its job stay."""
    idle, busy = added(port, 2, shape=dataclasses.replace(SHAPE, partitions=("dynamic",)))
    others = port.desk.others("dynamic", busy)
    job_id = port.running(partition="dynamic", excluded_nodes=others)
    assert refusal(port.client.delete_nodes([idle, busy])) is Refusal.BUSY
    found = seen(port)
    assert idle not in found
    assert not found[busy].vacant
    assert "RUNNING" in port.desk.state(job_id)


def test_deleted_nodes_are_gone(port: Port) -> None:
    """Many in one call; a second one is refused with UNKNOWN_NODE."""
    names = added(port, 12)
    assert isinstance(port.client.delete_nodes(names), Done)
    assert not seen(port).keys() & set(names)
    assert refusal(port.client.delete_nodes(names)) is Refusal.UNKNOWN_NODE


def test_a_listing_without_news_is_the_one_that_was_seen(port: Port) -> None:
    """304; with news it is another one, and its stamp is later."""
    listing = port.client.node_listing()
    later = NodeListing(nodes=listing.nodes, stamp=listing.stamp + 3600)
    assert port.client.node_listing(later) is later
    (name,) = added(port)
    again = port.client.node_listing(listing)
    assert name in {node.name for node in again.nodes}
    assert again.stamp >= listing.stamp


def test_a_plain_user_may_change_no_node(port: Port) -> None:
    """FORBIDDEN, whatever it is; asked at the desk, because the port has the operator's token."""
    answer = port.desk.plain_user.ask("DELETE", f"node/{port.desk.machines('mapped')[0]}")
    assert answer.verdict == (422, [2010])


@pytest.mark.disruptive
def test_what_is_written_on_a_node_outlives_slurmctld(port: Port) -> None:
    """Comment, reason and features of a node that was added: once saved, they are there after a kill -9."""
    (name,) = added(port, features=("one",))
    port.client.change_nodes([name], NodeChange(order=NodeOrder.DRAIN, reason="contract", comment="mine"))
    written = port.client.node_listing().stamp
    port.desk.servers.pass_time(6)
    port.desk.until(lambda: port.client.node_listing().stamp > written + 5, "slurmctld has saved its state", 30)
    port.desk.servers.kill()
    port.desk.servers.start()
    node = seen(port)[name]
    assert (node.comment, node.reason, node.draining, node.features) == ("mine", "contract", True, ("one",))
