"""Where values come from: a YAML file, variables and flags, each with the place at which every value stands."""

import dataclasses
import hashlib
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from slurm_bridge import errors
from slurm_bridge.runtime import safe_yaml
from slurm_bridge.settings import keys
from slurm_bridge.settings.trees import Assignment, Path, Tree

#: `SLURM_BRIDGE__SLURM__URL` is `slurm.url`. Two underscores: Kubernetes itself sets variables with one.
PREFIX = "SLURM_BRIDGE__"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that cannot work, and where it was written."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


def file(path: pathlib.Path) -> tuple[Tree, list[Problem]]:
    """What the file says; one that cannot be read at all is an error by itself."""
    nothing = Tree(values={}, places={(): str(path)})
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise errors.BadConfiguration(f"{path} cannot be read: {_reason(error)}") from None
    try:
        node, values = safe_yaml.composed(text)
    except safe_yaml.NotYaml as error:
        place = str(path) if error.line is None else f"{path}:{error.line}"
        return nothing, [Problem(place=place, message=f"is not YAML: {error.what}")]
    if node is None:
        return nothing, []
    problems = list(_repeated(node, path))
    if not isinstance(values, dict):
        return nothing, [*problems, Problem(place=_mark(path, node.start_mark), message="has to hold keys and values")]
    return Tree(values=values, places={**dict(_places(node, path)), (): str(path)}), problems


def fingerprint(path: pathlib.Path) -> str:
    """Changes with the content, and only with it: a mounted ConfigMap is exchanged by moving links."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise errors.BadConfiguration(f"{path} cannot be read: {_reason(error)}") from None


def environment(environ: Mapping[str, str]) -> tuple[list[Assignment], list[Problem]]:
    """What variables with our prefix say, in the order of their names."""
    named = sorted((name, text) for name, text in environ.items() if name.startswith(PREFIX))
    return _assignments((name, keys.spelled(name.removeprefix(PREFIX).split("__")), text) for name, text in named)


def flags(overrides: Iterable[str]) -> tuple[list[Assignment], list[Problem]]:
    """What `--set key=value` says, in the order given."""
    pairs = [override.partition("=") for override in overrides]
    wrong = [Problem(place=f"--set {key}", message="has to be key=value") for key, equals, _ in pairs if not equals]
    given, more = _assignments(
        (f"--set {key}", tuple(key.strip().split(".")), text) for key, equals, text in pairs if equals
    )
    return given, [*wrong, *more]


def _assignments(written: Iterable[tuple[str, Path, str]]) -> tuple[list[Assignment], list[Problem]]:
    given: list[Assignment] = []
    problems: list[Problem] = []
    for place, path, text in written:
        if not all(path):
            problems.append(Problem(place=place, message="names no key"))
            continue
        try:
            given.append(Assignment(path=path, value=safe_yaml.load(text), place=place))
        except safe_yaml.NotYaml:
            problems.append(Problem(place=place, message="its value is not YAML; put quotes around special characters"))
    return given, problems


def _places(node: yaml.Node, path: pathlib.Path, way: Path = ()) -> Iterator[tuple[Path, str]]:
    """The line of each key, and of each item of a list."""
    yield way, _mark(path, node.start_mark)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _places(value, path, (*way, key.value))
            yield (*way, key.value), _mark(path, key.start_mark)
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _places(item, path, (*way, number))


def _repeated(node: yaml.Node, path: pathlib.Path) -> Iterator[Problem]:
    """YAML would silently take the last of two equal keys."""
    if isinstance(node, yaml.MappingNode):
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for position, (key, value) in enumerate(node.value):
            if key.value in names[:position]:
                yield Problem(place=_mark(path, key.start_mark), message=f"{key.value}: stands here a second time")
            yield from _repeated(value, path)
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated(item, path)


def _mark(path: pathlib.Path, mark: Any) -> str:
    return f"{path}:{mark.line + 1}" if mark else str(path)


def _reason(error: Exception) -> str:
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else type(error).__name__
