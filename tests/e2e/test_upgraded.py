"""A new daemon with the rights of an old one: it says what it may not, and works as soon as it may."""

import contextlib
import json
import pathlib
from collections.abc import Iterator, Mapping

import pytest

from tests import wait
from tests.e2e import support_daemon, support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json

RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
SHIPPED = "slurm-bridge"
SECONDS = 60.0


def without_job_sets(rules: list[Json]) -> list[Json]:
    """As they were before the daemon knew JobSets."""
    return [one for one in rules if "jobset.x-k8s.io" not in one.get("apiGroups", ())]


@contextlib.contextmanager
def account(kube: support_servers.Kubernetes, namespace: str, name: str, rules: list[Json]) -> Iterator[str]:
    """A service account with these rights in the cluster and those of deploy/ in its namespace; its token."""
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
    bound = {**head, "subjects": [subject]}
    group = {"apiGroup": "rbac.authorization.k8s.io"}
    local = f"{RIGHTS}/namespaces/{namespace}/rolebindings"
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    kube.create(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
    try:
        kube.create(f"{RIGHTS}/clusterroles", {**head, "kind": "ClusterRole", "rules": rules})
        everywhere = {**bound, "kind": "ClusterRoleBinding", "roleRef": {**group, "kind": "ClusterRole", "name": name}}
        kube.create(f"{RIGHTS}/clusterrolebindings", everywhere)
        kube.create(local, {**bound, "kind": "RoleBinding", "roleRef": {**group, "kind": "Role", "name": SHIPPED}})
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        yield str(kube.create(f"{accounts}/{name}/token", request)["status"]["token"])
    finally:
        for path in (f"{RIGHTS}/clusterrolebindings", f"{RIGHTS}/clusterroles", local, accounts):
            kube.delete(f"{path}/{name}")


@pytest.mark.real
@pytest.mark.timeout(120)
def test_a_daemon_that_may_not_list_a_served_kind_says_so_and_works_once_it_may(
    cluster: Mapping[str, str], kube: support_servers.Kubernetes, open_world: OpenWorld, work: pathlib.Path
) -> None:
    """Not ready, alive, and the kind is named; a pod of a group must not be taken for a single one."""
    name, namespace = support_daemon.fresh_name("narrow"), cluster["DAEMON_NAMESPACE"]
    rules = kube.get(f"{RIGHTS}/clusterroles/{SHIPPED}")["rules"]
    with account(kube, namespace, name, without_job_sets(rules)) as token:
        config = json.loads(pathlib.Path(cluster["KUBECONFIG_DAEMON"]).read_text())
        config["users"][0]["user"]["token"] = token
        file = work / f"{name}.kubeconfig"
        file.write_text(json.dumps(config))
        world = open_world("narrow", start=False, kubernetes={"kubeconfig": str(file)})
        world.daemon.start()
        port = int(world.daemon.settings["web"]["port"])
        wait.until(lambda: "jobsets" in support_daemon.look(port, "readyz")[1], "kind in /readyz", 30)
        assert support_daemon.look(port, "readyz")[0] != 200
        assert support_daemon.look(port, "livez")[0] == 200
        assert "jobsets" in world.daemon.last_words()
        kube.merge(f"{RIGHTS}/clusterroles/{name}", {"rules": rules})
        world.daemon.await_ready(SECONDS)
        (made,) = world.create(support_world.pod("first", world.daemon.scheduler, annotations=support_world.SHORT))
        world.await_pod(made["metadata"]["name"], "success", support_world.has_succeeded)
        world.daemon.end()
