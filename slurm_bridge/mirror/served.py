"""Of several daemons, the namespaces that this one serves: questions that the mirror and the scheduler ask."""

import dataclasses
from collections.abc import Callable

#: Whether this daemon serves a namespace.
Serves = Callable[[str], bool]


def everywhere(_namespace: str) -> bool:
    """There are no parts: all namespaces are served."""
    return True


def _unheard(_namespace: str) -> None:
    """Nothing has to be known of namespaces."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServedNamespaces:
    """Those whose pods and jobs are followed, and those whose workloads are looked at.

    `met` hears of all others that have living jobs of ours.
    """

    serves: Serves = everywhere
    schedules: Serves = everywhere
    met: Callable[[str], None] = _unheard


#: Of a daemon without parts.
ALL_NAMESPACES = ServedNamespaces()
