"""The opponent: the calls that scheduling through Slurm needs, and nothing else: `python -m clusterbench.raw`.

    stdin: name uid  ->  submit  ->  poll jobs/state until RUNNING  ->  read the job once  ->  bind

No watch (it is told what was created), no checks, no records, no conditions, no events. Submit, poll and read are, byte
for byte, the requests of our adapter; the read is the one that gives our daemon both the job's identity and its node.
A gang is submitted once, with a task for each pod, when its last pod was named; one read tells how many cpus the job
has on which nodes, and its pods are bound there in order. It ends when its input ends and everything is bound.
"""

import argparse
import functools
import json
import pathlib
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from clusterbench import bare
from slurm_bridge.model import job, marks
from slurm_bridge.model.names import ANNOTATION_SLURM_NODE, LABEL_JOB_ID, JobId
from slurm_bridge.slurm import calls, fields

HANDS = 4
PERIOD = 0.2
_NAME, _UID = "name-of-the-pod", "uid-of-the-pod"


class _Submitted(msgspec.Struct):
    job_id: int


class _State(msgspec.Struct):
    job_id: str
    state: list[str]


class _States(msgspec.Struct):
    jobs: list[_State]


class _Job(msgspec.Struct):
    nodes: str


class _Jobs(msgspec.Struct):
    jobs: list[_Job]


class _Cpus(msgspec.Struct):
    count: int


class _Node(msgspec.Struct):
    name: str
    cpus: _Cpus


class _Nodes(msgspec.Struct):
    allocation: list[_Node]


class _Resources(msgspec.Struct):
    nodes: _Nodes


class _Holder(msgspec.Struct):
    job_resources: _Resources


class _Holders(msgspec.Struct):
    jobs: list[_Holder]


_submitted = msgspec.json.Decoder(_Submitted).decode
_states = msgspec.json.Decoder(_States).decode
_jobs = msgspec.json.Decoder(_Jobs).decode
_holders = msgspec.json.Decoder(_Holders).decode


class Raw:
    """A queue of calls, four threads that make them, and a poll."""

    def __init__(self, namespace: str, kubernetes: bare.Server, slurm: bare.Server, gangs: Mapping[str, int]) -> None:
        self._namespace = namespace
        self._pods = f"/api/v1/namespaces/{namespace}/pods/"
        self._kubernetes = kubernetes
        self._slurm = slurm
        self._gangs = gangs
        self._form = _form(namespace)
        self._gathered: dict[str, list[str]] = {}
        #: What is done when a job runs, by job.
        self._waiting: dict[int, Callable[[], None]] = {}
        self._todo: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._open = 0
        self._lock = threading.Lock()
        self.failure: BaseException | None = None

    def submit(self, name: str, uid: str) -> None:
        """Begin with one pod; of a gang with the last one."""
        with self._lock:
            self._open += 1
        gang = name.rpartition("-")[0]
        if gang not in self._gangs:
            self._todo.put(lambda: self._submit(name, uid))
            return
        pods = self._gathered.setdefault(gang, [])
        pods.append(name)
        if len(pods) == self._gangs[gang]:
            self._todo.put(lambda: self._submit_gang(gang, uid, sorted(pods, key=_rank)))

    def work(self) -> None:
        """One of the threads."""
        try:
            while True:
                self._todo.get()()
        except BaseException as error:  # noqa: BLE001 - told by the main thread, which ends the process
            self.failure = error

    def poll(self) -> None:
        """One look at everything that waits."""
        for chunk in calls.chunks([JobId(one) for one in tuple(self._waiting)]):
            for row in _states(self._slurm.call("GET", calls.states(chunk).path)).jobs:
                if row.state == ["RUNNING"]:
                    self._start(int(row.job_id))

    @property
    def idle(self) -> bool:
        """Nothing is left of what came in."""
        return not self._open

    def _start(self, job_id: int) -> None:
        self._todo.put(self._waiting.pop(job_id))

    def _submit(self, name: str, uid: str) -> None:
        body = self._form.replace(_NAME, name).replace(_UID, uid).encode()
        job_id = _submitted(self._slurm.call("POST", "/job/submit", body)).job_id
        self._waiting[job_id] = lambda: self._read(job_id, name)

    def _submit_gang(self, gang: str, uid: str, pods: Sequence[str]) -> None:
        body = _body(gang_request(self._namespace, gang, uid, len(pods)))
        job_id = _submitted(self._slurm.call("POST", "/job/submit", body)).job_id
        self._waiting[job_id] = lambda: self._read_gang(job_id, pods)

    def _read(self, job_id: int, name: str) -> None:
        read = self._slurm.call("GET", calls.job(JobId(job_id)).path)
        self._bind(job_id, name, _jobs(read).jobs[0].nodes)

    def _read_gang(self, job_id: int, pods: Sequence[str]) -> None:
        """Each binding is left to whichever hand is free."""
        read = self._slurm.call("GET", calls.job(JobId(job_id), shares=True).path)
        for name, node in zip(pods, places(read), strict=True):
            self._todo.put(functools.partial(self._bind, job_id, name, node))

    def _bind(self, job_id: int, name: str, node: str) -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": name,
                "annotations": {ANNOTATION_SLURM_NODE: node},
                "labels": {LABEL_JOB_ID: str(job_id)},
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        self._kubernetes.call("POST", f"{self._pods}{name}/binding", json.dumps(binding).encode())
        with self._lock:
            self._open -= 1


def places(read: bytes) -> list[str]:
    """A node for each cpu that a job holds, in Slurm's order."""
    held = _holders(read).jobs[0].job_resources.nodes.allocation
    return [node.name for node in held for _ in range(node.cpus.count)]


def _rank(name: str) -> int:
    return int(name.rpartition("-")[2])


def _body(wanted: job.JobRequest) -> bytes:
    """A submit as our adapter writes it."""
    body = calls.submit([fields.submit(wanted)]).body
    assert body is not None
    return body


def _form(namespace: str) -> str:
    """One with two words to be replaced."""
    return _body(request(namespace, _NAME, _UID)).decode()


def request(namespace: str, name: str, uid: str) -> job.JobRequest:
    """The placeholder of one of our pods."""
    owner = marks.Owner(cluster="bench", kind="Pod", namespace=namespace, name=name, uid=uid)
    return job.JobRequest(name=name, owner=owner, memory=job.Memory(mib=128))


def gang_request(namespace: str, name: str, uid: str, members: int) -> job.JobRequest:
    """The placeholder of one of our gangs."""
    owner = marks.Owner(cluster="bench", kind="Group", namespace=namespace, name=name, uid=uid)
    return job.JobRequest(name=name, owner=owner, tasks=members, memory=job.Memory(mib=128, per=job.MemoryPer.CPU))


def _lines(raw: Raw, ended: threading.Event) -> None:
    for name, uid in _words():
        raw.submit(name, uid)
    ended.set()


def _words() -> Iterator[tuple[str, str]]:
    for line in sys.stdin:
        name, uid = line.split()
        yield name, uid


def main() -> int:
    """1 when a call failed."""
    parser = argparse.ArgumentParser()
    for name in ("namespace", "kubeconfig", "url", "token-file", "version"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--gang", action="append", default=[], help="PREFIX=MEMBERS")
    given = parser.parse_args()
    gangs = {prefix: int(members) for prefix, _, members in (one.partition("=") for one in given.gang)}
    kubernetes = bare.kubernetes(pathlib.Path(given.kubeconfig), HANDS)
    slurm = bare.slurm(given.url, pathlib.Path(given.token_file), given.version, HANDS + 1)
    raw, ended, never = Raw(given.namespace, kubernetes, slurm, gangs), threading.Event(), threading.Event()
    for _ in range(HANDS):
        threading.Thread(target=raw.work, daemon=True).start()
    threading.Thread(target=_lines, args=(raw, ended), daemon=True).start()
    while not (ended.is_set() and raw.idle):
        never.wait(PERIOD)
        raw.poll()
        if raw.failure is not None:
            print(f"raw loop: {raw.failure!r}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
