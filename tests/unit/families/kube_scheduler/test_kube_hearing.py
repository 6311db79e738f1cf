"""What running pods say of their neighbours is listened to, up to bounds that strangers cannot move."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster.rules import neighbours as rules
from slurm_bridge.families.kube_scheduler import neighbour_terms
from slurm_bridge.families.kube_scheduler.predicates import reasons
from slurm_bridge.families.kube_scheduler.priorities import interpod
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.model.pod import Pod
from tests.effort import Work
from tests.unit.families.kube_scheduler.scenes import HOST, near, node, pod, said, seen, term

PREFERRED = interpod.PREFERRED
NODES = [node(f"n{number}") for number in range(8)]
NAME = "MatchInterPodAffinity"
WEB = {"app": "web"}


def odd(number: int, key: str = HOST) -> dict[str, Any]:
    """A term that means nearly every pod of every namespace, and is like no other."""
    row = {"key": f"x{number}", "operator": "DoesNotExist"}
    return {"topologyKey": key, "namespaceSelector": {}, "labelSelector": {"matchExpressions": [row]}}


def shunning(terms: Iterable[Mapping[str, Any]], name: str = "evil", on: str = "n0", namespace: str = "evil") -> Pod:
    """A running pod that must not have those near whom these terms mean."""
    return pod(name, on=on, namespace=namespace, affinity=near("podAntiAffinity", *terms))


def wishing(terms: Iterable[Mapping[str, Any]], name: str = "evil", on: str = "n0", namespace: str = "evil") -> Pod:
    """A running pod that would like to have them near."""
    wishes = [{"weight": 1, "podAffinityTerm": one} for one in terms]
    return pod(name, on=on, namespace=namespace, affinity={"podAffinity": {PREFERRED: wishes}})


def worth(at: Scene) -> dict[str, int]:
    """What the neighbourhoods are worth, by node."""
    found = interpod.interpod(1)(at)
    assert found is not None
    return dict(zip(at.columns.names.tolist(), found.tolist(), strict=True))


@pytest.mark.security("fairness")
@pytest.mark.parametrize("speaking", [shunning, wishing])
def test_of_one_pod_a_hundred_terms_are_read(speaking: Any) -> None:
    """Of a running pod with thousands of affinity terms a hundred are read, whichever scheduler bound it."""
    at = seen(pod(labels=WEB), NODES, [speaking(map(odd, range(3000)))])
    with Work() as work:
        said(NAME, at)
        worth(at)
    assert work.calls["Term.selects"] == 100


@pytest.mark.security("fairness")
def test_of_all_pods_so_much_is_read() -> None:
    """However many affinity terms running pods have, a pass reads a bounded part of them."""
    lists = [[odd(number) for number in range(start, start + 100)] for start in range(0, 10_000, 100)]
    pods = [
        *(shunning(terms, f"s{place}", f"n{place % 8}") for place, terms in enumerate(lists)),
        *(wishing(terms, f"w{place}", f"n{place % 8}") for place, terms in enumerate(lists)),
    ]
    at = seen(pod(labels=WEB), NODES, pods)
    with Work() as work:
        said(NAME, at)
        worth(at)
    assert 3000 < work.calls["Term.selects"] < 6000
    assert work.calls["_Worth.add"] == 1


@pytest.mark.security("fairness")
def test_a_namespace_that_says_too_much_silences_no_other() -> None:
    """A namespace that writes thousands of affinity terms uses its own share: those of others are read as before."""
    lists = [[odd(number, "nowhere") for number in range(start, start + 100)] for start in range(0, 10_000, 100)]
    loud = [make(terms, f"{make.__name__}{place}") for make in (shunning, wishing) for place, terms in enumerate(lists)]
    quiet = [
        shunning([term(HOST, WEB)], "s", "n3", "team"),
        wishing([term(HOST, WEB)], "w", "n5", "team"),
    ]
    at = seen(pod(labels=WEB), NODES, [*loud, *quiet])
    assert said(NAME, at) == {"n3": (reasons.EXISTING_ANTI_AFFINITY,)}
    assert {name: score for name, score in worth(at).items() if score} == {"n5": 1}


@pytest.mark.security("fairness")
def test_keys_that_no_node_has_cost_nothing() -> None:
    """A topology key that no node has is not searched on the nodes, however many such keys there are."""
    terms = [odd(number, f"k{number}") for number in range(100)]
    at = seen(pod(labels=WEB), NODES, [shunning(terms), wishing(terms, "w")])
    with Work() as work:
        assert said(NAME, at) == {}
        assert set(worth(at).values()) == {0}
    # Once for each pod, and for no key.
    assert work.calls["_shunned"] == 2
    assert work.calls["_Worth.add"] == 0


@pytest.mark.security("fairness")
def test_of_many_keys_those_of_the_own_namespace_come_first() -> None:
    """Of dozens of topology keys that nodes have, those that pods of the same namespace use are read first."""
    keys = {f"k{number:02}": "v" for number in range(60)}
    labelled = [node("a", labels=keys), node("b", labels={"rack": "1"})]
    loud = shunning([odd(number, key) for number, key in enumerate(keys)], on="a")
    own = shunning([term("rack", WEB)], "own", "b", "team")
    at = seen(pod(labels=WEB), labelled, [loud, own])
    with Work() as work:
        assert said(NAME, at).keys() == {"a", "b"}
    # Once for each key, and once for each pod.
    assert work.calls["_shunned"] == neighbour_terms.MOST_KEYS + 2


def test_what_was_read_is_not_read_again() -> None:
    """Another pod asks who means it; what the words mean is known."""
    at = seen(pod(labels=WEB), NODES, [shunning(map(odd, range(50)))])
    assert said(NAME, at).keys() == {"n0"}
    with Work() as work:
        assert said(NAME, at.of(pod("other", labels={"app": "db"}))).keys() == {"n0"}
    assert work.calls["term"] == 0
    assert work.calls["Term.selects"] == 50


def test_of_a_text_that_is_too_long_those_terms_are_read_that_fit() -> None:
    """In the order in which they are written."""
    long, short = term(HOST, {"app": "x" * neighbour_terms.MOST_TEXT}), term(HOST, WEB)
    for terms, denied in (([short, long], {"n0"}), ([long, short], set())):
        at = seen(pod(labels=WEB), NODES, [shunning(terms, namespace="team")])
        assert said(NAME, at).keys() == denied


words = st.sampled_from(["a", "b", "team"])
expressions = st.fixed_dictionaries(
    {"key": words, "operator": st.sampled_from(["In", "Exists", "odd"])},
    optional={"values": st.lists(words, max_size=2)},
)
selectors = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": st.none() | st.dictionaries(words, words, max_size=2),
        "matchExpressions": st.none() | st.lists(expressions, max_size=2),
    },
)
written = st.fixed_dictionaries(
    {"topologyKey": words},
    optional={
        "labelSelector": selectors,
        "namespaces": st.none() | st.lists(words, max_size=2),
        "namespaceSelector": selectors,
    },
)


@given(written)
def test_a_term_is_read_in_one_go_as_piece_by_piece(row: dict[str, Any]) -> None:
    """What the API server takes means the same both ways."""
    assert rules.term(row, "team") == rules._odd(row, "team")
