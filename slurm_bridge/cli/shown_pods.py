"""What the pods of the bridge say of themselves: the job, its state, the dominant reason and the next step.

All of it is read from the pods, with the rights of the user: labels, conditions and annotations that the bridge writes.
"""

import dataclasses
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from slurm_bridge import errors, ports
from slurm_bridge.cli.daemon_config import SoughtPods
from slurm_bridge.model import hostlist, kinds, names, texts
from slurm_bridge.model.meta import Condition
from slurm_bridge.model.pod import Pod
from slurm_bridge.status import conditions
from slurm_bridge.view import makers, next_steps

#: The bridge's words about a placeholder: its id, and Slurm's reason where it has one.
_JOB: Final = re.compile(r"Slurm job (\d{1,10}) is \w+(?: \((\w{1,64})[:)])?")
_DIGITS: Final = re.compile(r"\d{1,10}")
#: Owner references are not checked by the API server, and a user copies a command into a shell.
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*/[A-Za-z0-9][A-Za-z0-9.-]*")

_SILENT: Final = (
    "the bridge has not said anything about it yet",
    "Wait a moment; if it stays, ask the administrator whether the daemon runs.",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ShownPod:
    """`reason` is Slurm's own where the job waits in Slurm, else the bridge's; `job` is 0 while there is none."""

    pod: Pod
    state: str
    job: int = 0
    reason: str = ""
    message: str = ""
    next: str = ""

    @property
    def waits(self) -> bool:
        """It has no node yet."""
        return self.state in ("QUEUED", "WAITING", "PARKED")

    @property
    def workload(self) -> str:
        """What made the pod, or the pod itself: `Job/train`."""
        maker = next((one for one in self.pod.metadata.owner_references if one.controller), None)
        return f"{maker.kind}/{maker.name}" if maker is not None else f"Pod/{self.pod.metadata.name}"


def of(pod: Pod) -> ShownPod:
    """The state of a pod that the bridge schedules."""
    if pod.terminal:
        return ShownPod(pod=pod, state="ENDED", job=_label(pod), reason=pod.status.phase)
    if pod.bound:
        state = "ENDING" if pod.terminating else "RUNNING" if pod.status.phase == "Running" else "STARTING"
        return ShownPod(pod=pod, state=state, job=_label(pod))
    said = conditions.find(pod, conditions.SCHEDULED)
    if said is None or said.status != "False" or not said.reason:
        return ShownPod(pod=pod, state="WAITING", message=_SILENT[0], next=_SILENT[1])
    return _waiting(pod, said)


def _waiting(pod: Pod, said: Condition) -> ShownPod:
    message, reason = texts.bounded(said.message or ""), texts.shown(said.reason or "")
    found = _JOB.search(message) if reason == "SlurmJobPending" else None
    job, of_slurm = (int(found[1]), found[2] or "") if found else (0, "")
    state = "QUEUED" if job else "PARKED" if reason == "Parked" else "WAITING"
    step = next_steps.step(of_slurm or reason, job, makers.kind_of(pod))
    shown = ShownPod(pod=pod, state=state, job=job, reason=of_slurm or reason, message=message, next=step)
    if state != "PARKED":
        return shown
    subject = shown.workload if _WORD.fullmatch(shown.workload) else f"Pod/{pod.metadata.name}"
    step = f"Change the request, or run: kubectl slurm retry --namespace {pod.key[0]} {subject}"
    return dataclasses.replace(shown, next=step)


def _label(pod: Pod) -> int:
    said = pod.metadata.labels.get(names.LABEL_JOB_ID, "")
    return int(said) if said.isascii() and _DIGITS.fullmatch(said) else 0


def listed(cluster: ports.Cluster, namespace: str | None, sought: SoughtPods) -> Sequence[ShownPod]:
    """All pods of the bridge, in order."""
    found = cluster.list(kinds.PODS, ports.Scope(namespace=namespace)).items
    ours = (pod for pod in found if pod.spec.scheduler_name in sought.scheduler_names or _marked(pod, sought))
    return [of(pod) for pod in sorted(ours, key=lambda pod: pod.key)]


def _marked(pod: Pod, sought: SoughtPods) -> bool:
    """It has a node and the marks that the bridge writes with a binding, of any bridge if its id is not known.

    Where no admission policy refuses it, users can write these marks, too. Such a pod is shown, and `retry` does not
    change it: that is for pods without a node.
    """
    bound_by = pod.metadata.annotations.get(names.ANNOTATION_BOUND_BY)
    known = bool(bound_by) if sought.cluster_id is None else bound_by == sought.cluster_id
    return pod.bound and known and _label(pod) > 0


def named(every: Sequence[ShownPod], subject: str) -> Sequence[ShownPod]:
    """The pods of this name, or of the object of this name that makes them: `a`, `pod/a`, `job/train`."""
    kind, slash, name = subject.rpartition("/")
    if not slash or kind.lower() in ("pod", "pods", "po"):
        found = [one for one in every if one.pod.metadata.name == name]
        if found or slash:
            return found
    return [one for one in every if any(_is(kind, name, workload) for workload in _makers(one.pod))]


def _makers(pod: Pod) -> Iterator[tuple[str, str]]:
    """Kind and name of what made it; sets of Jobs and groups write their names on their pods."""
    yield from ((owner.kind, owner.name) for owner in pod.metadata.owner_references)
    labels = pod.metadata.labels
    for kind, label in (("JobSet", names.LABEL_JOBSET_NAME), ("LeaderWorkerSet", names.LABEL_LWS_NAME)):
        if name := labels.get(label):
            yield kind, name


def _is(kind: str, name: str, workload: tuple[str, str]) -> bool:
    """Kinds as kubectl takes them: in any case, one or several; without a kind any."""
    return name == workload[1] and kind.lower() in ("", workload[0].lower(), f"{workload[0].lower()}s")


def found(
    every: Sequence[ShownPod], subjects: Iterable[str], namespace: str | None, sought: SoughtPods
) -> Sequence[ShownPod]:
    """The pods of all subjects; NotFound names the first without any."""
    together: dict[tuple[str, str], ShownPod] = {}
    for subject in subjects:
        there = named(every, subject)
        if not there:
            where = f"namespace {namespace}" if namespace is not None else "all namespaces"
            raise errors.NotFound(
                f"{texts.shown(subject)}: no pod of the bridge has this name, or is made by it, in {where}: {sought}"
            )
        together |= {one.pod.key: one for one in there}
    return list(together.values())


def jobs(every: Iterable[ShownPod], *, ended: bool) -> list[tuple[str, ...]]:
    """A table with a row for each job, and for the pods of each workload that have none."""
    groups: dict[tuple[object, ...], list[ShownPod]] = defaultdict(list)
    for one in every:
        if ended or one.state != "ENDED":
            groups[one.pod.key[0], one.job, one.state, one.reason, one.workload].append(one)
    rows: list[tuple[str, ...]] = [("NAMESPACE", "JOB", "STATE", "PODS", "WORKLOAD", "REASON", "NODES")]
    for (namespace, job, state, reason, workload), members in sorted(groups.items(), key=lambda row: str(row[0])):
        nodes = hostlist.compress({one.pod.spec.node_name for one in members if one.pod.spec.node_name})
        rows.append(
            tuple(map(str, (namespace, job or "-", state, len(members), workload, reason or "-", nodes or "-")))
        )
    return rows


def dominant(every: Iterable[ShownPod]) -> Iterator[str]:
    """One line for each reason, the one of most pods first."""
    return _lines(every, lambda one: (one.reason, one.state) if one.waits else None)


def lines(every: Iterable[ShownPod]) -> Iterator[str]:
    """One line for each, and one for all that say the same, as the members of a gang do."""
    return _lines(every, lambda one: (one.reason, one.state, one.message) if one.waits else line(one))


def _lines(every: Iterable[ShownPod], alike: Callable[[ShownPod], object]) -> Iterator[str]:
    """One line for all pods that are alike; those that are like nothing have none."""
    groups: dict[object, list[ShownPod]] = defaultdict(list)
    for one in every:
        if (key := alike(one)) is not None:
            groups[key].append(one)
    for members in sorted(groups.values(), key=lambda found: (-len(found), found[0].pod.key)):
        first = members[0]
        many = f"{len(members)} pods, first " if len(members) > 1 else ""
        yield f"{many}{'/'.join(first.pod.key)}: {line(first)}"


def line(one: ShownPod) -> str:
    """The dominant reason and the next step."""
    if one.state == "ENDED":
        return f"has ended ({one.reason})"
    if not one.waits:
        return f"{one.state.lower()} on node {one.pod.spec.node_name}" + (f", Slurm job {one.job}" if one.job else "")
    head = f"{one.reason}: {one.message}" if one.reason and one.reason not in one.message else one.message
    end = "" if head.endswith((".", "?", "!")) else "."
    return f"{head}{end} Next: {one.next}" if one.next else head
