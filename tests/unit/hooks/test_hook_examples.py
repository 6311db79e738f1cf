"""The configurations in examples/hooks are accepted as they are, and show every family."""

import pathlib
import re

import pytest

from slurm_bridge.daemon import configuration
from slurm_bridge.hooks import registry
from slurm_bridge.hooks.base import HookPhase
from slurm_bridge.settings import loader
from tests.unit.hooks.builders import Around

PROJECT = pathlib.Path(__file__).resolve().parents[3]
FILES = sorted((PROJECT / "examples" / "hooks").glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_example_is_accepted_as_it_is(path: pathlib.Path, around: Around) -> None:
    """By the loader of the daemon's settings, and by each of its hooks."""
    settings = loader.load(path, {})
    chain = configuration.changeable(settings, around.make()).chain
    chain.close()
    assert {hook.name for hook in chain.hooks} == {hook.name for hook in settings.hooks}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_example_is_explained(path: pathlib.Path) -> None:
    """It begins with what it shows, and is listed with it."""
    assert path.read_text(encoding="utf-8").startswith("# ")
    assert f"[{path.name}]({path.name})" in (path.parent / "README.md").read_text(encoding="utf-8")


def test_the_phases_of_all_hooks_are_told(around: Around) -> None:
    """In the order of the phases, each with the hooks that have it in theirs; the site's own is not installed."""
    path = PROJECT / "examples" / "hooks" / "all-together.yaml"
    chain = configuration.changeable(loader.load(path, {}), around.make()).chain
    chain.close()
    having = ((phase, [one.name for one in chain._layers.by_phase[phase]]) for phase in HookPhase)
    told = re.findall(rf"^#   ({'|'.join(HookPhase)}) +((?:[a-z-]+, )*[a-z-]+)(?: |$)", path.read_text(), re.MULTILINE)
    shown = [(phase, [one for one in names.split(", ") if one in registry.BUILTIN]) for phase, names in told]
    assert shown == [(phase.value, names) for phase, names in having if names]


def test_every_family_is_shown() -> None:
    """Alone, and together with all others in one chain."""
    shown = {path.name: {hook.name for hook in loader.load(path, {}).hooks} for path in FILES}
    families = registry.BUILTIN.keys() - set(registry.ALWAYS)
    assert shown["all-together.yaml"] >= families
    assert set().union(*(names for name, names in shown.items() if name != "all-together.yaml")) >= families
