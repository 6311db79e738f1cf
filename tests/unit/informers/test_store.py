import hypothesis
import pytest
from hypothesis import strategies as st

from slurm_bridge import ports
from slurm_bridge.informers.store import Change, Store
from slurm_bridge.model.meta import Object
from tests.unit.informers.conftest import listing, thing


def color(item: Object) -> tuple[str, ...]:
    """Files things by their label."""
    return tuple(item.metadata.labels.values())


def test_put_gone() -> None:
    """An object appears, changes and goes, and each step is told."""
    store: Store[Object] = Store()
    first, second, last = thing("a", 1), thing("a", 2), thing("a", 3)
    assert store.take(ports.Put(first)) == (Change(None, first),)
    assert store.take(ports.Put(second)) == (Change(first, second),)
    assert store.get("ns", "a") is second
    assert store.take(ports.Gone(last)) == (Change(last, None),)
    assert store.get("ns", "a") is None
    assert len(store) == 0


def test_nothing_new() -> None:
    """The same version again is no change, and the object stays the one it was."""
    store: Store[Object] = Store()
    first = thing("a", 1)
    store.take(ports.Put(first))
    assert store.take(ports.Put(thing("a", 1))) == ()
    assert store.get("ns", "a") is first


def test_unknown_goes() -> None:
    """The end of what was never known is no change."""
    assert Store[Object]().take(ports.Gone(thing("a", 1))) == ()


@pytest.mark.parametrize("by_list", [False, True])
def test_same_name_another_uid(*, by_list: bool) -> None:
    """A name that stands for another uid is two changes: one went, another came."""
    store: Store[Object] = Store()
    first, second = thing("a", 1, uid="one"), thing("a", 2, uid="two")
    store.take(ports.Put(first))
    changes = store.replace(listing(second, version=2)) if by_list else store.take(ports.Put(second))
    assert changes == (Change(first, None), Change(None, second))
    assert store.get("ns", "a") is second


def test_one_uid_under_two_names() -> None:
    """A server that gives one uid to two objects stops nobody who follows it: each is found by its name, and goes."""
    store: Store[Object] = Store()
    for name in ("a", "b"):
        store.take(ports.Put(thing(name, 1, uid="u")))
    assert store.take(ports.Gone(thing("a", 2, uid="u")))
    assert store.get("ns", "a") is None
    assert store.get("ns", "b") is not None
    assert store.take(ports.Gone(thing("b", 3, uid="u")))
    assert store.get("ns", "b") is None


def test_replace_tells_what_was_missed() -> None:
    """A list makes the store equal to it: what is not in it went, what did not change is not told."""
    store: Store[Object] = Store()
    gone, same, old = thing("gone", 1), thing("same", 2), thing("changed", 3)
    store.replace(listing(gone, same, old, version=3))
    new, fresh = thing("changed", 5), thing("fresh", 4)
    changes = store.replace(listing(thing("same", 2), new, fresh, version=6))
    assert changes == (Change(gone, None), Change(old, new), Change(None, fresh))
    assert store.get("ns", "same") is same
    assert store.resource_version == "6"


def test_versions_follow() -> None:
    """The version moves with every step of a watch, bookmarks too, and is forgotten when it expires."""
    store: Store[Object] = Store()
    seen = []
    for step in (ports.Put(thing("a", 1)), ports.Bookmark("5"), ports.Gone(thing("a", 7))):
        store.take(step)
        seen.append(store.resource_version)
    store.expire()
    assert [*seen, store.resource_version] == ["1", "5", "7", ""]


def test_synced() -> None:
    """A store is synced when somebody says that the first list was dealt with, and stays so."""
    store: Store[Object] = Store()
    store.replace(listing(version=1))
    assert not store.synced
    assert not store.wait_synced(0)
    store.mark_synced()
    store.expire()
    assert store.synced
    assert store.wait_synced(0)


def test_all_objects_are_those_of_one_moment() -> None:
    """What was returned does not change when the store does."""
    store: Store[Object] = Store()
    first = thing("a", 1)
    store.take(ports.Put(first))
    found = store.all()
    store.take(ports.Put(thing("b", 2)))
    assert found == (first,)


def test_index() -> None:
    """An index follows objects as they come, change and go."""
    store = Store({"color": color})
    red, blue = thing("a", 1, color="red"), thing("a", 2, color="blue")
    store.take(ports.Put(red))
    assert store.where("color", "red") == (red,)
    store.take(ports.Put(blue))
    assert (store.where("color", "red"), store.where("color", "blue")) == ((), (blue,))
    store.take(ports.Gone(blue))
    assert store.where("color", "blue") == ()


def test_unknown_index() -> None:
    """Asking for an index that does not exist is a mistake in the program."""
    with pytest.raises(KeyError):
        Store[Object]().where("color", "red")


_names = st.sampled_from("abc")
_uids = st.sampled_from(["1", "2"])
_colors = st.sampled_from(["red", "blue"])
_steps = st.lists(st.tuples(st.sampled_from(["put", "gone", "list"]), _names, _uids, _colors), max_size=30)


@hypothesis.given(_steps)
def test_any_history(steps: list[tuple[str, str, str, str]]) -> None:
    """Whatever happens, all ways of finding an object agree, and changes applied in order give what is stored."""
    store = Store({"color": color})
    told: dict[str, Object] = {}
    for version, (what, name, uid, label) in enumerate(steps, start=1):
        item = thing(name, version, uid=f"{name}-{uid}", color=label)
        if what == "list":
            changes = store.replace(listing(item, version=version))
        else:
            changes = store.take(ports.Put(item) if what == "put" else ports.Gone(item))
        for change in changes:
            if change.old is not None:
                del told[change.old.uid]
            if change.new is not None:
                told[change.new.uid] = change.new
    stored = {item.uid: item for item in store.all()}
    assert stored == told
    assert all(store.get(*item.key) is item for item in stored.values())
    for label in ("red", "blue"):
        assert {item.uid for item in store.where("color", label)} == {
            uid for uid, item in stored.items() if color(item) == (label,)
        }


def test_everything_is_the_same_sequence_until_something_changes() -> None:
    """What was worked out from all objects holds for as long as the version stands."""
    store: Store[Object] = Store()
    first, second = thing("a", 1), thing("b", 2)
    assert (tuple(store.all()), store.version) == ((), 0)
    store.take(ports.Put(first))
    before, version = store.all(), store.version
    store.take(ports.Put(thing("a", 1)))
    assert (store.all() is before, store.version) == (True, version)
    store.take(ports.Put(second))
    assert ({one.uid for one in store.all()}, store.version > version) == ({first.uid, second.uid}, True)
    version = store.version
    store.replace(listing(second, version=3))
    assert (tuple(store.all()), store.version > version) == ((second,), True)
