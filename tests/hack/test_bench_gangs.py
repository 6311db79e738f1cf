"""The benchmark of one gang: what the raw loop does for it, and what is computed from both."""

import json
import pathlib
import re
import threading
from collections.abc import Mapping

import pytest
from clusterbench import gangs, raw
from clusterbench.workload import Load

from slurm_bridge.model import kinds, names
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE

HELD = {"nodes": {"allocation": [{"name": "n1", "cpus": {"count": 2}}, {"name": "n2", "cpus": {"count": 1}}]}}


class Servers:
    """Both servers at once: every job runs, and holds three cpus on two nodes."""

    def __init__(self) -> None:
        self.submitted: list[Mapping[str, object]] = []
        self.bound: dict[str, str] = {}

    def call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """One request."""
        sent = json.loads(body or b"{}")
        if path == "/job/submit":
            self.submitted.append(sent["job"])
            return b'{"job_id": 7}'
        if "/jobs/state/" in path:
            return b'{"jobs": [{"job_id": "7", "state": ["RUNNING"]}]}'
        if path.endswith("/binding"):
            self.bound[sent["metadata"]["name"]] = sent["target"]["name"]
            return b"{}"
        assert method == "GET"
        return json.dumps({"jobs": [{"nodes": "n1", "job_resources": HELD}]}).encode()


def play(*pods: str, **members: int) -> Servers:
    """The raw loop with these gangs, from the first name to the last binding."""
    servers = Servers()
    loop = raw.Raw("n", servers, servers, members)  # type: ignore[arg-type]
    threading.Thread(target=loop.work, daemon=True).start()
    for name in pods:
        loop.submit(name, f"uid of {name}")
    while not loop.idle:
        assert loop.failure is None
        loop.poll()
    return servers


def gang(who: str = "slurm-bridge", **fields: object) -> gangs.Gang:
    """Eight pods, bound two seconds after the last of them was there."""
    plain: dict[str, object] = {
        "who": who,
        "members": 8,
        "nodes": 2,
        "seconds": 2.0,
        "bound": 1.5,
        "cpu": {who: 0.4, "etcd": 0.4},
        "calls": {"slurmctld": {"SUBMIT": 1}, "own slurm": {"submit": 1}, "own kubernetes": {"bind": 8, "event": 2}},
    }
    return gangs.Gang(**{**plain, **fields})  # type: ignore[arg-type]


def test_the_raw_loop_submits_a_gang_once_and_binds_it_in_order() -> None:
    """In the order of their numbers, a pod for each cpu that the job holds."""
    servers = play("g-10", "g-2", "g-1", g=3)
    assert [one["tasks"] for one in servers.submitted] == [3]
    assert servers.bound == {"g-1": "n1", "g-2": "n1", "g-10": "n2"}


def test_pods_of_no_gang_are_submitted_one_by_one() -> None:
    """The same loop does both."""
    servers = play("pod-0", g=3)
    assert [one["name"] for one in servers.submitted] == ["pod-0"]
    assert servers.bound == {"pod-0": "n1"}


def test_the_raw_loop_asks_for_what_the_daemon_asks_for(tmp_path: pathlib.Path) -> None:
    """Another request would be another work for Slurm."""
    bridge = Bridge(tmp_path)
    load = Load(namespace=NAMESPACE, scheduler=names.SCHEDULER_NAME, pods=4, prefix="gang", together=True)
    for name in load.names():
        bridge.kube.create(kinds.PODS, load.pod(name))
    bridge.until(lambda: bridge.node_of("gang-3"))
    (asked,) = [one.ask for one in bridge.jobs()]
    request = raw.gang_request(NAMESPACE, "gang", "uid", 4)
    assert (asked.tasks, asked.cpus_per_task) == (request.tasks, request.cpus_per_task)
    assert (asked.memory_mib, asked.memory_per.value) == (request.memory.mib, request.memory.per.value)
    assert (asked.minimum_nodes, asked.maximum_nodes) == (1, request.maximum_nodes)


def test_pods_of_one_gang_have_one_job() -> None:
    """Several would be single pods that happened to be fast."""
    assert gangs.one_job([7, 7]) == 7
    with pytest.raises(RuntimeError, match=re.escape("jobs [7, 8]")):
        gangs.one_job([8, 7])


def test_pods_are_where_slurm_put_their_job() -> None:
    """In Slurm's notation."""
    gangs.same_nodes({"a": "n1", "b": "n2"}, "n[1-2]")
    with pytest.raises(RuntimeError, match="b runs on n3"):
        gangs.same_nodes({"a": "n1", "b": "n3"}, "n[1-2]")


def test_the_table_compares_within_a_round() -> None:
    """Times, ratios beside the goal, and the daemon's calls by kind."""
    played = [gang(), gang("raw loop", seconds=1.6), gang("raw loop", seconds=1.25), gang()]
    text = gangs.table(played)
    assert re.search(r"s all there to all bound +2\.00 +1\.43", text)
    assert "all there to all bound within a round: 1.43 (from 1.25 to 1.60; the goal is at most 1.3)" in text
    assert "calls of slurm-bridge to kubernetes: bind 8, event 2" in text


def test_the_document_has_every_turn() -> None:
    """And what was compared."""
    document = gangs.document([gang(), gang("raw loop", seconds=1.5, bound=1.0)])
    assert document["gang"]["ratios"]["RUNNING to all bound"]["median"] == 1.5  # type: ignore[index]
    assert [one["waited"] for one in document["gang"]["turns"]] == [0.5, 0.5]  # type: ignore[index]


def test_a_start_that_is_not_in_the_log_leaves_the_whole_to_compare() -> None:
    """Slurm's backfill scheduler does not always write one."""
    text = gangs.table([gang(bound=None), gang("raw loop", seconds=1.0)])
    assert "all there to all bound within a round: 2.00" in text
    assert "RUNNING to all bound within a round" not in text
    assert re.search(r"s RUNNING to all bound +- +1\.50", text)
