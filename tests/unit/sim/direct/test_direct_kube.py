"""The Kubernetes adapter over a direct line: same errors as on a socket, and watches that end."""

from typing import Any

import pytest

from slurm_bridge import errors, ports
from slurm_bridge.kube.client import KubeClient
from slurm_bridge.model import kinds
from slurm_bridge.sim import faults, wire
from tests import direct_line
from tests.direct_kube import DirectAccess
from tests.direct_line import Line

POD = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "none"}]}}


def test_objects_come_and_go(direct: Any) -> None:
    """All verbs work: create, get, list, delete."""
    made = direct.cluster.create(kinds.PODS, "default", POD)
    assert direct.cluster.get(kinds.PODS, "default", "a") == made
    assert direct.cluster.list(kinds.PODS).items == (made,)
    direct.cluster.delete(kinds.PODS, made, grace_seconds=0)
    assert direct.cluster.get(kinds.PODS, "default", "a") is None


def test_a_watch_tells_what_there_is_and_ends(direct: Any) -> None:
    """Changes since the version, then a bookmark, then the end: no call waits."""
    since = direct.cluster.list(kinds.PODS).resource_version
    made = direct.cluster.create(kinds.PODS, "default", POD)
    put, bookmark = direct.cluster.watch(kinds.PODS, since)
    assert put == ports.Put(made)
    assert bookmark == ports.Bookmark(made.metadata.resource_version)


def test_a_watch_without_news_ends_too(direct: Any) -> None:
    """Where nothing happened there is only the bookmark."""
    since = direct.cluster.list(kinds.PODS).resource_version
    assert [type(change) for change in direct.cluster.watch(kinds.PODS, since)] == [ports.Bookmark]


def test_a_closed_watch_tells_nothing(direct: Any) -> None:
    """What is closed is over."""
    changes = direct.cluster.watch(kinds.PODS, "1")
    changes.close()
    assert list(changes) == []


def test_forgotten_history_expires(direct: Any) -> None:
    """A watch from before a compaction says so."""
    since = direct.cluster.list(kinds.PODS).resource_version
    direct.cluster.create(kinds.PODS, "default", POD)
    direct.kube.compact()
    with pytest.raises(errors.Expired):
        list(direct.cluster.watch(kinds.PODS, since))


def test_a_watch_may_be_cut(direct: Any) -> None:
    """A stream that breaks off tells what came before, then that it broke."""
    since = direct.cluster.list(kinds.PODS).resource_version
    direct.cluster.create(kinds.PODS, "default", POD)
    direct.kube_line.faults.plan(faults.Cut(after=1), target="watch=1")
    heard: list[object] = []
    with pytest.raises(errors.BadAnswer):
        heard.extend(direct.cluster.watch(kinds.PODS, since))
    assert direct.kube_line.faults.pending == 0


@pytest.mark.parametrize(
    ("fault", "made"),
    [(faults.Drop(), True), (faults.Hang(acted=True), True), (faults.Reset(), False), (faults.Hang(), False)],
)
def test_a_write_without_an_answer(direct: Any, fault: faults.Fault, *, made: bool) -> None:
    """It may have happened, and the error says so."""
    assert direct.cluster.served(kinds.PODS)
    direct.kube_line.faults.plan(fault, method="POST")
    with pytest.raises(errors.Unanswered):
        direct.cluster.create(kinds.PODS, "default", POD)
    assert (direct.cluster.get(kinds.PODS, "default", "a") is not None) is made


def test_what_was_not_reached_did_nothing(direct: Any) -> None:
    """A handler that says that it was not reached stands for a refused connection."""

    def closed(_: wire.Request) -> wire.Response:
        raise direct_line.NotReached("nobody listens")

    way = DirectAccess(Line(closed, clock=direct.clock), token="t")
    cluster = KubeClient(way, clock=direct.clock, dice=direct.cluster._dice)
    with pytest.raises(errors.Unavailable, match="nobody listens"):
        cluster.list(kinds.PODS)


def test_who_we_are_is_checked(direct: Any) -> None:
    """A wrong token is refused as over HTTP, and shown nowhere."""
    way = DirectAccess(direct.kube_line, token="wrong")
    with pytest.raises(errors.NotAuthenticated):
        KubeClient(way, clock=direct.clock, dice=direct.cluster._dice).list(kinds.PODS)
    assert "wrong" not in repr(way)
