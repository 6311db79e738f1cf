"""The admission policies as objects; what they refuse is tried on the real API server."""

import dataclasses
import fnmatch
import json
import pathlib
import re
from typing import Any

import pytest
import yaml

from slurm_bridge import cli
from slurm_bridge.admission import expressions, policies
from slurm_bridge.admission.policies import PolicyRules
from slurm_bridge.model import names, selectors
from slurm_bridge.model.features import Feature
from slurm_bridge.translate.annotations import ANNOTATIONS

PROJECT = pathlib.Path(__file__).resolve().parents[3]
SHIPPED = PROJECT / "deploy" / "admission" / "policies.yaml"

Json = dict[str, Any]


def named(rules: PolicyRules, name: str, kind: str = "Policy") -> Json:
    """What a policy says, or its binding."""
    (found,) = [
        one for one in policies.objects(rules) if one["metadata"]["name"] == name and one["kind"].endswith(kind)
    ]
    spec: Json = found["spec"]
    return spec


def text(rules: PolicyRules, name: str) -> str:
    """All expressions of a policy."""
    return json.dumps(named(rules, name))


def test_every_annotation_has_a_form_in_cel() -> None:
    """A new form that is missing here would be refused whatever its value."""
    assert {row.form for row in ANNOTATIONS} <= expressions.FORMS.keys()
    said = text(PolicyRules(), "slurm-bridge-pods")
    assert all(row.annotation in said for row in ANNOTATIONS)


def test_no_operation_has_a_list_of_objects_as_its_value() -> None:
    """The API server fails at such a patch."""
    expressions_ = [
        one["jsonPatch"]["expression"] for one in named(PolicyRules(), "slurm-bridge-environment")["mutations"]
    ]
    assert len(expressions_) > 20
    assert not [one for one in expressions_ if re.search(r"value: \[[^\]]", one)]


def test_the_rules_of_the_site_are_in_the_policies() -> None:
    """Its schedulers and accounts, what its hooks honour, and what it ignores."""
    rules = PolicyRules(schedulers=("one", "two"), accounts=("system:serviceaccount:backup:*",))
    for name in ("slurm-bridge-pods", "slurm-bridge-owners", "slurm-bridge-environment"):
        assert '[\\"one\\", \\"two\\"]' in text(rules, name)
    assert "system:serviceaccount:backup:" in text(rules, "slurm-bridge-pods")
    assert "EvenPodsSpread" in text(rules, "slurm-bridge-pods")
    honoured = dataclasses.replace(rules, honoured=frozenset({Feature.TOPOLOGY_SPREAD}))
    assert "EvenPodsSpread" not in text(honoured, "slurm-bridge-pods")
    lenient = text(dataclasses.replace(rules, strict=False), "slurm-bridge-pods")
    assert "PodFitsHostPorts" not in lenient
    assert "spec.resourceClaims" in lenient, "no kubelet starts such a pod"


def test_only_managed_namespaces_are_changed_without_being_asked() -> None:
    """By name or by labels, and never those of the cluster itself; without any there is no such policy."""
    assert not [one for one in policies.objects(PolicyRules()) if "managed" in one["metadata"]["name"]]
    rules = PolicyRules(managed=("team",), selector=selectors.parse("slurm=yes,!old"))
    by_name = named(rules, "slurm-bridge-managed-by-name", "Binding")["matchResources"]["namespaceSelector"]
    by_label = named(rules, "slurm-bridge-managed-by-label", "Binding")["matchResources"]["namespaceSelector"]
    assert by_name["matchExpressions"] == [{"key": policies.NAMESPACE, "operator": "In", "values": ["team"]}]
    assert by_label["matchExpressions"] == [
        {"key": "slurm", "operator": "In", "values": ["yes"]},
        {"key": "old", "operator": "DoesNotExist"},
        {"key": policies.NAMESPACE, "operator": "NotIn", "values": list(policies.NEVER)},
    ]


def test_an_error_about_an_object_of_others_refuses_nothing() -> None:
    """Pods are chosen before anything is evaluated, owners are not."""
    assert named(PolicyRules(), "slurm-bridge-owners")["failurePolicy"] == "Ignore"
    pods = named(PolicyRules(), "slurm-bridge-pods")
    assert pods["failurePolicy"] == "Fail"
    assert names.SCHEDULER_NAME in pods["matchConditions"][0]["expression"]


def test_a_toleration_is_added_where_one_is_configured() -> None:
    """One that the pod has already is not added again."""
    assert not [one for one in policies.objects(PolicyRules()) if "toleration" in one["metadata"]["name"]]
    for taint, fields in (
        ("managed:NoSchedule", 'key: "managed", operator: "Exists", effect: "NoSchedule"'),
        ("managed=bridge:NoExecute", 'key: "managed", operator: "Equal", value: "bridge", effect: "NoExecute"'),
    ):
        (patch,) = named(PolicyRules(taint=taint), "slurm-bridge-toleration")["mutations"]
        assert f"Object.spec.tolerations{{{fields}}}" in patch["jsonPatch"]["expression"]


@pytest.mark.parametrize("pattern", ["system:*:backup", "a?c", "[ab]c", "a.c"])
def test_a_pattern_of_accounts_means_the_same_as_for_the_webhook(pattern: str) -> None:
    """Every letter that has a meaning in regular expressions stands for itself."""
    written = re.compile(policies.regular(pattern))
    for name in ("system:x:backup", "system:backup", "abc", "ac", "bc", "a.c", "axc", "a.cd", "system:x:backup2"):
        assert bool(written.search(name)) == fnmatch.fnmatchcase(name, pattern)


def test_the_shipped_policies_are_what_the_command_prints(
    capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    """With the shipped configuration."""
    config = yaml.safe_load((PROJECT / "deploy" / "config.yaml").read_text())
    path = tmp_path / "config.yaml"
    path.write_text(config["data"]["config.yaml"])
    assert cli.main(["admission-policies", "--config", str(path)]) == 0
    printed = list(yaml.safe_load_all(capsys.readouterr().out))
    assert printed == list(yaml.safe_load_all(SHIPPED.read_text()))


EAST = """
cluster_id: east
slurm: {url: "http://127.0.0.1:1", token_file: token}
managed_namespaces: [team]
nodes: {managed_taint: "a=b:NoSchedule"}
"""


def printed(capsys: pytest.CaptureFixture[str], folder: pathlib.Path, *words: str) -> list[dict[str, Any]]:
    """What the command prints with these words."""
    path = folder / "config.yaml"
    path.write_text(EAST)
    assert cli.main(["admission-policies", "--config", str(path), *words]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def test_two_bridges_of_a_cluster_have_policies_of_their_own(
    capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    """With a name, nothing that is applied replaces what the other bridge has; each binding names its own policy."""
    names = [
        {(one["kind"], one["metadata"]["name"]) for one in printed(capsys, tmp_path, *words)}
        for words in ((), ("--name", "west"))
    ]
    assert len(names[0]) == len(names[1]) >= 10
    assert names[0].isdisjoint(names[1])
    bound = [one for one in printed(capsys, tmp_path, "--name", "west") if one["kind"].endswith("Binding")]
    assert bound
    assert all(one["spec"]["policyName"].startswith("west-") for one in bound)


@pytest.mark.parametrize("name", ["", "West", "a.b", "-a", "x" * 41])
def test_a_name_that_no_policy_can_have_is_refused(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    """With what is allowed."""
    with pytest.raises(SystemExit):
        printed(capsys, tmp_path, f"--name={name}")
    assert "use at most 40 small letters, digits and hyphens" in capsys.readouterr().err
