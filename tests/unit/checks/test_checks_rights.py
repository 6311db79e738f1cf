"""What is asked about our own rights, and how the answers are read."""

import dataclasses
from typing import Any

import msgspec
import pytest

from slurm_bridge.checks import rights
from slurm_bridge.checks.facts import CheckFacts, Expectations
from slurm_bridge.model import kinds
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest


@dataclasses.dataclass(slots=True, kw_only=True)
class Server:
    """Serves some kinds, allows some verbs, and keeps what it was asked."""

    kinds: tuple[Kind[Any], ...]
    verbs: tuple[str, ...] = ("list", "watch", "patch")
    asked: list[Manifest] = dataclasses.field(default_factory=list)

    def served(self, kind: Kind[Any], /) -> str | None:
        return kind.versions[0] if kind in self.kinds else None

    def create(self, kind: Kind[Any], namespace: str, manifest: Manifest, /) -> Any:
        """As an API server answers: the question, with a status and hardly any metadata."""
        assert (kind, namespace) == (rights.REVIEWS, "")
        self.asked.append(manifest)
        allowed = manifest["spec"]["resourceAttributes"]["verb"] in self.verbs
        answer = {**manifest, "metadata": {"managedFields": []}, "status": {"allowed": allowed, "reason": "RBAC: ..."}}
        return msgspec.convert(answer, kind.record)


def test_each_kind_that_is_served_is_asked_for_and_no_other() -> None:
    """A right over what is not there would only worry people."""
    server = Server(kinds=(kinds.JOBS, kinds.PODGROUPS))
    assert [str(right) for right in rights.ask(server)] == [
        "list jobs.batch",
        "watch jobs.batch",
        "list podgroups.scheduling.k8s.io",
        "watch podgroups.scheduling.k8s.io",
        "patch podgroups/status.scheduling.k8s.io",
    ]
    assert server.asked[-1] == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {
                "group": "scheduling.k8s.io",
                "resource": "podgroups",
                "verb": "patch",
                "subresource": "status",
            }
        },
    }


@pytest.mark.parametrize("verb", ["list", "watch", "patch"])
def test_only_what_is_allowed_in_so_many_words_is_allowed(verb: str) -> None:
    """Silence is a no."""
    found = rights.ask(Server(kinds=(kinds.COSCHEDULING_PODGROUPS,), verbs=(verb,)))
    assert [right.verb for right in found if right.allowed] == [verb]


@pytest.mark.parametrize("verbs", [("create",), ("list", "watch", "patch")])
def test_reviewing_tokens_is_a_right_of_its_own(verbs: tuple[str, ...]) -> None:
    """Of the whole cluster, and requested only if it is needed."""
    server = Server(kinds=(), verbs=verbs)
    assert rights.may_review_tokens(server) == ("create" in verbs)
    (asked,) = server.asked
    assert asked["spec"]["resourceAttributes"] == {
        "group": "authentication.k8s.io",
        "resource": "tokenreviews",
        "verb": "create",
        "subresource": "",
    }


def test_slices_are_asked_about_only_where_their_devices_count() -> None:
    """The table `nodes.device_gres` is empty by default."""
    server, more = Server(kinds=()), Expectations(cluster_id="one", device_gres={"gpu.x.io": "gpu"})
    without = {str(right) for right in rights.on_nodes(server, Expectations(cluster_id="one"))}
    slices = {f"{verb} resourceslices.resource.k8s.io" for verb in ("list", "watch")}
    assert {str(right) for right in rights.on_nodes(server, more)} - without == slices


LEASE = ("system", "bridge")


def leases(wanted: Expectations, *verbs: str) -> tuple[str, list[Manifest]]:
    """What the check of the election says where these verbs are allowed, and what was asked."""
    server = Server(kinds=(), verbs=verbs)
    found = rights.on_leases(server, wanted)
    (remark,) = rights.led(CheckFacts(lead_rights=found), wanted)
    return remark.message, [asked["spec"]["resourceAttributes"] for asked in server.asked]


def test_a_leader_needs_its_lease_and_no_other() -> None:
    """Its name is in the role; creation cannot be limited to a name."""
    said, asked = leases(Expectations(cluster_id="one", lease=LEASE), "get", "update")
    assert said == "not allowed: create leases.coordination.k8s.io (system)"
    assert [(one["verb"], one["namespace"], one.get("name")) for one in asked] == [
        ("get", "system", "bridge"),
        ("create", "system", None),
        ("update", "system", "bridge"),
    ]


def test_a_daemon_with_a_part_needs_more() -> None:
    """The message names the component that has it."""
    said, asked = leases(Expectations(cluster_id="one", lease=LEASE, parts=True), "get", "list", "create", "update")
    assert said == (
        "not allowed: delete leases.coordination.k8s.io (system), watch namespaces; the component deploy/parts has them"
    )
    assert {one["namespace"] for one in asked if one["resource"] == "leases"} == {"system"}


def test_without_an_election_no_right_is_asked_for() -> None:
    """A single daemon for a trial has no lease."""
    assert leases(Expectations(cluster_id="one")) == ("not needed: leader_election.enabled is off", [])


def test_with_all_rights_it_may_lead() -> None:
    """With parts and without."""
    every = ("get", "list", "watch", "create", "update", "delete")
    for parts in (False, True):
        said, _ = leases(Expectations(cluster_id="one", lease=LEASE, parts=parts), *every)
        assert said.startswith("may read and write the leases")
