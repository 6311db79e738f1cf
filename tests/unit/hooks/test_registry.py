"""Configuration becomes a chain as a whole, or every culprit is named and the last good chain stays."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pydantic
import pytest

from slurm_bridge import errors
from slurm_bridge.hooks import base, calls, registry
from slurm_bridge.hooks.calls import OnError
from slurm_bridge.hooks.chain import Plan
from slurm_bridge.hooks.needs import Need
from slurm_bridge.hooks.registry import HookConfig
from slurm_bridge.model.verdict import Reject
from slurm_bridge.runtime import packages
from tests.unit.hooks.builders import Around, cluster, node, translated, workload


class Point:
    """An entry point that loads what the test gives."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def load(self) -> Any:
        if isinstance(self._target, Exception):
            raise self._target
        return self._target


class Plain:
    """A hook that takes its options as they are."""

    def __init__(self, options: Any) -> None:
        self.options = options

    def admit(self, _session: base.Session, _ask: base.Ask) -> base.Admit:
        return base.Admit(note=str(self.options))


class Checked(Plain):
    """A hook with checked options."""

    class Options(pydantic.BaseModel):
        """What may be configured."""

        hours: int = 8


class Sorter:
    def __init__(self, _options: Any) -> None:
        pass

    def order(self, _workload: Any) -> base.Rank:
        return base.Rank(key=0)


class Sampler(Sorter):
    def sample(self, _session: Any, _ask: Any, nodes: Any) -> base.Sample:
        return base.Sample(nodes=nodes)


def built(around: Around, *configs: HookConfig, **targets: Any) -> Any:
    """The chain of this configuration, where these hooks are installed."""
    return registry.build(configs, around.make(), {name: Point(target) for name, target in targets.items()})


def wrong(around: Around, *configs: HookConfig, **targets: Any) -> str:
    """What is wrong with a configuration."""
    with pytest.raises(errors.BadConfiguration) as caught:
        built(around, *configs, **targets)
    return str(caught.value)


def test_the_order_of_configuration_is_the_order_of_layers(around: Around) -> None:
    """Built-in hooks go where configuration puts them."""
    configs = [HookConfig(name=name) for name in ("eligibility", "site", "policy")]
    assert [hook.name for hook in built(around, *configs, site=Plain).hooks] == ["eligibility", "site", "policy"]


def test_the_doors_stay_closed(around: Around) -> None:
    """A site that names only its own hook gets policy and eligibility all the same, before it."""
    chain = built(around, HookConfig(name="site"), site=Plain)
    assert [hook.name for hook in chain.hooks] == ["policy", "eligibility", "site"]


def test_an_installed_hook_does_nothing_until_it_is_named(around: Around) -> None:
    """Installing is not configuring."""
    assert [hook.name for hook in built(around, site=Plain).hooks] == ["policy", "eligibility"]


def test_foreign_hooks_get_a_worker_built_in_ones_do_not(around: Around) -> None:
    """Our own are trusted with the caller's thread."""
    hooks = built(around, HookConfig(name="site", budget_ms=50, on_error=OnError.SKIP), site=Plain).hooks
    assert [hook.worker is not None for hook in hooks] == [False, False, True]
    assert (hooks[2].budget_seconds, hooks[2].on_error) == (0.05, OnError.SKIP)


def test_options_reach_the_builder(around: Around) -> None:
    """As they were written, or checked by the hook's own model."""
    assert built(around, HookConfig(name="site", options={"a": 1}), site=Plain).hooks[2].hook.options == {"a": 1}
    checked = built(around, HookConfig(name="site", options={"hours": 3}), site=Checked).hooks[2].hook
    assert checked.options == Checked.Options(hours=3)


def test_a_function_can_build_a_hook(around: Around) -> None:
    """An entry point need not be a class."""
    assert built(around, HookConfig(name="site"), site=lambda _options: Plain("x")).hooks[2].hook.options == "x"


def test_needs_are_collected(around: Around) -> None:
    """Of instances, which may depend on options; unneeded kinds are not watched."""

    def needy(_options: Any) -> Plain:
        made = Plain("x")
        made.needs = (Need.PODS,)  # type: ignore[attr-defined]
        return made

    quiet = HookConfig(name="eligibility", options={"volumes": False})
    assert built(around, quiet).needs == frozenset()
    assert built(around, quiet, HookConfig(name="site"), site=needy).needs == {Need.PODS}
    assert built(around).needs == {Need.PVCS, Need.PVS, Need.STORAGECLASSES}


def test_annotations_that_a_hook_reads_are_collected(around: Around) -> None:
    """They are kept in memory however long they are; a single text is a mistake that is told."""

    def reading(_options: Any) -> Plain:
        made = Plain("x")
        made.annotations = ("example.com/plan",)  # type: ignore[attr-defined]
        return made

    def mistaken(_options: Any) -> Plain:
        made = Plain("x")
        made.annotations = "example.com/plan"  # type: ignore[attr-defined]
        return made

    assert built(around).annotations == frozenset()
    assert built(around, HookConfig(name="site"), site=reading).annotations == {"example.com/plan"}
    with pytest.raises(errors.BadConfiguration, match="has to be a collection of keys"):
        built(around, HookConfig(name="site"), site=mistaken)


class Phaseless:
    def __init__(self, _options: Any) -> None:
        pass


class Short(Phaseless):
    def filter(self, _session: Any) -> base.Denied:
        return base.Denied(nodes={})


class Late(Phaseless):
    async def admit(self, _session: Any, _ask: Any) -> base.Admit:
        return base.GO


class Attribute(Phaseless):
    admit = True


class Strange(Plain):
    needs = ("pods",)


class Failing:
    def __init__(self, _options: Any) -> None:
        raise RuntimeError("no licence")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (Phaseless, "hook site: has no phase; a hook has one or more of the methods admit, order,"),
        (Short, "hook site: filter must take 3 arguments (too many positional arguments)"),
        (Late, "hook site: admit is no plain method"),
        (Attribute, "hook site: admit is no plain method"),
        (Strange, "hook site: needs 'pods', use one of PODS, PVCS,"),
        (Failing, "hook site: cannot be built: RuntimeError: no licence (line"),
        (ImportError("no module named x"), "hook site: cannot be built: ImportError: no module named x"),
        (5, "hook site: cannot be built: TypeError"),
    ],
)
def test_unusable_hooks_are_named(target: Any, said: str, around: Around) -> None:
    """Before anything runs."""
    assert said in wrong(around, HookConfig(name="site"), site=target)


def test_checked_options_name_the_key(around: Around) -> None:
    """Hook, key, and what is wrong there."""
    said = wrong(around, HookConfig(name="site", options={"hours": "many"}), site=Checked)
    assert said.startswith("hook site: options.hours: Input should be a valid integer")


def test_an_unknown_hook(around: Around) -> None:
    """What may be meant, or what there is."""
    assert wrong(around, HookConfig(name="polcy")).endswith("did you mean policy?")
    known = ", ".join(sorted({*registry.BUILTIN, "site"}))
    assert wrong(around, HookConfig(name="zzz"), site=Plain).endswith(f"use one of {known}")


class Surprising(Plain):
    """A hook whose options raise what pydantic does not know."""

    class Options(pydantic.BaseModel):
        """What may be configured."""

        @pydantic.model_validator(mode="after")
        def _fails(self) -> Any:
            raise RuntimeError("no licence")


def test_options_are_judged_without_building_the_hook() -> None:
    """What else its code raises is told when it is built."""
    points = {"site": Point(Checked), "strange": Point(Surprising), "gone": Point(ImportError("no module"))}
    found = registry.refused("site", {"hours": "many"}, points)
    assert found is not None
    assert (found.model, [row["loc"] for row in found.mistakes]) == (Checked.Options, [("hours",)])
    assert [registry.refused(name, {}, points) for name in points] == [None] * 3


@pytest.mark.parametrize(("kind", "phase"), [(Sorter, "order"), (Sampler, "sample")])
def test_phases_with_one_answer(kind: type, phase: str, around: Around) -> None:
    """Two hooks for it are an error that names both."""
    said = wrong(around, HookConfig(name="one"), HookConfig(name="two"), one=kind, two=kind)
    assert f"hooks one and two: only one hook can have the phase {phase}" in said


def test_a_hook_named_twice(around: Around) -> None:
    """Nobody could say which of them spoke."""
    assert "hook site: is configured twice" in wrong(around, *[HookConfig(name="site")] * 2, site=Plain)


def test_everything_wrong_is_told_at_once(around: Around) -> None:
    """One line for each."""
    said = wrong(around, HookConfig(name="a"), HookConfig(name="b"), HookConfig(name="policy", options={"x": 1}), a=5)
    assert [line.split(":")[0] for line in said.splitlines()] == ["hook a", "hook b", "hook policy"]


def test_entry_points_of_installed_packages() -> None:
    """Read from what is installed, under the documented group."""
    assert all(point.group == "slurm_bridge.hooks" for point in packages.offered(registry.GROUP).values())


def test_threads_left_behind_are_counted_over_reloads(around: Around, release: threading.Event) -> None:
    """They hang on, although the chain that made them is gone."""
    surroundings = around.make()
    config = HookConfig(name="site", budget_ms=1, on_error=OnError.SKIP)
    chain = registry.build([config], surroundings, {"site": Point(_hanging(release))})
    chain.plan(workload(), translated(), cluster([node("a")]), now=0.0)
    following = registry.build([], surroundings, {})
    chain.close()
    assert (chain.abandoned, following.abandoned) == (1, 1)


def test_a_replaced_chain_still_serves_the_pass_that_has_it(around: Around) -> None:
    """Closing lets idle workers end; whoever asks once more gets an answer."""
    chain = built(around, HookConfig(name="site", budget_ms=60_000), site=Plain)
    chain.close()
    assert isinstance(chain.plan(workload(), translated(), cluster([node("a")]), now=0.0), Plan)
    chain.close()


def test_what_the_program_knows_need_not_be_configured(around: Around) -> None:
    """Also for hooks that configuration does not name; what it says of them wins."""
    told = {"eligibility": {"scheduler_names": ["ours"], "volumes": False}}
    silent = registry.build([], around.make(), {}, told)
    loud = registry.build([HookConfig(name="eligibility", options={"volumes": True})], around.make(), {}, told)
    refusal = silent.plan(workload(), translated(), cluster([node("a")]), now=0.0)
    assert isinstance(refusal, Reject)
    assert refusal.reason == "NotOurs"
    assert [bool(silent.needs), bool(loud.needs)] == [False, True]


def _hanging(release: threading.Event) -> Callable[[Any], Any]:
    class Hanging(Plain):
        def admit(self, _session: base.Session, _ask: base.Ask) -> base.Admit:
            release.wait()
            return base.GO

    return Hanging


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Lets hanging hooks end with the test."""
    event = threading.Event()
    yield event
    event.set()


def test_a_foreign_hook_takes_part(around: Around) -> None:
    """End to end: configured, called in its worker, seen in the explanation."""
    chain = built(around, HookConfig(name="site", options={"x": 1}, budget_ms=60_000), site=Plain)
    chain.see(dict.fromkeys(chain.needs, _Empty()))
    plan = chain.plan(workload(), translated(), cluster([node("a")]), now=0.0)
    assert isinstance(plan, Plan)
    assert [(line.hook, line.reason) for line in plan.lines if line.reason] == [("site", "{'x': 1}")]
    chain.close()
    assert isinstance(chain.hooks[2], calls.Hook)


class _Empty:
    def get(self, _namespace: str, _name: str) -> None:
        return None

    def __len__(self) -> int:
        return 0
