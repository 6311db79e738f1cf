"""Trees of queues, and what is done to them, for several tests."""

import dataclasses
from collections.abc import Iterable, Mapping

from hypothesis import strategies as st

from slurm_bridge.families.yunikorn.queues import tree
from slurm_bridge.families.yunikorn.queues.amounts import Amount
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings, SortPolicy
from slurm_bridge.families.yunikorn.queues.tree import Queue

TYPES = ("vcore", "memory", "gpu")

#: Amounts as they are computed with, and amounts of something that exists.
amounts_of_any_sign = st.dictionaries(st.sampled_from(TYPES), st.integers(-20, 20))
amounts_of_things = st.dictionaries(st.sampled_from(TYPES), st.integers(0, 20))
known = st.none() | amounts_of_any_sign
limits = st.none() | amounts_of_things


def limited(**maximum: int) -> QueueSettings:
    """Only a maximum."""
    return QueueSettings(max=maximum)


def root_of(*paths: str, settings: Mapping[str, QueueSettings] | None = None) -> Queue:
    """A tree with leaves of these paths below the root; settings by full path."""
    known_settings = settings or {}
    root = Queue("root", settings=known_settings.get("root"))
    for path in paths:
        here = root
        *parents, last = path.split(".")
        for name in parents:
            path_below = f"{here.path}.{name}"
            here = here.children.get(name) or Queue(name, here, settings=known_settings.get(path_below))
        Queue(last, here, leaf=True, settings=known_settings.get(f"{here.path}.{last}"))
    return root


def at(root: Queue, path: str) -> Queue:
    """The queue of this path, which is there."""
    found = tree.find(root, path)
    assert found is not None
    return found


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class App:
    """An application that can be changed."""

    name: str = "app"
    allocated: Amount = dataclasses.field(default_factory=dict)
    pending: Amount = dataclasses.field(default_factory=lambda: {"vcore": 1})
    priority: int = 0
    submitted: float = 0


apps = st.builds(
    App,
    allocated=amounts_of_things,
    pending=st.just({"vcore": 1}) | amounts_of_any_sign,
    priority=st.integers(0, 2),
    submitted=st.integers(0, 2),
)
policies = st.sampled_from(list(SortPolicy))


def names(of: Iterable[Queue] | Iterable[App]) -> list[str]:
    """What they are called."""
    return [one.name for one in of]
