"""A JobSet: as a whole, each of its replicated jobs by itself, or pod by pod.

    on the JobSet        setting      the pods
    gang: "false"        any          pod by pod
    gang: "true"         gang         the whole
    gang: "true"         any other    as auto
    nothing              gang         the whole, even where its pods never wait at the same time
    nothing              replicatedjob   each replicated job
    nothing              pod          pod by pod
    nothing              auto         the whole; each replicated job where they start one after the other; pod by pod
                                      where the followers of a Job come only after its first pod has a node

A restart of a JobSet is another workload: its Jobs are made anew, with the number of the attempt on their pods.
"""

import enum
from collections.abc import Iterable
from typing import Final

from slurm_bridge.model import kinds, names
from slurm_bridge.model.groups import JobSet
from slurm_bridge.model.meta import Manifest, Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Deadline, Root, Workload
from slurm_bridge.workloads import gangs, known, voices
from slurm_bridge.workloads.draft import ChildDraft, marked, numbers, spec_of
from slurm_bridge.workloads.given import Given, Members
from slurm_bridge.workloads.kind_spec import KindPage, KindSpec
from slurm_bridge.workloads.known import Known, Options

_KIND: Final = kinds.JOBSETS


class JobSetMode(enum.Enum):
    """Which pods of a JobSet are one workload."""

    WHOLE = "all its pods"
    PART = "the pods of one replicated job"
    PODS = "each pod"


def mode(found: JobSet, options: Options) -> JobSetMode:
    """The table above."""
    together, setting = voices.together(found.metadata.annotations), options.jobset
    if together is False or (together is None and setting == "pod"):
        return JobSetMode.PODS
    if setting == "gang":
        return JobSetMode.WHOLE
    if together is None and setting == "replicatedjob":
        return JobSetMode.PART
    if _followers(found):
        return JobSetMode.PODS
    return JobSetMode.PART if found.spec.in_steps else JobSetMode.WHOLE


def handles(pod: Pod) -> tuple[str, ...]:
    """The name of the JobSet; its Jobs are owners of the pods."""
    name = pod.metadata.labels.get(names.LABEL_JOBSET_NAME)
    return (name,) if name else ()


def claim(pod: Pod, known_: Known, options: Options) -> Root | None:
    """A pod of a Job of a JobSet: by the owner of the Job, or by the pod's labels while the Job is not known.

    Either has to name a JobSet that exists in the pod's own namespace, by its uid. Until then the pod belongs to a
    JobSet that is known by its name only, and waits for it.
    """
    if not known_.served(_KIND):
        return None
    set_ = _set(pod, known_)
    if set_ is None:
        return None
    found = _find(set_, known_)
    chosen = mode(found, options) if found is not None else JobSetMode.WHOLE
    if chosen is JobSetMode.PODS:
        return voices.itself(pod)
    run = known.run_of(pod, set_.uid)
    uid = f"{run}:{_part(pod)}" if chosen is JobSetMode.PART else run
    return Root(kind=_KIND.kind, namespace=set_.namespace, name=set_.name, uid=uid)


def gather(root: Root, members: Members, given: Given) -> Workload | Wait:
    """The whole, a part, or one pod."""
    pod = members.any()
    set_ = _set(pod, given.known)
    found = _find(set_, given.known) if set_ is not None else None
    if set_ is None or found is None:
        return gangs.missing(root)
    chosen = mode(found, given.options)
    if chosen is JobSetMode.PODS:
        job = kinds.JOBS.maker_of(pod)
        return voices.alone(pod, given.owners.resolve(pod), job.name if job is not None else pod.metadata.name)
    part = _part(pod) if chosen is JobSetMode.PART else ""
    # The pods of the spec wait at the same time, less what the Jobs of this run no longer need.
    wanted = sum(one.pods for one in found.spec.replicated_jobs if part in ("", one.name))
    spent = given.known.spent(root.namespace, known.run_of(pod, found.uid))
    size = max(1, wanted - sum(one.spec.pods - one.pods_to_come for one in spent if part in ("", _part(one))))
    # The name in messages says where pods cannot be there at the same time.
    steps = " (they start one after the other, and setting workloads.jobset is gang)" if found.spec.in_steps else ""
    plan = gangs.GangPlan(
        called=f"{part} of {root}" if part else f"{root}{steps}",
        job_name=f"{root.name}-{part}" if part else root.name,
        minimum=size,
        size=size,
        sources=lambda first: (voices.own(first), voices.source(_KIND, found)),
        controller=set_,
        suspended=str(set_) if found.spec.suspend else "",
        retry_after=gangs.PROGRESS,
        deadline=_deadline(found, part),
    )
    return gangs.whole(root, plan, members, given)


def _set(pod: Pod, known_: Known) -> Root | None:
    """The JobSet that the pod belongs to, by its own uid, or by its name while that JobSet is not known."""
    reference, labels, namespace = kinds.JOBS.maker_of(pod), pod.metadata.labels, pod.metadata.namespace
    name = labels.get(names.LABEL_JOBSET_NAME, "")
    if reference is None or not name:
        return None
    uid, job = labels.get(names.LABEL_JOBSET_UID, ""), known_.find(kinds.JOBS, namespace, reference.name)
    if job is not None and job.uid == reference.uid:
        above = _KIND.maker_of(job)
        if above is None or above.name != name:
            return None
        uid = above.uid
    found = known_.find(_KIND, namespace, name)
    if found is None or found.uid != uid:
        uid = f"{_KIND.kind}:{namespace}/{name}"
    return Root(kind=_KIND.kind, namespace=namespace, name=name, uid=uid)


def _find(set_: Root, known_: Known) -> JobSet | None:
    found = known_.find(_KIND, set_.namespace, set_.name)
    return found if found is not None and found.uid == set_.uid else None


def _deadline(found: JobSet, part: str) -> Deadline | None:
    """The longest deadline of its Jobs, where each has one: the gang ends as a whole, and no member ends early."""
    jobs = [one for one in found.spec.replicated_jobs if part in ("", one.name)]
    seconds = [one.template.spec.active_deadline_seconds for one in jobs]
    limits = [one for one in seconds if one is not None]
    if not limits or len(limits) < len(seconds):
        return None
    return Deadline(seconds=max(limits), subject=f"the Jobs of JobSet {found.metadata.namespace}/{found.metadata.name}")


def _part(marked: Object) -> str:
    return marked.metadata.labels.get(names.LABEL_JOBSET_PART, "")


def _followers(found: JobSet) -> bool:
    """The other pods of a Job are refused until the first one has a node."""
    marks = (found.metadata.annotations, *(one.template.metadata.annotations for one in found.spec.replicated_jobs))
    return any(
        names.ANNOTATION_JOBSET_EXCLUSIVE in one and names.ANNOTATION_JOBSET_SELECTED not in one for one in marks
    )


def makes(found: JobSet, manifest: Manifest) -> Iterable[ChildDraft]:
    """Its Jobs: indexed by default, with the same labels and annotations on each Job as on its pods."""
    described = spec_of(manifest).get("replicatedJobs") or ()
    all_jobs = 0
    for part, raw in zip(found.spec.replicated_jobs, described, strict=True):
        template = raw.get("template") or {}
        for number in numbers(_KIND, found, f"the replicas of {part.name}", part.replicas):
            marks = {
                names.LABEL_JOBSET_NAME: found.metadata.name,
                names.LABEL_JOBSET_UID: found.uid,
                names.LABEL_JOBSET_PART: part.name,
                names.LABEL_JOBSET_ATTEMPT: "0",
                names.LABEL_JOBSET_GLOBAL_INDEX: str(all_jobs),
                "jobset.sigs.k8s.io/job-index": str(number),
            }
            spec = spec_of(template)
            pods = marked(spec.get("template") or {}, "", marks, marks)
            yield ChildDraft(
                kind=kinds.JOBS,
                name=f"{found.metadata.name}-{part.name}-{number}",
                template={**template, "spec": {"completionMode": "Indexed", **spec, "template": pods}},
                labels=marks,
                annotations=marks,
                role=part.name,
            )
            all_jobs += 1


SPEC = KindSpec(
    name=_KIND.kind,
    handles=handles,
    claim=claim,
    gather=gather,
    resource=_KIND,
    owner=True,
    suspended=lambda found: found.spec.suspend,
    indexes={kinds.JOBS: {known.BY_RUN: known.runs}},
    makes=makes,
    counted="the Jobs of spec.replicatedJobs",
    part=lambda behind: behind[1] if len(behind) > 1 else "",
    prefixes=frozenset({"jobset.sigs.k8s.io", "alpha.jobset.sigs.k8s.io"}),
    page=KindPage(
        title="JobSet",
        pods="the pods of its Jobs",
        one="the JobSet, or each of its replicated jobs",
        minimum="all pods that still have to run",
        sources="pod, JobSet",
    ),
)
