"""Pods handed in over HTTPS by service accounts: created with their own rights, then scheduled like others."""

import concurrent.futures
import contextlib
import dataclasses
import functools
import http.client
import json
import pathlib
import shutil
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import trustme
import yaml

from localcluster.config import PROJECT
from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_daemon, support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json

pytestmark = pytest.mark.real

RBAC = "/apis/rbac.authorization.k8s.io/v1"
SUBMISSION = PROJECT / "deploy" / "submission"
KUBECTL = PROJECT / "hack" / "cluster" / "kubectl"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Office:
    """A world whose daemon takes pods in, and the way to its door."""

    world: support_world.World
    trust: ssl.SSLContext

    def ask(self, method: str, path: str, body: str = "", token: str = "") -> tuple[int, Any]:
        """Status, and what the answer says; status 0 while the server does not answer."""
        port = int(self.world.daemon.settings["web"]["port"])
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=self.trust)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with contextlib.closing(connection):
            try:
                connection.request(method, path, body=body or None, headers=headers)
                answer = connection.getresponse()
            except ConnectionError:
                return 0, ""
            text = answer.read().decode()
            return answer.status, json.loads(text) if "json" in answer.headers["content-type"] else text

    def hand_in(self, name: str, token: str, *, annotations: Mapping[str, str] | None = None) -> tuple[int, Json]:
        """A pod that names no scheduler, as YAML."""
        manifest = support_world.pod(name, "", annotations={**support_world.FOREVER, **(annotations or {})})
        del manifest["spec"]["schedulerName"]
        manifest["metadata"]["namespace"] = self.world.namespace
        return self.ask("POST", "/pods", yaml.safe_dump(manifest), token)

    def account(self, name: str, *, may_create: bool) -> str:
        """The token of a new service account, as the API server issues it."""
        inside = f"namespaces/{self.world.namespace}"
        accounts = f"/api/v1/{inside}/serviceaccounts"
        self.world.kube.create(accounts, {"metadata": {"name": name}})
        if may_create:
            rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]
            self.world.kube.create(f"{RBAC}/{inside}/roles", {"metadata": {"name": name}, "rules": rules})
            subjects = [{"kind": "ServiceAccount", "name": name, "namespace": self.world.namespace}]
            self.world.kube.create(f"{RBAC}/{inside}/rolebindings", bound("Role", name, subjects))
        issued = self.world.kube.create(f"{accounts}/{name}/token", {"spec": {"expirationSeconds": 600}})
        return str(issued["status"]["token"])


def bound(kind: str, role: str, subjects: list[Json]) -> Json:
    """A binding of a role, under its name."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    return {"metadata": {"name": role}, "roleRef": reference, "subjects": subjects}


@pytest.fixture(scope="module")
def office(open_world: OpenWorld, tmp_path_factory: pytest.TempPathFactory) -> Office:
    """Its daemon has the rights of deploy/rbac.yaml, and a certificate for loopback."""
    folder, authority = tmp_path_factory.mktemp("certificate"), trustme.CA()
    issued, trust = authority.issue_cert("127.0.0.1"), ssl.create_default_context()
    issued.private_key_and_cert_chain_pem.write_to_path(str(folder / "tls.pem"))
    authority.configure_trust(trust)
    web = {"host": "0.0.0.0", "tls": {"cert": str(folder / "tls.pem")}, "submission": {"enabled": True}}  # noqa: S104
    world = open_world("handed", start=False, web=web)
    made = Office(world=world, trust=trust)
    world.daemon.start()
    wait.until(lambda: made.ask("GET", "/readyz")[0] == 200, "ready daemon", support_daemon.READY_SECONDS)
    return made


@pytest.fixture
def reviewing(office: Office, cluster: Mapping[str, str]) -> Iterator[None]:
    """The right of deploy/submission, given to the account of the daemon under a name of this test's own."""
    kube, name = office.world.kube, office.world.daemon.cluster_id
    role, binding = yaml.safe_load_all((SUBMISSION / "rbac.yaml").read_text())
    kube.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": role["rules"]})
    try:
        assert binding["subjects"][0]["namespace"] == cluster["DAEMON_NAMESPACE"]
        kube.create(f"{RBAC}/clusterrolebindings", bound("ClusterRole", name, binding["subjects"]))
        wait.until(lambda: office.hand_in("x", "made-up")[0] == 401, "the right to review tokens", 15)
        yield
    finally:
        kube.delete(f"{RBAC}/clusterrolebindings/{name}")
        kube.delete(f"{RBAC}/clusterroles/{name}")


def test_without_its_right_the_api_says_what_to_apply(office: Office) -> None:
    """No caller is let in whose token was not reviewed; probes and metrics are served all the same."""
    status, said = office.hand_in("nobody", "made-up")
    assert (status, said["reason"]) == (500, "Misconfigured")
    assert "deploy/submission" in said["message"]
    assert office.world.pod("nobody") is None
    assert "slurm_bridge_submissions_total" in office.ask("GET", "/metrics")[1]


@pytest.mark.usefixtures("reviewing")
def test_a_pod_that_is_handed_in_runs_where_slurm_says(office: Office) -> None:
    """With the rights of the caller: one may, one may not, and the daemon itself never could."""
    maker, weak = office.account("maker", may_create=True), office.account("weak", may_create=False)

    def created() -> bool:
        status, said = office.hand_in("first", maker)
        assert status in (201, 403), said  # the API server learns of new roles a moment later
        return status == 201

    wait.until(created, "right of the maker", 15)
    pod = office.world.await_pod("first", "node", support_world.is_bound)
    assert pod["spec"]["schedulerName"] == office.world.daemon.scheduler
    job = office.world.placeholder(pod["metadata"]["uid"])
    assert job is not None
    assert job.job_id == support_world.job_id(pod)
    status, said = office.hand_in("second", weak)
    assert (status, said["reason"]) == (403, "Forbidden")
    account = f"system:serviceaccount:{office.world.namespace}:weak"
    assert f'User "{account}" cannot create resource "pods"' in said["message"]
    assert office.world.pod("second") is None
    assert office.hand_in("first", maker)[0] == 409
    status, said = office.hand_in("third", maker, annotations={f"{names.JOB_PREFIX}timelimit": "soon"})
    assert (status, f'annotation {names.JOB_PREFIX}timelimit="soon"' in said["message"]) == (400, True)
    told = office.world.daemon.log.read_text()
    assert f"system:serviceaccount:{office.world.namespace}:maker" in told
    assert not [token for token in (maker, weak) if token[-40:] in told]


@pytest.mark.usefixtures("reviewing")
def test_a_misspelt_field_is_refused_by_the_api_server(office: Office) -> None:
    """In its own words; it would have been dropped in silence."""
    token = office.account("speller", may_create=True)
    manifest = support_world.pod("misspelt", office.world.daemon.scheduler, nodeSelectr={"a": "b"})
    manifest["metadata"]["namespace"] = office.world.namespace
    found: list[tuple[int, Json]] = []

    def answered() -> bool:
        found[:] = [office.ask("POST", "/pods", json.dumps(manifest), token)]
        return found[0][0] != 403

    wait.until(answered, "right of the speller", 15)
    assert found[0][0] == 400
    assert 'unknown field "spec.nodeSelectr"' in found[0][1]["message"]


@pytest.mark.usefixtures("reviewing")
def test_many_callers_at_once_lose_nothing(office: Office) -> None:
    """A caller that is told to come back does; every pod that was accepted gets a node."""
    token = office.account("crowd", may_create=True)

    def handed_in(name: str) -> bool:
        status, said = office.hand_in(name, token)
        assert status in (201, 403, 429), said
        return status == 201

    wanted = [f"crowd-{number:02}" for number in range(24)]
    with concurrent.futures.ThreadPoolExecutor(len(wanted)) as pool:
        waits = [
            pool.submit(wait.until, functools.partial(handed_in, name), f"{name} handed in", 30) for name in wanted
        ]
        for one in waits:
            one.result()
    for name in wanted:
        office.world.await_pod(name, "node", support_world.is_bound, seconds=60)


def test_the_component_applies_on_top_of_deploy(tmp_path: pathlib.Path) -> None:
    """As docs/submission.md says: kubectl builds it, and the API server finds nothing wrong with it."""
    shutil.copytree(PROJECT / "deploy", tmp_path / "slurm-bridge" / "deploy")
    built = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["slurm-bridge/deploy"],
        "components": ["slurm-bridge/deploy/submission"],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(built))
    found = [one for one in yaml.safe_load_all(support_servers.said(KUBECTL, "kustomize", tmp_path)) if one]
    (deployment,) = [one for one in found if one["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "probes", "scheme": "HTTPS"}
    assert {"config", "token", "tmp", "web"} == {one["name"] for one in container["volumeMounts"]}
    assert {"SLURM_BRIDGE__LOG__JSON", "SLURM_BRIDGE__WEB__TLS__CERT"} <= {one["name"] for one in container["env"]}
    assert {"Service", "ClusterRole"} <= {one["kind"] for one in found}
    support_servers.said(
        KUBECTL, "apply", "--server-side", "--dry-run=server", "--force-conflicts", "--kustomize", tmp_path
    )
