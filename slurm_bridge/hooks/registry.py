"""From configuration to a chain: what is wrong is told all at once, each with the name of its culprit.

An installed hook does nothing until configuration names it. The order of configuration is the order of layers.
"""

import dataclasses
import difflib
import enum
import inspect
import pathlib
import pkgutil
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pydantic

from slurm_bridge import errors
from slurm_bridge.hooks import lifecycle
from slurm_bridge.hooks.base import HookPhase
from slurm_bridge.hooks.calls import SHAPES, Hook, OnError, Worker
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.hooks.needs import Need
from slurm_bridge.hooks.services import ChainServices, HookServices
from slurm_bridge.model.features import Feature
from slurm_bridge.runtime import packages

GROUP = "slurm_bridge.hooks"

Word = TypeVar("Word", bound=enum.Enum)

#: Makes a hook from its options: a class (or function) of one argument. With an attribute `Options` (a pydantic
#: model) it gets these, checked; without, the mapping as it was written. One that ships with the bridge and says
#: `services = True` is given a second argument, what it needs to work beside the passes.
Builder = Callable[..., object]

#: The hooks that ship with the bridge, and where each is: imported when a chain with it is built, for families stand
#: above the chain. Policy first: what a user may not ask for needs no further look.
BUILTIN: Mapping[str, str] = {
    "policy": "slurm_bridge.families.policy:Policy",
    "eligibility": "slurm_bridge.families.eligibility:Eligibility",
    "device-claims": "slurm_bridge.families.device_claims.hook:DeviceClaims",
    "vela": "slurm_bridge.families.vela.hook:Vela",
    "kube-scheduler": "slurm_bridge.families.kube_scheduler.profiles:Profiles",
    "preemption": "slurm_bridge.families.kube_scheduler.preemption.hook:Preemption",
    "kai": "slurm_bridge.families.kai.hook:Kai",
    "yunikorn": "slurm_bridge.families.yunikorn.partitions:builder",
}

#: Part of every chain, with their own defaults and before all others where configuration does not name them: a site
#: that adds a hook must not open its doors by leaving these out.
ALWAYS = ("policy", "eligibility")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HookConfig:
    """One hook as it is configured."""

    name: str
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    on_error: OnError = OnError.HOLD
    budget_ms: int = 200


class Unusable(Exception):
    """A hook that cannot be part of a chain; the message names the hook, and the key where it is one."""


#: Options that the program knows already, by hook; what configuration says of them wins.
Told = Mapping[str, Mapping[str, Any]]


def build(
    configured: Iterable[HookConfig],
    around: ChainServices,
    installed: Mapping[str, Any] | None = None,
    told: Told | None = None,
) -> Chain:
    """The chain; raises BadConfiguration with everything that is wrong."""
    offered = packages.offered(GROUP) if installed is None else installed
    configs = complete(configured, told or {})
    names = [config.name for config in configs]
    problems = [f"hook {name}: is configured twice" for place, name in enumerate(names) if name in names[:place]]
    hooks: list[Hook] = []
    for config in configs:
        try:
            hooks.append(_hook(config, offered, around))
        except Unusable as unusable:
            problems.append(str(unusable))
    problems += _crowded(hooks)
    if problems:
        raise errors.BadConfiguration("\n".join(problems))
    return Chain(hooks, around)


def unknown(name: str, installed: Mapping[str, Any]) -> str | None:
    """Why there is no such hook, None where there is one."""
    known = sorted({*BUILTIN, *installed})
    if name in known:
        return None
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(known)}"
    return f"not built in, and no installed package has this entry point in {GROUP}; {hint}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RefusedOptions:
    """Options of a hook with mistakes, and the model that says so."""

    model: type[pydantic.BaseModel]
    mistakes: Sequence[Any]


def refused(name: str, options: Mapping[str, Any], installed: Mapping[str, Any]) -> RefusedOptions | None:
    """The mistakes in the options of a known hook, which is not built; what else is wrong with it `build` says."""
    model: Any = None
    try:
        model = getattr(shipped(name) if name in BUILTIN else installed[name].load(), "Options", None)
        if model is not None:
            model.model_validate(dict(options))
    except pydantic.ValidationError as error:
        return RefusedOptions(model=model, mistakes=error.errors(include_url=False))
    except Exception:  # noqa: BLE001 - foreign code: building the hook raises it again, and names the hook
        return None
    return None


def shipped(name: str) -> Builder:
    """What makes a hook that ships with the bridge."""
    builder: Builder = pkgutil.resolve_name(BUILTIN[name])
    return builder


def complete(configured: Iterable[HookConfig], told: Told) -> tuple[HookConfig, ...]:
    """With the hooks that are always part of a chain, and the options that several of them share."""
    configs = tuple(configured)
    named = {config.name for config in configs}
    every = (*(HookConfig(name=name) for name in ALWAYS if name not in named), *configs)
    return tuple(
        dataclasses.replace(config, options={**told.get(config.name, {}), **config.options}) for config in every
    )


def _hook(config: HookConfig, offered: Mapping[str, Any], around: ChainServices) -> Hook:
    foreign = config.name not in BUILTIN
    if (why := unknown(config.name, offered)) is not None:
        raise Unusable(f"hook {config.name}: {why}")
    try:
        if foreign:
            hook = _made(offered[config.name].load(), config.options)
        else:
            builder = shipped(config.name)
            behind = (around.services_of(config.name),) if getattr(builder, "services", False) else ()
            hook = _made(builder, config.options, *behind)
    except pydantic.ValidationError as error:
        places = [(".".join(["options", *map(str, row["loc"])]), row["msg"]) for row in error.errors()]
        wrong = "\n".join(f"hook {config.name}: {place}: {message}" for place, message in places)
        raise Unusable(wrong) from error
    except Exception as error:  # foreign code: whatever its import or constructor raises makes only it unusable
        cause = f"{type(error).__name__}: {error}{_line(error)}"
        raise Unusable(f"hook {config.name}: cannot be built: {cause}") from error
    _check(config.name, hook)
    foreign = foreign or bool(getattr(hook, "foreign", False))
    for problem in lifecycle.problems(hook, foreign=foreign):
        raise Unusable(f"hook {config.name}: {problem}")
    return Hook(
        name=config.name,
        hook=hook,
        on_error=config.on_error,
        budget_seconds=config.budget_ms / 1000,
        needs=_declared(config.name, hook, "needs", Need),
        honours=_declared(config.name, hook, "honours", Feature),
        annotations=_annotations(config.name, hook),
        worker=Worker(config.name, around.left) if foreign else None,
    )


def _line(error: Exception) -> str:
    """Where foreign code raised it: the words of some errors are a key alone."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return "".join(f" (line {one.lineno} of {pathlib.PurePath(one.filename).name})" for one in last)


def _made(builder: Builder, options: Mapping[str, Any], *behind: HookServices) -> object:
    model = getattr(builder, "Options", None)
    return builder(options if model is None else model.model_validate(dict(options)), *behind)


def _check(name: str, hook: object) -> None:
    """Some phase, and each phase's method with the arguments that it will be called with."""
    methods = {phase: method for phase in HookPhase if (method := getattr(hook, phase.value, None)) is not None}
    if not methods:
        phases = ", ".join(phase.value for phase in HookPhase)
        raise Unusable(f"hook {name}: has no phase; a hook has one or more of the methods {phases}")
    for phase, method in methods.items():
        if not callable(method) or inspect.iscoroutinefunction(method):
            raise Unusable(f"hook {name}: {phase.value} is no plain method")
        wanted = SHAPES[phase].arguments
        try:
            inspect.signature(method).bind(*range(wanted))
        except TypeError as error:
            raise Unusable(f"hook {name}: {phase.value} must take {wanted} arguments ({error})") from error


def _declared(name: str, hook: object, attribute: str, of: type[Word]) -> frozenset[Word]:
    """What a hook says of itself, in words of a table."""
    said = frozenset(getattr(hook, attribute, ()))
    strange = [repr(one) for one in said if not isinstance(one, of)]
    if strange:
        allowed = ", ".join(one.name for one in of)
        where = f"{of.__module__.removeprefix('slurm_bridge.')}.{of.__name__}"
        raise Unusable(f"hook {name}: {attribute} {', '.join(sorted(strange))}, use one of {allowed} of {where}")
    return said


def _annotations(name: str, hook: object) -> frozenset[str]:
    keys = getattr(hook, "annotations", ())
    if isinstance(keys, str) or not all(isinstance(key, str) for key in keys):
        raise Unusable(f"hook {name}: annotations has to be a collection of keys, such as ('example.com/zone',)")
    return frozenset(keys)


def _crowded(hooks: Iterable[Hook]) -> Iterator[str]:
    """Two hooks for a phase that has one answer."""
    chosen = list(hooks)
    for phase, shape in SHAPES.items():
        names = [hook.name for hook in chosen if phase in hook.phases]
        if shape.alone and len(names) > 1:
            yield f"hooks {' and '.join(names)}: only one hook can have the phase {phase.value}"
