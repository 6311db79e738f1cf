"""When one side ends, so does the other; and what is doubtful ends nothing.

pods over          note why in the job, cancel it
job ended          say so on the pod (DisruptionTarget), then delete exactly this pod
job gone           the same, after a pause, and unless so many went at once that Slurm's memory is in doubt
job cancelled      before the pod had a node: respected; the pod is told and waits for somebody to change something
"""

from loguru import logger

from slurm_bridge.model import job, kinds, names
from slurm_bridge.model.job import Phase
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler import records, submitting, words
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.scheduler.queue import AT_ONCE, FORGET, WOKEN, Filed
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.wish import Wish

#: While mass disappearance is doubted, how often to look whether it still is.
DOUBTFUL = 30.0


class Ender:
    """The steps that end something."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._leaving: dict[str, float] = {}

    def forget(self, uid: str) -> None:
        """The workload is over."""
        self._leaving.pop(uid, None)

    def withdraw(self, uid: str, pod: Pod | None, *, seen: bool) -> Filed:
        """The pods are over: cancel every placeholder that lives. `seen` says that we saw the pod end or go."""
        placeholders = self._tools.table.of(uid)
        if pod is None and not seen and self._exists(placeholders[0]):
            logger.warning("{} exists though it is not ours to see; its job stays", placeholders[0].owner.name)
            return Filed(after=DOUBTFUL)
        why = _outcome(pod)
        for one in placeholders:
            if one.alive and not self._withdraw_one(one, why, orphan=not seen and pod is None):
                return Filed(after=self._tools.pause(one.owner.uid))
        return AT_ONCE

    def _withdraw_one(self, placeholder: Placeholder, why: str, *, orphan: bool) -> bool:
        if placeholder.certainty is Certainty.MAYBE:
            found = self._tools.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
            if found is None:
                # The order may still be on its way, and is given up by the mirror in its time.
                known = self._tools.table.get(placeholder.job_id)
                return known is None or known.certainty is not Certainty.MAYBE
            if not found.alive:
                return True
        if not submitting.withdraw(self._tools, placeholder, why):
            return False
        self._tools.tally.ended("orphan" if orphan else "pod")
        return True

    def _exists(self, placeholder: Placeholder) -> bool:
        """Is this very pod alive after all? Asked once for each stray placeholder."""
        owner = placeholder.owner
        pod = self._tools.cluster.get(kinds.PODS, owner.namespace, owner.name)
        return pod is not None and pod.uid == owner.uid and not pod.terminal

    def drop(self, uid: str) -> Filed:
        """Both sides are over."""
        for one in self._tools.table.of(uid):
            self._tools.table.drop(one.job_id)
        self._tools.wishes.pop(uid, None)
        self._tools.plans.pop(uid, None)
        self._tools.voice.forget(uid)
        return FORGET

    def cancel_surplus(self, surplus: tuple[Placeholder, ...]) -> Filed:
        """Of several jobs for one workload one is kept, before anything is bound."""
        for one in surplus:
            logger.warning("job {} is a second one for {}: cancelled", one.job_id, one.owner.name)
            if not submitting.withdraw(self._tools, one, "a second job for the same workload", noted=True):
                return Filed(after=self._tools.pause(one.owner.uid))
            self._tools.table.drop(one.job_id)
        return AT_ONCE

    def look(self, pod: Pod) -> Filed:
        """Read the placeholder that a bound pod names; that Slurm does not know it is worth remembering too."""
        job_id = job_id_of(pod)
        owner = records.owner_of(_root(pod), self._tools.config.rules.cluster_id)
        if job_id is None or self._tools.mirror.look(job_id, owner, tell=False) is not None:
            return AT_ONCE if job_id is not None else WOKEN
        now = self._tools.clock.now()
        self._tools.table.put(
            Placeholder(
                job_id=job_id,
                owner=owner,
                state=job.JobState(frozenset()),
                certainty=Certainty.GONE,
                since=now,
                started=True,
            ),
            tell=False,
        )
        return AT_ONCE

    def doubt(self, pod: Pod, placeholder: Placeholder, controller_kind: str) -> Filed:
        """The job of a bound pod is unknown to Slurm: believed after a pause, one by one, and never of a multitude."""
        ends, now = self._tools.config.ends, self._tools.clock.now()
        settled = placeholder.since + ends.settle_seconds
        if now < settled:
            return Filed(after=settled - now)
        vanished, bound = self._tools.table.vanished()
        if ends.breaker.open(vanished, bound):
            text = (
                f"{vanished} of {bound} placeholder jobs have vanished at once; no pod is ended until that is explained"
            )
            logger.error(text)
            self._tools.voice.event(pod, "SlurmJobsVanished", text, warning=True)
            return Filed(after=DOUBTFUL)
        return self._end(pod, placeholder, controller_kind)

    def end(self, pod: Pod, placeholder: Placeholder, controller_kind: str) -> Filed:
        """The job of a bound pod has ended; whether the id is still that job's is looked at first."""
        read = self._tools.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
        if read is None or (read.alive and not placeholder.torn):
            return AT_ONCE
        return self._end(pod, read, controller_kind)

    def _end(self, pod: Pod, placeholder: Placeholder, controller_kind: str) -> Filed:
        word, text = words.end_word(placeholder), words.ended(placeholder)
        if word == "TIMEOUT":
            self._after_timeout(pod, controller_kind, text)
        return self.end_pod(pod, word, text)

    def end_pod(self, pod: Pod, word: str, text: str) -> Filed:
        """Say why, then delete exactly this pod. Not an eviction: no budget can keep a node that Slurm gave away."""
        self._tools.voice.disrupt(pod, "SlurmJobEnded", text)
        self._tools.cluster.delete(kinds.PODS, pod)
        self._tools.voice.event(pod, "SlurmJobEnded", text, warning=True)
        self._tools.tally.ended(word.lower())
        logger.bind(workload="/".join(pod.key)).info("pod deleted: {}", text)
        return WOKEN

    def _after_timeout(self, pod: Pod, controller_kind: str, text: str) -> None:
        """Whoever makes such pods would make another, which would be cut off just the same."""
        controller = next((one for one in pod.metadata.owner_references if one.controller), None)
        if controller is not None and controller_kind in self._tools.config.ends.hold_after_timeout:
            self._tools.held[controller.uid] = text

    def leaving(self, pod: Pod) -> Filed:
        """A pod that is being deleted keeps its job until it is gone, unless its node is dead and it never will be."""
        if not any(one.alive for one in self._tools.table.of(pod.uid)):
            return WOKEN
        began = self._leaving.setdefault(pod.uid, self._tools.clock.now())
        grace = pod.metadata.deletion_grace_period_seconds or 0
        left = began + grace + self._tools.config.ends.stuck_seconds - self._tools.clock.now()
        if left > 0:
            return Filed(after=left)
        node = self._tools.keeper.snapshot().nodes.get(pod.spec.node_name)
        if node is not None and node.node.ready:
            return Filed(after=self._tools.config.ends.stuck_seconds)
        logger.warning("pod {} hangs on a dead node; its job is given back", "/".join(pod.key))
        return self.withdraw(pod.uid, pod, seen=True)

    def puzzling(self, placeholder: Placeholder) -> bool:
        """Why the job ended is not known yet, or it was somebody's wish."""
        if placeholder.certainty is Certainty.GONE or placeholder.owner.note:
            return False
        read = placeholder.read is not None and placeholder.read >= placeholder.since
        return not read or words.end_word(placeholder) == "CANCELLED"

    def again(self, wish: Wish, placeholder: Placeholder) -> Filed | None:
        """The job ended before the pod had a node: None when it is to be submitted again."""
        read = self._tools.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
        if read is not None and read.alive:
            return AT_ONCE
        if read is None or read.owner.note or words.end_word(read) != "CANCELLED":
            return None
        return self.park(wish, read, f"{words.ended(read)} before the pod had a node")

    def park(self, wish: Wish, placeholder: Placeholder | None, why: str) -> Filed:
        """Write on the pod at once that it is not to be submitted again until somebody changes something."""
        pod = wish.workload.pods[0]
        note = wishes.park_note(wish, placeholder, why)
        self._tools.cluster.patch(kinds.PODS, pod, {"metadata": {"annotations": {names.ANNOTATION_PARKED: note}}})
        self._tools.voice.event(pod, "SlurmJobEnded", parked_text(why), warning=True)
        self._tools.tally.attempt("parked")
        return WOKEN

    def tell_parked(self, wish: Wish) -> Filed:
        """Keep saying why it waits."""
        pod = wish.workload.pods[0]
        self._tools.voice.waiting(pod, "Parked", parked_text(wishes.why_parked(wish)))
        return WOKEN


def parked_text(why: str) -> str:
    """What happened, and what helps."""
    return f"{why}; not submitted again until the workload changes or gets a new {names.ANNOTATION_RETRY} annotation"


def job_id_of(pod: Pod) -> names.JobId | None:
    """The job that a bound pod names."""
    text = pod.metadata.labels.get(names.LABEL_JOB_ID, "")
    return names.JobId(int(text)) if text.isascii() and text.isdigit() and int(text) > 0 else None


def shrunk(pod: Pod, placeholder: Placeholder) -> bool:
    """A running job that no longer holds the pod's node; only a reading newer than the start of the job can tell."""
    view = placeholder.view
    if view is None or placeholder.phase is not Phase.RUNNING or (placeholder.read or 0.0) < placeholder.since:
        return False
    name = pod.metadata.annotations.get(names.ANNOTATION_SLURM_NODE, pod.spec.node_name)
    return view.state.phase is Phase.RUNNING and bool(view.nodes) and name not in view.nodes


def _outcome(pod: Pod | None) -> str:
    if pod is None:
        return "pod is gone"
    if pod.terminal:
        return f"pod {pod.status.phase}" + (f" ({pod.status.reason})" if pod.status.reason else "")
    return "pod was deleted before it had a node" if not pod.bound else "pod was bound by another scheduler"


def _root(pod: Pod) -> Root:
    return Root(kind="Pod", namespace=pod.metadata.namespace, name=pod.metadata.name, uid=pod.uid)
