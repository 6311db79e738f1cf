"""Where values come from: a YAML file, variables and flags, each with the place at which every value stands.

pydantic-settings asks the sources in their order, the strongest first, and merges what they say: groups key by key,
anything else is replaced.
"""

import dataclasses
import hashlib
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from slurm_bridge import errors
from slurm_bridge.runtime import safe_yaml
from slurm_bridge.settings import keys, trees
from slurm_bridge.settings.trees import Assignment, Path, SettingsTree

#: The configuration in a ConfigMap.
KEY = "config.yaml"

#: `SLURM_BRIDGE__SLURM__URL` is `slurm.url`. Two underscores: Kubernetes itself sets variables with one.
PREFIX = "SLURM_BRIDGE__"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationProblem:
    """Something that cannot work, and where it was written."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WrittenText:
    """A configuration that is in no file, and how it is called."""

    name: str
    text: str


class SettingsSource(PydanticBaseSettingsSource):
    """Values with their places, and what is wrong with them so far."""

    def __init__(self, tree: SettingsTree, problems: Sequence[ConfigurationProblem]) -> None:
        super().__init__(BaseSettings)
        self.tree, self.problems = tree, problems

    def __call__(self) -> dict[str, Any]:
        """All that this source says, save what a stronger one has emptied."""
        return _beside(self.tree.values, self.current_state)

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002 - as asked
        """One value of it; the whole is taken at once, so that unknown keys are seen."""
        return self.tree.values.get(field_name), field_name, False


def given(
    base: pathlib.Path | WrittenText | None, environ: Mapping[str, str], overrides: Iterable[str]
) -> tuple[SettingsSource, ...]:
    """All sources, the strongest first."""
    if isinstance(base, WrittenText):
        below = document(base.text, base.name)
    else:
        below = file(base) if base else SettingsSource(SettingsTree(values={}, places={}), ())
    return flags(overrides), environment(environ), below


def place(given: Sequence[SettingsSource], path: Path) -> str:
    """Where the value at this path was written, or else what should have contained it."""
    said = (source.tree for source in given if source.tree.says(path))
    return next(said, given[-1].tree).place(path)


def file(path: pathlib.Path) -> SettingsSource:
    """What the file says; one that cannot be read at all is an error by itself."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise errors.BadConfiguration(f"{path} cannot be read: {_reason(error)}") from None
    return document(text, str(path))


def document(text: str, path: str) -> SettingsSource:
    """What a text says that is called so."""
    nothing = SettingsTree(values={}, places={(): path})
    try:
        found = _inside(safe_yaml.composed(text))
    except safe_yaml.NotYaml as error:
        place = path if error.line is None else f"{path}:{error.line}"
        return SettingsSource(nothing, [ConfigurationProblem(place=place, message=f"is not YAML: {error.what}")])
    if not found:
        return SettingsSource(nothing, ())
    node, values = found[0]
    if len(found) > 1:
        message = (
            f"is the first of {len(found)} YAML documents: give the settings alone, or exactly one ConfigMap "
            f"with the key {KEY}"
        )
        return SettingsSource(nothing, [ConfigurationProblem(place=_mark(path, node.start_mark), message=message)])
    problems = list(_repeated(node, path))
    if not isinstance(values, dict):
        return SettingsSource(
            nothing,
            [
                *problems,
                ConfigurationProblem(place=_mark(path, node.start_mark), message="has to hold keys and values"),
            ],
        )
    return SettingsSource(SettingsTree(values=values, places={**dict(_places(node, path)), (): path}), problems)


def _inside(documents: list[tuple[yaml.Node, Any]]) -> list[tuple[yaml.Node, Any]]:
    """Of manifests, as deploy/ has them, the configuration in the one ConfigMap that has it; it keeps its lines."""
    maps = [node for node, values in documents if _is_config_map(values) and isinstance(node, yaml.MappingNode)]
    if len(maps) != 1:
        return documents
    data = next(value for key, value in maps[0].value if key.value == "data")
    scalar = next(value for key, value in data.value if key.value == KEY)
    before: int = scalar.start_mark.line + (scalar.style in ("|", ">"))
    return safe_yaml.composed("\n" * before + scalar.value)


def _is_config_map(values: object) -> bool:
    held = values.get("data") if isinstance(values, dict) and values.get("kind") == "ConfigMap" else None
    return isinstance(held, dict) and isinstance(held.get(KEY), str)


def fingerprint(path: pathlib.Path) -> str:
    """Changes with the content, and only with it: a mounted ConfigMap is exchanged by moving links."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise errors.BadConfiguration(f"{path} cannot be read: {_reason(error)}") from None


def environment(environ: Mapping[str, str]) -> SettingsSource:
    """What variables with our prefix say, in the order of their names."""
    named = sorted((name, text) for name, text in environ.items() if name.startswith(PREFIX))
    return _assigned((name, keys.spelled(name.removeprefix(PREFIX).split("__")), text) for name, text in named)


def flags(overrides: Iterable[str]) -> SettingsSource:
    """What `--set key=value` says, in the order given."""
    pairs = [override.partition("=") for override in overrides]
    wrong = [
        ConfigurationProblem(place=f"--set {key}", message="has to be key=value")
        for key, equals, _ in pairs
        if not equals
    ]
    written = ((f"--set {key}", tuple(key.strip().split(".")), text) for key, equals, text in pairs if equals)
    return _assigned(written, wrong)


def _assigned(written: Iterable[tuple[str, Path, str]], wrong: Sequence[ConfigurationProblem] = ()) -> SettingsSource:
    tree, problems = SettingsTree(values={}, places={}), [*wrong]
    for place, path, text in written:
        if not all(path):
            problems.append(ConfigurationProblem(place=place, message="names no key"))
            continue
        try:
            tree = trees.assign(tree, Assignment(path=path, value=safe_yaml.load(text), place=place))
        except safe_yaml.NotYaml:
            problems.append(
                ConfigurationProblem(place=place, message="its value is not YAML; put quotes around special characters")
            )
    return SettingsSource(tree, problems)


def _beside(values: Mapping[str, Any], stronger: Mapping[str, Any]) -> dict[str, Any]:
    """The values without those of groups that are said to be empty."""
    left = {}
    for key, value in values.items():
        above = stronger.get(key)
        if isinstance(above, Mapping) and isinstance(value, Mapping):
            left[key] = _beside(value, above) if above else {}
        else:
            left[key] = value
    return left


def _places(node: yaml.Node, path: str, way: Path = ()) -> Iterator[tuple[Path, str]]:
    """The line of each key, and of each item of a list."""
    yield way, _mark(path, node.start_mark)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _places(value, path, (*way, key.value))
            yield (*way, key.value), _mark(path, key.start_mark)
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _places(item, path, (*way, number))


def _repeated(node: yaml.Node, path: str) -> Iterator[ConfigurationProblem]:
    """YAML would silently take the last of two equal keys."""
    if isinstance(node, yaml.MappingNode):
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for position, (key, value) in enumerate(node.value):
            if key.value in names[:position]:
                yield ConfigurationProblem(place=_mark(path, key.start_mark), message=f"{key.value}: occurs twice")
            yield from _repeated(value, path)
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated(item, path)


def _mark(path: str, mark: Any) -> str:
    return f"{path}:{mark.line + 1}" if mark else path


def _reason(error: Exception) -> str:
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else type(error).__name__
