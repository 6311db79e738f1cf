"""Turns a submitted manifest into a pod that can be created: for our scheduler, with a name known beforehand."""

import dataclasses
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from slurm_bridge.model import kinds
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Pod

#: The letters of the API server's generated names: no vowels, so that they form no words.
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_RANDOM: Final = 5
_LONGEST_STEM: Final = 63 - _RANDOM
_NAMESPACE: Final = "default"
#: A namespace becomes a part of a URL path; a value that the API server cannot accept is not sent.
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
#: A longer name would be refused by the API server anyway; it does not get into logs and answers.
_LONGEST_NAME: Final = 253
#: The format in which the decoder names a field.
_PLACE: Final = re.compile(r"(?P<words>.*?)(?: - at (?:`key` in )?`\$\.?(?P<field>[^`]*)`)?", re.DOTALL)


class Unacceptable(Exception):
    """The pod cannot be created as it is; the message names the field, its value and what is allowed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A pod to be created. `generated`: we chose its name, and may choose another if it is taken."""

    manifest: Manifest
    pod: Pod
    generated: bool

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.pod.key


def draft(manifest: Manifest, scheduler_names: Sequence[str], dice: random.Random) -> Draft:
    """The pod of this manifest. Unacceptable says what is wrong with it."""
    kind, version = manifest.get("kind", kinds.PODS.kind), manifest.get("apiVersion", "v1")
    if kind != kinds.PODS.kind:
        raise Unacceptable(f"kind: {kind!r}, use {kinds.PODS.kind}: controllers make the pods of other kinds")
    if version not in kinds.PODS.versions:
        raise Unacceptable(f"apiVersion: {version!r}, use {', '.join(kinds.PODS.versions)}")
    metadata, spec = _mapping(manifest, "metadata"), _mapping(manifest, "spec")
    # YAML reads some unquoted texts as numbers, dates and truth values.
    for field in ("labels", "annotations"):
        for key, value in (_mapping(metadata, field) if metadata.get(field) is not None else {}).items():
            if not isinstance(value, str):
                raise Unacceptable(f"metadata.{field}[{key}]: {value!r} has to be a string: put it in quotes")
    namespace, name = _key(metadata)
    made = {
        **manifest,
        "metadata": {**metadata, "namespace": namespace, "name": name or _name(metadata, dice)},
        "spec": {**spec, "schedulerName": _scheduler(spec, scheduler_names)},
    }
    return Draft(manifest=made, pod=_pod(made), generated=not name)


def renamed(made: Draft, dice: random.Random) -> Draft:
    """The same pod with another generated name."""
    metadata = made.manifest["metadata"]
    name = _name(metadata, dice)
    pod = msgspec.structs.replace(made.pod, metadata=msgspec.structs.replace(made.pod.metadata, name=name))
    return dataclasses.replace(made, manifest={**made.manifest, "metadata": {**metadata, "name": name}}, pod=pod)


def _mapping(manifest: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = manifest.get(field)
    if not isinstance(value, dict):
        raise Unacceptable(f"{field}: is required" if value is None else f"{field}: has to be a mapping")
    return value


def _scheduler(spec: Mapping[str, Any], ours: Sequence[str]) -> str:
    """A pod for another scheduler is refused, and so is a pod that has a node already."""
    name = spec.get("schedulerName") or ours[0]
    if name not in ours:
        raise Unacceptable(f"spec.schedulerName: {name!r}, use {' or '.join(ours)}, or none")
    if spec.get("nodeName"):
        raise Unacceptable(f"spec.nodeName: {spec['nodeName']!r}, leave it out: Slurm chooses the node")
    return str(name)


def _key(metadata: Mapping[str, Any]) -> tuple[str, Any]:
    """Namespace, and the name that was given."""
    namespace, name = metadata.get("namespace") or _NAMESPACE, metadata.get("name")
    if not isinstance(namespace, str) or not _LABEL.fullmatch(namespace):
        allowed = "lower case letters, digits and '-', at most 63 of them"
        raise Unacceptable(f"metadata.namespace: {namespace!r}, use {allowed}")
    if isinstance(name, str) and len(name) > _LONGEST_NAME:
        raise Unacceptable(f"metadata.name: has {len(name)} characters; at most {_LONGEST_NAME} are allowed")
    return namespace, name


def _name(metadata: Mapping[str, Any], dice: random.Random) -> str:
    """Generate a name from `generateName`. It is known before the request, in case the answer is lost."""
    stem = metadata.get("generateName")
    if not isinstance(stem, str) or not stem:
        raise Unacceptable("metadata.name: is required, or metadata.generateName")
    return stem[:_LONGEST_STEM] + "".join(dice.choices(_LETTERS, k=_RANDOM))


def _pod(manifest: Manifest) -> Pod:
    try:
        return msgspec.convert(_said(manifest), Pod)
    except msgspec.ValidationError as error:
        found = _PLACE.fullmatch(str(error))
        words, field = (found["words"], found["field"]) if found else (str(error), "")
        raise Unacceptable(f"{field or 'the pod'}: {words[:1].lower()}{words[1:]}") from None


def _said(value: Any) -> Any:
    """Drop null values: the API server treats them as absent."""
    if isinstance(value, dict):
        return {key: _said(inner) for key, inner in value.items() if inner is not None}
    return [_said(inner) for inner in value] if isinstance(value, list) else value
