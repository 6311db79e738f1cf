"""Servers of the local cluster that end or hang are started again, as a kubelet would, and it is written down.

They are other projects' programs, started once and not supervised; a suite that goes on with one of them dead
fails wherever it needs that one next, and says nothing of why.
"""

import datetime as dt
import os
from collections.abc import Iterable

from localcluster import kubernetes, locking, parts, process
from localcluster.config import Config
from localcluster.server import Server
from tests import revival, wait
from tests.e2e import support_servers
from tests.e2e.support_servers import Json

#: Where it is written down; the end of a run shows it.
STORY = "revived.log"

_USABLE_SECONDS = 30.0

_slurm = revival.Guard(lambda: revival.of_slurm(Config.resolve(os.environ)))


def tend(config: Config) -> None:
    """Start whatever has ended since the last look, and bring back a slurmctld that hangs."""
    for one in parts.PARTS:
        if isinstance(one, Server) and process.running(one.places(config).pid) is None:
            _revive(config, one, "start", "had ended by itself")
    # Modules run side by side in processes of their own: none may kill what another has just started.
    with locking.exclusive(config.pids, "tests"):
        _slurm.suspect("before a module")
        for story in _slurm.look():
            _write_down(config, story)


def await_usable(config: Config, kube: support_servers.Kubernetes, nodes: Iterable[str]) -> None:
    """Until these new nodes are ready and free of taints; the server that is behind is given a second chance."""
    names = tuple(nodes)

    def owing() -> set[Server]:
        return {owed for name in names for owed in _owing(kube.get(f"/api/v1/nodes/{name}"))}

    try:
        wait.until(lambda: not owing(), "usable nodes", _USABLE_SECONDS)
    except AssertionError:
        for one in owing():
            _revive(config, one, "restart", f"had not done its part for new nodes in {_USABLE_SECONDS:.0f} s")
        wait.until(lambda: not owing(), f"usable nodes, {', '.join(one.name for one in owing())}", _USABLE_SECONDS)


def told(config: Config) -> str:
    """What had to be started again since the cluster came up."""
    story = config.logs / STORY
    return story.read_text() if story.exists() else ""


def _owing(node: Json) -> Iterable[Server]:
    """KWOK makes nodes ready; the controller manager takes off the taint that new ones have."""
    if support_servers.condition(node, "Ready").get("status") != "True":
        yield kubernetes.KWOK
    elif node["spec"].get("taints"):
        yield kubernetes.CONTROLLER_MANAGER


def _revive(config: Config, one: Server, verb: str, why: str) -> None:
    last = process.quote(one.places(config).log)
    _write_down(config, f"{one.name} {why}: {verb}. {last}")
    support_servers.part(one.name, verb)


def _write_down(config: Config, story: str) -> None:
    with (config.logs / STORY).open("a") as written:
        written.write(f"{dt.datetime.now(dt.UTC):%H:%M:%S} {story}")
