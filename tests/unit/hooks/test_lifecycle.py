"""A hook has a capability as a whole or not at all, which is found out when it is registered."""

import dataclasses
from typing import Any

import pytest

from slurm_bridge.hooks import calls, lifecycle, registry
from slurm_bridge.hooks.evictions import Evicts
from slurm_bridge.hooks.lifecycle import PROTOCOLS, Capabilities
from slurm_bridge.hooks.registry import HookConfig
from tests.unit.hooks.builders import Around
from tests.unit.hooks.test_registry import Plain, wrong


class Forgetful:
    """Remembers which workloads it was told to forget."""

    def __init__(self) -> None:
        self.forgotten: list[Any] = []

    def forget(self, workload: Any) -> None:
        self.forgotten.append(workload)

    def close(self) -> None:
        self.forgotten.clear()


class Half:
    def recalls(self) -> dict[str, str]:
        return {}

    def gone(self, workload: Any) -> None: ...


class Counting:
    def count(self, what: str, amount: int = 1) -> None: ...


class Deaf:
    def forget(self) -> None: ...


class Blunt:
    def restored(self, held: Any, views: Any) -> None: ...


class Slow:
    async def ended(self, workload: Any) -> None: ...


class Attribute:
    picture = "queues"


def test_each_capability_has_its_protocol() -> None:
    """The table and the record have the same fields."""
    assert list(PROTOCOLS) == [field.name for field in dataclasses.fields(Capabilities)]


def test_a_hook_is_found_under_what_it_can() -> None:
    """And under nothing else."""
    hook = Forgetful()
    assert Capabilities.of(hook, foreign=False) == Capabilities(closes=hook, forgets=hook)


def test_a_foreign_hook_can_only_be_closed() -> None:
    """Whatever methods a site's hook happens to have."""
    hook = Forgetful()
    assert Capabilities.of(hook, foreign=True) == Capabilities(closes=hook)


def test_a_hook_is_told_what_it_has_a_method_for() -> None:
    """A hook without the method is told nothing, and that is no error."""
    hook = Forgetful()
    for one in (calls.Hook(name="a", hook=hook), calls.Hook(name="b", hook=Counting())):
        one.forget("w")  # type: ignore[arg-type]
        one.ended("w")  # type: ignore[arg-type]
        one.restored((), {}, fresh=True)
    assert hook.forgotten == ["w"]


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        (Half(), "has only a part of Evicts: evict_seconds, recalled, rooms, spared, count is missing"),
        (Deaf(), "forget cannot be called as forget(workload) (too many positional arguments)"),
        (
            Blunt(),
            "restored cannot be called as restored(held, views, *, fresh) (got an unexpected keyword argument 'f",
        ),
        (Slow(), "ended is no plain method"),
        (Attribute(), "picture is no plain method"),
    ],
)
def test_half_a_capability_is_a_problem(hook: object, said: str) -> None:
    """It is named with what is missing, or with how it would be called."""
    assert [one[: len(said)] for one in lifecycle.problems(hook, foreign=False)] == [said]
    assert not list(lifecycle.problems(hook, foreign=True))


def test_a_member_of_several_protocols_is_no_capability() -> None:
    """A method that counts is not half of an eviction."""
    assert not list(lifecycle.problems(Counting(), foreign=False))
    assert hasattr(Evicts, "count")


class Unclosable(Plain):
    def close(self, reason: str) -> None: ...


def test_registration_names_the_hook(around: Around) -> None:
    """A site's hook that cannot be closed is refused with its name."""
    said = wrong(around, HookConfig(name="site"), site=Unclosable)
    assert said == "hook site: close cannot be called as close() (missing a required argument: 'reason')"


def test_all_that_ships_is_sound(around: Around) -> None:
    """Every hook of the bridge has its capabilities as a whole."""
    chain = registry.build([HookConfig(name="preemption"), HookConfig(name="vela")], around.make(threads=False), {})
    assert not [said for one in chain.hooks for said in lifecycle.problems(one.hook, foreign=False)]
    chain.close()
