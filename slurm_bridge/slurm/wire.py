"""What differs between the API versions of slurmrestd: not the fields that we send, but what is served and told."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One API version.

    `resources`: `resources/{id}` is served; elsewhere an allocation is read from the full job, which is larger.
    `conf`: slurm.conf is told.
    """

    name: str
    resources: bool = True
    conf: bool = True

    @property
    def prefix(self) -> str:
        """What every path starts with."""
        return f"/slurm/{self.name}"
