"""The requests that the adapter makes: one function for each, from ids and JSON to method, path and body.

`path` follows the API version.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from slurm_bridge.model.names import JobId
from slurm_bridge.runtime.http.messages import HttpRequest

#: 6 000 ids in one URL work, 8 000 are refused as an "insane message length".
MOST_IDS = 2000

_ABOUT = "slurmrestd"


def read(path: str, seconds: float | None = None) -> HttpRequest:
    """A question that changes nothing."""
    return HttpRequest(method="GET", path=path, seconds=seconds, about=_ABOUT)


def order(method: str, path: str, body: Mapping[str, object] | None = None) -> HttpRequest:
    """Anything that Slurm is to do."""
    written = None if body is None else msgspec.json.encode(body)
    return HttpRequest(method=method, path=path, body=written, about=_ABOUT)


PING = read("/ping/")
NODES = read("/nodes/")
PARTITIONS = read("/partitions/")
ALL_STATES = read("/jobs/state/")


def submit(components: Sequence[Mapping[str, object]]) -> HttpRequest:
    """One job, or the components of a heterogeneous one."""
    body = {"jobs": components} if len(components) > 1 else {"job": components[0]}
    return order("POST", "/job/submit", body)


def update(job_id: JobId, changes: Mapping[str, object]) -> HttpRequest:
    """Change one job."""
    return order("POST", f"/job/{job_id}", changes)


def cancel(job_id: JobId) -> HttpRequest:
    """End one job, and with a leader all its components. No signal is named: any but KILL spoils external nodes."""
    return order("DELETE", f"/job/{job_id}")


def cancel_many(job_ids: Iterable[JobId]) -> HttpRequest:
    """End these, likewise; an id that is no number would have the whole order refused."""
    return order("DELETE", "/jobs/", {"jobs": [str(job_id) for job_id in job_ids]})


def states(job_ids: Iterable[JobId]) -> HttpRequest:
    """States of these jobs; the key is repeated, a list with commas is refused."""
    query = "&".join(f"job_id={job_id}" for job_id in job_ids)
    return read(f"/jobs/state/?{query}")


#: Everything but what each node gives, which is a third of a record and as much of the work; naming any flag drops the
#: default ALL (hidden partitions), and LOCAL saves slurmctld a second question about federations.
_BRIEF = "?flags=ALL&flags=LOCAL"


def job(job_id: JobId, *, shares: bool = False) -> HttpRequest:
    """One record, with what it holds on each node only where that is needed."""
    return read(f"/job/{job_id}{'' if shares else _BRIEF}")


def jobs(seconds: float) -> HttpRequest:
    """Every record: seconds of work for slurmctld."""
    return read(f"/jobs/{_BRIEF}", seconds)


def resources(job_id: JobId) -> HttpRequest:
    """What one job holds."""
    return read(f"/resources/{job_id}")


def chunks(job_ids: Sequence[JobId]) -> Iterable[Sequence[JobId]]:
    """Parts that fit into one request."""
    return (job_ids[start : start + MOST_IDS] for start in range(0, len(job_ids), MOST_IDS))
