"""A Kubernetes node as the bridge sees it."""

import re

import msgspec

from slurm_bridge.model import names
from slurm_bridge.model.meta import Condition, Object, Record

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_TAINT = re.compile(
    rf"(?P<key>([a-z0-9.-]{{1,253}}/)?{_NAME})(=(?P<value>({_NAME})?))?:(?P<effect>{'|'.join(EFFECTS)})", re.ASCII
)


class Taint(Record, frozen=True, kw_only=True):
    """A taint keeps pods away that do not tolerate it."""

    key: str
    effect: str
    value: str = ""
    time_added: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Taint":
        """`key=value:effect` or `key:effect`, as kubectl writes it; ValueError where it is not one."""
        found = _TAINT.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not key=value:effect, with {', '.join(EFFECTS)} as the effect")
        return cls(key=found["key"], value=found["value"] or "", effect=found["effect"])

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class NodeSpec(Record, frozen=True, kw_only=True):
    """What administrators and controllers decided."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(default="", name="providerID")


class ContainerImage(Record, frozen=True, kw_only=True):
    """An image that the node holds already."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeAddress(Record, frozen=True, kw_only=True):
    """Where the node is reached."""

    type: str = ""
    address: str = ""


class NodeStatus(Record, frozen=True, kw_only=True):
    """What the kubelet reports."""

    capacity: dict[str, str | int | float] = {}
    allocatable: dict[str, str | int | float] = {}
    conditions: tuple[Condition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()


class Node(Object, frozen=True, kw_only=True):
    """One node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def slurm_name(self) -> str:
        """Its name in Slurm: the label when an administrator set one, else the same name."""
        return self.metadata.labels.get(names.LABEL_SLURM_NODE_NAME) or self.metadata.name

    @property
    def address(self) -> str:
        """Its first internal address; its name where it has none."""
        found = (one.address for one in self.status.addresses if one.type == "InternalIP" and one.address)
        return next(found, self.metadata.name)

    @property
    def ready(self) -> bool:
        """The kubelet reports the node as ready."""
        return any(line.type == "Ready" and line.status == "True" for line in self.status.conditions)
