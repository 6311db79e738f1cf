"""deploy/webhook starts the webhook with the shipped configuration, and asks it about the bridge's objects only."""

import itertools
import pathlib
from typing import Any

import pytest
import yaml

from slurm_bridge.admission import rules
from slurm_bridge.model import kinds, names
from slurm_bridge.settings import loader
from slurm_bridge.settings.admission import SYSTEM_NAMESPACES
from slurm_bridge.web import admission
from slurm_bridge.workloads import kind_table

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
ON = DEPLOY / "webhook"

Json = dict[str, Any]


def objects(file: pathlib.Path) -> list[Json]:
    """The documents of a file."""
    return [one for one in yaml.safe_load_all(file.read_text()) if one]


MUTATING, VALIDATING = objects(ON / "webhooks.yaml")
WEBHOOKS = [*MUTATING["webhooks"], *VALIDATING["webhooks"]]


@pytest.fixture(scope="module")
def pod() -> Json:
    """The pods of the Deployment."""
    (deployment,) = objects(ON / "deployment.yaml")
    spec: Json = deployment["spec"]["template"]["spec"]
    return spec


def shipped() -> Json:
    """The shipped configuration."""
    found: Json = yaml.safe_load(objects(DEPLOY / "config.yaml")[0]["data"]["config.yaml"])
    return found


def test_every_file_is_applied() -> None:
    """A file that is not named is applied by no command."""
    (component,) = objects(ON / "kustomization.yaml")
    assert set(component["resources"]) == {file.name for file in ON.glob("*.yaml")} - {"kustomization.yaml"}


def test_it_starts_with_the_shipped_configuration(pod: Json, tmp_path: pathlib.Path) -> None:
    """Its variables add the certificate that is mounted, and the port that the Service and the probes name."""
    (container,) = pod["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(shipped()))
    settings = loader.load(config, variables, ())
    assert settings.web.tls is not None
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert (str(settings.web.tls.cert), str(settings.web.tls.key)) == (
        f"{mounts['tls']}/tls.crt",
        f"{mounts['tls']}/tls.key",
    )
    assert settings.web.probes_port is None
    assert [one["containerPort"] for one in container["ports"]] == [settings.web.port]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"


@pytest.mark.security("rights")
def test_it_has_no_credentials_for_slurm_and_reads_namespaces_only(pod: Json) -> None:
    """The webhook's own Deployment mounts no token of Slurm, and its account may read nothing but namespaces."""
    secrets = [one["secret"]["secretName"] for one in pod["volumes"] if "secret" in one]
    assert secrets == ["slurm-bridge-webhook"]
    rights = [
        right
        for one in objects(ON / "rbac.yaml")
        for rule in one.get("rules", ())
        for right in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])
    ]
    assert rights == [("", "namespaces", verb) for verb in ("get", "list", "watch")]


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=lambda one: one["name"])
def test_a_webhook_leads_to_the_service(webhook: Json) -> None:
    """By the paths that the program serves, without side effects, within a time, and failing closed."""
    service = webhook["clientConfig"]["service"]
    (found,) = objects(ON / "service.yaml")
    assert (service["namespace"], service["name"]) == (found["metadata"]["namespace"], found["metadata"]["name"])
    assert service["path"] == (admission.MUTATE if webhook in MUTATING["webhooks"] else admission.VALIDATE)
    assert (webhook["sideEffects"], webhook["failurePolicy"]) == ("None", "Fail")
    assert 0 < webhook["timeoutSeconds"] <= 10


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=lambda one: one["name"])
def test_the_namespaces_of_the_cluster_are_never_asked_about(webhook: Json) -> None:
    """Its own pods, and those of the cluster, start without it."""
    out = [one["values"] for one in webhook["namespaceSelector"]["matchExpressions"] if one["operator"] == "NotIn"]
    assert [*SYSTEM_NAMESPACES, shipped()["leader_election"]["namespace"]] in out


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=lambda one: one["name"])
def test_a_webhook_has_conditions(webhook: Json) -> None:
    """Each is asked about changes only, and each about pods of the schedulers in the configuration."""
    said = " ".join(one["expression"] for one in webhook["matchConditions"])
    assert 'request.operation == "CREATE" ||' in said
    if webhook["name"].startswith("annotated"):
        assert f'key.startsWith("{names.JOB_PREFIX}")' in said
    else:
        assert all(f'"{name}"' in said for name in shipped()["scheduler_names"])


def test_no_record_is_changed_by_way_of_a_status() -> None:
    """The API server lets an update of the status of its own kinds change annotations."""
    for one in VALIDATING["webhooks"][:2]:
        listed = {name for rule in one["rules"] for name in rule["resources"]}
        assert "replicationcontrollers/status" in listed
        own = {kind.plural for kind in kind_table.OWNERS if kind.plural in listed and not kind.custom}
        assert {f"{name}/status" for name in own} <= listed


def test_every_kind_that_makes_or_groups_pods_is_validated() -> None:
    """And every one that makes pods gets the record of its creator."""
    grouping = {kind.plural for kind, spec in kind_table.SPECS.items() if not spec.owner}
    making = {kind.plural for kind in kind_table.OWNERS}
    validated = {name for one in VALIDATING["webhooks"] for rule in one["rules"] for name in rule["resources"]}
    mutated = {name for one in MUTATING["webhooks"] for rule in one["rules"] for name in rule["resources"]}
    assert making | grouping <= validated
    assert making <= mutated


@pytest.mark.security("rights")
def test_every_object_with_a_record_and_every_change_of_owners_is_validated() -> None:
    """Records of creators are reviewed on objects of other schedulers too, and so are changes of owner references."""
    for one in VALIDATING["webhooks"]:
        changed, *_, last = (condition["expression"] for condition in one["matchConditions"])
        assert "object.metadata.?ownerReferences != oldObject.metadata.?ownerReferences" in changed
        both = '(request.operation == "CREATE" ? [object] : [object, oldObject]).exists(one, '
        assert last.startswith(f'{both}"{names.ANNOTATION_CREATED_BY}" in one.metadata.?annotations.orValue({{}}) ||')


@pytest.mark.security("neighbours")
def test_pods_and_templates_of_others_do_not_depend_on_the_webhook() -> None:
    """In a managed namespace no review decides about DaemonSets, static pods and templates of other schedulers."""
    for one in (MUTATING["webhooks"][0], VALIDATING["webhooks"][0]):
        said = one["matchConditions"][-1]["expression"]
        of_daemons = said.partition('== "daemonsets" ?')[2].partition(" :")[0]
        assert "default-scheduler" not in of_daemons
        assert all(f'"{kind}" ?' in said for kind in ("cronjobs", "jobsets", "leaderworkersets"))
    pods = MUTATING["webhooks"][0]["matchConditions"][-1]["expression"].partition(" : ")[0]
    assert f'"{rules.MIRROR}" in object.metadata' in pods
    assert f'"{rules.NODES}" in request.userInfo.groups' in pods
    assert f'owner.kind == "{kinds.DAEMONSETS.kind}"' in pods


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=lambda one: one["name"])
def test_brackets_of_conditions_are_closed(webhook: Json) -> None:
    """The API server would refuse the whole configuration."""
    for one in webhook["matchConditions"]:
        open_ = []
        for letter in one["expression"]:
            if letter in "([{":
                open_.append(letter)
            elif letter in ")]}":
                assert open_.pop() + letter in ("()", "[]", "{}")
        assert open_ == []
