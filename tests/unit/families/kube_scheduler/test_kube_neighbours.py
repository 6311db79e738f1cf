"""MatchInterPodAffinity: who wants whom near, and who does not."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster.rules import neighbours as rules
from slurm_bridge.cluster.rules.neighbours import Term
from slurm_bridge.families.kube_scheduler.predicates import neighbours as predicate
from slurm_bridge.families.kube_scheduler.predicates import reasons
from slurm_bridge.families.kube_scheduler.scene import Lookup, with_pods
from slurm_bridge.model.pod import Pod
from tests.unit.families.kube_scheduler.scenes import HOST, REQUIRED, ZONE, near, node, pod, said, seen, term

WEB = {"app": "web"}
#: Two zones of two nodes, and a node in none.
NODES = [
    node("a1", labels={ZONE: "a"}),
    node("a2", labels={ZONE: "a"}),
    node("b1", labels={ZONE: "b"}),
    node("b2", labels={ZONE: "b"}),
    node("none"),
]
NAME = "MatchInterPodAffinity"


def wants(kind: str, key: str = ZONE, name: str = "new", on: str = "", **others: object) -> Pod:
    """A pod that wants web pods near, or not."""
    return pod(name, on=on, affinity=near(kind, term(key, WEB, **others)))


def test_affinity_wants_the_domain_of_a_pod() -> None:
    """Every node of the domain will do; a node in no domain will not."""
    at = seen(wants("podAffinity"), NODES, [pod("w", on="a1", labels=WEB)])
    assert said(NAME, at) == dict.fromkeys(["b1", "b2", "none"], (reasons.POD_AFFINITY,))


def test_affinity_without_anybody_there() -> None:
    """A pod that wants others near, and there are none, fits nowhere."""
    assert said(NAME, seen(wants("podAffinity"), NODES)).keys() == {"a1", "a2", "b1", "b2", "none"}


def test_the_first_of_a_series_may_come_anywhere() -> None:
    """A pod that its own term means would wait for itself; it only has to be in some domain."""
    subject = pod(labels=WEB, affinity=near("podAffinity", term(ZONE, WEB)))
    assert said(NAME, seen(subject, NODES)) == {"none": (reasons.POD_AFFINITY,)}


def test_the_second_of_a_series_follows_the_first() -> None:
    """As soon as there is one, the others go where it is."""
    subject = pod(labels=WEB, affinity=near("podAffinity", term(ZONE, WEB)))
    at = seen(subject, NODES, [pod("w", on="b2", labels=WEB)])
    assert said(NAME, at).keys() == {"a1", "a2", "none"}


def test_a_pod_counts_that_all_terms_mean() -> None:
    """Two terms want one pod with both labels, not two pods with one each."""
    terms = near("podAffinity", term(ZONE, {"x": "1"}), term(HOST, {"y": "1"}))
    apart = [pod("x", on="a1", labels={"x": "1"}), pod("y", on="a1", labels={"y": "1"})]
    assert "a1" in said(NAME, seen(pod(affinity=terms), NODES, apart))
    both = [pod("xy", on="a1", labels={"x": "1", "y": "1"})]
    assert said(NAME, seen(pod(affinity=terms), NODES, both)).keys() == {"a2", "b1", "b2", "none"}


def test_anti_affinity_keeps_out_of_the_domain() -> None:
    """Where there is one such pod in the domain, there is no place; who is in no domain meets nobody."""
    at = seen(wants("podAntiAffinity"), NODES, [pod("w", on="a1", labels=WEB)])
    assert said(NAME, at) == dict.fromkeys(["a1", "a2"], (reasons.POD_ANTI_AFFINITY,))


@pytest.mark.security("input")
@pytest.mark.parametrize(
    "terms",
    [
        True,
        {"topologyKey": HOST},
        [7],
        [{"topologyKey": HOST, "labelSelector": [1]}],
        [{"topologyKey": HOST, "labelSelector": {"matchExpressions": True}}],
        [{"topologyKey": [HOST], "labelSelector": {}}],
        [{"topologyKey": HOST, "labelSelector": {}, "namespaces": 7}],
        [{"topologyKey": HOST, "labelSelector": {}, "namespaces": "team"}],
        [{"topologyKey": HOST, "labelSelector": {}, "namespaceSelector": [1]}],
    ],
)
def test_a_running_pod_whose_terms_make_no_sense_keeps_nobody_out(terms: object) -> None:
    """An invalid anti-affinity term of a running pod excludes no node for other pods."""
    odd = pod("r", on="b1", affinity={"podAntiAffinity": {REQUIRED: terms}})
    assert said(NAME, seen(pod(labels=WEB), NODES, [odd])) == {}


def test_those_who_run_are_asked_too() -> None:
    """A pod that does not want the new one near keeps it out, though the new one does not mind."""
    at = seen(pod(labels=WEB), NODES, [wants("podAntiAffinity", HOST, "r", "b1")])
    assert said(NAME, at) == {"b1": (reasons.EXISTING_ANTI_AFFINITY,)}
    assert said(NAME, at.of(pod(labels={"app": "db"}))) == {}


def test_the_first_rule_that_says_no_gives_the_reason() -> None:
    """Affinity, then anti-affinity, then what others want."""
    subject = pod(
        labels=WEB, affinity={**near("podAffinity", term(HOST, {"x": "1"})), **near("podAntiAffinity", term(HOST, WEB))}
    )
    running = [
        pod("x", on="a1", labels={"x": "1"}),
        pod("w", on="a1", labels=WEB),
        wants("podAntiAffinity", HOST, "r", "a2"),
    ]
    found = said(NAME, seen(subject, NODES, running))
    assert found["a1"] == (reasons.POD_ANTI_AFFINITY,)
    assert found["a2"] == (reasons.POD_AFFINITY,)


def test_namespaces() -> None:
    """A term means pods of the pod's own namespace, of those it names, or of those with certain labels."""
    other = [pod("w", on="a1", labels=WEB, namespace="other")]
    look = Lookup(namespace_labels={"other": {"kind": "shared"}}.get)
    shared = {"namespaceSelector": {"matchLabels": {"kind": "shared"}}}

    def denied(**namespaces: object) -> set[str]:
        at = seen(wants("podAntiAffinity", HOST, **namespaces), NODES, other, lookup=look)
        return set(said(NAME, at))

    assert denied() == set()
    assert denied(namespaces=["other"]) == denied(**shared) == denied(namespaceSelector={}) == {"a1"}
    assert denied(namespaceSelector={"matchLabels": {"kind": "mine"}}) == set()


def test_a_namespace_may_get_other_labels() -> None:
    """Then those who run do not want its pods any more, or not yet, without a word of their own."""
    shared = {"namespaceSelector": {"matchLabels": {"kind": "shared"}}}
    running, subject = [wants("podAntiAffinity", HOST, "r", "a1", **shared)], pod(labels=WEB, namespace="other")

    def denied(kind: str) -> set[str]:
        return set(said(NAME, seen(subject, NODES, running, lookup=Lookup(namespace_labels=lambda _: {"kind": kind}))))

    assert [denied("shared"), denied("mine"), denied("shared")] == [{"a1"}, set(), {"a1"}]


def test_what_those_want_who_are_tried_out_counts() -> None:
    """In all of their domain, and what they wanted elsewhere does not."""
    at = seen(pod(labels=WEB), NODES, [wants("podAntiAffinity", on="a1", name="r")])
    facts = {name: facts for name, facts in zip(at.columns.names, at.columns.facts, strict=True) if facts}
    emptied = with_pods(facts["a1"], ())
    filled = with_pods(facts["b2"], [wants("podAntiAffinity", on="b2", name="r2")])
    assert said(NAME, at).keys() == said(NAME, at.at({"a1": facts["a1"], "a2": facts["a2"]})).keys() == {"a1", "a2"}
    assert said(NAME, at.at({"a2": facts["a2"]}, {"a1": emptied})) == {}
    assert said(NAME, at.at({"b1": facts["b1"], "a2": facts["a2"]}, {"b2": filled})).keys() == {"a2", "b1"}


def test_what_is_tried_out_counts() -> None:
    """On a node that is judged with other pods these count, in all of its domain, and the others of it do not."""
    at = seen(wants("podAntiAffinity"), NODES, [pod("w", on="a1", labels=WEB)])
    facts = {name: facts for name, facts in zip(at.columns.names, at.columns.facts, strict=True) if facts}
    emptied = with_pods(facts["a1"], ())
    assert said(NAME, at.at({"a1": emptied})) == {}
    assert said(NAME, at.at({"a2": facts["a2"]}, {"a1": emptied})) == {}
    assert said(NAME, at.at({"a2": facts["a2"]})).keys() == {"a2"}
    filled = with_pods(facts["b2"], [pod("w2", on="b2", labels=WEB)])
    assert said(NAME, at.at({"b1": facts["b1"]}, {"b2": filled})).keys() == {"b1"}


def test_who_runs_matters_only_to_some() -> None:
    """A pod without wishes that nobody shuns need not be looked at again when pods come and go."""
    running = [wants("podAntiAffinity", HOST, "r", "b1")]
    assert predicate.neighbourly(seen(pod(labels=WEB), NODES, running))
    assert predicate.neighbourly(seen(wants("podAffinity"), NODES))
    assert not predicate.neighbourly(seen(pod(), NODES, running))


ZONES = {"n1": "a", "n2": "a", "n3": "b", "n4": "b", "n5": None}
WORLD = [node(name, labels={ZONE: zone} if zone else {}) for name, zone in ZONES.items()]
apps = st.sampled_from(["x", "y"])
rows = st.builds(lambda key, app: term(key, {"app": app}), st.sampled_from([ZONE, HOST]), apps)
wishes = st.fixed_dictionaries(
    {}, optional={kind: st.lists(rows, max_size=2) for kind in ("podAffinity", "podAntiAffinity")}
)


@st.composite
def somebody(draw: st.DrawFn, *, placed: bool = True) -> Pod:
    """A pod with an app and wishes, on some node."""
    affinity = {kind: {REQUIRED: terms} for kind, terms in draw(wishes).items()}
    on = draw(st.sampled_from(sorted(ZONES))) if placed else ""
    name = f"r{draw(st.uuids())}" if placed else "new"
    return pod(name, on=on, labels={"app": draw(apps)}, affinity=affinity)


def domain(where: str, key: str) -> str | None:
    """The value of a label of a node."""
    return where if key == HOST else ZONES[where]


def meets(one: Pod, where: str, terms: Iterable[Term], subject: Pod) -> bool:
    """A pod is in the domain of a node in one of these keys, and the term means the subject."""
    return any(
        domain(where, each.topology_key) is not None
        and domain(where, each.topology_key) == domain(one.spec.node_name, each.topology_key)
        and each.selects(subject, lambda _: None)
        for each in terms
    )


def welcome(subject: Pod, where: str, running: list[Pod]) -> bool:
    """The rules for one node, pod by pod."""
    wanted = rules.required(subject)
    meant = [one for one in running if all(each.selects(one, lambda _: None) for each in wanted)]
    counted = [one for one in meant for each in wanted if domain(one.spec.node_name, each.topology_key) is not None]
    if wanted and not counted and all(each.selects(subject, lambda _: None) for each in wanted):
        near = all(domain(where, each.topology_key) is not None for each in wanted)
    else:
        near = all(any(meets(one, where, [each], one) for one in meant) for each in wanted)
    far = not any(meets(one, where, rules.forbidden(subject), one) for one in running)
    return near and far and not any(meets(one, where, rules.forbidden(one), subject) for one in running)


@given(somebody(placed=False), st.lists(somebody(), max_size=5))
def test_over_all_nodes_as_on_each(subject: Pod, running: list[Pod]) -> None:
    """Columns give what the rules give node by node and pod by pod."""
    denied = said(NAME, seen(subject, WORLD, running))
    assert {name for name in ZONES if not welcome(subject, name, running)} == denied.keys()
