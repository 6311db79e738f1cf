"""The API versions that the adapter speaks, one module each.

Belongs here: what a version can do. Does not belong here: anything that two versions share, and any comparison of
version numbers: the rest of the adapter asks for capabilities.
"""

from collections.abc import Mapping

from slurm_bridge.slurm.versions import v0_0_43, v0_0_44, v0_0_45
from slurm_bridge.slurm.wire import Wire

#: The newest first: it tells most.
WIRES: Mapping[str, Wire] = {module.WIRE.name: module.WIRE for module in (v0_0_45, v0_0_44, v0_0_43)}
