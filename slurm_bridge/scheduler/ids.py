"""Job ids that the bridge chooses: the same attempt of the same workload has the same id in every process.

slurmctld refuses an id that is taken, so a second submit of one attempt cannot create a second job. The range lies far
above Slurm's own counter, so that a stranger is never given one of ours.
"""

import dataclasses
import hashlib

from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class IdRange:
    """The first and the last id that the bridge may choose."""

    first: int
    last: int

    def choose(self, owner: Owner, *, aside: bool = False) -> JobId:
        """The id of this attempt.

        `aside`: a user can work out the id after one that is taken. The members of a group are not known before.
        """
        parts = (
            owner.cluster,
            owner.kind,
            owner.uid,
            str(owner.attempt),
            *((owner.members,) if aside and owner.members else ()),
        )
        text = "\0".join(parts)
        number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
        return JobId(self.first + number % (self.last - self.first + 1))
