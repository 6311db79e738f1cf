"""The wire itself, against a server on loopback: what a script in the same process would not show."""

import contextlib
import socket
import ssl
import threading
import traceback
import urllib.parse
from collections.abc import Iterator

import pytest
import trustme

from slurm_bridge import errors
from slurm_bridge.model.job import Done, Refusal, Unknown
from slurm_bridge.sim import faults, http
from slurm_bridge.slurm.client import SlurmClient
from tests import wait
from tests.unit.slurm.samples import request

ANSWERS = {
    "ping": b'{"pings": [{"responding": true}], "errors": []}',
    "state": b'{"jobs": [{"job_id": "7", "state": ["RUNNING"]}], "errors": []}',
    "submit": b'{"job_id": 5, "errors": []}',
    "nodes": b'{"nodes": [], "errors": []}',
}


def handler(asked: http.Request) -> http.Response:
    """Answers by the last word of the path."""
    return http.Response(status=200, body=ANSWERS[asked.path.rstrip("/").rsplit("/", 1)[-1]])


@pytest.fixture
def server():
    """A slurmrestd that always has the same to say."""
    with http.Server(handler) as running:
        yield running


def plan(server: http.Server, fault: faults.Fault, target: str) -> None:
    """Break the next call to this path."""
    server.faults.plan(fault, target=target)


@contextlib.contextmanager
def gone(server: http.Server) -> Iterator[None]:
    """Stopped, and nobody else can come to listen at its address."""
    address = urllib.parse.urlsplit(server.url)
    server.stop()
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind((address.hostname, address.port))
        yield


def agree(client: SlurmClient) -> None:
    """Upon a version; with limits as short as some cases need, an answer may also come too late."""

    def agreed() -> object:
        with contextlib.suppress(errors.TryLater):
            return client.version
        return None

    wait.until(agreed, "version")


def test_nobody_there_means_nothing_was_done(make, server):
    """A refused connection refuses the order; the read is unavailable."""
    client = make(server.url)
    with gone(server):
        assert client.submit(request()).why is Refusal.BUSY
        with pytest.raises(errors.Unavailable):
            client.states()


def test_a_slurmrestd_that_went_away_did_nothing(make, server):
    """Also after a good start: the dead kept connection is noticed before anything is written."""
    client = make(server.url)
    assert client.states()
    with gone(server):
        assert client.submit(request()).why is Refusal.BUSY


def test_a_slurmrestd_that_comes_back_is_found(make, server):
    """The connection that died with it costs no call."""
    client = make(server.url)
    assert client.submit(request()) == Done(job_id=5)
    server.stop()
    server.start()
    assert client.submit(request()) == Done(job_id=5)


def test_no_answer_in_time_is_unknown(make, server):
    """The order may have been carried out."""
    client = make(server.url, read_timeout=0.1, read_tries=1)
    agree(client)
    plan(server, faults.Hang(), "submit")
    plan(server, faults.Hang(), "nodes")
    assert isinstance(client.submit(request()), Unknown)
    with pytest.raises(errors.Unanswered):
        client.nodes()


@pytest.mark.parametrize("fault", [faults.Reset(), faults.Drop(), faults.Truncate(10), faults.Garble(b"<html>")])
def test_a_broken_answer_is_unknown(make, server, fault):
    """Reset before, cut in the middle, or not JSON: nobody can tell whether the job exists."""
    client = make(server.url)
    assert client.version
    plan(server, fault, "submit")
    assert isinstance(client.submit(request()), Unknown)
    assert client.submit(request()) == Done(job_id=5)


@pytest.mark.parametrize("fault", [faults.Reset(), faults.Drop(), faults.Truncate(10), faults.Garble(b"<html>")])
def test_a_broken_read_is_read_again(make, server, fault):
    """The same breakage heals itself for reads."""
    client = make(server.url)
    plan(server, fault, "state")
    assert set(client.states()) == {7}


def test_an_answer_beyond_the_limit_is_not_swallowed(make, server):
    """It is dropped while it arrives, not after it has filled the memory."""
    client = make(server.url, max_answer_bytes=50, read_tries=1)
    with pytest.raises(errors.BadAnswer, match="50 bytes"):
        client.states()


def test_redirects_are_not_followed(make):
    """The token would travel to wherever the answer points."""
    asked: list[str] = []

    def away(call: http.Request) -> http.Response:
        asked.append(call.path)
        return http.Response(status=307, headers={"Location": "/elsewhere"})

    with http.Server(away) as server, pytest.raises(errors.BadConfiguration):
        make(server.url).states()
    assert len(asked) == 1


def test_the_environment_has_no_say(make, server, monkeypatch):
    """Neither a proxy nor a CA bundle of the environment."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "REQUESTS_CA_BUNDLE"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert set(make(server.url).states()) == {7}


def test_a_path_before_ours_is_kept(make):
    """Slurmrestd may share its host behind a proxy."""
    asked: list[str] = []

    def behind(call: http.Request) -> http.Response:
        asked.append(call.path)
        return handler(call)

    with http.Server(behind) as server:
        make(server.url + "/hpc/").states()
    assert {path.split("/slurm/")[0] for path in asked} == {"/hpc"}


@pytest.mark.parametrize("fault", [faults.Reset(), faults.Drop(), faults.Hang(), faults.Truncate(10)])
def test_no_failure_tells_the_token(make, server, fault):
    """Neither the error nor anything that it was made from."""
    client = make(server.url, read_timeout=0.1, read_tries=1)
    agree(client)
    plan(server, fault, "state")
    with pytest.raises(errors.TryLater) as caught:
        client.states()
    assert "secret" not in "".join(traceback.format_exception(caught.value)) + repr(client)


def test_a_header_that_cannot_be_sent_is_for_the_operator(make, server):
    """The standard library would quote the header."""
    client = make(server.url, user_name="two\nlines")
    with pytest.raises(errors.BadConfiguration, match="header") as caught:
        client.states()
    assert "two" not in "".join(traceback.format_exception(caught.value))


def test_connections_are_kept_and_orders_have_their_own(make):
    """Ten reads and ten orders need two connections."""
    with http.Server(handler) as server:
        client = make(server.url)
        for _ in range(10):
            client.states()
            client.submit(request())
        assert len(server._open) == 2


@pytest.mark.parametrize("form", ["unix://{}", None])
def test_a_unix_socket(make, tmp_path, form):
    """Slurmrestd beside us needs no port; a socket that is not there did nothing."""
    path = tmp_path / "restd.sock"
    with http.Server(handler, unix_socket=path) as server:
        client = make(form.format(path) if form else server.url)
        assert client.submit(request()) == Done(job_id=5)
        assert set(client.states()) == {7}
        assert len(server._open) == 2
    assert client.submit(request()).why is Refusal.BUSY


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A CA, and certificates for the server on 127.0.0.1 and for a client."""
    here = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(here / "ca.pem")
    for name in ("server", "client"):
        made = authority.issue_cert("127.0.0.1", common_name=name)
        made.private_key_pem.write_to_path(here / f"{name}.key")
        made.cert_chain_pems[0].write_to_path(here / f"{name}.pem")
    return here


@pytest.fixture
def secure(certificates):
    """A slurmrestd that wants to see a client certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificates / "ca.pem")
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    with http.Server(handler, tls=context) as running:
        yield running, context


def test_tls_with_a_client_certificate(make, secure, certificates):
    """Our own CA is trusted, and we show who we are."""
    server, _ = secure
    client = make(
        server.url,
        ca_file=certificates / "ca.pem",
        cert_file=certificates / "client.pem",
        key_file=certificates / "client.key",
    )
    assert client.submit(request()) == Done(job_id=5)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"ca_file": "client.pem", "cert_file": "client.pem", "key_file": "client.key"},
        {"ca_file": "ca.pem", "cert_file": "client.pem", "key_file": "server.key"},
        {"ca_file": "nowhere.pem"},
        {"ca_file": "ca.pem", "cert_file": "nowhere.pem", "key_file": "nowhere.key"},
    ],
)
def test_tls_that_cannot_work_is_for_the_operator(make, secure, certificates, wrong):
    """An unknown CA, a certificate with another's key, files that are not there: nothing was sent."""
    server, _ = secure
    client = make(server.url, **{name: certificates / file for name, file in wrong.items()})
    with pytest.raises(errors.BadConfiguration):
        client.states()
    assert client.submit(request()).why is Refusal.BUSY


def test_an_encrypted_key_is_for_the_operator(make, secure, certificates, tmp_path):
    """OpenSSL would ask the terminal for its password."""
    server, _ = secure
    locked = tmp_path / "locked.key"
    locked.write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
    client = make(
        server.url,
        ca_file=certificates / "ca.pem",
        cert_file=certificates / "client.pem",
        key_file=locked,
        read_tries=1,
    )
    with pytest.raises(errors.BadConfiguration, match="encrypted"):
        client.states()


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"])
def test_the_environment_names_no_authority(make, certificates, monkeypatch, variable):
    """Whom we trust is said by the settings or by the system."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    monkeypatch.setenv(variable, str(certificates if variable == "SSL_CERT_DIR" else certificates / "ca.pem"))
    with http.Server(handler, tls=context) as server, pytest.raises(errors.BadConfiguration, match="certificate"):
        make(server.url).states()


def test_renewed_certificates_are_read_by_the_next_connection(make, certificates, tmp_path):
    """Certificates are renewed in place while the daemon runs."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    ours = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(ours)
    with http.Server(handler, tls=context) as server:
        client = make(server.url, ca_file=ours)
        with pytest.raises(errors.BadConfiguration):
            client.states()
        ours.write_bytes((certificates / "ca.pem").read_bytes())
        assert set(client.states()) == {7}


def test_a_client_that_does_not_show_who_it_is_is_for_the_operator(make, secure, certificates):
    """The server says so within the handshake of TLS 1.2; in 1.3 it may hang up after our request was sent."""
    server, context = secure
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    client = make(server.url, ca_file=certificates / "ca.pem")
    with pytest.raises(errors.BadConfiguration):
        client.states()
    assert client.submit(request()).why is Refusal.BUSY


@pytest.fixture
def plain():
    """A port whose owner answers a TLS greeting in plain words."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def refuse() -> None:
            for _ in range(2):
                talking, _ = listening.accept()
                with talking:
                    talking.recv(4096)
                    talking.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{listening.getsockname()[1]}"
        thread.join(wait.PATIENCE)
        assert not thread.is_alive()


def test_tls_towards_plain_http_is_for_the_operator(make, plain):
    """A wrong scheme in the address is not a reason to try for ever."""
    client = make(plain)
    with pytest.raises(errors.BadConfiguration):
        client.states()
    assert client.submit(request()).why is Refusal.BUSY


def test_a_tls_greeting_that_is_cut_off_did_nothing(make):
    """A slurmrestd behind a proxy that restarts: not a matter for the operator, and surely not sent."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def hang_up() -> None:
            for _ in range(2):
                listening.accept()[0].close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        client = make(f"https://127.0.0.1:{listening.getsockname()[1]}", read_tries=1)
        with pytest.raises(errors.Unavailable):
            client.states()
        assert client.submit(request()).why is Refusal.BUSY
        thread.join(wait.PATIENCE)
        assert not thread.is_alive()


def test_a_tls_greeting_without_reply_did_nothing(make):
    """The request follows only after the handshake."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = make(f"https://127.0.0.1:{listening.getsockname()[1]}", connect_timeout=0.1, read_timeout=0.1)
        assert client.submit(request()).why is Refusal.BUSY
