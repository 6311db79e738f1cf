"""The daemon as a process would run it, with threads and over HTTP, against the pocket world."""

import contextlib
import json
import pathlib
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from slurm_bridge import app
from slurm_bridge.daemon.process import Daemon
from slurm_bridge.demo import pocket
from slurm_bridge.model import kinds, names
from tests import wait

NAMESPACE = "default"


class Running:
    """A daemon in a thread, and what it ended with."""

    def __init__(self, daemon: Daemon, world: pocket.PocketWorld) -> None:
        self.daemon, self.world = daemon, world
        self.status: int | None = None
        self._thread = threading.Thread(target=self._run, name="daemon")

    def _run(self) -> None:
        self.status = self.daemon.run()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self) -> int:
        """How it ended."""
        self._thread.join(30)
        assert self.status is not None, "it does not end"
        return self.status

    def stop(self) -> int:
        """As SIGTERM does."""
        self.daemon.stop()
        return self.join()

    def get(self, path: str) -> tuple[int, str]:
        """The answer of the HTTP server."""
        address = f"http://127.0.0.1:{self.daemon.server.port}{path}"
        try:
            with urllib.request.urlopen(address, timeout=wait.PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()

    def ready(self) -> bool:
        """It says so itself."""
        return self.get("/readyz")[0] == 200

    def until_ready(self) -> None:
        """Wait for it."""
        wait.until(self.ready, "readiness", 20, every=0.02)

    def pod(self, name: str) -> None:
        """A user creates a pod."""
        needs = {"requests": {"cpu": "1", "memory": "100Mi"}}
        container = {"name": "main", "image": "none", "resources": needs}
        spec = {"schedulerName": names.SCHEDULER_NAME, "containers": [container]}
        self.world.kube.create(kinds.PODS, {"metadata": {"name": name}, "spec": spec})

    def bound(self, *pods: str) -> bool:
        """Whether these have nodes."""
        found = [self.world.kube.get(kinds.PODS, NAMESPACE, name) for name in pods]
        return all(pod is not None and pod["spec"].get("nodeName") for pod in found)


def configuration(
    world: pocket.PocketWorld, path: pathlib.Path, *, over: tuple[str, ...] = (), **values: Any
) -> app.Configuration:
    """A file with these values over what the pocket world needs; `over` as from the command line, over everything."""
    settled = {
        "cluster_id": "here",
        "leader_election": {"enabled": False, "namespace": "default"},
        "scheduling": {"workers": 2},
        **values,
    }
    path.write_text(json.dumps(settled))
    return app.Configuration(path=path, environ={}, overrides=(*world.overrides, *over))


@contextlib.contextmanager
def running(
    world: pocket.PocketWorld, path: pathlib.Path, *, over: tuple[str, ...] = (), **values: Any
) -> Iterator[Running]:
    """A daemon that runs; ended with the block if it has not been before."""
    with app.daemon(configuration(world, path, over=over, **values)) as daemon:
        made = Running(daemon, world)
        made.start()
        try:
            yield made
        finally:
            made.stop()
