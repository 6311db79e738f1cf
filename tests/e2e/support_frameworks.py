"""Objects of other projects' operators: the shipped examples, in a namespace and for a daemon of a test's own."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from localcluster.config import PROJECT
from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_world
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

EXAMPLES = PROJECT / "examples" / "frameworks"

#: What an operator, Kubernetes' controllers, Slurm and KWOK do one after the other, on a busy machine.
SECONDS = 60.0

#: Objects of the whole cluster.
_OF_CLUSTER = frozenset({"ClusterQueue", "ResourceFlavor"})


def require(cluster: Mapping[str, str]) -> None:
    """Skip where these operators do not run."""
    if cluster.get("FRAMEWORKS", "0") != "1":
        pytest.skip("the local cluster has no operators of frameworks: make cluster-up FRAMEWORKS=1")


def example(world: World, name: str) -> list[Json]:
    """The documents of a file, with the names of the world in the places of those that are shipped."""
    text = (EXAMPLES / f"{name}.yaml").read_text()
    renamed = text.replace("namespace: slurm-bridge\n", f"namespace: {world.namespace}\n")
    return list(yaml.safe_load_all(renamed.replace(names.SCHEDULER_NAME, world.daemon.scheduler)))


def path(world: World, kind: str, version: str, name: str = "") -> str:
    """Where objects of a kind are."""
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    inside = "" if kind in _OF_CLUSTER else f"/namespaces/{world.namespace}"
    return f"{root}{inside}/{kind.lower()}s{name and '/' + name}"


def create(world: World, *documents: Json) -> list[Json]:
    """As a user does."""
    return [world.kube.create(path(world, one["kind"], one["apiVersion"]), one) for one in documents]


def seen(world: World, document: Json) -> Json:
    """As it is now."""
    return world.kube.get(path(world, document["kind"], document["apiVersion"], document["metadata"]["name"]))


def change(world: World, document: Json, **spec: Any) -> None:
    """A merge patch of its spec."""
    where = path(world, document["kind"], document["apiVersion"], document["metadata"]["name"])
    world.kube.merge(where, {"spec": spec})


def remove(world: World, *documents: Json) -> None:
    """With all that it owns."""
    for one in documents:
        where = path(world, one["kind"], one["apiVersion"], one["metadata"]["name"])
        world.kube.delete(f"{where}?propagationPolicy=Background")


def running(template: Json) -> Json:
    """The same template of pods that run until they are deleted."""
    metadata = template.setdefault("metadata", {})
    metadata.setdefault("annotations", {}).update(support_world.FOREVER)
    template["spec"]["terminationGracePeriodSeconds"] = 1
    return template


def await_condition(world: World, document: Json, kind: str, seconds: float = SECONDS) -> None:
    """Until its status says so."""

    def says() -> bool:
        found = seen(world, document).get("status", {}).get("conditions") or ()
        return any(one["type"] == kind and one["status"] == "True" for one in found)

    try:
        wait.until(says, f"condition {kind} of {document['kind']}", seconds, every=0.5)
    except AssertionError as error:
        lines = [str(error), str(seen(world, document).get("status")), *map(support_world.told, world.pods())]
        raise AssertionError("\n".join([*lines, world.daemon.last_words(15)])) from error
