"""Services, configurations, and the controllers of pods with their selectors."""

from slurm_bridge.model.meta import Object, Record


class ServiceSpec(Record, frozen=True, kw_only=True):
    """Selects pods with all these labels; without any, the endpoints are managed elsewhere."""

    selector: dict[str, str] = {}


class Service(Object, frozen=True, kw_only=True):
    """One service."""

    spec: ServiceSpec = ServiceSpec()


class ConfigMap(Object, frozen=True, kw_only=True):
    """Texts by their keys."""

    data: dict[str, str] = {}


class ControllerSpec(Record, frozen=True, kw_only=True):
    """The label selector of its pods."""

    selector: dict[str, object] | None = None


class Controller(Object, frozen=True, kw_only=True):
    """A ReplicaSet or a StatefulSet."""

    spec: ControllerSpec = ControllerSpec()
