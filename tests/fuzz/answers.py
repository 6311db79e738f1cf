"""Answers of slurmrestd that are not as they should be, through the real client and into the mirror.

The answers are those that the pocket slurmrestd gives; one of them is spoiled, for as long as it is asked for. What
the rows beside it say, and what is known of our jobs, has to stay as it was.
"""

import dataclasses
import pathlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from slurm_bridge import errors
from slurm_bridge.mirror.jobs import Mirror
from slurm_bridge.mirror.table import Table
from slurm_bridge.model.job import Done, Refused, Unknown
from slurm_bridge.model.placeholder import Certainty
from slurm_bridge.sim.wire import Response
from slurm_bridge.slurm.client import SlurmClient
from tests.fuzz import faulty_slurmrestd, generators, mutations
from tests.fuzz.faulty_slurmrestd import Office
from tests.fuzz.runner import Watch

#: No server can silence the client for longer.
LONGEST_SILENCE = 300.0

#: The reads that are lists: the key of the list, the key of a row's name, and what is compared of the answer.
LISTS: Mapping[str, tuple[str, str, Callable[[Any], Mapping[str, object]]]] = {
    "jobs": ("jobs", "job_id", lambda found: {str(one.job_id): one for one in found}),
    "states": ("jobs", "job_id", lambda found: {str(job_id): one for job_id, one in found.items()}),
    "nodes": ("nodes", "name", lambda found: {one.name: one for one in found}),
    "partitions": ("partitions", "name", lambda found: {one.name: one for one in found}),
    "reservations": ("reservations", "name", lambda found: {one.name: one for one in found}),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question, and how its answer is spoiled: one row, anywhere, its bytes or its head; by dice of this seed."""

    verb: str
    way: str
    seed: int


class Answers:
    """The target."""

    name = "slurmrestd"

    def __init__(self, folder: pathlib.Path) -> None:
        self._office = Office(folder)
        client = self._office.client()
        self._true = {verb: LISTS[verb][2](READS[verb](client)) for verb in LISTS}

    def make(self, dice: random.Random) -> Case:
        """One answer in three is part of a pass of the mirror."""
        way = dice.choices(("row", "anywhere", "bytes", "head"), (3, 4, 1, 1))[0]
        verbs = tuple(LISTS) if way == "row" else (*READS, *ORDERS)
        verb = "mirror" if generators.chance(dice, 0.3) else dice.choice(verbs)
        return Case(verb=verb, way=way, seed=dice.randrange(2**32))

    def check(self, case: Case, watch: Watch) -> Iterable[str]:
        """Ask, and look at what comes back."""
        self._office.reset()
        if case.verb == "mirror":
            yield from self._mirrored(case, watch)
        else:
            yield from self._asked(case, watch)

    def _asked(self, case: Case, watch: Watch) -> Iterator[str]:
        client = self._office.client()
        assert client.version  # negotiated before anything is spoiled
        self._office.spoil(spoiler(case))
        ask = READS.get(case.verb) or ORDERS[case.verb]
        try:
            with watch(case.verb):
                found = ask(client)
        except errors.BridgeError as problem:
            yield from _typed(case, problem)
            return
        if case.verb in ORDERS:
            yield from _outcome(found)
        elif case.way == "row":
            yield from self._beside(case, found)

    def _beside(self, case: Case, found: Any) -> Iterator[str]:
        """Rows that were not touched say what they said before."""
        touched = self._office.touched
        after = LISTS[case.verb][2](found)
        for name, row in self._true[case.verb].items():
            if not any(faulty_slurmrestd.related(name, one) for one in touched) and after.get(name) != row:
                yield f"reach: a spoiled row changes others in {case.verb}"
                return

    def _mirrored(self, case: Case, watch: Watch) -> Iterator[str]:
        """One pass with a spoiled answer, then some with good ones."""
        client, clock = self._office.client(), self._office.clock
        table = Table(lambda _uid: None)
        mirror = Mirror(client, clock, table, cluster_id=faulty_slurmrestd.CLUSTER)
        mirror.recover()
        before = {one.job_id: (one.phase, one.owner) for one in table.alive()}
        clock.advance(70.0 if case.seed % 2 else 6.0)
        self._office.spoil(spoiler(case))
        with watch("mirror"):
            mirror.step()
        for one in table.all():
            if one.certainty is Certainty.GONE:
                yield "conclusion: a job counts as gone after one spoiled answer"
            if one.job_id in before and one.owner != before[one.job_id][1]:
                yield "conclusion: a job has another owner after one spoiled answer"
        self._office.spoil(None)
        self._office.asked = 0
        clock.advance(LONGEST_SILENCE)
        mirror.step()
        if not self._office.asked:
            yield "silence: Slurm is not asked for minutes because an answer wished so"
            return
        for _ in range(3):
            clock.advance(70.0)
            mirror.step()
        if mirror.failing:
            yield "conclusion: the mirror still fails when the answers are good again"
        if {one.job_id: (one.phase, one.owner) for one in table.alive()} != before:
            yield "conclusion: the table is not what it was when the answers are good again"


def _typed(case: Case, problem: errors.BridgeError) -> Iterator[str]:
    if case.way == "row":
        yield f"reach: a spoiled row makes {case.verb} unreadable"
    if len(str(problem)) > 2048:
        yield "message: an error has more than 2048 letters"


def _outcome(found: Any) -> Iterator[str]:
    outcomes = found.values() if isinstance(found, Mapping) else [found]
    if not all(isinstance(one, Done | Refused | Unknown) for one in outcomes):
        yield "acceptance: an order did not end in an outcome"


def spoiler(case: Case) -> Callable[[Response], tuple[Response, Sequence[Any]]]:
    """The same answer spoiled the same way, however often it is asked for; and the rows that were touched."""

    def spoil(answer: Response) -> tuple[Response, Sequence[Any]]:
        dice = random.Random(case.seed)
        body = bytes(answer.body)  # type: ignore[arg-type]
        if case.way == "head":
            status, wish = dice.choice(mutations.HEADERS)
            return dataclasses.replace(answer, status=status, headers={"retry-after": wish}), ()
        if case.way == "bytes":
            return dataclasses.replace(answer, body=mutations.damage(dice, body)), ()
        document = msgspec.json.decode(body)
        if case.way == "anywhere" or not _rows(document):
            spoil_ = mutations.misspell if generators.chance(dice, 0.3) else _spoiled
            return dataclasses.replace(answer, body=spoil_(dice, document)), ()
        return _spoil_row(dice, answer, document)

    return spoil


def _spoiled(dice: random.Random, document: Any) -> bytes:
    return mutations.encode(mutations.spoil(dice, document, dice.randint(1, 3), mutations.OF_SLURM))


def _rows(document: Any) -> list[Any]:
    """The rows of the one list that an answer is about."""
    lists = [value for key, value in document.items() if key not in ("errors", "warnings") and isinstance(value, list)]
    return lists[0] if lists else []


def _spoil_row(dice: random.Random, answer: Response, document: Any) -> tuple[Response, Sequence[Any]]:
    rows = _rows(document)
    place = dice.randrange(len(rows))
    row = rows[place]
    rows[place] = "@@row@@"
    odd = mutations.misspell(dice, row) if generators.chance(dice, 0.4) else _spoiled(dice, row)
    body = mutations.encode(document).replace(b'"@@row@@"', odd)
    return dataclasses.replace(answer, body=body), (row, odd)


READS: Mapping[str, Callable[[SlurmClient], Any]] = {
    "jobs": lambda slurm: slurm.jobs(),
    "states": lambda slurm: slurm.states(),
    "some states": lambda slurm: slurm.states([faulty_slurmrestd.RUNNING, faulty_slurmrestd.PENDING]),
    "job": lambda slurm: slurm.job(faulty_slurmrestd.RUNNING),
    "het job": lambda slurm: slurm.job(faulty_slurmrestd.HET),
    "components": lambda slurm: slurm.components(faulty_slurmrestd.HET),
    "allocation": lambda slurm: slurm.allocation(faulty_slurmrestd.RUNNING),
    "find": lambda slurm: slurm.find(faulty_slurmrestd.owner("running")),
    "heterogeneous": lambda slurm: slurm.heterogeneous(),
    "reservations": lambda slurm: slurm.reservations(),
    "nodes": lambda slurm: slurm.nodes(),
    "partitions": lambda slurm: slurm.partitions(),
    "ping": lambda slurm: slurm.ping(),
    "conf": lambda slurm: slurm.conf(),
}
ORDERS = faulty_slurmrestd.ORDERS
