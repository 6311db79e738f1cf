"""Requests with alternatives (firstAvailable): the first one that nodes have, whatever is in use."""

import pathlib
from typing import Any

import pytest

from slurm_bridge.model import kinds
from tests.component.scheduler.claimed_devices import DRIVER, Devices, Json, bridge_of, results_of, using
from tests.component.scheduler.gang_scenes import bound, gang, job_of
from tests.component.scheduler.test_device_claims import MODEL, asked
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE

SMALL, BIG = f"{MODEL} == 'small'", f"{MODEL} == 'big'"


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """On hybrid nodes, with the hook: n1 has four small GPUs, n2 four big ones and n4 two."""
    return bridge_of(tmp_path)


@pytest.fixture
def devices(bridge: Bridge) -> Devices:
    """The GPUs of its nodes."""
    return Devices(bridge)


def option(name: str, count: int = 1, *conditions: str, **more: Any) -> Json:
    """One alternative."""
    selectors = [{"cel": {"expression": one}} for one in conditions]
    return {"name": name, "deviceClassName": DRIVER, "count": count, "selectors": selectors, **more}


def first_of(*options: Json, name: str = "gpu") -> Json:
    """A request with these alternatives."""
    return {"name": name, "firstAvailable": list(options)}


def alternatives(bridge: Bridge, pod: str, devices: Devices) -> set[str]:
    """The requests for which the claims of a pod have devices."""
    assert bridge.node_of(pod)
    return {one["request"] for claim in devices.of(pod) for one in results_of(claim)}


def test_what_no_node_has_is_passed_over(bridge: Bridge, devices: Devices) -> None:
    """Five on one node, devices of no node, a condition that cannot be read: then three."""
    devices.template(
        "any",
        first_of(
            option("five", 5), option("none", 1, f"{MODEL} == 'x'"), option("odd", 2, "true ||"), option("three", 3)
        ),
    )
    bridge.pod("a", spec=using("any"))
    bridge.until(lambda: bridge.node_of("a"))
    assert asked(bridge) == "gpu:3"
    assert alternatives(bridge, "a", devices) == {"gpu/three"}


def test_what_slurm_cannot_be_asked_for_is_passed_over(bridge: Bridge, devices: Devices) -> None:
    """A field that is refused; only where nothing is left the pod waits, with words about the first."""
    odd = option("odd", allocationMode="Some")
    devices.claim("some", first_of(odd, option("two", 2)))
    devices.claim("none", first_of(odd, option("admin", adminAccess=True)))
    bridge.pod("a", spec=using(it="some"))
    bridge.pod("b", spec=using(it="none"))
    bridge.until(lambda: bridge.node_of("a"))
    assert asked(bridge) == "gpu:2"
    assert "allocationMode Some" in bridge.condition("b")[1]


def test_what_is_in_use_is_waited_for(bridge: Bridge, devices: Devices) -> None:
    """The order of the alternatives is the user's wish, and Slurm's queue knows when devices become free."""
    devices.template("four", first_of(option("big", 4, BIG), option("one", 1, SMALL)))
    bridge.pod("a", spec=using("four"))
    bridge.until(lambda: bridge.node_of("a"))
    bridge.pod("b", spec=using("four"))
    bridge.run(5)
    assert bridge.node_of("b") == ""
    assert asked(bridge, "b") == "gpu:4"


@pytest.mark.parametrize(("node", "chosen", "count"), [("n1", "small", 1), ("n2", "big", 2)])
def test_only_nodes_count_that_the_pod_may_use(
    bridge: Bridge, devices: Devices, node: str, chosen: str, count: int
) -> None:
    """By its selector, its partition and its size."""
    devices.template("two", first_of(option("big", 2, BIG), option("small", 1, SMALL)))
    bridge.pod("a", spec={**using("two"), "nodeSelector": {"kubernetes.io/hostname": node}})
    bridge.until(lambda: bridge.node_of("a"))
    assert asked(bridge) == f"gpu:{count}"
    assert alternatives(bridge, "a", devices) == {f"gpu/{chosen}"}


def test_alternatives_that_are_the_same_to_slurm_are_one(bridge: Bridge, devices: Devices) -> None:
    """Any node with one of them will do, and each claim gets the first that its node has."""
    devices.template("one", first_of(option("big", 2, BIG), option("small", 2, SMALL)))
    for name in "abcde":
        bridge.pod(name, spec=using("one"))
    bridge.until(lambda: all(map(bridge.node_of, "abcde")))
    told = {name: alternatives(bridge, name, devices) for name in "abcde"}
    assert told == {name: {"gpu/small" if bridge.node_of(name) == "n1" else "gpu/big"} for name in "abcde"}


def test_a_gang_takes_the_first_that_there_is_for_all_of_it(bridge: Bridge, devices: Devices) -> None:
    """Four big ones for each of three pods are nowhere; for three pods there are two each."""
    devices.template("each", first_of(option("four", 4), option("two", 2, BIG)))
    pods = gang(bridge, 3, spec=using("each"))
    bridge.until(lambda: all(bound(bridge, pods)))
    assert {one for pod in pods for one in alternatives(bridge, pod, devices)} == {"gpu/two"}
    assert not [job for job in bridge.jobs() if job is not job_of(bridge)]


def test_several_requests_are_chosen_together(bridge: Bridge, devices: Devices) -> None:
    """The first request's first alternative counts most; no node has small and big ones."""
    devices.template(
        "pair",
        first_of(option("small", 1, SMALL), option("big", 1, BIG), name="x"),
        first_of(option("big", 2, BIG), option("small", 2, SMALL), name="y"),
    )
    bridge.pod("a", spec=using("pair"))
    bridge.until(lambda: bridge.node_of("a"))
    assert alternatives(bridge, "a", devices) in ({"x/small", "y/small"}, {"x/big", "y/big"})
    assert asked(bridge) == "gpu:3"


def test_when_the_devices_go_the_next_alternative_is_asked_for(bridge: Bridge, devices: Devices) -> None:
    """A job that waits in Slurm is changed, and no pod waits for what is gone."""
    bridge.pod("all", spec={**using("four"), "nodeSelector": {"kubernetes.io/hostname": "n2"}})
    devices.template("four", first_of(option("big", 4, BIG), option("one", 1, SMALL)))
    bridge.until(lambda: bridge.node_of("all"))
    bridge.pod("a", spec=using("four"))
    bridge.run(3)
    assert asked(bridge) == "gpu:4"
    devices.retract("n2")
    bridge.until(lambda: bridge.node_of("a"))
    assert alternatives(bridge, "a", devices) == {"gpu/one"}


@pytest.mark.security("fairness")
def test_too_many_combinations_are_told(bridge: Bridge, devices: Devices) -> None:
    """Claims whose alternatives have more than sixteen combinations are refused in words, before any is looked at."""
    many = [first_of(*(option(f"o{one}", one + 1) for one in range(8)), name=f"r{row}") for row in range(8)]
    devices.claim("many", *many)
    devices.template("four", *(first_of(option("a"), option("b", 2), name=f"r{row}") for row in range(3)))
    bridge.pod("a", spec=using(it="many"))
    bridge.pod("b", spec=using("four", again="four"))
    bridge.kube.create(
        kinds.RESOURCECLAIMS,
        {
            "metadata": {"name": "four", "namespace": NAMESPACE},
            "spec": {"devices": {"requests": [first_of(option("a"), option("b", 2), name=f"r{n}") for n in range(3)]}},
        },
    )
    bridge.run(3)
    assert f"{8**8} combinations of alternatives; at most 16 are allowed" in bridge.condition("a")[1]
    assert "64 combinations of alternatives; at most 16 are allowed" in bridge.condition("b")[1]
    assert bridge.submits() == 0
