"""Objects of the API server with odd bytes, quantities and depth: each costs itself."""

import msgspec
import pytest

from slurm_bridge import errors, ports
from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.informers.store import Store
from slurm_bridge.kube import codec, leniency
from slurm_bridge.model import kinds
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.node import Node, NodeStatus
from slurm_bridge.model.pod import Pod
from tests.unit.kube.conftest import pod

PODS = codec.codec(kinds.PODS)
DEEP = b"[" * 5000 + b"]" * 5000


def body(name: str, more: bytes = b"", version: str = "5") -> bytes:
    """A pod with something in it."""
    meta = b'"metadata":{"name":"%s","namespace":"n","uid":"u-%s","resourceVersion":"%s"}'
    return b"{" + meta % (name.encode(), name.encode(), version.encode()) + more + b"}"


#: Not quite right, and readable all the same.
READABLE = [b',"x":' + DEEP, b',"status":{"message":"caf\xe9"}', b',"spec":{"nodeName":"caf\xff"}']
#: Beyond reading.
ODD = [b',"spec":7', b',"spec":{"containers":{}}', b',"status":{"phase":' + DEEP + b"}", b',"spec":{"priority":1e400}']


def page(*items: bytes) -> bytes:
    """A list as the API server writes it."""
    return b'{"metadata":{"resourceVersion":"9"},"items":[' + b",".join(items) + b"]}"


def lines(word: bytes, *items: bytes) -> bytes:
    """Lines of a watch."""
    return b"".join(b'{"type":"%s","object":%s}\n' % (word, item) for item in items)


@pytest.mark.parametrize("odd", READABLE)
def test_what_is_odd_where_nobody_looks_is_read(odd: bytes) -> None:
    """Bytes are replaced, depth is cut off."""
    met: list[leniency.UnreadableObject] = []
    assert [one.metadata.name for one in PODS.page(page(body("a", odd), body("b")), met.append).items or ()] == [
        "a",
        "b",
    ]
    assert len(list(PODS.changes(lines(b"ADDED", body("a", odd), body("b")), met.append))) == 2
    assert PODS.one(body("a", odd)).metadata.name == "a"
    assert met == []


@pytest.mark.security("input")
@pytest.mark.parametrize("odd", ODD)
def test_an_object_that_cannot_be_read_costs_that_object_only(odd: bytes) -> None:
    """An object that the bridge cannot read hides no other object, in a list or a watch."""
    met: list[leniency.UnreadableObject] = []
    assert [one.metadata.name for one in PODS.page(page(body("a", odd), body("b")), met.append).items or ()] == ["b"]
    changes = list(PODS.changes(lines(b"MODIFIED", body("a", odd, "6"), body("b")), met.append))
    assert changes[0] == ports.Bookmark("6")
    assert isinstance(changes[1], ports.Put)
    assert [one.key for one in met] == [("n", "a")] * 2
    with pytest.raises(errors.Unreadable):
        PODS.one(body("a", odd))


@pytest.mark.security("input")
@pytest.mark.parametrize("odd", ODD)
def test_a_pod_that_becomes_unreadable_stays_as_it_was_known(odd: bytes) -> None:
    """A pod that cannot be read any more is never taken for deleted."""
    store: Store[Pod] = Store()
    store.replace(ports.Listing(items=(PODS.one(body("a")),), resource_version="1"))
    met: list[leniency.UnreadableObject] = []
    for change in PODS.changes(lines(b"MODIFIED", body("a", odd, "6")), met.append):
        assert store.take(change) == ()
    items = PODS.page(page(body("a", odd)), met.append).items or ()
    listing = ports.Listing(items=items, resource_version="9", unreadable=frozenset(one.key for one in met))
    assert store.replace(listing) == ()
    assert store.get("n", "a") is not None
    gone = [store.take(change) for change in PODS.changes(lines(b"DELETED", body("a", odd, "10")), met.append)]
    assert [change.new for one in gone for change in one] == [None]
    assert (store.get("n", "a"), store.resource_version) == (None, "10")


def test_an_object_without_a_name_may_be_any() -> None:
    """Then nothing follows from what the list does not hold."""
    store: Store[Pod] = Store()
    store.replace(ports.Listing(items=(PODS.one(body("a")),), resource_version="1"))
    met: list[leniency.UnreadableObject] = []
    PODS.page(page(b'{"metadata":7}'), met.append)
    listing: ports.Listing[Pod] = ports.Listing(
        items=(), resource_version="9", unreadable=frozenset(one.key for one in met)
    )
    assert store.replace(listing) == ()


@pytest.mark.parametrize("text", [b"<html>\n", b'{"type":"SURPRISE","object":{}}\n', b'{"type":"ADDED"\n'])
def test_a_line_that_is_none_is_a_bad_answer_still(text: bytes) -> None:
    """Only objects are forgiven."""
    with pytest.raises(errors.BadAnswer):
        list(PODS.changes(text, lambda _: None))


@pytest.mark.parametrize("levels", [1, 99, 100, 101, 5000])
def test_shallow_json_is_json(levels: int) -> None:
    """And the same where it is not deep."""
    text = b'{"a":' + b"[" * levels + b'"]}"' + b"]" * levels + b',"b":1}'
    made = leniency.shallow(text)
    assert msgspec.json.decode(made)["b"] == 1
    assert (made == text) is (levels < 100)


@pytest.mark.security("input")
@pytest.mark.parametrize("amount", ["lots", "", "1e999999999", "9" * 5000, "caf\ufffd", "-"])
def test_a_node_whose_amounts_cannot_be_read_has_none(amount: str) -> None:
    """A node with an unreadable amount takes no pod, its reason is shown, and all other nodes are watched."""
    keeper = ClusterCache(lambda _: {})
    for name, cpu in (("odd", amount), ("good", "4")):
        status = NodeStatus(allocatable={"cpu": cpu})
        keeper.on_node(None, Node(metadata=ObjectMeta(name=name, uid=name), status=status))
    nodes = keeper.snapshot().nodes
    assert (dict(nodes["odd"].allocatable), nodes["good"].allocatable["cpu"]) == ({}, 4)
    assert "cannot be read" in keeper.oddity("odd")
    assert keeper.oddity("good") == ""


def test_nothing_is_lost_on_the_fast_way() -> None:
    """A list without odd objects is read as ever."""
    assert (
        len(PODS.page(msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": [pod("a")]})).items or ())
        == 1
    )
