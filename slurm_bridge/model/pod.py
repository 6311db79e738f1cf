"""A pod as the bridge sees it: enough to translate, place and follow it, and no more."""

import msgspec

from slurm_bridge.model.meta import Condition, Object, Record

PodTerm = dict[str, object]


class ResourceNeeds(Record, frozen=True, kw_only=True):
    """Requests and limits as written; quantities stay text until they are needed."""

    requests: dict[str, str | int | float] = {}
    limits: dict[str, str | int | float] = {}

    @property
    def written(self) -> tuple[tuple[tuple[str, str | int | float], ...], ...]:
        """The same in what can be a key."""
        return tuple(self.requests.items()), tuple(self.limits.items())


class ContainerPort(Record, frozen=True, kw_only=True):
    """A port that may be claimed on the host."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(Record, frozen=True, kw_only=True):
    """What one container asks for."""

    name: str
    image: str = ""
    restart_policy: str | None = None
    resources: ResourceNeeds = ResourceNeeds()
    ports: tuple[ContainerPort, ...] = ()


class Toleration(Record, frozen=True, kw_only=True):
    """A taint that the pod accepts."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NamedThing(Record, frozen=True, kw_only=True):
    """A gate, or a reference of which only the name matters."""

    name: str


class SchedulingGroup(Record, frozen=True, kw_only=True):
    """The built-in PodGroup that this pod belongs to."""

    pod_group_name: str | None = None


class PodSpec(Record, frozen=True, kw_only=True):
    """What the user asked for."""

    node_name: str = ""
    scheduler_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceNeeds | None = None
    overhead: dict[str, str | int | float] = {}
    node_selector: dict[str, str] = {}
    affinity: PodTerm | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[PodTerm, ...] = ()
    volumes: tuple[PodTerm, ...] = ()
    resource_claims: tuple[PodTerm, ...] = ()
    scheduling_gates: tuple[NamedThing, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    service_account_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None
    restart_policy: str = "Always"
    host_network: bool = False
    hostname: str = ""
    subdomain: str = ""


class PodClaimStatus(Record, frozen=True, kw_only=True):
    """The ResourceClaim that was made for one of the pod's entries; None where the entry needs none."""

    name: str = ""
    resource_claim_name: str | None = None


class RequestMapping(Record, frozen=True, kw_only=True):
    """Which request of a claim stands for an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class ExtendedClaimStatus(Record, frozen=True, kw_only=True):
    """The ResourceClaim that was made for the pod's extended resources."""

    resource_claim_name: str = ""
    request_mappings: tuple[RequestMapping, ...] = ()


class PodStatus(Record, frozen=True, kw_only=True):
    """What the cluster reports of the pod."""

    phase: str = "Pending"
    reason: str | None = None
    message: str | None = None
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str | None = None
    start_time: str | None = None
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedClaimStatus | None = None


class Pod(Object, frozen=True, kw_only=True):
    """One pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def bound(self) -> bool:
        """A node has been chosen; this never changes again."""
        return bool(self.spec.node_name)

    @property
    def gated(self) -> bool:
        """A scheduling gate keeps the pod from every scheduler."""
        return bool(self.spec.scheduling_gates)

    @property
    def terminal(self) -> bool:
        """It holds no resources any more."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def terminating(self) -> bool:
        """Its deletion was asked for; it may still run."""
        return self.metadata.deletion_timestamp is not None
