"""Which machine is in which rack and hall, which pods have to be together in one, and whether they are.

I11  all pods of a group that a job has put on nodes are in one domain of the level that the group requires
"""

from collections.abc import Iterable, Mapping

from tests.simulation import observed
from tests.simulation.broken_promise import Broken

#: By Slurm's names, and by Kubernetes'.
MACHINES = 12
CONF = """\
SwitchName=r1 Nodes=n[01-04]
SwitchName=r2 Nodes=n[05-08]
SwitchName=r3 Nodes=n[09-11],s12
SwitchName=east Switches=r[1-2]
SwitchName=west Switches=r3
"""
_RACKS = {f"n{number:02}": f"r{(number + 3) // 4}" for number in range(1, MACHINES + 1)}
DOMAINS: Mapping[str, Mapping[str, str]] = {
    "rack": _RACKS,
    "hall": {node: "west" if rack == "r3" else "east" for node, rack in _RACKS.items()},
}


class Racks:
    """Knows what each troupe requires."""

    def __init__(self) -> None:
        self._required: dict[str, str] = {}
        #: How many groups of several pods were held to it.
        self.checked = 0

    def require(self, troupe: str, level: str) -> None:
        """All pods whose names begin like this, as far as they are of one group."""
        self._required[troupe] = level

    def check(self, pod: observed.Pod, mates: Iterable[observed.Pod], by: str) -> None:
        """It was bound."""
        level = self._required.get(pod.key[1].partition("-")[0], "")
        there = {one.node for one in mates if one.run is pod.run and one.node and not one.over}
        domains = {DOMAINS[level][node] for node in there} if level else set()
        self.checked += bool(level and len(there) > 1)
        if len(domains) > 1:
            raise Broken(
                f"I11: {by} put {pod.group} on {sorted(there)}, and it requires one {level}: {sorted(domains)}"
            )
