"""Orders of nodes that packages add by entry points; one that the option `node_sorts` does not name does nothing.

An entry point names a function `(capacity, allocated) -> score`: what a node has, and what of it is in use, by resource
as queues count it (`vcore` in thousandths, `memory` in bytes). Nodes with a low score are preferred.
"""

import inspect
from collections.abc import Iterable, Mapping

from slurm_bridge.errors import BadConfiguration
from slurm_bridge.families.yunikorn.queues.config.documents import NodeOrder
from slurm_bridge.families.yunikorn.queues.orders import NodePolicy
from slurm_bridge.runtime import packages

GROUP = "slurm_bridge.yunikorn_node_sorts"


def names(registered: Iterable[str]) -> tuple[str, ...]:
    """All that an application or a partition may name."""
    return (*map(str, NodePolicy), *sorted(registered))


def installed() -> Mapping[str, NodeOrder]:
    """The names that could be configured; nothing is loaded."""
    return dict.fromkeys(packages.offered(GROUP), _not_loaded)


def load(wanted: Iterable[str]) -> Mapping[str, NodeOrder]:
    """The functions by name. Raises BadConfiguration with what is wrong."""
    return {name: _load(name) for name in wanted}


def _load(name: str) -> NodeOrder:
    where, offered = f"node_sorts: {name}", packages.offered(GROUP)
    if name in tuple(NodePolicy):
        raise BadConfiguration(f"{where}: is built in: remove it from node_sorts")
    if name not in offered:
        there = ", ".join(sorted(offered)) or "none"
        raise BadConfiguration(f"{where}: is not installed (entry point group {GROUP}); installed are {there}")
    try:
        found = offered[name].load()
    except Exception as error:  # foreign code: whatever its import raises makes only it unusable
        raise BadConfiguration(f"{where}: cannot be loaded: {type(error).__name__}: {error}") from error
    try:
        inspect.signature(found).bind({}, {})
    except (TypeError, ValueError) as error:
        raise BadConfiguration(
            f"{where}: cannot be called with two arguments, (capacity, allocated) ({error})"
        ) from error
    order: NodeOrder = found
    return order


def _not_loaded(_capacity: Mapping[str, int], _allocated: Mapping[str, int]) -> float:
    raise NotImplementedError
