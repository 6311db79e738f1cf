"""The served versions of objects: for example, one object is readable as two kinds of Event."""

import dataclasses
from collections.abc import Iterable, Mapping

import msgspec

from slurm_bridge.sim.kube.resources import Resource
from slurm_bridge.sim.kube.store import Manifest, StoredObject

#: The field names of the old Event kind.
_CORE_EVENT = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedCount": "count",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResourceView:
    """A resource in one of its served versions; `renamed` maps its fields to their names here."""

    resource: Resource
    group: str
    version: str
    renamed: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def read(self, manifest: Manifest) -> Manifest:
        """The stored form of what was sent."""
        names = {there: here for here, there in self.renamed.items()}
        return {names.get(name, name): value for name, value in manifest.items()}

    def show(self, stored: StoredObject) -> bytes:
        """The served form of an object."""
        head = f'{{"kind":"{self.resource.kind}","apiVersion":"{self.api_version}",'
        return head.encode() + self._body(stored)[1:]

    def show_list(self, items: Iterable[StoredObject], metadata: Manifest) -> bytes:
        """The served form of a list; items of custom resources have kind and apiVersion, others do not."""
        show = self.show if self.resource.custom else self._body
        head = f'{{"kind":"{self.resource.kind}List","apiVersion":"{self.api_version}","metadata":'
        return b"".join(
            (
                head.encode(),
                msgspec.json.encode(metadata),
                b',"items":[',
                b",".join(map(show, items)),
                b"]}",
            )
        )

    def _body(self, stored: StoredObject) -> bytes:
        if not self.renamed:
            return stored.body
        return msgspec.json.encode({self.renamed.get(name, name): value for name, value in stored.manifest().items()})


def of(resources: Iterable[Resource]) -> dict[tuple[str, str, str], ResourceView]:
    """Every served view, by group, version and plural."""
    views = {
        (resource.group, version, resource.plural): ResourceView(
            resource=resource, group=resource.group, version=version
        )
        for resource in resources
        for version in resource.versions
    }
    events = views["events.k8s.io", "v1", "events"]
    views["", "v1", "events"] = dataclasses.replace(events, group="", renamed=_CORE_EVENT)
    return views
