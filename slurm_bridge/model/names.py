"""The names that users, administrators and other programs see: keys, prefixes, defaults."""

from typing import NewType

JobId = NewType("JobId", int)

#: Distinguishes one incarnation of a workload from every other in the cluster: see `workload_key`.
WorkloadKey = NewType("WorkloadKey", str)

#: Where there is no workload.
NO_WORKLOAD = WorkloadKey("")

#: In the outcome of an order that is about no job.
NO_JOB = JobId(0)

SCHEDULER_NAME = "slurm-bridge-scheduler"

JOB_PREFIX = "slurmjob.slinky.slurm.net/"
SCHEDULER_PREFIX = "scheduler.slinky.slurm.net/"
NODE_PREFIX = "slinky.slurm.net/"

#: Written by the bridge on a pod, in the same write that binds it.
LABEL_JOB_ID = SCHEDULER_PREFIX + "slurm-jobid"
ANNOTATION_SLURM_NODE = NODE_PREFIX + "slurm-node"
#: Likewise: the `cluster_id` of the bridge. Other bridges write the same label, and the node, but not this.
ANNOTATION_BOUND_BY = SCHEDULER_PREFIX + "bound-by"
#: Likewise: what the pod asked for then, which is what Slurm counts for it as long as it runs.
ANNOTATION_COUNTED = SCHEDULER_PREFIX + "counted"

#: Likewise, where the pod asks for Slurm's environment: the variables of its task, which the kubelet reads from here.
ANNOTATION_NODE_LIST = SCHEDULER_PREFIX + "slurm-nodelist"
ANNOTATION_NODE_COUNT = SCHEDULER_PREFIX + "slurm-nnodes"
ANNOTATION_TASK_COUNT = SCHEDULER_PREFIX + "slurm-ntasks"
ANNOTATION_RANK = SCHEDULER_PREFIX + "slurm-procid"
ANNOTATION_NODE_NUMBER = SCHEDULER_PREFIX + "slurm-nodeid"
ANNOTATION_LOCAL_RANK = SCHEDULER_PREFIX + "slurm-localid"
ANNOTATION_MASTER = SCHEDULER_PREFIX + "slurm-master"
ANNOTATION_DEVICES = SCHEDULER_PREFIX + "slurm-devices"
#: Likewise: which of these are too long for an annotation.
ANNOTATION_LEFT_OUT = SCHEDULER_PREFIX + "slurm-left-out"

#: In the order in which the documentation lists them.
TASK_ANNOTATIONS = (
    ANNOTATION_NODE_LIST,
    ANNOTATION_NODE_COUNT,
    ANNOTATION_TASK_COUNT,
    ANNOTATION_RANK,
    ANNOTATION_NODE_NUMBER,
    ANNOTATION_LOCAL_RANK,
    ANNOTATION_MASTER,
    ANNOTATION_DEVICES,
    ANNOTATION_LEFT_OUT,
)

#: Written by users on pods and on objects that make them: Slurm's environment is asked for.
ENVIRONMENT = "environment"

#: Written by another bridge on pods of its own, and taken away by it when they are over.
FINALIZER_OF_ANOTHER = SCHEDULER_PREFIX + "finalizer"
#: Likewise on nodes, with its scheduler name as the value: pods without its toleration are evicted.
TAINT_OF_ANOTHER = NODE_PREFIX + "managed-node"

#: How the names of reservations begin that a bridge has made.
RESERVATION_PREFIX = "slurm-bridge-"

#: Written by administrators on a Kubernetes node whose name in Slurm differs.
LABEL_SLURM_NODE_NAME = NODE_PREFIX + "slurm-nodename"

#: Likewise, where it is in Slurm's topologies: `racks:core:rack4,blocks:block2`.
ANNOTATION_NODE_TOPOLOGY = "topology.slinky.slurm.net/spec"

#: Likewise: the node is registered in Slurm as an external node, and joins these partitions (a comma list).
LABEL_EXTERNAL_NODE = SCHEDULER_PREFIX + "external-node"
ANNOTATION_EXTERNAL_PARTITIONS = SCHEDULER_PREFIX + "external-node-partitions"

#: Written by administrators on a namespace: the part of the cluster that it belongs to, where several daemons share it.
LABEL_PART = SCHEDULER_PREFIX + "part"
#: Written by the bridge on the Lease that all daemons with parts share: a daemon without parts never takes it.
ANNOTATION_PARTS = SCHEDULER_PREFIX + "parts"

#: Written by the bridge on a node, with the taint that it says: `key=value:effect`.
ANNOTATION_MANAGED_TAINT = SCHEDULER_PREFIX + "managed-taint"

#: Written by the bridge on a pod whose pending placeholder a user cancelled: what was cancelled, and why it waits.
ANNOTATION_PARKED = SCHEDULER_PREFIX + "parked"

#: Written by the bridge on a pod before its eviction: for which workload. And on the pods that wait: what is evicted.
ANNOTATION_MAKES_ROOM = SCHEDULER_PREFIX + "makes-room-for"
ANNOTATION_ROOM = SCHEDULER_PREFIX + "room-made-by"
#: Letters of that note: it names all pods that are evicted for one, which may be hundreds.
MOST_OF_ROOM = 48 << 10

#: Written by the bridge on a claim, in the same write that selects a node for it: by which job, and which node.
ANNOTATION_SELECTED_BY = SCHEDULER_PREFIX + "selected-by"

#: Written by the admission webhook on pods, and on the objects that make them: the user that created them.
ANNOTATION_CREATED_BY = SCHEDULER_PREFIX + "created-by"

#: Written by users on a parked pod, any new value: try again although nothing else changed.
ANNOTATION_RETRY = SCHEDULER_PREFIX + "retry"

#: Written by users on pods of any kind that belong together, as a label or an annotation: the group, and how many.
GROUP = SCHEDULER_PREFIX + "group"
GROUP_SIZE = SCHEDULER_PREFIX + "group-size"

#: Written by users on the owner of the pods (or on the group): one placeholder for all, and what if one is lost.
ANNOTATION_GANG = JOB_PREFIX + "gang"
ANNOTATION_MEMBER_LOST = JOB_PREFIX + "member-lost"
ANNOTATION_MINIMUM_NODES = JOB_PREFIX + "min-nodes"

#: Written by users: the PodGroup of the coscheduling plugin that a pod belongs to.
LABEL_COSCHEDULING = "scheduling.x-k8s.io/pod-group"

#: Written by users, or by KAI's pod grouper: the PodGroup of KAI that a pod belongs to, and which part of it.
ANNOTATION_KAI_GROUP = "pod-group-name"
LABEL_KAI_SUBGROUP = "kai.scheduler/subgroup-name"

#: Written by users: the levels of a topology on which pods are placed in one domain.
ANNOTATION_KAI_TOPOLOGY = "kai.scheduler/topology"
ANNOTATION_KAI_REQUIRED = "kai.scheduler/topology-required-placement"
ANNOTATION_KAI_PREFERRED = "kai.scheduler/topology-preferred-placement"

#: Written by the controllers on the pods that they make.
ANNOTATION_COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
LABEL_JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
LABEL_JOBSET_UID = "jobset.sigs.k8s.io/jobset-uid"
LABEL_JOBSET_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
LABEL_JOBSET_PART = "jobset.sigs.k8s.io/replicatedjob-name"
LABEL_JOBSET_GLOBAL_INDEX = "jobset.sigs.k8s.io/job-global-index"
LABEL_LWS_NAME = "leaderworkerset.sigs.k8s.io/name"
LABEL_LWS_GROUP = "leaderworkerset.sigs.k8s.io/group-index"
LABEL_LWS_WORKER = "leaderworkerset.sigs.k8s.io/worker-index"
ANNOTATION_LWS_SIZE = "leaderworkerset.sigs.k8s.io/size"
LABEL_MPI_NAME = "training.kubeflow.org/job-name"

#: Written by users: one domain for each group (or Job). The followers then come only after the leader has a node...
ANNOTATION_LWS_EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
ANNOTATION_JOBSET_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
#: ... unless the administrator has labelled the nodes for each Job beforehand.
ANNOTATION_JOBSET_SELECTED = "alpha.jobset.sigs.k8s.io/node-selector"


def workload_key(kind: str, namespace: str, name: str, uid: str) -> WorkloadKey:
    """One text for (kind, namespace, name, uid). Two different tuples never have the same one.

    Names of groups are written by users, in any letters; the API server keeps "/" out of the names of objects.
    """
    before = f"{kind}/{namespace}/{name}/"
    if before.count("/") > _PARTS or "%" in before:
        before = "".join(f"{part.replace('%', '%25').replace('/', '%2F')}/" for part in (kind, namespace, name))
    return WorkloadKey(before + uid)


def uid_of(key: WorkloadKey | str) -> str:
    """The uid of the object in the key of a workload; what has no parts is the uid of a pod."""
    return key.split("/", _PARTS)[-1]


def namespace_of(key: WorkloadKey) -> str:
    """The namespace in the key of a workload."""
    return key.split("/", 2)[1] if "/" in key else ""


#: How many parts of a key are in front of the uid.
_PARTS = 3
