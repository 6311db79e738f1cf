import msgspec
import pytest

from slurm_bridge import errors, ports
from slurm_bridge.kube import codec
from slurm_bridge.model import kinds
from slurm_bridge.workloads import kind_table
from tests.unit.kube.conftest import pod

PODS = codec.codec(kinds.PODS)


def line(word: str, value: object) -> bytes:
    """One line of a watch."""
    return msgspec.json.encode({"type": word, "object": value}) + b"\n"


def test_changes_of_each_type() -> None:
    """Added and modified objects are Put, deleted ones Gone, bookmarks a version, and order is kept."""
    lines = b"".join(
        (
            line("ADDED", pod("a", version="1")),
            line("MODIFIED", pod("a", version="2")),
            line("DELETED", pod("a", version="3")),
            line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "9"}}),
        )
    )
    first, second, third, fourth = PODS.changes(lines)
    assert isinstance(first, ports.Put)
    assert first.object.metadata.name == "a"
    assert isinstance(second, ports.Put)
    assert isinstance(third, ports.Gone)
    assert third.object.metadata.resource_version == "3"
    assert fourth == ports.Bookmark("9")


def test_error_line() -> None:
    """An ERROR is raised as what its Status says, after the changes before it."""
    expired = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    changes = PODS.changes(line("ADDED", pod()) + line("ERROR", expired))
    assert isinstance(next(changes), ports.Put)
    with pytest.raises(errors.Expired, match="too old"):
        next(changes)


def test_error_line_without_status() -> None:
    """An ERROR that is no Status is a bad answer."""
    with pytest.raises(errors.BadAnswer):
        list(PODS.changes(line("ERROR", {"kind": "Pod"})))


@pytest.mark.parametrize(
    "lines", [b'{"type":"ADDED"\n', b"<html>\n", b'{"type":"SURPRISE","object":{}}\n', line("ADDED", {"metadata": 3})]
)
def test_malformed_lines(lines: bytes) -> None:
    """What is not a watch line of this kind is a bad answer, never half a change."""
    with pytest.raises(errors.BadAnswer, match="unreadable watch line"):
        list(PODS.changes(lines))


def test_nothing_unnamed_is_kept() -> None:
    """What the record does not name, managedFields above all, is nowhere in it."""
    noisy = pod(spec={"containers": [{"name": "c", "env": [{"name": "E", "value": "secret"}]}]})
    noisy["metadata"] = {**noisy["metadata"], "managedFields": [{"manager": "noise"}]}  # type: ignore[dict-item]
    kept = repr(PODS.one(msgspec.json.encode(noisy)))
    assert "noise" not in kept
    assert "secret" not in kept


@pytest.mark.parametrize("items", [None, []])
def test_empty_page(items: object) -> None:
    """An empty list may be spelled null."""
    page = PODS.page(msgspec.json.encode({"metadata": {"resourceVersion": "5"}, "items": items}))
    assert not page.items
    assert page.metadata.resource_version == "5"


@pytest.mark.parametrize("body", [b"", b"[]", b'{"items":[]}', b"<html>"])
def test_bad_page(body: bytes) -> None:
    """A list without a resource version is no list."""
    with pytest.raises(errors.BadAnswer):
        PODS.page(body)


@pytest.mark.parametrize("kind", kind_table.RESOURCES, ids=lambda kind: f"{kind.plural}.{kind.group}")
def test_every_kind_has_a_codec(kind: kinds.Kind) -> None:
    """Each kind of the table can be read from an object that has only a name."""
    body = msgspec.json.encode({"kind": kind.kind, "metadata": {"name": "x"}})
    assert codec.codec(kind).one(body).metadata.name == "x"


def test_resources() -> None:
    """A group version's table of contents is a set of names."""
    assert codec.resources(b'{"resources":[{"name":"pods","kind":"Pod"},{"name":"pods/status"}]}') == {
        "pods",
        "pods/status",
    }
    with pytest.raises(errors.BadAnswer):
        codec.resources(b"<html>")
