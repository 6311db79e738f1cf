"""What a gang costs: calls by kind, and work that grows with the number of its members, never with its square."""

import collections
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.model.pod import Pod
from tests.component.scheduler import whole_core
from tests.component.scheduler.whole_core import Bridge
from tests.effort import Work
from tests.simulation.fleet import Fleet
from tests.simulation.world import NAMESPACE, World

pytestmark = pytest.mark.thorough

CPUS = 64
#: A small gang and a large one: so much larger that a square would show.
FEW, MANY = 32, 256
#: How much more the work for one member may be in a large gang than in a small one. A square makes it 8 times as much.
SLACK = 1.25


class Restless(Bridge):
    """Thinks after every single change of a pod that it hears of."""

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        super()._on_pod(old, new)
        while self._recovered and self.core.schedule_step():
            pass


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of pods are bound at one moment of these worlds."""
    monkeypatch.setattr(whole_core, "MOST_STEPS", 100_000)


def hall(folder: pathlib.Path, members: int, make: Callable[..., Bridge] = Bridge, **settings: Any) -> Bridge:
    """A bridge in a world that has room for a gang of so many, and calls counted from now on."""
    machines = {name: name for name in (f"n{number:02}" for number in range(members // CPUS + 3))}
    world = World(1, folder / "token", fleet=Fleet(nodes=machines, cpus=CPUS, memory_mib=CPUS * 1000))
    # What the observer looks at after every call is all members; others bind gangs under its eyes.
    world.weather.watcher = lambda _who: None
    bridge = make(folder, world=world, **settings)
    bridge.delete("foreign", grace=0)
    bridge.step()
    bridge.slurm_calls.forget()
    bridge.kube_calls.forget()
    return bridge


def group(bridge: Bridge, members: int) -> None:
    """A group of any pods, by nothing but labels."""
    for number in range(members):
        bridge.pod(f"g-{number}", labels={names.GROUP: "g", names.GROUP_SIZE: str(members)})


def coscheduling(bridge: Bridge, members: int) -> None:
    """A PodGroup of the coscheduling plugin."""
    bridge.kube.create(
        kinds.COSCHEDULING_PODGROUPS,
        {"metadata": {"name": "g", "namespace": NAMESPACE}, "spec": {"minMember": members}},
    )
    for number in range(members):
        bridge.pod(f"g-{number}", labels={names.LABEL_COSCHEDULING: "g"})


def podgroup(bridge: Bridge, members: int) -> None:
    """A PodGroup of Kubernetes itself."""
    bridge.kube.create(
        kinds.PODGROUPS,
        {
            "metadata": {"name": "g", "namespace": NAMESPACE},
            "spec": {"schedulingPolicy": {"gang": {"minCount": members}}},
        },
    )
    for number in range(members):
        bridge.pod(f"g-{number}", spec={"schedulingGroup": {"podGroupName": "g"}})


def jobset(bridge: Bridge, members: int) -> None:
    """A JobSet of two replicated Jobs, whose controllers make the pods."""
    needs = {"requests": {"cpu": "1", "memory": "500Mi"}}
    pod = {
        "schedulerName": names.SCHEDULER_NAME,
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "none", "resources": needs}],
    }
    half = {"parallelism": members // 2, "completions": members // 2, "template": {"spec": pod}}
    jobs = [{"name": name, "replicas": 1, "template": {"spec": half}} for name in ("a", "b")]
    bridge.kube.create(
        kinds.JOBSETS, {"metadata": {"name": "g", "namespace": NAMESPACE}, "spec": {"replicatedJobs": jobs}}
    )


Gang = Callable[[Bridge, int], None]


def _id(one: object) -> str:
    return getattr(one, "__name__", str(one))


GANGS = (group, coscheduling, podgroup, jobset)
ALL = pytest.mark.parametrize("gang", GANGS, ids=_id)


def pods(bridge: Bridge) -> Iterator[dict[str, Any]]:
    """Those of the gang, as they are."""
    return (pod for _, pod in bridge.world.pods())


def bind(bridge: Bridge, members: int) -> None:
    """Let the gang get its nodes."""

    def over() -> bool:
        placed = [bool(pod["spec"].get("nodeName")) for pod in pods(bridge)]
        return len(placed) == members and all(placed)

    bridge.until(over)
    bridge.run(2)


def arriving(folder: pathlib.Path, members: int) -> Bridge:
    """A bridge that thinks after each pod of a gang, whose job then waits, and says nothing yet."""
    bridge = hall(folder, members, Restless, status={"patience_seconds": 60.0})
    bridge.slurm.control.pause()
    return bridge


def running(folder: pathlib.Path, members: int, gang: Gang = group, **settings: Any) -> Bridge:
    """A gang whose members all have their nodes, and calls counted from now on."""
    bridge = hall(folder, members, **settings)
    gang(bridge, members)
    bind(bridge, members)
    bridge.slurm_calls.forget()
    bridge.kube_calls.forget()
    return bridge


def writes(bridge: Bridge) -> collections.Counter[str]:
    """What was written to Kubernetes, by method and the last word of the address."""
    written = [call for call in bridge.kube_calls.journal if call.method != "GET"]
    return collections.Counter(f"{call.method} {_last(call.target)}" for call in written)


def _last(target: str) -> str:
    """The subresource, or the resource."""
    *_, resource, name = target.partition("?")[0].split("/")
    return f"{resource}/" if name.startswith("g-") else name


def reads(bridge: Bridge) -> int:
    """How often the job, or what it holds, was read."""
    return bridge.slurm_calls.count(method="GET", target="/(job|resources)/\\d+")


def told(bridge: Bridge, kind: str = "pods") -> int:
    """How often the status of such an object was written."""
    return bridge.kube_calls.count(method="PATCH", target=f"/{kind}/.*/status")


# -- from the first member to the binding of the last ------------------------------------------------------------------


@pytest.mark.parametrize(("gang", "members"), [*((gang, 64) for gang in GANGS), (group, 8), (group, 512)], ids=_id)
def test_a_gang_costs_one_submit_two_reads_and_a_binding_for_each(
    tmp_path: pathlib.Path, gang: Gang, members: int
) -> None:
    """One status write for its PodGroup where it has one, at most one condition for each member, and two events."""
    bridge = hall(tmp_path, members)
    gang(bridge, members)
    bind(bridge, members)
    written = writes(bridge)
    assert bridge.submits() == 1
    assert reads(bridge) <= 2
    assert written["POST binding"] == members
    assert told(bridge, "podgroups") == (gang in (coscheduling, podgroup))
    assert bridge.kube_calls.count(method="GET", target="/podgroups/g") == 0
    assert told(bridge) <= members
    assert written["POST events"] <= 4
    assert sum(written.values()) <= 2 * members + 5
    assert len(bridge.slurm_calls.journal) <= 10


@ALL
def test_a_gang_that_starts_at_once_costs_no_conditions(tmp_path: pathlib.Path, gang: Gang) -> None:
    """Nobody reads why a pod waits that is bound before he could: as the daemon is shipped."""
    bridge = hall(tmp_path, 64, status={"patience_seconds": 2.0})
    gang(bridge, 64)
    bind(bridge, 64)
    assert told(bridge) == 0


@pytest.mark.parametrize("gang", [group, jobset], ids=_id)
def test_the_work_for_a_member_is_the_same_in_a_gang_of_any_size(tmp_path: pathlib.Path, gang: Gang) -> None:
    """From its first member to its last binding."""

    def each(members: int) -> float:
        bridge = hall(tmp_path, members)
        with Work() as work:
            gang(bridge, members)
            bind(bridge, members)
        return work.total / members

    assert each(MANY) <= SLACK * each(FEW)


@ALL
def test_members_that_arrive_one_by_one_are_gathered_when_all_are_there(tmp_path: pathlib.Path, gang: Gang) -> None:
    """Each is looked at when it comes, and ranked when all have."""

    def each(members: int) -> tuple[float, Work]:
        bridge = arriving(tmp_path, members)
        gang(bridge, members)
        with Work() as work:
            bridge.run(3)
        assert bridge.submits() == 1
        return work.total / members, work

    few, _ = each(FEW)
    many, work = each(MANY)
    assert many <= SLACK * few
    assert work.calls["rank"] <= 6 * MANY
    assert work.calls["translate"] <= 2


def test_members_beyond_the_minimum_are_gathered_when_they_have_settled(tmp_path: pathlib.Path) -> None:
    """Where nobody says how many there will be, the minimum is no reason to look at all with each that comes."""

    def each(members: int) -> float:
        bridge = arriving(tmp_path, members)
        bridge.kube.create(
            kinds.COSCHEDULING_PODGROUPS,
            {"metadata": {"name": "g", "namespace": NAMESPACE}, "spec": {"minMember": 2}},
        )
        bridge.hear()
        for number in range(members):
            bridge.pod(f"g-{number}", labels={names.LABEL_COSCHEDULING: "g"})
        with Work() as work:
            bridge.run(3)
        assert bridge.submits() == 1
        return work.total / members

    assert each(MANY) <= SLACK * each(FEW)


def test_a_jobset_of_two_thousand_pods_is_one_submit(tmp_path: pathlib.Path) -> None:
    """Though they arrive one by one."""
    bridge = arriving(tmp_path, 2000)
    jobset(bridge, 2000)
    bridge.run(3)
    assert bridge.submits() == 1
    assert bridge.jobs()[0].ask.tasks == 2000


def test_a_trickle_of_members_is_told_once_for_each_reason(tmp_path: pathlib.Path) -> None:
    """However many more have come since: that others are missing is no news."""
    bridge = hall(tmp_path, 64)
    for number in range(60):
        bridge.pod(f"g-{number}", labels={names.GROUP: "g", names.GROUP_SIZE: "64"})
        bridge.step(2.0)
    bridge.run(60)
    assert bridge.submits() == 0
    assert bridge.condition("g-0")[0] == bridge.condition("g-59")[0] == "GangIncomplete"
    assert told(bridge) <= 60


def test_who_waits_for_others_costs_nothing(tmp_path: pathlib.Path) -> None:
    """Once said, nothing is written while nothing changes, and Slurm is not asked for it."""
    bridge = hall(tmp_path, 64)
    for number in range(63):
        bridge.pod(f"g-{number}", labels={names.GROUP: "g", names.GROUP_SIZE: "64"})
    bridge.run(90, step=2)
    bridge.kube_calls.forget()
    bridge.slurm_calls.forget()
    bridge.run(120, step=2)
    assert not writes(bridge)
    assert len(bridge.slurm_calls.journal) <= 40


def test_a_gang_that_waits_in_slurm_costs_what_a_pod_costs(tmp_path: pathlib.Path) -> None:
    """One job is asked for, and nothing is written twice on any of its members."""
    bridge = hall(tmp_path, MANY)
    bridge.slurm.control.pause()
    group(bridge, MANY)
    bridge.run(30)
    assert told(bridge) <= 2 * MANY
    bridge.kube_calls.forget()
    bridge.slurm_calls.forget()
    with Work() as work:
        bridge.run(60)
    assert not writes(bridge)
    assert bridge.submits() == 0
    assert len(bridge.slurm_calls.journal) <= 60
    assert work.total <= 100 * MANY


# -- from the first end to the last ------------------------------------------------------------------------------------


def test_members_that_finish_one_by_one_cost_the_same_each(tmp_path: pathlib.Path) -> None:
    """Of those that have done their work none is looked at again when the next one has."""

    def each(members: int) -> float:
        bridge = running(tmp_path, members)
        with Work() as work:
            for number in range(members):
                bridge.status(f"g-{number}", phase="Succeeded")
                bridge.settle()
            bridge.run(2)
        assert all(job.over for job in bridge.jobs())
        assert not bridge.deletes()
        return work.total / members

    assert each(MANY) <= SLACK * each(FEW)


def test_a_lost_member_does_not_make_the_end_of_the_others_dearer(tmp_path: pathlib.Path) -> None:
    """What its loss means is asked when it is lost, and not again whenever another member has done its work."""

    def each(members: int) -> float:
        bridge = running(tmp_path, members)
        bridge.status("g-0", phase="Failed")
        bridge.settle()
        with Work() as work:
            for number in range(1, members):
                bridge.status(f"g-{number}", phase="Succeeded")
                bridge.settle()
        return work.total / members

    assert each(MANY) <= SLACK * each(FEW)


def test_members_that_leave_one_by_one_cost_the_same_each(tmp_path: pathlib.Path) -> None:
    """First the deletion of all is asked for, then they go."""

    def each(members: int) -> float:
        bridge = running(tmp_path, members)
        with Work() as work:
            for number in range(members):
                bridge.delete(f"g-{number}", grace=30)
                bridge.settle()
            for number in range(members):
                bridge.delete(f"g-{number}", grace=0)
                bridge.settle()
        assert all(job.over for job in bridge.jobs())
        return work.total / members

    assert each(MANY) <= SLACK * each(FEW)


def test_the_end_of_a_gang_is_one_note_and_one_cancel(tmp_path: pathlib.Path) -> None:
    """Whatever its size; its job may be read before."""
    bridge = running(tmp_path, 64)
    for number in range(64):
        bridge.delete(f"g-{number}", grace=0)
    bridge.run(3)
    assert all(job.over for job in bridge.jobs())
    orders = [call for call in bridge.slurm_calls.journal if call.method != "GET"]
    assert [call.method for call in orders] == ["POST", "DELETE"]
    assert not writes(bridge)


def test_members_of_a_job_that_ended_are_deleted_once_each(tmp_path: pathlib.Path) -> None:
    """A word on each, its deletion, an event, and two readings of the job at most."""

    def each(members: int) -> float:
        bridge = running(tmp_path, members)
        (job,) = bridge.jobs()
        bridge.slurm.control.end(job.job_id, "CANCELLED")
        with Work() as work:
            bridge.until(lambda: all(pod["metadata"].get("deletionTimestamp") for pod in pods(bridge)))
            bridge.run(10)
        assert bridge.deletes() == members
        assert told(bridge) == members
        assert reads(bridge) <= 3
        return work.total / members

    assert each(MANY) <= SLACK * each(FEW)


def test_a_restart_writes_nothing_and_reads_a_job_once(tmp_path: pathlib.Path) -> None:
    """A gang that runs is found again by one full list."""

    def each(members: int) -> float:
        bridge = running(tmp_path, members, coscheduling)
        bridge.start()
        with Work() as work:
            bridge.run(5)
        assert not writes(bridge)
        assert reads(bridge) <= 2
        return work.total / members

    assert each(MANY) <= SLACK * each(FEW)
