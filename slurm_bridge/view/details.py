"""What is shown of one workload beside its row: members, jobs, timeline, and what to do."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from slurm_bridge.mirror import table
from slurm_bridge.model import texts
from slurm_bridge.model.job import JobView
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler import words
from slurm_bridge.scheduler.workload_pods import PodState, WorkloadPods, job_id_of
from slurm_bridge.status import conditions
from slurm_bridge.view import makers, next_steps, rows, workload_rows
from slurm_bridge.view.workload_rows import ViewRecords

#: So many members and jobs are listed.
MOST_MEMBERS: Final = 500
MOST_JOBS: Final = 32

#: The state of a member in one word.
_STATES: Final = {
    PodState.WANTING: "waiting",
    PodState.GATED: "gated",
    PodState.BOUND: "bound",
    PodState.LEAVING: "leaving",
    PodState.DONE: "done",
    PodState.OVER: "failed",
    PodState.STRANGE: "bound by another scheduler",
}


def workload(records: ViewRecords, key: WorkloadKey) -> Mapping[str, Any] | None:
    """Plain values; None if there is no such workload."""
    members, jobs = records.pod_index.workload(key), records.table.of(key)
    row = workload_rows.row(records, key, 0)
    if members is None or row is None:
        return None
    job = table.current(jobs)
    reason, message = workload_rows.reason_of(records, key, members, job, row.stage)
    pods = [pod for state in PodState for pod in members.pods(state)][:MOST_MEMBERS]
    return {
        "kind": row.kind,
        "namespace": row.namespace,
        "name": row.name,
        "uid": row.uid,
        "stage": row.stage,
        "reason": row.reason,
        "message": texts.bounded(message),
        "step": next_steps.step(
            reason, row.job if row.stage != rows.HELD else 0, makers.kind_of(pods[0]) if pods else row.kind
        ),
        "row": {name: getattr(row, name) for name in rows.names(type(row)) if name != "number"},
        "members": [_member(members, pod) for pod in sorted(pods, key=lambda pod: pod.metadata.name)],
        "unlisted": row.pods - len(pods),
        "jobs": [_job(one) for one in jobs[-MOST_JOBS:]],
        "timeline": timeline(pods, jobs[-MOST_JOBS:]),
    }


def _member(members: WorkloadPods, pod: Pod) -> Mapping[str, Any]:
    state = members.standing(pod.uid) or PodState.OVER
    return {
        "name": pod.metadata.name,
        "state": _STATES[state],
        "phase": texts.shown(pod.status.phase),
        "node": pod.spec.node_name,
        "job": job_id_of(pod) or 0,
    }


def _job(one: Placeholder) -> Mapping[str, Any]:
    view = one.view or JobView(job_id=one.job_id, name="", state=one.state)
    return {
        "job": one.job_id,
        "attempt": one.owner.attempt,
        "phase": one.phase.value,
        "states": sorted(one.state.words),
        "text": words.waiting(one) if one.alive else words.ended(one),
        "partition": view.partition,
        "account": view.account,
        "qos": view.qos,
        "user": view.user,
        "priority": view.priority,
        "minutes": view.time_limit_minutes,
        "nodes": list((view.nodes or ())[:MOST_MEMBERS]),
        "note": texts.bounded(one.owner.note, rows.MOST_TEXT),
    }


def timeline(pods: Iterable[Pod], jobs: Iterable[Placeholder]) -> list[Mapping[str, Any]]:
    """What happened when, the earliest first; the last line may be in the future (`expected`)."""
    found = [*_of_pods(tuple(pods)), *(line for one in jobs for line in _of_job(one))]
    return [
        {"at": at, "what": what, "text": text, "expected": what == _EXPECTED}
        for at, _, what, text in sorted(line for line in found if line[0] > 0)
    ]


#: Time, place among what happened in the same second, one word, and a sentence.
_Line = tuple[int, int, str, str]
_CREATED, _SUBMITTED, _STARTED, _BOUND, _RAN, _ENDED, _EXPECTED = (
    "created",
    "submitted",
    "allocated",
    "bound",
    "running",
    "ended",
    "expected",
)


def _of_pods(pods: tuple[Pod, ...]) -> Iterator[_Line]:
    created = [workload_rows.seconds(pod.metadata.creation_timestamp) for pod in pods]
    bound = [at for pod in pods if pod.bound and (at := _since(pod, conditions.SCHEDULED, "True"))]
    ran = [at for pod in pods if (at := workload_rows.seconds(pod.status.start_time))]
    over = [at for pod in pods if pod.terminal and (at := _since(pod, "Ready", "False"))]
    yield from _span(0, _CREATED, created, "created")
    yield from _span(3, _BOUND, bound, "bound to its node" if len(pods) == 1 else "bound to their nodes")
    yield from _span(4, _RAN, ran, "started by the kubelet")
    yield from _span(6, _ENDED, over, "ended")


def _span(place: int, what: str, times: list[int], text: str) -> Iterator[_Line]:
    """One line for the first, and one for the last if that was later."""
    if times:
        number = "the pod is" if len(times) == 1 else f"{len(times)} pods are"
        first, last = min(times), max(times)
        if first == last:
            yield first, place, what, f"{number} {text}"
        else:
            yield first, place, what, f"the first pod is {text}"
            yield last, place, what, f"the last of {len(times)} pods is {text}"


def _since(pod: Pod, type_: str, status: str) -> int:
    found = conditions.find(pod, type_)
    matches = found is not None and found.status == status
    return workload_rows.seconds(found.last_transition_time) if found is not None and matches else 0


def _of_job(one: Placeholder) -> Iterator[_Line]:
    view = one.view
    if view is None:
        return
    yield view.submit_time, 1, _SUBMITTED, f"Slurm job {one.job_id} is submitted"
    if one.started and view.start_time:
        yield view.start_time, 2, _STARTED, f"Slurm allocates nodes to job {one.job_id}"
    elif one.alive and view.start_time:
        yield view.start_time, 7, _EXPECTED, f"Slurm expects to start job {one.job_id}"
    if not one.alive and view.end_time:
        yield view.end_time, 5, _ENDED, words.ended(one)
