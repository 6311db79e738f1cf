"""What slurmctld's error numbers and bare HTTP statuses come down to.

The number decides, never the status: Slurm 25.11 answers with 500 what 26.05 answers with 422, and a DELETE that
found no controller at all says 403 with number 1, which only looks like a refusal. Where `refusal` is None it is
knows whether Slurm acted.
"""

import dataclasses
from collections.abc import Mapping

from slurm_bridge import errors
from slurm_bridge.model.job import Refusal

AUTHENTICATION = 1007
DUPLICATE_JOB_ID = 2011
INVALID_JOB_ID = 2017
JOB_NOT_RUNNING = 2085
NOT_FOR_EXTERNAL_JOBS = 2189


@dataclasses.dataclass(frozen=True, slots=True)
class Meaning:
    """For an order: why it was refused. For a read: what to raise."""

    refusal: Refusal | None
    error: type[errors.BridgeError]


_UNCERTAIN = Meaning(None, errors.Unanswered)
_INVALID = Meaning(Refusal.INVALID, errors.Invalid)
_LATER = Meaning(Refusal.BUSY, errors.Unavailable)
_WHO = Meaning(Refusal.FORBIDDEN, errors.NotAuthenticated)
_FORBIDDEN = Meaning(Refusal.FORBIDDEN, errors.NotAuthorized)
_OVER = Meaning(Refusal.OVER, errors.Conflict)
_STARTED = Meaning(Refusal.STARTED, errors.Conflict)

#: Numbers that differ from the rest of their range.
_NUMBERS: Mapping[int, Meaning] = {
    AUTHENTICATION: _WHO,
    2002: _FORBIDDEN,  # access or permission denied
    2010: _FORBIDDEN,  # user id missing, also: not yours
    2007: _LATER,  # MaxJobCount reached
    2016: _LATER,  # nodes busy
    2019: _LATER,  # the controller cannot save its state
    2020: _LATER,  # in transition
    2027: _LATER,  # standby controller
    2050: _LATER,  # a limit of the account or QOS, for example on submitted jobs
    2055: _LATER,  # reservation busy
    2105: _LATER,  # submissions disabled
    2131: _LATER,  # standby controller
    DUPLICATE_JOB_ID: Meaning(Refusal.EXISTS, errors.Conflict),
    INVALID_JOB_ID: Meaning(Refusal.NO_SUCH_JOB, errors.NotFound),
    2018: Meaning(Refusal.UNKNOWN_NODE, errors.Invalid),
    2168: Meaning(Refusal.EXISTS, errors.Conflict),  # a node of this name
    2058: Meaning(Refusal.OVERLAP, errors.Conflict),
    2021: _OVER,
    2084: _OVER,
    2073: _STARTED,
    2083: _STARTED,
    JOB_NOT_RUNNING: Meaning(Refusal.OVER, errors.Conflict),
}

#: First number of a range -> meaning up to the next one. Below 1000 stand -1 and the errnos of failed system calls.
_RANGES: tuple[tuple[int, Meaning], ...] = (
    (2000, _INVALID),  # slurmctld looked and refused
    (3000, _UNCERTAIN),  # SPANK, slurmd, sockets
    (6000, _WHO),  # authentication plugins
    (7000, _UNCERTAIN),  # accounting was asked half way through
    (7100, _INVALID),  # federation, topology, Lua submit plugin
    (9000, _INVALID),  # slurmrestd could not read the request; slurmctld was not asked
    (10000, _UNCERTAIN),
)

_STATUSES: Mapping[int, Meaning] = {
    401: _WHO,
    403: _FORBIDDEN,
    408: _UNCERTAIN,
    429: _LATER,
    503: Meaning(None, errors.Unavailable),  # some proxies say it after the request went through
    511: _WHO,
}


def of_number(number: int) -> Meaning:
    """What this error_number says."""
    exact = _NUMBERS.get(number)
    if exact is not None:
        return exact
    return next((meaning for first, meaning in reversed(_RANGES) if number >= first), _UNCERTAIN)


def of_status(status: int) -> Meaning:
    """What an HTTP status says when no error_number came with it."""
    if status in _STATUSES:
        return _STATUSES[status]
    if status < 300:  # noqa: PLR2004 - a success that cannot be read
        return Meaning(None, errors.BadAnswer)
    if status < 400:  # noqa: PLR2004 - redirects are never followed: the token would travel
        return Meaning(Refusal.BUSY, errors.BadConfiguration)
    return _INVALID if status < 500 else _UNCERTAIN  # noqa: PLR2004
