"""The benchmark of the queue core does what it times, and judges it."""

import pytest
from hooksbench import admission, queue_report
from hooksbench.admission import Admitted, Broken, Gate
from hooksbench.queues import QUOTAS, SHORTAGES, Crowd, Shortage, Timing

from slurm_bridge.families.yunikorn.queues.settings import SortPolicy

pytestmark = pytest.mark.thorough


def timing(milliseconds: float, nodes: int = 100) -> Timing:
    """Of a pass with all put in order anew."""
    return Timing(
        shortage="quotas", policy="fair", nodes=nodes, anew=milliseconds / 1000, one_ended=0.02, unchanged=0.001
    )


@pytest.mark.parametrize("policy", SortPolicy)
@pytest.mark.parametrize("shortage", SHORTAGES, ids=lambda one: one.name)
def test_no_application_gets_anything_before_another_gives_it_up(shortage: Shortage, policy: SortPolicy) -> None:
    """Then as much is given as there is, and nothing more."""
    crowd = Crowd(20, shortage, policy, queues=5, applications=70)
    waiting = dict(crowd.partition.root.pending)
    assert crowd.tried() == 0
    crowd.reload()
    assert crowd.tried() == 0
    assert crowd.partition.root.pending == waiting
    before = dict(crowd.partition.root.allocated)
    crowd.end_one(6)
    assert crowd.tried() > 0
    assert crowd.tried() == 0
    assert before["pods"] - 6 < crowd.partition.root.allocated["pods"] <= before["pods"]


def test_there_are_as_many_queues_and_applications_as_were_asked_for() -> None:
    """All applications wait."""
    crowd = Crowd(20, QUOTAS, SortPolicy.FAIR, queues=60, applications=120)
    assert len({leaf.path for leaf in crowd.leaves}) == 60
    assert sum(bool(one.asks) for one in crowd.partition.applications.values()) == 120


def test_admission_is_measured_alone_all_at_once_and_behind_others() -> None:
    """In the end as many run as there is room for, and the others still wait."""
    gate = Gate(nodes=5, queues=25, behind=50)
    found = admission.measure(5, 10, gate)
    assert [(one.what, one.workloads, one.behind) for one in found] == [
        ("one by one", 10, 0),
        ("all at once", 150, 0),
        ("one by one", 10, 50),
    ]
    assert len(gate.manager.new) == 100
    assert min(one.seconds for one in found) > 0


def test_a_refusal_breaks_the_run() -> None:
    """A benchmark of refusals would look fast."""
    gate = Gate(nodes=5, queues=25, behind=0)
    gate.submit([1])
    with pytest.raises(Broken):
        gate.submit([1])


def test_the_goal_is_for_what_a_pass_costs() -> None:
    """At every size; the tolerance raises it."""
    timings = [timing(99.0), timing(110.0, nodes=20_000)]
    assert queue_report.missed(timings, 0.0) == timings[1:]
    assert queue_report.missed(timings, 0.2) == []
    assert [line.split()[0] for line in queue_report.judgement(timings, 0.0).splitlines()] == ["reached", "MISSED"]


def test_the_page_gets_a_column_for_each_size() -> None:
    """Passes first, then admissions."""
    admitted = [Admitted("one by one", nodes, 10, behind, 2.0, 1.0) for nodes in (100, 1000) for behind in (0, 50)]
    page = queue_report.markdown([timing(40.0), timing(50.4, nodes=1000)], admitted).splitlines()
    assert page == [
        "| a pass over 10000 applications in 500 queues, ms of CPU | 100 nodes | 1000 nodes |",
        "|---|---|---|",
        "| all sorted anew; quotas; fair | 40 | 50 |",
        "| one has ended; quotas; fair | 20 | 20 |",
        "| no news; quotas; fair | 1.0 | 1.0 |",
        "",
        "| admission by the queue core, workloads/s | 100 nodes | 1000 nodes |",
        "|---|---|---|",
        "| one by one | 5 | 5 |",
        "| one by one, 50 others wait | 5 | 5 |",
    ]


def test_the_table_tells_passes_and_admissions() -> None:
    """For people, with processor time beside the clock."""
    told = queue_report.table([timing(40.0)], [Admitted("all at once", 100, 10, 0, 2.0, 1.0)])
    assert told.splitlines()[2].split() == "quotas; fair 100 40.0 ms 20.0 ms 1.0 ms".split()
    assert told.splitlines()[-1].split() == ["all", "at", "once", "100", "5", "10"]
