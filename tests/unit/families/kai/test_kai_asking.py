"""What is free, which pods count, where others of a workload run, and how far the best nodes reach."""

import msgspec
import pytest

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kai.options import TopologyOptions
from slurm_bridge.families.kai.present import Forest, Present, PresentTopology
from slurm_bridge.families.kai.topology import CPU, GPU, MEMORY
from slurm_bridge.hooks import base
from slurm_bridge.hooks.base import Mode
from slurm_bridge.hooks.chain import Chain, asked
from slurm_bridge.model.job import Gres
from slurm_bridge.model.meta import OwnerReference
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Workload
from tests.unit.families.kai import racks
from tests.unit.families.kai.racks import RACK, ZONE, cluster, planned, team, tried
from tests.unit.hooks.builders import Around, hook, pod

PLACE = PresentTopology.of(TopologyOptions(name="dc", levels=racks.LEVELS), None)
GPUS = (Gres(name="gpu", type="a100", count=4),)
OWNER = OwnerReference(api_version="batch/v1", kind="Job", name="train", uid="uid-train", controller=True)


def owned(one: Pod) -> Pod:
    """Made by the Job."""
    return msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, owner_references=(OWNER,)))


def running(name: str, node: str, cpus: str = "4", phase: str = "Running") -> Pod:
    """A pod that has a node."""
    return owned(pod(name, requests={"cpu": cpus}, phase=phase, node_name=node))


def amounts(seen: ClusterSnapshot, kind: str, *, whole: bool = False) -> list[int]:
    """Of the first two nodes."""
    stock = Present(seen.columns, {"dc": PLACE}, whole=whole)
    found = stock.free(kind)
    return [int(found[stock.members.index[name]]) for name in ("n0", "n1")]


class TestFree:
    def test_the_smaller_of_what_both_sides_leave(self) -> None:
        """A pod of ours is in both; a job of others only in Slurm, a foreign pod only in Kubernetes."""
        seen = cluster(used={"n0": 10}, running=[running("a", "n0"), running("b", "n1")])
        assert amounts(seen, CPU) == [6000, 12000]
        assert amounts(seen, CPU, whole=True) == [16000, 16000]

    def test_memory_and_devices(self) -> None:
        """In Kubernetes' units; what a node has no device of is nothing."""
        seen = cluster(used_memory_mib=60_000, gres=GPUS, used_gres=(Gres(name="gpu", type="", count=1),))
        assert amounts(seen, MEMORY) == [4000 << 20] * 2
        assert amounts(seen, GPU) == [0, 0]

    def test_where_slurm_starts_nothing_nothing_is_free(self) -> None:
        """It may come back, and so it has not gone."""
        seen = cluster(drained=("n0",))
        assert amounts(seen, CPU) == [0, 16000]
        assert amounts(seen, CPU, whole=True) == [16000, 16000]

    def test_pods_are_counted_apart(self) -> None:
        """A node takes only so many."""
        seen = cluster(running=[running("a", "n0")])
        stock = Present(seen.columns, {"dc": PLACE}, whole=False)
        found = stock.free_pods()
        assert int(found[stock.members.index["n0"]]) == 109


class TestTrees:
    def test_a_cluster_that_is_only_imagined_changes_no_real_one(self) -> None:
        """Both know where their own nodes are."""
        forest, seen, other = Forest([PLACE]), cluster(), cluster({"n0": ("z9", "r9")})
        real = forest.at(seen.columns, keep=True)
        imagined = forest.at(other.columns, keep=False)
        assert [one.free["dc"].domain("n0") for one in (real, imagined)] == [("z1", "r1"), ("z9", "r9")]
        assert forest.at(seen.columns, keep=True).whole["dc"].domain("n0") == ("z1", "r1")

    def test_a_simulation_counts_the_tasks_that_it_is_asked_about(self, around: Around) -> None:
        """Beside the pending ones those that it has evicted only virtually."""
        chain, workload = racks.chain(around), team(2, cpus="16", required=RACK)
        ask = asked(workload, racks.asked(tasks=2))
        more = (*workload.pods, pod("evicted", requests={"cpu": "16"}))
        with chain.session(cluster(), now=1.0, mode=Mode.SIMULATED) as session:
            nodes = session.snapshot.names
            assert len(session.subset_nodes(ask, workload.pods, nodes)) == 4
            assert session.subset_nodes(ask, more, nodes) == ()


def group(count: int, cpus: str = "8", **marks: str) -> Workload:
    """Pods of one Job."""
    return racks.job(*(owned(racks.member(number, cpus)) for number in range(count)), **marks)


@pytest.fixture
def chain(around: Around) -> Chain:
    """With this hook alone."""
    return racks.chain(around)


def test_a_member_that_is_made_anew_goes_to_the_others(chain: Chain) -> None:
    """Where a level is required: the rack in which they run, and no other."""
    seen = cluster(running=[running("x", "n4"), running("y", "n6", phase="Succeeded")])
    assert tried(planned(chain, group(1, required=RACK), seen)) == ["n4 n5"]


def test_a_workload_of_one_pod_has_no_others(chain: Chain) -> None:
    """Whoever else was made by the same controller is placed by itself."""
    alone = racks.job(owned(racks.member(0)), required=RACK)
    alone = Workload(
        root=alone.root, pods=alone.pods, sources=alone.sources, job_name=alone.job_name, controller=alone.controller
    )
    assert len(tried(planned(chain, alone, cluster(running=[running("x", "n4")])))) == 10


def test_the_best_domains_first_where_none_is_enough(chain: Chain) -> None:
    """As many nodes of them as have room for all tasks, and then the whole zone; the fuller zone first."""
    seen = cluster(used={"n0": 8, "n4": 12})
    plan = planned(chain, team(3, cpus="16", required=ZONE, preferred=RACK), seen)
    assert [one.name for one in plan.course.attempts][:2] == ["dc:z2/tier 1", "dc:z2"]
    (score,) = [one for one in plan.lines if one.phase.value == "score"]
    assert score.nodes_in == 8


def test_scores_are_shown_where_a_domain_is_enough(chain: Chain) -> None:
    """The sets are all that is followed."""
    plan = planned(chain, team(2, required=ZONE, preferred=RACK), cluster())
    assert not any("tier" in one.name for one in plan.course.attempts)


@pytest.mark.parametrize(("first", "tiers"), [(True, True), (False, False)])
def test_tiers_of_another_hook_count_where_it_stands_before(first: bool, tiers: bool, around: Around) -> None:
    """Within each set; after this one nothing follows from its scores, for a workload with a preferred level."""
    said = base.Scores(nodes={"n0": 1.0, "n1": 2.0}, tiers=base.Tiers(count=2, first=1))
    (kai,) = racks.chain(around).hooks
    other = hook("other", score=said)
    found = planned(Chain([other, kai] if first else [kai, other], around.make()), team(1, preferred=RACK), cluster())
    assert any("tier" in one.name for one in found.course.attempts) == tiers


def test_who_asks_for_nothing_costs_others_nothing(around: Around) -> None:
    """The scores of another hook are taken as they are."""
    scores = base.Scores(nodes={"n0": 1.0}, tiers=base.Tiers(count=1))
    chain = racks.chain(around, hook("other", score=scores))
    with chain.session(cluster(), now=1.0) as session:
        assert session.rate_nodes(asked(team(2), racks.asked(tasks=2)), session.snapshot.names) is scores
