"""After the allocation: nodes that are not in one domain of a required level are given back."""

from collections.abc import Mapping

import msgspec
import pytest

from slurm_bridge.hooks.base import Deny
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.model.workload import Workload
from tests.unit.families.kai import racks
from tests.unit.families.kai.racks import RACK, REQUIRED, SUBGROUP, ZONE, cluster, member, planned, team, tried
from tests.unit.families.kai.test_kai_asking import owned, running
from tests.unit.hooks.builders import Around, hook


@pytest.fixture
def chain(around: Around) -> Chain:
    """With this hook alone."""
    return racks.chain(around)


def denied(chain: Chain, job: Workload, *nodes: str, seen: racks.ClusterSnapshot | None = None) -> set[str]:
    """The nodes that cannot be used, of one for each pod."""
    allocated: Mapping[str, str] = {pod.uid: name for pod, name in zip(job.pods, nodes, strict=True)}
    found = chain.verify(job, allocated, seen or cluster())
    assert found is None or isinstance(found, Deny)
    return set(found.nodes) if found is not None else set()


def test_nodes_of_one_domain_are_good(chain: Chain) -> None:
    """Of the required level, whatever is preferred; without one any nodes are."""
    assert denied(chain, team(2, required=RACK), "n0", "n1") == set()
    assert denied(chain, team(2, required=ZONE, preferred=RACK), "n0", "n3") == set()
    assert denied(chain, team(2, preferred=RACK), "n0", "n7") == set()
    assert denied(chain, team(2), "n0", "n7") == set()


def test_a_node_of_another_domain_is_denied(chain: Chain) -> None:
    """The one that most are not with; and a node that is in none."""
    assert denied(chain, team(3, required=RACK), "n0", "n1", "n2") == {"n2"}
    nowhere = cluster(levels=("hall", RACK))
    assert denied(chain, team(2, required=RACK), "n0", "n1", seen=nowhere) == {"n0", "n1"}
    found = chain.verify(team(2, required=RACK), {"uid-p0": "n0", "uid-p1": "n2"}, cluster())
    assert isinstance(found, Deny)
    assert found.message == (
        "nodes that Slurm allocated are not in one domain with the others: n2 "
        "(Job team/train has required one rack for its 2 pods)"
    )


def test_each_part_has_its_own_domain(chain: Chain) -> None:
    """As its pods say."""
    pods = [
        member(number, marks={REQUIRED: RACK}, labels={SUBGROUP: name}) for number, name in enumerate(("a", "a", "b"))
    ]
    assert denied(chain, racks.job(*pods), "n0", "n1", "n6") == set()
    assert denied(chain, racks.job(*pods), "n0", "n2", "n6") == {"n2"}


def test_a_member_that_is_made_anew_goes_to_the_others(chain: Chain) -> None:
    """Where they run is settled."""
    job = racks.job(owned(member(0)), required=RACK)
    seen = cluster(running=[running("old", "n2")])
    assert denied(chain, job, "n3", seen=seen) == set()
    assert denied(chain, job, "n0", seen=seen) == {"n0"}


def test_another_hook_that_fails_and_is_skipped_weakens_no_requirement(around: Around) -> None:
    """Each attempt is one rack."""
    broken = hook("broken", "skip", subset=lambda *_: {}["x"])
    plan = planned(racks.chain(around, broken), team(2, required=RACK), cluster())
    assert set(tried(plan)) == {"n0 n1", "n2 n3", "n4 n5", "n6 n7"}


def test_a_member_that_is_made_anew_goes_to_its_own_part(chain: Chain) -> None:
    """Also where equal pods of another part run."""
    marks, labels = {REQUIRED: RACK}, {SUBGROUP: "a"}

    def of(part: str, name: str, node: str) -> racks.Pod:
        one = running(name, node)
        return msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, labels={SUBGROUP: part}))

    job = racks.job(owned(member(0, marks=marks, labels=labels)), owned(member(1, marks=marks, labels={SUBGROUP: "b"})))
    seen = cluster(running=[of("a", "old-a", "n2"), of("b", "old-b", "n4")])
    assert denied(chain, job, "n3", "n5", seen=seen) == set()
    assert denied(chain, job, "n5", "n3", seen=seen) == {"n3", "n5"}
