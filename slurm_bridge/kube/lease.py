"""How a Lease is written: whole, with the resource version that was read, so that the faster writer wins."""

import msgspec

from slurm_bridge.model.lease import Lease
from slurm_bridge.model.meta import Manifest


def manifest(lease: Lease) -> Manifest:
    """The Lease as JSON values; without a resource version it is one to create."""
    fields: Manifest = msgspec.to_builtins(lease)
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **fields}
