"""On a small cluster pods go to the nodes that a node sort prefers, and to others when these are full."""

import importlib.metadata
import pathlib
import types
from collections.abc import Mapping

import pytest

from slurm_bridge import errors
from slurm_bridge.families.yunikorn import node_sorts
from slurm_bridge.model import names
from slurm_bridge.runtime import packages
from tests.component.families.yunikorn.yunikorn_scenes import Queues, document, queue
from tests.component.scheduler.whole_core import Bridge

SORT = names.JOB_PREFIX + "node-sort-policy"


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus; n3 has a pod of another scheduler."""
    return Bridge(tmp_path)


def used(bridge: Bridge, **partition: object) -> Queues:
    """One cpu of n1 is in use, three of n2, one of n3, and none of n4."""
    for job_id in bridge.slurm.control.jobs():
        bridge.slurm.control.end(job_id)
    configuration = document(queue("a"), **partition)
    queues = Queues(bridge, configuration=configuration)
    for node, cpu in (("n1", "1"), ("n2", "3")):
        queues.pod(f"on-{node}", cpu=cpu, spec={"nodeSelector": {"kubernetes.io/hostname": node}})
        bridge.until(lambda node=node: bridge.node_of(f"on-{node}") == node)
    bridge.run(2)
    return queues


def placed(queues: Queues, name: str, **changes: object) -> str:
    """Where a pod comes to run."""
    queues.pod(name, **changes)
    queues.bridge.until(lambda: queues.bridge.node_of(name))
    return queues.bridge.node_of(name)


@pytest.mark.parametrize(("sort", "node"), [("binpacking", "n2"), ("fair", "n4")])
def test_an_application_chooses_the_fullest_node_or_the_emptiest(bridge: Bridge, sort: str, node: str) -> None:
    """Slurm by itself would take the first one that has room."""
    queues = used(bridge)
    assert placed(queues, "usual") == "n1"
    assert placed(queues, "mine", annotations={SORT: sort}) == node


@pytest.mark.parametrize(("sort", "node"), [("binpacking", "n2"), ("fair", "n4")])
def test_a_partition_chooses_it_for_all(bridge: Bridge, sort: str, node: str) -> None:
    """As YuniKorn's `nodesortpolicy`."""
    queues = used(bridge, nodesortpolicy={"type": sort})
    assert placed(queues, "mine") == node


def test_the_fullest_node_that_has_room_is_meant(bridge: Bridge) -> None:
    """On n2 there is room for one cpu only."""
    queues = used(bridge)
    assert placed(queues, "mine", cpu="2", annotations={SORT: "binpacking"}) in ("n1", "n3")


def test_pods_that_come_at_once_do_not_wait_for_the_best_nodes_for_long(bridge: Bridge) -> None:
    """They ask for more cpus than there are on the two fullest ones."""
    queues = used(bridge)
    pods = [f"p{number}" for number in range(8)]
    for name in pods:
        queues.pod(name, annotations={SORT: "binpacking"})
    bridge.run(25)
    assert queues.running(*pods) == pods


def by_memory(capacity: Mapping[str, int], allocated: Mapping[str, int]) -> float:
    """An order of a site: the node of which most memory is used comes last, and cpus do not matter."""
    return allocated["memory"] / capacity["memory"]


def broken(_capacity: Mapping[str, int], _allocated: Mapping[str, int]) -> float:
    """No number."""
    return float("nan")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with two orders, and one that cannot be loaded."""
    group, here = node_sorts.GROUP, __name__
    found = {
        name: importlib.metadata.EntryPoint(name, f"{here}:{what}", group)
        for name, what in (("by-memory", "by_memory"), ("broken", "broken"), ("lost", "nothing"), ("odd", "SORT"))
    }
    monkeypatch.setattr(packages, "offered", lambda one: types.MappingProxyType(found if one == group else {}))


@pytest.mark.usefixtures("installed")
def test_an_order_of_a_package_is_used_where_configuration_names_it(bridge: Bridge) -> None:
    """By a workload, or by the partition."""
    queues = used(bridge)
    queues.pod("early", annotations={SORT: "by-memory"})
    bridge.run(3)
    reason, message = queues.said("early")
    assert reason == "QueueRejected"
    assert "'by-memory': use fair or binpacking, or leave the annotation out" in message
    queues.configure(configuration=document(queue("a")), node_sorts=["by-memory"])
    bridge.until(lambda: bridge.node_of("early"))
    assert bridge.node_of("early") == "n4"


@pytest.mark.usefixtures("installed")
def test_an_order_that_says_no_number_stops_no_pod(bridge: Bridge) -> None:
    """All nodes are as good as each other, for it and for the pods of others."""
    queues = used(bridge)
    queues.configure(configuration=document(queue("a"), nodesortpolicy={"type": "broken"}), node_sorts=["broken"])
    assert placed(queues, "mine")
    assert placed(queues, "fair", annotations={SORT: "fair"}) == "n4"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none", "node_sorts: none: is not installed .*; installed are broken, by-memory, lost, odd"),
        ("lost", "node_sorts: lost: cannot be loaded: AttributeError"),
        ("odd", "node_sorts: odd: cannot be called with two arguments"),
        ("fair", "node_sorts: fair: is built in"),
    ],
)
def test_an_order_that_cannot_be_used_is_refused_with_its_name(bridge: Bridge, name: str, words: str) -> None:
    """The configuration is not used."""
    with pytest.raises(errors.BadConfiguration, match=words):
        Queues(bridge, queue("a"), node_sorts=[name])


@pytest.mark.usefixtures("installed")
def test_a_partition_that_names_an_order_that_the_hook_may_not_use_is_refused(bridge: Bridge) -> None:
    """What is installed does nothing by itself."""
    with pytest.raises(errors.BadConfiguration, match="is 'by-memory'; use fair or binpacking"):
        Queues(bridge, configuration=document(queue("a"), nodesortpolicy={"type": "by-memory"}))
