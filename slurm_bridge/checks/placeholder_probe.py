"""Submits one placeholder on hold, so that it never starts, reads it back, and cancels it."""

import dataclasses
import random

from slurm_bridge import errors, ports
from slurm_bridge.checks.facts import PROBE_KIND, Expectations, Probe
from slurm_bridge.model.job import Done, JobRequest, Memory, Refusal, Refused, Unknown
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId

#: A chosen id may belong to an existing placeholder; three in a row are very unlikely.
_TRIES = 3


def probe(slurm: ports.Slurm, clock: ports.Clock, dice: random.Random, wanted: Expectations) -> Probe:
    """Submit, read, cancel. If the cancelling fails, the result says why."""
    tried = _submit(slurm, clock, dice, wanted)
    if isinstance(tried.outcome, Refused):
        return tried
    made = tried.outcome.job_id if isinstance(tried.outcome, Done) else tried.request.job_id
    try:
        # By its id, else by its owner record, which is a full scan: only after a lost answer.
        view = slurm.job(made) if made is not None else next(iter(slurm.find(tried.request.owner)), None)
    except errors.BridgeError as problem:
        return dataclasses.replace(tried, cancelled=Unknown(message=f"not read back: {problem}"))
    if view is None or view.name != tried.request.name:
        return tried
    return dataclasses.replace(tried, view=view, cancelled=slurm.cancel(view.job_id))


def _submit(slurm: ports.Slurm, clock: ports.Clock, dice: random.Random, wanted: Expectations) -> Probe:
    for _ in range(_TRIES):
        request = _request(dice, wanted)
        tried = Probe(request=request, asked_at=clock.wall(), outcome=slurm.submit(request))
        if not (isinstance(tried.outcome, Refused) and tried.outcome.why is Refusal.EXISTS):
            break
    return tried


def _request(dice: random.Random, wanted: Expectations) -> JobRequest:
    """The name is unique, so that no other job can be mistaken for it."""
    uid = f"{dice.getrandbits(64):016x}"
    return JobRequest(
        name=f"slurm-bridge-check-{uid}",
        owner=Owner(cluster=wanted.cluster_id, kind=PROBE_KIND, namespace="", name="check", uid=uid),
        job_id=JobId(dice.randint(*wanted.job_ids)) if wanted.job_ids else None,
        partition=",".join(wanted.partitions) or None,
        account=wanted.account,
        qos=wanted.qos,
        user=wanted.user,
        group=wanted.group,
        mcs_label=wanted.mcs_label,
        hold=True,
        time_limit_minutes=1,
        memory=Memory(mib=1),
    )
