"""What differs between the API versions of slurmrestd: not the fields that we send, but what is served and told."""

import dataclasses
from collections.abc import Mapping
from typing import Final


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One API version. The rest of the adapter asks for what it can do, and never compares version numbers.

    `resources`: `resources/{id}` is served; elsewhere an allocation is read from the full job, which is larger.
    `conf`: slurm.conf is told. `external`: of a node, whether it is external.
    """

    name: str
    resources: bool = True
    conf: bool = True
    external: bool = True

    @property
    def prefix(self) -> str:
        """What every path starts with."""
        return f"/slurm/{self.name}"


#: The newest first: it tells most.
WIRES: Final[Mapping[str, Wire]] = {
    wire.name: wire
    for wire in (
        # Slurm 26.05: adds slurm.conf, the state of a controller to ping, and tells an implied node maximum from a
        # wanted one.
        Wire(name="v0.0.45"),
        # Slurm 25.11: adds SLUIDs, `resources/{id}`, and the word EXTERNAL among the states of a node.
        Wire(name="v0.0.44", conf=False),
        # Slurm 25.05, the first with external jobs.
        Wire(name="v0.0.43", resources=False, conf=False, external=False),
    )
}

#: Slurm 24.11 and older, without external jobs: never spoken, only told apart from a wrong address.
OUTDATED: Final = tuple(Wire(name=name, resources=False, conf=False) for name in ("v0.0.42", "v0.0.41", "v0.0.40"))
