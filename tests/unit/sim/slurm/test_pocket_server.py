"""The pocket over real HTTP, and fast enough for ten thousand jobs."""

import http.client
import json
import time
from typing import Any

import pytest
from pocket_desk import job

from slurm_bridge.runtime import clock
from slurm_bridge.sim import wire
from slurm_bridge.sim.slurm import defaults, pocket, state
from tests import wait


def ask(served: pocket.PocketSlurmServer, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """One call on a connection of its own."""
    connection = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=wait.PATIENCE)
    try:
        headers = {"X-SLURM-USER-TOKEN": served.slurm.secret, "Content-Type": "application/json"}
        connection.request(method, f"/slurm/v0.0.45/{path}", json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def test_a_job_starts_by_itself() -> None:
    """A thread lets the scheduler look round; the world survives a restart of the server."""
    slurm = pocket.PocketSlurm()
    with pocket.PocketSlurmServer(slurm, period=0.001) as served:
        job_id = ask(served, "POST", "job/submit", {"job": job()})[1]["job_id"]

        def runs() -> bool:
            return ask(served, "GET", f"jobs/state/?job_id={job_id}")[1]["jobs"][0]["state"] == ["RUNNING"]

        wait.until(runs, "start", wait.PATIENCE, every=0.005)
        assert served.faults.journal
    with served:
        assert ask(served, "GET", f"job/{job_id}")[0] == 200


@pytest.mark.thorough
def test_ten_thousand_jobs_on_a_thousand_nodes_are_bearable() -> None:
    """Submitted, scheduled and listed in seconds; a full cluster costs a pass little."""
    time_ = clock.VirtualClock()
    slurm = pocket.PocketSlurm(clock=time_, nodes=defaults.nodes(1000), config=state.PocketConfig())
    headers = {"x-slurm-user-token": slurm.secret, "content-type": "application/json"}
    body = json.dumps({"job": job(cpus_per_task=8)}).encode()
    started = time.monotonic()
    for _ in range(10_000):
        slurm.handler(wire.Request(method="POST", path="/slurm/v0.0.45/job/submit", headers=headers, body=body))
    slurm.tick()
    states = slurm.handler(wire.Request(method="GET", path="/slurm/v0.0.45/jobs/state/", headers=headers))
    assert isinstance(states.body, bytes)
    listed = json.loads(states.body)["jobs"]
    assert (len(listed), len(slurm.world.running)) == (10_000, 799 * 8)
    assert time.monotonic() - started < 60
