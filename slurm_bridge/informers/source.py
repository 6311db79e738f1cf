"""Where the pods that are to be scheduled come from."""

from collections.abc import Callable
from typing import Protocol

from slurm_bridge.model.pod import Pod

#: What a pod was and what it is; None where it was not, or is no more.
Changed = Callable[[Pod | None, Pod | None], None]


class PodSource(Protocol):
    """Tells of each pod of ours that there is, and of every change of it. The Kubernetes watch is one.

    A source that lets pods in on another way still tells of them only as the API server has them: what it accepted is
    nothing before the watch has shown it.
    """

    def subscribe(self, changed: Changed) -> None:
        """Before anything starts; told from any thread."""

    def problem(self) -> str:
        """Why it cannot tell of all pods now, "" when it can."""
