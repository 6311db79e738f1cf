"""Owner records as the scheduler writes them, and placeholders after our own orders."""

import dataclasses
import hashlib
from collections.abc import Iterable

import msgspec

from slurm_bridge.model.job import JobState
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root

#: The last word is for people; the record has to stay small.
MOST_NOTE = 200


def owner_of(root: Root, cluster_id: str) -> Owner:
    """The record of a workload of which nothing else is known."""
    return Owner(cluster=cluster_id, kind=root.kind, namespace=root.namespace, name=root.name, uid=root.uid)


def with_note(owner: Owner, note: str) -> Owner:
    """The same record with a last word."""
    return msgspec.structs.replace(owner, note=note[:MOST_NOTE])


def for_attempt(owner: Owner, attempt: int, *, request: str, plan: str, members: str = "", reserved: str = "") -> Owner:
    """The record of one attempt at one request."""
    return msgspec.structs.replace(
        owner, attempt=attempt, request=request, plan=plan, members=members, reserved=reserved
    )


def members_of(pods: Iterable[Pod], places: int | None = None) -> str:
    """How many pods, and a digest of which: tells whether a job still stands for just these.

    `places`: how many the job was asked for, where some of them had gone when it started (`4/3:…`).
    """
    uids = sorted(pod.uid for pod in pods)
    asked = f"{places}/" if places is not None and places > len(uids) else ""
    return f"{asked}{len(uids)}:{hashlib.blake2b(' '.join(uids).encode(), digest_size=8).hexdigest()}"


def stands_for(owner: Owner, pods: Iterable[Pod]) -> bool:
    """The job is for just these pods."""
    return owner.members.rpartition("/")[2] == members_of(pods)


def places_of(owner: Owner) -> int:
    """For how many pods the job was asked for; a record that names none is that of a single pod."""
    return _number(owner.members.partition(":")[0].partition("/")[0])


def starters_of(owner: Owner) -> int:
    """How many pods there were to be bound when it started."""
    return _number(owner.members.partition(":")[0].rpartition("/")[2])


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 1  # noqa: PLR2004 - digits of any count


def over(placeholder: Placeholder, note: str, now: float) -> Placeholder:
    """A placeholder that we have just cancelled; Slurm needs no time for that."""
    return dataclasses.replace(
        placeholder,
        owner=with_note(placeholder.owner, note),
        state=JobState(frozenset({"CANCELLED"})),
        torn=False,
        certainty=Certainty.SEEN,
        since=now,
    )
