"""deploy/ as it is: applied to the API server, its image built, its two replicas run as their pods say."""

import dataclasses
import os
import pathlib
import uuid
from collections.abc import Iterator, Mapping

import pytest

from localcluster.config import PROJECT, Config
from tests import wait
from tests.e2e import support_container, support_daemon, support_image, support_servers, support_world
from tests.e2e.support_container import Container

NAMESPACE = "slurm-bridge-system"
EXAMPLES = "slurm-bridge"
SCHEDULER = "slurm-bridge-scheduler"
DEPLOY = PROJECT / "deploy"
KUBECTL = PROJECT / "hack" / "cluster" / "kubectl"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/slurm-bridge-token"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/slurm-bridge"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"

#: Longer than the lease, and the time that a Deployment gives its pods to start.
TAKEOVER_SECONDS, START_SECONDS = 40.0, 60.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Deployed:
    """What runs."""

    kube: support_servers.Kubernetes
    slurm: support_servers.Slurm
    replicas: list[Container]

    def leader(self) -> Container | None:
        """The container that holds the lease."""
        holder = str(((self.kube.find(LEASE) or {}).get("spec") or {}).get("holderIdentity") or "")
        return next((one for one in self.replicas if one.name in holder), None)

    def said(self) -> str:
        """The end of all logs."""
        return "\n".join(f"== {one.name}\n{one.logs()}" for one in self.replicas)

    def bound(self, seconds: float) -> str:
        """Create a pod, wait until it has a node, and take it away again."""
        manifest = support_world.pod(f"deployed-{uuid.uuid4().hex[:6]}", SCHEDULER)
        path = f"{PODS}/{self.kube.create(PODS, manifest)['metadata']['name']}"
        wait.until(lambda: support_world.is_bound(self.kube.get(path)), f"bound pod\n{self.said()}", seconds)
        node = str(self.kube.get(path)["spec"]["nodeName"])
        self.kube.delete(path)
        return node


@pytest.fixture(scope="module")
def applied(cluster: Mapping[str, str], kube: support_servers.Kubernetes) -> Iterator[None]:
    """What deploy/README.md says, word by word."""
    token = f"--from-file=token={cluster['SLURM_TOKEN_FILE']}"
    kube.delete(SECRET)
    support_servers.said(KUBECTL, "apply", "--server-side", "--force-conflicts", "--kustomize", DEPLOY)
    support_servers.said(KUBECTL, "--namespace", NAMESPACE, "create", "secret", "generic", "slurm-bridge-token", token)
    yield
    kube.delete(SECRET)
    for name in ("pdb.yaml", "deployment.yaml", "config.yaml"):  # the namespace and the rights are the cluster's own
        support_servers.said(KUBECTL, "delete", "--wait=false", "--filename", DEPLOY / name)
    kube.delete(LEASE)


@pytest.fixture(scope="module")
def deployed(
    cluster: Mapping[str, str],
    kube: support_servers.Kubernetes,
    slurm: support_servers.Slurm,
    tmp_path_factory: pytest.TempPathFactory,
    applied: None,
) -> Iterator[Deployed]:
    """Both replicas ready."""
    assert applied is None
    config = Config.resolve(os.environ)
    image, folder = support_image.built(config), tmp_path_factory.mktemp("volumes")
    kubelet = support_container.Kubelet(config=config, kube=kube, folder=folder, image=image)
    found = Deployed(kube=kube, slurm=slurm, replicas=[])
    try:
        for pod in replicas(kube):
            found.replicas.append(kubelet.run(pod, site(cluster)))
        wait.until(lambda: is_ready(found), f"two ready replicas\n{found.said()}", START_SECONDS)
        yield found
    finally:
        for one in found.replicas:
            one.remove()
        slurm.cancel(*(one.job_id for one in slurm.alive(settings_id(kube))))


def replicas(kube: support_servers.Kubernetes) -> list[support_servers.Json]:
    """The pods that the Deployment's controller made."""
    path = f"{PODS}?labelSelector=app.kubernetes.io%2Fname%3Dslurm-bridge"
    wait.until(lambda: len(living(kube.items(path))) == 2, "pods of the Deployment")
    return living(kube.items(path))


def living(pods: list[support_servers.Json]) -> list[support_servers.Json]:
    """Not those of a Deployment that was just deleted."""
    return [one for one in pods if "deletionTimestamp" not in one["metadata"]]


def site(cluster: Mapping[str, str]) -> dict[str, str]:
    """What is different for each replica here, because both share the machine's network, and where slurmrestd is."""
    ports = {f"SLURM_BRIDGE__WEB__{name}": str(support_daemon.free_port()) for name in ("PORT", "PROBES_PORT")}
    return {**ports, "SLURM_BRIDGE__SLURM__URL": cluster["SLURMRESTD_URL"]}


def settings_id(kube: support_servers.Kubernetes) -> str:
    """The name under which the shipped configuration writes its owner records."""
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/slurm-bridge"
    lines = kube.get(path)["data"]["config.yaml"].splitlines()
    return next(line.split()[1] for line in lines if line.startswith("cluster_id:"))


def is_ready(found: Deployed) -> bool:
    """Both live, both are ready, one leads."""
    probes = [one.probe(kind) for one in found.replicas for kind in ("livenessProbe", "readinessProbe")]
    return probes == [200] * 4 and found.leader() is not None


@pytest.mark.real
@pytest.mark.timeout(400)
def test_the_seeds_example_runs_as_it_is(deployed: Deployed) -> None:
    """Applied unchanged, with the policy as it is shipped, it is complete within seconds, and Slurm charged schedmd."""
    manifest = PROJECT / "examples" / "job-sleep-single" / "job.yaml"
    path = f"/apis/batch/v1/namespaces/{EXAMPLES}/jobs/job-sleep-single"
    deployed.kube.apply(manifest)
    try:
        wait.until(lambda: deployed.kube.get(path)["status"].get("succeeded"), f"success\n{deployed.said()}", 40)
        mine = deployed.slurm.jobs_of(settings_id(deployed.kube))
        assert {(one.text["name"], one.text["account"]) for one in mine} == {("job-sleep-single", "schedmd")}
    finally:
        deployed.kube.delete(f"{path}?propagationPolicy=Background")


@pytest.mark.real
def test_a_replica_is_confined_as_the_manifest_says(deployed: Deployed) -> None:
    """Not root, no capabilities, nothing writable but memory; and it works like that."""
    one = deployed.replicas[0]
    status = dict(line.split(":", 1) for line in one.read("/proc/1/status").splitlines())
    assert status["Uid"].split() == ["65532"] * 4
    assert {status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd")} == {"0" * 16}
    assert status["NoNewPrivs"].strip() == "1"
    assert one.inspect("{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.Privileged}}") == "true false"


@pytest.mark.real
def test_no_token_is_in_a_log_or_in_the_image(deployed: Deployed, cluster: Mapping[str, str]) -> None:
    """Neither Slurm's nor the service account's."""
    slurm = pathlib.Path(cluster["SLURM_TOKEN_FILE"]).read_text().strip()
    own = deployed.replicas[0].read("/var/run/secrets/kubernetes.io/serviceaccount/token")
    for one in deployed.replicas:
        told = one.logs() + one.inspect("{{json .Config}}")
        assert slurm not in told
        assert own not in told


@pytest.mark.real
@pytest.mark.timeout(200)
def test_another_replica_goes_on_when_the_leader_is_killed(deployed: Deployed) -> None:
    """A pod that is created after kill -9 of the leader gets its node from the other one."""
    assert deployed.bound(START_SECONDS)
    first = deployed.leader()
    assert first is not None
    first.kill()
    assert deployed.bound(TAKEOVER_SECONDS)
    second = deployed.leader()
    assert second is not None
    assert second.name != first.name
    assert second.stop() == 0, second.logs()
    assert deployed.leader() is None, "the lease was given back"
