"""Services and the controllers of pods, as far as they say which pods are theirs."""

from slurm_bridge.model.meta import Object, Record


class ServiceSpec(Record, frozen=True, kw_only=True):
    """Pods that have all these labels; without any, somebody else says where requests go."""

    selector: dict[str, str] = {}


class Service(Object, frozen=True, kw_only=True):
    """One service."""

    spec: ServiceSpec = ServiceSpec()


class ControllerSpec(Record, frozen=True, kw_only=True):
    """Whom it controls, as a label selector."""

    selector: dict[str, object] | None = None


class Controller(Object, frozen=True, kw_only=True):
    """A ReplicaSet or a StatefulSet."""

    spec: ControllerSpec = ControllerSpec()
