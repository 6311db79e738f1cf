"""What the bridge writes on nodes of Slurm, so that it knows them again after a restart of either side.

    reason     begins with `slurm-bridge(CLUSTER): `: a drain of ours. Slurm drops it when the node is undrained
    comment    `slurm-bridge/1 {…}`: a node that this bridge has added, and what it was added with
    feature    `slurm-bridge.added.CLUSTER.SHAPE`: the same, until the comment is written: a node is added without one

All survive restarts of slurmctld. `extra` would, too, but Slurm may be configured to match it with jobs. Every
operator of Slurm can write them, as well as delete the node.
"""

import dataclasses
import hashlib
import re
from collections.abc import Iterable
from typing import Final

import msgspec

from slurm_bridge.model.slurmnode import NodeShape

_FORMAT: Final = "slurm-bridge/1 "
_SHAPE: Final = re.compile(r"[0-9a-f]{16}")


class RegistrationRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node of Slurm that a bridge has added. `node` is its Kubernetes name where that is another one."""

    cluster: str
    shape: str
    node: str = ""
    features: tuple[str, ...] = ()
    topology: str = ""


_RECORDS: Final = msgspec.json.Decoder(RegistrationRecord)


@dataclasses.dataclass(frozen=True, slots=True)
class DrainReasons:
    """The reasons that one bridge gives."""

    cluster_id: str

    @property
    def prefix(self) -> str:
        return f"slurm-bridge({self.cluster_id}): "

    @property
    def cordoned(self) -> str:
        return f"{self.prefix}cordoned in Kubernetes"

    @property
    def leaving(self) -> str:
        return f"{self.prefix}no longer registered in Kubernetes"

    @property
    def changing(self) -> str:
        return f"{self.prefix}added again as Kubernetes has it now, when it is idle"

    def ours(self, reason: str) -> bool:
        """This bridge gave it."""
        return reason.startswith(self.prefix)


@dataclasses.dataclass(frozen=True, slots=True)
class AddedFeature:
    """The feature of nodes that one bridge has just added."""

    cluster_id: str

    @property
    def prefix(self) -> str:
        return f"slurm-bridge.added.{self.cluster_id}."

    def of(self, shape: str) -> str:
        """For nodes of this shape."""
        return f"{self.prefix}{shape}"

    def shape(self, features: Iterable[str]) -> str:
        """The shape that is among the features of a node, empty where none is."""
        found = (one.removeprefix(self.prefix) for one in features if one.startswith(self.prefix))
        return next((shape for shape in found if _SHAPE.fullmatch(shape)), "")


def write(record: RegistrationRecord) -> str:
    """As a comment."""
    return _FORMAT + msgspec.json.encode(record).decode()


def read(comment: str) -> RegistrationRecord | None:
    """The record in a comment, None in any other comment."""
    if not comment.startswith(_FORMAT):
        return None
    try:
        return _RECORDS.decode(comment.removeprefix(_FORMAT))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def digest(shape: NodeShape) -> str:
    """The same for two shapes only if they are equal."""
    gres = sorted((one.name, one.type, one.count) for one in shape.gres)
    text = repr((shape.cores, shape.threads_per_core, shape.memory_mib, gres, sorted(shape.partitions)))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
