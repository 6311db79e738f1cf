import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping

import pytest

from slurm_bridge import errors
from slurm_bridge.kube import config, transport
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.runtime.http import messages
from slurm_bridge.sim import faults, http
from tests import wait
from tests.unit.kube.conftest import LIMITS, NO_ANSWER, SILENCE, Script, refused

THING = messages.HttpRequest(method="GET", path="/thing")

Connect = Callable[[messages.HttpLimits], transport.Transport]


class Credentials(config.Access):
    """Counts how often new ones were asked for."""

    asked = 0

    def renewed(self, answer: messages.HttpAnswer, sent: Mapping[str, str]) -> bool:
        renewed = super().renewed(answer, sent)
        self.asked += renewed
        return renewed


def to(url: str, limits: messages.HttpLimits = LIMITS) -> transport.Transport:
    """A line to this address."""
    return transport.Transport(config.plain(url), clock=SystemClock(), limits=limits)


@pytest.fixture
def connect(server: http.Server) -> Iterator[Connect]:
    """Makes lines to the scripted server."""
    with contextlib.ExitStack() as stack:
        yield lambda limits: stack.enter_context(contextlib.closing(to(server.url, limits)))


@pytest.fixture
def line(connect: Connect) -> transport.Transport:
    """A line to the scripted server."""
    return connect(LIMITS)


def test_answer(script: Script, line: transport.Transport) -> None:
    """A whole answer is number, body and the server's wish."""
    script.on("GET", "/thing", refused(429, "TooMany", headers={"retry-after": "3"}))
    answer = line.call(THING)
    assert (answer.status, answer.ok, answer.retry_after) == (429, False, 3.0)


def test_connections_are_kept(script: Script, server: http.Server, line: transport.Transport) -> None:
    """Calls one after the other use one connection."""
    script.on("GET", "/thing", {})
    for _ in range(5):
        line.call(THING)
    assert len(server._open) == 1


def test_not_reached() -> None:
    """A refused connection did nothing."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(errors.Unavailable):
            to(f"http://127.0.0.1:{port}").call(THING)


@pytest.mark.parametrize("fault", [faults.Drop(), faults.Reset(acted=True), faults.Reset()])
def test_no_answer(script: Script, server: http.Server, line: transport.Transport, fault: faults.Fault) -> None:
    """Once sent, a request without an answer may have been acted on."""
    script.on("GET", "/thing", {})
    server.faults.plan(fault)
    with pytest.raises(errors.Unanswered):
        line.call(THING)


def test_no_answer_in_time(script: Script, server: http.Server, connect: Connect) -> None:
    """A request whose answer does not come in time may have been acted on too."""
    script.on("GET", "/thing", {})
    server.faults.plan(faults.Hang())
    with pytest.raises(errors.Unanswered):
        connect(NO_ANSWER).call(THING)


def test_truncated(script: Script, server: http.Server, line: transport.Transport) -> None:
    """An answer shorter than promised is a bad one."""
    script.on("GET", "/thing", {"long": "x" * 1000})
    server.faults.plan(faults.Truncate(after=10))
    with pytest.raises(errors.BadAnswer, match="the answer ended early"):
        line.call(THING)


def test_too_large(script: Script, line: transport.Transport) -> None:
    """An answer beyond the limit is not read to its end."""
    script.on("GET", "/thing", {"long": "x" * (LIMITS.most_bytes + 1)})
    with pytest.raises(errors.BadAnswer, match="exceeds"):
        line.call(THING)


class Hurried(SystemClock):
    """A minute goes by between two looks."""

    def __init__(self) -> None:
        self._looks = 0

    def now(self) -> float:
        self._looks += 1
        return self._looks * 60.0


def test_too_slow(script: Script, server: http.Server) -> None:
    """An answer that trickles is given up after a while, though it is never silent."""
    script.on("GET", "/thing", http.Response(body=iter([b"a", b"b", b"c"])))
    line = transport.Transport(config.plain(server.url), clock=Hurried(), limits=LIMITS)
    with pytest.raises(errors.Unanswered, match="no whole answer in time"):
        line.call(THING)
    line.close()


def test_closed(line: transport.Transport) -> None:
    """After the end nothing is sent any more."""
    line.close()
    with pytest.raises(errors.Unavailable):
        line.call(THING)


def test_redirects_are_not_followed(script: Script, line: transport.Transport) -> None:
    """Credentials go nowhere but to the configured server."""
    script.on("GET", "/thing", http.Response(status=302, headers={"location": "/elsewhere"}))
    script.on("GET", "/elsewhere", {})
    assert line.call(THING).status == 302


@pytest.mark.parametrize(("second", "number"), [({}, 200), (refused(401, "Unauthorized"), 401)])
def test_unauthorized(script: Script, server: http.Server, second: object, number: int) -> None:
    """After a 401 credentials are read again and the request repeated, once."""
    script.on("GET", "/thing", refused(401, "Unauthorized"), second)
    access = Credentials(config.plain(server.url)._load, "test")
    line = transport.Transport(access, clock=SystemClock(), limits=LIMITS)
    assert line.call(THING).status == number
    assert access.asked == 1
    line.close()


def test_unauthorized_stream(script: Script, server: http.Server) -> None:
    """A watch renews credentials as a call does."""
    script.on("GET", "/thing", refused(401, "Unauthorized"), http.Response(body=iter([b"a"])))
    access = Credentials(config.plain(server.url)._load, "test")
    line = transport.Transport(access, clock=SystemClock(), limits=LIMITS)
    assert b"".join(line.stream(THING)) == b"a"
    assert access.asked == 1
    line.close()


def test_stream(script: Script, line: transport.Transport) -> None:
    """A stream gives its bytes as they come and ends where the server ends it."""
    script.on("GET", "/thing", http.Response(body=iter([b"ab", b"c"])))
    assert b"".join(line.stream(THING)) == b"abc"


def test_refused_stream(script: Script, line: transport.Transport) -> None:
    """A stream that is no success is raised before it begins."""
    script.on("GET", "/thing", refused(410, "Expired"))
    with pytest.raises(errors.Expired):
        line.stream(THING)


def test_silent_stream(script: Script, connect: Connect) -> None:
    """A stream that says nothing for too long is half open."""
    hold, sent = threading.Event(), threading.Event()
    script.on("GET", "/thing", http.Response(body=_pieces(b"a", hold, sent)))
    stream = iter(connect(SILENCE).stream(THING))
    assert sent.wait(wait.PATIENCE)
    assert next(stream) == b"a"
    with pytest.raises(errors.Unanswered, match="silent"):
        next(stream)
    hold.set()


def test_cut_stream(script: Script, server: http.Server, line: transport.Transport) -> None:
    """A stream that breaks off is told from one that ends."""
    script.on("GET", "/thing", http.Response(body=iter([b"ab", b"cd"])))
    server.faults.plan(faults.Cut(after=1))
    with pytest.raises(errors.BadAnswer, match="the answer ended early"):
        list(line.stream(THING))


def test_stream_closed_from_outside(script: Script, server: http.Server) -> None:
    """Closing a stream wakes its reader at once, and the reader sees an end, not an error."""
    hold = threading.Event()
    script.on("GET", "/thing", http.Response(body=_pieces(b"a", hold)))
    patient = transport.Transport(config.plain(server.url), clock=SystemClock(), limits=messages.HttpLimits())
    stream = patient.stream(THING)
    pieces: list[bytes] = []
    arrived = threading.Event()

    def read() -> None:
        for piece in stream:
            pieces.append(piece)
            arrived.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert arrived.wait(wait.PATIENCE)
    stream.close()
    reader.join(wait.PATIENCE)
    hold.set()
    assert not reader.is_alive()
    assert pieces == [b"a"]
    stream.close()
    patient.close()


def test_stream_closed_before_it_was_read(script: Script, line: transport.Transport) -> None:
    """A stream nobody has begun to read is closed at once, and reads as empty."""
    hold = threading.Event()
    script.on("GET", "/thing", http.Response(body=_pieces(b"a", hold)))
    stream = line.stream(THING)
    stream.close()
    hold.set()
    assert list(stream) == []


def test_stream_left_in_the_middle(script: Script, line: transport.Transport) -> None:
    """Whoever stops reading and closes leaves no connection open."""
    hold = threading.Event()
    script.on("GET", "/thing", http.Response(body=_pieces(b"a", hold)))
    stream = line.stream(THING)
    assert next(iter(stream)) == b"a"
    stream.close()
    hold.set()
    assert stream._response._left is None
    assert stream._response._sock.fileno() < 0


def _pieces(first: bytes, hold: threading.Event, sent: threading.Event | None = None) -> Iterator[bytes]:
    """One piece, then a silence until the test lets go."""
    yield first
    if sent is not None:
        sent.set()
    hold.wait(10)
