"""The claim for extended resources of DeviceClasses: which container has which request, as kube-scheduler makes it."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from slurm_bridge.model.devices import ResourceClaim
from slurm_bridge.model.pod import Container, Pod, PodSpec, ResourceNeeds
from slurm_bridge.translate import class_resources, resources
from slurm_bridge.translate.class_resources import ClassClaim
from tests.effort import Work
from tests.unit.hooks.builders import pod

GPU, NIC = "example.com/gpu", "deviceclass.resource.kubernetes.io/nic"
CLASSES = {GPU: "gpu.example.com", NIC: "nic"}


def container(name: str, *, sidecar: bool = False, **amounts: str) -> Container:
    """One that asks for so many GPUs and NICs, and for cpus."""
    limits: dict[str, str | int | float] = {
        {"gpu": GPU, "nic": NIC}.get(key, key): value for key, value in amounts.items()
    }
    needs = ResourceNeeds(limits=limits, requests=limits)
    return Container(name=name, resources=needs, restart_policy="Always" if sidecar else None)


def asking(containers: list[Container], before: list[Container] | None = None) -> Pod:
    """A pod of these."""
    spec = PodSpec(containers=tuple(containers), init_containers=tuple(before or ()))
    return Pod(metadata=pod("a").metadata, spec=spec)


def made(asked: Pod) -> ClassClaim:
    """Its claim."""
    found = class_resources.of(asked, lambda name: CLASSES.get(name, ""))
    assert found is not None
    return found


def counts(claim: ClassClaim) -> dict[str, int]:
    """The devices of each request."""
    return {one.name: one.exactly.count for one in claim.requests if one.exactly is not None}


def requests(claim: ClassClaim) -> list[tuple[str, str]]:
    """Which container uses which request."""
    return [(one.container_name, one.request_name) for one in claim.mappings]


def test_a_container_has_a_request_for_each_resource() -> None:
    """Its number among all resources of the container is part of the name."""
    claim = made(asking([container("x", cpu="1", gpu="2", nic="1"), container("y", gpu="1")]))
    assert counts(claim) == {"container-0-request-1": 1, "container-0-request-2": 2, "container-1-request-0": 1}
    assert {(one.container_name, one.resource_name): one.request_name for one in claim.mappings} == {
        ("x", NIC): "container-0-request-1",
        ("x", GPU): "container-0-request-2",
        ("y", GPU): "container-1-request-0",
    }


CASES: Mapping[str, tuple[list[Container], list[Container], dict[str, int], list[tuple[str, str]]]] = {
    "what runs later is used before": (
        [container("i", gpu="2")],
        [container("m", gpu="3")],
        {"container-1-request-0": 3},
        [("m", "container-1-request-0"), ("i", "container-1-request-0")],
    ),
    "only what is beside it is asked for": (
        [container("i", gpu="5")],
        [container("m", gpu="3")],
        {"container-0-request-0": 2, "container-1-request-0": 3},
        [("m", "container-1-request-0"), ("i", "container-1-request-0"), ("i", "container-0-request-0")],
    ),
    "the largest of them is enough for all": (
        [container("i", gpu="4"), container("j", gpu="6")],
        [container("m", gpu="1")],
        {"container-1-request-0": 5, "container-2-request-0": 1},
        [
            ("m", "container-2-request-0"),
            ("i", "container-2-request-0"),
            ("j", "container-2-request-0"),
            ("i", "container-1-request-0"),
            ("j", "container-1-request-0"),
        ],
    ),
    "a sidecar that runs already keeps its own": (
        [container("s", sidecar=True, gpu="1"), container("i", gpu="2")],
        [container("m", gpu="1")],
        {"container-0-request-0": 1, "container-1-request-0": 1, "container-2-request-0": 1},
        [
            ("s", "container-0-request-0"),
            ("m", "container-2-request-0"),
            ("i", "container-2-request-0"),
            ("i", "container-1-request-0"),
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_containers_that_end_share_with_others(case: str) -> None:
    """In all there are as many devices as Kubernetes counts for the pod."""
    before, containers, wanted, mapped = CASES[case]
    asked = asking(containers, before)
    claim = made(asked)
    assert counts(claim) == wanted
    assert sorted(requests(claim)) == sorted(mapped)
    assert sum(wanted.values()) == resources.requests_of(asked)[GPU]


def test_no_class_no_claim() -> None:
    """Resources of device plugins are none of it, nor amounts of zero."""
    plugged = Container(name="x", resources=ResourceNeeds(limits={"other.com/gpu": "1"}))
    assert class_resources.of(asking([plugged, container("y", gpu="0")]), lambda name: CLASSES.get(name, "")) is None


def test_the_name_of_the_claim_is_always_the_same() -> None:
    """So that one whose creation was not answered is found; a pod of the same name has another one."""
    asked = asking([container("x", gpu="1")])
    assert made(asked).name == made(asked).name
    assert made(asked).name.startswith("a-extended-resources-")
    other = msgspec.structs.replace(asked, metadata=msgspec.structs.replace(asked.metadata, uid="another"))
    assert made(other).name != made(asked).name


def stored(claim: ClassClaim, **changes: Any) -> ResourceClaim:
    """As the API server answers."""
    manifest = dict(claim.manifest)
    manifest["spec"] = {"devices": {**manifest["spec"]["devices"], **changes}}
    return msgspec.json.decode(msgspec.json.encode(manifest), type=ResourceClaim)


@pytest.mark.security("input")
def test_a_claim_that_asks_for_something_else_is_told_apart() -> None:
    """A claim in the name of a pod counts only if it asks for just what the pod's extended resources are."""
    claim = made(asking([container("x", gpu="1")]))
    assert claim.is_as_made(stored(claim))
    more = [{"name": "container-0-request-0", "exactly": {"deviceClassName": "gpu.example.com", "count": 2}}]
    admin = [{"name": "container-0-request-0", "exactly": {"deviceClassName": "gpu.example.com", "adminAccess": True}}]
    for changes in ({"requests": more}, {"requests": admin}, {"constraints": [{"matchAttribute": "a/b"}]}):
        assert not claim.is_as_made(stored(claim, **changes))


@pytest.mark.security("fairness")
def test_very_many_resources_cost_little() -> None:
    """Those without any amount count for nothing; of the others enough are looked at to see that they are too many."""
    names = [f"{class_resources.DEVICE_CLASS}c{number:05}" for number in range(4000)]
    none, some = dict.fromkeys(names[:2000], "0"), dict.fromkeys(names[2000:], "1")
    needs = ResourceNeeds(limits={**none, **some})
    with Work() as done:
        found = class_resources.of(asking([Container(name="x", resources=needs)]), lambda name: name)
    assert found is not None
    assert len(found.requests) == class_resources.MOST_RESOURCES + 1
    assert done.total < 40_000
