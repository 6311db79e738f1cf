"""Both real servers at once: an administrator who applies manifests, and the daemon's own identity for all the rest."""

import pathlib
import random
import threading
import uuid
from collections.abc import Iterator, Mapping

import pytest

from slurm_bridge.kube import client as kube_client
from slurm_bridge.kube import config
from slurm_bridge.model import kinds
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.slurm import client as slurm_client
from slurm_bridge.slurm import settings


def _cluster(kubeconfig: str) -> kube_client.KubeClient:
    access = config.from_kubeconfig(pathlib.Path(kubeconfig))
    return kube_client.KubeClient(access, clock=SystemClock(), dice=random.Random())


@pytest.fixture(scope="session")
def admin(cluster: Mapping[str, str]) -> Iterator[kube_client.KubeClient]:
    """Whoever applies manifests: not the daemon."""
    client = _cluster(cluster["KUBECONFIG"])
    yield client
    client.close()


@pytest.fixture(scope="session")
def daemon(cluster: Mapping[str, str]) -> Iterator[kube_client.KubeClient]:
    """Kubernetes as the daemon's service account may use it."""
    client = _cluster(cluster["KUBECONFIG_DAEMON"])
    yield client
    client.close()


@pytest.fixture(scope="session")
def slurm(cluster: Mapping[str, str]) -> Iterator[slurm_client.SlurmClient]:
    """Slurm with the operator's token."""
    token_file = pathlib.Path(cluster["SLURM_TOKEN_FILE"])
    chosen = settings.SlurmSettings(url=cluster["SLURMRESTD_URL"], token_file=token_file, cache_ttl=0)
    with slurm_client.SlurmClient(chosen, clock=SystemClock(), stop=threading.Event()) as client:
        yield client


@pytest.fixture
def namespace(admin: kube_client.KubeClient) -> Iterator[str]:
    """A namespace of this test alone."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    created = admin.create(kinds.NAMESPACES, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    admin.delete(kinds.NAMESPACES, created)
