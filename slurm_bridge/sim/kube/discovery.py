"""What the server says about itself: version, groups, resources."""

from collections.abc import Iterable, Mapping
from typing import Any

from slurm_bridge.sim.kube import refusals
from slurm_bridge.sim.kube.views import ResourceView

Answer = dict[str, Any]

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.3", "platform": "linux/amd64"}


def answer(path: str, views: Mapping[tuple[str, str, str], ResourceView]) -> Answer:
    """The page at this path; refused if there is none."""
    parts = path.strip("/").split("/")
    match parts:
        case ["version"]:
            return _VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["api", "v1"]:
            return _resources("", "v1", views.values())
        case ["apis"]:
            groups = sorted({view.group for view in views.values() if view.group})
            shown = [_group(group, views.values()) for group in groups]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": shown}
        case ["apis", group]:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, views.values())}
        case ["apis", group, version]:
            return _resources(group, version, views.values())
    raise refusals.no_such_page()


def _group(group: str, views: Iterable[ResourceView]) -> Answer:
    versions = list(dict.fromkeys(view.version for view in views if view.group == group))
    if not versions:
        raise refusals.no_such_page()
    shown = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": shown, "preferredVersion": shown[0]}


def _resources(group: str, version: str, views: Iterable[ResourceView]) -> Answer:
    served = [view for view in views if (view.group, view.version) == (group, version)]
    if not served:
        raise refusals.no_such_page()
    rows = [row for view in served for row in _rows(view)]
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": rows}


def _rows(view: ResourceView) -> list[Answer]:
    resource = view.resource
    row = {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
    }
    rows = [{**row, "verbs": _VERBS}]
    if resource.has_status:
        rows.append(
            {**row, "name": f"{resource.plural}/status", "singularName": "", "verbs": ["get", "patch", "update"]}
        )
    if resource.key == "pods":
        rows.append({**row, "name": "pods/binding", "singularName": "", "kind": "Binding", "verbs": ["create"]})
        eviction = {"group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]}
        rows.append({**row, "name": "pods/eviction", "singularName": "", **eviction})
    return rows
