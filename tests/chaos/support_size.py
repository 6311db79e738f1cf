"""How much is broken: everything, or a short form for every change of the code."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Size:
    """Numbers of one run; the seed makes its dice fall the same way again."""

    seed: int
    kills: int
    pods: int
    pods_per_outage: int
    groups: int
    short: bool = False
    #: How many lives end at work rather than while they begin, and when: the first second of each has it all.
    at_work: float = 0.6
    work_seconds: tuple[float, float] = (0.02, 0.8)
    start_seconds: tuple[float, float] = (0.3, 3.0)


FULL = Size(seed=0, kills=20, pods=500, pods_per_outage=300, groups=100)
SHORT = Size(seed=0, kills=5, pods=150, pods_per_outage=60, groups=25, short=True)
