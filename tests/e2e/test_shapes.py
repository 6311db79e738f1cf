"""Groups on machines of every sort: as many as they need, alone where they want to be, nowhere more than Slurm gave."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from slurm_bridge.model import names
from tests.e2e import support_groups, support_kinds, support_slots
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_kinds import Objects
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

#: Nodes of this partition have other names in Kubernetes, and a taint.
TOLERATED = [{"key": "local-cluster/partition", "operator": "Exists"}]

#: Not beside another one of the same Job.
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"batch.kubernetes.io/job-name": "alone"}},
            }
        ]
    }
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A Job of so many pods, and how many of them are on each node in the end."""

    pods: int
    on_nodes: Sequence[int]
    partition: str = "batch"
    marks: Mapping[str, str] = dataclasses.field(default_factory=dict)
    spec: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    containers: Sequence[Json] = dataclasses.field(default_factory=support_kinds.containers)


CASES = {
    "cpus": Case(pods=5, on_nodes=(3, 2), containers=support_kinds.containers(cpu="20")),
    "memory": Case(pods=3, on_nodes=(2, 1), containers=support_kinds.containers(memory="100Gi")),
    "wide": Case(pods=3, on_nodes=(1, 1, 1), containers=support_kinds.containers(cpu="60")),
    "fractions": Case(pods=6, on_nodes=(6,), containers=support_kinds.containers(cpu="500m", memory="100Mi")),
    "alone": Case(pods=3, on_nodes=(1, 1, 1), spec={"affinity": APART}),
    "marked": Case(pods=3, on_nodes=(1, 1, 1), marks={"one-per-node": "true"}),
    "capped": Case(pods=4, on_nodes=(2, 2), marks={"mem-per-node": "150Mi"}),
    "exclusive": Case(pods=2, on_nodes=(2,), marks={"exclusive": "true"}),
    "whole": Case(pods=2, on_nodes=(2,), partition="exclusive"),
    "threads": Case(pods=3, on_nodes=(3,), partition="smt"),
    "odd-threads": Case(pods=3, on_nodes=(2, 1), partition="smt", containers=support_kinds.containers(cpu="31")),
    "renamed": Case(
        pods=3,
        on_nodes=(2, 1),
        partition="mapped",
        spec={"tolerations": TOLERATED},
        containers=support_kinds.containers(cpu="30"),
    ),
    "blocked": Case(pods=3, on_nodes=(1, 1, 1), partition="blocks", containers=support_kinds.containers(cpu="60")),
    "racked": Case(
        pods=2,
        on_nodes=(1, 1),
        spec={"nodeSelector": {"topology.local/rack": "rack3"}},
        containers=support_kinds.containers(cpu="60"),
    ),
    "typed": Case(
        pods=4,
        on_nodes=(4,),
        partition="gpu",
        marks={"gres": "gpu:a100:1"},
        containers=support_kinds.containers(gpus=1),
    ),
}


@pytest.fixture(scope="module")
def world(open_world: OpenWorld) -> World:
    """One daemon for all."""
    return open_world("shapes")


@pytest.mark.real
@pytest.mark.parametrize("name", CASES)
def test_a_group_is_packed_as_it_asks(world: World, name: str) -> None:
    """One job, as few nodes as that takes, and in the end they are free again."""
    case, objects = CASES[name], Objects(world)
    marks = {"gang": "true", "partition": case.partition, **case.marks}
    pods = support_kinds.template(world, containers=list(case.containers), **case.spec)
    annotations = {names.JOB_PREFIX + key: value for key, value in marks.items()}
    objects.create("Job", name, support_kinds.job_spec(pods, case.pods), annotations)
    members = support_groups.placed(world, name, case.pods)
    job = support_groups.together(world, members)
    found = support_groups.on_nodes(members)
    assert sorted(map(len, found.values()), reverse=True) == list(case.on_nodes)
    ranks = [int(one.split("-")[-2]) for node in job.node_names for one in found.get(node, ())]
    assert ranks == sorted(ranks), "ranks follow the nodes"
    assert set(map(support_slots.where, members)) == set(job.node_names), "every node of the job has a member"
    objects.delete("Job", name)
    world.await_nothing_in_slurm(30)
