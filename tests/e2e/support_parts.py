"""Several daemons of one bridge, each with a part of the namespaces: processes, namespaces, leases."""

import contextlib
import dataclasses
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_daemon, support_servers, support_world
from tests.e2e.support_daemon import Daemon
from tests.e2e.support_world import World

PROJECT = pathlib.Path(__file__).resolve().parents[2]
RIGHTS = PROJECT / "deploy" / "parts" / "rbac.yaml"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
#: Leases are taken over soon, and strays are found soon.
LEASE = {"lease_seconds": 3, "renew_seconds": 2, "retry_seconds": 0.5}
OFTEN = {"sweep_seconds": 2}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parts:
    """One daemon for each part, and a world for each namespace; all have one cluster id and one scheduler name."""

    kube: support_servers.Kubernetes
    slurm: support_servers.Slurm
    name: str
    daemons: Mapping[str, Daemon]
    worlds: Mapping[str, World]

    def namespace(self, key: str) -> str:
        """Its name in the cluster."""
        return self.worlds[key].namespace

    def move(self, key: str, part: str) -> None:
        """An administrator gives a namespace to another part, and the daemons agree."""
        labels = {"metadata": {"labels": {names.LABEL_PART: part}}}
        self.kube.merge(f"/api/v1/namespaces/{self.namespace(key)}", labels)
        wait.until(lambda: self.holder(key) == part, f"record of {key}", 30)

    def holder(self, key: str) -> str:
        """The part that the record of a namespace names."""
        found = self.kube.find(f"{self._leases}/{self.name}.namespace.{self.namespace(key)}")
        return str(found["spec"].get("holderIdentity", "")) if found is not None else ""

    @property
    def _leases(self) -> str:
        lease = next(iter(self.daemons.values())).settings["leader_election"]
        return f"/apis/coordination.k8s.io/v1/namespaces/{lease['namespace']}/leases"

    def running(self, part: str) -> int:
        """How many running jobs the daemon of this part knows."""
        _, page = support_daemon.look(int(self.daemons[part].settings["web"]["port"]), "metrics")
        found = re.search(r'^slurm_bridge_placeholder_jobs\{phase="running"\} (\S+)$', page, re.MULTILINE)
        return int(float(found[1])) if found is not None else -1

    def await_running(self, **wanted: int) -> None:
        """Until each of these daemons knows so many."""
        for part, count in wanted.items():
            wait.until(lambda part=part, count=count: self.running(part) == count, f"{count} jobs of part {part}", 60)

    def stray(self, key: str) -> int:
        """A job for a pod of this namespace that there is not."""
        name = support_daemon.fresh_name("none")
        owner = {"cluster": self.name, "kind": "Pod", "namespace": self.namespace(key), "name": name, "uid": name}
        record = ",".join(f'"{field}":"{value}"' for field, value in owner.items())
        return self.slurm.submit(
            {
                "flags": ["EXTERNAL_JOB"],
                "environment": ["PATH=/bin"],
                "current_working_directory": "/",
                "partition": "closed",
                "user_id": "slurm-bridge",
                "admin_comment": f"slurm-bridge/1 {{{record}}}",
            }
        )

    def alive(self, job_id: int) -> bool:
        """Whether this job is not over."""
        return any(one.job_id == job_id and one.alive for one in self.slurm.jobs())

    def await_sweeps(self, *keys: str) -> None:
        """Until the daemons that serve these namespaces have looked through all jobs of Slurm."""
        for key, bait in [(one, self.stray(one)) for one in keys]:
            wait.until(lambda bait=bait: not self.alive(bait), f"sweep of {key}", 60, every=0.5)

    def clear(self) -> None:
        """Nothing is left of their leases."""
        for one in self.kube.items(self._leases):
            name = one["metadata"]["name"]
            if name == self.name or name.startswith(f"{self.name}."):
                self.kube.delete(f"{self._leases}/{name}")


@contextlib.contextmanager
def rights(kube: support_servers.Kubernetes) -> Iterator[None]:
    """Those of the component, as they are."""
    kube.apply(RIGHTS)
    try:
        yield
    finally:
        for one in yaml.safe_load_all(RIGHTS.read_text()):
            space = one["metadata"].get("namespace")
            within = f"{_RBAC}/namespaces/{space}" if space else _RBAC
            kube.delete(f"{within}/{one['kind'].lower()}s/{one['metadata']['name']}")


@contextlib.contextmanager
def opened(
    cluster: Mapping[str, str],
    kube: support_servers.Kubernetes,
    slurm: support_servers.Slurm,
    folder: pathlib.Path,
    every: Sequence[str],
    namespaces: Mapping[str, str],
) -> Iterator[Parts]:
    """A daemon for each part, and namespaces with the labels given ("" for none); all of it is gone afterwards."""
    name = support_daemon.fresh_name("parts")
    made: dict[str, Daemon] = {}
    for part in every:
        (folder / part).mkdir()
        chosen: dict[str, Any] = support_daemon.settings(
            cluster, name, leader_election=LEASE, mirror=OFTEN, parts={"names": list(every), "own": part}
        )
        made[part] = Daemon(folder / part, chosen)
    with contextlib.ExitStack() as stack:
        stack.enter_context(rights(kube))
        inside = {key: stack.enter_context(support_world.namespace(kube, f"{name}-{key}")) for key in namespaces}
        for key, part in namespaces.items():
            if part:
                labels = {"metadata": {"labels": {names.LABEL_PART: part}}}
                kube.merge(f"/api/v1/namespaces/{inside[key]}", labels)
        for daemon in made.values():
            stack.enter_context(support_world.ending(daemon, kube, slurm))
        first = next(iter(made.values()))
        worlds = {
            key: World(kube=kube, slurm=slurm, daemon=made.get(part, first), namespace=inside[key])
            for key, part in namespaces.items()
        }
        parts = Parts(kube=kube, slurm=slurm, name=name, daemons=made, worlds=worlds)
        stack.callback(parts.clear)
        for daemon in made.values():
            daemon.start()
        for daemon in made.values():
            daemon.await_ready()
        yield parts


def job_ids(pods: Sequence[support_servers.Json]) -> dict[str, int]:
    """Which job each bound pod names."""
    return {one["metadata"]["name"]: support_world.job_id(one) for one in pods}
