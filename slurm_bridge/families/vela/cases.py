"""What is known of each workload: what was asked for it, what came of it, and what follows. In memory only.

    what is known                                   what follows
    nothing yet                                     ask
    asked                                           wait (and ask again after very long without an answer)
    no node, or no agent answered                   wait for the next try; ask when it is due, or something changed
    no node too often                               hold; ask when something changed, or at the slow resync
    decided                                         use it
    used, and the chain had no node left of it      use it (the chain tells why) until it is due: then all nodes
    all nodes, and the chain had none left either   all nodes (the chain tells why) until it is due: as if no node
    used, and nothing was submitted for long        ask again, which costs no try

Something changed: a node (the version of the snapshot), or an agent that had failed answers again. A workload that
waits for neither in particular is not asked for more often than at the first step of its back-off.
"""

import dataclasses
import enum
import threading
from collections.abc import Callable

import numpy as np

from slurm_bridge.cluster.columns import Mask, NodeColumns
from slurm_bridge.families.vela import commit, samples
from slurm_bridge.families.vela.decision import SamplingDecision
from slurm_bridge.families.vela.office import Nowhere, Outcome
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.runtime import backoff

#: A question that was not answered by then was lost; agents answer within seconds.
LOST_SECONDS = 60.0
#: A decision that led to no submission for so long is about a cluster that has changed.
STALE_SECONDS = 15.0
#: Parked workloads are looked at once in a while although nothing has changed.
RESYNC_SECONDS = 300.0
#: Workloads that are remembered, and nodes that were found for all of them together. What is forgotten is sampled
#: again, so the first is above what can wait to be sampled: a waiting workload must not push out another.
MOST_CASES = 120_000
MOST_NODES = 4_000_000

#: Shapes of one workload: pods that are replaced leave theirs behind. More than any group has: of one with as many the
#: last would push out the first, again and again.
MOST_SHAPES = 1024

#: What nodes and agents looked like: the snapshot's version, and how often an agent came back.
Seen = tuple[int, int]
Nodes = frozenset[str]


class Follows(enum.Enum):
    """What a pass does about one shape of a workload."""

    ASK = "ask"
    WAIT = "wait"
    HOLD = "hold"
    USE = "use"
    ALL = "all"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often, and how soon, it is tried again."""

    max_retries: int
    first_seconds: float
    most_seconds: float

    def after(self, tries: int) -> float:
        """The time before the next try, after so many in vain."""
        return backoff.pause(max(tries - 1, 0), first=self.first_seconds, most=self.most_seconds)


@dataclasses.dataclass(slots=True)
class Turn:
    """One shape of a workload. `outcome` None: asked, at `since`."""

    number: int
    since: float
    seen: Seen
    outcome: Outcome | None = None
    #: Not before then although something changed, and at the latest then.
    soonest: float = 0.0
    due: float = 0.0
    #: Given to the chain in the pass that runs, or in one that came to nothing.
    handed: bool = False
    #: The chain had no node left of the decision: it is given all nodes.
    whole: bool = False
    #: Which nodes of the decision were preferred when the candidates were written: they stay while their job waits.
    roomy: Mask | None = None

    @property
    def decision(self) -> SamplingDecision | None:
        return self.outcome if isinstance(self.outcome, SamplingDecision) else None


@dataclasses.dataclass(slots=True)
class SamplingCase:
    """One workload. `retries` are tries that found no node, `troubles` those for which no agent answered.

    While it is `placed`, which is to say that Slurm has a job of it, its sample stays.
    """

    turns: dict[str, Turn] = dataclasses.field(default_factory=dict)
    retries: int = 0
    troubles: int = 0
    parked: bool = False
    placed: bool = False
    candidates: tuple[Nodes, ...] = ()

    @property
    def decisions(self) -> list[SamplingDecision]:
        """Of all shapes that have one, the last one last; also read without the lock, while shapes come and go."""
        return [decision for turn in list(self.turns.values()) if (decision := turn.decision) is not None]

    def sampled(self, nodes: NodeColumns) -> Nodes:
        """Those of these nodes that were found for any shape: one job for all of them needs nodes that all can use."""
        every = [decision.there(nodes) for decision in self.decisions]
        return nodes.members.at(every[0] if len(every) == 1 else np.concatenate([samples.NO_ROWS, *every]))

    @property
    def nodes(self) -> int:
        return sum(len(decision.nodes) for decision in self.decisions)

    def follows(self, shape: str, now: float, seen: Seen) -> Follows:
        """By the table above; it changes nothing."""
        turn = self.turns.get(shape)
        if turn is None:
            return Follows.ASK
        if turn.outcome is None:
            return Follows.WAIT if now - turn.since < LOST_SECONDS else Follows.ASK
        due = now >= turn.due or (seen != turn.seen and now >= turn.soonest)
        if self.parked or turn.decision is None:
            return Follows.ASK if due else Follows.HOLD
        # What was given in vain is given once more until it is due: the chain then tells why, and counts by reasons.
        if turn.whole:
            again = due and turn.handed
        else:
            again = not self.placed and not turn.handed and now - turn.since >= STALE_SECONDS
        if again:
            return Follows.ASK
        return Follows.ALL if turn.whole or (turn.handed and due) else Follows.USE

    def in_vain(self, shape: str, now: float, seen: Seen, pace: Pace) -> bool:
        """Whether the sample that the chain had is a try in vain, and the last one: it is parked then."""
        turn = self.turns.get(shape)
        if turn is None or self.parked or not turn.handed:
            return False
        turn.seen = seen
        self._failed(turn, now, pace)
        return self.parked

    def asked(self, shape: str, number: int, now: float, seen: Seen) -> None:
        """A question is under way. A parked workload starts anew."""
        if self.parked:
            self.parked, self.retries, self.troubles = False, 0, 0
        self.turns[shape] = Turn(number=number, since=now, seen=seen, soonest=now)
        while len(self.turns) > MOST_SHAPES:
            del self.turns[next(iter(self.turns))]

    def told(self, shape: str, outcome: Outcome, now: float, pace: Pace) -> None:
        """The answer is there."""
        turn = self.turns[shape]
        turn.outcome, turn.since, turn.soonest = outcome, now, now + pace.first_seconds
        if isinstance(outcome, Nowhere):
            self._failed(turn, now, pace)
        elif not isinstance(outcome, SamplingDecision):
            self.troubles += 1
            turn.due = now + pace.after(self.troubles)

    def widened(self, shape: str) -> None:
        """The chain had no node left of the sample, and gets all nodes from now on."""
        turn = self.turns[shape]
        if not turn.whole:
            turn.whole, turn.handed = True, False

    def handed(self, shape: str, now: float, seen: Seen, pace: Pace) -> float:
        """The chain gets it: in how many seconds it is worth another try should no node be left of it."""
        turn = self.turns[shape]
        if not turn.handed:
            turn.handed, turn.seen = True, seen
            turn.soonest, turn.due = now + pace.first_seconds, now + pace.after(self.retries + 1)
        return max(0.0, turn.due - now)

    def withdrawn(self) -> None:
        """The pass ended for another reason than for want of nodes."""
        for turn in self.turns.values():
            turn.handed = False

    def reached(self) -> None:
        """The chain found nodes for every shape."""
        self.troubles, self.parked = 0, False
        self.withdrawn()

    def refused(self) -> None:
        """What was allocated cannot be used: a try in vain, and everything is sampled anew."""
        self.turns, self.candidates = {}, ()
        self.retries += 1

    def _failed(self, turn: Turn, now: float, pace: Pace) -> None:
        if commit.requeued(self.retries, pace.max_retries):
            self.retries += 1
            turn.due = now + pace.after(self.retries)
        else:
            self.parked = True
            turn.due = now + RESYNC_SECONDS


class Cases:
    """All workloads that are known, the ones that were asked for longest ago forgotten first; from any thread."""

    def __init__(self, most: int = MOST_CASES, most_nodes: int = MOST_NODES) -> None:
        self._most = most
        self._most_nodes = most_nodes
        #: At most so many are kept; what was replaced since they were last counted counts twice.
        self._nodes = 0
        self._known: dict[WorkloadKey, SamplingCase] = {}
        #: Held while a case is read or changed.
        self.lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, workload: WorkloadKey) -> SamplingCase | None:
        return self._known.get(workload)

    def of(self, workload: WorkloadKey) -> SamplingCase:
        """Likewise; a new one where nothing is."""
        with self.lock:
            case = self._known.pop(workload, None) or SamplingCase()
            while len(self._known) >= self._most:
                del self._known[next(iter(self._known))]
            self._known[workload] = case
            return case

    def forget(self, workload: WorkloadKey) -> None:
        """Forget it. Without the lock: the caller does not wait for samples of others."""
        self._known.pop(workload, None)

    def kept(self, number: int) -> None:
        """So many nodes more are kept: those of the oldest workloads are forgotten where that is too much."""
        with self.lock:
            self._nodes += number
            if self._nodes <= self._most_nodes:
                return
            cases = list(self._known.values())
            self._nodes = sum(case.nodes for case in cases)
            for case in cases:
                if self._nodes <= self._most_nodes * 3 // 4:
                    return
                self._nodes -= case.nodes
                case.turns = {shape: turn for shape, turn in case.turns.items() if turn.decision is None}

    def waiting(self, meant: Callable[[SamplingCase], bool]) -> list[WorkloadKey]:
        """Those of which this is true."""
        with self.lock:
            return [workload for workload, case in list(self._known.items()) if meant(case)]
