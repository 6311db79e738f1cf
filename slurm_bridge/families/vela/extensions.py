"""What packages add to the hook by entry points, found by name and checked before it is used.

    group                         what an entry point makes      of what                     it has
    slurm_bridge.vela_strategies  a strategy                     dice                        sample(total, count)
    slurm_bridge.vela_plugins     a filter plugin                its `Options`, or nothing   fits(scene, rows), rejects
                                  a score plugin                 likewise                    score(scene, rows)
    slurm_bridge.vela_sorts       a sort plugin                  nothing                     key(priority, created)
    slurm_bridge.vela_samplers    a sampling plugin              the hook's options, and     sample(request), close(),
                                                                 its services                share, near

Only what configuration names is loaded: a package that is broken harms no other.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import pydantic

from slurm_bridge.runtime import packages

STRATEGIES = "slurm_bridge.vela_strategies"
PLUGINS = "slurm_bridge.vela_plugins"
SORTS = "slurm_bridge.vela_sorts"
SAMPLERS = "slurm_bridge.vela_samplers"

T = TypeVar("T")


def names(group: str, builtin: Iterable[str]) -> tuple[str, ...]:
    """All that can be configured: what ships, then what is installed beside it."""
    return (*builtin, *sorted(packages.offered(group).keys() - set(builtin)))


def find(
    kind: str,
    group: str,
    name: str,
    builtin: Mapping[str, T],
    offered: Mapping[str, Callable[[], T]] | None = None,
) -> T:
    """What builds the one of this name; ValueError names it, and what there is."""
    if name in builtin:
        return builtin[name]
    beside = {one: found.load for one, found in packages.offered(group).items()} if offered is None else offered
    if name not in beside:
        known = ", ".join(sorted({*builtin, *beside}))
        raise ValueError(
            f"{kind} {name}: neither built in nor installed (entry point group {group}); use one of {known}"
        )
    try:
        return beside[name]()
    except Exception as error:  # foreign code: whatever its import raises makes only it unusable
        raise ValueError(f"{kind} {name}: cannot be loaded: {type(error).__name__}: {error}") from error


def build(kind: str, name: str, make: Callable[[], Any], has: Mapping[str, int | None]) -> Any:
    """What it makes; ValueError names it. `has`: its methods with their numbers of arguments, None: an attribute."""
    try:
        made = make()
    except pydantic.ValidationError:
        raise
    except Exception as error:  # foreign code, likewise
        raise ValueError(f"{kind} {name}: cannot be built: {type(error).__name__}: {error}") from error
    for what, arguments in has.items():
        found = getattr(made, what, None)
        if arguments is None:
            if found is None:
                raise ValueError(f"{kind} {name}: has no attribute {what}")
            continue
        if not callable(found):
            raise ValueError(f"{kind} {name}: has no method {what}")  # noqa: TRY004 - one kind of error for configurations
        try:
            inspect.signature(found).bind(*range(arguments))
        except TypeError as error:
            raise ValueError(f"{kind} {name}: {what} must take {arguments} arguments ({error})") from error
    return made
