"""How often Slurm is asked what."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """How often what is asked. `many` is the number from which one full list is cheaper than single questions."""

    fastest: float = 0.2
    slowest: float = 5.0
    first_details_per_second: float = 10.0
    details_per_second: float = 1.0
    patience: float = 2.0
    full_states_above: int = 4000
    many: int = 50
    crowd: int = 300
    sweep: float = 60.0
    maybe: float = 60.0
    #: Slurm remembers ended jobs for longer than this (MinJobAge).
    remembered: float = 60.0
