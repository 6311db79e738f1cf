"""The rows as viewers get them: arrays in JSON, in the order of these fields, whose names are sent once per stream.

Times are Unix seconds, 0 where there is none; memory is in MiB. Texts are of users: bounded here, and escaped where
they are drawn.
"""

import msgspec

#: A message is cut off after so many letters in the list; the details of a workload have all of it.
MOST_TEXT = 240
#: So many nodes are named in the row of a workload.
MOST_NODES = 4

#: How far a workload has come, in the order of its life.
HELD, QUEUED, STARTING, RUNNING, LEAVING, DONE, FAILED = STAGES = (
    "held",
    "queued",
    "starting",
    "running",
    "leaving",
    "done",
    "failed",
)


class LiveRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """An array in JSON."""


class LiveWorkload(LiveRow, frozen=True, kw_only=True, array_like=True, gc=False):
    """One workload. `number` names the row in one view; `reason` is the dominant one, "" where it waits for nothing.

    held: not in Slurm; queued: its job is pending; starting: it has nodes, and pods are being bound. `starts` is when
    its job started, or Slurm's estimate while it is queued. `lead` is a pod by which it can be explained.
    """

    number: int
    kind: str
    namespace: str
    name: str
    uid: str
    stage: str
    pods: int
    bound: int
    job: int
    reason: str
    message: str
    partition: str
    account: str
    cpus: int
    memory: int
    gpus: int
    nodes: tuple[str, ...]
    node_count: int
    priority: int
    created: int
    submitted: int
    starts: int
    lead: str


class LiveNode(LiveRow, frozen=True, kw_only=True, array_like=True, gc=False):
    """One node: of cpus, memory and GPUs how many it has, and how many are held.

    The four numbers are: all, held by pods of this bridge, by other pods, and by other jobs of Slurm. `state` is one
    word: idle, mixed, full, drained, down, or absent (Slurm has no such node); `why` is what either side says of that.
    """

    name: str
    slurm_name: str
    state: str
    why: str
    partitions: tuple[str, ...]
    pods: int
    cpus: tuple[int, int, int, int]
    memory: tuple[int, int, int, int]
    gpus: tuple[int, int, int, int]


class LiveDecision(LiveRow, frozen=True, kw_only=True, array_like=True, gc=False):
    """What a workload was told, as its pods are."""

    at: int
    kind: str
    namespace: str
    name: str
    reason: str
    message: str
    warning: bool


def names(row: type[LiveRow]) -> tuple[str, ...]:
    """The names of the fields, in the order of the arrays."""
    return row.__struct_fields__
