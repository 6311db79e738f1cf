"""Ports seen through a glass: every verb, its arguments and its answer unchanged, one concern added."""

import inspect
from collections.abc import Callable

import pytest

from slurm_bridge import errors, ports
from slurm_bridge.model import job, kinds
from slurm_bridge.model.names import JobId
from slurm_bridge.overlays import fenced, metered
from slurm_bridge.runtime.clock import VirtualClock

#: Verbs that change something, by port; the lease is left to the election.
WRITES = {
    ports.Slurm: {
        *("submit", "update", "cancel", "cancel_many", "note", "assign", "reserve", "unreserve"),
        *("change_nodes", "create_nodes", "delete_nodes"),
    },
    ports.Cluster: {"create", "patch", "delete", "evict", "bind", "event"},
}

ARGUMENTS: dict[str, object] = {"kind": kinds.PODS, "scope": ports.Scope(namespace="n"), "subresource": "status"}


def verbs(port: type) -> list[str]:
    """All that the port asks of an adapter."""
    return [name for name, member in vars(port).items() if inspect.isfunction(member) and not name.startswith("_")]


METERED = {
    ports.Slurm: metered.MeteredSlurm,
    ports.Cluster: metered.MeteredCluster,
    ports.Callers: metered.MeteredCallers,
}
VERBS = [(port, verb) for port in METERED for verb in verbs(port)]
#: Callers need no fence: they act with their own rights, whichever replica leads.
FENCED = [(port, verb) for port, verb in VERBS if port in WRITES]


class Inner:
    """Notes what it is asked, and answers or raises what the test wants."""

    def __init__(self, answer: object = None) -> None:
        self.asked: list[tuple[str, tuple[object, ...]]] = []
        self.answer = answer
        self.meanwhile: Callable[[], object] = lambda: None

    def __getattr__(self, verb: str) -> Callable[..., object]:
        def respond(*arguments: object) -> object:
            self.asked.append((verb, arguments))
            self.meanwhile()
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

        return respond


def arguments_of(port: type, verb: str) -> tuple[object, ...]:
    """One for each parameter: the name of the verb stands for what is not read."""
    parameters = list(inspect.signature(getattr(port, verb)).parameters)[1:]
    return tuple(ARGUMENTS.get(name, f"{verb}-{name}") for name in parameters)


class Meter:
    """A metered port and what it observed."""

    def __init__(self, port: type, answer: object = None) -> None:
        self.clock = VirtualClock()
        self.inner = Inner(answer)
        self.seen: list[tuple[str, str, float]] = []
        self.port = METERED[port](self.inner, self.clock, lambda *row: self.seen.append(row))


@pytest.mark.parametrize(("port", "verb"), VERBS)
def test_a_metered_verb_is_the_verb(port: type, verb: str) -> None:
    """Arguments and answer pass through; one row is observed, except for what nearly never asks the server."""
    answer = job.Done(job_id=JobId(1))
    meter = Meter(port, answer)
    arguments = arguments_of(port, verb)
    result = getattr(meter.port, verb)(*arguments)
    assert meter.inner.asked == [(verb, arguments)]
    # Of these three the answer is nothing by contract.
    assert result == (None if verb in ("delete", "evict", "bind", "event") else answer)
    assert [row[1] for row in meter.seen] == ([] if verb == "served" else ["ok"])


@pytest.mark.parametrize(("port", "verb"), [row for row in VERBS if row[1] != "served"])
def test_an_error_counts_under_its_name(port: type, verb: str) -> None:
    """And goes on as it is."""
    meter = Meter(port, errors.Unavailable("down"))
    with pytest.raises(errors.Unavailable):
        getattr(meter.port, verb)(*arguments_of(port, verb))
    assert [row[1] for row in meter.seen] == ["Unavailable"]


def test_a_surprise_counts_too() -> None:
    """Another error than ours is counted, too, with its time."""
    meter = Meter(ports.Slurm, ZeroDivisionError())
    for verb in ("jobs", "cancel"):
        with pytest.raises(ZeroDivisionError):
            getattr(meter.port, verb)(*arguments_of(ports.Slurm, verb))
    assert [row[1] for row in meter.seen] == ["error", "error"]


def test_the_time_of_a_call_is_measured() -> None:
    """On the clock that is given."""
    meter = Meter(ports.Cluster)
    meter.inner.meanwhile = lambda: meter.clock.advance(0.25)
    meter.port.get(kinds.PODS, "n", "a")
    assert meter.seen == [("get_pods", "ok", 0.25)]


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (job.Refused(why=job.Refusal.BUSY, code=1, message="full"), "busy"),
        (job.Unknown(message="lost"), "unknown"),
    ],
)
def test_an_order_counts_as_it_ended(outcome: job.Outcome, word: str) -> None:
    """A refusal is an answer, not an error."""
    meter = Meter(ports.Slurm, outcome)
    assert meter.port.cancel(JobId(1)) is outcome
    assert meter.seen == [("cancel", word, 0.0)]


def test_operations_tell_what_was_asked() -> None:
    """Which kind, which subresource, and whether all states were read."""
    cluster, slurm = Meter(ports.Cluster), Meter(ports.Slurm, {})
    cluster.port.patch(kinds.PODS, "pod", {}, "status")
    cluster.port.patch(kinds.NODES, "node", {})
    slurm.port.states()
    slurm.port.states([JobId(1)])
    assert [row[0] for row in cluster.seen] == ["patch_pods_status", "patch_nodes"]
    assert [row[0] for row in slurm.seen] == ["states_all", "states"]


def fence(port: type, inner: Inner, allowed: Callable[[], bool]) -> object:
    """The fenced port."""
    return (fenced.FencedSlurm if port is ports.Slurm else fenced.FencedCluster)(inner, allowed)


@pytest.mark.parametrize(("port", "verb"), FENCED)
def test_a_fence_that_is_open_changes_nothing(port: type, verb: str) -> None:
    """Arguments and answer pass through."""
    inner = Inner("answer")
    result = getattr(fence(port, inner, lambda: True), verb)(*arguments_of(port, verb))
    assert inner.asked == [(verb, arguments_of(port, verb))]
    assert result in ("answer", None)


@pytest.mark.parametrize(("port", "verb"), FENCED)
def test_a_closed_fence_stops_writes_and_only_writes(port: type, verb: str) -> None:
    """A replica that does not lead may read, and may take part in the election."""
    inner = Inner("answer")
    act = getattr(fence(port, inner, lambda: False), verb)
    if verb not in WRITES[port]:
        act(*arguments_of(port, verb))
        assert len(inner.asked) == 1
        return
    with pytest.raises(errors.NotLeading, match=verb):
        act(*arguments_of(port, verb))
    assert inner.asked == []


def test_a_fence_closes_at_once() -> None:
    """It asks before every single write, and remembers nothing."""
    leads = [True]
    inner = Inner()
    slurm = fenced.FencedSlurm(inner, lambda: leads[0])
    slurm.cancel(JobId(1))
    leads[0] = False
    with pytest.raises(errors.NotLeading):
        slurm.cancel(JobId(1))
    assert len(inner.asked) == 1


def test_losing_the_lead_is_a_reason_to_try_later() -> None:
    """Nothing was sent, and nothing has to be done."""
    assert issubclass(errors.NotLeading, errors.TryLater)
