"""A gate between one daemon and both servers: it counts what the daemon orders, and a test may act at any order.

    daemon ─► gate ─► API server        before    the order has come, and the server has not heard of it
                 └──► slurmrestd        after     the server has done it, and the daemon has not been told

A daemon that is killed at one of these moments dies there for certain, however slow the machine is.
"""

import base64
import contextlib
import dataclasses
import enum
import http.client
import http.server
import json
import pathlib
import re
import select
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping

import yaml

from slurm_bridge.model import names

_PIECE = 1 << 16
#: Of one connection alone, or set anew here.
_HOPS = frozenset({"connection", "keep-alive", "transfer-encoding", "host", "content-length", "te", "upgrade"})
_POD = re.compile(r"/pods/([^/?]+)(?:/(eviction|binding|status))?$")
_CLAIM = re.compile(r"/resourceclaims/([^/?]+)(/status)?$")
_SUBRESOURCES = {"eviction": "evict", "binding": "bind"}
#: What is written on pods: by annotation, when it is written and when it is taken back.
_NOTES = {names.ANNOTATION_ROOM: ("note", "unnote"), names.ANNOTATION_MAKES_ROOM: ("mark", "unmark")}


class When(enum.Enum):
    """On which side of the server's doing."""

    BEFORE = "before"
    AFTER = "after"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the daemon has a server do: `what` is a verb of ours, `target` a pod, claim or job, or a new job's name."""

    what: str
    target: str = ""
    status: int = 0


def order(method: str, path: str, body: bytes) -> Order | None:
    """The order in a request, None for a question, and for what is only said: events, conditions, leases."""
    bare = path.partition("?")[0]
    pod = _POD.search(bare)
    if pod is not None and method in {"POST", "PATCH"}:
        return _of_pod(pod[1], pod[2] or "", body)
    claim = _CLAIM.search(bare)
    if claim is not None and method == "PATCH":
        return Order(what=_of_claim(claim[2] or "", body), target=claim[1])
    if bare.startswith("/slurm/") and "/job/" in bare and method in {"POST", "DELETE"}:
        return _of_job(method, bare.rpartition("/")[2], body)
    return None


def _of_claim(subresource: str, body: bytes) -> str:
    """The finalizer, then the devices; or these are taken back."""
    if not subresource:
        return "protect"
    return "allocate" if json.loads(body).get("status", {}).get("allocation") else "take back"


def _of_job(method: str, job: str, body: bytes) -> Order:
    if method == "DELETE":
        return Order(what="cancel", target=job)
    if job != "submit":
        return Order(what="update", target=job)
    return Order(what="submit", target=str(json.loads(body).get("job", {}).get("name", "")))


def _of_pod(name: str, subresource: str, body: bytes) -> Order | None:
    if subresource in _SUBRESOURCES:
        return Order(what=_SUBRESOURCES[subresource], target=name)
    written = json.loads(body).get("metadata", {}).get("annotations") or {}
    for key, (said, taken_back) in _NOTES.items():
        if key in written:
            return Order(what=taken_back if written[key] is None else said, target=name)
    return None


@dataclasses.dataclass(slots=True, kw_only=True)
class Trap:
    """Snaps once, at the first order that it waits for."""

    when: When
    holds: Callable[[Order], bool]
    act: Callable[[], None]
    snapped: threading.Event = dataclasses.field(default_factory=threading.Event)


class Gate:
    """Both doors; what went through them is in `orders`, with the status of the answer."""

    def __init__(self, kubeconfig: pathlib.Path, slurm_url: str, folder: pathlib.Path, name: str) -> None:
        self.orders: list[Order] = []
        self._trap: Trap | None = None
        self._lock = threading.Lock()
        access = yaml.safe_load(kubeconfig.read_text())
        cluster, user = access["clusters"][0]["cluster"], access["users"][0]["user"]
        trust = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        self._doors = (
            _Door(self, cluster["server"], trust, {"Authorization": f"Bearer {user['token']}"}),
            _Door(self, slurm_url, None, {}),
        )
        self.kubeconfig, self.slurm_url = folder / f"{name}.kubeconfig", self._doors[1].url
        # The gate adds the daemon's token to each request: no copy of it is written anywhere.
        for one in access["clusters"]:
            one["cluster"] = {"server": self._doors[0].url}
        for one in access["users"]:
            one["user"] = {}
        self.kubeconfig.write_text(yaml.safe_dump(access))

    @property
    def settings(self) -> dict[str, dict[str, str]]:
        """Groups of a daemon's configuration with which it goes through here."""
        return {"kubernetes": {"kubeconfig": str(self.kubeconfig)}, "slurm": {"url": self.slurm_url}}

    def trap(self, when: When, holds: Callable[[Order], bool], act: Callable[[], None]) -> Trap:
        """The first order of this kind, on this side of it, makes this happen; nothing else passes meanwhile."""
        with self._lock:
            self._trap = Trap(when=when, holds=holds, act=act)
            return self._trap

    def disarm(self) -> None:
        """Whatever was waited for may come."""
        with self._lock:
            self._trap = None

    def passes(self, found: Order | None, when: When) -> bool:
        """For the doors: False where the order is not to get to the server, or its answer not to the daemon."""
        with self._lock:
            if found is not None and when is When.AFTER:
                self.orders.append(found)
            trap = self._trap
            if found is None or trap is None or trap.when is not when or not trap.holds(found):
                return True
            self._trap = None
            trap.act()
            trap.snapped.set()
            return False

    def done(self, what: str) -> list[str]:
        """The targets of this order, in the order of time, without those that were refused."""
        return [
            one.target for one in tuple(self.orders) if one.what == what and one.status < http.HTTPStatus.BAD_REQUEST
        ]

    def refused(self, what: str) -> int:
        """How often a server said no to this."""
        return sum(one.what == what and one.status >= http.HTTPStatus.BAD_REQUEST for one in tuple(self.orders))

    def close(self) -> None:
        """Both doors are shut."""
        for one in self._doors:
            one.close()


class _Door:
    """One server, behind an address of loopback."""

    def __init__(self, gate: Gate, server: str, trust: ssl.SSLContext | None, identity: Mapping[str, str]) -> None:
        self._address, self._trust, self._identity = urllib.parse.urlsplit(server), trust, identity
        self.gate = gate
        self._far: set[socket.socket] = set()
        door = self

        class Handler(_Handler):
            """Of this door."""

            def setup(self) -> None:
                super().setup()
                self.door = door

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="gate", daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def opened(self) -> http.client.HTTPConnection:
        """A connection to the server."""
        host, port = self._address.hostname or "", self._address.port
        made = (
            http.client.HTTPSConnection(host, port, context=self._trust)
            if self._trust is not None
            else http.client.HTTPConnection(host, port)
        )
        made.connect()
        self._far.add(made.sock)
        return made

    def forget(self, far: socket.socket) -> None:
        """It is closed."""
        self._far.discard(far)

    def headers(self, given: Mapping[str, str]) -> dict[str, str]:
        """What the server is told beside the order itself."""
        return {name: value for name, value in given.items() if name.lower() not in _HOPS} | dict(self._identity)

    def close(self) -> None:
        """Refuse new connections, and end all watches."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for one in tuple(self._far):
            # The reader notices; to close it would wait for the reader.
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class _Handler(http.server.BaseHTTPRequestHandler):
    """One connection of the daemon, with one to the server behind it."""

    protocol_version = "HTTP/1.1"
    door: _Door
    _far: http.client.HTTPConnection | None = None

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found, gate = order(self.command, self.path, body), self.door.gate
        if not gate.passes(found, When.BEFORE):
            self.close_connection = True
            return
        with contextlib.suppress(OSError, http.client.HTTPException):
            # Where either side has gone the other one sees a connection that breaks, as it would without a gate.
            far = self._connected()
            far.request(self.command, self.path, body or None, self.door.headers(dict(self.headers)))
            answer = far.getresponse()
            known = dataclasses.replace(found, status=answer.status) if found is not None else None
            if gate.passes(known, When.AFTER):
                self._answer(answer)
                return
        self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on  # noqa: N815 - so http.server calls them

    def _connected(self) -> http.client.HTTPConnection:
        """The kept connection, if the server has not closed it meanwhile."""
        far = self._far
        if far is not None and (far.sock is None or select.select([far.sock], [], [], 0)[0]):
            self._leave()
        if self._far is None:
            self._far = self.door.opened()
        return self._far

    def _leave(self) -> None:
        if self._far is not None:
            self.door.forget(self._far.sock)
            self._far.close()
            self._far = None

    def _answer(self, answer: http.client.HTTPResponse) -> None:
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in _HOPS:
                self.send_header(name, value)
        if answer.length is not None:
            self.send_header("Content-Length", str(answer.length))
            self.end_headers()
            self.wfile.write(answer.read())
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in iter(lambda: answer.read1(_PIECE), b""):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            super().handle()

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
        self._leave()

    def log_message(self, *_: object) -> None:
        """Nothing is logged: the daemon has a log of its own."""


@contextlib.contextmanager
def opened(variables: Mapping[str, str], folder: pathlib.Path, name: str) -> Iterator[Gate]:
    """A gate to the servers of the local cluster."""
    gate = Gate(pathlib.Path(variables["KUBECONFIG_DAEMON"]), variables["SLURMRESTD_URL"], folder, name)
    try:
        yield gate
    finally:
        gate.close()
