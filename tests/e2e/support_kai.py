"""KAI's PodGroup on the local cluster: its definition, and the right to read it, for as long as a test runs."""

import contextlib
from collections.abc import Iterator

from localcluster import access
from tests import wait
from tests.e2e import support_daemon, support_servers
from tests.e2e.support_servers import Json

GROUP, VERSION = "scheduling.run.ai", "v2alpha2"
PODGROUPS = f"/apis/{GROUP}/{VERSION}/namespaces/{{}}/podgroups"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RIGHTS = "/apis/rbac.authorization.k8s.io/v1"

#: The names of KAI's definition; its schema is left to KAI.
_DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"podgroups.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "PodGroup", "listKind": "PodGroupList", "plural": "podgroups", "singular": "podgroup"},
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@contextlib.contextmanager
def defined(kube: support_servers.Kubernetes) -> Iterator[None]:
    """The API server serves PodGroups of KAI, and the daemon may read them."""
    name, path = support_daemon.fresh_name("e2e-kai"), f"{_DEFINITIONS}/podgroups.{GROUP}"
    role = {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    daemon = {"kind": "ServiceAccount", "name": access.ACCOUNT, "namespace": access.NAMESPACE}
    rule = {"apiGroups": [GROUP], "resources": ["podgroups"], "verbs": ["list", "watch"]}
    with contextlib.ExitStack() as stack:
        if kube.find(path) is None:
            kube.create(_DEFINITIONS, _DEFINITION)
            stack.callback(_withdraw, kube, path)
        for kind, plural, fields in (
            ("ClusterRole", "clusterroles", {"rules": [rule]}),
            ("ClusterRoleBinding", "clusterrolebindings", {"roleRef": role, "subjects": [daemon]}),
        ):
            head = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
            kube.create(f"{_RIGHTS}/{plural}", {**head, **fields})
            stack.callback(kube.delete, f"{_RIGHTS}/{plural}/{name}")
        wait.until(lambda: _is_served(kube), "PodGroups of KAI", 90)
        yield


def _withdraw(kube: support_servers.Kubernetes, path: str) -> None:
    """Until it is gone: one that is created meanwhile would go with it."""
    kube.delete(path)
    wait.until(lambda: kube.find(path) is None, "end of the definition", 60)


def _is_served(kube: support_servers.Kubernetes) -> bool:
    """The path is there a moment after the definition, and refuses for another one (429)."""
    try:
        return kube.find(PODGROUPS.format("default")) is not None
    except support_servers.Refused:
        return False
