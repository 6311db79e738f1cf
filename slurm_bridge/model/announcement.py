"""How the object behind a gang says in its status that all members have nodes."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """`says` tells whether an object says it already; `status` makes the patch from object, message and wall time."""

    says: Callable[[Any], bool]
    status: Callable[[Any, str, float], Manifest]


#: The kinds of objects behind workloads, each with its announcement, None where its status is not for us to write.
Announcements = Mapping[Kind[Any], Announcement | None]
