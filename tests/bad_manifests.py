"""Manifests that the bridge refuses, each for its own reason, with words that the refusal has to contain.

The webhook and the admission policies are tested with the same ones. They are for the scheduler in the call, and for
the chain of hooks `policy, eligibility`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from slurm_bridge.model import names

Json = dict[str, Any]

JOB = names.JOB_PREFIX


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BadManifest:
    """A manifest without a namespace, and fragments of the message that refuses it."""

    name: str
    manifest: Json
    words: tuple[str, ...]


def pod(name: str, scheduler: str, annotations: Mapping[str, str] | None = None, **spec: Any) -> Json:
    """A pod that requests 64Mi of memory."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": _spec(scheduler, spec),
    }


def job(
    name: str, scheduler: str, annotations: Mapping[str, str] | None = None, of_pods: Json | None = None, **spec: Any
) -> Json:
    """A Job of two pods; `of_pods` is the metadata of its template."""
    template = {"metadata": dict(of_pods or {}), "spec": _spec(scheduler, spec)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": {"parallelism": 2, "completions": 2, "template": template},
    }


def deployment(name: str, scheduler: str, of_pods: Json, **spec: Any) -> Json:
    """A Deployment; `of_pods` is the metadata of its template."""
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels, **of_pods},
        "spec": {**_spec(scheduler, spec), "restartPolicy": "Always"},
    }
    wanted = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": wanted}


def manifests(scheduler: str) -> tuple[BadManifest, ...]:
    """All of them."""
    return (*_annotations(scheduler), *_marks(scheduler), *_specs(scheduler), *_owners(scheduler))


def _annotations(scheduler: str) -> tuple[BadManifest, ...]:
    """One annotation of a pod each, with a value of a wrong form."""
    table = {
        "account": ("two words", "a name of letters"),
        "constraints": ("rack1 nvme", "a Slurm feature expression"),
        "cpu-per-task": ("0", "rounds up to 1 to 65533 cpus"),
        "environment": ("yes", "use true, false or torch"),
        "exclusive": ("maybe", "use true or false"),
        "gang": ("yes", "use true or false"),
        "gres": ("gpu:0", "a comma list of name[:type][:count]"),
        "group-id": ("0", "a number from 1000"),
        "job-name": ("", "1 to 255 printable characters"),
        "licenses": ("matlab 1", "a Slurm license expression"),
        "max-nodes": ("-1", "a whole number from 1"),
        "mem-per-node": ("0", "at least 1 MiB"),
        "member-lost": ("restart", "use keep or restart-group"),
        "min-nodes": ("1.5", "a whole number from 1"),
        "node-sort-policy": ("a b", "a name of letters"),
        "one-per-node": ("1", "use true or false"),
        "partition": ("debug,,other", "a comma list of names"),
        "priority": ("0", "a whole number from 1 to 4294967294"),
        "qos": ("high low", "a name of letters"),
        "queue": ("root research", "a name of letters"),
        "reservation": ("x y", "a name of letters"),
        "timelimit": ("0x10", "a whole number of minutes"),
        "user-id": ("root", "a name other than those of system accounts"),
        "wckey": ("!", "a name of letters"),
    }
    one_each = [
        BadManifest(
            name=key,
            manifest=pod(f"bad-{key}", scheduler, {JOB + key: value}),
            words=(f'annotation {JOB}{key}="{value}"', words),
        )
        for key, (value, words) in table.items()
    ]
    typo, three = {JOB + "accont": "physics"}, {JOB + "qos": "a b", JOB + "timelimit": "soon", JOB + "acount": "x"}
    return (
        *one_each,
        BadManifest(name="unknown-key", manifest=pod("bad-typo", scheduler, typo), words=("did you mean account?",)),
        BadManifest(
            name="gres-twice",
            manifest=pod("bad-gres", scheduler, {JOB + "gres": "gpu:1,gpu:2"}),
            words=("each resource once",),
        ),
        BadManifest(
            name="all-at-once",
            manifest=pod("bad-three", scheduler, three),
            words=(f'{JOB}qos="a b"', f'{JOB}timelimit="soon"', f'{JOB}acount="x": unknown key'),
        ),
        BadManifest(
            name="one-pod-many-nodes",
            manifest=pod("bad-span", scheduler, {JOB + "min-nodes": "2"}),
            words=("one pod cannot span nodes",),
        ),
        BadManifest(
            name="less-memory-than-requested",
            manifest=pod("bad-little", scheduler, {JOB + "mem-per-node": "32Mi"}),
            words=("at least the memory that the pod requests, 64Mi",),
        ),
        BadManifest(
            name="group-without-size",
            manifest=pod("bad-group", scheduler, {names.GROUP: "a", names.GROUP_SIZE: "many"}),
            words=(names.GROUP_SIZE, "the number of pods of the group"),
        ),
    )


def _marks(scheduler: str) -> tuple[BadManifest, ...]:
    """What only the bridge writes."""
    labelled = pod("bad-job-id", scheduler)
    labelled["metadata"]["labels"] = {names.LABEL_JOB_ID: "7"}
    notes = {
        "slurm-node": names.ANNOTATION_SLURM_NODE,
        "bound-by": names.ANNOTATION_BOUND_BY,
        "parked": names.ANNOTATION_PARKED,
    }
    in_template = {"annotations": {names.ANNOTATION_BOUND_BY: "here"}}
    return (
        BadManifest(name="job-id", manifest=labelled, words=(names.LABEL_JOB_ID, "only slurm-bridge may write")),
        *(
            BadManifest(
                name=name,
                manifest=pod(f"bad-{name}", scheduler, {key: "x"}),
                words=(key, "only slurm-bridge may write"),
            )
            for name, key in notes.items()
        ),
        BadManifest(
            name="mark-in-template",
            manifest=job("bad-marked", scheduler, of_pods=in_template),
            words=(names.ANNOTATION_BOUND_BY, "only slurm-bridge may write"),
        ),
    )


def _specs(scheduler: str) -> tuple[BadManifest, ...]:
    """Fields of a pod."""
    near = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    port = {"name": "c", "image": "busybox", "ports": [{"containerPort": 80, "hostPort": 8080}]}
    huge = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "70000"}}}
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"c{one}", "uid": f"u{one}"} for one in range(17)]
    owned = pod("bad-owners", scheduler)
    owned["metadata"]["ownerReferences"] = owners
    tolerations = [{"key": f"k{one}", "operator": "Exists"} for one in range(101)]
    return (
        BadManifest(
            name="node",
            manifest=pod("bad-node", scheduler, nodeName="n1"),
            words=("spec.nodeName cannot be set beside schedulerName",),
        ),
        BadManifest(name="owners", manifest=owned, words=("17 owner references; at most 16 are allowed",)),
        BadManifest(
            name="tolerations",
            manifest=pod("bad-tolerations", scheduler, tolerations=tolerations),
            words=("spec.tolerations has",),
        ),
        BadManifest(
            name="cpus",
            manifest=pod("bad-cpus", scheduler, containers=[huge]),
            words=("requests 70000 cpus; at most 65533 are allowed",),
        ),
        BadManifest(
            name="spread",
            manifest=pod("bad-spread", scheduler, topologySpreadConstraints=[spread]),
            words=("spec.topologySpreadConstraints[0]", "needs hook kube-scheduler (predicate EvenPodsSpread)"),
        ),
        BadManifest(
            name="affinity",
            manifest=pod("bad-affinity", scheduler, affinity={"podAffinity": {required: [near]}}),
            words=("spec.affinity.podAffinity", "needs hook kube-scheduler (predicate MatchInterPodAffinity)"),
        ),
        BadManifest(
            name="host-port",
            manifest=pod("bad-port", scheduler, containers=[port]),
            words=("spec.containers[0].ports[0].hostPort (8080)", "needs hook kube-scheduler"),
        ),
        BadManifest(
            name="claims",
            manifest=pod("bad-claims", scheduler, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}]),
            words=("spec.resourceClaims[0] (gpu)", "needs hook device-claims"),
        ),
    )


def _owners(scheduler: str) -> tuple[BadManifest, ...]:
    """Objects that make or group pods."""
    soon = {"annotations": {JOB + "timelimit": "soon"}}
    nodes = {JOB + "min-nodes": "3", JOB + "max-nodes": "2"}
    cron = job("x", scheduler, {JOB + "qos": "a b"})
    jobset = job("x", scheduler)
    part = {"name": "workers", "replicas": 1, "template": {"spec": jobset["spec"]}}
    workers = {"size": 2, "workerTemplate": {"metadata": soon, "spec": _spec(scheduler, {"restartPolicy": "Always"})}}
    return (
        BadManifest(
            name="job",
            manifest=job("bad-job", scheduler, {JOB + "timelimit": "soon"}),
            words=("Job ", f'bad-job: annotation {JOB}timelimit="soon"', "a whole number of minutes"),
        ),
        BadManifest(
            name="job-nodes",
            manifest=job("bad-nodes", scheduler, nodes),
            words=(f'{JOB}min-nodes="3"', "use at most max-nodes, which is 2"),
        ),
        BadManifest(
            name="job-template",
            manifest=job("bad-template", scheduler, of_pods=soon),
            words=("bad-template-xxxxx", f'{JOB}timelimit="soon"'),
        ),
        BadManifest(
            name="deployment",
            manifest=deployment("bad-deployment", scheduler, soon),
            words=("bad-deployment-xxxxx", f'{JOB}timelimit="soon"'),
        ),
        BadManifest(
            name="cronjob",
            manifest={
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "metadata": {"name": "bad-cron"},
                "spec": {"schedule": "* * * * *", "suspend": True, "jobTemplate": {**_template(cron)}},
            },
            words=("CronJob ", f'{JOB}qos="a b"'),
        ),
        BadManifest(
            name="jobset",
            manifest={
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "metadata": {"name": "bad-jobset", "annotations": {JOB + "gang": "yes"}},
                "spec": {"replicatedJobs": [part]},
            },
            words=("JobSet ", f'bad-jobset: annotation {JOB}gang="yes"'),
        ),
        BadManifest(
            name="leaderworkerset",
            manifest={
                "apiVersion": "leaderworkerset.x-k8s.io/v1",
                "kind": "LeaderWorkerSet",
                "metadata": {"name": "bad-lws"},
                "spec": {"replicas": 1, "leaderWorkerTemplate": workers},
            },
            words=("bad-lws-xxxxx", f'{JOB}timelimit="soon"'),
        ),
        BadManifest(
            name="podgroup",
            manifest={
                "apiVersion": "scheduling.x-k8s.io/v1alpha1",
                "kind": "PodGroup",
                "metadata": {"name": "bad-podgroup", "annotations": {JOB + "partition": "a b"}},
                "spec": {"minMember": 2},
            },
            words=("PodGroup ", f'{JOB}partition="a b"'),
        ),
    )


def _template(made: Json) -> Json:
    """A Job as the template of a CronJob."""
    return {"metadata": {"annotations": made["metadata"]["annotations"]}, "spec": made["spec"]}


def _spec(scheduler: str, spec: Mapping[str, Any]) -> Json:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
    return {"schedulerName": scheduler, "restartPolicy": "Never", "containers": [container], **spec}
