"""Words to speak with a pocket Slurm in virtual time, without sockets."""

import dataclasses
import json
import urllib.parse
from typing import Any

from slurm_bridge.runtime import clock
from slurm_bridge.sim import wire
from slurm_bridge.sim.slurm import control, pocket


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    body: Any

    @property
    def errors(self) -> list[int]:
        return [error["error_number"] for error in self.body["errors"]]

    @property
    def warnings(self) -> str:
        return "\n".join(warning["description"] for warning in self.body["warnings"])

    @property
    def job_id(self) -> int:
        return self.body.get("job_id", 0)


def job(**fields: Any) -> dict[str, Any]:
    """A small placeholder; `...` leaves a field out."""
    small = {
        "name": "test",
        "flags": ["EXTERNAL_JOB"],
        "environment": ["PATH=/bin"],
        "current_working_directory": "/",
        "tasks": 1,
        "cpus_per_task": 1,
        "memory_per_node": {"set": True, "number": 100},
        "time_limit": {"set": True, "number": 60},
        "user_id": "slurm-bridge",
    }
    return {name: value for name, value in {**small, **fields}.items() if value is not ...}


class Desk:
    """A client of slurmrestd with the operator's token."""

    def __init__(self, slurm: pocket.PocketSlurm, clock_: clock.VirtualClock) -> None:
        self.slurm = slurm
        self.clock = clock_

    @property
    def control(self) -> control.Control:
        return self.slurm.control

    def call(
        self, method: str, path: str, body: Any = None, *, version: str = "v0.0.45", token: str | None = ""
    ) -> Answer:
        """One request; a body of bytes is sent as it is, token None sends none."""
        path, _, query = path.partition("?")
        headers = {"content-type": "application/json"}
        if token is not None:
            headers["x-slurm-user-token"] = token or self.slurm.secret
        request = wire.Request(
            method=method,
            path=path if path.startswith("/") else f"/slurm/{version}/{path}",
            query=urllib.parse.parse_qs(query, keep_blank_values=True),
            headers=headers,
            body=body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode(),
            target=f"{path}?{query}",
        )
        response = self.slurm.handler(request)
        assert isinstance(response.body, bytes)
        plain = response.content_type == "text/plain"
        return Answer(status=response.status, body=response.body.decode() if plain else json.loads(response.body))

    def submit(self, **fields: Any) -> Answer:
        return self.call("POST", "job/submit", {"job": job(**fields)})

    def het(self, *components: dict[str, Any]) -> Answer:
        return self.call("POST", "job/submit", {"jobs": [job(**fields) for fields in components]})

    def pending(self, **fields: Any) -> int:
        answer = self.submit(**fields)
        assert answer.job_id, answer.body
        return answer.job_id

    def running(self, **fields: Any) -> int:
        job_id = self.pending(**fields)
        self.slurm.tick()
        assert self.state(job_id) == "RUNNING", self.job(job_id)["state_reason"]
        return job_id

    def update(self, job_id: int, **fields: Any) -> Answer:
        return self.call("POST", f"job/{job_id}", fields)

    def cancel(self, job_id: int) -> Answer:
        return self.call("DELETE", f"job/{job_id}")

    def job(self, job_id: int) -> dict[str, Any]:
        return self.call("GET", f"job/{job_id}").body["jobs"][0]

    def node(self, name: str) -> dict[str, Any]:
        return self.call("GET", f"node/{name}").body["nodes"][0]

    def state(self, job_id: int) -> str:
        return self.control.job(job_id).state

    def reason(self, job_id: int) -> str:
        self.slurm.tick()
        return self.control.job(job_id).reason

    def spread(self, job_id: int) -> dict[str, int]:
        """Node -> cpus of a running job."""
        grant = self.control.job(job_id).grant
        assert grant is not None
        return {share.node: share.cpus for share in grant.shares}
