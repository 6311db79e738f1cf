"""Manifests are split and addressed without being parsed, and webhooks are redirected."""

import base64
import dataclasses

import pytest
import yaml

from localcluster import access, controllers, manifests
from localcluster.part import PartError

WEBHOOKS = controllers.Webhooks(name="x-webhooks", folder="x", port="jobset-webhook", label="x.io/name")
PUBLISHED = """---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: mutating-webhook-configuration
webhooks:
- admissionReviewVersions:
  - v1
  clientConfig:
    service:
      name: webhook-service
      namespace: system
      path: /mutate--v1-pod
  failurePolicy: Fail
  name: mpod.kb.io
  rules:
  - apiGroups: [""]
"""


@pytest.mark.parametrize("document", manifests.from_file(access.MANIFEST), ids=lambda document: document.path)
def test_rights_are_addressed_as_a_parser_would(document: manifests.Document) -> None:
    """What is read from the text is what stands in the object."""
    body = yaml.safe_load(document.text)
    meta = body["metadata"]
    expected = manifests.address(body["apiVersion"], body["kind"], meta["name"], meta.get("namespace", ""))
    assert document.path == expected


def test_addresses() -> None:
    """Core and named groups, with and without a namespace, and the plural of what ends like one."""
    assert manifests.address("v1", "Namespace", "a") == "/api/v1/namespaces/a"
    group = "rbac.authorization.k8s.io/v1"
    assert manifests.address(group, "Role", "a", "b") == f"/apis/{group}/namespaces/b/roles/a"
    group = "resource.k8s.io/v1"
    assert manifests.address(group, "DeviceClass", "a") == f"/apis/{group}/deviceclasses/a"


def test_nested_names_are_not_taken() -> None:
    """Only the name under metadata counts, wherever metadata stands."""
    (document,) = manifests.documents("kind: Pod\nspec:\n  name: wrong\napiVersion: v1\nmetadata:\n  name: right\n")
    assert document.path == "/api/v1/pods/right"


def test_text_without_a_name_is_refused() -> None:
    """A file that is no manifest is an error that shows it."""
    with pytest.raises(PartError, match="not a Kubernetes manifest"):
        list(manifests.documents("kind: Pod\napiVersion: v1\n"))


def test_webhooks_call_loopback_and_only_for_their_own_pods() -> None:
    """The published service becomes a URL with our CA, under a name of its own, limited by label."""
    url = "https://127.0.0.1:1"
    body = yaml.safe_load(controllers.redirect(PUBLISHED, WEBHOOKS, url, b"authority"))
    (webhook,) = body["webhooks"]
    assert body["metadata"]["name"] == "x-mutating-webhook-configuration"
    assert webhook["clientConfig"]["url"] == f"{url}/mutate--v1-pod"
    assert base64.b64decode(webhook["clientConfig"]["caBundle"]) == b"authority"
    assert webhook["objectSelector"]["matchExpressions"] == [{"key": "x.io/name", "operator": "Exists"}]


def test_webhooks_may_be_limited_to_namespaces() -> None:
    """Those that have a say in the pods of others ask about namespaces with their label only."""
    limited = dataclasses.replace(WEBHOOKS, label="", namespaces="x.io/managed")
    body = yaml.safe_load(controllers.redirect(PUBLISHED, limited, "https://127.0.0.1:1", b"authority"))
    (webhook,) = body["webhooks"]
    assert webhook["namespaceSelector"]["matchExpressions"] == [{"key": "x.io/managed", "operator": "Exists"}]
    assert "objectSelector" not in webhook


def test_the_daemon_may_read_no_secrets_and_bind_no_roles() -> None:
    """Its rights never grow into an administrator's."""
    rules = [rule for body in yaml.safe_load_all(access.MANIFEST.read_text()) for rule in body.get("rules", [])]
    assert rules
    assert not any("*" in rule["verbs"] + rule["resources"] + rule["apiGroups"] for rule in rules)
    assert not {"secrets", "clusterroles", "serviceaccounts/token"} & {
        name for rule in rules for name in rule["resources"]
    }
