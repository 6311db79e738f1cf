"""Reservations as the bridge makes them: of chosen nodes, for one user, for a short while, and without harm to jobs.

    IGNORE_JOBS             what runs on the nodes runs on; jobs that do not name the reservation start there no more
    FLEX                    jobs that name it may use other nodes too, and run on when it ends
    NO_HOLD_JOBS_AFTER_END  jobs that name it and still wait when it ends go on waiting: else Slurm holds them

Times are words that Slurm understands, so that it does not matter whether our clock agrees with Slurm's.
"""

from collections.abc import Callable, Sequence

from slurm_bridge.model import hostlist
from slurm_bridge.model.job import Done, Outcome, Refused
from slurm_bridge.model.names import NO_JOB
from slurm_bridge.model.reservation import Reservation
from slurm_bridge.runtime.http.messages import Answer, Request
from slurm_bridge.slurm import answers, calls, outcomes, replies, shapes

FLAGS = ("IGNORE_JOBS", "FLEX", "NO_HOLD_JOBS_AFTER_END")
LIST = calls.read("/reservations/")

#: There is no reservation of this name; and: there is one, and it has begun.
_NONE, _BEGUN = 2053, 2104

Ask = Callable[[Request, Callable[[Answer], Outcome]], Outcome]


def reserve(ask: Ask, name: str, nodes: Sequence[str], user: str, seconds: int) -> Outcome:
    """Make it; one of that name that is there already comes to be like this."""
    lasts = {"name": name, "node_list": [hostlist.compress(nodes)], "end_time": f"now+{seconds}"}
    made = {**lasts, "users": [user], "flags": list(FLAGS), "start_time": "now"}
    outcome = ask(calls.order("POST", "/reservation", made), _judged)
    if isinstance(outcome, Refused) and outcome.code == _BEGUN:
        return ask(calls.order("POST", "/reservation", lasts), _judged)
    return outcome


def unreserve(ask: Ask, name: str) -> Outcome:
    """Take it away; that there is none is what was wanted."""
    outcome = ask(calls.order("DELETE", f"/reservation/{name}"), _judged)
    return Done(job_id=NO_JOB) if isinstance(outcome, Refused) and outcome.code == _NONE else outcome


def read(row: shapes.ReservationRow) -> Reservation:
    """One of them."""
    return Reservation(
        name=row.name,
        nodes=answers.hosts(row.node_list) or (),
        users=tuple(user for user in (row.users or "").split(",") if user),
        end=shapes.number(row.end_time) or 0,
    )


def _judged(answer: Answer) -> Outcome:
    said = replies.decode(answer, shapes.Envelope)
    if said is None or said.errors or not answer.ok:
        return outcomes.of_failure(answer)
    return Done(job_id=NO_JOB, warnings=replies.warnings(said))
