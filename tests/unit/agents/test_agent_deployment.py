"""deploy/agents is what an agent needs and no more: its rights, a configuration that loads, and pods confined."""

import itertools
import pathlib
from typing import Any

import pytest
import yaml

from slurm_bridge.agents import service
from slurm_bridge.daemon import agent
from slurm_bridge.settings import loader
from slurm_bridge.settings.model import Settings

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy" / "agents"

Json = dict[str, Any]


def objects(name: str) -> list[Json]:
    """The documents of one file."""
    return [one for one in yaml.safe_load_all((FOLDER / name).read_text()) if one]


@pytest.fixture(scope="module")
def pod() -> Json:
    """What the Deployment runs."""
    _, deployment = objects("agent.yaml")
    template: Json = deployment["spec"]["template"]
    return template


@pytest.fixture(scope="module")
def container(pod: Json) -> Json:
    """The only one."""
    (only,) = pod["spec"]["containers"]
    return dict(only)


@pytest.fixture
def settings(container: Json, tmp_path: pathlib.Path) -> Settings:
    """The daemon's shipped configuration with the agent's variables over it."""
    (config_map,) = yaml.safe_load_all((ROOT / "deploy" / "config.yaml").read_text())
    file = tmp_path / "config.yaml"
    file.write_text(config_map["data"]["config.yaml"])
    return loader.load(file, {one["name"]: one["value"] for one in container["env"]})


def test_an_agent_may_look_at_nodes_and_pods_and_nothing_else() -> None:
    """It is asked from outside: what it may not do, nobody can make it do."""
    _, role, binding = objects("rbac.yaml")
    rights = [
        row for one in role["rules"] for row in itertools.product(one["apiGroups"], one["resources"], one["verbs"])
    ]
    assert set(rights) == set(itertools.product([""], ["nodes", "pods"], ["list", "watch"]))
    assert binding["roleRef"]["name"] == role["metadata"]["name"]


def test_the_pods_run_as_that_account(pod: Json) -> None:
    """Not as the daemon's."""
    account, _, binding = objects("rbac.yaml")
    (subject,) = binding["subjects"]
    assert subject["name"] == account["metadata"]["name"] == pod["spec"]["serviceAccountName"]


def test_the_kustomization_applies_every_manifest() -> None:
    """A file that is not named is applied by nobody."""
    (kustomization,) = objects("kustomization.yaml")
    assert set(kustomization["resources"]) == {file.name for file in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}


def test_every_object_is_in_the_namespace_of_the_daemon() -> None:
    """Its ConfigMap is mounted."""
    inside = [one for name in ("rbac.yaml", "agent.yaml") for one in objects(name) if "namespace" in one["metadata"]]
    assert {(one["kind"], one["metadata"]["namespace"]) for one in inside} == {
        (kind, "slurm-bridge-system") for kind in ("ServiceAccount", "Service", "Deployment")
    }


def test_what_the_variables_name_is_mounted(settings: Settings, pod: Json, container: Json) -> None:
    """Token, certificate and key, from Secrets that are not in these files."""
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    secrets = {one["name"]: one["secret"] for one in pod["spec"]["volumes"] if "secret" in one}
    assert str(settings.agent.token_file) == f"{mounts['token']}/{secrets['token']['items'][0]['path']}"
    assert {str(settings.agent.cert), str(settings.agent.key)} == {
        f"{mounts['tls']}/tls.{end}" for end in ("crt", "key")
    }
    assert all(one["kind"] != "Secret" for name in ("rbac.yaml", "agent.yaml") for one in objects(name))


def test_the_daemons_slurm_token_is_not_mounted(pod: Json) -> None:
    """An agent that was broken into knows nodes, and is no operator of Slurm."""
    names = {one["secret"]["secretName"] for one in pod["spec"]["volumes"] if "secret" in one}
    assert names == {"slurm-bridge-agent-token", "slurm-bridge-agent-tls"}


def test_the_agent_listens_where_the_service_and_the_probes_look(settings: Settings, container: Json) -> None:
    """By https, from outside of the pod."""
    service, _ = objects("agent.yaml")
    place = agent.place(settings)
    assert (place.host, [place.port]) == ("0.0.0.0", [one["containerPort"] for one in container["ports"]])  # noqa: S104
    assert [one["targetPort"] for one in service["spec"]["ports"]] == [one["name"] for one in container["ports"]]
    probes = {kind: container[kind]["httpGet"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {one["scheme"] for one in probes.values()} == {"HTTPS"}
    assert [one["path"] for one in probes.values()] == ["/livez", "/livez", "/readyz"]


def test_the_pods_have_time_to_drain(settings: Settings, pod: Json) -> None:
    """Before the kubelet kills them."""
    assert pod["spec"]["terminationGracePeriodSeconds"] > settings.agent.drain_seconds + service.STOP_SECONDS


def test_the_selectors_find_the_pods(pod: Json) -> None:
    """Of the Deployment and of the Service."""
    service, deployment = objects("agent.yaml")
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]


def test_the_pods_are_confined_like_the_daemons(pod: Json, container: Json) -> None:
    """Not root, no capabilities, no writable disk, the runtime's filter."""
    (daemon,) = yaml.safe_load_all((ROOT / "deploy" / "deployment.yaml").read_text())
    other = daemon["spec"]["template"]["spec"]
    assert pod["spec"]["securityContext"] == other["securityContext"]
    assert container["securityContext"] == other["containers"][0]["securityContext"]
    assert container["image"] == other["containers"][0]["image"]
    assert pod["spec"]["schedulerName"] == "default-scheduler"


def test_the_patch_of_the_readme_changes_the_shard(container: Json) -> None:
    """By its place in the list."""
    assert container["env"][5]["name"] == "SLURM_BRIDGE__AGENT__SHARD__ZONE"
    assert "/env/5/value" in (FOLDER / "README.md").read_text()
