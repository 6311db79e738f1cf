"""Plans from jobs, pods and nodes: what is changed, what is left alone, and that no input makes it fail."""

import dataclasses
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import marks, names
from slurm_bridge.model.job import JobState, JobView
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.names import JobId
from slurm_bridge.model.node import Node, NodeSpec, Taint
from slurm_bridge.model.pod import Pod, PodSpec, PodStatus
from slurm_bridge.scheduler import pod_index
from slurm_bridge.takeover import backward, forward, steps
from slurm_bridge.takeover.steps import AdoptJob, CancelJob, ChangePod, HandoverPlan, OurNames, ReturnJob, Scenery

OURS = OurNames(cluster_id="one", scheduler_names=("slurm-bridge-scheduler",), claim=pod_index.alone)
NODE = Node(metadata=ObjectMeta(name="k1", labels={names.LABEL_SLURM_NODE_NAME: "s1"}))


def pod(name: str = "a", job_id: object = 7, node: str = "k1", **changes: object) -> Pod:
    """A pod of the other bridge; without a node it waits."""
    meta = ObjectMeta(
        name=name,
        namespace="default",
        uid=f"uid-{name}",
        labels={names.LABEL_JOB_ID: str(job_id)},
        finalizers=(names.FINALIZER_OF_ANOTHER,),
        deletion_timestamp=changes.get("deleted"),
    )
    spec = PodSpec(node_name=node, scheduler_name=str(changes.get("scheduler", "slurm-bridge-scheduler")))
    return Pod(metadata=meta, spec=spec, status=PodStatus(phase=str(changes.get("phase", "Running"))))


def job(job_id: int = 7, *pods: str, state: str = "RUNNING", **changes: object) -> JobView:
    """A job of the other bridge on node s1."""
    text = '{"pods":[' + ",".join(f'"default/{name}"' for name in pods or ("a",)) + "]}"
    made = JobView(
        job_id=JobId(job_id), name="x", state=JobState(frozenset({state})), admin_comment=text, nodes=("s1",)
    )
    return dataclasses.replace(made, **changes)


def ours(job_id: int = 7, name: str = "a", state: str = "RUNNING", **owner: str) -> JobView:
    """A job of this bridge for that pod."""
    record = Owner(
        **{"cluster": "one", "kind": "Pod", "namespace": "default", "name": name, "uid": f"uid-{name}", **owner}
    )
    return job(job_id, state=state, owner=record, admin_comment=marks.write(record))


def planned(jobs: Iterable[JobView], pods: Iterable[Pod], *, back: bool = False, **more: object) -> HandoverPlan:
    """The plan for these."""
    scenery = Scenery(jobs=tuple(jobs), pods=tuple(pods), nodes=(NODE,), **more)  # type: ignore[arg-type]
    return (backward if back else forward).plan(scenery, OURS)


def reasons(plan: HandoverPlan) -> str:
    """Why objects are left alone."""
    return "\n".join(f"{one.subject}: {one.reason}" for one in plan.left)


def kinds(plan: HandoverPlan) -> list[list[str]]:
    """The steps by name."""
    return [[type(step).__name__ for step in group] for group in plan.groups]


def test_a_running_job_is_adopted_before_its_pod_is_marked() -> None:
    """The owner record names the pod; the mark has Slurm's name of the node, and the finalizer is gone."""
    plan = planned([job()], [pod()])
    ((adopted, marked),) = plan.groups
    assert isinstance(adopted, AdoptJob)
    assert (adopted.owner.cluster, adopted.owner.key) == ("one", pod_index.alone(pod()).key)
    assert isinstance(marked, ChangePod)
    assert marked.annotations[names.ANNOTATION_SLURM_NODE] == "s1"
    assert marked.annotations[names.ANNOTATION_BOUND_BY] == "one"
    assert marked.finalizers == ()
    assert plan.left == ()


def test_a_waiting_job_is_cancelled_before_its_pod_is_released() -> None:
    """An interrupted run finds the pod again by its finalizer."""
    plan = planned([job(state="PENDING")], [pod(node="", phase="Pending")])
    assert kinds(plan) == [["CancelJob", "ChangePod"]]
    again = planned([], [pod(node="", phase="Pending")])
    assert kinds(again) == [["ChangePod"]]


def test_a_job_that_runs_without_bound_pods_is_cancelled() -> None:
    """The other bridge was stopped between the start of the job and the binding."""
    assert kinds(planned([job()], [pod(node="", phase="Pending")])) == [["CancelJob", "ChangePod"]]


@pytest.mark.security("input")
@pytest.mark.parametrize(
    ("found", "pods", "words"),
    [
        (job(), [], "pod default/a of its record is not in this cluster"),
        (job(), [pod(job_id=8)], "pod default/a of its record has the label"),
        (job(), [pod(job_id="x" * 100)], "slurm-jobid='xxxxxxxxxxxxxxxxxxxx'"),
        (job(), [pod(scheduler="other")], "the schedulerName 'other'"),
        (job(nodes=("s2",)), [pod()], "none of the job's nodes"),
        (job(nodes=None), [pod()], "none of the job's nodes"),
        (job(state="PENDING"), [pod()], "its state is PENDING, and pod default/a has a node"),
        (job(state="NEW"), [pod(node="")], "its state NEW is not known"),
        (job(het_job_id=JobId(7)), [pod()], "heterogeneous"),
        (job(readable=False), [pod()], "cannot be read"),
        (job(7, "a", "b"), [pod(), pod("b", node="")], "only 1 of its 2 pods have nodes"),
        (job(7, "a", "b"), [pod(), pod("b")], "its 2 pods are 2 workloads of this bridge"),
        (job(admin_comment='{"pods":["default/a"],"x":1}'), [pod()], "not exactly a record"),
    ],
)
def test_what_is_not_clear_is_left_alone_with_the_reason(found: JobView, pods: list[Pod], words: str) -> None:
    """No step is planned for the job, and none for its pods."""
    plan = planned([found], pods)
    assert plan.groups == ()
    assert words in reasons(plan)


def test_a_pod_that_cannot_be_read_may_be_one_of_the_record() -> None:
    """Then the job is left alone."""
    plan = planned([job(7, "a", "b")], [pod()], unreadable=frozenset({("default", "b")}))
    assert plan.groups == ()
    assert "pod default/b of its record cannot be read" in reasons(plan)


@pytest.mark.security("neighbours")
def test_jobs_that_have_no_record_are_not_even_mentioned() -> None:
    """Native jobs and placeholders of other clusters."""
    other = ours(9, cluster="two")
    plan = planned([job(8, admin_comment="a note"), job(10, admin_comment="{}"), other], [])
    assert (plan.groups, plan.left) == ((), ())


def test_a_pod_on_a_node_whose_job_is_over_is_left_alone() -> None:
    """Without the finalizer, this bridge would end it."""
    plan = planned([job(state="CANCELLED")], [pod()])
    assert plan.groups == ()
    assert "Slurm job '7' is over, and the pod runs: delete the pod" in reasons(plan)


@pytest.mark.parametrize("over", [pod(phase="Succeeded"), pod(deleted="2026-01-01T00:00:00Z")])
def test_a_pod_that_is_over_or_leaves_loses_the_finalizer(over: Pod) -> None:
    """Nothing else holds it."""
    assert kinds(planned([], [over])) == [["ChangePod"]]


def test_only_the_taint_of_our_scheduler_is_removed() -> None:
    """Other taints keep their time."""
    own = Taint(key="site", effect="NoExecute", time_added="2026-01-01T00:00:00Z")
    theirs = Taint(key=names.TAINT_OF_ANOTHER, effect="NoExecute", value="slurm-bridge-scheduler")
    neighbour = Taint(key=names.TAINT_OF_ANOTHER, effect="NoSchedule", value="other")
    node = Node(metadata=ObjectMeta(name="k1"), spec=NodeSpec(taints=(own, theirs, neighbour)))
    plan = forward.plan(Scenery(jobs=(), pods=(), nodes=(node,)), OURS)
    ((step,),) = plan.groups
    assert isinstance(step, steps.ChangeNode)
    assert step.taints == (own, neighbour)
    assert "its taint is of the scheduler 'other'" in reasons(plan)


def test_a_taint_of_our_node_controller_stays() -> None:
    """`nodes.managed_taint` may have the same key and value; an annotation says that this bridge wrote it."""
    taint = Taint(key=names.TAINT_OF_ANOTHER, effect="NoExecute", value="slurm-bridge-scheduler")
    meta = ObjectMeta(name="k1", annotations={names.ANNOTATION_MANAGED_TAINT: "one x=y:NoExecute"})
    plan = forward.plan(Scenery(jobs=(), pods=(), nodes=(Node(metadata=meta, spec=NodeSpec(taints=(taint,))),)), OURS)
    assert (plan.groups, plan.left) == ((), ())


def test_on_the_way_back_marks_go_before_the_record() -> None:
    """A pod with our mark and a job of the other bridge would be ended by this one."""
    marked = pod()
    marked.metadata.annotations.update({names.ANNOTATION_BOUND_BY: "one", names.ANNOTATION_COUNTED: "cpu=1m,memory=1"})
    plan = planned([ours()], [marked], back=True)
    ((unmarked, returned),) = plan.groups
    assert isinstance(unmarked, ChangePod)
    assert unmarked.annotations[names.ANNOTATION_BOUND_BY] is None
    assert isinstance(returned, ReturnJob)
    assert returned.text == '{"pods":["default/a"]}'


def test_on_the_way_back_a_waiting_job_is_cancelled_with_a_note() -> None:
    """Without the note this bridge would park the pod when it comes back."""
    ((step,),) = planned([ours(state="PENDING")], [], back=True).groups
    assert isinstance(step, CancelJob)
    assert step.owner is not None
    assert step.owner.note == "withdrawn: handed over to another bridge"


@pytest.mark.security("input")
def test_on_the_way_back_a_forged_label_brings_no_pod_into_a_record() -> None:
    """The record names the pod of the owner record only."""
    plan = planned([ours()], [pod(), pod("forged")], back=True)
    assert [step.text for group in plan.groups for step in group if isinstance(step, ReturnJob)] == [
        '{"pods":["default/a"]}'
    ]


def test_on_the_way_back_a_job_whose_pod_hides_its_label_is_not_cancelled() -> None:
    """A user may remove the label from a running pod; its job goes on."""
    hidden = pod(job_id="")
    plan = planned([ours()], [hidden], back=True)
    assert plan.groups == ()
    assert "job 7: pod default/a has a node" in reasons(plan)


NAMES = st.sampled_from(["a", "b", "c"])
PODS = st.builds(
    pod,
    NAMES,
    st.sampled_from([7, 8, 9, "", "x", -1]),
    st.sampled_from(["", "k1", "k9"]),
    phase=st.sampled_from(["Pending", "Running", "Succeeded", "odd"]),
    scheduler=st.sampled_from(["slurm-bridge-scheduler", "other"]),
    deleted=st.sampled_from([None, "2026-01-01T00:00:00Z"]),
)
STATES = st.sampled_from(["PENDING", "RUNNING", "COMPLETED", "SUSPENDED", "NEW"])
JOBS = st.builds(
    lambda number, text, state, nodes: job(number, state=state, admin_comment=text, nodes=nodes),
    st.sampled_from([7, 8, 9]),
    st.text() | st.sampled_from(['{"pods":["default/a"]}', '{"pods":["default/a","default/b"]}', '{"pods":7}']),
    STATES,
    st.sampled_from([("s1",), (), None]),
) | st.builds(ours, st.sampled_from([7, 8, 9]), NAMES, STATES, kind=st.sampled_from(["Pod", "Job", "Odd"]))


@given(st.lists(JOBS, unique_by=lambda one: one.job_id), st.lists(PODS, unique_by=lambda one: one.key), st.booleans())
def test_no_cluster_is_too_odd_for_a_plan(jobs: list[JobView], pods: list[Pod], back: bool) -> None:
    """Each job is in one step of its kind, pods keep their own scheduler's marks, and no bound pod loses its job."""
    plan = planned(jobs, pods, back=back)
    every = [step for group in plan.groups for step in group]
    about = [steps.subject(step) for step in every]
    assert len(about) == len(set(about))
    by_key = {"/".join(one.key): one for one in pods}
    for step in every:
        if isinstance(step, ChangePod):
            assert step.pod.spec.scheduler_name == "slurm-bridge-scheduler"
        if isinstance(step, CancelJob):
            bound = [one for one in by_key.values() if one.bound and not one.terminal]
            listed = {one.uid for one in bound} & {one.uid for one in step.pods}
            assert not listed
            named = [one for one in bound if one.metadata.labels[names.LABEL_JOB_ID] == str(step.job.job_id)]
            assert not [one for one in named if "/".join(one.key) in step.job.admin_comment]
