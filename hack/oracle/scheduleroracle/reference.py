"""kube-scheduler itself. It may read everything and bind nothing, so that its answer changes nothing.

Its log has the answer: the scores of all nodes that fit, the node that it would take, or why there is none. A pod is
over for it when it says that it could not be placed or, because the API server forbids it, not be bound: by then
kube-scheduler has forgotten that it had chosen a node.
"""

import collections
import contextlib
import json
import queue
import re
import subprocess
import threading
from collections.abc import Iterable, Iterator

import yaml

from scheduleroracle import pods
from scheduleroracle.answers import Answer
from scheduleroracle.draws import Json
from scheduleroracle.objects import Objects
from scheduleroracle.servers import READER, Servers

#: Pods and their answers; at the end of kube-scheduler its last lines.
Heard = queue.SimpleQueue[tuple[str, Answer] | str]

_SECONDS = 30.0
_QUOTED = 15
_LINE = re.compile(r'^[IEW]\d{4} \S+ +\d+ (?:schedule_one|default_binder)\.go:\d+\] "(?P<what>[^"]*)" (?P<rest>.*)$')
_FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)')
#: What changes when a pod is tried, or how a pod that was given up comes back, has no part in a comparison.
_GATES = "OpportunisticBatching=false,SchedulerPopFromBackoffQ=false"
_ALL = {"disabled": [{"name": "*"}]}
_CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "percentageOfNodesToScore": 100,
    "podInitialBackoffSeconds": 600,
    "podMaxBackoffSeconds": 600,
    # No preemption, and no volume is bound.
    "profiles": [{"schedulerName": pods.SCHEDULER, "plugins": {"postFilter": _ALL, "preBind": _ALL}}],
}
_RIGHTS = (
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
    {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
)


class NoAnswer(Exception):
    """kube-scheduler said nothing of a pod, or ended."""


class LogReader:
    """Collects what the log says of each pod, until it is over."""

    def __init__(self) -> None:
        self._scores: dict[str, dict[str, float]] = {}
        self._parts: dict[str, dict[str, dict[str, float]]] = {}
        self._host: dict[str, str] = {}

    def hear(self, line: str) -> tuple[str, Answer] | None:
        """The pod and its answer, with the last line about it."""
        match = _LINE.match(line)
        if match is None:
            return None
        fields = {name: _text(value) for name, value in _FIELD.findall(match["rest"])}
        pod = fields.get("pod", "")
        match match["what"]:
            case "Plugin scored node for pod":
                scores = self._parts.setdefault(pod, {}).setdefault(fields["plugin"], {})
                scores[fields["node"]] = float(fields["score"])
            case "Calculated node's final score for pod":
                self._scores.setdefault(pod, {})[fields["node"]] = float(fields["score"])
            case "Attempting to bind pod to node":
                self._host[pod] = fields["node"]
            case "Unable to schedule pod; no fit; waiting":
                return pod, self._over(pod, fields["err"])
            case "Unable to schedule pod; no nodes are registered to the cluster; waiting":
                return pod, self._over(pod, "no nodes")
            case "Error scheduling pod; retrying":
                return pod, self._over(pod, "" if pod in self._host else fields["err"])
        return None

    def _over(self, pod: str, message: str) -> Answer:
        scores, parts = self._scores.pop(pod, {}), self._parts.pop(pod, {})
        host = self._host.pop(pod, None)
        fit = frozenset(scores) if scores else frozenset([host] if host else [])
        return Answer(fit=fit, message=message, scores=scores, parts=parts)


class Reference:
    """Asks kube-scheduler about one pod after the other."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard

    def ask(self, made: Json) -> Answer:
        """About this pod, which has just been created."""
        name = f"{made['metadata']['namespace']}/{made['metadata']['name']}"
        while True:
            try:
                found = self._heard.get(timeout=_SECONDS)
            except queue.Empty:
                raise NoAnswer(f"kube-scheduler said nothing of pod {name} within {_SECONDS:.0f} s") from None
            if isinstance(found, str):
                raise NoAnswer(f"kube-scheduler ended by itself:\n{found}")
            if found[0] == name:
                return found[1]


@contextlib.contextmanager
def started(servers: Servers, objects: Objects) -> Iterator[Reference]:
    """It runs, and is stopped at the end."""
    for manifest in _access():
        objects.create(manifest)
    file = servers.folder / "kube-scheduler.yaml"
    connection = {"kubeconfig": str(servers.reader), "qps": 5000, "burst": 5000}
    file.write_text(yaml.safe_dump({**_CONFIGURATION, "clientConnection": connection}))
    levels = "--vmodule=schedule_one=10,default_binder=3"
    command = [str(servers.scheduler), f"--config={file}", "--secure-port=0", f"--feature-gates={_GATES}", levels]
    heard: Heard = queue.SimpleQueue()
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        reader = threading.Thread(target=_follow, args=(process.stderr, heard), daemon=True)
        reader.start()
        try:
            yield Reference(heard)
        finally:
            process.terminate()
            try:
                process.wait(timeout=_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
            reader.join(_SECONDS)


def _follow(lines: Iterable[str], heard: Heard) -> None:
    reader, last = LogReader(), collections.deque[str](maxlen=_QUOTED)
    for line in lines:
        last.append(line)
        found = reader.hear(line)
        if found is not None:
            heard.put(found)
    heard.put("".join(last))


def _access() -> Iterator[Json]:
    group = "rbac.authorization.k8s.io"
    kind = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": READER}}
    yield {**kind, "rules": list(_RIGHTS)}
    yield {
        **kind,
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": READER},
        "subjects": [{"apiGroup": group, "kind": "User", "name": READER}],
    }


def _text(value: str) -> str:
    return str(json.loads(value)) if value.startswith('"') else value
