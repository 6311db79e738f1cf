"""Reservations: nodes that Slurm keeps for some users."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """One reservation; the nodes by Slurm's names. `end` is Slurm's own clock in Unix seconds."""

    name: str
    nodes: tuple[str, ...]
    users: tuple[str, ...] = ()
    end: int = 0
