"""The object that a user changes so that its pods change: read from a pod alone, as far as the pod says it."""

import re
from typing import Final

from slurm_bridge.model import names
from slurm_bridge.model.kinds import PODS
from slurm_bridge.model.pod import Pod

#: What makes Jobs and StatefulSets that make pods, by the label that it writes on the pods.
_LABELS: Final = (("JobSet", names.LABEL_JOBSET_NAME), ("LeaderWorkerSet", names.LABEL_LWS_NAME))
#: The controllers of Deployments write this label on pods; their ReplicaSets are named `DEPLOYMENT-HASH`.
_TEMPLATE_HASH: Final = "pod-template-hash"
#: Owner references are not checked by the API server.
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")


def kind_of(pod: Pod) -> str:
    """The kind of this object; `Pod` if no other object makes the pod, or the pod does not say which."""
    for kind, label in _LABELS:
        if pod.metadata.labels.get(label):
            return kind
    owner = next((one for one in pod.metadata.owner_references if one.controller), None)
    if owner is None or not _KIND.fullmatch(owner.kind):
        return PODS.kind
    template = pod.metadata.labels.get(_TEMPLATE_HASH, "")
    of_deployment = owner.kind == "ReplicaSet" and template and owner.name.endswith(f"-{template}")
    return "Deployment" if of_deployment else owner.kind
