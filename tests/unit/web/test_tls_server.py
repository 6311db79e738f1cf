"""A server with a certificate: spoken to in TLS alone, and renewed while it serves."""

import contextlib
import http.client
import pathlib
import socket
import ssl
import threading
from collections.abc import Iterator

import pytest
import trustme

from slurm_bridge import errors
from slurm_bridge.web import tls
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.server import Bounds, HttpServer

WAIT = 10.0


class Place:
    """Where a certificate and its key are, as a mounted Secret has them."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.authority = trustme.CA()
        self.files = tls.Files(cert=folder / "tls.crt", key=folder / "tls.key")
        self.renew()

    def renew(self) -> None:
        """Another certificate of the same authority."""
        issued = self.authority.issue_cert("127.0.0.1")
        self.put(self.files.cert, b"".join(one.bytes() for one in issued.cert_chain_pems))
        assert self.files.key is not None
        self.put(self.files.key, issued.private_key_pem.bytes())

    def put(self, file: pathlib.Path, words: bytes) -> None:
        """A new file in the place of the old one."""
        written = file.with_suffix(".new")
        written.write_bytes(words)
        written.replace(file)

    def seen(self, port: int) -> bytes:
        """The certificate that a client is shown, after an answer to a request."""
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=WAIT, context=context)
        with contextlib.closing(connection):
            connection.request("GET", "/hello")
            assert isinstance(connection.sock, ssl.SSLSocket)
            shown = connection.sock.getpeercert(binary_form=True)
            assert connection.getresponse().read() == b"hi\n"
        assert shown is not None
        return shown


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Place:
    """With a good pair."""
    return Place(tmp_path)


@contextlib.contextmanager
def opened(place: Place, bounds: Bounds) -> Iterator[int]:
    """The port of a server with that certificate."""
    routes = {("GET", "/hello"): lambda _: Reply.text("hi\n")}
    server, stop = HttpServer("127.0.0.1", 0, routes, bounds=bounds, files=place.files), threading.Event()
    running = threading.Thread(target=server.run, args=(stop,))
    running.start()
    yield server.port
    stop.set()
    running.join(WAIT)
    assert not running.is_alive()


@pytest.fixture
def port(place: Place) -> Iterator[int]:
    """Of a server that is in no hurry."""
    with opened(place, Bounds(seconds=WAIT, connections=2)) as number:
        yield number


def test_an_exchanged_certificate_counts_from_the_next_connection_on(place: Place, port: int) -> None:
    """Without a restart; while the new pair is not whole, the old one stays."""
    first = place.seen(port)
    assert place.seen(port) == first
    assert place.files.key is not None
    place.put(place.files.key, b"half a file")
    assert place.seen(port) == first
    place.renew()
    assert place.seen(port) != first


def test_plain_words_get_no_answer(port: int) -> None:
    """The server speaks TLS alone."""
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT) as sock:
        sock.sendall(b"GET /hello HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert not sock.recv(4096).startswith(b"HTTP")


def test_who_says_nothing_does_not_hold_a_place_for_long(place: Place) -> None:
    """The handshake is the client's to finish in time."""
    with (
        opened(place, Bounds(seconds=0.5)) as port,
        socket.create_connection(("127.0.0.1", port), timeout=WAIT) as silent,
    ):
        assert silent.recv(1) == b""


def test_the_old_versions_of_the_protocol_are_not_spoken(place: Place, port: int) -> None:
    """Nothing before TLS 1.2."""
    context = ssl.create_default_context()
    place.authority.configure_trust(context)
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT) as sock, pytest.raises(ssl.SSLError):
        context.wrap_socket(sock, server_hostname="127.0.0.1")


def test_a_pair_that_cannot_be_used_is_a_bad_configuration(place: Place, tmp_path: pathlib.Path) -> None:
    """Said before anything listens, with both files."""
    with pytest.raises(errors.BadConfiguration, match=r"web\.tls: certificate .*/none .*No such file"):
        HttpServer("127.0.0.1", 0, {}, files=tls.Files(cert=tmp_path / "none"))
    place.put(place.files.cert, b"nonsense")
    with pytest.raises(errors.BadConfiguration, match=r"tls\.crt with key .*tls\.key cannot be used"):
        HttpServer("127.0.0.1", 0, {}, files=place.files)
