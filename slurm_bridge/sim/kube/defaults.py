"""The defaults that the apiserver fills in, as far as they are read anywhere."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

Manifest = dict[str, Any]

_JOB_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
_JOB_NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")
GROUP_PROTECTION = "scheduling.k8s.io/podgroup-protection"


def fill(resource_key: str, manifest: Manifest) -> None:
    """Complete a new object, which has its uid already."""
    if resource_key in _FILLERS:
        _FILLERS[resource_key](manifest)


def tolerate(spec: Manifest) -> None:
    """The tolerations that let a pod outlive a short absence of its node; added on updates as well."""
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(line.get("key") == key for line in tolerations):
            line = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            tolerations.append(line)


def pod_spec(spec: Manifest) -> None:
    """The part that templates have as well."""
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        resources = container.setdefault("resources", {})
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        tag = container.get("image", "").rpartition("/")[2].partition(":")[2]
        container.setdefault("imagePullPolicy", "IfNotPresent" if tag not in ("", "latest") else "Always")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")


def _pod(pod: Manifest) -> None:
    # A controller makes all of its pods from one template, which stays as it is.
    spec = pod["spec"] = {**pod["spec"]}
    pod_spec(spec)
    spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    if spec.get("automountServiceAccountToken") is not False:
        _mount_token(spec, pod["metadata"]["uid"])
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerate(spec)
    pod["status"] = {"phase": "Pending", "qosClass": _quality(spec)}
    if spec.get("schedulingGates"):
        pod["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastTransitionTime": pod["metadata"]["creationTimestamp"],
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]


def _mount_token(spec: Manifest, uid: str) -> None:
    """The token of the service account, as a volume whose name is another one for each pod."""
    name = f"kube-api-access-{hashlib.blake2b(uid.encode(), digest_size=3).hexdigest()[:5]}"
    for field in spec.keys() & {"containers", "initContainers"}:
        spec[field] = [
            {**one, "volumeMounts": [*one.get("volumeMounts", ()), {"name": name, **_TOKEN_MOUNT}]}
            for one in spec[field]
        ]
    spec["volumes"] = [*spec.get("volumes", ()), {"name": name, "projected": _TOKEN}]


#: Where the token is in each container, and what else is beside it.
_TOKEN_MOUNT: Final = {"readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
_TOKEN: Final = {
    "defaultMode": 0o644,
    "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
            }
        },
    ],
}


def _quality(spec: Mapping[str, Any]) -> str:
    resources = [container["resources"] for container in spec.get("containers", ())]
    if not any(part.get("requests") or part.get("limits") for part in resources):
        return "BestEffort"
    full = all(
        {"cpu", "memory"} <= part.get("limits", {}).keys() and part.get("requests") == part["limits"]
        for part in resources
    )
    return "Guaranteed" if full else "Burstable"


def _job(job: Manifest) -> None:
    spec, metadata = job["spec"], job["metadata"]
    if "parallelism" not in spec and "completions" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec["selector"] = {"matchLabels": {_JOB_LABELS[0]: metadata["uid"]}}
    template = spec["template"]
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    labels.update(dict.fromkeys(_JOB_LABELS, metadata["uid"]), **dict.fromkeys(_JOB_NAME_LABELS, metadata["name"]))
    # A Job without labels takes those of its template; one with labels keeps them.
    metadata.setdefault("labels", dict(labels))
    pod_spec(template["spec"])


def _namespace(namespace: Manifest) -> None:
    metadata = namespace["metadata"]
    metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata["name"]
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}


def _pod_group(group: Manifest) -> None:
    group["spec"].setdefault("disruptionMode", "Pod")
    group["metadata"].setdefault("finalizers", []).append(GROUP_PROTECTION)


def _node(node: Manifest) -> None:
    node.setdefault("spec", {})
    node["metadata"].setdefault("labels", {})


_FILLERS: Mapping[str, Callable[[Manifest], None]] = {
    "pods": _pod,
    "jobs.batch": _job,
    "namespaces": _namespace,
    "nodes": _node,
    "podgroups.scheduling.k8s.io": _pod_group,
}
