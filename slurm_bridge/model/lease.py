"""A Kubernetes Lease: which replica leads, and since when. A hint, never a fence."""

from slurm_bridge.model.meta import Object, Record


class LeaseSpec(Record, frozen=True, kw_only=True):
    """The claim of one holder."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Object, frozen=True, kw_only=True):
    """One lease."""

    spec: LeaseSpec = LeaseSpec()
