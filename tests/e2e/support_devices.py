"""ResourceClaims: templates and claims for devices of a class, and which devices they have."""

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

    def template(self, name: str, count: int, *conditions: str, device_class: str = "") -> None:
        """Claims for so many devices that meet these conditions, GPUs if nothing else is said."""
        selectors = [{"cel": {"expression": one}} for one in conditions]
        exactly = {"deviceClassName": device_class or self.device_class, "count": count, "selectors": selectors}
        self.exactly(name, exactly)

    def exactly(self, name: str, request: Json) -> None:
        """A template of claims with just this request."""
        spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}}
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
        """All devices of claims, by pool and name: those of two drivers differ in their names."""
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


def using(*templates: str, claim: str = "") -> dict[str, Any]:
    """The spec of a pod with a claim of each template, and with this one."""
    entries = [{"name": one, "resourceClaimTemplateName": one} for one in templates]
    named = [{"name": claim, "resourceClaimName": claim}] if claim else []
    return {"resourceClaims": [*entries, *named]}
