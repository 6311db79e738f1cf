"""What a reason means for the user, and what to do about it: a sentence for each reason that a workload can show.

The reasons of the bridge are those of the table in docs/operating.md; Slurm's own are those that `squeue` shows.
"""

from collections.abc import Mapping
from typing import Final

NOTHING: Final = "Nothing to do: it goes on by itself."
FOLLOW: Final = "Follow the message. `slurm-bridge explain` shows every step of the decision."

#: By the reason that Slurm gives for a pending job.
OF_SLURM: Final[Mapping[str, str]] = {
    "Resources": "Wait, or ask for less: it is next when nodes become free. `scontrol show job JOB` has the request.",
    "Priority": "Wait: jobs with a higher priority are before it. `sprio -j JOB` shows what its priority is made of.",
    "BeginTime": "Wait until its begin time.",
    "Dependency": "Wait for the job that it depends on: `scontrol show job JOB`.",
    "Licenses": "Wait until licenses are returned: `scontrol show licenses`.",
    "PartitionDown": "Ask the administrator why the partition is down, or name another partition: `sinfo`.",
    "PartitionInactive": "Ask the administrator why the partition is inactive, or name another partition: `sinfo`.",
    "PartitionNodeLimit": "Ask for fewer nodes, or name another partition: `scontrol show partition`.",
    "PartitionTimeLimit": "Set a shorter time limit, or name another partition: `scontrol show partition`.",
    "ReqNodeNotAvail": "Wait, or ask for other nodes: `sinfo -R` says why nodes are not available.",
    "Reservation": "Wait until the reservation begins: `scontrol show reservation`.",
    "JobHeldAdmin": "Ask the administrator to release it: `scontrol release JOB`.",
    "JobHeldUser": "Release it: `scontrol release JOB`.",
    "BadConstraints": "Correct the annotation `constraints`: no node has these features (`sinfo -o '%N %f'`).",
    "AssocGrpCpuLimit": "Wait until jobs of the account end, or use another account: `sacctmgr show assoc`.",
    "AssocMaxJobsLimit": "Wait until jobs of the account end, or use another account: `sacctmgr show assoc`.",
    "QOSMaxJobsPerUserLimit": "Wait until jobs of the user end, or use another QOS: `sacctmgr show qos`.",
    "QOSGrpCpuLimit": "Wait until jobs of the QOS end, or use another QOS: `sacctmgr show qos`.",
}

#: Filled with what follows for the object that makes the pod.
_CORRECT: Final = "Correct the value that the message names{correct}"
_NOT_OURS: Final = "Remove `schedulerName` from the pod{template}: it"
_NODES: Final = "Administrators run `slurm-bridge check`: both sides describe the node differently."

#: By the reason of the bridge, as the condition of the pod has it.
OF_BRIDGE: Final[Mapping[str, str]] = {
    "SlurmJobPending": "Wait, or ask for less.",
    "Unschedulable": "Ask for less or for other nodes; the explanation has the reason for each node.",
    **dict.fromkeys(
        ("InvalidAnnotation", "InvalidResources", "TooManyTerms", "UnknownPartition", "UnknownGres"), _CORRECT
    ),
    "TimeLimitTooLong": "Set a shorter time limit, or name another partition.",
    "NotAllowed": "Use what the policy allows, or ask its administrator.",
    "SlurmJobRejected": "Follow Slurm's words: mostly a limit of the account or QOS. It is tried every 5 minutes.",
    "SlurmUnavailable": "Nothing to do: it is submitted as soon as Slurm answers.",
    "SlurmRefusesBridge": "Tell the administrators of slurm-bridge: its log and `slurm-bridge check` name the cause.",
    "SlurmQueueFull": "Nothing to do: it is submitted when a waiting job starts.",
    "SlurmShareUsed": "Nothing to do: it is submitted when a job of the namespace starts.",
    "SlurmJobsLeftOver": "Nothing to do; if it stays for long, the log says which jobs cannot be cancelled.",
    "UserNotAllowed": "Choose another `user-id`, or ask the administrator of the policy.",
    "GroupNameInvalid": "Give the group another name.",
    "Parked": "Change the request, or run `kubectl slurm retry` with the name of the pod.",
    "Suspended": "Resume the Job or JobSet.",
    "SchedulingGated": "The owner of the scheduling gate has to remove it.",
    "GangIncomplete": "Find out why the other pods do not exist: `kubectl get events`.",
    "GroupMissing": "Create the group that the pod names, or correct the name.",
    "GroupSizeUnknown": "Correct `group-size` on the pods of the group.",
    "GangFull": NOTHING,
    "GangRuns": NOTHING,
    "OwnerUnreadable": "Nothing to do; if it stays, check the API server.",
    "NotHonoured": "Remove the field, or have the hook configured that the message names.",
    "VolumeNotReady": "Follow the message: `kubectl describe pvc` shows the events of the claim.",
    "WaitsForVolumes": "Nothing to do; if it stays, `kubectl describe pvc` shows the events of the claim.",
    "VolumeBindingFailed": "Follow the message: `kubectl describe pvc` shows the events of the claim.",
    "NodeNotVacated": "Nothing to do; if it stays, find out why the earlier pod on the node does not end.",
    **dict.fromkeys(("AllocationTooSmall", "SlurmAllocationEmpty", "NodeFull", "NodeDenied", "NodeUnknown"), _NODES),
    "SystemCritical": f"{_NOT_OURS} cannot wait for Slurm.",
    "BelongsToNode": f"{_NOT_OURS} belongs to its node already.",
    "Extender": "Nothing to do; administrators check the extender.",
    "Sampling": NOTHING,
    "AgentsUnavailable": "Nothing to do; administrators check the agents.",
    "FailedScheduling": "Ask for less; the explanation says what the sampled nodes lack.",
    "QueueWaiting": "Wait: its queue admits it when others end. The queues show how much of which limit is used.",
    "QueueTooSmall": "Ask for less, or submit to a larger queue: this one can never admit it.",
    "QueueRejected": "Name another queue: the message says why none takes it.",
    "InvalidTopology": "Correct the annotation that the message names.",
    "HookFailed": "Ask the administrator: a hook failed, and the log of the daemon has the cause.",
}


#: These replace their pods after a change of the template; what others have made stays as it is.
_REPLACING: Final = frozenset({"Deployment", "LeaderWorkerSet"})


def step(reason: str, job: int, maker: str = "Pod") -> str:
    """What to do about this reason; `job` is the workload's job, 0 without one, `maker` the kind of what is changed."""
    text = OF_SLURM.get(reason) if job else None
    text = text or OF_BRIDGE.get(reason) or (FOLLOW if reason else "")
    text = text.replace("{correct}", _correct(maker)).replace("{template}", _template(maker))
    return text.replace("JOB", str(job)) if job else text


def _correct(maker: str) -> str:
    if maker == "Pod":
        return ": an annotation can be changed on the pod, for other fields create the pod again."
    if maker in _REPLACING:
        return f" in the {maker}: it replaces its pods."
    return (
        f" in the {maker}: an annotation can be changed there, for other fields delete the {maker} and create it again."
    )


def _template(maker: str) -> str:
    return "" if maker == "Pod" else f" template of the {maker}"
