"""From a file, variables and flags to settings, or to every problem at once with the place of each."""

import difflib
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pydantic

from slurm_bridge import errors
from slurm_bridge.settings import keys, profiles, sources
from slurm_bridge.settings.model import Settings
from slurm_bridge.settings.sources import ConfigurationProblem, SettingsSource, WrittenText
from slurm_bridge.settings.trees import Path

#: Values under these keys are never repeated: an address may hold a password, a path may be a token by mistake.
_NEVER_SHOWN = ("url", "token_file", "options")

_LONGEST_SHOWN = 60


def load(
    path: pathlib.Path | WrittenText | None, environ: Mapping[str, str], overrides: Iterable[str] = ()
) -> Settings:
    """The settings: the file, over it the environment, over both the flags."""
    given = sources.given(path, environ, overrides)
    problems = [problem for source in given for problem in source.problems]
    try:
        settings = Settings(sources=(*given, profiles.below(given)))  # type: ignore[call-arg]  # no key
    except pydantic.ValidationError as wrong:
        problems += [_problem(given, error) for error in wrong.errors(include_url=False)]
    if problems:
        lines = sorted({(_order(problem.place), str(problem)) for problem in problems})
        head = "the configuration has a problem" if len(lines) == 1 else f"the configuration has {len(lines)} problems"
        raise errors.BadConfiguration("\n".join([f"{head}:", *(f"  {line}" for _, line in lines)]))
    return settings


def _order(place: str) -> tuple[str, int]:
    """By file and line, as one would go through it."""
    name, colon, line = place.rpartition(":")
    return (name, int(line)) if colon and line.isdigit() else (place, 0)


def _problem(given: Sequence[SettingsSource], error: Any) -> ConfigurationProblem:
    path = tuple(step for step in error["loc"] if step != "[key]")
    message, place = _SAID.get(error["type"], _said)(error, path), sources.place(given, path)
    # `hooks[2].name`
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    key = text.removeprefix(".") or "the whole"
    # A flag's place is its key already.
    return ConfigurationProblem(place=place, message=message if place.endswith(f" {key}") else f"{key}: {message}")


def _unknown(_: Any, path: Path) -> str:
    """The value is not repeated: the key might have meant a secret."""
    allowed = sorted(keys.named(path[:-1]) or ())
    near = difflib.get_close_matches(str(path[-1]), allowed, n=1)
    return f"no such key; did you mean {near[0]}?" if near else f"no such key; there are {', '.join(allowed)}"


def _missing(_: Any, __: Path) -> str:
    return "is required"


def _ours(error: Any, path: Path) -> str:
    """A rule of ours, in our words."""
    return f"{error['ctx']['error']}{_instead(error, path)}"


def _said(error: Any, path: Path) -> str:
    message = error["msg"].replace("Input should", "should").replace(" tuple", " list").replace("dictionary", "mapping")
    return f"{message[0].lower()}{message[1:]}{_instead(error, path)}"


def _no_text(error: Any, path: Path) -> str:
    """YAML turns some words into truth values."""
    word = isinstance(error["input"], bool)
    return f"has to be a text{_instead(error, path)}{'; put the word in quotes' if word else ''}"


def _instead(error: Any, path: Path) -> str:
    value = error["input"]
    hidden = any(step in _NEVER_SHOWN for step in path)
    if hidden or not isinstance(value, str | int | float | bool) or len(str(value)) > _LONGEST_SHOWN:
        return ""
    return f", not {value!r}"


_SAID = {"extra_forbidden": _unknown, "missing": _missing, "string_type": _no_text, "value_error": _ours}
