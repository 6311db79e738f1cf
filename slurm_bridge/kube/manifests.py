"""Manifests as people write them: YAML with one or several documents, or a List that kubectl has written."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
import yaml

from slurm_bridge import errors
from slurm_bridge.model.meta import Manifest

#: Levels of a manifest that a stranger sends; a pod has about a dozen.
_DEEPEST: Final = 100


def documents(text: str, source: str) -> tuple[Manifest, ...]:
    """The objects in this text; BadConfiguration names the source, and the line where it is one."""
    try:
        found = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}:" if error.problem_mark else ""
        raise errors.BadConfiguration(f"{source}:{line} is not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise errors.BadConfiguration(f"{source}: is not YAML: {type(error).__name__}") from error
    return tuple(one for document in found for one in _objects(document, source))


def handed_in(body: bytes) -> Manifest:
    """The one object in what somebody has sent, JSON or YAML; BadConfiguration says why there is none.

    Whoever sent it may mean harm, and YAML is built only after a look at its events: some hundred bytes of aliases
    make gigabytes of JSON, and thousands of levels overflow the stack of the library, which ends the process.
    """
    source = "the manifest"
    try:
        found = _strangers(body, source)
    except RecursionError:
        raise errors.BadConfiguration(f"{source}: is nested too deeply") from None
    except UnicodeDecodeError:
        raise errors.BadConfiguration(f"{source}: is not UTF-8") from None
    if not isinstance(found, dict):
        raise errors.BadConfiguration(f"{source}: has to be one object with kind, metadata and spec")
    if _deep(found):
        raise errors.BadConfiguration(f"{source}: is nested too deeply")
    return found


def _deep(value: Any) -> bool:
    """Level by level: whoever goes through it afterwards may do so by calling itself."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for one in level if isinstance(one, dict | list) for inner in _inside(one)]
    return bool(level)


def _inside(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _strangers(body: bytes, source: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        if body.lstrip().startswith(b"{"):
            raise errors.BadConfiguration(f"{source}: is not JSON: {error}") from error
    text = body.decode()
    try:
        _look_through(text, source)
        # What cannot be JSON (sets, say) is found here, where it can still be told as the sender's mistake.
        return msgspec.json.decode(msgspec.json.encode(yaml.load(text, yaml.CSafeLoader)))
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}:" if error.problem_mark else ""
        raise errors.BadConfiguration(f"{source}:{line} is not YAML: {error.problem}") from error
    except (yaml.YAMLError, TypeError, ValueError, LookupError, AttributeError) as error:
        # The library trusts what explicit tags say: `!!bool maybe`, `!!timestamp soon`.
        raise errors.BadConfiguration(f"{source}: is not YAML that could be JSON: {type(error).__name__}") from error


def _look_through(text: str, source: str) -> None:
    depth = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise errors.BadConfiguration(f"{source}: YAML aliases are not taken")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise errors.BadConfiguration(f"{source}: is nested too deeply")


def _objects(document: Any, source: str) -> tuple[Manifest, ...]:
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise errors.BadConfiguration(f"{source}: a document is no object of Kubernetes, it has no kind")
    if document["kind"] == "List":
        return tuple(one for item in document.get("items") or () for one in _objects(item, source))
    if not isinstance(document.get("metadata"), dict):
        raise errors.BadConfiguration(f"{source}: {document['kind']} has no metadata")
    return (document,)
