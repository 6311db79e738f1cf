"""A namespace on the real cluster with one daemon that works for it: what a test does there, and what it sees."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_daemon, support_servers
from tests.e2e.support_servers import Json

#: The stand-in for kubelets ends a pod as its annotations say; a bare pod without any runs until it is deleted.
OUTCOME = "kwok.local/outcome"
SHORT = {OUTCOME: "succeed", "kwok.local/seconds": "1"}
FOREVER = {OUTCOME: "run"}

#: Lists of hundreds of pods and jobs are not asked for more often.
PERIOD = 0.5


def pod(name: str, scheduler: str, *, annotations: Mapping[str, str] | None = None, **spec: Any) -> Json:
    """A pod of one CPU."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": _spec(scheduler, spec),
    }


def job(name: str, scheduler: str, pods: int, *, annotations: Mapping[str, str] | None = None, **spec: Any) -> Json:
    """A Job of so many pods at once; the annotations are its pods'."""
    template = {"metadata": {"annotations": dict(annotations or {})}, "spec": _spec(scheduler, spec)}
    wanted = {"parallelism": pods, "completions": pods, "backoffLimit": 100, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": wanted}


def replica_set(name: str, scheduler: str, pods: int, annotations: Mapping[str, str]) -> Json:
    """Pods that are made anew whenever one goes."""
    marks = {"app": name}
    template = {"metadata": {"labels": marks, "annotations": dict(annotations)}, "spec": _spec(scheduler, {})}
    template["spec"]["restartPolicy"] = "Always"
    wanted = {"replicas": pods, "selector": {"matchLabels": marks}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": wanted}


def _spec(scheduler: str, spec: Mapping[str, Any]) -> Json:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
    return {
        "schedulerName": scheduler,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [container],
        **spec,
    }


def asks(**amounts: str) -> list[Json]:
    """The containers of a pod that asks for this; a double underscore stands for what Python cannot spell."""
    wanted = {name.replace("__", "/").replace("_", "."): amount for name, amount in amounts.items()}
    return [{"name": "c", "image": "busybox", "resources": {"requests": wanted, "limits": wanted}}]


@dataclasses.dataclass(frozen=True, kw_only=True)
class World:
    """Both servers, one namespace, one daemon."""

    kube: support_servers.Kubernetes
    slurm: support_servers.Slurm
    daemon: support_daemon.Daemon
    namespace: str

    @property
    def path(self) -> str:
        """Where the pods are."""
        return f"/api/v1/namespaces/{self.namespace}/pods"

    # -- what a user does

    def create(self, *manifests: Json) -> list[Json]:
        """Pods, several at once."""
        return support_servers.each(manifests, lambda one: self.kube.create(self.path, one))

    def create_pods(self, prefix: str, count: int, annotations: Mapping[str, str]) -> list[Json]:
        """So many equal ones."""
        scheduler = self.daemon.scheduler
        numbered = [f"{prefix}-{number:03}" for number in range(count)]
        return self.create(*(pod(name, scheduler, annotations=annotations) for name in numbered))

    def create_job(self, manifest: Json) -> Json:
        """A batch Job."""
        return self.kube.create(f"/apis/batch/v1/namespaces/{self.namespace}/jobs", manifest)

    def annotate(self, name: str, marks: Mapping[str, str]) -> None:
        """What `kubectl annotate --overwrite` does to a pod."""
        self.kube.merge(f"{self.path}/{name}", {"metadata": {"annotations": dict(marks)}})

    def delete(self, name: str) -> None:
        """What `kubectl delete pod` does, without waiting."""
        self.kube.delete(f"{self.path}/{name}")

    def finish(self, pods: Sequence[Json]) -> None:
        """Let these pods succeed now."""
        support_servers.each(pods, lambda one: self.annotate(one["metadata"]["name"], SHORT))

    # -- what there is

    def pods(self) -> list[Json]:
        return self.kube.items(self.path)

    def pod(self, name: str) -> Json | None:
        return self.kube.find(f"{self.path}/{name}")

    def events(self, uid: str) -> list[Json]:
        """What was said about one object, the oldest first."""
        chosen = f"/api/v1/namespaces/{self.namespace}/events?fieldSelector=involvedObject.uid%3D{uid}"
        return sorted(self.kube.items(chosen), key=lambda one: one["metadata"]["creationTimestamp"])

    def reasons(self, uid: str) -> set[str]:
        """The events' reasons."""
        return {one["reason"] for one in self.events(uid)}

    def placeholders(self, uid: str) -> list[support_servers.SlurmJob]:
        """Every job that was ever asked for this pod and that Slurm still knows, the oldest first."""
        mine = self.slurm.jobs_of(self.daemon.cluster_id)
        return sorted(
            (one for one in mine if one.owner["uid"] == uid), key=lambda one: one.text["submit_time"]["number"]
        )

    def placeholder(self, uid: str) -> support_servers.SlurmJob | None:
        """The one that is not over."""
        return next((one for one in self.placeholders(uid) if one.alive), None)

    # -- waiting

    def await_pods(self, what: str, holds: Any, seconds: float = 60.0, count: int | None = None) -> list[Json]:
        """Until this holds for every pod (of which there are so many)."""
        seen: list[list[Json]] = [[]]

        def all_of_them() -> bool:
            seen[0] = self.pods()
            return (count is None or len(seen[0]) == count) and all(holds(one) for one in seen[0])

        try:
            wait.until(all_of_them, what, seconds, every=PERIOD)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._stragglers(seen[0], holds)}") from error
        return seen[0]

    def await_bound(self, count: int, seconds: float = 60.0) -> list[Json]:
        """Until so many pods have a node."""
        return self.await_pods(f"{count} bound pods", is_bound, seconds, count)

    def await_pod(self, name: str, what: str, holds: Any, seconds: float = 30.0) -> Json:
        """Until this holds for one pod."""
        seen: list[Json | None] = [None]

        def of_this_one() -> bool:
            seen[0] = self.pod(name)
            return seen[0] is not None and bool(holds(seen[0]))

        try:
            wait.until(of_this_one, f"{name}: {what}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{seen[0] and told(seen[0])}\n{self.daemon.last_words(15)}") from error
        assert seen[0] is not None
        return seen[0]

    def await_gone(self, name: str, seconds: float = 30.0) -> None:
        """Until there is no such pod."""
        wait.until(lambda: self.pod(name) is None, f"end of pod {name}", seconds)

    def await_placeholder(self, uid: str, seconds: float = 30.0) -> support_servers.SlurmJob:
        """Until a living job stands for this pod."""
        wait.until(lambda: self.placeholder(uid), f"placeholder of {uid}", seconds, every=PERIOD)
        found = self.placeholder(uid)
        assert found is not None
        return found

    def await_placeholders(self, uids: Iterable[str], seconds: float = 60.0) -> dict[str, int]:
        """Until a living job stands for each of these pods: uid -> job."""
        wanted, found = set(uids), dict[str, int]()

        def all_of_them() -> bool:
            found.update({str(one.owner["uid"]): one.job_id for one in self.slurm.alive(self.daemon.cluster_id)})
            return wanted <= found.keys()

        try:
            wait.until(all_of_them, "placeholders", seconds, every=PERIOD)
        except AssertionError as error:
            late = [told(one) for one in self.pods() if one["metadata"]["uid"] in wanted - found.keys()]
            raise AssertionError("\n".join([str(error), *late, self.daemon.last_words(15)])) from error
        return found

    def await_nothing_in_slurm(self, seconds: float = 60.0) -> None:
        """Until no placeholder of this daemon is alive."""
        alive: list[list[support_servers.SlurmJob]] = [[]]

        def nothing() -> bool:
            alive[0] = self.slurm.alive(self.daemon.cluster_id)
            return not alive[0]

        try:
            wait.until(nothing, "end of all placeholders", seconds, every=PERIOD)
        except AssertionError as error:
            left = ", ".join(f"{one.job_id} {sorted(one.states)} {dict(one.owner)}" for one in alive[0][:5])
            raise AssertionError(
                f"{error}: {len(alive[0])} left, such as {left}\n{self.daemon.last_words(15)}"
            ) from error

    def _stragglers(self, pods: Sequence[Json], holds: Any) -> str:
        late = [one for one in pods if not holds(one)]
        lines = [f"{len(late)} of {len(pods)} pods not yet:", *(told(one) for one in late[:5])]
        return "\n".join([*lines, repr(self.daemon), self.daemon.last_words(15)])


def is_bound(one: Json) -> bool:
    """It has a node; this never changes again."""
    return bool(one["spec"].get("nodeName"))


def is_over(one: Json) -> bool:
    """It holds nothing any more."""
    return one["status"].get("phase") in {"Succeeded", "Failed"}


def has_succeeded(one: Json) -> bool:
    """It ended well."""
    return bool(one["status"].get("phase") == "Succeeded")


def job_id(one: Json) -> int:
    """The placeholder that a pod says it was bound by."""
    return int(one["metadata"]["labels"][names.LABEL_JOB_ID])


def waits_for(reason: str) -> Any:
    """Whether a pod's condition says that it is not scheduled for this reason."""

    def holds(one: Json) -> bool:
        said = support_servers.condition(one, "PodScheduled")
        return said.get("status") == "False" and said.get("reason") == reason

    return holds


def told(one: Json) -> str:
    """A pod in one line, for the message of a failed test."""
    said = support_servers.condition(one, "PodScheduled")
    node, phase = one["spec"].get("nodeName", "no node"), one["status"].get("phase")
    return f"{one['metadata']['name']}: {phase}, {node}, {said.get('reason', '')}: {said.get('message', '')}"


@contextlib.contextmanager
def namespace(kube: support_servers.Kubernetes, name: str) -> Iterator[str]:
    """One that is there as long as it is needed, with the service account without which no pod is admitted."""
    kube.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    wait.until(lambda: kube.find(f"/api/v1/namespaces/{name}/serviceaccounts/default"), "service account")
    try:
        yield name
    finally:
        # To delete hundreds of pods beside other work may take longer than an answer is waited for; the rest goes next.
        with contextlib.suppress(TimeoutError):
            kube.delete(f"/api/v1/namespaces/{name}/pods?gracePeriodSeconds=0")
        kube.delete(f"/api/v1/namespaces/{name}")


@contextlib.contextmanager
def worlds(
    cluster: Mapping[str, str], kube: support_servers.Kubernetes, slurm: support_servers.Slurm, folder: pathlib.Path
) -> Iterator[Callable[..., World]]:
    """A maker of worlds; all that it made is gone afterwards, on both sides."""
    with contextlib.ExitStack() as stack:

        def make(
            prefix: str, *, start: bool = True, variables: Mapping[str, str] | None = None, **groups: Any
        ) -> World:
            name = support_daemon.fresh_name(prefix)
            daemon = support_daemon.Daemon(folder, support_daemon.settings(cluster, name, **groups), variables)
            inside = stack.enter_context(namespace(kube, name))
            stack.enter_context(ending(daemon, kube, slurm))
            if start:
                daemon.start()
                daemon.await_ready()
            return World(kube=kube, slurm=slurm, daemon=daemon, namespace=inside)

        yield make


@contextlib.contextmanager
def ending(
    daemon: support_daemon.Daemon, kube: support_servers.Kubernetes, slurm: support_servers.Slurm
) -> Iterator[None]:
    """Whatever a daemon did, it has ended afterwards, and nothing of it is left in Slurm."""
    try:
        yield
    finally:
        daemon.end()
        slurm.cancel(*(one.job_id for one in slurm.alive(daemon.cluster_id)))
        lease = daemon.settings["leader_election"]
        kube.delete(f"/apis/coordination.k8s.io/v1/namespaces/{lease['namespace']}/leases/{lease['name']}")
