"""A second Kubernetes beside the local cluster's: an API server and etcd alone, in which nothing runs what is bound."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from localcluster import alone, kubeconfig
from tests.e2e import support_daemon, support_servers, support_world
from tests.e2e.support_world import World

_NO_ADMISSION = ("ServiceAccount", "TaintNodesByCondition", "DefaultTolerationSeconds")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Second:
    """The other API server, and how a daemon reaches it."""

    kube: support_servers.Kubernetes
    kubeconfig: pathlib.Path

    def namespace(self, name: str) -> None:
        self.kube.create("/api/v1/namespaces", {"metadata": {"name": name}})

    @contextlib.contextmanager
    def world(
        self, cluster: Mapping[str, str], slurm: support_servers.Slurm, folder: pathlib.Path, space: str, **groups: Any
    ) -> Iterator[World]:
        """A daemon of this Kubernetes on the Slurm of the local cluster, in a namespace of a name of one's choice."""
        variables = {**cluster, "KUBECONFIG_DAEMON": str(self.kubeconfig), "DAEMON_NAMESPACE": "default"}
        chosen = support_daemon.settings(variables, support_daemon.fresh_name("second"), **groups)
        daemon = support_daemon.Daemon(folder, chosen)
        self.namespace(space)
        with support_world.ending(daemon, self.kube, slurm):
            daemon.start()
            daemon.await_ready()
            yield World(kube=self.kube, slurm=slurm, daemon=daemon, namespace=space)


@contextlib.contextmanager
def started() -> Iterator[Second]:
    """It answers; at the end it is stopped, with all that is in it."""
    with (
        alone.prepared("slurm-bridge-second-") as chosen,
        alone.running(chosen, _NO_ADMISSION),
        contextlib.closing(support_servers.Kubernetes(chosen)) as kube,
    ):
        yield Second(kube=kube, kubeconfig=kubeconfig.of_client(chosen, "admin"))
