"""Pods leave by eviction, so that budgets have their say, and the jobs of groups are ended after them.

    here      the API server is asked to evict the pod: a refusal is asked again, and the pods after it are spared
    let go    the API server has agreed, and no watch has told yet: the pod is not asked for again
    unsure    the answer was lost: asked again, or explained to the user once the pod is seen to leave
    gone      no watch knows the pod any more

The job of a single pod ends with the pod, as always. A group may go on without some of its members, or replace them on
the nodes that its job holds. So all of its pods are evicted, and its job is ended when none of them is left.
"""

from collections.abc import Callable, Iterator, Mapping

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.model import kinds, names
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Certainty
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.effects import cancel
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.workload_pods import PodState, job_id_of

#: Pods that have to leave, by their uids.
Victims = Mapping[str, Pod]
#: Told by a word what has happened.
Count = Callable[[str], None]


class Evictor:
    """Evicts only what is still ours at the last moment: bound by us, by a job of ours that runs."""

    def __init__(self, context: SchedulerContext, pod_index: PodIndex) -> None:
        self._context, self._pod_index = context, pod_index
        self._unsure: set[str] = set()
        self._let_go: set[str] = set()

    def evict(self, victims: Victims, preemptor: str, count: Count) -> bool:
        """Evict all of them, one after the other, up to the first refusal; True when all are on their way."""
        for uid in victims:
            seen, unsure = self._pod_index.get(uid), uid in self._unsure
            self._unsure.discard(uid)
            if seen is None or seen.terminal or seen.terminating:
                self._let_go.discard(uid)
            if seen is None or seen.terminal or uid in self._let_go:
                continue
            if seen.terminating:
                if unsure:
                    self._say(seen, preemptor, count)
            elif not self._evict(seen, preemptor, count):
                return False
        return True

    def _evict(self, pod: Pod, preemptor: str, count: Count) -> bool:
        if not self._ours(pod):
            return True
        for known in self._unsure, self._let_go:
            known.difference_update([uid for uid in known if self._pod_index.get(uid) is None])
        try:
            self._context.cluster.evict(*pod.key, pod.uid)
        except (errors.NotFound, errors.Conflict):
            # It is gone, or another pod has its name by now.
            return True
        except errors.Unavailable as refused:
            logger.bind(workload="/".join(pod.key)).info("preemption: it stays for now: {}", refused)
            count("refused")
            return False
        except errors.Unanswered:
            self._unsure.add(pod.uid)
            raise
        self._let_go.add(pod.uid)
        self._say(pod, preemptor, count)
        return True

    def _say(self, pod: Pod, preemptor: str, count: Count) -> None:
        text = f"Preempted by {preemptor} on node {pod.spec.node_name}"
        self._context.status.event(pod, "Preempted", text, warning=True)
        count("victims")

    def _ours(self, pod: Pod) -> bool:
        """The second reading: its job may have ended meanwhile, and then the end of the job ends the pod."""
        job_id = job_id_of(pod)
        placeholder = self._context.table.get(job_id) if job_id is not None else None
        if placeholder is None or not self._pod_index.is_of(pod, placeholder.owner):
            return False
        return placeholder.alive and placeholder.certainty is Certainty.SEEN

    def have_left(self, victims: Victims) -> bool:
        """None of them is there any more, nor any pod of their groups that was on its way out before them."""
        seen = (self._pod_index.get(uid) for uid in victims)
        return all(pod is None or pod.terminal for pod in seen) and not self._members(victims, PodState.LEAVING)

    def newcomers(self, victims: Victims) -> Mapping[str, Pod]:
        """Members of their groups that were created meanwhile and took the places of those that left."""
        return {pod.uid: pod for pod in self._members(victims, PodState.BOUND) if pod.uid not in victims}

    def _members(self, victims: Victims, stands: PodState) -> tuple[Pod, ...]:
        """All members of their groups that are on the jobs of these and stand like this."""
        groups = self._groups(victims)
        workloads = ((self._pod_index.workload(key), jobs) for key, jobs in groups.items())
        return tuple(
            pod for members, jobs in workloads if members for pod in members.pods(stands) if job_id_of(pod) in jobs
        )

    def end_jobs(self, victims: Victims, preemptor: str) -> Iterator[tuple[WorkloadKey, bool]]:
        """The groups among them, and whether their jobs are over."""
        for key, jobs in sorted(self._groups(victims).items()):
            living = [one for one in self._context.table.of(key) if one.alive and one.job_id in jobs]
            why = f"preempted by {preemptor}"
            over = [cancel.withdraw(self._context, one, why, noted=True) for one in living]
            yield key, all(over)

    def _groups(self, victims: Victims) -> Mapping[WorkloadKey, set[names.JobId]]:
        """The groups of the victims, each with the jobs that its own victims are on: any pod can name any job."""
        found: dict[WorkloadKey, set[names.JobId]] = {}
        for pod in victims.values():
            job_id = job_id_of(pod)
            job = self._context.table.get(job_id) if job_id is not None else None
            if job is not None and job.owner.kind != kinds.PODS.kind and self._pod_index.is_of(pod, job.owner):
                found.setdefault(job.owner.key, set()).add(job.job_id)
        return found
