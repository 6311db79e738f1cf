"""deploy/submission is what the submission API needs, and nothing that the daemon has without it."""

import itertools
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from slurm_bridge.settings import loader

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
ON = DEPLOY / "submission"

Json = dict[str, Any]


def objects(*files: pathlib.Path) -> list[Json]:
    """The documents of these files."""
    return [one for file in files for one in yaml.safe_load_all(file.read_text()) if one]


def rights(file: pathlib.Path) -> Iterator[tuple[str, str, str]]:
    """Every group, resource and verb that a role of this file grants."""
    for one in objects(file):
        for rule in one.get("rules", ()):
            yield from itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])


@pytest.fixture(scope="module")
def pod() -> Json:
    """What the patch says of the pods."""
    (patch,) = objects(ON / "deployment.yaml")
    spec: Json = patch["spec"]["template"]["spec"]
    return spec


def test_the_right_to_review_tokens_comes_with_it_and_is_the_only_one() -> None:
    """Without the API the daemon learns of nobody's token; with it, it still may create no pods and act for nobody."""
    review = ("authentication.k8s.io", "tokenreviews", "create")
    assert list(rights(ON / "rbac.yaml")) == [review]
    assert review not in set(rights(DEPLOY / "rbac.yaml"))


def test_every_file_is_applied() -> None:
    """As a resource, or as a patch of the Deployment that there is."""
    (component,) = objects(ON / "kustomization.yaml")
    patches = {one["path"] for one in component["patches"]}
    assert {*component["resources"], *patches} == {file.name for file in ON.glob("*.yaml")} - {"kustomization.yaml"}
    (patched,), (deployment,) = objects(ON / "deployment.yaml"), objects(DEPLOY / "deployment.yaml")
    assert patched["metadata"].items() <= deployment["metadata"].items()
    (patch,), (container,) = (one["spec"]["template"]["spec"]["containers"] for one in (patched, deployment))
    assert patch["name"] == container["name"]


def test_its_variables_switch_the_api_on_with_the_certificate_that_is_mounted(
    pod: Json, tmp_path: pathlib.Path
) -> None:
    """Over the shipped configuration, which listens on all addresses and would refuse the API without TLS."""
    (config_map,) = objects(DEPLOY / "config.yaml")
    file = tmp_path / "config.yaml"
    file.write_text(config_map["data"]["config.yaml"])
    (container,) = pod["containers"]
    settings = loader.load(file, {one["name"]: one["value"] for one in container["env"]})
    assert settings.web.submission.enabled
    assert not loader.load(file, {}).web.submission.enabled
    assert settings.web.tls is not None
    ((mount,), (volume,)) = container["volumeMounts"], pod["volumes"]
    assert mount["name"] == volume["name"]
    wanted = [settings.web.tls.cert, settings.web.tls.key]
    assert wanted == [pathlib.Path(mount["mountPath"]) / name for name in ("tls.crt", "tls.key")]


def test_probes_speak_as_the_door_does(pod: Json) -> None:
    """A kubelet that spoke plain HTTP would restart the daemon for ever."""
    (container,), (deployment,) = pod["containers"], objects(DEPLOY / "deployment.yaml")
    (base,) = deployment["spec"]["template"]["spec"]["containers"]
    probes = {key: value for key, value in container.items() if key.endswith("Probe")}
    assert probes.keys() == {key for key in base if key.endswith("Probe")}
    assert all(probe == {"httpGet": {"scheme": "HTTPS"}} for probe in probes.values())


def test_the_service_finds_the_replicas() -> None:
    """By their labels, at the port of the door."""
    (service,), (deployment,) = objects(ON / "service.yaml"), objects(DEPLOY / "deployment.yaml")
    template = deployment["spec"]["template"]
    assert service["spec"]["selector"] == template["metadata"]["labels"]
    (container,) = template["spec"]["containers"]
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] in {one["name"] for one in container["ports"]}
