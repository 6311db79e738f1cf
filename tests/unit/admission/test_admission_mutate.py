"""What the mutating webhook changes, and what it leaves alone."""

import copy
import dataclasses
from typing import Any

import pytest

from slurm_bridge.admission.rules import MIRROR
from slurm_bridge.model import creator, names
from slurm_bridge.translate.rules import Rules
from tests.bad_manifests import deployment, job, pod
from tests.unit.admission.reviews import ASKED, DAEMON, JOB_CONTROLLER, MANAGED, OURS, RULES, Asked, Json, mutated

TAINT = {"key": "slinky.slurm.net/managed-node", "operator": "Exists", "effect": "NoExecute"}


def asked(**changes: Any) -> Asked:
    """The usual request with some changes."""
    return dataclasses.replace(ASKED, **changes)


def recorded(manifest: Json) -> str | None:
    """The record of the creator in an object."""
    found = (manifest["metadata"].get("annotations") or {}).get(names.ANNOTATION_CREATED_BY)
    return None if found is None else str(found)


@pytest.mark.parametrize(
    ("given", "namespace", "becomes"),
    [
        ("", MANAGED, OURS),
        ("default-scheduler", MANAGED, OURS),
        (OURS, MANAGED, OURS),
        ("volcano", MANAGED, "volcano"),
        ("default-scheduler", "team", "default-scheduler"),
        (OURS, "team", OURS),
        ("volcano", "team", "volcano"),
    ],
)
def test_t60_the_scheduler_of_a_pod(given: str, namespace: str, becomes: str) -> None:
    """A pod that names none gets ours in a managed namespace; any other keeps what it has."""
    made = mutated(pod("web", given), asked=asked(namespace=namespace))
    assert made["spec"]["schedulerName"] == becomes
    if becomes != OURS:
        assert made == pod("web", given)


def test_t61_the_node_is_removed_in_a_managed_namespace_on_creation_only() -> None:
    """Slurm chooses the node; a pod that has one already is never changed."""
    named = pod("web", "", nodeName="n1")
    assert "nodeName" not in mutated(named, asked=asked(namespace=MANAGED))["spec"]
    bound = pod("web", OURS, nodeName="n1")
    assert mutated(bound, bound, asked(namespace=MANAGED)) == bound
    assert mutated(named, asked=asked()) == named


@pytest.mark.security("rights")
def test_pods_of_daemonsets_and_static_pods_are_left_alone() -> None:
    """Pods of DaemonSets and static pods keep their node in managed namespaces; no user passes for a kubelet."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
    daemon = pod("web", "default-scheduler", nodeName="n1")
    daemon["metadata"]["ownerReferences"] = [owner]
    static = pod("web", "default-scheduler", {MIRROR: "x"}, nodeName="n1")
    assert mutated(daemon, asked=asked(namespace=MANAGED)) == daemon
    assert mutated(static, asked=asked(namespace=MANAGED, user="system:node:n1", groups=("system:nodes",))) == static
    assert mutated(static, asked=asked(namespace=MANAGED))["spec"]["schedulerName"] == OURS


def test_t13_the_toleration_of_managed_nodes_is_added_once() -> None:
    """A bound pod that does not tolerate the taint would be evicted."""
    rules = dataclasses.replace(RULES, toleration=TAINT)
    once = mutated(pod("web", OURS), asked=asked(rules=rules))
    assert once["spec"]["tolerations"] == [TAINT]
    assert mutated(once, asked=asked(rules=rules)) == once
    other = {"key": "a", "operator": "Exists"}
    both = mutated(pod("web", OURS, tolerations=[other]), asked=asked(rules=rules))
    assert both["spec"]["tolerations"] == [other, TAINT]
    assert "tolerations" not in mutated(pod("web", "volcano"), asked=asked(rules=rules))["spec"]


class TestEnvironment:
    """Slurm's environment as variables."""

    ASKS = {names.JOB_PREFIX + "environment": "true"}  # noqa: RUF012

    def test_a_pod_that_asks_gets_it_in_all_containers(self) -> None:
        """What a container sets itself stays, and comes last."""
        container = {"name": "c", "image": "none", "env": [{"name": "SLURM_JOB_ID", "value": "mine"}]}
        asking = pod("web", OURS, self.ASKS, containers=[container], initContainers=[{"name": "i", "image": "none"}])
        made = mutated(asking)["spec"]
        variables = [one["name"] for one in made["containers"][0]["env"]]
        assert "SLURM_PROCID" in variables
        assert variables.count("SLURM_JOB_ID") == 1
        assert made["containers"][0]["env"][-1] == {"name": "SLURM_JOB_ID", "value": "mine"}
        assert "SLURM_JOB_ID" in [one["name"] for one in made["initContainers"][0]["env"]]
        assert mutated(mutated(asking)) == mutated(asking)

    def test_other_pods_get_none(self) -> None:
        """Those that do not ask, those that refuse, and those of other schedulers."""
        everywhere = dataclasses.replace(RULES, translation=Rules(cluster_id="here", environment=True))
        for manifest, rules in (
            (pod("web", OURS), RULES),
            (pod("web", OURS, {names.JOB_PREFIX + "environment": "false"}), everywhere),
            (pod("web", "volcano", self.ASKS), everywhere),
        ):
            assert "env" not in mutated(manifest, asked=asked(rules=rules))["spec"]["containers"][0]
        assert "env" in mutated(pod("web", OURS), asked=asked(rules=everywhere))["spec"]["containers"][0]


class TestCreator:
    """The record of the user that created an object."""

    ALICE = creator.write("alice", ("physics",))

    @pytest.mark.parametrize(
        "make",
        [
            lambda notes: pod("web", OURS, notes),
            lambda notes: job("web", OURS, notes),
            lambda notes: {**deployment("web", OURS, {}), "metadata": {"name": "web", "annotations": notes}},
        ],
    )
    def test_the_user_is_recorded_whatever_the_manifest_says(self, make: Any) -> None:
        """On pods and on what makes them."""
        for notes in (None, {}, {"a": "b"}, {names.ANNOTATION_CREATED_BY: "forged"}):
            made = mutated(make(copy.deepcopy(notes)))
            assert recorded(made) == self.ALICE
            assert creator.read(recorded(made)) == creator.Creator(user="alice", groups=("physics",))

    def test_what_controllers_make_of_templates_carries_none(self) -> None:
        """It belongs to the creator of its owner."""
        forged = {names.ANNOTATION_CREATED_BY: self.ALICE}
        for manifest in (pod("web", OURS, forged), job("web", OURS, forged)):
            assert recorded(mutated(manifest, asked=asked(user=JOB_CONTROLLER))) is None
        copied = {**deployment("web", OURS, {}), "kind": "ReplicaSet"}
        copied["metadata"]["annotations"] = forged
        assert recorded(mutated(copied, asked=asked(user=JOB_CONTROLLER))) == self.ALICE

    def test_a_change_keeps_it(self) -> None:
        """`kubectl replace` would remove it; another user does not become the creator."""
        before = pod("web", OURS, {names.ANNOTATION_CREATED_BY: self.ALICE})
        for notes in ({}, {names.ANNOTATION_CREATED_BY: "forged"}):
            assert recorded(mutated(pod("web", OURS, notes), before, asked(user="bob"))) == self.ALICE
        assert recorded(mutated(pod("web", OURS, {names.ANNOTATION_CREATED_BY: "x"}), pod("web", OURS))) is None

    def test_the_user_that_gives_an_object_to_the_bridge_is_recorded(self) -> None:
        """Where the request has another record than before; the one of an earlier creator is gone."""
        before = job("web", "volcano", {names.ANNOTATION_CREATED_BY: creator.write("bob", ())})
        assert recorded(mutated(job("web", OURS), before)) == self.ALICE

    def test_accounts_that_restore_objects_keep_it(self) -> None:
        """A backup has it."""
        given = pod("web", OURS, {names.ANNOTATION_CREATED_BY: self.ALICE})
        assert mutated(given, asked=asked(user=DAEMON)) == given

    def test_objects_of_others_carry_none(self) -> None:
        """A neighbour's objects are not touched."""
        for manifest in (pod("web", "volcano"), job("web", "volcano"), job("web", "")):
            assert mutated(manifest) == manifest


def test_parts_of_pods_are_left_alone() -> None:
    """Status, bindings and resizes."""
    for sub in ("status", "resize", "ephemeralcontainers"):
        assert mutated(pod("web", ""), pod("web", ""), asked(namespace=MANAGED, sub_resource=sub)) == pod("web", "")
