"""Conformance cases from their files; a file that cannot be read wholly is an error that names it.

Adapters take what they need from here: `Fields`, of which they are given two, what is given and what is expected.
"""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.conformance.fields import Fields, Malformed, finish, kind_of

__all__ = ["OWN", "VARIABLE", "Case", "Fields", "Malformed", "cases", "files", "finish", "roots"]

#: Folders of the same layout, FAMILY/*.yaml, that are run instead of the project's own; separated as in PATH.
VARIABLE = "CONFORMANCE_DIR"
OWN = Path(__file__).parent / "data"

_CASE_KEYS = frozenset({"id", "given", "expect", "origin", "note", "verified", "reason"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case as it is written; `binding` is false where its author says so, and `reason` says why."""

    family: str
    file: str
    id: str
    path: Path
    given: Mapping[str, Any]
    expect: Mapping[str, Any]
    binding: bool = True
    reason: str = ""

    @property
    def where(self) -> str:
        """How messages name it."""
        return f"{self.path}: case {self.id}"


def roots() -> tuple[Path, ...]:
    """The folders whose cases are run."""
    named = os.environ.get(VARIABLE, "")
    return tuple(Path(one) for one in named.split(os.pathsep) if one) or (OWN,)


def files(root: Path) -> tuple[Path, ...]:
    """The case files of a folder; Malformed for a folder without any, and for one that would be overlooked."""
    if not root.is_dir():
        raise Malformed(f"{root}: is no folder; {VARIABLE} takes folders with files FAMILY/*.yaml")
    found = tuple(sorted(root.glob("*/*.yaml")))
    overlooked = sorted({*root.rglob("*.yaml"), *root.rglob("*.yml")} - set(found))
    if overlooked:
        raise Malformed(f"{overlooked[0]}: would not be run; cases lie in {root}/FAMILY/*.yaml")
    if not found:
        raise Malformed(f"{root}: has no files FAMILY/*.yaml")
    return found


def cases(path: Path) -> tuple[Case, ...]:
    """All cases of one file, in its order."""
    try:
        written = yaml.load(path.read_text(encoding="utf-8"), Loader=_Strict)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Malformed(f"{path}: is not readable as YAML: {error}") from error
    if not isinstance(written, dict) or set(written) != {"cases"}:
        keys = ", ".join(map(repr, written)) if isinstance(written, dict) else kind_of(written)
        raise Malformed(f"{path}: has {keys}; a file has one key, 'cases'")
    listed = written["cases"]
    if not isinstance(listed, list) or not listed:
        raise Malformed(f"{path}: cases: is {kind_of(listed)}, not a list of cases")
    found = tuple(_case(path, place, record) for place, record in enumerate(listed))
    ids = [case.id for case in found]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise Malformed(f"{path}: the id {twice[0]} is given to more than one case")
    return found


def _case(path: Path, place: int, record: object) -> Case:
    if not isinstance(record, dict) or not isinstance(record.get("id"), str) or not record["id"]:
        raise Malformed(f"{path}: cases[{place}]: has no id")
    where = f"{path}: case {record['id']}"
    strange = sorted(record.keys() - _CASE_KEYS)
    if strange:
        raise Malformed(f"{where}: {strange[0]}: is not a field of a case; these are {', '.join(sorted(_CASE_KEYS))}")
    head = Fields(record, where)
    binding = head.flag("verified", default=True)
    return Case(
        family=path.parent.name,
        file=path.stem,
        id=record["id"],
        path=path,
        given=head.raw("given"),
        expect=head.raw("expect"),
        binding=binding,
        reason=head.text("reason") if not binding else "",
    )


class _Strict(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML in which a key stands for one value: the plain loader lets the last of several win in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)
