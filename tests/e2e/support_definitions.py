"""Kinds that the local cluster does not have, defined in its API server for as long as a test runs."""

import contextlib
from collections.abc import Iterator

from tests import wait
from tests.e2e import support_servers
from tests.e2e.support_servers import Json

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def _definition(group: str, version: str, kind: str, plural: str) -> Json:
    """The names alone; any field is accepted."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }


@contextlib.contextmanager
def served(kube: support_servers.Kubernetes, group: str, version: str, kind: str, plural: str) -> Iterator[None]:
    """The API server has this kind; one that was there before stays."""
    path = f"{_DEFINITIONS}/{plural}.{group}"
    with contextlib.ExitStack() as stack:
        if kube.find(path) is None:
            kube.create(_DEFINITIONS, _definition(group, version, kind, plural))
            stack.callback(_withdraw, kube, path)
        wait.until(lambda: _is_served(kube, f"/apis/{group}/{version}/{plural}"), f"{kind} of {group}", 90)
        yield


def _withdraw(kube: support_servers.Kubernetes, path: str) -> None:
    """Until it is gone: one that is created meanwhile would go with it."""
    kube.delete(path)
    wait.until(lambda: kube.find(path) is None, "end of the definition", 60)


def _is_served(kube: support_servers.Kubernetes, path: str) -> bool:
    """The path is there a moment after the definition, and refuses for another one (429)."""
    try:
        return kube.find(path) is not None
    except support_servers.Refused:
        return False
