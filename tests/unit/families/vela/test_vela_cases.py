"""What follows of what is known of a workload: the table of the module."""

import pytest

from slurm_bridge.families.vela import cases
from slurm_bridge.families.vela.cases import Cases, Follows, Pace, SamplingCase
from slurm_bridge.families.vela.decision import SamplingDecision
from slurm_bridge.families.vela.office import AgentsUnavailable, Nowhere, Outcome
from tests.unit.families.vela.support_vela import farm, whole

PACE = Pace(max_retries=2, first_seconds=1.0, most_seconds=60.0)
SEEN = (1, 0)
OTHER = (2, 0)
NOWHERE = Nowhere(message="nothing")
NOBODY = AgentsUnavailable(message="nobody")
MEMBERS = farm(1).columns.members
DECIDED = SamplingDecision(
    nodes=["a"], scores=whole(1), uids=["u"], rows=whole(0), members=MEMBERS, sampled=1, dropped={}
)


def asked(now: float = 0.0) -> SamplingCase:
    """A question is under way."""
    case = SamplingCase()
    case.asked("s", 1, now, SEEN)
    return case


def told(outcome: Outcome, now: float = 0.0) -> SamplingCase:
    """It was answered."""
    case = asked()
    case.told("s", outcome, now, PACE)
    return case


def exhausted() -> SamplingCase:
    """Every try was in vain."""
    case = told(NOWHERE)
    for _ in range(PACE.max_retries):
        case.asked("s", 1, 0.0, SEEN)
        case.told("s", NOWHERE, 0.0, PACE)
    return case


def handed(now: float = 0.0) -> SamplingCase:
    """The chain has had the sample, and no node was left."""
    case = told(DECIDED)
    case.handed("s", now, SEEN, PACE)
    return case


def widened() -> SamplingCase:
    """The chain has had all nodes at 1 s, and no node was left."""
    case = handed()
    case.widened("s")
    case.handed("s", 1.0, SEEN, PACE)
    return case


def submitted_widely() -> SamplingCase:
    """The chain has had all nodes, and found some."""
    case = widened()
    case.reached()
    return case


def placed() -> SamplingCase:
    """A job was submitted."""
    case = told(DECIDED)
    case.placed = True
    return case


TABLE = {
    "nothing yet": (SamplingCase(), 0.0, SEEN, Follows.ASK),
    "asked": (asked(), 59.0, SEEN, Follows.WAIT),
    "asked, and nobody answered": (asked(), 60.0, SEEN, Follows.ASK),
    "no node": (told(NOWHERE), 0.9, SEEN, Follows.HOLD),
    "no node, due": (told(NOWHERE), 1.0, SEEN, Follows.ASK),
    "no node, and changed at once": (told(NOWHERE), 0.9, OTHER, Follows.HOLD),
    "nobody answered": (told(NOBODY), 0.9, SEEN, Follows.HOLD),
    "nobody answered, due": (told(NOBODY), 1.0, SEEN, Follows.ASK),
    "parked": (exhausted(), 299.0, SEEN, Follows.HOLD),
    "parked, changed": (exhausted(), 1.0, OTHER, Follows.ASK),
    "parked, an agent came back": (exhausted(), 1.0, (1, 1), Follows.ASK),
    "parked, slow resync": (exhausted(), 300.0, SEEN, Follows.ASK),
    "decided": (told(DECIDED), 1.0, OTHER, Follows.USE),
    "decided, and not submitted for long": (told(DECIDED), 15.0, SEEN, Follows.ASK),
    "submitted": (placed(), 1e6, OTHER, Follows.USE),
    "used in vain": (handed(), 0.9, SEEN, Follows.USE),
    "used in vain, due": (handed(), 1.0, SEEN, Follows.ALL),
    "used in vain, changed": (handed(), 1.0, OTHER, Follows.ALL),
    "all nodes in vain": (widened(), 1.9, SEEN, Follows.ALL),
    "all nodes in vain, due": (widened(), 2.0, SEEN, Follows.ASK),
    "all nodes in vain, changed": (widened(), 2.0, OTHER, Follows.ASK),
    "all nodes, and some were left": (submitted_widely(), 1e6, OTHER, Follows.ALL),
}


@pytest.mark.parametrize("row", TABLE)
def test_follows(row: str):
    """As the table says."""
    case, now, seen, follows = TABLE[row]
    assert case.follows("s", now, seen) is follows


class TestRetries:
    def test_back_off_doubles_up_to_its_limit(self):
        """And begins anew for nobody."""
        assert [PACE.after(tries) for tries in (1, 2, 3, 7, 1000)] == [1, 2, 4, 60, 60]

    def test_after_the_last_retry_it_is_parked(self):
        """Two retries are three tries."""
        case = exhausted()
        assert (case.parked, case.retries) == (True, 2)

    def test_agents_that_do_not_answer_cost_no_retry(self):
        """However often."""
        case = told(NOBODY)
        for _ in range(20):
            case.told("s", NOBODY, 0.0, PACE)
        assert (case.parked, case.retries, case.troubles) == (False, 0, 21)

    def test_who_was_parked_starts_anew(self):
        """With all of its retries."""
        case = exhausted()
        case.asked("s", 9, 300.0, OTHER)
        assert (case.parked, case.retries, case.troubles) == (False, 0, 0)

    def test_a_sample_of_which_nothing_was_left_costs_a_retry(self):
        """And the last one parks."""
        found = []
        case = handed()
        for _ in range(3):
            found.append(case.in_vain("s", 1.0, SEEN, PACE))
            case.asked("s", 1, 1.0, SEEN) if not case.parked else None
            if not case.parked:
                case.told("s", DECIDED, 1.0, PACE)
                case.handed("s", 1.0, SEEN, PACE)
        assert found == [False, False, True]

    def test_a_pass_that_found_nodes_was_not_in_vain(self):
        """Whatever becomes of it."""
        case = handed()
        case.reached()
        assert case.follows("s", 5.0, SEEN) is Follows.USE
        assert not case.in_vain("s", 5.0, SEEN, PACE)

    def test_a_refused_allocation_costs_a_retry_and_all_samples(self):
        """It is sampled anew."""
        case = placed()
        case.candidates = (frozenset("a"),)
        case.refused()
        assert (case.retries, case.turns, case.candidates) == (1, {}, ())


class TestCases:
    def test_the_oldest_is_forgotten(self):
        """By when it was last asked for."""
        known = Cases(most=2)
        first = known.of("a")
        known.of("b")
        assert known.of("a") is first
        known.of("c")
        assert (len(known), known.get("a"), known.get("b")) == (2, first, None)

    def test_the_nodes_of_the_oldest_are_forgotten(self):
        """Questions under way are not, and nobody's retries."""
        known = Cases(most_nodes=4)
        for number in range(6):
            case = known.of(str(number))
            case.retries = number
            case.asked("s", 1, 0.0, SEEN)
            if number != 1:
                case.told("s", DECIDED, 0.0, PACE)
                known.kept(1)
        known.kept(1)
        left = [(len(case.turns), case.retries) for case in map(known.of, "012345")]
        assert left == [(0, 0), (1, 1), (0, 2), (1, 3), (1, 4), (1, 5)]

    def test_those_that_are_meant_are_found(self):
        """To be woken."""
        known = Cases()
        known.of("a").parked = True
        known.of("b")
        assert known.waiting(lambda case: case.parked) == ["a"]

    def test_lost_questions_are_asked_again_later_than_any_agent_answers(self):
        """A question that is under way is not asked twice."""
        assert cases.LOST_SECONDS >= 60
