"""The rights in deploy/ are what the adapters need, and no more."""

import itertools
import pathlib
from collections.abc import Iterator

import pytest
import yaml

from slurm_bridge.model import kinds
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object

RBAC = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "rbac.yaml"

Right = tuple[str, str, str]

#: What the ports write: verb by verb.
WRITTEN: frozenset[Right] = frozenset(
    {
        ("", "pods", "patch"),
        ("", "pods", "delete"),
        ("", "pods/status", "patch"),
        ("", "pods/binding", "create"),
        ("", "pods/eviction", "create"),
        ("", "nodes", "patch"),
        ("", "events", "create"),
        ("", "events", "patch"),
        ("events.k8s.io", "events", "create"),
        ("events.k8s.io", "events", "patch"),
        ("coordination.k8s.io", "leases", "get"),
        ("coordination.k8s.io", "leases", "create"),
        ("coordination.k8s.io", "leases", "update"),
    }
)

WATCHED = [kind for kind in kinds.ALL if kind not in (kinds.EVENTS, kinds.LEASES)]


def rights() -> Iterator[Right]:
    """Every group, resource and verb that some role grants."""
    for document in yaml.safe_load_all(RBAC.read_text()):
        for rule in document.get("rules", ()):
            assert "nonResourceURLs" not in rule
            yield from itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])


@pytest.mark.parametrize("kind", WATCHED, ids=lambda kind: f"{kind.plural}.{kind.group}")
def test_every_kind_that_is_watched_may_be_watched(kind: Kind[Object]) -> None:
    """A kind without its rule would leave the daemon waiting for a list for ever."""
    needed = {(kind.group, kind.plural, verb) for verb in ("get", "list", "watch")}
    assert needed <= set(rights())


def test_nothing_is_granted_that_nobody_uses() -> None:
    """A right without a use is a gift to whoever steals the token."""
    read = {(kind.group, kind.plural, verb) for kind in WATCHED for verb in ("get", "list", "watch")}
    assert set(rights()) == read | WRITTEN


def test_the_daemon_may_not_act_for_others() -> None:
    """No wildcard, no secrets, no impersonation, no escalation."""
    for group, resource, verb in rights():
        assert "*" not in (group, resource, verb)
        assert resource != "secrets"
        assert verb not in ("impersonate", "bind", "escalate")
