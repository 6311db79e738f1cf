"""The owners above a pod as they were read."""

import dataclasses
import itertools
from typing import Protocol

from slurm_bridge.model import kinds
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.workloads.known import Known


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OwnerLink:
    """One owner that could be read, and what its kind reads in it.

    `speaks`: its annotations count before those of any owner of another kind. `suspended`: its pods must not run now.
    `deadline_seconds`: how long it lets its pods run. `controls`: what is below names it as its controller.
    """

    kind: Kind[Object]
    object: Object
    speaks: bool = False
    suspended: bool = False
    deadline_seconds: int | None = None
    controls: bool = False

    @property
    def name(self) -> str:
        """The name of the object."""
        return self.object.metadata.name


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OwnerChain:
    """Owners, the nearest first; `problem` says why it goes no further, empty when it ends by itself.

    `gone`: the next owner was deleted, so everything below it will be deleted, too.
    """

    links: tuple[OwnerLink, ...] = ()
    problem: str = ""
    gone: bool = False

    @property
    def speaker(self) -> OwnerLink | None:
        """The owner whose annotations count for the workload, beside the pod's own.

        A pod that makes pods, such as a driver that makes executors, speaks for itself: it is a workload of its own.
        """
        objects = [link for link in self.links if link.kind is not kinds.PODS]
        named = [link for link in objects if link.speaks]
        return (named or objects or (None,))[-1]

    @property
    def topmost(self) -> OwnerLink | None:
        """The highest of the controllers. A CronJob is a schedule: each of its Jobs is a run of its own."""
        made_by = itertools.takewhile(lambda link: link.controls and link.kind is not kinds.CRONJOBS, self.links)
        return next(reversed(tuple(made_by)), None)


class OwnerChains(Protocol):
    """Reads chains. `known` is what is known in memory, with what was learned by reading."""

    known: Known

    def resolve(self, pod: Pod, /) -> OwnerChain:
        """The chain above this pod; TryLater when the server does not say what stands there."""
