"""deploy/admission speaks of the same account, schedulers and marks as the rest of deploy/ and the program."""

import pathlib
from typing import Any

import pytest
import yaml

from slurm_bridge.model import names
from slurm_bridge.model.devices import FINALIZER
from slurm_bridge.model.storage import BOUND_BY_CONTROLLER, SELECTED_NODE
from slurm_bridge.scheduler.effects import claims

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
ON = DEPLOY / "admission"
FILES = ("account", "claims", "marks", "volumes")
#: These are about pods.
OF_PODS = ("account", "marks")

Json = dict[str, Any]


def objects(file: pathlib.Path) -> list[Json]:
    """The documents of a file."""
    return [one for one in yaml.safe_load_all(file.read_text()) if one]


def spec(name: str) -> Json:
    """What a policy says."""
    policy, binding = objects(ON / f"{name}.yaml")
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    found: Json = policy["spec"]
    return found


def variable(name: str, key: str) -> list[str]:
    """A list that a policy writes down."""
    (found,) = [one["expression"] for one in spec(name)["variables"] if one["name"] == key]
    listed = yaml.safe_load(found)
    assert isinstance(listed, list)
    return listed


def test_the_component_applies_every_file() -> None:
    """A file that is not named is applied by nobody."""
    (component,) = objects(ON / "kustomization.yaml")
    assert component["kind"] == "Component"
    assert set(component["resources"]) == {f"{name}.yaml" for name in FILES}


@pytest.mark.parametrize("name", FILES)
def test_a_policy_fails_closed(name: str) -> None:
    """A mistake in it must not open what it closes."""
    assert spec(name)["failurePolicy"] == "Fail"


@pytest.mark.parametrize("name", FILES)
def test_a_policy_knows_the_account_of_the_deployment(name: str) -> None:
    """The one that RBAC gives its rights to."""
    (binding,) = [one for one in objects(DEPLOY / "rbac.yaml") if one["kind"] == "ClusterRoleBinding"]
    (subject,) = binding["subjects"]
    (condition,) = spec(name)["matchConditions"]
    assert f'"system:serviceaccount:{subject["namespace"]}:{subject["name"]}"' in condition["expression"]


@pytest.mark.parametrize("name", OF_PODS)
def test_a_policy_knows_the_schedulers_of_the_configuration(name: str) -> None:
    """Whose pods these are."""
    (config,) = objects(DEPLOY / "config.yaml")
    settings = yaml.safe_load(config["data"]["config.yaml"])
    assert variable(name, "schedulers") == settings["scheduler_names"]


def test_every_mark_of_the_bridge_is_listed() -> None:
    """What the program writes on pods, and nothing that users write."""
    notes = [names.ANNOTATION_PARKED, names.ANNOTATION_MAKES_ROOM, names.ANNOTATION_ROOM]
    fixed = [names.LABEL_JOB_ID, names.ANNOTATION_BOUND_BY, names.ANNOTATION_SLURM_NODE, names.ANNOTATION_COUNTED]
    assert variable("marks", "fixed") == [*fixed, *names.TASK_ANNOTATIONS]
    assert variable("marks", "removable") == variable("account", "annotations") == notes


def test_every_right_over_pods_is_limited() -> None:
    """A verb that RBAC grants and the policy does not know would reach pods of other schedulers."""
    files = (DEPLOY / "rbac.yaml", DEPLOY / "preemption" / "rbac.yaml", DEPLOY / "yunikorn" / "rbac.yaml")
    rules = [rule for file in files for one in objects(file) for rule in one.get("rules", ())]
    operations = {"create": "CREATE", "patch": "UPDATE", "update": "UPDATE", "delete": "DELETE"}
    granted = {
        (operations[verb], resource)
        for rule in rules
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if resource.partition("/")[0] == "pods" and verb in operations
    }
    limited = spec("account")["matchConstraints"]["resourceRules"]
    known = {(verb, resource) for rule in limited for verb in rule["operations"] for resource in rule["resources"]}
    assert granted == known


def test_a_binding_may_carry_what_the_daemon_writes_with_it() -> None:
    """A mark that the policy does not know would keep every pod from its node."""
    (rule,) = [one for one in spec("account")["validations"] if '"binding"' in one["expression"]]
    written = [names.LABEL_JOB_ID, names.ANNOTATION_SLURM_NODE, names.ANNOTATION_BOUND_BY, names.ANNOTATION_COUNTED]
    for mark in (*written, *names.TASK_ANNOTATIONS):
        assert f'"{mark}"' in rule["expression"]
        assert mark.rpartition("/")[2] in rule["message"]


def test_every_right_over_claims_and_volumes_is_limited() -> None:
    """What the daemon patches there, and the annotations that it writes."""
    (limited,) = spec("volumes")["matchConstraints"]["resourceRules"]
    assert (limited["operations"], set(limited["resources"])) == (["UPDATE"], {one.plural for one in claims.WRITTEN})
    written = {SELECTED_NODE, names.ANNOTATION_SELECTED_BY, BOUND_BY_CONTROLLER}
    assert set(variable("volumes", "annotations")) == written


def test_every_right_over_claims_of_devices_is_limited() -> None:
    """All that the component for these claims allows beside reading."""
    (limited,) = spec("claims")["matchConstraints"]["resourceRules"]
    role = objects(DEPLOY / "device-claims" / "rbac.yaml")[0]
    written = [rule for rule in role["rules"] if not {"list", "watch"}.issuperset(rule["verbs"])]
    # Who may patch resourceclaims/status needs resourceclaims/binding for it, which is nothing that can be written.
    resources = {one for rule in written for one in rule["resources"]} - {"resourceclaims/binding"}
    assert resources == set(limited["resources"])
    verbs = {"patch": "UPDATE", "create": "CREATE", "delete": "DELETE"}
    assert {verbs[verb] for rule in written for verb in rule["verbs"]} <= set(limited["operations"])
    assert any(f'"{FINALIZER}"' in one["expression"] for one in spec("claims")["validations"])


@pytest.mark.parametrize(
    "field",
    [
        "metadata.ownerReferences",
        "metadata.finalizers",
        "spec.mountOptions",
        "spec.volumeAttributesClassName",
        "spec.nodeAffinity",
    ],
)
def test_what_may_be_absent_is_compared_before_and_after(field: str) -> None:
    """What the account may not change of claims and volumes; an owner has them deleted, with their data."""
    said = " ".join(" ".join(one["expression"] for one in spec("volumes")["validations"]).split())
    assert f"has(object.{field}) == has(oldObject.{field})" in said
    assert f"(!has(object.{field}) || object.{field} == oldObject.{field})" in said
