"""Pods that are placed together, the object that they belong to, and the annotations that count for them."""

import dataclasses
import enum
from collections.abc import Mapping

from slurm_bridge.model import creator, names
from slurm_bridge.model.creator import Creator
from slurm_bridge.model.names import WorkloadKey, workload_key
from slurm_bridge.model.pod import Pod


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """One incarnation of a workload.

    `uid` is that of the pod, or that of the object that groups pods, followed by what distinguishes its groups and
    restarts. `key` is all four in one text, under which the queue, the mirror and the scheduler store a workload. The
    uid alone is never a key, because users write uids into labels and owner references.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    key: WorkloadKey = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", workload_key(self.kind, self.namespace, self.name, self.uid))

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def object_key(self) -> WorkloadKey:
        """The key of the object that this is or belongs to: the same for all of its parts and runs.

        The uid of a group that is known by its name only begins with its kind, which all such groups share: there the
        whole key counts.
        """
        before, _, rest = self.uid.partition(":")
        by_name = before.partition(".")[0] == self.kind
        return self.key if by_name or not rest else workload_key(self.kind, self.namespace, self.name, before)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An object whose annotations count for the workload."""

    kind: str
    name: str
    annotations: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NamedPart:
    """A part of a workload that its object names, within another one or not (""), and what it says of it."""

    name: str
    parent: str = ""
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)


class MemberLost(enum.Enum):
    """What happens when a member of a running gang fails or is deleted."""

    KEEP = "the others run on, and the pod that replaces it takes its place"
    FOLLOW = "the controller ends the others; pods that come meanwhile wait for a new start of all"
    RESTART = "we end the others; all start anew"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """Pods that start together or not at all.

    `minimum` is the number from which on they may start, `size` how many there will be, None where it is unknown.
    """

    minimum: int
    size: int | None = None
    member_lost: MemberLost = MemberLost.KEEP

    @property
    def complete_at(self) -> int:
        """The number of members after which no more are expected."""
        return max(self.minimum, self.size or 0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """How long the object that makes the pods lets them run, in seconds, and which object that is."""

    seconds: int
    subject: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Members that want a node, in rank order, and the objects whose annotations count, in the order in which they win.

    `controller` is the nearest object that makes such pods, None for a bare pod: what was learned from one of its pods
    (a node that refused it, a limit that it hit) holds for the replacement, too. `topmost` is the highest controller
    above the pods that was read and is the object that is meant, None where there is none. `suspended` names the object
    that must not run now, "" when there is none. `deadline` is that of a Job above the pods. `parts` are those that the
    object names; no part is within itself, and each parent is among them. `creators` are the users that created the
    objects above the members, by the uid of the controller of each; None where such records do not count.
    """

    root: Root
    pods: tuple[Pod, ...]
    sources: tuple[Source, ...]
    job_name: str
    controller: Root | None = None
    topmost: Root | None = None
    gang: Gang | None = None
    suspended: str = ""
    deadline: Deadline | None = None
    parts: tuple[NamedPart, ...] = ()
    creators: Mapping[str, Creator | None] | None = None

    def creator_of(self, pod: Pod) -> Creator | None:
        """The user that created a member; None where that is not known, or where records of creators do not count."""
        if self.creators is None:
            return None
        said = pod.metadata.annotations.get(names.ANNOTATION_CREATED_BY)
        return self.creators.get(controller_uid(pod)) if said is None else creator.read(said)

    @property
    def lead(self) -> Pod:
        """The first member: it is read, and written to, where one pod stands for all."""
        return self.pods[0]

    @property
    def priority(self) -> int:
        """The highest among the members."""
        return max((pod.spec.priority or 0 for pod in self.pods), default=0)

    @property
    def created(self) -> str:
        """When the first member was created: a time of Kubernetes, which sorts as text."""
        return min((pod.metadata.creation_timestamp or "" for pod in self.pods), default="")

    @property
    def service_account(self) -> str:
        """The service account of the first member; other members of a gang may have another one."""
        return (self.pods[0].spec.service_account_name or "default") if self.pods else "default"


def controller_uid(pod: Pod) -> str:
    """The uid of the controller of a pod, as the pod names it; "" where it names none."""
    return next((one.uid for one in pod.metadata.owner_references if one.controller), "")
