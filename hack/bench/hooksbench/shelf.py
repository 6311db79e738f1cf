"""Objects that hooks declare to need, beside nodes and pods: some services, and nothing else."""

from collections.abc import Mapping, Sequence

from hooksbench.world import APPS
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model.meta import Object, ObjectMeta
from slurm_bridge.model.services import Service, ServiceSpec


class Shelf:
    """A `hooks.needs.View` of objects that never change."""

    version = 1

    def __init__(self, objects: Sequence[Object] = ()) -> None:
        self._objects = tuple(objects)
        self._named = {(one.metadata.namespace, one.metadata.name): one for one in self._objects}

    def get(self, namespace: str, name: str) -> Object | None:
        return self._named.get((namespace, name))

    def all(self) -> Sequence[Object]:
        return self._objects

    def where(self, index: str, value: str) -> Sequence[Object]:
        """Hooks of the bench ask by none."""
        raise KeyError(f"no index {index} for {value}")

    def __len__(self) -> int:
        return len(self._objects)


def _service(app: str) -> Service:
    metadata = ObjectMeta(name=app, namespace="bench", uid=f"uid-service-{app}")
    return Service(metadata=metadata, spec=ServiceSpec(selector={"app": app}))


SHELVES: Mapping[Need, Shelf] = {
    **{need: Shelf() for need in Need},
    Need.SERVICES: Shelf([_service(f"app-{number}") for number in range(APPS)]),
}
