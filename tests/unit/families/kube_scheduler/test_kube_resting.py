"""Rules at rest are asked once, rules that move each time."""

import collections

from slurm_bridge.families.kube_scheduler.predicates.base import Failures, PredicateRule, always
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.families.kube_scheduler.verdict_cache import Barred, Known, Resting
from tests.unit.families.kube_scheduler.scenes import node, pod, seen

AT = seen(pod(), [node("a"), node("b")])
KNOWN: Known = (b"class", "", ())


class Watched:
    """Two rules that deny one node each, of which one moves."""

    def __init__(self) -> None:
        self.asked: collections.Counter[str] = collections.Counter()
        self.resting = Resting(
            {"rests": PredicateRule(failures=self._rests), "moves": PredicateRule(failures=self._moves, moving=always)}
        )
        self.restless = self.resting.restless(1, KNOWN, lambda: (AT, False))

    def _rests(self, at: Scene) -> Failures:
        self.asked["rests"] += 1
        return ((at.columns.mask(["a"]), "full"),)

    def _moves(self, at: Scene) -> Failures:
        self.asked["moves"] += 1
        return ((at.columns.mask(["b"]), "crowded"),)


def test_a_rule_at_rest_is_asked_once_while_the_nodes_stay_as_they_are() -> None:
    """However many equal pods come; a rule that moves is none of its business."""
    watched = Watched()
    said = [watched.resting.said(version, KNOWN, AT, watched.restless) for version in (1, 1, 2)]
    assert [list(answers) for answers in said] == [["rests"]] * 3
    assert watched.asked == {"rests": 2}


def test_rows_of_other_columns_are_other_rows() -> None:
    """Columns of one version that were made anew may have their nodes in other places."""
    watched, anew = Watched(), seen(pod(), [node("c"), node("b"), node("a")])
    for at, row in ((AT, 0), (anew, 2)):
        said = watched.resting.said(1, KNOWN, at, watched.restless)
        assert at.columns.row("a") == row
        assert "a" in Barred(at.columns, said.values())
        assert "b" not in Barred(at.columns, said.values())


def test_who_has_rivals_is_restless_even_where_every_rule_rests() -> None:
    """Nobody knows yet whether pods that were promised a node will come."""
    resting = Resting({"rests": PredicateRule(failures=lambda _at: ())})
    assert not resting.restless(1, KNOWN, lambda: (AT, False))
    assert resting.restless(2, KNOWN, lambda: (AT, True)).rivals
