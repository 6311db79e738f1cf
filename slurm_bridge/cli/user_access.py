"""The options by which a user says which cluster and namespace is meant, as for kubectl."""

import argparse
import contextlib
import dataclasses
import os
from collections.abc import Iterator

from slurm_bridge import app, ports
from slurm_bridge.kube import contexts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UserCluster:
    """Kubernetes with the rights of the user. `namespace` None: all of them."""

    cluster: ports.Cluster
    namespace: str | None


def add(parser: argparse.ArgumentParser, *, everywhere: bool = False) -> None:
    """Add the options."""
    parser.add_argument("-n", "--namespace", metavar="NAME", help="the namespace (default: that of the context)")
    if everywhere:
        parser.add_argument("-A", "--all-namespaces", action="store_true", help="look in all namespaces")
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig (default: the current one)")
    parser.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig (default: as kubectl finds it)")


@contextlib.contextmanager
def opened(options: argparse.Namespace) -> Iterator[UserCluster]:
    """The cluster that the options name; BadConfiguration says what to give where there is none."""
    found = contexts.resolve(os.environ, kubeconfig=options.kubeconfig, context=options.context)
    everywhere = getattr(options, "all_namespaces", False)
    with app.cluster_of_user(found.access) as cluster:
        yield UserCluster(cluster=cluster, namespace=None if everywhere else options.namespace or found.namespace)
