"""ResourceClaims: templates and claims for GPUs of one class, and which devices they have."""

import dataclasses
from typing import Any

from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

GROUP = "/apis/resource.k8s.io/v1"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claims:
    """Those of one world's namespace."""

    world: World
    device_class: str

    @property
    def path(self) -> str:
        """Where they are."""
        return self._path("resourceclaims")

    def template(self, name: str, count: int, *conditions: str) -> None:
        """Claims for so many GPUs that meet these conditions."""
        selectors = [{"cel": {"expression": one}} for one in conditions]
        exactly = {"deviceClassName": self.device_class, "count": count, "selectors": selectors}
        spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
        self._create("ResourceClaimTemplate", name, spec)

    def alternatives(self, name: str, *options: Json) -> None:
        """Claims for the first of these that there is."""
        spec = {"devices": {"requests": [{"name": "gpu", "firstAvailable": list(options)}]}}
        self._create("ResourceClaimTemplate", name, {"spec": spec})

    def claim(self, name: str, count: int) -> None:
        """A claim by its name."""
        exactly = {"deviceClassName": self.device_class, "count": count}
        self._create("ResourceClaim", name, {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}})

    def _create(self, kind: str, name: str, spec: Json) -> None:
        manifest = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        self.world.kube.create(self._path(f"{kind.lower()}s"), manifest)

    def _path(self, resource: str) -> str:
        return f"{GROUP}/namespaces/{self.world.namespace}/{resource}"

    def claims(self) -> list[Json]:
        """All of them."""
        return self.world.kube.items(self.path)

    def held(self) -> list[tuple[str, str]]:
        """All devices of claims, by pool and name."""
        return [(one["pool"], one["device"]) for claim in self.claims() for one in results(claim)]

    def of(self, pod: Json) -> list[tuple[str, str]]:
        """The devices of one pod."""
        uid = pod["metadata"]["uid"]
        mine = [one for one in self.claims() if uid in {user["uid"] for user in users(one)}]
        return [(one["pool"], one["device"]) for claim in mine for one in results(claim)]


def results(claim: Json) -> list[Json]:
    """The devices of a claim."""
    found: list[Json] = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    return found


def users(claim: Json) -> list[Json]:
    """What a claim is reserved for."""
    found: list[Json] = claim.get("status", {}).get("reservedFor", [])
    return found


def using(template: str = "", claim: str = "") -> dict[str, Any]:
    """The spec of a pod with a claim."""
    source = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
    return {"resourceClaims": [{"name": "gpus", **source}]}
