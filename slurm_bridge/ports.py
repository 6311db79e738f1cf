"""All that the program asks of the outside, as Protocols: adapters and fakes implement these.

Only errors of `slurm_bridge.errors` cross a port. Reads raise them; orders to Slurm end in an `Outcome`, because
"we do not know" is an answer there that a caller has to handle and must not be able to overlook.
"""

import dataclasses
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from slurm_bridge.model.callers import Caller, Token
from slurm_bridge.model.job import JobAllocation, JobRequest, JobStates, JobView, Outcome
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.lease import Lease
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.meta import Manifest, Object
from slurm_bridge.model.names import JobId
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.reservation import Reservation
from slurm_bridge.model.slurmnode import NewNodes, NodeChange, NodeListing, Partition, SlurmNode

T = TypeVar("T", bound=Object)
T_co = TypeVar("T_co", bound=Object, covariant=True)


class Clock(Protocol):
    """Time that tests can hold still: `now` never jumps and has no zero, `wall` is Unix time, for people."""

    def now(self) -> float: ...

    def wall(self) -> float: ...

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Let time pass, at most so long; True when `stop` was set meanwhile."""


class Slurm(Protocol):
    """slurmctld as the bridge uses it."""

    def heterogeneous(self) -> bool:
        """Whether a placeholder may have components here; may change when the server is upgraded."""

    def submit(self, request: JobRequest) -> Outcome:
        """Ask for a placeholder; its components make it heterogeneous.

        EXISTS says only that the chosen id is taken, perhaps by a job that a refused submit left behind: look at it.
        """

    def update(self, job_id: JobId, request: JobRequest) -> Outcome:
        """Change a placeholder that still pends; one that has started is refused (STARTED) and stays as it is.

        A heterogeneous one is never changed (INVALID): Slurm would do that to its leader alone.
        """

    def cancel(self, job_id: JobId) -> Outcome:
        """End a job; one that has ended or never was is refused with OVER or NO_SUCH_JOB."""

    def cancel_many(self, job_ids: Sequence[JobId]) -> Mapping[JobId, Outcome]:
        """End jobs by one order; how it ended for each of them."""

    def note(self, job_id: JobId, owner: Owner) -> Outcome:
        """Rewrite the owner record of a job of ours, running or pending, for example with a last note.

        Of a heterogeneous job only the leader's is.
        """

    def assign(self, job_id: JobId, owner: Owner, reservation: str, priority: int | None) -> Outcome:
        """Rewrite the owner record of a job of ours, and with it the reservation that it uses, "" for none.

        A job that runs keeps its nodes. A priority, where one is given, takes the place of the one that Slurm worked
        out, for good; a job that runs has no use for one.
        """

    def reserve(self, name: str, nodes: Sequence[str], user: str, seconds: int) -> Outcome:
        """Keep these nodes for jobs of this user that name the reservation, for so long from now.

        Jobs that run there stay. A reservation of that name is changed. It ends by itself, and does no job
        any harm. Refused (OVERLAP) where another one has a node just then.
        """

    def unreserve(self, name: str) -> Outcome:
        """Give the nodes back, if they are kept; refused (BUSY) for as long as a job names the reservation."""

    def reservations(self) -> Sequence[Reservation]:
        """All that there are, of all users."""

    def states(self, job_ids: Collection[JobId] | None = None) -> Mapping[JobId, JobStates]:
        """The state words of these jobs, or of all; ids that Slurm does not know are left out.

        Among all, components are only found in the entry of their leader, for as long as that is remembered.
        """

    def job(self, job_id: JobId) -> JobView | None:
        """One job in full, None when Slurm does not know the id. A heterogeneous job is known by its leader's id."""

    def components(self, job_id: JobId) -> Sequence[JobView]:
        """The parts of a heterogeneous job in order, the leader first; of any other job only itself.

        Ended ones are among them for as long as Slurm remembers them.
        """

    def jobs(self) -> Sequence[JobView]:
        """Every job in full, no components unless Slurm has forgotten their leader: expensive, for recovery only."""

    def allocation(self, job_id: JobId) -> JobAllocation | None:
        """What a running job holds, None while (or when no longer) it holds nothing."""

    def find(self, owner: Owner) -> Sequence[JobView]:
        """Every job whose owner record speaks of the same workload; a full scan."""

    def nodes(self) -> Sequence[SlurmNode]: ...

    def partitions(self) -> Sequence[Partition]: ...

    def node_listing(self, seen: NodeListing | None = None) -> NodeListing:
        """All nodes as they are now; `seen` itself where none has changed since."""

    def change_nodes(self, names: Collection[str], change: NodeChange) -> Outcome:
        """Change these nodes alike. Where the outcome is not Done, some may be changed and others not."""

    def create_nodes(self, new: NewNodes) -> Outcome:
        """Add external nodes. Where the outcome is not Done, some may exist. Refused (EXISTS) if one did before.

        Look before: some releases of Slurm delete a node whose name is added a second time.
        """

    def delete_nodes(self, names: Collection[str]) -> Outcome:
        """Delete nodes, whichever they are. Where the outcome is not Done, some may be gone.

        Refused (BUSY) where one of them has jobs, (UNKNOWN_NODE) where one is not there.
        """


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which objects of a kind: a namespace, and selectors in Kubernetes' own notation."""

    namespace: str | None = None
    labels: str | None = None
    fields: str | None = None


EVERYWHERE = Scope()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T_co]):
    """All objects of a kind at one moment.

    `unreadable` are namespaces and names of those that are there and cannot be read: nothing follows from their
    absence. One that does not even tell its name ("") may be any.
    """

    items: tuple[T_co, ...]
    resource_version: str
    unreadable: frozenset[tuple[str, str]] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Put(Generic[T_co]):
    """The object exists and is now this."""

    object: T_co


@dataclasses.dataclass(frozen=True, slots=True)
class Gone(Generic[T_co]):
    """The object was deleted (or left the scope); this is its last shape."""

    object: T_co


@dataclasses.dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing happened up to here."""

    resource_version: str


class Changes(Protocol[T_co]):
    """A running watch: changes in order, until the server ends it or `close` does."""

    def __iter__(self) -> Iterator[Put[T_co] | Gone[T_co] | Bookmark]: ...

    def close(self) -> None:
        """End it, from any thread: a thread that waits for the next change sees the end at once."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Put this very pod, as we last saw it, on that node, and leave our marks in the same write."""

    namespace: str
    pod: str
    uid: str
    node: str
    resource_version: str = ""
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """An event for the user: about which object, what happened, in whose words."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    action: str = "Scheduling"
    warning: bool = False


class Cluster(Protocol):
    """The Kubernetes API as the bridge uses it. NotFound, Conflict and Invalid are raised where they answer a write."""

    def served(self, kind: Kind[T]) -> str | None:
        """The version of this kind that both sides speak, None while the cluster does not serve it."""

    def list(self, kind: Kind[T], scope: Scope = EVERYWHERE) -> Listing[T]: ...

    def watch(self, kind: Kind[T], since: str, scope: Scope = EVERYWHERE) -> Changes[T]:
        """Changes after that resource version, until the server ends the stream; Expired means: list again."""

    def get(self, kind: Kind[T], namespace: str, name: str) -> T | None: ...

    def create(self, kind: Kind[T], namespace: str, manifest: Manifest) -> T: ...

    def patch(self, kind: Kind[T], target: T, changes: Manifest, subresource: str = "") -> T:
        """Merge these changes into exactly this incarnation: its uid is a precondition, and a resource version given.

        Lists are replaced, except in the status of built-in kinds: there conditions are merged one by one, by type.
        """

    def delete(self, kind: Kind[T], target: T, grace_seconds: int | None = None, version: str = "") -> None:
        """Delete exactly this incarnation: its uid is a precondition, and a resource version given."""

    def evict(self, namespace: str, name: str, uid: str) -> None:
        """Ask for a voluntary eviction; Unavailable with `retry_after` while a disruption budget forbids it."""

    def bind(self, binding: Binding) -> None: ...

    def event(self, note: Note) -> None: ...

    def lease(self, namespace: str, name: str) -> Lease | None: ...

    def write_lease(self, lease: Lease) -> Lease:
        """Create it (no resource version) or replace exactly the version read; Conflict after another write."""


class Callers(Protocol):
    """The Kubernetes API on behalf of callers of our own API: what they do there they do with their own rights."""

    def who(self, token: Token) -> Caller | None:
        """The owner of this token, None when the API server does not accept it."""

    def may(self, token: Token, verb: str, kind: Kind[T], namespace: str = "") -> bool:
        """Whether the owner of the token may do this to objects of the kind, there or ("") in all namespaces."""

    def create_pod(self, namespace: str, manifest: Manifest, token: Token) -> Pod:
        """As the owner of the token: NotAuthenticated and NotAuthorized are about them, not about us."""
