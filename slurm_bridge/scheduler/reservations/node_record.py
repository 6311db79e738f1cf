"""What the owner record of a pending job says of nodes that are kept for it, and the name of its reservation."""

import dataclasses
import hashlib

from slurm_bridge.model import hostlist, names
from slurm_bridge.model.marks import Owner

#: The record has to stay small: names that need more than this are not written.
MOST_BYTES = 900
#: Before all other jobs: no priority that Slurm works out is that high.
FIRST = 4_000_000_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """Nodes by Slurm's names, until then in Unix time; `priority` is the job's own where another took its place."""

    nodes: tuple[str, ...]
    until: int
    priority: int | None = None

    @property
    def text(self) -> str:
        """As it is written, "" when that would be too long.

        That does not depend on the priority, which is known later: it must not be what is lost then.
        """
        written = f"{self.until} {hostlist.compress(self.nodes)}"
        if len(f"{written} {FIRST}".encode()) > MOST_BYTES:
            return ""
        return written if self.priority is None else f"{written} {self.priority}"


def read(text: str) -> NodeRecord | None:
    """None where nothing is kept, or the text does not say what."""
    until, _, rest = text.partition(" ")
    nodes, _, priority = rest.partition(" ")
    try:
        return NodeRecord(nodes=hostlist.expand(nodes), until=int(until), priority=int(priority) if priority else None)
    except ValueError:
        return None


def prefix(cluster: str) -> str:
    """How the names of all reservations of this bridge begin; others are never touched."""
    return f"{names.RESERVATION_PREFIX}{_digest(cluster, 4)}-"


def name(owner: Owner) -> str:
    """Of the reservation for this workload."""
    return prefix(owner.cluster) + _digest(f"{owner.kind}/{owner.uid}", 8)


def _digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()
