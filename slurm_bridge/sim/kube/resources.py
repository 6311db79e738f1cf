"""The resources of the pocket API: those of `model.kinds`, and a few that only users create."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from slurm_bridge.model import kinds
from slurm_bridge.workloads import kind_table

#: The versions that 1.36 serves, of those that our records could read.
SERVED = {"scheduling.k8s.io": ("v1", "v1alpha2")}

#: Custom resources: they differ in many small ways from those of the apiserver.
_CUSTOM_GROUPS = {kind.group for kind in kind_table.RESOURCES if kind.custom}

_WITHOUT_STATUS = {"events", "leases", "workloads", "resourceclaimtemplates", "resourceslices", "deviceclasses"}

#: Custom resources whose generation counts changes of the spec.
_COUNTED = {"pods", "jobs", "replicasets", "statefulsets", "poddisruptionbudgets"}

#: An update without a resourceVersion is refused for these (and for every custom resource).
_VERSION_REQUIRED = {"leases", "poddisruptionbudgets"}

#: DELETE answers with the object itself rather than with a Status.
_DELETED_IS_SHOWN = {"pods", "namespaces"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One served resource. `key` names it in every version, as the error messages of the real server do."""

    group: str
    versions: tuple[str, ...]
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def key(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def custom(self) -> bool:
        return self.group in _CUSTOM_GROUPS

    @property
    def has_status(self) -> bool:
        return self.plural not in _WITHOUT_STATUS

    @property
    def counted(self) -> bool:
        return self.custom or self.plural in _COUNTED

    @property
    def version_required(self) -> bool:
        return self.custom or self.plural in _VERSION_REQUIRED

    @property
    def deleted_is_shown(self) -> bool:
        return self.plural in _DELETED_IS_SHOWN

    def api_version(self, version: str = "") -> str:
        """The apiVersion of its objects."""
        version = version or self.versions[0]
        return f"{self.group}/{version}" if self.group else version


_BUDGETS = Resource(group="policy", versions=("v1",), plural="poddisruptionbudgets", kind="PodDisruptionBudget")
_SERVICE_ACCOUNTS = Resource(group="", versions=("v1",), plural="serviceaccounts", kind="ServiceAccount")
_CONFIG_MAPS = Resource(group="", versions=("v1",), plural="configmaps", kind="ConfigMap")

#: Reviews are answered and never stored.
TOKEN_REVIEWS = Resource(
    group="authentication.k8s.io", versions=("v1",), plural="tokenreviews", kind="TokenReview", namespaced=False
)

ACCESS_REVIEWS = Resource(
    group="authorization.k8s.io",
    versions=("v1",),
    plural="selfsubjectaccessreviews",
    kind="SelfSubjectAccessReview",
    namespaced=False,
)

#: Read by Kubernetes' own controller only.
CLAIM_TEMPLATES = Resource(
    group="resource.k8s.io", versions=("v1",), plural="resourceclaimtemplates", kind="ResourceClaimTemplate"
)

EXTRA = (_BUDGETS, _SERVICE_ACCOUNTS, _CONFIG_MAPS, TOKEN_REVIEWS, ACCESS_REVIEWS, CLAIM_TEMPLATES)


def of(kind: kinds.Kind[Any], served: Mapping[str, tuple[str, ...]] = SERVED) -> Resource:
    """The resource of one of the bridge's kinds."""
    return Resource(
        group=kind.group,
        versions=tuple(one for one in served.get(kind.group, kind.versions) if one in kind.versions),
        plural=kind.plural,
        kind=kind.kind,
        namespaced=kind.namespaced,
    )


def table(served: Mapping[str, tuple[str, ...]] = SERVED) -> tuple[Resource, ...]:
    """All served resources; a group without a served version is left out."""
    everything: Iterable[Resource] = (*(of(kind, served) for kind in kind_table.RESOURCES), *EXTRA)
    return tuple(resource for resource in everything if resource.versions)


PODS = of(kinds.PODS)
NODES = of(kinds.NODES)
NAMESPACES = of(kinds.NAMESPACES)
JOBS = of(kinds.JOBS)
BUDGETS = _BUDGETS
RESOURCECLAIMS = of(kinds.RESOURCECLAIMS)
