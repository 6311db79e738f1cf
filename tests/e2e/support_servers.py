"""Both real servers, asked without the daemon's adapters: what users see with kubectl and squeue, as JSON and as text.

Nothing here is code of the daemon, so that a mistake of an adapter cannot hide in what a test observes.
"""

import concurrent.futures
import contextlib
import copy
import dataclasses
import http.client
import json
import pathlib
import re
import select
import ssl
import subprocess
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

import slurm_http

from localcluster import certs, kubeconfig
from localcluster.config import PROJECT, Config

Json = dict[str, Any]
T = TypeVar("T")

SECONDS = 60.0
_MERGE = "application/merge-patch+json"
_CALLERS = 8
_ANSWER_SECONDS = 20.0
_VERSION = "v0.0.45"

_MARK = "slurm-bridge/1"

#: States in which a job of Slurm is over.
ENDED = frozenset({"CANCELLED", "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "DEADLINE", "BOOT_FAIL"})


def said(*command: str | pathlib.Path, seconds: float = SECONDS) -> str:
    """What a command prints; it has to succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}"
    return done.stdout


def each(items: Iterable[T], call: Callable[[T], Any]) -> list[Any]:
    """Several at once, in order; the first failure is raised."""
    with concurrent.futures.ThreadPoolExecutor(_CALLERS) as pool:
        return list(pool.map(call, items))


class Refused(Exception):
    """The API server said no."""

    def __init__(self, call: str, status: int, message: str) -> None:
        super().__init__(f"{call}: {status} {message}")
        self.status = status


class Kubernetes:
    """The API server, as its administrator, on connections that are kept and handed from thread to thread."""

    def __init__(self, config: Config) -> None:
        self._address = urllib.parse.urlsplit(kubeconfig.url(config))
        self._trust = ssl.create_default_context(cafile=certs.path(config, "ca.crt"))
        self._identity = {"Authorization": f"Bearer {certs.token(config, 'admin')}", "Accept": "application/json"}
        self._idle: list[http.client.HTTPSConnection] = []

    @property
    def host(self) -> str:
        return self._address.hostname or ""

    @property
    def port(self) -> int:
        return self._address.port or 443

    def acting_for(self, user: str) -> Self:
        """The same server, asked with the rights of another user."""
        other = copy.copy(self)
        other._identity = {**self._identity, "Impersonate-User": user}
        other._idle = []
        return other

    def get(self, path: str) -> Json:
        return self._ask("GET", path)

    def find(self, path: str) -> Json | None:
        """The object, None when there is none."""
        try:
            return self.get(path)
        except Refused as refusal:
            if refusal.status == http.HTTPStatus.NOT_FOUND:
                return None
            raise

    def items(self, path: str) -> list[Json]:
        return list(self.get(path)["items"])

    def create(self, path: str, body: Mapping[str, Any]) -> Json:
        return self._ask("POST", path, body)

    def merge(self, path: str, body: Mapping[str, Any]) -> Json:
        """A merge patch."""
        return self._ask("PATCH", path, body, _MERGE)

    def delete(self, path: str) -> None:
        """What is not there is as good as deleted."""
        try:
            self._ask("DELETE", path)
        except Refused as refusal:
            if refusal.status != http.HTTPStatus.NOT_FOUND:
                raise

    def version(self, path: str) -> str:
        """Of a collection as it is now."""
        return str(self.get(f"{path}?limit=1")["metadata"]["resourceVersion"])

    def watch(self, path: str, seconds: int, since: str = "") -> Iterator[Json]:
        """Every event of a collection since this version or from now on, for so long at most."""
        version = since or self.version(path)
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=seconds, context=self._trust)
        with contextlib.closing(connection):
            query = f"watch=1&timeoutSeconds={seconds}&resourceVersion={version}"
            connection.request("GET", f"{path}?{query}", headers=self._identity)
            with connection.getresponse() as lines:
                for line in lines:
                    yield json.loads(line)

    def apply(self, *manifests: pathlib.Path) -> None:
        """As a user would."""
        files = [word for one in manifests for word in ("--filename", one)]
        said(PROJECT / "hack/cluster/kubectl", "apply", *files)

    def close(self) -> None:
        """All connections."""
        while self._idle:
            self._idle.pop().close()

    def _ask(self, method: str, path: str, body: object = None, kind: str = "application/json") -> Json:
        data = None if body is None else json.dumps(body).encode()
        status, text = self._exchange(method, path, data, {**self._identity, "Content-Type": kind})
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise Refused(f"{method} {path}", status, _complaint(text))
        content: Json = json.loads(text) if text else {}
        return content

    def _exchange(self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        connection = self._take()
        try:
            connection.request(method, path, data, dict(headers))
            response = connection.getresponse()
            found = response.status, response.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return found

    def _take(self) -> http.client.HTTPSConnection:
        """A kept one, if the server has not closed it meanwhile."""
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread was faster
                kept = self._idle.pop()
                if kept.sock is not None and not select.select([kept.sock], [], [], 0)[0]:
                    return kept
                kept.close()
        return http.client.HTTPSConnection(self.host, self.port, timeout=_ANSWER_SECONDS, context=self._trust)


def _complaint(text: bytes) -> str:
    """What a refusal says; of an unknown path it is not JSON."""
    try:
        return str(json.loads(text).get("message", ""))
    except ValueError:
        return text.decode(errors="replace").strip()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlurmJob:
    """One line of the full list of jobs; `owner` is the record in its admin_comment, {} where there is none."""

    job_id: int
    states: frozenset[str]
    owner: Mapping[str, Any]
    nodes: str
    text: Json = dataclasses.field(repr=False)

    @property
    def alive(self) -> bool:
        return not self.states & ENDED

    @property
    def part_of(self) -> int:
        """The job that this is a component of; its own id where it is a whole."""
        return int(self.text.get("het_job_id", {}).get("number") or self.job_id)

    @property
    def node_names(self) -> list[str]:
        """Its nodes one by one, in Slurm's order."""
        return list(expanded(self.nodes))


class Slurm:
    """slurmrestd with the operator's token, and the command line beside slurmctld."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        token = pathlib.Path(variables["SLURM_TOKEN_FILE"]).read_text().strip()
        self._door = slurm_http.Door(url=variables["SLURMRESTD_URL"], token=token)
        self._execute = variables["SLURM_EXEC"]

    def command(self, *words: str) -> str:
        """squeue, scontrol, sbatch … as root beside slurmctld."""
        return said(self._execute, *words)

    def table(self, *words: str) -> list[list[str]]:
        """Lines of a command, split at blanks."""
        return [line.split() for line in self.command(*words).splitlines()]

    def jobs(self) -> list[SlurmJob]:
        """Every job that slurmctld still knows; raises OSError or ValueError while it cannot say."""
        answer = self._door.ask("GET", f"/slurm/{_VERSION}/jobs/")
        if answer.verdict != (200, []) or "jobs" not in answer.json:
            raise ValueError(f"no list of jobs: {answer.verdict}")
        return [_job(one) for one in answer.json["jobs"]]

    def jobs_of(self, cluster_id: str) -> list[SlurmJob]:
        """The placeholders of one daemon's pods, alive or not; what its own check tried is not among them."""
        return [one for one in self.jobs() if is_placeholder(one, cluster_id)]

    def parts_of(self, cluster_id: str) -> list[SlurmJob]:
        """The same with the further components of those that are heterogeneous."""
        known = self.jobs()
        wholes = {one.job_id for one in known if is_placeholder(one, cluster_id)}
        return [one for one in known if one.part_of in wholes]

    def alive(self, cluster_id: str) -> list[SlurmJob]:
        """Whatever one daemon asked for and is not over."""
        return [one for one in self.jobs() if one.owner.get("cluster") == cluster_id and one.alive]

    def nodes(self) -> list[Json]:
        """Every node as slurmrestd shows it."""
        answer = self._door.ask("GET", f"/slurm/{_VERSION}/nodes/")
        if answer.verdict != (200, []) or "nodes" not in answer.json:
            raise ValueError(f"no list of nodes: {answer.verdict}")
        return list(answer.json["nodes"])

    def submit(self, job: Mapping[str, Any]) -> int:
        """Ask for a job, past every daemon."""
        answer = self._door.ask("POST", f"/slurm/{_VERSION}/job/submit", {"job": dict(job)})
        assert answer.verdict == (200, []), answer.text
        return answer.job_id

    def end(self, job_id: int) -> None:
        """What another program on this Slurm does: cancel a job through slurmrestd."""
        self._door.ask("DELETE", f"/slurm/{_VERSION}/job/{job_id}")

    def cancel(self, *job_ids: int) -> None:
        """As an administrator would."""
        if job_ids:
            self.command("scancel", *map(str, job_ids))

    def shown(self, job_id: int) -> dict[str, str]:
        """The words of `scontrol show job`, as KEY=VALUE."""
        return _words(self.command("scontrol", "--oneliner", "show", "job", str(job_id)))

    def all_shown(self) -> dict[int, dict[str, str]]:
        """The same of every job, in one call."""
        found = map(_words, self.command("scontrol", "--oneliner", "show", "job").splitlines())
        return {int(words["JobId"]): words for words in found}


def is_placeholder(one: SlurmJob, cluster_id: str) -> bool:
    """Of a pod or of a group of pods of this cluster, and not one of its further components."""
    ours = one.owner.get("cluster") == cluster_id and one.owner["kind"] != "Check"
    return ours and one.part_of == one.job_id


def expanded(hostlist: str) -> Iterator[str]:
    """ext[001-003,007],other -> every name: as much of Slurm's form as the local cluster has."""
    for prefix, ranges in re.findall(r"([^,\[]+)(?:\[([^\]]*)\])?", hostlist):
        for span in ranges.split(",") if ranges else ("",):
            first, _, last = span.partition("-")
            for number in range(int(first or 0), int(last or first or 0) + 1):
                yield prefix + (str(number).zfill(len(first)) if first else "")


def _words(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def _job(text: Json) -> SlurmJob:
    return SlurmJob(
        job_id=text["job_id"],
        states=frozenset(text["job_state"]),
        owner=owner(text.get("admin_comment") or ""),
        nodes=text.get("nodes") or "",
        text=text,
    )


def owner(comment: str) -> Json:
    """What an admin_comment says, when it is an owner record: of this form, or of the one of earlier versions."""
    mark, _, text = comment.partition(" ")
    marked = mark == _MARK
    try:
        record = json.loads(text if marked else comment)
    except ValueError:
        return {}
    found = record if marked or not isinstance(record, dict) else record.get("owner")
    return found if isinstance(found, dict) else {}


def part(name: str, *verbs: str) -> None:
    """Kill, pause, resume, stop, start or restart a server, one verb after the other."""
    for verb in verbs:
        said(PROJECT / "hack/cluster/part", name, verb, seconds=180)


def condition(pod: Json, kind: str) -> Json:
    """One condition of a pod, {} while it has none of that type."""
    found: Sequence[Json] = pod["status"].get("conditions") or ()
    return next((one for one in found if one["type"] == kind), {})


def mebibytes(quantity: str) -> int:
    """The two forms that the manifests of deploy/ use."""
    unit = {"Mi": 1, "Gi": 1024}[quantity[-2:]]
    return int(quantity[:-2]) * unit
