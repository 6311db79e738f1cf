"""ClusterParts: which of several daemons serves a namespace, and the leases by which they agree on that.

A namespace with the label `scheduler.slinky.slurm.net/part` belongs to the part of that name. Any other belongs to one
of the parts that all daemons have in their settings, by its name: a part that is added takes some namespaces from each
of the others, and no namespace changes hands between these.
"""

import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence

from slurm_bridge.model import names

#: As the API server has it. Owner records may name others: what an operator wrote there by hand.
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterParts:
    """The parts that there are, the one of this daemon, and where its leases are."""

    own: str
    every: tuple[str, ...]
    lease_namespace: str
    lease_name: str

    def of(self, namespace: str, labels: Mapping[str, str]) -> str:
        """The part that a namespace belongs to. A label that names no part says nothing: any user may write one."""
        named = labels.get(names.LABEL_PART)
        return named if named in self.every else by_name(namespace, self.every)

    def strange(self, labels: Mapping[str, str]) -> str:
        """What a label says that names no part; empty otherwise."""
        named = labels.get(names.LABEL_PART) or ""
        return named if named not in self.every else ""

    def lease(self, part: str) -> str:
        """The name of the lease that the leader of this part renews."""
        return before_part(self.lease_name) + part

    def record(self, namespace: str) -> str:
        """The name of the lease that says which part has this namespace. Nothing renews it."""
        return self._before_namespace + namespace

    def recorded(self, lease_name: str) -> str | None:
        """The namespace that a lease of this name is about, None for other leases."""
        found = lease_name.removeprefix(self._before_namespace)
        return found if found != lease_name else None

    @property
    def _before_namespace(self) -> str:
        return f"{self.lease_name}.namespace."


def before_part(lease_name: str) -> str:
    """What the names of the leases of parts begin with, where a daemon without parts has this one."""
    return f"{lease_name}.part."


def by_name(namespace: str, every: Sequence[str]) -> str:
    """The part with the highest weight for this namespace: the same wherever it is asked, in whatever order."""
    return max(every, key=lambda part: (_weight(part, namespace), part))


def _weight(part: str, namespace: str) -> bytes:
    return hashlib.blake2b(f"{part}/{namespace}".encode(), digest_size=8).digest()


def is_namespace(text: str) -> bool:
    """Whether a namespace can have this name."""
    return _NAMESPACE.fullmatch(text) is not None
