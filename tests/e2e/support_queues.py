"""Queues on the real cluster: how they are configured, pods that ask for one, and what the daemon and Slurm say."""

import collections
import contextlib
import json
import pathlib
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_daemon, support_servers, support_world
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

QUEUE = names.JOB_PREFIX + "queue"
#: How often Slurm is asked for all jobs, which are few: two that overlap only for a moment are seen together.
PERIOD = 0.05
_PROGRAM = pathlib.Path(sys.executable).with_name("slurm-bridge")


def queue(name: str, *below: Json, **fields: Any) -> Json:
    """A queue of a configuration; a leaf says which users may submit to it."""
    return {"name": name, **fields, **({"queues": list(below)} if below else {})}


def most(**amounts: str) -> Json:
    """Its maximum."""
    return {"max": amounts}


def hook(*queues: Json, **options: Any) -> list[Json]:
    """The hook with these queues; pods name the one that they want."""
    partition = {
        "name": "default",
        "placementrules": [{"name": "provided"}],
        "queues": [{"name": "root", "queues": list(queues)}],
    }
    return [{"name": "yunikorn", "options": {"configuration": {"partitions": [partition]}, **options}}]


def pod(world: World, name: str, wanted: str, *, cpu: str = "1", account: str = "default", **marks: str) -> Json:
    """A pod for a queue, which runs until it is ended; marks are further annotations of the stand-in for kubelets."""
    annotations = {QUEUE: wanted, **support_world.FOREVER, **marks}
    return support_world.pod(
        name,
        world.daemon.scheduler,
        annotations=annotations,
        containers=support_world.asks(cpu=cpu, memory="64Mi"),
        serviceAccountName=account,
    )


def says(reason: str, words: str) -> Any:
    """Whether a pod's condition says exactly this."""

    def holds(one: Json) -> bool:
        said = support_servers.condition(one, "PodScheduled")
        return (said.get("reason"), said.get("message")) == (reason, words)

    return holds


def refused(words: str) -> Any:
    """Whether no queue takes a pod, for this reason among others."""

    def holds(one: Json) -> bool:
        said = support_servers.condition(one, "PodScheduled")
        return said.get("reason") == "QueueRejected" and words in str(said.get("message"))

    return holds


def page(world: World) -> Json:
    """What the daemon's door shows; {} where it shows none yet."""
    status, text = support_daemon.look(int(world.daemon.settings["web"]["port"]), "/queues")
    found: Json = json.loads(text) if status == 200 else {}
    return found


def command(world: World) -> Json:
    """What `slurm-bridge queues --json` prints."""
    url = f"http://127.0.0.1:{world.daemon.settings['web']['port']}"
    found: Json = json.loads(support_servers.said(_PROGRAM, "queues", "--json", "--url", url))
    return found


def shown(world: World) -> dict[str, Json]:
    """Every queue of the page by its path."""
    return {one["path"]: one for one in _walk(page(world).get("queues"))}


def _walk(top: Json | None) -> Iterator[Json]:
    if top:
        yield top
        for one in top["queues"]:
            yield from _walk(one)


def used(world: World, path: str) -> int:
    """The whole CPUs that the page says are in use; 0 where there is no such queue."""
    return int(shown(world).get(path, {}).get("used", {}).get("vcore", 0)) // 1000


def started(world: World, count: int, seconds: float) -> collections.Counter[str]:
    """By queue, how many pods have or had a node, as soon as there are so many of them."""
    seen = collections.Counter[str]()

    def enough() -> bool:
        seen.clear()
        seen.update(one["metadata"]["annotations"][QUEUE] for one in world.pods() if support_world.is_bound(one))
        return seen.total() >= count

    wait.until(enough, f"{count} started pods", seconds, every=support_world.PERIOD)
    return seen


class Watch:
    """Asks Slurm for its jobs again and again, and adds up the CPUs of those that live, by the queue of their pods."""

    def __init__(self, world: World, made: Sequence[Json]) -> None:
        self._world = world
        self._queue_of = {one["metadata"]["uid"]: one["metadata"]["annotations"][QUEUE] for one in made}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="queues")
        self.highest: dict[str, int] = {}
        self.looks = 0

    def now(self) -> Mapping[str, int]:
        """One look."""
        found: collections.Counter[str] = collections.Counter()
        for one in self._world.slurm.alive(self._world.daemon.cluster_id):
            wanted = self._queue_of.get(str(one.owner["uid"]))
            if wanted is not None:
                found[wanted] += int(one.text["cpus"]["number"])
        for path, cpus in found.items():
            self.highest[path] = max(cpus, self.highest.get(path, 0))
        self.looks += 1
        return found

    def _run(self) -> None:
        while not self._stop.wait(PERIOD):
            with contextlib.suppress(OSError, ValueError):  # slurmctld is busy: the next look is as good
                self.now()

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._stop.set()
        self._thread.join()


@contextlib.contextmanager
def watched(world: World, made: Sequence[Json]) -> Iterator[Watch]:
    """While this lasts, what queues use is taken from Slurm."""
    watch = Watch(world, made)
    watch.start()
    try:
        yield watch
    finally:
        watch.end()
