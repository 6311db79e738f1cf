"""How an order to Slurm ended: done, refused, or unknown.

    submit                                                      outcome
    2xx, job_id, no errors                                      Done
    2011 (the id is taken)                                      Refused EXISTS, whatever else is there
    job_id and errors                                           Unknown with that id: a job is there, but which
    2xx, no job_id, errors or warnings                          Refused
    2xx, no job_id, nothing said                                Unknown: that is not Slurm speaking
    any order
    error_number that refuses                                   Refused with its reason
    -1, errno, 1000-1999, sockets, accounting; 5xx without JSON Unknown
    no answer, or only a part                                   Unknown
    not reached, no token, no common version                    Refused BUSY: nothing was sent

A 500 that names a job is Unknown and not Done, because Slurm has then ignored a part of the request: the caller must
look at the job before it stands for anything.
"""

from collections.abc import Collection, Mapping

from slurm_bridge import errors
from slurm_bridge.model.job import Done, Outcome, Refusal, Refused, Unknown
from slurm_bridge.model.names import JobId
from slurm_bridge.runtime.http.messages import HttpAnswer
from slurm_bridge.slurm import error_numbers, replies, shapes


def of_submit(answer: HttpAnswer, chosen: JobId | None = None) -> Outcome:
    """POST job/submit; `chosen` is the id that was asked for, and so where to look when in doubt."""
    said = replies.decode(answer, shapes.Submitted)
    if said is None:
        return of_failure(answer, chosen)
    made = shapes.number(said.job_id) or 0
    problem = replies.decisive(said)
    if made > 0 and (problem is None or problem.error_number != error_numbers.DUPLICATE_JOB_ID):
        job_id = JobId(made)
        if answer.ok and not said.errors:
            return Done(job_id=job_id, warnings=replies.warnings(said))
        return Unknown(message=f"job {job_id} was created with errors: {replies.describe(said)}", job_id=job_id)
    if problem is not None and problem.error_number == error_numbers.INVALID_JOB_ID:
        # There is no other job in a submit: the token may not choose ids.
        return Refused(why=Refusal.FORBIDDEN, code=problem.error_number, message=replies.describe(said))
    if answer.ok and problem is None and said.warnings:
        return Refused(why=Refusal.INVALID, code=0, message="; ".join(replies.warnings(said)))
    return of_failure(answer, chosen)


def of_update(answer: HttpAnswer, job_id: JobId) -> Outcome:
    """POST job/{id}."""
    said = replies.decode(answer, shapes.Updated)
    if said is None or said.errors or not answer.ok:
        return of_failure(answer, job_id)
    for result in said.results or ():
        number = shapes.number(result.error_code)
        if number:
            return by_number(number, f"{result.error or ''} ({number})", job_id)
    return Done(job_id=job_id, warnings=replies.warnings(said))


def of_cancel(answer: HttpAnswer, job_ids: Collection[JobId]) -> Mapping[JobId, Outcome]:
    """DELETE job or jobs: what the answer does not mention went smoothly."""
    said = replies.decode(answer, shapes.Kills)
    if said is None or said.errors or not answer.ok:
        return {job_id: of_failure(answer, job_id) for job_id in job_ids}
    notes = {_asked(note.step_id): note.error for note in said.status or () if note.error and note.error.code}
    ended: dict[JobId, Outcome] = {job_id: Done(job_id=job_id) for job_id in job_ids}
    for job_id in ended.keys() & notes.keys():
        problem = notes[job_id]
        ended[job_id] = by_number(problem.code, f"{problem.message or 'not ended'} ({problem.code})", job_id)
    return ended


def of_failure(answer: HttpAnswer, job_id: JobId | None = None) -> Outcome:
    """An answer that does not claim success, or claims it without a body that can be read."""
    said = replies.envelope(answer)
    problem = replies.decisive(said)
    if problem is not None:
        return by_number(problem.error_number, replies.describe(said), job_id)
    words = f"HTTP {answer.status}: {replies.excerpt(answer)}"
    why = error_numbers.of_status(answer.status).refusal
    return Unknown(message=words, job_id=job_id) if why is None else Refused(why=why, code=0, message=words)


def by_number(number: int, words: str, job_id: JobId | None) -> Outcome:
    """What this error_number says about an order."""
    why = error_numbers.of_number(number).refusal
    return Unknown(message=words, job_id=job_id) if why is None else Refused(why=why, code=number, message=words)


def of_problem(problem: errors.BridgeError, job_id: JobId | None = None) -> Outcome:
    """An order that got no answer."""
    if isinstance(problem, errors.Unanswered | errors.BadAnswer):
        return Unknown(message=str(problem), job_id=job_id)
    denied = isinstance(problem, errors.NotAuthenticated | errors.NotAuthorized)
    return Refused(why=Refusal.FORBIDDEN if denied else Refusal.BUSY, code=0, message=str(problem))


def _asked(step_id: str | int) -> JobId | None:
    """`12`, `12+0`, `12.batch` → 12."""
    digits = str(step_id).split("+")[0].split(".")[0]
    return JobId(int(digits)) if digits.isascii() and digits.isdigit() else None
