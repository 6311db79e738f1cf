"""The names that users, administrators and other programs see: keys, prefixes, defaults."""

from typing import NewType

JobId = NewType("JobId", int)

SCHEDULER_NAME = "slurm-bridge-scheduler"

JOB_PREFIX = "slurmjob.slinky.slurm.net/"
SCHEDULER_PREFIX = "scheduler.slinky.slurm.net/"
NODE_PREFIX = "slinky.slurm.net/"

#: Written by the bridge on a pod, in the same write that binds it.
LABEL_JOB_ID = SCHEDULER_PREFIX + "slurm-jobid"
ANNOTATION_SLURM_NODE = NODE_PREFIX + "slurm-node"

#: Written by administrators on a Kubernetes node whose name in Slurm differs.
LABEL_SLURM_NODE_NAME = NODE_PREFIX + "slurm-nodename"

#: Written by the bridge on a pod whose pending placeholder somebody cancelled: what was cancelled, and why it waits.
ANNOTATION_PARKED = SCHEDULER_PREFIX + "parked"

#: Written by users on such a pod, any new value: try again although nothing else changed.
ANNOTATION_RETRY = SCHEDULER_PREFIX + "retry"
