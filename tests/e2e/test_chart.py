"""The Helm chart renders what the kustomize files do; a release of it is installed, upgraded and uninstalled."""

import base64
import collections
import contextlib
import itertools
import json
import os
import pathlib
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import yaml
from cryptography import x509

import slurm_bridge
from localcluster.config import PROJECT, Config
from slurm_bridge.hooks import needs, registry
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.settings import loader
from tests import wait
from tests.e2e import support_chart, support_image, support_pods, support_real, support_servers, support_world
from tests.e2e.support_chart import CHART, KUBECTL, Helm
from tests.e2e.support_servers import Json

pytestmark = pytest.mark.real

EXAMPLES_FOLDER = PROJECT / "examples" / "hooks"
EXAMPLES = sorted(EXAMPLES_FOLDER.glob("*.yaml"))

#: With which the chart says what deploy/ says.
SAME: Json = {"image": {"tag": "latest"}}
MANAGED = {"managed_namespaces": ["slurm-bridge"]}
FAMILIES = [
    {"name": name} for name in ("policy", "eligibility", "kube-scheduler", "preemption", "device-claims", "yunikorn")
]
AGENTS = {"shards": [{"zone": "zone-a"}]}

#: Components -> the values that stand for them.
MATRIX: Mapping[tuple[str, ...], Json] = {
    (): {},
    ("kube-scheduler", "preemption", "device-claims", "yunikorn"): {"config": {"hooks": FAMILIES}},
    ("nodes",): {"config": {"nodes": {"enabled": True}}},
    ("admission",): {"admissionPolicies": {"enabled": True}},
    ("servicemonitor", "monitoring"): {
        "serviceMonitor": {"enabled": True},
        "monitoring": {"rules": True, "dashboard": True},
    },
    ("webhook",): {"webhook": {"enabled": True}, "config": MANAGED},
    ("submission",): {"config": {"web": {"submission": {"enabled": True}}}},
    ("agents",): {"agents": AGENTS},
    ("webhook", "submission", "nodes", "admission", "agents"): {
        "webhook": {"enabled": True},
        "admissionPolicies": {"enabled": True},
        "agents": AGENTS,
        "config": {**MANAGED, "nodes": {"enabled": True}, "web": {"submission": {"enabled": True}}},
    },
}

#: Values that no kustomize file stands for.
OTHERS: Mapping[str, Json] = {
    "placed": {
        "replicas": 3,
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        "imagePullSecrets": [{"name": "registry"}],
        "extraEnv": [{"name": "SLURM_BRIDGE__LOG__VERBOSITY", "value": "4"}],
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
        "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["slurmrestd.example.org"]}],
        "podLabels": {"team": "hpc"},
        "podAnnotations": {"note": "x"},
        "restartOnConfigChange": True,
        "podDisruptionBudget": {"maxUnavailable": "50%"},
    },
    "selected": {
        "webhook": {"enabled": True, "failurePolicy": "Ignore"},
        "config": {"managed_namespace_selector": "slurm=yes,tier in (a, b),!x,y,z!=q,k notin (u)"},
    },
    "none-managed": {"webhook": {"enabled": True, "replicas": 1}, "networkPolicy": {"enabled": False}},
    "owners": {
        "config": {"owners": [{"api_version": "ray.io/v1", "kind": "RayCluster", "plural": "rayclusters"}]},
        "rbac": {"extraRules": [{"apiGroups": ["example.org"], "resources": ["things"], "verbs": ["list", "watch"]}]},
        "podDisruptionBudget": {"enabled": False},
    },
    "shards": {
        "agents": {"shards": [{"name": "b", "selector": "pool in (a,b)"}, {"name": "c", "zone": "c", "replicas": 2}]},
        "config": {"web": {"administration": {"enabled": True}}},
    },
    "two-schedulers": {
        "fullnameOverride": "other",
        "admissionPolicies": {"enabled": True},
        "webhook": {"enabled": True},
        "config": {**MANAGED, "scheduler_names": ["one", "two"]},
    },
    "cert-manager": {"webhook": {"enabled": True, "tls": {"mode": "certManager"}}, "config": MANAGED},
    "secret": {"webhook": {"enabled": True, "tls": {"mode": "secret", "secretName": "own", "caBundle": "YQ=="}}},
}

VALUES = (*MATRIX.values(), *OTHERS.values())


def hooks_of(example: str) -> list[Json]:
    """The hooks of a configuration in examples/hooks."""
    found: list[Json] = yaml.safe_load((EXAMPLES_FOLDER / f"{example}.yaml").read_text())["hooks"]
    return found


#: Hooks -> which of them bring rights of their own.
HOOKS: tuple[tuple[list[Json], set[str]], ...] = (
    ([{"name": "policy"}], set()),
    ([{"name": "kube-scheduler"}], {"kube-scheduler"}),
    ([{"name": "kube-scheduler", "options": {"priorities": []}}], set()),
    ([{"name": "kube-scheduler", "options": {"priorities": [{"name": "LeastRequestedPriority"}]}}], set()),
    ([{"name": "kube-scheduler", "options": {"priorities": [{"name": "SelectorSpread"}]}}], {"kube-scheduler"}),
    (
        [{"name": "kube-scheduler", "options": {"priorities": [], "spread_defaulting": "system"}}],
        {"kube-scheduler"},
    ),
    ([{"name": "preemption"}], {"preemption"}),
    (hooks_of("yunikorn"), {"yunikorn"}),
    (hooks_of("device-claims"), {"device-claims"}),
    (hooks_of("vela"), set()),
)

#: Values that the schema or a template refuses -> what the message names.
BAD: tuple[tuple[Json, str], ...] = (
    ({"replcas": 1}, "'replcas'"),
    ({"replicas": "two"}, "'/replicas': got string, want integer"),
    ({"image": {"tag": "latest\nprivileged: true"}}, "'/image/tag'"),
    ({"slurmToken": {"secretName": "Not A Name"}}, "'/slurmToken/secretName'"),
    ({"webhook": {"tls": {"mode": "none"}}}, "'/webhook/tls/mode'"),
    ({"agents": {"shards": [{"name": "a"}]}}, "'/agents/shards/0'"),
    ({"config": {"slurm": {"urll": "x"}}}, "'urll'"),
    ({"config": {"slurm": {"connections": "many"}}}, "'/config/slurm/connections'"),
    ({"config": {"workloads": {"job": "gangs"}}}, "'/config/workloads/job'"),
    ({"config": {"hooks": [{"nam": "policy"}]}}, "'/config/hooks/0'"),
    ({"config": {"web": {"probes_port": None}}}, "config.web.probes_port"),
    ({"webhook": {"enabled": True, "tls": {"mode": "secret"}}}, "webhook.tls.caBundle"),
    ({"webhook": {"enabled": True}, "config": {"managed_namespace_selector": "a b c"}}, "managed_namespace_selector"),
    (
        {"webhook": {"enabled": True}, "config": {"managed_namespace_selector": "(" * 9_999}},
        "managed_namespace_selector",
    ),
    (
        {"webhook": {"enabled": True}, "config": {**MANAGED, "managed_namespace_selector": "a=b"}},
        "set config.managed_namespaces or config.managed_namespace_selector",
    ),
)

#: The node copies every file of the image for each container, and the machine may have other work.
START_SECONDS = 120.0

#: Not served by the local cluster.
FOREIGN = ("cert-manager.io/", "monitoring.coreos.com/")


@pytest.fixture(scope="module")
def helm(cluster: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Built at the first use."""
    assert cluster["KUBECONFIG"]
    return Helm(Config.resolve(os.environ), tmp_path_factory.mktemp("helm"))


def merged(*tables: Mapping[str, Any]) -> Json:
    """As Helm merges values."""
    found: Json = {}
    for table in tables:
        for key, value in table.items():
            both = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
            found[key] = merged(found[key], value) if both else value
    return found


@pytest.mark.parametrize("components", MATRIX, ids=lambda one: "-".join(one) or "plain")
def test_it_renders_what_kustomize_does(helm: Helm, components: tuple[str, ...]) -> None:
    """The same objects, but for the namespaces, and for what sites of kustomize create or change by hand."""
    resources = [name for name in components if name == "agents"]
    with tempfile.TemporaryDirectory() as folder:
        asked = [name for name in components if name != "agents"]
        expected = support_chart.by_name(support_chart.customized(pathlib.Path(folder), asked, resources))
    values = merged(SAME, MATRIX[components])
    found = support_chart.by_name(support_chart.documents(helm.rendered(values)))
    for name in ("slurm-bridge", "slurm-bridge-system"):
        del expected[f"Namespace {name}"]
    as_by_hand(found, expected)
    as_configured(found, expected, values)
    assert found == expected


def as_by_hand(found: dict[str, Json], expected: dict[str, Json]) -> None:
    """Take away what deploy/README.md and the pages tell sites of kustomize to add or to remove."""
    made = {"Secret slurm-bridge-webhook", "Secret slurm-bridge-web", "Secret slurm-bridge-agent-tls"}
    for key in made & found.keys():
        del found[key]
    for kind in ("Mutating", "Validating"):
        for one in found.get(f"{kind}WebhookConfiguration slurm-bridge", {}).get("webhooks", ()):
            assert one["clientConfig"].pop("caBundle")
    # webhook/rbac.yaml: without a selector, remove the role and its binding.
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        expected.pop(f"{kind} slurm-bridge-webhook", None)
    if "Deployment slurm-bridge-agent" in found:
        # agents/README.md: mount the token and ca.crt into the daemon's pods.
        pod = found["Deployment slurm-bridge"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        for listed in (container["volumeMounts"], pod["volumes"]):
            names = [one["name"] for one in listed]
            assert names.count("agent") == names.count("agent-tls") == 1
            listed[:] = [one for one in listed if one["name"] not in ("agent", "agent-tls")]


def as_configured(found: dict[str, Json], expected: dict[str, Json], values: Json) -> None:
    """Compare configurations as tables: the chart's has no comments, and names the daemon's account."""
    text = [one["ConfigMap slurm-bridge"]["data"].pop("config.yaml") for one in (found, expected)]
    config, shipped = map(yaml.safe_load, text)
    wanted = merged(shipped, values.get("config", {}))
    wanted["admission"] = {"accounts": ["system:serviceaccount:slurm-bridge-system:slurm-bridge"]}
    wanted["web"].pop("submission", None)
    config["web"].pop("submission", None)
    assert config == wanted
    for deployment in (found["Deployment slurm-bridge"], expected["Deployment slurm-bridge"]):
        pod = deployment["spec"]["template"]["spec"]
        for listed in (pod["volumes"], pod["containers"][0]["volumeMounts"], pod["containers"][0]["env"]):
            listed.sort(key=lambda one: str(one["name"]))


def test_lint_finds_nothing(helm: Helm) -> None:
    """Whatever the values are."""
    support_servers.each(VALUES, lambda values: helm.said("lint", "--strict", str(CHART), values=values))


def test_the_api_server_takes_every_object(helm: Helm, tmp_path: pathlib.Path) -> None:
    """As a dry run on the server, which knows every field and every expression; of releases with names of their own."""

    def of_release(number: int) -> list[Json]:
        text = helm.rendered(VALUES[number], release=f"dry-{number}", namespace="default")
        return [one for one in support_chart.documents(text) if not one["apiVersion"].startswith(FOREIGN)]

    items = [one for objects in support_servers.each(range(len(VALUES)), of_release) for one in objects]
    file = tmp_path / "objects.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    said = support_servers.said(KUBECTL, "apply", "--server-side", "--dry-run=server", "--filename", file)
    assert said.count("serverside-applied") == len(support_chart.by_name(items)) > 200


@pytest.mark.parametrize(("hooks", "rights"), HOOKS)
def test_rights_follow_from_the_hooks(helm: Helm, hooks: list[Json], rights: set[str]) -> None:
    """What the hooks need to see may be watched, and roles of other hooks are left out."""
    roles = [
        one for one in support_chart.documents(helm.rendered({"config": {"hooks": hooks}})) if "Role" in one["kind"]
    ]
    made = {one["metadata"]["name"].removeprefix("slurm-bridge").removeprefix("-") for one in roles}
    assert made == rights | {""}
    granted = {
        (group, name, verb)
        for one in roles
        for rule in one.get("rules", ())
        for group, name, verb in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])
    }
    with contextlib.closing(
        registry.build([registry.HookConfig(**one) for one in hooks], ChainServices(clock=VirtualClock()), {})
    ) as chain:
        seen = {needs.KINDS[need] for need in chain.needs}
    assert {(kind.group, kind.plural, verb) for kind in seen for verb in ("list", "watch")} <= granted


def test_every_process_can_read_the_configuration(helm: Helm, tmp_path: pathlib.Path) -> None:
    """The daemon, the webhook and agents start with it and with their variables, whatever is switched on."""
    for values in VALUES:
        objects = support_chart.documents(helm.rendered(values))
        (config_map,) = (one for one in objects if one["kind"] == "ConfigMap" and "config.yaml" in one["data"])
        file = tmp_path / "config.yaml"
        file.write_text(config_map["data"]["config.yaml"])
        for deployment in (one for one in objects if one["kind"] == "Deployment"):
            (container,) = deployment["spec"]["template"]["spec"]["containers"]
            settings = loader.load(file, {one["name"]: one["value"] for one in container["env"]})
            wanted = values.get("config", {}).get("web", {}).get("submission", {}).get("enabled", False)
            daemon = container["name"] == "slurm-bridge"
            assert settings.web.submission.enabled == (wanted and daemon)
            assert settings.leader_election.namespace == support_chart.NAMESPACE


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_the_schema_takes_every_example(helm: Helm, example: pathlib.Path) -> None:
    """Configurations of examples/hooks are values of `config`."""
    assert helm.rendered({"config": yaml.safe_load(example.read_text())})


@pytest.mark.parametrize(("values", "named"), BAD, ids=[named for _, named in BAD])
def test_bad_values_are_refused_with_their_key(helm: Helm, values: Json, named: str) -> None:
    """Wrong types, unknown keys, forged lines and texts without end; nothing is rendered."""
    done = helm.run("template", "x", str(CHART), values=values)
    assert done.returncode != 0
    assert named in done.stderr
    assert done.stdout == ""


def test_two_releases_share_no_object(helm: Helm) -> None:
    """Also not in one namespace: names, selectors of pods and the Lease are those of the release."""
    values = VALUES[len(MATRIX) - 1]
    one, two = (
        support_chart.by_name(support_chart.documents(helm.rendered(values, release=name))) for name in ("one", "two")
    )
    assert not one.keys() & two.keys()
    assert {key.replace("one-", "two-") for key in one} == two.keys()
    apart = [
        found[f"Deployment {name}-slurm-bridge"]["spec"]["selector"] for name, found in (("one", one), ("two", two))
    ]
    assert apart[0] != apart[1]
    leases = [
        yaml.safe_load(found[f"ConfigMap {name}-slurm-bridge"]["data"]["config.yaml"])["leader_election"]["name"]
        for name, found in (("one", one), ("two", two))
    ]
    assert leases == ["one-slurm-bridge", "two-slurm-bridge"]


def test_the_certificate_is_for_the_names_of_the_service(helm: Helm) -> None:
    """It is signed by the authority that the webhook configurations name, and both are in the Secret."""
    found = support_chart.by_name(support_chart.documents(helm.rendered({"webhook": {"enabled": True}})))
    data = found["Secret slurm-bridge-webhook"]["data"]
    asked = found["MutatingWebhookConfiguration slurm-bridge"]["webhooks"]
    assert {one["clientConfig"]["caBundle"] for one in asked} == {data["ca.crt"]}
    ca, certificate = (x509.load_pem_x509_certificate(base64.b64decode(data[name])) for name in ("ca.crt", "tls.crt"))
    certificate.verify_directly_issued_by(ca)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "slurm-bridge-webhook.slurm-bridge-system.svc" in names.get_values_for_type(x509.DNSName)


def test_names_follow_from_the_release(helm: Helm) -> None:
    """The policies, the webhook and the configuration name the account of the release."""
    text = helm.rendered(
        {"admissionPolicies": {"enabled": True}, "webhook": {"enabled": True}}, release="prod", namespace="hpc"
    )
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    assert not [line for line in lines if "slurm-bridge-system" in line]
    assert text.count("system:serviceaccount:hpc:prod-slurm-bridge") == 6


@pytest.fixture
def namespace(helm: Helm, kube: support_servers.Kubernetes) -> Iterator[str]:
    """A namespace for one release, which is gone afterwards."""
    name = f"chart-{uuid.uuid4().hex[:6]}"
    kube.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    helm.run("uninstall", name, "--namespace", name)
    kube.delete(f"/api/v1/namespaces/{name}")


def released(namespace: str) -> Json:
    """Values of a release that disturbs no other: only its own pods depend on its webhook, and not for long."""
    return {
        "webhook": {"enabled": True, "failurePolicy": "Ignore", "timeoutSeconds": 1},
        "config": {"cluster_id": namespace, "scheduler_names": [namespace]},
    }


def objects_of(helm: Helm, namespace: str) -> dict[str, Json]:
    """What Helm says that the release has."""
    text = helm.said("get", "manifest", namespace, "--namespace", namespace)
    return support_chart.by_name(support_chart.documents(text))


def path_of(one: Json) -> str:
    """Where the API server has it."""
    version, kind, name = one["apiVersion"], one["kind"].lower(), one["metadata"]["name"]
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    group = f"apis/{version}" if "/" in version else f"api/{version}"
    inside = f"namespaces/{one['metadata']['namespace']}/" if "namespace" in one["metadata"] else ""
    return f"/{group}/{inside}{plural}/{name}"


def test_a_release_is_installed_upgraded_rolled_back_and_uninstalled(
    helm: Helm, kube: support_servers.Kubernetes, namespace: str
) -> None:
    """Objects follow the values each time, the certificate and the Lease's holder stay, and nothing of it is left."""
    token = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "of-others"}, "data": {"token": "eA=="}}
    others = kube.create(f"/api/v1/namespaces/{namespace}/secrets", token)
    values, own = released(namespace), ("--namespace", namespace)
    helm.said("install", namespace, str(CHART), *own, values=values)
    name = f"{namespace}-slurm-bridge"
    first = objects_of(helm, namespace)
    assert all(kube.find(path_of(one)) for one in first.values())
    secret = path_of(first[f"Secret {name}-webhook"])
    deployment = path_of(first[f"Deployment {name}"])
    made = kube.get(secret)["data"]
    lease = path_of(first[f"Lease {name}"])
    kube.merge(lease, {"spec": {"holderIdentity": "a-replica"}})
    wait.until(lambda: kube.get(deployment)["status"].get("replicas") == 2, "pods of the Deployment")

    changed = merged(values, {"replicas": 3, "config": {"defaults": {"partition": "big"}, "nodes": {"enabled": True}}})
    helm.said("upgrade", namespace, str(CHART), *own, values=changed)
    second = objects_of(helm, namespace)
    assert second.keys() - first.keys() == {f"ClusterRole {name}-nodes", f"ClusterRoleBinding {name}-nodes"}
    assert kube.get(deployment)["spec"]["replicas"] == 3
    config = yaml.safe_load(kube.get(path_of(second[f"ConfigMap {name}"]))["data"]["config.yaml"])
    assert config["defaults"]["partition"] == "big"
    assert kube.get(secret)["data"] == made
    assert kube.get(lease)["spec"] == {"holderIdentity": "a-replica"}

    helm.said("rollback", namespace, "1", *own)
    assert kube.get(deployment)["spec"]["replicas"] == 2
    assert kube.find(path_of(second[f"ClusterRole {name}-nodes"])) is None
    assert kube.get(secret)["data"] == made
    assert kube.get(lease)["spec"] == {"holderIdentity": "a-replica"}

    helm.said("uninstall", namespace, *own)
    wait.until(lambda: not any(kube.find(path_of(one)) for one in second.values()), "end of all objects")
    left = kube.items(f"/api/v1/namespaces/{namespace}/secrets")
    assert [one["metadata"]["uid"] for one in left] == [others["metadata"]["uid"]]


def test_an_object_of_others_is_not_taken_over(helm: Helm, kube: support_servers.Kubernetes, namespace: str) -> None:
    """Helm refuses the release and names the ConfigMap, which stays as it is until an administrator says otherwise."""
    own, values = ("--namespace", namespace), released(namespace)
    path, name = f"/api/v1/namespaces/{namespace}/configmaps", f"{namespace}-slurm-bridge"
    kube.create(
        path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"config.yaml": "x"}}
    )
    before = kube.get(f"{path}/{name}")
    done = helm.run("install", namespace, str(CHART), *own, values=values)
    assert done.returncode != 0
    assert f'ConfigMap "{name}"' in done.stderr
    assert kube.get(f"{path}/{name}") == before
    helm.said("install", namespace, str(CHART), *own, "--take-ownership", "--force-conflicts", values=values)
    assert f"cluster_id: {namespace}" in kube.get(f"{path}/{name}")["data"]["config.yaml"]


@pytest.fixture
def as_pods(
    cluster: Mapping[str, str],
    kube: support_servers.Kubernetes,
    slurm: support_servers.Slurm,
    namespace: str,
    tmp_path: pathlib.Path,
) -> Iterator[tuple[Json, Json]]:
    """Values of a release whose pods run on the first real node, and the image of the next version."""
    if not int(cluster.get("REAL_NODES") or "0"):
        pytest.skip("the local cluster has no real nodes: make cluster-up REAL_NODES=2")
    config = Config.resolve(os.environ)
    first = support_image.built(config)
    images = []
    for image in (first, support_image.successor(config, first)):
        repository, _, tag = support_pods.imported(config, image, tmp_path).rpartition(":")
        images.append({"image": {"repository": repository, "tag": tag, "pullPolicy": "Never"}})
    token = pathlib.Path(cluster["SLURM_TOKEN_FILE"]).read_bytes()
    secret = {"metadata": {"name": "of-slurm-operator"}, "data": {"auth-token": base64.b64encode(token).decode()}}
    kube.create(f"/api/v1/namespaces/{namespace}/secrets", secret)
    with (
        support_pods.relayed(config, cluster["APISERVER_URL"]) as (address, port),
        support_pods.relayed(config, cluster["SLURMRESTD_URL"]) as (host, slurm_port),
    ):
        values: Json = {
            "slurmToken": {"secretName": "of-slurm-operator", "key": "auth-token"},
            "hostAliases": [{"ip": address, "hostnames": ["kubernetes.default.svc"]}],
            "extraEnv": [
                {"name": "KUBERNETES_SERVICE_HOST", "value": "kubernetes.default.svc"},
                {"name": "KUBERNETES_SERVICE_PORT", "value": str(port)},
            ],
            "config": {
                "cluster_id": namespace,
                "scheduler_names": [namespace],
                "slurm": {"url": f"http://{host}:{slurm_port}", "plain_http": True},
            },
        }
        try:
            yield merged(values, images[0]), images[1]
        finally:
            slurm.cancel(*(one.job_id for one in slurm.alive(namespace)))


class Replicas:
    """The pods of a release's Deployment."""

    def __init__(self, kube: support_servers.Kubernetes, namespace: str) -> None:
        self._kube, self._namespace = kube, namespace
        self._path = f"/api/v1/namespaces/{namespace}/pods"

    def pods(self) -> list[Json]:
        """Those that end as well."""
        return self._kube.items(f"{self._path}?labelSelector=app.kubernetes.io/name%3D{self._namespace}-slurm-bridge")

    def give_nodes(self) -> None:
        """As kube-scheduler would: no other scheduler runs in the local cluster."""
        for pod in self.pods():
            if not support_world.is_bound(pod) and "deletionTimestamp" not in pod["metadata"]:
                name = pod["metadata"]["name"]
                target = {"apiVersion": "v1", "kind": "Node", "name": support_pods.NODE.node}
                self._kube.create(f"{self._path}/{name}/binding", {"metadata": {"name": name}, "target": target})

    def await_version(self, version: str) -> None:
        """Until both are ready, and of this version in their own words."""
        path = f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{self._namespace}-slurm-bridge"

        def rolled_out() -> bool:
            found = self._kube.get(path)
            status = found["status"]
            counts = {status.get(one) for one in ("replicas", "updatedReplicas", "readyReplicas")}
            return counts == {2} and status.get("observedGeneration") == found["metadata"]["generation"]

        wait.until(rolled_out, f"replicas of version {version}", 2 * START_SECONDS, every=0.5)
        said = ("--namespace", self._namespace, "logs", "--tail=-1")
        living = [one["metadata"]["name"] for one in self.pods() if "deletionTimestamp" not in one["metadata"]]
        assert len(living) == 2
        for name in living:
            assert f"slurm-bridge {version} serves" in support_servers.said(support_real.KUBECTL, *said, name)


class Flow:
    """Pods that come one after the other, and the jobs that stand for them."""

    def __init__(self, kube: support_servers.Kubernetes, slurm: support_servers.Slurm, namespace: str) -> None:
        self._kube, self._slurm, self._namespace = kube, slurm, namespace
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self.created: list[str] = []
        #: Pods that two jobs stood for at one time.
        self.doubled: set[str] = set()

    def step(self) -> None:
        """One more pod."""
        name = f"flow-{len(self.created)}"
        self._kube.create(self._path, support_world.pod(name, self._namespace, annotations=support_world.SHORT))
        self.created.append(name)
        owners = collections.Counter(str(one.owner.get("uid")) for one in self._slurm.alive(self._namespace))
        self.doubled.update(uid for uid, number in owners.items() if number > 1)

    def await_more(self, number: int) -> None:
        """Until so many more have come, and all so far have ended well."""
        wanted = len(self.created) + number
        wait.until(lambda: len(self.created) >= wanted, "more pods", START_SECONDS, every=0.3)
        names_ = set(self.created)

        def over() -> bool:
            pods = self._kube.items(self._path)
            return names_ <= {one["metadata"]["name"] for one in pods if support_world.has_succeeded(one)}

        wait.until(over, "pods that ended well", START_SECONDS, every=0.5)


@contextlib.contextmanager
def again_and_again(*steps: Callable[[], None]) -> Iterator[None]:
    """In a thread, twice a second; what fails there fails the test."""
    stop, failures = threading.Event(), list[BaseException]()

    def work() -> None:
        try:
            while not stop.wait(0.5):
                for step in steps:
                    step()
        except BaseException as error:  # noqa: BLE001 - it is raised below
            failures.append(error)

    thread = threading.Thread(target=work, name="steps")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.timeout(1200)
def test_pods_flow_while_a_release_is_upgraded_and_rolled_back_and_nothing_is_left(
    as_pods: tuple[Json, Json],
    helm: Helm,
    kube: support_servers.Kubernetes,
    slurm: support_servers.Slurm,
    namespace: str,
) -> None:
    """Two replicas as pods on a real node are replaced by those of the next version, and by the first ones again."""
    (values, image), own = as_pods, ("--namespace", namespace)
    replicas, flow = Replicas(kube, namespace), Flow(kube, slurm, namespace)
    with again_and_again(replicas.give_nodes):
        helm.said("install", namespace, str(CHART), *own, values=values)
        replicas.await_version(slurm_bridge.__version__)
        with again_and_again(flow.step):
            flow.await_more(4)
            helm.said("upgrade", namespace, str(CHART), *own, values=merged(values, image))
            replicas.await_version(support_image.NEXT)
            flow.await_more(4)
            helm.said("rollback", namespace, "1", *own)
            replicas.await_version(slurm_bridge.__version__)
            flow.await_more(4)
        flow.await_more(0)
    assert flow.doubled == set()
    wait.until(lambda: not slurm.alive(namespace), "end of all jobs", START_SECONDS)
    objects = objects_of(helm, namespace)
    helm.said("uninstall", namespace, *own)
    wait.until(lambda: not any(kube.find(path_of(one)) for one in objects.values()), "end of all objects")
    wait.until(lambda: not replicas.pods(), "end of both replicas", START_SECONDS)
    assert kube.items(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases") == []
