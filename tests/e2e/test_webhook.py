"""deploy/webhook on the real API server: what is refused and changed, and what goes on when the webhook is dead.

The configurations are those of the file, under other names and for the namespaces of this module: other modules run
beside it. The webhook listens on loopback, where the API server is as well.
"""

import base64
import contextlib
import dataclasses
import http
import json
import pathlib
import re
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import trustme
import yaml

from localcluster.config import PROJECT
from slurm_bridge.model import creator, names
from tests import bad_manifests, wait
from tests.bad_manifests import deployment, job, pod
from tests.e2e import support_daemon, support_servers

pytestmark = pytest.mark.real

KUBECTL = PROJECT / "hack" / "cluster" / "kubectl"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
PLURALS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
NAME = "kubernetes.io/metadata.name"
BAD = {"annotations": {names.JOB_PREFIX + "timelimit": "soon"}}

Json = dict[str, Any]


class Webhook(support_daemon.Daemon):
    """The process that serves the webhook only."""

    #: As `deploy/webhook` starts it.
    arguments = ("--only", "webhook")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Site:
    """The API server, the webhook, a managed namespace, and one in which pods have to name the scheduler."""

    kube: support_servers.Kubernetes
    webhook: Webhook
    managed: str
    team: str

    @property
    def scheduler(self) -> str:
        return self.webhook.scheduler

    def pods(self, namespace: str) -> str:
        """The path of the pods."""
        return f"/api/v1/namespaces/{namespace}/pods"

    def create(self, manifest: Json, namespace: str = "") -> Json:
        """A pod; in the namespace where pods have to name the scheduler unless it says another."""
        return self.kube.create(self.pods(namespace or self.team), manifest)

    def refusal(self, manifest: Json, namespace: str = "") -> str:
        """Why a pod is refused; "" when it is not."""
        try:
            self.kube.create(f"{self.pods(namespace or self.team)}?dryRun=All", manifest)
        except support_servers.Refused as refused:
            return str(refused)
        return ""


@pytest.fixture(scope="module")
def site(kube: support_servers.Kubernetes, work: pathlib.Path) -> Iterator[Site]:
    """With the webhook in force."""
    name = support_daemon.fresh_name("webhook")
    managed, team, authority = f"{name}-managed", f"{name}-team", trustme.CA()
    certificate = work / f"{name}.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    settings = {
        "cluster_id": name,
        "scheduler_names": [name],
        "slurm": {"url": "http://127.0.0.1:9", "token_file": "/nowhere"},
        "managed_namespaces": [managed],
        # As the controllers of the local cluster are called.
        "admission": {"controllers": ["controller-manager"]},
        "web": {
            "port": support_daemon.free_port(),
            "probes_port": support_daemon.free_port(),
            "tls": {"cert": str(certificate)},
        },
    }
    made = Site(kube=kube, webhook=Webhook(work, settings), managed=managed, team=team)
    with contextlib.ExitStack() as stack:
        for namespace in (managed, team):
            kube.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
            stack.callback(kube.delete, f"/api/v1/namespaces/{namespace}")
        made.webhook.start()
        stack.callback(made.webhook.end)
        _await(made)
        for path in _registered(made, authority):
            stack.callback(kube.delete, path)
        wait.until(lambda: "denied the request" in made.refusal(pod("x", name, BAD["annotations"])), "webhook in force")
        wait.until(lambda: "patched" in _named(made), "changing webhook in force")
        yield made


def _await(site: Site) -> None:
    """It serves."""
    port = site.webhook.settings["web"]["port"]
    command = ["curl", "-sk", f"https://127.0.0.1:{port}/readyz"]
    wait.until(lambda: subprocess.run(command, check=False, capture_output=True).returncode == 0, "ready webhook")


def _named(site: Site) -> str:
    """Whether a pod without a scheduler gets one."""
    made = site.kube.create(f"{site.pods(site.managed)}?dryRun=All", pod("x", ""))
    return "patched" if made["spec"]["schedulerName"] == site.scheduler else "left alone"


def _registered(site: Site, authority: trustme.CA) -> Iterator[str]:
    """The configurations of the file, for this module's namespaces only; the paths of the copies."""
    text = (PROJECT / "deploy" / "webhook" / "webhooks.yaml").read_text()
    for manifest in yaml.safe_load_all(text.replace(names.SCHEDULER_NAME, site.scheduler)):
        manifest["metadata"]["name"] = site.scheduler
        for one in manifest["webhooks"]:
            # Parts of the file are written once and used several times.
            selected = json.loads(json.dumps(one["namespaceSelector"]["matchExpressions"]))
            for chosen in selected:
                chosen["values"] = [site.managed if value == "slurm-bridge" else value for value in chosen["values"]]
            ours = {"key": NAME, "operator": "In", "values": [site.managed, site.team]}
            one["namespaceSelector"] = {"matchExpressions": [*selected, ours]}
            port, path = site.webhook.settings["web"]["port"], one["clientConfig"]["service"]["path"]
            bundle = base64.b64encode(authority.cert_pem.bytes()).decode()
            one["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
        path = f"{REGISTRATION}/{PLURALS[manifest['kind']]}"
        site.kube.create(path, manifest)
        yield f"{path}/{site.scheduler}"


@pytest.mark.security("input")
def test_t06_bad_manifests_are_refused_by_kubectl_apply(site: Site, tmp_path: pathlib.Path) -> None:
    """On a real API server with deploy/webhook, each of 50 bad manifests is refused with the words of the scheduler."""
    every = bad_manifests.manifests(site.scheduler)
    for bad in every:
        (tmp_path / f"{bad.name}.json").write_text(json.dumps(bad.manifest))
    command = [KUBECTL, "--namespace", site.team, "apply", "--filename", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == ""
    refused = {found[1]: line for line in done.stderr.splitlines() if (found := re.search(r'/([^/"]+)\.json"', line))}
    missing = {
        bad.name: refused.get(bad.name, done.stderr)
        for bad in every
        if any(words not in refused.get(bad.name, "") for words in bad.words)
    }
    assert missing == {}


def test_t60_pods_of_another_scheduler_are_created_as_they_are(site: Site) -> None:
    """A neighbour's pods may have any annotations, in managed namespaces too."""
    theirs = pod("theirs", "volcano", {**BAD["annotations"], names.ANNOTATION_BOUND_BY: "another-bridge"})
    for namespace in (site.team, site.managed):
        made = site.create(theirs, namespace)
        assert made["metadata"]["annotations"] == theirs["metadata"]["annotations"]
        site.kube.delete(f"{site.pods(namespace)}/theirs?gracePeriodSeconds=0")


def test_a_job_of_a_managed_namespace_is_scheduled_by_the_bridge(site: Site) -> None:
    """Its pods get the scheduler; the Job is recorded as its user's, and its pods have no record."""
    alice = site.kube.acting_for("system:serviceaccount:kube-system:alice")
    with contextlib.closing(alice):
        _admit(site, site.managed, {"kind": "ServiceAccount", "name": "alice", "namespace": "kube-system"})
        path = f"/apis/batch/v1/namespaces/{site.managed}/jobs"
        wait.until(lambda: _may(alice, path, job("train", "")), "rights of alice")
        record = creator.read(site.kube.get(f"{path}/train")["metadata"]["annotations"][names.ANNOTATION_CREATED_BY])
        assert record is not None
        assert record.user == "system:serviceaccount:kube-system:alice"
    mine = f"{site.pods(site.managed)}?labelSelector=job-name%3Dtrain"
    wait.until(lambda: len(site.kube.items(mine)) == 2, "pods of the Job", 30)
    for made in site.kube.items(mine):
        assert made["spec"]["schedulerName"] == site.scheduler
        assert names.ANNOTATION_CREATED_BY not in made["metadata"].get("annotations", {})
    forged = {"metadata": {"annotations": {names.ANNOTATION_CREATED_BY: creator.write("bob", ())}}}
    changed = site.kube.merge(f"{path}/train", forged)
    assert creator.read(changed["metadata"]["annotations"][names.ANNOTATION_CREATED_BY]) == record
    assert (
        creator.read(site.kube.get(f"{path}/train")["metadata"]["annotations"][names.ANNOTATION_CREATED_BY]) == record
    )
    site.kube.delete(f"{path}/train?propagationPolicy=Background")


@pytest.mark.security("identity")
def test_a_placeholder_belongs_to_the_creator_of_its_job(
    site: Site, cluster: Mapping[str, str], slurm: support_servers.Slurm, tmp_path: pathlib.Path
) -> None:
    """With the webhook and admission.trust_created_by, Slurm's job belongs to the user that created the Job."""
    rule = {"namespaces": [site.team], "job_user": "alice"}
    settings = support_daemon.settings(
        cluster,
        site.scheduler,
        admission={"trust_created_by": True},
        hooks=[{"name": "policy", "options": {"rules": [rule]}}, {"name": "eligibility"}],
    )
    path = f"/apis/batch/v1/namespaces/{site.team}/jobs"
    daemon, alice = support_daemon.Daemon(tmp_path, settings), site.kube.acting_for("alice")
    with contextlib.closing(alice), contextlib.ExitStack() as stack:
        daemon.start()
        stack.callback(daemon.end)
        _admit(site, site.team, {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"})
        # The placeholders end before the daemon does.
        stack.callback(
            lambda: wait.until(lambda: not slurm.alive(site.scheduler), "end of the placeholders", every=0.5)
        )
        stack.callback(site.kube.delete, f"{path}?propagationPolicy=Background")
        wait.until(lambda: _may(alice, path, job("hers", site.scheduler)), "rights of alice")
        site.kube.create(path, job("ours", site.scheduler))
        daemon.await_ready()
        wait.until(lambda: len(_users(slurm, site)) == 2, "placeholders of both Jobs", every=0.5)
        assert _users(slurm, site) == {"hers": {"alice"}, "ours": {"slurm-bridge"}}


def _users(slurm: support_servers.Slurm, site: Site) -> dict[str, set[str]]:
    """The users of the placeholders, by the name of the Job in Kubernetes."""
    found: dict[str, set[str]] = {}
    for one in slurm.jobs_of(site.scheduler):
        found.setdefault(str(one.owner["name"]).rpartition("-")[0], set()).add(one.text["user_name"])
    return found


def _admit(site: Site, namespace: str, subject: Json) -> None:
    """Give a user the rights of an administrator of a namespace."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    site.kube.create(path, {"metadata": {"name": "alice"}, "roleRef": role, "subjects": [subject]})


def _may(user: support_servers.Kubernetes, path: str, manifest: Json) -> bool:
    """Creates it once the user has the right to."""
    try:
        user.create(path, manifest)
    except support_servers.Refused as refused:
        if refused.status != http.HTTPStatus.FORBIDDEN:
            raise
        return False
    return True


def test_a_deployment_is_followed_by_its_controller(site: Site) -> None:
    """The record that the controller copies to its ReplicaSet refuses no change of either."""
    path = f"/apis/apps/v1/namespaces/{site.managed}"
    site.kube.create(f"{path}/deployments", deployment("web", "", {}))
    for replicas in (1, 2):
        site.kube.merge(f"{path}/deployments/web", {"spec": {"replicas": replicas}})
        mine = f"{site.pods(site.managed)}?labelSelector=app%3Dweb"
        wait.until(lambda mine=mine, count=replicas: len(site.kube.items(mine)) == count, "pods of the Deployment", 30)
    site.kube.delete(f"{path}/deployments/web?propagationPolicy=Background")


def test_t61_the_node_is_cleared_and_resizes_are_refused(site: Site) -> None:
    """A nodeName is cleared only on creation, and only in a managed namespace; what Slurm counts stays as it is."""
    made = site.create(pod("free", "", nodeName="nowhere"), site.managed)
    assert "nodeName" not in made["spec"]
    assert "spec.nodeName cannot be set beside" in site.refusal(pod("free", site.scheduler, nodeName="nowhere"))
    larger = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2", "memory": "64Mi"}}}]}}
    path = f"{site.pods(site.managed)}/free"
    with pytest.raises(support_servers.Refused, match="resources cannot be changed while it exists"):
        site.kube.merge(f"{path}/resize", larger)
    with pytest.raises(support_servers.Refused, match="only slurm-bridge may write it"):
        site.kube.merge(f"{path}/status", {"metadata": {"labels": {names.LABEL_JOB_ID: "7"}}})
    site.kube.merge(f"{path}/status", {"status": {"phase": "Succeeded"}})
    site.kube.delete(f"{path}?gracePeriodSeconds=0")
    assert site.kube.create(site.pods(site.team), pod("theirs", "volcano"))["spec"]["schedulerName"] == "volcano"
    site.kube.delete(f"{site.pods(site.team)}/theirs?gracePeriodSeconds=0")


def test_t63_a_changed_configuration_takes_effect(site: Site) -> None:
    """A namespace is managed no more, and again, without a restart."""
    pid = site.webhook.pid
    try:
        site.webhook.configure({**site.webhook.settings, "managed_namespaces": []})
        wait.until(lambda: _named(site) == "left alone", "the new configuration")
    finally:
        site.webhook.configure({**site.webhook.settings, "managed_namespaces": [site.managed]})
    wait.until(lambda: _named(site) == "patched", "the former configuration")
    assert site.webhook.pid == pid


@pytest.mark.security("neighbours")
def test_t62_a_dead_webhook_stops_no_pod_of_others(site: Site) -> None:
    """When the webhook is killed, pods of other schedulers and namespaces that are not managed go on as before."""
    site.create(pod("old", site.scheduler))
    site.webhook.kill()
    for name, scheduler, namespace in (
        ("theirs", "volcano", site.team),
        ("theirs", "volcano", site.managed),
        ("plain", "default-scheduler", site.team),
    ):
        site.create(pod(name, scheduler, BAD["annotations"]), namespace)
        site.kube.merge(f"{site.pods(namespace)}/{name}", {"metadata": {"labels": {"a": "b"}}})
        site.kube.delete(f"{site.pods(namespace)}/{name}?gracePeriodSeconds=0")
    for namespace, scheduler in ((site.team, site.scheduler), (site.managed, "")):
        assert "failed calling webhook" in site.refusal(pod("ours", scheduler), namespace)
    old = f"{site.pods(site.team)}/old"
    site.kube.merge(f"{old}/status", {"status": {"phase": "Running"}})
    site.kube.delete(f"{old}?gracePeriodSeconds=0")
