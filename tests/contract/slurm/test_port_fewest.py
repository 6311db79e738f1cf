"""The fewest nodes first: a gang is placed on the one node that has room for it, or on more."""

import dataclasses

import pytest
from slurm_port import Port

from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.daemon import slurm_fit
from slurm_bridge.hooks import attempts
from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.hooks.chain import Chain, Plan
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model import meta, node, pod
from slurm_bridge.model.job import Done, JobRequest
from slurm_bridge.model.names import JobId
from slurm_bridge.model.workload import Gang, Root, Workload
from slurm_bridge.runtime import clock
from slurm_bridge.translate import resources, translator
from slurm_bridge.translate.rules import Rules

CPUS = 64
#: Free cpus of three nodes: left alone, Slurm takes the first two for eight tasks.
FRAGMENTS = (4, 4, 8)
GANG = tuple(
    pod.Pod(
        metadata=meta.ObjectMeta(name=f"gang-{number}", namespace="contract", uid=f"uid-{number}"),
        spec=pod.PodSpec(
            containers=(
                pod.Container(name="main", resources=pod.ResourceNeeds(requests={"cpu": "1", "memory": "100Mi"})),
            )
        ),
    )
    for number in range(8)
)


@pytest.fixture
def fragments(port: Port) -> list[str]:
    """Three plain nodes with little room."""
    names = port.desk.idle("plain", len(FRAGMENTS))
    for name, left in zip(names, FRAGMENTS, strict=True):
        _occupy(port, name, CPUS - left)
    return names


def test_what_is_used_of_a_node_is_told(port: Port, fragments: list[str]) -> None:
    """Cpus and memory, for the jobs of all users."""
    used = {one.name: (one.used_cpus, one.used_memory_mib) for one in port.client.nodes() if one.name in fragments}
    memory = port.request().memory.mib
    expected = [(CPUS - left, memory) for left in FRAGMENTS]
    assert [used[name] for name in fragments] == expected


def test_left_alone_a_gang_spreads(port: Port, fragments: list[str]) -> None:
    """Over nodes in their order, though one has room for all of it: this is what a maximum is for."""
    plain = dataclasses.replace(_planned(port, fragments).request, maximum_nodes=None)
    assert _spread(port, port.made(plain)) == {fragments[0]: 4, fragments[1]: 4}


def test_a_gang_goes_to_the_one_node_with_room(port: Port, fragments: list[str]) -> None:
    """Asked for with a maximum of one."""
    planned = _planned(port, fragments)
    assert planned.request.maximum_nodes == 1
    assert _spread(port, port.made(planned.request)) == {fragments[2]: 8}


def test_a_gang_whose_room_was_taken_is_widened(port: Port, fragments: list[str]) -> None:
    """The maximum of the waiting job is raised by an update, and it starts on two nodes."""
    planned = _planned(port, fragments)
    _occupy(port, fragments[2], FRAGMENTS[2])
    job_id = port.made(planned.request)
    assert port.desk.stays(lambda: "PENDING" in port.desk.state(job_id), job_id)
    state = PlanState(version=planned.state.version, attempt=1, started=planned.state.started)
    wide = _planned(port, fragments, previous=state)
    assert wide.request.maximum_nodes == len(GANG)
    assert port.client.update(job_id, _again(wide.request, planned.request)) == Done(job_id=job_id)
    assert _spread(port, job_id) == {fragments[0]: 4, fragments[1]: 4}


def test_a_raised_maximum_does_not_spread(port: Port) -> None:
    """Slurm prefers few nodes for such a job, whatever its first maximum was."""
    names = port.desk.idle("plain", len(FRAGMENTS))
    for first in (1, 2):
        narrow = dataclasses.replace(_planned(port, names).request, maximum_nodes=first, hold=True)
        job_id = port.made(narrow)
        assert port.client.update(job_id, dataclasses.replace(narrow, maximum_nodes=8)) == Done(job_id=job_id)
        assert port.desk.update(job_id, hold=False).errors == []
        assert list(_spread(port, job_id).values()) == [8]
        port.desk.delete(job_id)


def _occupy(port: Port, name: str, cpus: int) -> None:
    """Somebody else's job."""
    port.running(excluded_nodes=port.desk.others("debug", name), minimum_nodes=1, maximum_nodes=1, tasks=cpus)


def _spread(port: Port, job_id: JobId) -> dict[str, int]:
    """How many cpus it got where."""
    port.desk.started(job_id)
    held = port.client.allocation(job_id)
    assert held is not None
    return {share.node: share.cpus for share in held.shares}


def _again(request: JobRequest, first: JobRequest) -> JobRequest:
    return dataclasses.replace(request, owner=first.owner, job_id=None)


def _planned(port: Port, names: list[str], previous: PlanState | None = None) -> Plan:
    """The gang's plan on these nodes, on which nothing else runs in Kubernetes."""
    root = Root(kind="Job", namespace="contract", name="gang", uid="gang-uid")
    gang = Workload(root=root, pods=GANG, sources=(), job_name="gang", gang=Gang(minimum=len(GANG)))
    found = translator.translate(gang, Rules(cluster_id=port.desk.job_name))
    assert isinstance(found, translator.Translated), found
    request = dataclasses.replace(
        found.request,
        name=port.desk.job_name,
        owner=port.owner(kind="Job"),
        partition="debug",
        time_limit_minutes=5,
    )
    chain = Chain([], ChainServices(clock=clock.SystemClock(), settle=slurm_fit.SlurmFit()))
    asked = dataclasses.replace(found, request=request)
    planned = chain.plan(gang, asked, _snapshot(port, names), now=0.0, previous=previous)
    assert isinstance(planned, Plan), planned
    assert planned.course is attempts.PLAIN or planned.course.attempts[-1].most == len(GANG)
    return planned


def _snapshot(port: Port, names: list[str]) -> ClusterSnapshot:
    keeper = ClusterCache(resources.requests_of)
    for name in names:
        room: dict[str, str | int | float] = {"cpu": str(CPUS), "memory": "200Gi", "pods": "110"}
        keeper.on_node(None, node.Node(metadata=meta.ObjectMeta(name=name), status=node.NodeStatus(allocatable=room)))
    keeper.set_slurm(port.client.nodes(), port.client.partitions())
    return keeper.snapshot()
