"""From a file, variables and flags to settings, or to every problem at once with the place of each."""

import difflib
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pydantic

from slurm_bridge import errors
from slurm_bridge.hooks import registry
from slurm_bridge.hooks.registry import RefusedOptions
from slurm_bridge.runtime import packages
from slurm_bridge.settings import keys, profiles, sources
from slurm_bridge.settings.model import Settings
from slurm_bridge.settings.sources import ConfigurationProblem, SettingsSource, WrittenText
from slurm_bridge.settings.trees import Path

#: Values under these keys are never repeated: an address may hold a password, a path may be a token by mistake.
_NEVER_SHOWN = ("url", "token_file", "options")

_LONGEST_SHOWN = 60


def load(
    path: pathlib.Path | WrittenText | None,
    environ: Mapping[str, str],
    overrides: Iterable[str] = (),
    *,
    with_hooks: bool = False,
) -> Settings:
    """The settings: the file, over it the environment, over both the flags.

    With hooks, for processes that build the chain, their names and options are judged as well.
    """
    given = sources.given(path, environ, overrides)
    problems = [problem for source in given for problem in source.problems]
    if given[-1].problems and not given[-1].tree.values:
        # Nothing of the file was read: what it lacks is not known.
        raise _bad(problems)
    if with_hooks:
        problems += _of_hooks(given)
    try:
        settings = Settings(sources=(*given, profiles.below(given)))  # type: ignore[call-arg]  # no key
    except pydantic.ValidationError as wrong:
        problems += [_problem(given, error) for error in wrong.errors(include_url=False)]
    if problems:
        raise _bad(problems)
    return settings


def _bad(problems: Iterable[ConfigurationProblem]) -> errors.BadConfiguration:
    lines = sorted({(_order(problem.place), str(problem)) for problem in problems})
    head = "the configuration has a problem" if len(lines) == 1 else f"the configuration has {len(lines)} problems"
    return errors.BadConfiguration("\n".join([f"{head}:", *(f"  {line}" for _, line in lines)]))


def _order(place: str) -> tuple[str, int]:
    """By file and line, as one would go through it."""
    name, colon, line = place.rpartition(":")
    return (name, int(line)) if colon and line.isdigit() else (place, 0)


def _problem(given: Sequence[SettingsSource], error: Any) -> ConfigurationProblem:
    path = tuple(step for step in error["loc"] if step != "[key]")
    return _placed(given, path, _words(error, path, keys.named(path[:-1])))


def _of_hooks(given: Sequence[SettingsSource]) -> Iterator[ConfigurationProblem]:
    """What the names and options of the hooks alone say; entries of another form are mistakes of the settings."""
    installed = packages.offered(registry.GROUP)
    written = next((source.tree.values["hooks"] for source in given if "hooks" in source.tree.values), None)
    names: list[str] = []
    for number, hook in enumerate(written if isinstance(written, list) else ()):
        name, options = (hook.get("name"), hook.get("options", {})) if isinstance(hook, Mapping) else (None, None)
        if not isinstance(name, str):
            continue
        at = ("hooks", number)
        if name in names:
            yield _placed(given, (*at, "name"), f"{name} is configured twice; leave one out")
        names.append(name)
        if (why := registry.unknown(name, installed)) is not None:
            yield _placed(given, (*at, "name"), f"{name} is {why}")
        elif isinstance(options, Mapping) and (refused := registry.refused(name, options, installed)):
            for path, message in _of_options(options, refused):
                yield _placed(given, (*at, "options", *path), message)


def _of_options(options: Mapping[str, Any], refused: RefusedOptions) -> Iterator[tuple[Path, str]]:
    """One message for each key, although a value of several forms has a mistake in each of them."""
    said: dict[Path, list[str]] = {}
    for error in refused.mistakes:
        path = _as_written(error, options)
        words = _words(error, ("options", *path), keys.named(path[:-1], refused.model))
        said.setdefault(path, []).append(words)
    for path, forms in said.items():
        # The form that was meant has its mistake further inside.
        if not any(other != path and other[: len(path)] == path for other in said):
            yield path, ", or ".join(dict.fromkeys(forms))


def _as_written(error: Any, options: Mapping[str, Any]) -> Path:
    """The way to a mistake without the names of models, which pydantic puts in between."""
    path: Path = ()
    value: Any = options
    for step in error["loc"]:
        listed = isinstance(value, list) and isinstance(step, int) and step < len(value)
        if listed or (isinstance(value, Mapping) and step in value):
            path, value = (*path, step), value[step]
    # A key that is missing, or that a short form was taken for, is not in what was written.
    absent = error["type"] in ("missing", "extra_forbidden") and path[-1:] != error["loc"][-1:]
    return (*path, error["loc"][-1]) if absent else path


def _placed(given: Sequence[SettingsSource], path: Path, message: str) -> ConfigurationProblem:
    place = sources.place(given, path)
    # `hooks[2].name`
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    key = text.removeprefix(".") or "the whole"
    # A flag's place is its key already.
    return ConfigurationProblem(place=place, message=message if place.endswith(f" {key}") else f"{key}: {message}")


def _words(error: Any, path: Path, allowed: Iterable[str] | None) -> str:
    if error["type"] == "extra_forbidden":
        return _unknown(path, allowed or ())
    if error["type"] == "literal_error" and error["loc"][-1] == "[key]":
        return _unknown(path, re.findall(r"'([^']+)'", error["ctx"]["expected"]))
    return _SAID.get(error["type"], _said)(error, path)


def _unknown(path: Path, allowed: Iterable[str]) -> str:
    """The value is not repeated: the key might have meant a secret."""
    known = sorted(allowed)
    near = difflib.get_close_matches(str(path[-1]), known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"no such key; {hint}" if known else "no such key"


def _missing(_: Any, __: Path) -> str:
    return "is required"


def _ours(error: Any, path: Path) -> str:
    """A rule of ours, in our words."""
    return f"{error['ctx']['error']}{_instead(error, path)}"


def _said(error: Any, path: Path) -> str:
    message = re.sub(r"^(Input|String|Value) should", "should", error["msg"])
    message = re.sub(r"\b[tT]uple\b|\b[fF]rozenset\b", "list", message)
    message = re.sub(r"dictionary( or instance of \w+)?", "mapping", message)
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


_SAID = {"missing": _missing, "string_type": _no_text, "value_error": _ours}
