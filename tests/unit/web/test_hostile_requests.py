"""Requests that are meant to be read in two ways, or to leave something behind."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from slurm_bridge import errors
from slurm_bridge.kube import manifests
from slurm_bridge.web import drafts
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request
from slurm_bridge.web.server import Bounds, HttpServer
from tests import threads

WAIT = 10.0

Say = Callable[[bytes], bytes]


def answered(request: Request) -> Reply:
    """Says what came."""
    return Reply.json({"path": request.path, "names": dict(request.names)})


@pytest.fixture
def server() -> HttpServer:
    """A server that serves one connection at a time."""
    routes = {("GET", "/here"): answered, ("GET", "/of/{name}"): answered}
    return HttpServer("127.0.0.1", 0, routes, bounds=Bounds(seconds=WAIT, connections=1))


@pytest.fixture
def running(server: HttpServer) -> Iterator[threading.Thread]:
    """The thread that waits at the server."""
    stop = threading.Event()
    thread = threading.Thread(target=server.run, args=(stop,))
    thread.start()
    yield thread
    stop.set()
    thread.join(WAIT)
    assert not thread.is_alive()


@pytest.fixture
def say(server: HttpServer, running: threading.Thread) -> Say:
    """Bytes for the server, and what comes back."""
    assert running.is_alive()

    def said(words: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT) as sock:
            sock.sendall(words)
            with contextlib.suppress(OSError):  # the server may have hung up already
                sock.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: sock.recv(4096), b""))

    return said


@pytest.mark.parametrize(
    "words",
    [
        b"GET /here HTTP/1.1\r\nX: y\nContent-Length: 30\r\n\r\n",
        b"GET /here HTTP/1.1\r\nX: y\rContent-Length: 30\r\n\r\n",
        b"GET /here HTTP/1.1\nX: y\r\n\r\n",
        b"GET /here HTTP/1.1\r\nX: \x00y\r\n\r\n",
        b"GET /he\x0bre HTTP/1.1\r\n\r\n",
        b"GET /here\nforged HTTP/1.1\r\n\r\n",
        b"G\tT /here HTTP/1.1\r\n\r\n",
        b"GET /here HTTP/1.1x\r\n\r\n",
        b"GET /here HTTP/1.1\r\nContent Length: 3\r\n\r\n",
        b"GET /here HTTP/1.1\r\nCont\xe9nt-Length: 3\r\n\r\n",
        b"GET /here HTTP/1.1\r\n folded: 3\r\n\r\n",
    ],
)
def test_what_may_be_read_in_two_ways_is_refused(say: Say, words: bytes) -> None:
    """A server before us may take it for another request, and a reader of our log for another line."""
    assert say(words).startswith(b"HTTP/1.1 400 ")


def test_a_tab_in_a_value_is_no_harm(say: Say) -> None:
    """Some clients send one."""
    assert say(b"GET /here HTTP/1.1\r\nX: a\tb\r\n\r\n").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "path", [b"/of/../here", b"/of/%2e%2e/here", b"/of//", b"//here", b"/of/a/b", b"http://x/here"]
)
def test_paths_are_taken_as_they_are(say: Say, path: bytes) -> None:
    """Nothing is resolved that would lead to another route."""
    assert say(b"GET " + path + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 404 ")


def test_a_name_holds_one_segment(say: Say) -> None:
    """What is written in it as a slash is no border."""
    assert b'"names": {"name": "a/../b"}' in say(b"GET /of/a%2F..%2Fb HTTP/1.1\r\n\r\n")


def test_a_place_is_given_back_when_there_is_no_thread_for_it(say: Say, running: threading.Thread) -> None:
    """Else the server would be full for ever after."""
    with threads.refused_to(running):
        assert say(b"GET /here HTTP/1.1\r\n\r\n") == b""
    assert say(b"GET /here HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("namespace", ["..", ".", "a/b", "../../x", "A", "a\n", "a" * 64, 5])
def test_a_namespace_leads_nowhere_else(namespace: object) -> None:
    """It becomes a part of the path of a request that carries the caller's token."""
    manifest = {"metadata": {"name": "a", "namespace": namespace}, "spec": {"containers": [{"name": "c"}]}}
    with pytest.raises(drafts.Unacceptable, match=r"metadata\.namespace"):
        drafts.draft(manifest, ("ours",), None)  # type: ignore[arg-type]


def test_an_endless_name_is_not_repeated() -> None:
    """It would be in the log and in the answer."""
    manifest = {"metadata": {"name": "a" * 100_000}, "spec": {"containers": [{"name": "c"}]}}
    with pytest.raises(drafts.Unacceptable) as refused:
        drafts.draft(manifest, ("ours",), None)  # type: ignore[arg-type]
    assert str(refused.value) == "metadata.name: has 100000 characters; at most 253 are allowed"


@pytest.mark.parametrize("body", [b"x: !!timestamp soon", b"x: !!bool maybe", b"x: !!int ''"])
def test_yaml_that_lies_about_its_types_is_the_senders_mistake(body: bytes) -> None:
    """And not an accident of ours."""
    with pytest.raises(errors.BadConfiguration, match="is not YAML"):
        manifests.handed_in(body)
