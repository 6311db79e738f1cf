"""A look at both sides says how far a pod has come, and two looks what happened between them."""

import dataclasses

import pytest

from slurm_bridge.demo import scene
from slurm_bridge.demo.scene import Bar, Frame, JobSeen, PodRow, PodSeen, PodStage


def pod(*, phase: str = "Pending", node: str = "", uid: str = "u1", job_id: int = 0, group: str = "") -> PodSeen:
    """A pod, which may be a member of a group."""
    owners = (uid, group) if group else (uid,)
    return PodSeen(
        uid=uid, namespace="slurm-bridge", name=f"pod-{uid}", phase=phase, node=node, job_id=job_id, owners=owners
    )


def job(*, cpus: dict[str, int] | None = None, over: bool = False, job_id: int = 7, owner: str = "u1") -> JobSeen:
    """A placeholder, of pod u1 unless told otherwise; it waits unless it holds cpus."""
    return JobSeen(job_id=job_id, owner=owner, cpus=cpus or {}, over=over, why="Resources")


def row(stage: PodStage, uid: str = "u1") -> PodRow:
    """A pod at a stage."""
    return PodRow(uid=uid, name=f"pod-{uid}", stage=stage)


def test_a_pod_that_is_not_submitted_says_why() -> None:
    """In the words of its condition, until it is submitted; the reason of most pods comes first."""
    held = [
        dataclasses.replace(pod(uid=uid), why=why) for uid, why in (("a", "Late"), ("b", "Office"), ("c", "Office"))
    ]
    seen = scene.rows({}, held, {}, 1.0)
    assert scene.obstacles(frame(*seen)) == [("Office", 2), ("Late", 1)]
    (queued,) = scene.rows({}, held[:1], {"a": job(owner="a")}, 1.0)
    assert (queued.stage, queued.why) == (PodStage.QUEUED, "Resources")


def frame(*rows: PodRow) -> Frame:
    """A look."""
    return Frame(seconds=1.0, rows=rows)


@pytest.mark.parametrize(
    ("seen", "placeholder", "stage"),
    [
        (pod(), None, PodStage.PENDING),
        (pod(), job(over=True), PodStage.PENDING),
        (pod(), job(), PodStage.QUEUED),
        (pod(), job(cpus={"n1": 2}), PodStage.ALLOCATED),
        (pod(node="n1"), job(cpus={"n1": 2}), PodStage.BOUND),
        (pod(node="n1", phase="Running"), None, PodStage.BOUND),
        (pod(node="n1", phase="Succeeded"), None, PodStage.DONE),
        (pod(node="n1", phase="Failed"), job(), PodStage.FAILED),
    ],
)
def test_the_stage_follows_from_pod_and_job(seen: PodSeen, placeholder: JobSeen | None, stage: PodStage) -> None:
    """The table of the module, row by row."""
    assert scene.stage(seen, placeholder) is stage


def test_a_pod_that_disappears_before_its_end_is_gone_and_keeps_its_job() -> None:
    """Slurm has taken the node back, and the daemon deleted the pod."""
    before = {"u1": PodRow(uid="u1", name="pod-u1", stage=PodStage.BOUND, job_id=7, node="n1")}
    (found,) = scene.rows(before, (), {}, 5.0)
    assert (found.stage, found.job_id, found.node, found.since) == (PodStage.GONE, 7, "n1", 5.0)


def test_a_finished_pod_that_is_cleared_away_stays_done() -> None:
    """Its end was seen."""
    (found,) = scene.rows({"u1": row(PodStage.DONE)}, (), {}, 5.0)
    assert found.stage is PodStage.DONE


def test_rows_stay_in_the_order_in_which_they_were_first_seen() -> None:
    """Nothing jumps on the screen."""
    first = scene.rows({}, [pod(uid="b")], {}, 0.0)
    second = scene.rows({one.uid: one for one in first}, [pod(uid="a"), pod(uid="b")], {}, 1.0)
    assert [one.uid for one in second] == ["b", "a"]


def test_a_row_remembers_since_when_it_is_at_its_stage() -> None:
    """A second look at the same stage does not move the time."""
    first = scene.rows({}, [pod()], {}, 1.0)
    second = scene.rows({one.uid: one for one in first}, [pod()], {}, 2.0)
    third = scene.rows({one.uid: one for one in second}, [pod(node="n1")], {}, 3.0)
    assert [rows[0].since for rows in (first, second, third)] == [1.0, 1.0, 3.0]


def test_members_of_a_gang_have_one_job_and_know_how_many_they_are() -> None:
    """From the moment at which the group has a job; a member that ended earlier keeps it."""
    members = [pod(uid=uid, group="g") for uid in ("a", "b", "c")]
    rows = scene.rows({}, [*members, pod()], scene.newest([job(owner="g"), job(job_id=8)]), 0.0)
    assert [(row.job_id, row.members) for row in rows] == [(7, 3), (7, 3), (7, 3), (8, 1)]
    left = scene.rows({row.uid: row for row in rows}, members[:1], {}, 1.0)
    assert [(row.stage, row.job_id, row.members) for row in left][:2] == [
        (PodStage.PENDING, 7, 3),
        (PodStage.GONE, 7, 3),
    ]
    assert scene.job_of(rows[0]) == "job 7 of 3 pods"


def test_a_member_that_is_bound_names_its_own_job() -> None:
    """Its group may have another one by now."""
    jobs = scene.newest([job(owner="g", job_id=9)])
    old, new = scene.rows({}, [pod(uid="a", group="g", node="n1", job_id=7), pod(uid="b", group="g")], jobs, 0.0)
    assert (old.job_id, new.job_id) == (7, 9)


def test_which_of_several_nodes_a_member_comes_to_its_binding_tells() -> None:
    """Until then it is one of so many."""
    jobs = scene.newest([job(owner="g", cpus={"n1": 2, "n2": 2})])
    coming, there = scene.rows({}, [pod(uid="a", group="g"), pod(uid="b", group="g", node="n2", job_id=7)], jobs, 0.0)
    assert (coming.node, there.node) == ("2 nodes", "n2")


def test_a_job_that_lives_counts_before_one_that_ended() -> None:
    """A pod that was submitted twice has the second job."""
    assert scene.newest([job(job_id=2), job(job_id=1, over=True)])["u1"].job_id == 2


def test_bars_add_what_running_jobs_hold() -> None:
    """Jobs that are over hold nothing, and nodes without jobs are empty."""
    jobs = [job(cpus={"n1": 2}), job(cpus={"n1": 1, "n2": 1}), job(cpus={"n2": 5}, over=True)]
    assert scene.bars({"n2": 8, "n1": 4, "n3": 4}, jobs) == (
        Bar(node="n1", used=3, cpus=4),
        Bar(node="n2", used=1, cpus=8),
        Bar(node="n3", used=0, cpus=4),
    )


def test_stages_that_were_passed_between_two_looks_are_told_too() -> None:
    """The allocation of a pod lasts a few milliseconds."""
    told = [stage for _, stage in scene.steps(frame(row(PodStage.PENDING)), frame(row(PodStage.BOUND)))]
    assert told == [PodStage.QUEUED, PodStage.ALLOCATED, PodStage.BOUND]


def test_a_new_pod_is_told_from_its_beginning() -> None:
    """Also before the first look."""
    assert [stage for _, stage in scene.steps(None, frame(row(PodStage.QUEUED)))] == [PodStage.PENDING, PodStage.QUEUED]


def test_nothing_is_told_twice() -> None:
    """The same look twice."""
    assert scene.steps(frame(row(PodStage.BOUND)), frame(row(PodStage.BOUND))) == []


def test_a_way_back_is_told_as_it_is() -> None:
    """A job that a crash has lost: the pod waits again."""
    assert [stage for _, stage in scene.steps(frame(row(PodStage.ALLOCATED)), frame(row(PodStage.PENDING)))] == [
        PodStage.PENDING
    ]


def test_an_end_that_is_not_good_is_told_without_the_way_there() -> None:
    """Failed and gone stand beside the way."""
    assert [stage for _, stage in scene.steps(frame(row(PodStage.QUEUED)), frame(row(PodStage.GONE)))] == [
        PodStage.GONE
    ]
