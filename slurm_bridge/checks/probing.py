"""The one order that a check gives: a placeholder on hold, so that it never starts, read back, and cancelled."""

import dataclasses
import random

from slurm_bridge import errors, ports
from slurm_bridge.checks.facts import PROBE_KIND, Expectations, Probe
from slurm_bridge.model.job import Done, JobRequest, JobView, Memory, Refusal, Refused, Unknown
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId

#: A chosen id may belong to somebody's placeholder; three in a row do not, by accident.
_TRIES = 3


def probe(slurm: ports.Slurm, clock: ports.Clock, dice: random.Random, wanted: Expectations) -> Probe:
    """Submit, look, cancel. Whatever was made is cancelled, or stays in the answer with the reason why not."""
    tried = _submit(slurm, clock, dice, wanted)
    if isinstance(tried.outcome, Refused):
        return tried
    try:
        view = _look(slurm, tried)
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


def _look(slurm: ports.Slurm, tried: Probe) -> JobView | None:
    """By its id, else by its owner record: a full scan, only after an answer was lost."""
    made = tried.outcome.job_id if isinstance(tried.outcome, Done) else tried.request.job_id
    if made is not None:
        return slurm.job(made)
    return next(iter(slurm.find(tried.request.owner)), None)


def _request(dice: random.Random, wanted: Expectations) -> JobRequest:
    """The name is unlike any other, so that no job but this one can be taken for it."""
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
