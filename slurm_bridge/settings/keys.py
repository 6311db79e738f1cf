"""The keys that there are: found by name, listed with type, default and meaning."""

import dataclasses
import pathlib
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import pydantic
from pydantic.fields import FieldInfo

from slurm_bridge.settings import kinds, model
from slurm_bridge.settings.kinds import SettingsGroup
from slurm_bridge.settings.trees import Path

_ANY_ITEM = "[]"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key as the reference lists it; of a group's items the name ends in `[]`."""

    name: str
    type: str
    default: str
    reloadable: bool
    meaning: str


def every() -> Iterator[Key]:
    """All keys in their order, groups opened."""
    return _keys(model.Settings, prefix="", reloadable=False)


def named(path: Path, group: type[pydantic.BaseModel] = model.Settings) -> Mapping[str, FieldInfo] | None:
    """The keys that may stand at this place of the group, None where any may."""
    here: list[Any] = [group]
    for step in path:
        here = [inner for annotation in here for inner in _below(annotation, step)]
    groups = [one for annotation in here for one in _plain(annotation) if _is_group(one)]
    return {key: field for one in groups for key, field in _fields(one).items()} if groups else None


def spelled(segments: Sequence[str]) -> Path:
    """The parts of a variable's name as keys: in small letters, except where the configuration itself names keys."""
    path: Path = ()
    for segment in segments:
        path = (*path, segment.lower() if named(path) is not None else segment)
    return path


def reloadable(top: str) -> bool:
    """Whether a running daemon takes over changes below this key."""
    return _reloadable(_fields(model.Settings)[top])


def _keys(group: type[SettingsGroup], *, prefix: str, reloadable: bool) -> Iterator[Key]:
    for name, field in _fields(group).items():
        soon = reloadable or _reloadable(field)
        inner = _group_in(field.annotation)
        many = _is_list(field.annotation)
        if inner is None or many or field.description:
            yield Key(
                name=f"{prefix}{name}",
                type=_type(field.annotation),
                default="required" if field.is_required() else _default(field.default),
                reloadable=soon,
                meaning=" ".join((field.description or "").split()),
            )
        if inner is not None:
            yield from _keys(inner, prefix=f"{prefix}{name}{_ANY_ITEM if many else ''}.", reloadable=soon)


def _below(annotation: Any, step: str | int) -> Iterator[Any]:
    """What may stand at a key, or as an item, of what this annotation allows."""
    for one in _plain(annotation):
        inner, origin = typing.get_args(one), typing.get_origin(one)
        if _is_group(one) and step in _fields(one):
            yield _fields(one)[str(step)].annotation
        elif isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(step, str):
            yield inner[1]
        elif isinstance(origin, type) and issubclass(origin, Sequence) and isinstance(step, int):
            yield inner[0]


def _plain(annotation: Any) -> Iterator[Any]:
    """The choices of an annotation, without what is said about them."""
    if typing.get_origin(annotation) is Annotated:
        yield from _plain(typing.get_args(annotation)[0])
    elif _choices(annotation):
        yield from (plain for choice in _choices(annotation) for plain in _plain(choice))
    elif isinstance(annotation, type) and issubclass(annotation, pydantic.RootModel):
        yield from _plain(annotation.model_fields["root"].annotation)
    else:
        yield annotation


def _is_group(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel)


def _fields(group: type[pydantic.BaseModel]) -> Mapping[str, FieldInfo]:
    return {field.alias or name: field for name, field in group.model_fields.items()}


def _reloadable(field: FieldInfo) -> bool:
    return field.json_schema_extra == kinds.RELOADABLE


def _group_in(annotation: Any) -> type[SettingsGroup] | None:
    """The group that a field holds: itself, perhaps, or many of it."""
    if isinstance(annotation, type) and issubclass(annotation, SettingsGroup):
        return annotation
    return next((group for inner in typing.get_args(annotation) if (group := _group_in(inner))), None)


def _is_list(annotation: Any) -> bool:
    return typing.get_origin(annotation) is tuple or any(_is_list(inner) for inner in _choices(annotation))


def _choices(annotation: Any) -> Sequence[Any]:
    return typing.get_args(annotation) if typing.get_origin(annotation) in (types.UnionType, typing.Union) else ()


_PLURALS = {"text": "texts", "group": "groups"}

_WORDS: Mapping[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    types.NoneType: "null",
    pathlib.Path: "path",
}


def _type(annotation: Any) -> str:
    """In words that need no knowledge of Python."""
    inner, origin = typing.get_args(annotation), typing.get_origin(annotation)
    if _choices(annotation):
        return " or ".join(_type(choice) for choice in inner)
    if origin is Literal:
        return " or ".join(f"`{word}`" for word in inner)
    if origin in (Annotated, tuple):
        item = _type(inner[0])
        return f"list of {_PLURALS.get(item, item)}" if origin is tuple else item
    return _WORDS.get(annotation, "group" if _group_in(annotation) and not inner else "table")


def _default(value: Any) -> str:
    plain = pydantic.TypeAdapter(Any).dump_python(value, mode="json", by_alias=True)
    if isinstance(value, tuple) and value and isinstance(value[0], SettingsGroup):
        return ", ".join(f"`{item['name']}`" for item in plain)
    if isinstance(plain, Mapping):
        return ", ".join(f"`{key}: {item}`" for key, item in plain.items()) or "none"
    if isinstance(plain, Sequence) and not isinstance(plain, str):
        return ", ".join(f"`{item}`" for item in plain) or "none"
    return _SHOWN.get(repr(plain), f"`{plain}`")


_SHOWN = {"None": "`null`", "''": "empty", "True": "`true`", "False": "`false`"}
