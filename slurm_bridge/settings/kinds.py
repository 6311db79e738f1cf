"""What single values may be: the annotated types of the settings, and the rules between two keys of one group."""

import ipaddress
import operator
import pathlib
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pydantic
from pydantic import AfterValidator, BeforeValidator, Field

from slurm_bridge.model import quantity
from slurm_bridge.model.node import Taint

#: Mark of a key that a running daemon takes over without a restart.
RELOADABLE: dict[str, Any] = {"reloadable": True}

#: Users that would make a placeholder root's: 99 is Slurm's word for the owner of the token.
_NOT_A_USER = ("root", "0", "99")

_TOKEN_BEGINS = ("SLURM_JWT=", "eyJ")


class SettingsGroup(pydantic.BaseModel):
    """A group of keys. The text below a field is its line in the reference."""

    model_config = pydantic.ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        coerce_numbers_to_str=True,
        allow_inf_nan=False,
        validate_default=True,
        # Else an error would carry the whole input, and a token that was written into it.
        hide_input_in_errors=True,
    )


def above(key: str) -> AfterValidator:
    """The value has to be larger than that of a key further up in the same group."""
    return _compared(key, operator.gt, "has to be larger than")


def below(key: str) -> AfterValidator:
    """The value has to be smaller than that of a key further up in the same group."""
    return _compared(key, operator.lt, "has to be smaller than")


def _compared(key: str, holds: Callable[[float, float], bool], words: str) -> AfterValidator:
    """A rule between two values stands at one of them, so that a third that is wrong does not hide it."""

    def check(value: float, group: pydantic.ValidationInfo) -> float:
        other = group.data.get(key)
        if other is not None and not holds(value, other):
            raise ValueError(f"{words} {key} ({other:g})")
        return value

    return AfterValidator(check)


def together_with(key: str) -> AfterValidator:
    """Not without the other."""

    def check(value: object, group: pydantic.ValidationInfo) -> object:
        if value is not None and key in group.data and group.data[key] is None:
            raise ValueError(f"needs {key} beside it")
        return value

    return AfterValidator(check)


def loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _amount(text: str) -> str:
    try:
        amount = quantity.parse(text)
    except ValueError:
        raise ValueError("has to be a Kubernetes quantity, for example 500m, 2 or 1.5Gi") from None
    if amount <= 0:
        raise ValueError("has to be greater than 0")
    return text


def _amount_or_none(text: str) -> str:
    if quantity.parse(text) < 0:
        raise ValueError("has to be 0 or greater")
    return text


def _path(value: object) -> object:
    if isinstance(value, str) and value.strip().startswith(_TOKEN_BEGINS):
        raise ValueError("is a token, not a path: write the token into a file and name the file")
    if isinstance(value, str) and not value.strip():
        raise ValueError("names no file")
    return value


def _plain_user(name: str) -> str:
    if name in _NOT_A_USER:
        raise ValueError("placeholders belong to ordinary users and groups, never to root, 0 or 99")
    return name


def _no_default_scheduler(name: str) -> str:
    if name == "default-scheduler":
        raise ValueError("belongs to the cluster's own scheduler: both would bind the same pods")
    return name


def _taint(written: str) -> str:
    """Said of the form alone; the record is made where it is used."""
    Taint.parse(written)
    return written


def _different(values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    twice = sorted({value for value in values or () if (values or ()).count(value) > 1})
    if twice:
        raise ValueError(f"names {', '.join(twice)} more than once")
    return values


def _some(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Not by a length: then a list of one wrong item would be called empty besides."""
    if not values:
        raise ValueError("has to name at least one")
    return values


def text(pattern: str, words: str) -> Any:
    """A text of this form; the pattern alone does not say what is allowed."""
    form = pydantic.TypeAdapter(Annotated[str, Field(pattern=pattern)])

    def check(value: str) -> str:
        try:
            return form.validate_python(value)
        except pydantic.ValidationError:
            raise ValueError(f"has to be {words}") from None

    return AfterValidator(check)


_DNS_LABEL = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"

Label = Annotated[str, text(_DNS_LABEL, "at most 63 lower case letters, digits and dashes, as a DNS label")]
Name = Annotated[str, text(r"^[^\s,]+$", "a name without blanks and commas")]
Names = Annotated[str, text(r"^[^\s,]+(,[^\s,]+)*$", "a name, or several with commas and without blanks")]
User = Annotated[Name, AfterValidator(_plain_user)]
SchedulerName = Annotated[Name, AfterValidator(_no_default_scheduler)]
#: The profiles by name.
ProfileName = Literal["slinky"]
TaintText = Annotated[str, AfterValidator(_taint)]
Quantity = Annotated[str, AfterValidator(_amount)]
Reserve = Annotated[str, AfterValidator(_amount_or_none)]
File = Annotated[pathlib.Path, BeforeValidator(_path)]
Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0)]
JobNumber = Annotated[int, Field(ge=1, le=67_108_863)]
SOME = AfterValidator(_some)
DIFFERENT = AfterValidator(_different)
