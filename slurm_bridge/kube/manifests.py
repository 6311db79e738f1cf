"""Manifests as people write them: YAML with one or several documents, or a List that kubectl has written."""

from typing import Any

import yaml

from slurm_bridge import errors
from slurm_bridge.model.meta import Manifest


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


def _objects(document: Any, source: str) -> tuple[Manifest, ...]:
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise errors.BadConfiguration(f"{source}: a document is no object of Kubernetes, it has no kind")
    if document["kind"] == "List":
        return tuple(one for item in document.get("items") or () for one in _objects(item, source))
    if not isinstance(document.get("metadata"), dict):
        raise errors.BadConfiguration(f"{source}: {document['kind']} has no metadata")
    return (document,)
