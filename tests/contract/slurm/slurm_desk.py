"""What a case works with: one API version of one slurmrestd, jobs that carry the name of this run, and waiting.

Everything that a case submits is ended when the case is over, whatever became of it.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import slurm_http
from slurm_servers import Servers

VERSIONS = ("v0.0.43", "v0.0.44", "v0.0.45")
NEWEST = VERSIONS[-1]

#: Inside the range of ids that Slurm would look up, and far from those that it gives.
NEVER_USED = 60_000_001

ENDED = frozenset({"CANCELLED", "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"})

_OK, _FAILED = 200, 500

#: A node with one of these beside IDLE takes no job of ours.
_TAKEN = frozenset({"DRAIN", "RESERVED", "NOT_RESPONDING", "PLANNED", "DOWN"})


def number(value: int) -> dict[str, Any]:
    """A number as slurmrestd's clients write it."""
    return {"set": True, "infinite": False, "number": value}


HELD = {"priority": number(0)}
WHOLE_NODE = {"shared": ["none"]}


def value(field: Any) -> Any:
    """A number as slurmrestd writes it: None while it is not set."""
    if field["infinite"]:
        return "infinite"
    return field["number"] if field["set"] else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """One API version, one token."""

    servers: Servers
    version: str
    job_name: str
    token: str | None = dataclasses.field(repr=False)
    made: list[int] = dataclasses.field(default_factory=list)
    added: list[str] = dataclasses.field(default_factory=list)

    def fresh(self) -> "Desk":
        """The same desk with nothing to clear away yet."""
        return dataclasses.replace(self, made=[], added=[])

    def with_token(self, token: str | None) -> "Desk":
        """The same desk for somebody else."""
        return dataclasses.replace(self, token=token)

    def at(self, version: str) -> "Desk":
        """The same desk in another version."""
        return dataclasses.replace(self, version=version)

    @property
    def plain_user(self) -> "Desk":
        """The same desk for somebody who is no operator."""
        return self.with_token(self.servers.user_token)

    def url(self, path: str) -> str:
        return f"/slurm/{self.version}/{path}"

    @property
    def door(self) -> slurm_http.Door:
        """The server without a version."""
        return slurm_http.Door(url=self.servers.url, token=self.token)

    def ask(
        self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None
    ) -> slurm_http.Answer:
        """Any call below this version."""
        return self.door.ask(method, self.url(path), body, headers=headers)

    def in_turn(self, *paths: str) -> list[slurm_http.Answer]:
        """Several reads on one connection."""
        return self.door.ask_in_turn([self.url(path) for path in paths])

    def get(self, path: str) -> slurm_http.Answer:
        return self.ask("GET", path)

    def _listed(self, path: str, what: str) -> list[dict[str, Any]]:
        """The records of a read; a server that has none to give fails the case with its own words."""
        answer = self.get(path)
        records: list[dict[str, Any]] | None = answer.json.get(what)
        assert records is not None, f"GET {path} answers {answer.complaint}"
        return records

    # -- jobs

    def shape(self, **fields: Any) -> dict[str, Any]:
        """The smallest good request: one task on one CPU with little memory; `...` leaves a field out."""
        usual = {
            "name": self.job_name,
            "partition": "debug",
            "flags": ["EXTERNAL_JOB"],
            "environment": ["PATH=/bin"],
            "current_working_directory": "/tmp",  # noqa: S108 - nothing runs there
            "tasks": 1,
            "cpus_per_task": 1,
            "memory_per_node": number(100),
            "time_limit": number(5),
        }
        return {name: field for name, field in (usual | fields).items() if field is not ...}

    def submit(self, **fields: Any) -> slurm_http.Answer:
        """Ask for one job."""
        return self._remember(self.ask("POST", "job/submit", {"job": self.shape(**fields)}))

    def submit_het(self, *components: Mapping[str, Any]) -> slurm_http.Answer:
        """Ask for a heterogeneous job."""
        return self._remember(self.ask("POST", "job/submit", {"jobs": [self.shape(**one) for one in components]}))

    def _remember(self, answer: slurm_http.Answer) -> slurm_http.Answer:
        if answer.job_id:
            self.made.append(answer.job_id)
        return answer

    def pending(self, **fields: Any) -> int:
        """A job that exists; it may start at any moment."""
        answer = self.submit(**fields)
        assert answer.verdict == (200, []), answer.text
        return answer.job_id

    def held(self, **fields: Any) -> int:
        """A job that exists and will not start."""
        return self.pending(**HELD, **fields)

    def running(self, **fields: Any) -> int:
        """A job that runs."""
        return self.started(self.pending(**fields))

    def started(self, job_id: int) -> int:
        """Wait until it runs."""
        self.until(lambda: "RUNNING" in self.state(job_id), f"job {job_id} runs")
        return job_id

    def job(self, job_id: int) -> dict[str, Any]:
        """One record."""
        return self._listed(f"job/{job_id}", "jobs")[0]

    def components(self, job_id: int | str) -> list[dict[str, Any]]:
        """The records of a heterogeneous job."""
        return self._listed(f"job/{job_id}", "jobs")

    def states(self, *job_ids: int) -> dict[str, set[str]]:
        """What jobs/state says, by the id as it writes it."""
        query = "&".join(f"job_id={job_id}" for job_id in job_ids)
        listed = self._listed(f"jobs/state/?{query}", "jobs")
        return {job["job_id"]: set(job["state"]) for job in listed}

    def state(self, job_id: int) -> set[str]:
        """The words of one job; of a heterogeneous one, those that all components share."""
        words = list(self.states(job_id).values())
        return set.intersection(*words) if words else set()

    def update(self, job_id: int, **fields: Any) -> slurm_http.Answer:
        return self.ask("POST", f"job/{job_id}", fields)

    def delete(self, job_id: int) -> slurm_http.Answer:
        return self.ask("DELETE", f"job/{job_id}")

    def delete_many(self, *job_ids: int) -> slurm_http.Answer:
        return self.ask("DELETE", "jobs/", {"jobs": [str(job_id) for job_id in job_ids]})

    def resources(self, job_id: int) -> dict[str, dict[str, Any]]:
        """What it holds, by node. v0.0.43 cannot say: asked in the newest version."""
        nodes = self.at(NEWEST)._listed(f"resources/{job_id}", "nodes")
        return {node["node"]: node for node in nodes}

    def cpus(self, job_id: int) -> dict[str, int]:
        """CPUs per node (on nodes with one thread per core)."""
        return {name: int(node["core_bitmap"], 16).bit_count() for name, node in self.resources(job_id).items()}

    # -- nodes

    def nodes(self) -> dict[str, dict[str, Any]]:
        """All nodes by name."""
        return {node["name"]: node for node in self._listed("nodes/", "nodes")}

    def node(self, name: str) -> dict[str, Any]:
        return self._listed(f"node/{name}", "nodes")[0]

    def machines(self, feature: str) -> list[str]:
        """The names of all nodes of a kind."""
        return sorted(name for name, node in self.nodes().items() if feature in node["features"])

    def others(self, partition: str, *names: str) -> tuple[str, ...]:
        """All nodes of a partition but these: what a job excludes that may have these alone."""
        found = (name for name, node in self.nodes().items() if partition in node["partitions"])
        return tuple(sorted(set(found) - set(names)))

    def idle(self, feature: str, count: int = 1) -> list[str]:
        """The names of free nodes of a kind; waits until there are as many."""
        found: dict[str, list[str]] = {}

        def free() -> list[str]:
            return sorted(name for name, words in found.items() if "IDLE" in words and not _TAKEN & set(words))

        def enough() -> bool:
            found.clear()
            found.update({name: node["state"] for name, node in self.nodes().items() if feature in node["features"]})
            return len(free()) >= count

        try:
            self.until(enough, f"{count} idle {feature} nodes")
        except AssertionError as error:
            error.add_note(", ".join(f"{name} {'+'.join(words)}" for name, words in found.items()))
            raise
        return free()[:count]

    def add_nodes(self, *names: str) -> slurm_http.Answer:
        """Make dynamic external nodes in no partition; they go when the case is over."""
        self.added.extend(names)
        configuration = f"NodeName={','.join(names)} CPUs=4 RealMemory=4000 State=EXTERNAL"
        return self.ask("POST", "new/node", {"node_conf": configuration})

    def reconfigure(self) -> None:
        """What `scontrol reconfigure` does: among other things it forgives nodes and counts GPUs anew."""
        assert self.get("reconfigure/").verdict == (200, [])

    # -- time

    def until(self, condition: Callable[[], object], what: str, seconds: float = 20.0) -> None:
        """Wait for a condition; whatever ends the waiting says for what."""
        deadline = time.monotonic() + seconds
        while not _asked(condition, what):
            assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
            time.sleep(self.servers.pause_between_looks)

    def stays(self, condition: Callable[[], object], job_id: int, looks: int = 2) -> bool:
        """The condition holds while the scheduler considers the job several times more."""
        seen: set[int] = set()

        def considered() -> bool:
            seen.add(value(self.job(job_id)["last_sched_evaluation"]) or 0)
            return not condition() or len(seen - {0}) > looks

        self.until(considered, f"job {job_id} is considered {looks} times")
        return bool(condition())

    def sweep(self) -> None:
        """End and remove what this desk has made; what nobody confirms is left for another attempt."""
        if self.made and self.delete_many(*dict.fromkeys(self.made)).status == _OK:
            self.made.clear()
        self.added[:] = [name for name in self.added if self.ask("DELETE", f"node/{name}").status >= _FAILED]

    def inherit(self, other: "Desk") -> None:
        """Take over what another desk could not sweep."""
        self.made.extend(other.made)
        self.added.extend(other.added)


def _asked(condition: Callable[[], object], what: str) -> object:
    try:
        return condition()
    except Exception as error:
        error.add_note(f"while waiting: {what}")
        raise


def sweep_all(desk: Desk) -> None:
    """End whatever carries the name of this run, also jobs whose submit was never answered."""
    jobs: Sequence[dict[str, Any]] = desk.get("jobs/").json.get("jobs") or ()
    alive = [job for job in jobs if not ENDED & set(job["job_state"])]
    mine = [job["job_id"] for job in alive if job["name"].startswith(desk.job_name)]
    if mine:
        desk.delete_many(*mine)
