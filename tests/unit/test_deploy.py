"""deploy/ is what the program needs: its rights exactly, a configuration that loads, and pods confined as promised."""

import itertools
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from slurm_bridge import errors
from slurm_bridge.families import policy
from slurm_bridge.families.yunikorn import hook as yunikorn
from slurm_bridge.hooks import needs, registry
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model import kinds, names
from slurm_bridge.model.kinds import Kind
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.scheduler.effects import claims
from slurm_bridge.settings import loader
from slurm_bridge.settings.model import Settings
from slurm_bridge.workloads import kind_table

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
RBAC = DEPLOY / "rbac.yaml"
EXAMPLES = sorted((ROOT / "examples").glob("*/job.yaml"))

Json = dict[str, Any]
Right = tuple[str, str, str]

#: What the program writes: verb by verb.
WRITTEN: frozenset[Right] = frozenset(
    {
        ("", "pods", "delete"),
        ("", "pods/status", "patch"),
        ("", "pods/binding", "create"),
        ("scheduling.k8s.io", "podgroups/status", "patch"),
        ("scheduling.x-k8s.io", "podgroups/status", "patch"),
        ("events.k8s.io", "events", "create"),
        ("coordination.k8s.io", "leases", "get"),
        ("coordination.k8s.io", "leases", "create"),
        ("coordination.k8s.io", "leases", "update"),
    }
)


def written() -> set[Right]:
    """The same with what the shipped chain has written: on claims and volumes, where it honours claims that wait."""
    chain = registry.build(shipped(), ChainServices(clock=VirtualClock()), {})
    chain.close()
    assert chain.storage is not None
    return {*WRITTEN, *((kind.group, kind.plural, "patch") for kind in claims.WRITTEN)}


def shipped() -> list[registry.HookConfig]:
    """The hooks of the shipped configuration."""
    config = yaml.safe_load(yaml.safe_load((DEPLOY / "config.yaml").read_text())["data"]["config.yaml"])
    return [registry.HookConfig(**one) for one in config["hooks"]]


def watched() -> set[Kind[Any]]:
    """What the daemon follows: for itself, for kinds that group pods, and for the shipped hooks."""
    return {kinds.PODS, kinds.NODES, *kind_table.WATCHED, *needed(), *(needs.KINDS[one] for one in needs.OPTIONAL)}


def needed(*hooks: str) -> set[Kind[Any]]:
    """What these hooks, as they are by default, and those of the shipped configuration need to see."""
    configured = [one for one in shipped() if one.name not in hooks]
    configured += [registry.HookConfig(name=name) for name in hooks]
    chain = registry.build(configured, ChainServices(clock=VirtualClock()), {})
    chain.close()
    return {needs.KINDS[need] for need in chain.needs}


def read_one_by_one() -> set[Kind[Any]]:
    """Owners, Jobs too: a pod may be heard of before its Job; pods, and PodGroups, to be sure about one of them."""
    return {*kind_table.OWNERS, *(kind for kind, how in kind_table.ANNOUNCEMENTS.items() if how is not None)}


def rights(file: pathlib.Path = RBAC) -> Iterator[Right]:
    """Every group, resource and verb that some role grants."""
    for document in yaml.safe_load_all(file.read_text()):
        for rule in document.get("rules", ()):
            assert "nonResourceURLs" not in rule
            yield from itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])


def test_the_rights_are_what_the_program_does_and_no_more() -> None:
    """A missing one leaves the daemon waiting for ever, one without a use is a gift to whoever steals the token."""
    followed = {(kind.group, kind.plural, verb) for kind in watched() for verb in ("list", "watch")}
    read = {(kind.group, kind.plural, "get") for kind in read_one_by_one()}
    assert set(rights()) == followed | read | written()


@pytest.mark.security("rights")
def test_no_shipped_role_may_change_a_pods_spec() -> None:
    """The daemon may not patch or update pods: its rights do not change the image or command of any pod."""
    # Templates of the Helm chart are made of these files.
    files = [file for file in DEPLOY.rglob("*.yaml") if file.name != "kustomization.yaml" and "helm" not in file.parts]
    granted = {right for file in files for right in rights(file)}
    assert ("", "pods/status", "patch") in granted
    assert not {("", "pods", verb) for verb in ("patch", "update", "create")} & granted


@pytest.mark.security("rights")
def test_only_its_own_lease_is_open_to_the_daemon(settings: Settings) -> None:
    """The daemon may read and change one Lease by name, not those of other components in its namespace."""
    (role,) = [one for one in objects("rbac.yaml") if one["kind"] == "Role"]
    named = {verb: rule.get("resourceNames") for rule in role["rules"] for verb in rule["verbs"]}
    assert named == {"get": [settings.leader_election.name], "update": [settings.leader_election.name], "create": None}


def test_a_family_brings_the_rights_to_see_what_it_needs_and_no_more() -> None:
    """With all its predicates and priorities; nothing is written, and queues evict."""
    more = needed("kube-scheduler") - needed()
    granted = set(rights(RBAC.parent / "kube-scheduler" / "rbac.yaml"))
    assert granted == {(kind.group, kind.plural, verb) for kind in more for verb in ("list", "watch")}
    assert needed("vela") == needed()
    seen = {needs.KINDS[need] for need in yunikorn.Yunikorn.needs}
    granted = set(rights(RBAC.parent / "yunikorn" / "rbac.yaml"))
    more_than_seen = {("", "pods/eviction", "create")}
    assert granted == {(kind.group, kind.plural, verb) for kind in seen for verb in ("list", "watch")} | more_than_seen


def test_the_node_controller_has_the_rights_that_it_uses() -> None:
    """It reads and marks nodes, and follows the devices of drivers."""
    granted = set(rights(DEPLOY / "nodes" / "rbac.yaml"))
    devices = {("resource.k8s.io", "resourceslices", verb) for verb in ("list", "watch")}
    assert granted == {("", "nodes", "get"), ("", "nodes", "patch"), ("", "nodes/status", "patch")} | devices


def test_a_daemon_with_a_part_has_the_rights_that_it_uses() -> None:
    """It reads namespaces, and keeps Leases in its own namespace only."""
    granted = set(rights(DEPLOY / "parts" / "rbac.yaml"))
    leases = {("coordination.k8s.io", "leases", verb) for verb in ("get", "list", "create", "update", "delete")}
    assert granted == {("", "namespaces", verb) for verb in ("get", "list", "watch")} | leases
    (role,) = (one for one in objects("parts/rbac.yaml") if one["kind"] == "Role")
    assert [rule["resources"] for rule in role["rules"]] == [["leases"]]


def test_the_daemon_may_not_act_for_others() -> None:
    """No wildcard, no secrets, no impersonation, no escalation."""
    for group, resource, verb in rights():
        assert "*" not in (group, resource, verb)
        assert resource != "secrets"
        assert verb not in ("impersonate", "bind", "escalate")


def objects(name: str) -> list[Json]:
    """The documents of one file."""
    return [one for one in yaml.safe_load_all((DEPLOY / name).read_text()) if one]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The shipped configuration as the daemon reads it."""
    (config_map,) = objects("config.yaml")
    file = tmp_path_factory.mktemp("config") / "config.yaml"
    file.write_text(config_map["data"]["config.yaml"])
    return loader.load(file, {})


@pytest.fixture(scope="module")
def pod() -> Json:
    """What the Deployment runs."""
    (deployment,) = objects("deployment.yaml")
    template: Json = deployment["spec"]["template"]
    return template


@pytest.fixture(scope="module")
def container(pod: Json) -> Json:
    """The only one."""
    (only,) = pod["spec"]["containers"]
    return dict(only)


def test_the_kustomization_applies_every_manifest() -> None:
    """A file that is not named is applied by nobody."""
    (kustomization,) = objects("kustomization.yaml")
    assert set(kustomization["resources"]) == {file.name for file in DEPLOY.glob("*.yaml")} - {"kustomization.yaml"}


def test_all_objects_are_in_the_namespace_of_the_daemon() -> None:
    """What has no namespace is of the cluster."""
    files = ("rbac.yaml", "config.yaml", "deployment.yaml", "pdb.yaml", "networkpolicy.yaml")
    loose = {one["kind"] for name in files for one in objects(name) if "namespace" not in one["metadata"]}
    assert loose == {"Namespace", "ClusterRole", "ClusterRoleBinding"}
    inside = [one for name in files for one in objects(name) if "namespace" in one["metadata"]]
    assert {one["metadata"]["namespace"] for one in inside} == {"slurm-bridge-system"}


@pytest.mark.security("rights")
def test_no_example_runs_beside_the_secret() -> None:
    """Examples run in a namespace of users, and the daemon with its token in another one."""
    files = [file for file in (ROOT / "examples").rglob("*.yaml") if "hooks" not in file.parts]
    manifests = [one for file in files for one in yaml.safe_load_all(file.read_text()) if one and "kind" in one]
    of_cluster = {"Namespace", "ClusterQueue", "ResourceFlavor"}
    used = {one["metadata"].get("namespace", "default") for one in manifests if one["kind"] not in of_cluster}
    (deployment,) = objects("deployment.yaml")
    assert used == {"slurm-bridge"}
    assert deployment["metadata"]["namespace"] not in used
    made = {one["metadata"]["name"] for one in objects("rbac.yaml") if one["kind"] == "Namespace"}
    assert made == {*used, deployment["metadata"]["namespace"]}


def test_no_manifest_holds_a_secret() -> None:
    """The token is made by whoever may have it."""
    assert all(one["kind"] != "Secret" for file in DEPLOY.glob("*.yaml") for one in objects(file.name))


def test_the_shipped_configuration_loads_and_finds_what_the_pod_mounts(
    settings: Settings, pod: Json, container: Json
) -> None:
    """The token's file, the port of the probes, and the lease in the namespace in which it may be written."""
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    (token,) = [one for one in pod["spec"]["volumes"] if "secret" in one]
    (item,) = token["secret"]["items"]
    assert str(settings.slurm.token_file) == f"{mounts[token['name']]}/{item['path']}"
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert ports == {"http": settings.web.port, "probes": settings.web.probes_port}
    assert settings.web.host == "0.0.0.0"  # noqa: S104 - probes come from outside the pod
    assert settings.leader_election.namespace == "slurm-bridge-system"
    assert settings.defaults.user == "slurm-bridge"


def test_the_daemon_is_told_the_file_that_the_config_map_becomes(pod: Json, container: Json) -> None:
    """`--config` names a key of the ConfigMap below its mount."""
    (config_map,) = objects("config.yaml")
    (volume,) = [one for one in pod["spec"]["volumes"] if "configMap" in one]
    (mount,) = [one for one in container["volumeMounts"] if one["name"] == volume["name"]]
    assert volume["configMap"]["name"] == config_map["metadata"]["name"]
    assert container["args"] == ["run", f"--config={mount['mountPath']}/{next(iter(config_map['data']))}"]


def test_the_shipped_configuration_says_that_the_token_travels_unencrypted(tmp_path: pathlib.Path) -> None:
    """A site that leaves the word out, and the address as it is, is told at the start."""
    (config_map,) = objects("config.yaml")
    text = config_map["data"]["config.yaml"]
    assert "  plain_http: true\n" in text
    file = tmp_path / "config.yaml"
    file.write_text(text.replace("  plain_http: true\n", ""))
    with pytest.raises(errors.BadConfiguration, match=r"slurm\.plain_http: has to be true"):
        loader.load(file, {})


def test_every_variable_of_the_pod_is_a_key(settings: Settings, container: Json, tmp_path: pathlib.Path) -> None:
    """The environment wins over the file, and an unknown key would keep the daemon from starting."""
    (config_map,) = objects("config.yaml")
    file = tmp_path / "config.yaml"
    file.write_text(config_map["data"]["config.yaml"])
    found = loader.load(file, {one["name"]: one["value"] for one in container["env"]})
    assert found.log.as_json
    assert not settings.log.as_json


def test_the_pods_are_confined(pod: Json, container: Json) -> None:
    """Not root, no capabilities, no writable disk, the runtime's filter."""
    outer, inner = pod["spec"]["securityContext"], container["securityContext"]
    assert outer["runAsNonRoot"]
    assert outer["runAsUser"] == outer["runAsGroup"] == outer["fsGroup"] == 65532
    assert outer["seccompProfile"] == {"type": "RuntimeDefault"}
    confined = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert inner == confined
    assert "USER 65532:65532\n" in (DEPLOY / "Dockerfile").read_text()


def test_the_daemon_does_not_schedule_itself(pod: Json, settings: Settings) -> None:
    """It could never start."""
    assert pod["spec"]["schedulerName"] not in settings.scheduler_names


def test_the_selectors_find_the_pods(pod: Json) -> None:
    """Of the Deployment, the budget, and the rule that keeps the replicas apart."""
    labels = pod["metadata"]["labels"]
    (deployment,), (budget,) = objects("deployment.yaml"), objects("pdb.yaml")
    (apart,) = pod["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    selectors = [deployment["spec"], budget["spec"], {"selector": apart["podAffinityTerm"]["labelSelector"]}]
    assert all(one["selector"]["matchLabels"] == labels for one in selectors)
    assert deployment["spec"]["replicas"] - budget["spec"]["maxUnavailable"] >= 1


def test_probes_ask_the_right_questions(container: Json) -> None:
    """A Slurm that is down makes the daemon unready, and never restarts it."""
    paths = {kind: container[kind]["httpGet"]["path"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert paths == {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}


@pytest.mark.security("fairness")
def test_probes_have_a_port_that_serves_nothing_else(container: Json, settings: Settings) -> None:
    """The shipped manifests probe a port of their own: no client of the other port can have the daemon restarted."""
    probes = [container[kind]["httpGet"]["port"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert probes == ["probes"] * 3
    assert settings.web.probes_port not in (None, settings.web.port)


@pytest.mark.security("fairness")
def test_a_network_policy_lets_in_probes_and_scrapes_alone(pod: Json, container: Json) -> None:
    """The shipped NetworkPolicy opens the metrics port only to the namespace that scrapes it."""
    (policy_,) = objects("networkpolicy.yaml")
    assert policy_["spec"]["podSelector"]["matchLabels"] == pod["metadata"]["labels"]
    assert policy_["spec"]["policyTypes"] == ["Ingress"]
    probed, scraped = policy_["spec"]["ingress"]
    named = {one["name"] for one in container["ports"]}
    assert [one["port"] for one in probed["ports"]] == ["probes"]
    assert [one["port"] for one in scraped["ports"]] == ["http"]
    assert {"probes", "http"} == named
    assert "from" not in probed
    (whence,) = scraped["from"]
    assert whence["namespaceSelector"]["matchLabels"]
    (wider,) = objects("submission/networkpolicy.yaml")
    assert wider["spec"]["podSelector"] == policy_["spec"]["podSelector"]
    assert [one["port"] for rule in wider["spec"]["ingress"] for one in rule["ports"]] == ["http"]


def test_the_image_has_nothing_but_the_daemon() -> None:
    """Its last stage has no base: neither a shell nor an installer is there to be used."""
    text = (DEPLOY / "Dockerfile").read_text()
    last = text.rpartition("\nFROM ")[2].splitlines()
    assert last[:2] == ["scratch", "COPY --from=build /rootfs /"]
    assert not any(line.startswith("RUN") for line in last)
    assert "!deploy/rootfs.py" in (ROOT / ".dockerignore").read_text().splitlines()


def test_the_image_names_no_registry() -> None:
    """Every site has its own."""
    text = (DEPLOY / "Dockerfile").read_text()
    assert "http" not in "".join(line for line in text.splitlines() if not line.startswith("#"))
    assert text.count("--require-hashes") == 2


@pytest.mark.parametrize("manifest", EXAMPLES, ids=lambda file: file.parent.name)
def test_an_example_is_for_the_shipped_configuration(manifest: pathlib.Path, settings: Settings) -> None:
    """In the namespace of the examples, for the daemon's scheduler, and named like its folder."""
    (job,) = [one for one in yaml.safe_load_all(manifest.read_text()) if one and one["kind"] == "Job"]
    assert job["metadata"]["name"] == manifest.parent.name
    assert job["metadata"]["namespace"] == "slurm-bridge"
    assert job["spec"]["template"]["spec"]["schedulerName"] in settings.scheduler_names


def test_the_shipped_policy_lets_the_first_example_run_as_it_is(settings: Settings) -> None:
    """Its account is allowed in its namespace, for every service account."""
    (job,) = [one for one in yaml.safe_load_all((ROOT / "examples/job-sleep-single/job.yaml").read_text()) if one]
    (chosen,) = [one for one in settings.hooks if one.name == "policy"]
    rules = policy.PolicyOptions.model_validate(chosen.options).rules
    allowed = [
        rule.allow["account"]
        for rule in rules
        if "account" in rule.allow
        and job["metadata"]["namespace"] in rule.namespaces
        and rule.service_accounts == ("*",)
    ]
    account = job["metadata"]["annotations"][f"{names.JOB_PREFIX}account"]
    assert any(one.permits(account) for one in allowed)
