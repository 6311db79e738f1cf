"""An answer to a read: either exactly the shape that was asked for, or an error of ours."""

import hashlib
from collections.abc import Collection
from typing import TypeVar

import msgspec

from slurm_bridge import errors
from slurm_bridge.runtime import json_decoder
from slurm_bridge.runtime.http.messages import HttpAnswer
from slurm_bridge.slurm import error_numbers, rows, shapes
from slurm_bridge.slurm.rows import UnreadableRow

T = TypeVar("T", bound=shapes.Envelope)

#: Long enough for Slurm's own words, short enough for a log line when a proxy sends a page instead.
_MOST_WORDS = 300
_RENEW = "the token in slurm.token_file has expired, or is not of this cluster: write a new one into the file"


def read(answer: HttpAnswer, shape: type[T]) -> tuple[T, tuple[UnreadableRow, ...]]:
    """What a read returned, and the rows of it that cannot be read.

    Whatever is not a whole and error-free answer is raised.
    """
    if not answer.ok:
        raise failure(answer, envelope(answer))
    found = rows.decode(answer.body, shape)
    if found is None:
        raise errors.BadAnswer(f"slurmrestd's answer makes no sense: {excerpt(answer)}")
    if found[0].errors:
        raise failure(answer, found[0])
    return found


def rows_digest(answer: HttpAnswer) -> bytes | None:
    """A digest of the rows of jobs/state: equal for equal rows. None of an answer that is not whole and error-free."""
    try:
        found = json_decoder.decoder(shapes.StatesUnread).decode(answer.body)
    except (msgspec.DecodeError, *rows.ODD):
        return None
    return hashlib.blake2b(found.jobs, digest_size=16).digest() if answer.ok and not found.errors else None


def decode(answer: HttpAnswer, shape: type[T]) -> T | None:
    """The body in this shape, None when it is something else."""
    try:
        return rows.anyhow(answer.body, shape)
    except (msgspec.DecodeError, *rows.ODD):
        return None


def envelope(answer: HttpAnswer) -> shapes.Envelope:
    """Errors and warnings of any answer; none when the body is not Slurm's."""
    return decode(answer, shapes.Envelope) or shapes.Envelope()


def failure(answer: HttpAnswer, said: shapes.Envelope) -> errors.BridgeError:
    """What a failed answer to a read means."""
    problem = decisive(said)
    if problem is None:
        meaning = error_numbers.of_status(answer.status)
        words = _helpful(f"HTTP {answer.status}: {excerpt(answer)}", [meaning.error])
    else:
        meaning, words = error_numbers.of_number(problem.error_number), describe(said)
    if issubclass(meaning.error, errors.Disagreement):
        return meaning.error(words, code=problem.error_number if problem else answer.status)
    if issubclass(meaning.error, errors.TryLater):
        return meaning.error(words, retry_after=answer.retry_after)
    return meaning.error(words)


def decisive(said: shapes.Envelope) -> shapes.Problem | None:
    """The error to go by: one that leaves doubt weighs more than one that refuses."""
    numbered = [problem for problem in said.errors or () if problem.error_number != 0]
    doubtful = (each for each in numbered if error_numbers.of_number(each.error_number).refusal is None)
    return next(doubtful, numbered[0] if numbered else None)


def describe(said: shapes.Envelope) -> str:
    """All errors in Slurm's words; of a token that is refused these say nothing that helps."""
    lines: list[str] = []
    for problem in said.errors or ():
        words = ": ".join(part for part in (problem.description, problem.error) if part)
        where = f" at {problem.source}" if problem.source else ""
        lines.append(f"{words} ({problem.error_number}{where})")
    words = "; ".join(lines)[:_MOST_WORDS]
    return _helpful(words, [error_numbers.of_number(problem.error_number).error for problem in said.errors or ()])


def _helpful(words: str, meant: Collection[type[errors.BridgeError]]) -> str:
    return f"{words}: {_RENEW}" if errors.NotAuthenticated in meant else words


def warnings(said: shapes.Envelope) -> tuple[str, ...]:
    """All warnings in Slurm's words, each once."""
    return tuple(dict.fromkeys(problem.description or problem.error or "" for problem in said.warnings or ()))


def excerpt(answer: HttpAnswer) -> str:
    """The beginning of a body that is not what it should be, on one line."""
    text = bytes(answer.body[:_MOST_WORDS]).decode("utf-8", errors="replace")
    return " ".join(text.split()) or "no body"
