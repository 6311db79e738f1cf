"""Just enough YAML to send manifests where they belong: documents are split and addressed, but never parsed.

The API server understands YAML itself. What has to be known here is only apiVersion, kind, name and namespace, which
stand at known indentation in every manifest that people or generators write.
"""

import dataclasses
import pathlib
import re
from collections.abc import Iterator
from typing import Self

from localcluster.part import PartError

_TOP = r"^{field}:[ ]*[\"']?(?P<value>[^\s\"'#]+)"
_METADATA = re.compile(r"^metadata:\n(?P<block>(?:[ ]+.*\n|[ ]*#.*\n|\n)*)", re.MULTILINE)
_INNER = r"^  {field}:[ ]*[\"']?(?P<value>[^\s\"'#]+)"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One object: where it is in the API, and its text."""

    path: str
    text: str

    @classmethod
    def of(cls, text: str) -> Self:
        version, kind = (_value(_TOP, field, text) for field in ("apiVersion", "kind"))
        found = _METADATA.search(text)
        block = found["block"] if found else ""
        name = _value(_INNER, "name", block)
        if not (version and kind and name):
            raise PartError(f"not a Kubernetes manifest: {text[:200]!r}")
        return cls(path=address(version, kind, name, _value(_INNER, "namespace", block)), text=text)


def address(version: str, kind: str, name: str, namespace: str = "") -> str:
    """The URL path of an object; the plural is the regular one, which holds for everything applied here."""
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    inside = f"/namespaces/{namespace}" if namespace else ""
    plural = kind.lower() + ("es" if kind.endswith("s") else "s")
    return f"{root}{inside}/{plural}/{name}"


def documents(text: str) -> Iterator[Document]:
    """Every object in a text of several; comments between separators are nothing."""
    for part in re.split(r"^---[ ]*$", text, flags=re.MULTILINE):
        if re.search(r"^kind:", part, re.MULTILINE):
            yield Document.of(part.strip() + "\n")


def from_file(file: pathlib.Path) -> list[Document]:
    """Every object of a file."""
    return list(documents(file.read_text()))


def _value(pattern: str, field: str, text: str) -> str:
    found = re.search(pattern.format(field=field), text, re.MULTILINE)
    return found["value"] if found else ""
