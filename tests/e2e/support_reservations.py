"""Small pods that keep arriving, reservations as Slurm shows them, and a Slurm that refuses to make any."""

import contextlib
import dataclasses
import http.client
import http.server
import pathlib
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any, Self

from slurm_bridge.model import names
from slurm_bridge.scheduler.reservations import node_record
from tests.e2e import support_queues, support_servers, support_world
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

#: Slurm starts these before any other.
PRIORITY = 1000
#: So many of them wait at any time.
BACKLOG = 4
SECONDS = 8
PERIOD = 0.5
_TOKEN = "X-SLURM-USER-TOKEN"


def hooks(*, priority: int = PRIORITY, **options: Any) -> list[Json]:
    """One queue for all, and pods that may say how important they are to Slurm."""
    allowed = {"name": "policy", "options": {"rules": [{"allow": {"priority": {"max": priority}}}]}}
    queued = support_queues.hook(support_queues.queue("all", submitacl="*"), ahead=32, **options)
    return [allowed, {"name": "eligibility", "options": {"volumes": False}}, *queued]


def reservations(world: World) -> dict[str, set[str]]:
    """Those of this daemon: their nodes by their names."""
    shown = world.slurm.table("scontrol", "--oneliner", "show", "reservation")
    words = [dict(word.split("=", 1) for word in line if "=" in word) for line in shown]
    mine = node_record.prefix(world.daemon.cluster_id)
    return {
        one["ReservationName"]: set(support_servers.expanded(one["Nodes"]))
        for one in words
        if one.get("ReservationName", "").startswith(mine)
    }


class Traffic:
    """Small pods of half a node: there are always some more that wait."""

    def __init__(self, world: World, cpu: str) -> None:
        self._world, self._cpu = world, cpu
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic")
        self._made = 0
        self.started = 0

    def _run(self) -> None:
        while not self._stop.wait(PERIOD):
            with contextlib.suppress(OSError, ValueError, http.client.HTTPException):  # the next look is as good
                self.look()

    def look(self) -> None:
        """Once: as many come as have started since."""
        bound = [support_world.is_bound(one) for one in self._world.pods() if one["metadata"]["name"].startswith("s-")]
        self.started = sum(bound)
        missing = BACKLOG - (len(bound) - self.started)
        self._world.create(*(self._small() for _ in range(missing)))

    def _small(self) -> Json:
        self._made += 1
        marks = {
            names.JOB_PREFIX + "priority": str(PRIORITY),
            support_world.OUTCOME: "succeed",
            "kwok.local/seconds": str(SECONDS),
        }
        return support_queues.pod(self._world, f"s-{self._made:04}", "root.all", cpu=self._cpu, **marks)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reluctant:
    """A way to slurmrestd on which reservations are asked for with the token of a user that may make none."""

    url: str
    refused: list[int]


@contextlib.contextmanager
def reluctant(url: str, users_token: pathlib.Path) -> Iterator[Reluctant]:
    """Everything else goes through as it is."""
    there = urllib.parse.urlsplit(url)
    token = users_token.read_text().strip().removeprefix("SLURM_JWT=")
    refused: list[int] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            asks = self.command != "GET" and "/reservation" in self.path
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            if asks:
                headers = {name: value for name, value in headers.items() if name.lower() != _TOKEN.lower()}
                headers[_TOKEN] = token
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection = http.client.HTTPConnection(there.hostname or "", there.port, timeout=60)
            with contextlib.closing(connection):
                connection.request(self.command, self.path, body or None, headers)
                answer = connection.getresponse()
                text = answer.read()
                if asks:
                    refused.append(answer.status)
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.getheader("Content-Type", "application/json"))
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = _pass_on  # noqa: N815 - as the library calls them

        def log_message(self, *_: object) -> None:  # type: ignore[override]
            """Nothing is said."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="reluctant")
    thread.start()
    try:
        yield Reluctant(url=f"http://127.0.0.1:{server.server_port}", refused=refused)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
