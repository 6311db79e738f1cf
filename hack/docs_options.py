"""Options of hooks as tables: a row for each key of a pydantic model, with type, bounds, default and meaning."""

import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import annotated_types
import pydantic
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

Model = type[pydantic.BaseModel]

_WORDS: Mapping[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    types.NoneType: "null",
    Any: "anything",
}
_PLURALS = {"text": "texts", "group": "groups", "whole number": "whole numbers"}
_SHOWN = {"None": "`null`", "''": "empty", "True": "`true`", "False": "`false`"}


def table(model: Model, *, leaves: Sequence[Model] = ()) -> str:
    """All keys, groups opened but for those that are explained elsewhere."""
    rows = [_row(*found) for found in _keys(model, "", tuple(leaves))]
    return "\n".join(["| key | type | default | meaning |", "|---|---|---|---|", *rows]) + "\n"


def arguments(models: Mapping[str, Model], words: Mapping[str, str]) -> str:
    """Arguments by component, equal ones in one row; `words` are for what their classes leave out."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for of, model in models.items():
        told = _told(model)
        for name, field in model.model_fields.items():
            meaning = told.get(name, words.get(name, ""))
            row = (f"`{name}`", _type(field.annotation, field.metadata), _default(field), _sentence(meaning))
            rows.setdefault(row, []).append(f"`{of}`")
    lines = (f"| {row[0]} | {', '.join(of)} | {' | '.join(map(cell, row[1:]))} |" for row, of in sorted(rows.items()))
    return "\n".join(["| argument | of | type | default | meaning |", "|---|---|---|---|---|", *lines]) + "\n"


def cell(text: str) -> str:
    """Within a table."""
    return " ".join(text.split()).replace("|", "\\|")


def _keys(model: Model, prefix: str, leaves: tuple[Model, ...]) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}", field
        inner = _model_in(field.annotation)
        if inner is not None and inner not in leaves:
            many = "[]" if typing.get_origin(field.annotation) is tuple else ""
            yield from _keys(inner, f"{prefix}{name}{many}.", leaves)


def _row(name: str, field: FieldInfo) -> str:
    meaning = _sentence(field.description or "")
    cells = (f"`{name}`", _type(field.annotation, field.metadata), _default(field), meaning)
    return f"| {' | '.join(map(cell, cells))} |"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".rstrip(".")


def _told(model: Model) -> Mapping[str, str]:
    """What the docstrings of a model and of those that it extends say: `key`: words, to the next key or the end."""
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        text = " ".join((one.__doc__ or "").split()) if issubclass(one, pydantic.BaseModel) else ""
        found |= dict(re.findall(r"`(\w+)`: (.*?)(?=[;.]? `\w+`:|$)", text))
    return found


def _type(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    inner, origin = typing.get_args(annotation), typing.get_origin(annotation)
    if origin is Annotated:
        more = [rule for one in inner[1:] for rule in (one.metadata if isinstance(one, FieldInfo) else [one])]
        return _type(inner[0], [*metadata, *more])
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_type(choice) for choice in inner)
    if origin is Literal:
        return " or ".join(f"`{word}`" for word in inner)
    if origin is tuple:
        return _listed(inner)
    word = _WORDS.get(annotation) or ("group" if _model_in(annotation) and not inner else "table")
    return word + _bounds(metadata)


def _listed(inner: Sequence[Any]) -> str:
    if typing.get_origin(inner[0]) is tuple:
        return f"list of pairs of {' and '.join(_type(one) for one in typing.get_args(inner[0]))}"
    item = _type(inner[0])
    return f"list of {_PLURALS.get(item, item)}"


def _bounds(metadata: Sequence[Any]) -> str:
    low = next((one.ge for one in metadata if isinstance(one, annotated_types.Ge)), None)
    high = next((one.le for one in metadata if isinstance(one, annotated_types.Le)), None)
    above = next((one.gt for one in metadata if isinstance(one, annotated_types.Gt)), None)
    parts = [f"above {above}"] if above is not None else [f"from {low}"] if low is not None else []
    parts += [f"to {high}"] if high is not None else []
    return f", {' '.join(parts)}" if parts else ""


def _default(field: FieldInfo) -> str:
    value = field.get_default()
    if value is PydanticUndefined:
        return "required"
    plain = pydantic.TypeAdapter(Any).dump_python(value, mode="json")
    if isinstance(value, pydantic.BaseModel):
        return "as below"
    if isinstance(value, tuple) and value and isinstance(value[0], pydantic.BaseModel):
        return ", ".join(f"`{item['name']}`" for item in plain) if "name" in plain[0] else "see above"
    if isinstance(plain, Mapping):
        return ", ".join(f"`{key}: {item}`" for key, item in plain.items()) or "none"
    if isinstance(plain, Sequence) and not isinstance(plain, str):
        return ", ".join(f"`{_item(item)}`" for item in plain) or "none"
    return _SHOWN.get(repr(plain), f"`{plain}`")


def _item(item: Any) -> str:
    """Of a list, as one writes it in YAML."""
    return f"[{', '.join(map(str, item))}]" if isinstance(item, list) else str(item)


def _model_in(annotation: Any) -> Model | None:
    """The group that a key holds: itself, or many of it."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return None if issubclass(annotation, pydantic.RootModel) else annotation
    if typing.get_origin(annotation) is tuple:
        return _model_in(typing.get_args(annotation)[0])
    return None
