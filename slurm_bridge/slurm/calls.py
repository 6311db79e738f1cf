"""The requests that the adapter makes: one function for each, from ids and JSON to method, path and lane."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from slurm_bridge.model.names import JobId
from slurm_bridge.slurm.transport import Call, Lane

#: 6 000 ids in one URL work, 8 000 are refused as an "insane message length".
MOST_IDS = 2000

#: Beyond this one full list of states is cheaper than several of chosen ids.
FULL_LIST_FROM = 4000

PING = Call(method="GET", path="/ping/", lane=Lane.READ)
NODES = Call(method="GET", path="/nodes/", lane=Lane.READ)
PARTITIONS = Call(method="GET", path="/partitions/", lane=Lane.READ)
ALL_STATES = Call(method="GET", path="/jobs/state/", lane=Lane.READ)


def submit(components: Sequence[Mapping[str, object]]) -> Call:
    """One job, or the components of a heterogeneous one."""
    body = {"jobs": components} if len(components) > 1 else {"job": components[0]}
    return order("POST", "/job/submit", body)


def update(job_id: JobId, changes: Mapping[str, object]) -> Call:
    """Change one job."""
    return order("POST", f"/job/{job_id}", changes)


def cancel(job_id: JobId) -> Call:
    """End one job, and with a leader all its components. No signal is named: any but KILL spoils external nodes."""
    return Call(method="DELETE", path=f"/job/{job_id}", lane=Lane.ORDER)


def cancel_many(job_ids: Iterable[JobId]) -> Call:
    """End several jobs."""
    return order("DELETE", "/jobs/", {"jobs": [str(job_id) for job_id in job_ids]})


def states(job_ids: Iterable[JobId]) -> Call:
    """States of these jobs; the key is repeated, a list with commas is refused."""
    query = "&".join(f"job_id={job_id}" for job_id in job_ids)
    return Call(method="GET", path=f"/jobs/state/?{query}", lane=Lane.READ)


#: Everything but what each node gives, which is a third of a record and as much of the work; naming any flag drops the
#: default ALL (hidden partitions), and LOCAL saves slurmctld a second question about federations.
_BRIEF = "?flags=ALL&flags=LOCAL"


def job(job_id: JobId, *, shares: bool = False) -> Call:
    """One record, with what it holds on each node only where that is needed."""
    return Call(method="GET", path=f"/job/{job_id}{'' if shares else _BRIEF}", lane=Lane.READ)


def jobs(patience: float) -> Call:
    """Every record: seconds of work for slurmctld."""
    return Call(method="GET", path=f"/jobs/{_BRIEF}", lane=Lane.READ, patience=patience)


def resources(job_id: JobId) -> Call:
    """What one job holds."""
    return Call(method="GET", path=f"/resources/{job_id}", lane=Lane.READ)


def chunks(job_ids: Sequence[JobId]) -> Iterable[Sequence[JobId]]:
    """Parts that fit into one request."""
    return (job_ids[start : start + MOST_IDS] for start in range(0, len(job_ids), MOST_IDS))


def order(method: str, path: str, body: Mapping[str, object]) -> Call:
    """Anything that Slurm is to do."""
    return Call(method=method, path=path, lane=Lane.ORDER, body=msgspec.json.encode(body))
