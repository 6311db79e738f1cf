"""What is counted, by the word under which it is: the table that documentation shows."""

from collections.abc import Mapping
from typing import Final

#: The name of the hook, under which all of it is counted.
HOOK: Final = "vela"

WORDS: Final[Mapping[str, str]] = {
    "sampled": "samples that were asked for",
    "agents-failed": "agents that were asked and did not answer, or not in time",
    "agents-unavailable": "samples for which no agent answered",
    "unschedulable": "samples without a node of use",
    "found-by-last-look": "samples without a node of use, for which a look at all nodes found one",
    "parked": "workloads whose retries were used up",
    "dropped-unknown": "nodes that an agent named and this cluster does not have",
    "dropped-not-in-slurm": "nodes that an agent named and Slurm does not know",
    "dropped-other-node": "nodes that an agent named and that have another uid here",
    "dropped-twice": "nodes that were named more than once for one pod",
    "bound-to-candidate": "allocations on the nodes of one candidate",
    "commit-retries": "candidates that were tried in vain before those",
    "bound-elsewhere": "allocations on other nodes than those of one candidate",
    "conflicts": "allocations that the conflict check denied",
}
