"""What a hook may have beside its phases: one Protocol for each capability, and every one of them is optional.

    capability    methods                          what for
    Closes        close                            ends its work and its threads when its chain is replaced
    Forgets       forget                           drops what it remembers of a workload that does not wait any more
    CountsEnds    ended                            counts what workloads keep: this one keeps nothing any more
    Restores      restored                         counts what workloads keep: these do, when the program begins
    ShowsQueues   picture                          has queues, which are shown over HTTP and as metrics
    Evicts        recalls, rooms, … (`evictions`)  says which workloads have to leave
    Preempts      supports, propose (`evictions`)  says which pods leave for a workload of a higher priority
    Reserves      passed, keeps                    says for which workloads nodes are kept
    HasThreads    dead                             has threads that have to live for as long as it does
    Parts         parts_of                         says which parts of a workload have to have nodes of their own
    GivesDevices  devices_of, devices, …           says what ResourceClaims ask for, and which devices there are

Capabilities are found once, when a hook becomes part of a chain (`Capabilities.of`). Hooks of a site have `close` only;
all others are for hooks that ship with the bridge. Registration refuses a hook with half of a capability (`problems`).
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, runtime_checkable

from slurm_bridge.cluster.rules.devices import DeviceSight
from slurm_bridge.hooks.base import Ask, Nodes
from slurm_bridge.hooks.evictions import Evicts, Preempts
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.model.job import Gres
from slurm_bridge.model.names import NO_WORKLOAD, WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Workload


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ActiveUsage:
    """A workload with a job in Slurm, or with pods on nodes. `started`: none of its pods waits for a node any more.

    `makes_room_for` is the key of the workload that it was to make room for, as its pods say; `leaves`: its pods are
    terminating. One that `waits` keeps nothing: it is listed because others, here by key with their names, were to make
    room for it. `missing`: its job was asked for so many members more than `ask` has, and keeps their places.
    """

    ask: Ask
    started: bool
    makes_room_for: WorkloadKey = NO_WORKLOAD
    leaves: bool = False
    waits: bool = False
    room_made_by: Mapping[WorkloadKey, str] = dataclasses.field(default_factory=dict)
    missing: int = 0

    @property
    def uid(self) -> WorkloadKey:
        """The key of its root."""
        return self.ask.workload.root.key


@runtime_checkable
class Closes(Protocol):
    """A hook that works beside the passes."""

    def close(self) -> None:
        """End that work; a hook of a site does so within `calls.CLOSE_SECONDS`."""


@runtime_checkable
class Forgets(Protocol):
    """A hook that remembers workloads while they wait."""

    def forget(self, workload: WorkloadKey) -> None:
        """No pod of the workload with this root waits any more."""


@runtime_checkable
class CountsEnds(Protocol):
    """A hook that counts what workloads keep, and is told of each that keeps nothing."""

    def ended(self, workload: WorkloadKey) -> None:
        """The workload keeps nothing in Slurm and on no node: it is over, or may not have a job.

        Said at every look at such a workload, not only at the first one.
        """


@runtime_checkable
class Restores(Protocol):
    """A hook that counts what workloads keep, and knows nothing of it when the program starts."""

    def restored(self, held: Sequence[ActiveUsage], views: Mapping[Need, View], *, fresh: bool) -> None:
        """These workloads keep something, and no others do. `views` are those of its `needs`.

        Called before the first pass of a leadership, which is `fresh`, and of a configuration.
        """


@runtime_checkable
class ShowsQueues(Protocol):
    """A hook with queues."""

    def picture(self) -> Mapping[str, Any] | None:
        """The queues now, as the page /queues shows them; None where this process does not lead."""


@runtime_checkable
class Reserves(Protocol):
    """A hook that says for which workloads nodes are kept; called by any thread."""

    #: For so many workloads at once; 0: for none.
    reservations: int
    #: Nodes that are not used within so many seconds are for all again, and others have their turn.
    reserve_seconds: float

    def passed(self) -> Sequence[WorkloadKey]:
        """Workloads that have waited for nodes for long enough while others came by; the next one first."""

    def keeps(self, nodes: frozenset[str]) -> None:
        """These are reserved in Slurm for such workloads just now, by the names that Kubernetes has for them."""

    def count(self, what: str, amount: int = 1) -> None:
        """Something happened to a reservation."""


@runtime_checkable
class HasThreads(Protocol):
    """A hook with threads that have to live for as long as it does."""

    @property
    def dead(self) -> Sequence[str]:
        """The names of those that have ended without being told to."""


@runtime_checkable
class Parts(Protocol):
    """A hook that gives parts of a workload nodes of their own; called by any thread, before every phase."""

    def parts_of(self, workload: Workload) -> Mapping[str, str]:
        """The name of the part by the uid of each of its pods; pods that are in none are left out.

        The answer follows from the workload and the configuration alone: it is asked again once the job runs.
        """


@runtime_checkable
class GivesDevices(Protocol):
    """A hook that honours ResourceClaims; called by any thread. `views` are those of its `needs`."""

    def devices_of(
        self, workload: Workload, views: Mapping[Need, View], eligible: Callable[[Pod], Nodes]
    ) -> Mapping[str, tuple[Gres, ...]]:
        """What the claims of each pod, by its uid, ask Slurm for; pods of which that is not known are left out.

        `eligible` are the nodes that can take such a pod, whatever devices they have.
        """

    def class_gres(self, views: Mapping[Need, View]) -> Mapping[str, str]:
        """Extended resources behind which DeviceClasses are, and the GRES that one of each is in Slurm."""

    def offers(self, views: Mapping[Need, View]) -> Mapping[str, Mapping[str, int]]:
        """By the name of the node, what it has of these resources."""

    def devices(self, views: Mapping[Need, View], namespace: str) -> DeviceSight:
        """Claims and devices as last heard; what is compared costs the time of this namespace."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The hook itself under each capability that it has, else None."""

    closes: Closes | None = None
    forgets: Forgets | None = None
    counts_ends: CountsEnds | None = None
    restores: Restores | None = None
    shows_queues: ShowsQueues | None = None
    evicts: Evicts | None = None
    preempts: Preempts | None = None
    reserves: Reserves | None = None
    has_threads: HasThreads | None = None
    parts: Parts | None = None
    gives_devices: GivesDevices | None = None

    @classmethod
    def of(cls, hook: object, *, foreign: bool) -> Self:
        """What this hook has; a foreign one, of a site, can only be closed."""
        found: dict[str, Any] = {field: hook for field, kind in _kinds(foreign=foreign) if isinstance(hook, kind)}
        return cls(**found)


#: The Protocol of each field of `Capabilities`.
PROTOCOLS: Mapping[str, type] = {
    "closes": Closes,
    "forgets": Forgets,
    "counts_ends": CountsEnds,
    "restores": Restores,
    "shows_queues": ShowsQueues,
    "evicts": Evicts,
    "preempts": Preempts,
    "reserves": Reserves,
    "has_threads": HasThreads,
    "parts": Parts,
    "gives_devices": GivesDevices,
}

#: Members of several Protocols: one of them alone is no sign of any.
_SHARED = frozenset({"count"})


def problems(hook: object, *, foreign: bool) -> Iterator[str]:
    """What is wrong with the capabilities of a hook: some members are missing, or cannot be called as declared."""
    for _, kind in _kinds(foreign=foreign):
        # Methods and properties, and None for a plain attribute.
        declared = {name: member for name, member in vars(kind).items() if not name.startswith("_")}
        members: dict[str, Any] = {**dict.fromkeys(inspect.get_annotations(kind)), **declared}
        missing = [name for name in members if not hasattr(hook, name)]
        if missing and len(missing) < len(members) and any(hasattr(hook, name) for name in members.keys() - _SHARED):
            yield f"has only a part of {kind.__name__}: {', '.join(missing)} is missing"
        elif not missing:
            yield from _uncallable(hook, members)


def _kinds(*, foreign: bool) -> Sequence[tuple[str, type]]:
    return [("closes", Closes)] if foreign else list(PROTOCOLS.items())


def _uncallable(hook: object, members: Mapping[str, Any]) -> Iterator[str]:
    for name, declared in members.items():
        if not inspect.isfunction(declared):
            continue
        method = getattr(hook, name)
        if not callable(method) or inspect.iscoroutinefunction(method):
            yield f"{name} is no plain method"
            continue
        _, *parameters = inspect.signature(declared).parameters.values()
        named = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
        try:
            inspect.signature(method).bind(*range(len(parameters) - len(named)), **dict.fromkeys(named))
        except TypeError as error:
            # `(workload, *, refused)`
            plain = inspect.Signature([one.replace(annotation=inspect.Parameter.empty) for one in parameters])
            yield f"{name} cannot be called as {name}{plain} ({error})"
