"""What a workload keeps of the cluster: for hooks that count it, and know nothing yet when the program starts."""

import dataclasses

from slurm_bridge.hooks.base import Ask


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A workload with a job in Slurm, or with pods on nodes. `started`: none of its pods waits for a node any more."""

    ask: Ask
    started: bool

    @property
    def uid(self) -> str:
        """Of its root."""
        return self.ask.workload.root.uid
