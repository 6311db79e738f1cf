"""Manifests as people write them: YAML with one or several documents, or a List that kubectl has written."""

import itertools
from typing import Any, Final

import msgspec

from slurm_bridge import errors
from slurm_bridge.model.meta import Manifest
from slurm_bridge.runtime import safe_yaml

#: Levels of a manifest that a stranger sends; a pod has about a dozen.
_DEEPEST: Final = 100


def documents(text: str, source: str) -> tuple[Manifest, ...]:
    """The objects in this text; BadConfiguration names the source, and the line where it is one."""
    try:
        found = safe_yaml.documents(text)
    except safe_yaml.NotYaml as error:
        raise _not_yaml(source, error) from error
    return tuple(one for document in found for one in _objects(document, source))


def handed_in(body: bytes) -> Manifest:
    """The one object in what was sent, JSON or YAML; BadConfiguration says why there is none.

    The sender may mean harm: YAML is bounded before it is built, and its aliases are not taken.
    """
    source = "the manifest"
    try:
        found = msgspec.json.decode(body)
    except RecursionError:
        raise errors.BadConfiguration(f"{source}: is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if body.lstrip().startswith(b"{"):
            raise errors.BadConfiguration(f"{source}: is not JSON: {error}") from error
        found = _strangers_yaml(body, source)
    if not isinstance(found, dict):
        raise errors.BadConfiguration(f"{source}: has to be one object with kind, metadata and spec")
    # Looked at level by level: code that goes through it afterwards may do so by calling itself.
    level: list[Any] = [found]
    for _ in range(_DEEPEST):
        inside = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = list(itertools.chain.from_iterable(inside))
    if level:
        raise errors.BadConfiguration(f"{source}: is nested too deeply")
    return found


def _strangers_yaml(body: bytes, source: str) -> Any:
    try:
        # What cannot be JSON (bytes, say) is found here, where it can still be told as the sender's mistake.
        return msgspec.json.decode(msgspec.json.encode(safe_yaml.load(body, aliases=False)))
    except safe_yaml.NotYaml as error:
        raise _not_yaml(source, error) from error
    except (TypeError, ValueError) as error:
        raise errors.BadConfiguration(f"{source}: is not YAML that could be JSON: {type(error).__name__}") from error


def _not_yaml(source: str, error: safe_yaml.NotYaml) -> errors.BadConfiguration:
    line = f" line {error.line}:" if error.line is not None else ""
    return errors.BadConfiguration(f"{source}:{line} is not YAML: {error.what}")


def _objects(document: Any, source: str) -> tuple[Manifest, ...]:
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise errors.BadConfiguration(f"{source}: a document is no object of Kubernetes, it has no kind")
    if document["kind"] == "List":
        return tuple(one for item in document.get("items") or () for one in _objects(item, source))
    if not isinstance(document.get("metadata"), dict):
        raise errors.BadConfiguration(f"{source}: {document['kind']} has no metadata")
    return (document,)
