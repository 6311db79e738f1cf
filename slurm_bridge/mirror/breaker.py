"""When many placeholders vanish at once, the likelier story is that Slurm lost its memory: then no pod is ended for it.

Pure arithmetic; the limits are configuration, and raising them is how an operator says that it is true after all.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """Open while at least `minimum` bound workloads, and at least `fraction` of all bound ones, have lost their job."""

    minimum: int = 10
    fraction: float = 0.5

    def open(self, vanished: int, bound: int) -> bool:
        """Whether so many of so many are too many to be believed."""
        return vanished >= self.minimum and vanished >= self.fraction * bound
