"""The comparison with kube-scheduler: what is read from its log, how answers differ, and cases that a seed repeats."""

import pytest
from scheduleroracle import answers, clusters, objects, pods
from scheduleroracle.answers import Answer
from scheduleroracle.draws import Draws
from scheduleroracle.reference import LogReader

HEAD = "1124 19:03:11.123456   77 schedule_one.go:981]"


def heard(*lines: str) -> tuple[str, Answer] | None:
    """What the last line completes."""
    reader = LogReader()
    found = None
    for line in lines:
        found = reader.hear(f"I{HEAD} {line}\n" if line.startswith('"') else line)
    return found


def scored(node: str, score: int) -> tuple[str, str]:
    """Of one plugin, which is all there is."""
    return (
        f'"Plugin scored node for pod" pod="alpha/p" plugin="NodeAffinity" node="{node}" score={score}',
        f'"Calculated node\'s final score for pod" pod="alpha/p" node="{node}" score={score}',
    )


ENDED = f'E{HEAD} "Error scheduling pod; retrying" err="pods \\"p\\" is forbidden" pod="alpha/p"'
TRIED = '"Attempting to bind pod to node" pod="alpha/p" node="n-1"'


def test_the_scores_of_nodes_that_fit() -> None:
    """The pod is over when it could not be bound."""
    found = heard(*scored("n-1", 10), *scored("n-2", 4), TRIED, ENDED)
    assert found is not None
    assert found == ("alpha/p", Answer(fit=frozenset({"n-1", "n-2"}), scores=found[1].scores, parts=found[1].parts))
    assert dict(found[1].behind) == {"n-1": 0, "n-2": 6}


def test_a_single_node_has_no_score() -> None:
    """It is the one that would be taken."""
    assert heard(TRIED, ENDED) == ("alpha/p", Answer(fit=frozenset({"n-1"})))


def test_the_message_of_a_pod_that_fits_nowhere() -> None:
    """With quotes in it."""
    line = '"Unable to schedule pod; no fit; waiting" pod="alpha/p" err="0/1 nodes are available: \\"x\\" not found."'
    assert heard(line) == ("alpha/p", Answer(fit=frozenset(), message='0/1 nodes are available: "x" not found.'))


@pytest.mark.parametrize("line", ["", "panic: x", "I1124 garbage", '"Some other message" pod="alpha/p"'])
def test_other_lines_say_nothing(line: str) -> None:
    """Whatever they are."""
    assert heard(line) is None


def test_answers_are_compared_by_distances() -> None:
    """What all nodes have alike decides nothing."""
    both = frozenset("ab")
    one, same, other = (
        Answer(fit=both, scores=scores) for scores in ({"a": 5, "b": 3}, {"a": 105, "b": 103}, {"a": 5})
    )
    assert [*answers.differences(one, same)] == []
    assert len([*answers.differences(one, other)]) == 1


def test_a_difference_names_what_is_different() -> None:
    """Nodes before messages before scores."""
    fits, full = Answer(fit=frozenset("a")), Answer(fit=frozenset(), message="0/1 nodes are available: 1 full.")
    assert [*answers.differences(fits, full)] == ["nodes that fit: the hook has ['a'] more and no fewer"]
    (wrong,) = answers.differences(full, Answer(fit=frozenset(), message="0/1 nodes are available: 1 busy."))
    assert "1 full" in wrong
    assert "1 busy" in wrong


def test_older_words_are_translated() -> None:
    """And sorted as the newer ones are."""
    old = "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match node selector."
    new = "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector."
    assert answers.renewed(old) == new


def test_no_difference_in_nodes_is_on_purpose() -> None:
    """Only words and scores may differ, for a reason that has a name."""
    refused = Answer(fit=frozenset(), message='0/1 nodes are available: persistentvolumeclaim "x" not found.')
    pod = {"spec": {}}
    assert answers.known(Answer(fit=frozenset("a")), refused, pod) == ""
    assert answers.known(Answer(fit=frozenset(), message="0/1 nodes"), refused, pod) == answers.WHOLE_POD


def test_what_decided() -> None:
    """The reasons of nodes that do not fit, and the plugins by which the others differ."""
    parts = {"NodeAffinity": {"a": 1.0, "b": 1.0}, "ImageLocality": {"a": 1.0, "b": 2.0}}
    assert {*Answer(fit=frozenset("ab"), parts=parts, reasons=frozenset(["full"])).deciding} == {
        "full",
        "ImageLocality",
    }


def test_a_seed_makes_the_same_case_again() -> None:
    """A finding can be looked at again."""

    def drawn(seed: str) -> object:
        draws = Draws(seed)
        made = clusters.cluster(draws)
        return made, pods.pod(draws, "p", made.nodes)

    assert drawn("1/1") == drawn("1/1")
    assert drawn("1/1") != drawn("1/2")


def test_every_object_has_a_place() -> None:
    """Of many clusters."""
    for number in range(30):
        made = clusters.cluster(Draws(f"7/{number}"))
        assert all(objects.path_of(one).startswith("/api") for one in made.objects)
