"""KAI's PodGroup on the local cluster: its definition, and the right to read it, for as long as a test runs."""

import contextlib
from collections.abc import Iterator

from localcluster import access
from tests.e2e import support_daemon, support_definitions, support_servers

GROUP, VERSION = "scheduling.run.ai", "v2alpha2"
PODGROUPS = f"/apis/{GROUP}/{VERSION}/namespaces/{{}}/podgroups"
_RIGHTS = "/apis/rbac.authorization.k8s.io/v1"


@contextlib.contextmanager
def defined(kube: support_servers.Kubernetes) -> Iterator[None]:
    """The API server serves PodGroups of KAI, and the daemon may read them."""
    name = support_daemon.fresh_name("e2e-kai")
    role = {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    daemon = {"kind": "ServiceAccount", "name": access.ACCOUNT, "namespace": access.NAMESPACE}
    rule = {"apiGroups": [GROUP], "resources": ["podgroups"], "verbs": ["list", "watch"]}
    with contextlib.ExitStack() as stack:
        for kind, plural, fields in (
            ("ClusterRole", "clusterroles", {"rules": [rule]}),
            ("ClusterRoleBinding", "clusterrolebindings", {"roleRef": role, "subjects": [daemon]}),
        ):
            head = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
            kube.create(f"{_RIGHTS}/{plural}", {**head, **fields})
            stack.callback(kube.delete, f"{_RIGHTS}/{plural}/{name}")
        stack.enter_context(support_definitions.served(kube, GROUP, VERSION, "PodGroup", "podgroups"))
        yield
