"""A LeaderWorkerSet: each of its groups is a gang of its own, the leader first.

Where the workers are made only after the leader runs or has a node, leader and workers never wait together: then they
are two workloads.
"""

from collections.abc import Iterable
from typing import Final

from slurm_bridge.model import kinds, names
from slurm_bridge.model.groups import LeaderWorkerSet
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import MemberLost, Root, Workload
from slurm_bridge.workloads import gangs, voices
from slurm_bridge.workloads.draft import ChildDraft, numbers, spec_of
from slurm_bridge.workloads.given import Given, Members
from slurm_bridge.workloads.kind_spec import KindPage, KindSpec
from slurm_bridge.workloads.known import Known, Options

_KIND: Final = kinds.LEADERWORKERSETS

#: A pod that is made again joins the others. With any other policy the controller makes the whole group again.
_STAY: Final = frozenset({"None", "Default"})

_LEADER, _WORKERS = "leader", "workers"


def handles(pod: Pod) -> tuple[str, ...]:
    """The name of the set."""
    name = pod.metadata.labels.get(names.LABEL_LWS_NAME)
    return (name,) if name else ()


def claim(pod: Pod, known: Known, _options: Options) -> Root | None:
    """A pod with the labels of a set that a StatefulSet has made; a copy of such a pod is a pod of its own."""
    labels, namespace = pod.metadata.labels, pod.metadata.namespace
    name, group = labels.get(names.LABEL_LWS_NAME, ""), labels.get(names.LABEL_LWS_GROUP, "")
    if not (name and group and kinds.STATEFULSETS.maker_of(pod) and known.served(_KIND)):
        return None
    found = known.find(_KIND, namespace, name)
    uid = found.uid if found is not None else f"{_KIND.kind}:{namespace}/{name}"
    parts = [uid, group, *([_part(pod)] if found is not None and _in_steps(found) else [])]
    return Root(kind=_KIND.kind, namespace=namespace, name=name, uid=":".join(parts))


def gather(root: Root, members: Members, given: Given) -> Workload | Wait:
    """One group, or the leader or the workers of one."""
    found = given.known.find(_KIND, root.namespace, root.name)
    if found is None:
        return gangs.missing(root)
    pod = members.any()
    group, part = pod.metadata.labels.get(names.LABEL_LWS_GROUP, ""), _part(pod) if _in_steps(found) else ""
    # The size that the pod was made for: while an update rolls, groups of the old and the new size exist.
    made_for = voices.number(pod.metadata.annotations.get(names.ANNOTATION_LWS_SIZE))
    size = made_for or found.spec.leader_worker_template.size
    size = max(1, {_LEADER: 1, _WORKERS: size - 1}.get(part, size))
    stays = found.spec.leader_worker_template.restart_policy in _STAY
    plan = gangs.GangPlan(
        called=f"group {group} of {root}",
        job_name="-".join([root.name, group, *([part] if part else [])]),
        minimum=size,
        size=size,
        sources=lambda first: (voices.own(first), voices.source(_KIND, found)),
        controller=Root(kind=root.kind, namespace=root.namespace, name=root.name, uid=found.uid),
        lost=MemberLost.KEEP if stays else MemberLost.FOLLOW,
    )
    return gangs.whole(root, plan, members, given)


def _in_steps(found: LeaderWorkerSet) -> bool:
    return found.spec.startup_policy == "LeaderReady" or names.ANNOTATION_LWS_EXCLUSIVE in found.metadata.annotations


def _part(pod: Pod) -> str:
    return _LEADER if pod.metadata.labels.get(names.LABEL_LWS_WORKER) == "0" else _WORKERS


def makes(found: LeaderWorkerSet, manifest: Manifest) -> Iterable[ChildDraft]:
    """A StatefulSet of leaders; each leader owns a StatefulSet of its workers."""
    pods = spec_of(manifest).get("leaderWorkerTemplate") or {}
    count = 1 if found.spec.replicas is None else found.spec.replicas
    numbered = numbers(_KIND, found, "spec.replicas", count if found.spec.leader_worker_template.size else 0)
    groups = (_group(found, pods, group) for group in numbered)
    yield ChildDraft(kind=kinds.STATEFULSETS, name=found.metadata.name, makes=groups)


def _group(found: LeaderWorkerSet, pods: Manifest, group: int) -> ChildDraft:
    name, size = f"{found.metadata.name}-{group}", found.spec.leader_worker_template.size
    labels = {names.LABEL_LWS_NAME: found.metadata.name, names.LABEL_LWS_GROUP: str(group)}

    def member(number: int, name: str, template: Manifest | None, role: str, made: Iterable[ChildDraft]) -> ChildDraft:
        return ChildDraft(
            kind=kinds.PODS,
            name=name,
            template=template or {},
            labels={**labels, names.LABEL_LWS_WORKER: str(number)},
            annotations={names.ANNOTATION_LWS_SIZE: str(size)},
            role=role,
            makes=made,
        )

    worker = pods.get("workerTemplate")
    followed = numbers(_KIND, found, "spec.leaderWorkerTemplate.size", size)[1:]
    workers = (member(number, f"{name}-{number}", worker, "worker", ()) for number in followed)
    followers = ChildDraft(kind=kinds.STATEFULSETS, name=name, makes=workers)
    return member(0, name, pods.get("leaderTemplate") or worker, "leader", (followers,))


SPEC = KindSpec(
    name=_KIND.kind,
    handles=handles,
    claim=claim,
    gather=gather,
    resource=_KIND,
    owner=True,
    makes=makes,
    counted="spec.leaderWorkerTemplate.size",
    part=lambda behind: f"group {' '.join(behind)}" if behind else "",
    prefixes=frozenset({"leaderworkerset.sigs.k8s.io"}),
    page=KindPage(
        title="LeaderWorkerSet",
        pods="its leaders and workers",
        one="each of its groups",
        minimum="its size",
        sources="pod, LeaderWorkerSet",
    ),
)
