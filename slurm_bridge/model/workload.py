"""Which pods are placed together, whose they are, and where their annotations come from."""

import dataclasses
from collections.abc import Mapping

from slurm_bridge.model.pod import Pod


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """One incarnation of a workload: what the queue, the mirror and the owner record are keyed by."""

    kind: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An object whose annotations speak for the workload."""

    kind: str
    name: str
    annotations: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Members in rank order, and the objects that describe them, the weakest voice first.

    `controller` is the nearest object that makes such pods, None for a bare pod: what one pod of it taught us (a node
    that refused it, a limit that it hit) holds for its replacement too.
    """

    root: Root
    pods: tuple[Pod, ...]
    sources: tuple[Source, ...]
    job_name: str
    controller: Root | None = None

    @property
    def priority(self) -> int:
        """The highest among the members."""
        return max((pod.spec.priority or 0 for pod in self.pods), default=0)

    @property
    def created(self) -> str:
        """When the first member appeared: Kubernetes' own time, which sorts as text."""
        return min((pod.metadata.creation_timestamp or "" for pod in self.pods), default="")

    @property
    def service_account(self) -> str:
        """Under which the first member runs; members of one workload share it."""
        return (self.pods[0].spec.service_account_name or "default") if self.pods else "default"
