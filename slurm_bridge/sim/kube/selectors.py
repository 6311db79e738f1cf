"""Label and field selectors, in Kubernetes' notation."""

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

from slurm_bridge.sim.kube import refusals

#: The fields that objects of each resource can be selected by, besides name and namespace.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "pods": ("spec.nodeName", "spec.schedulerName", "spec.restartPolicy", "spec.serviceAccountName", "status.phase"),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "jobs.batch": ("status.successful",),
    "resourceslices.resource.k8s.io": ("spec.nodeName", "spec.driver"),
    "events.events.k8s.io": ("regarding.name", "regarding.kind", "regarding.uid", "reason", "type"),
}

Matches = Callable[[Mapping[str, str]], bool]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Requirements on labels and on fields; without any, every object matches."""

    labels: tuple[Matches, ...] = ()
    fields: tuple[Matches, ...] = ()

    @property
    def everything(self) -> bool:
        return not self.labels and not self.fields

    def accepts(self, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        """Whether every requirement holds."""
        return all(match(labels) for match in self.labels) and all(match(fields) for match in self.fields)


def parse(resource_key: str, labels: str, fields: str) -> Selector:
    """Both selectors of a request; an unsupported field is refused."""
    terms = (term.strip() for term in re.split(r",(?![^()]*\))", labels))
    return Selector(
        labels=tuple(_label_match(term) for term in terms if term), fields=tuple(_fields(resource_key, fields))
    )


def fields_of(resource_key: str, manifest: Mapping[str, Any]) -> dict[str, str]:
    """The selectable fields of one object."""
    metadata = manifest["metadata"]
    known = {"metadata.name": metadata["name"], "metadata.namespace": metadata.get("namespace", "")}
    for path in FIELDS.get(resource_key, ()):
        value = _dig(manifest, path)
        if isinstance(value, bool):
            value = "true" if value else "false"
        known[path] = "" if value is None else str(value)
    return known


def _dig(manifest: Mapping[str, Any], path: str) -> Any:
    value: Any = manifest
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _fields(resource_key: str, text: str) -> list[Matches]:
    known = ("metadata.name", "metadata.namespace", *FIELDS.get(resource_key, ()))
    matches = []
    for term in filter(None, text.split(",")):
        parsed = re.fullmatch(r"([^=!]+?)(==|!=|=)(.*)", term)
        if not parsed:
            raise refusals.bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        name, operator, value = parsed.groups()
        if name not in known:
            raise refusals.bad_request(f"field label not supported: {name}")
        matches.append(_field_match(name, operator, value))
    return matches


def _field_match(name: str, operator: str, value: str) -> Matches:
    # A boolean that was never written counts as false, as in the typed objects of the real server.
    values = {value, ""} if value == "false" else {value}
    if operator == "!=":
        return lambda fields: fields.get(name, "") not in values
    return lambda fields: fields.get(name, "") in values


def _label_match(term: str) -> Matches:
    if parsed := re.fullmatch(r"([^\s=!()]+)\s+(in|notin)\s+\(([^()]*)\)", term):
        return _set_match(parsed[1], parsed[2], {value.strip() for value in parsed[3].split(",")})
    if parsed := re.fullmatch(r"([^\s=!()]+)\s*(==|!=|=)\s*([^\s=!(),]*)", term):
        return _set_match(parsed[1], "notin" if parsed[2] == "!=" else "in", {parsed[3]})
    if parsed := re.fullmatch(r"(!?)\s*([^\s=!()]+)", term):
        name, wanted = parsed[2], not parsed[1]
        return lambda labels: (name in labels) == wanted
    found = "" if "(" in term else term
    raise refusals.bad_request(f"unable to parse requirement: found '{found}', expected: ',' or ')'")


def _set_match(name: str, operator: str, values: set[str]) -> Matches:
    if operator == "in":
        return lambda labels: labels.get(name) in values
    return lambda labels: labels.get(name) not in values


def matches_labels(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """A LabelSelector object (matchLabels and matchExpressions); no selector matches nothing."""
    if selector is None:
        return False
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    if any(labels.get(name) != value for name, value in wanted.items()):
        return False
    return all(_expression(line, labels) for line in selector.get("matchExpressions") or ())


def _expression(line: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    operator, name = line["operator"], line["key"]
    values: list[str] = line.get("values") or []
    if operator in ("Exists", "DoesNotExist"):
        return bool((name in labels) == (operator == "Exists"))
    return bool((labels.get(name) in values) == (operator == "In"))
