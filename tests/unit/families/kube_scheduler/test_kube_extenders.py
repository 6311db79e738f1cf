"""Extenders: what they are asked, what their answers mean, and that no pass waits for them."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.agents.json_client import JsonClient
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.cluster.parties import Victims, alone
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kube_scheduler.extenders import desk, wire
from slurm_bridge.families.kube_scheduler.extenders import verdicts as extending
from slurm_bridge.families.kube_scheduler.extenders.desk import ExtenderDesk
from slurm_bridge.families.kube_scheduler.extenders.verdicts import Said
from slurm_bridge.families.kube_scheduler.options import ExtenderOptions
from slurm_bridge.families.kube_scheduler.priority_chain import Extended
from slurm_bridge.hooks import services
from slurm_bridge.hooks.services import HookServices, NotAnswered, Target
from slurm_bridge.model.pod import Container, ResourceNeeds
from slurm_bridge.model.verdict import Wait
from slurm_bridge.runtime.clock import SystemClock, VirtualClock
from tests.unit.families.kube_scheduler.scoring import asking, machine, machines, there

URL = "http://extender:8888/scheduler"


def extender(**others: Any) -> ExtenderOptions:
    """An extender that filters and rates."""
    usual = {"url": URL, "filter_verb": "filter", "prioritize_verb": "prioritize", "preempt_verb": "preempt"}
    return ExtenderOptions(**{**usual, **others})


class FakePost:
    """Answers by path, and remembers what was asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.seconds: list[float] = []

    def __call__(self, target: Target, path: str, body: Mapping[str, Any], *, seconds: float) -> Any:
        self.asked.append((f"{target.url}{path}", body))
        self.seconds.append(seconds)
        answer = self.answers[path.removeprefix("/")]
        if isinstance(answer, Exception):
            raise answer
        return answer(body) if callable(answer) else answer


def facts(*names: str) -> tuple[NodeFacts, ...]:
    """Nodes of which only the names matter."""
    return tuple(machines(*names).nodes.values())


def names(*left: str, **failed: str) -> dict[str, Any]:
    """An answer of filter by names."""
    return {"NodeNames": list(left), "FailedNodes": failed}


def test_whole_nodes_are_sent_to_who_keeps_none() -> None:
    """As Kubernetes writes them."""
    snapshot = there([machine("a", labels={"k": "v"}, cpu="4")]).snapshot()
    body = wire.about_nodes(extender(), asking("web"), tuple(snapshot.nodes.values()))
    assert body["Pod"]["metadata"]["name"] == "web"
    assert body["Nodes"]["items"][0]["metadata"]["labels"] == {"k": "v"}
    assert body["Nodes"]["items"][0]["status"]["allocatable"] == {"cpu": "4"}
    assert "NodeNames" not in body
    assert json.dumps(body)


def test_names_are_sent_to_who_keeps_nodes() -> None:
    """A large cluster is a large body otherwise."""
    body = wire.about_nodes(extender(node_cache_capable=True), asking(), facts("a", "b"))
    assert body["NodeNames"] == ["a", "b"]
    assert "Nodes" not in body


@pytest.mark.parametrize(
    "answer",
    [
        {"NodeNames": ["b"], "FailedNodes": {"a": "too loud"}},
        {"nodenames": ["b"], "failedNodes": {"a": "too loud"}, "error": ""},
        {"nodes": {"items": [{"metadata": {"name": "b"}}]}, "failedNodes": {"a": "too loud"}},
        {"NodeNames": ["b"], "FailedAndUnresolvableNodes": {"a": "too loud"}, "Nodes": None},
    ],
)
def test_answers_of_filter_are_read_however_they_are_written(answer: dict[str, Any]) -> None:
    """Names or whole nodes, in capitals or not."""
    found = wire.filtered(extender(), ("a", "b"), answer)
    assert found == wire.Filtered(nodes=("b",), failed={"a": "too loud"})


def test_a_node_that_is_left_out_without_a_word_fails_too() -> None:
    """With words of our own."""
    assert wire.filtered(extender(), ("a",), {}).failed == {"a": wire.UNSAID}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([], "answers with list, not an object"),
        ({"Error": "out of licences"}, "reports an error: out of licences"),
        ({"NodeNames": ["z"]}, "answers with node 'z', which it was not asked about"),
        ({"Nodes": {"items": [{}]}}, "a node without metadata.name"),
        ({"NodeNames": "b"}, "str where a list belongs"),
        ({"NodeNames": [], "FailedNodes": ["a"]}, "no map of nodes to reasons"),
    ],
)
def test_an_unusable_answer_names_the_extender(answer: Any, said: str) -> None:
    """And what is wrong with it."""
    with pytest.raises(NotAnswered, match=f"extender {URL} .*{said}"):
        wire.filtered(extender(), ("a", "b"), answer)


@given(st.dictionaries(st.sampled_from("abcdef"), st.booleans()), st.booleans())
def test_every_node_that_was_asked_about_is_left_or_fails(stays: dict[str, bool], capable: bool) -> None:
    """Never both, and in the order in which it was asked."""
    left = [name for name, stay in stays.items() if stay]
    whole = {"Nodes": {"items": [{"metadata": {"name": name}} for name in left]}}
    found = wire.filtered(extender(), stays, {"NodeNames": left} if capable else whole)
    assert found.nodes == tuple(left)
    assert set(found.failed) == set(stays) - set(left)


def test_long_words_of_an_extender_are_cut() -> None:
    """They end up in messages to users."""
    found = wire.filtered(extender(), ("a",), {"NodeNames": [], "FailedNodes": {"a": "x" * 10_000}})
    assert len(found.failed["a"]) == wire.MOST_WORDS


def test_scores_are_whole_numbers_by_host() -> None:
    """In either spelling; nothing else will do."""
    assert wire.scores(extender(), [{"Host": "a", "Score": 3}, {"host": "b", "score": 0}]) == {"a": 3, "b": 0}
    assert wire.scores(extender(), None) == {}
    with pytest.raises(NotAnswered, match="beyond"):
        wire.scores(extender(), [{"Host": "a", "Score": 2**40}])
    with pytest.raises(NotAnswered, match="'Score': 'high'"):
        wire.scores(extender(), [{"Host": "a", "Score": "high"}])


def test_each_filter_sees_what_the_one_before_it_left() -> None:
    """And scores are only asked about what all of them left."""
    first, second = extender(node_cache_capable=True), extender(url="http://second", node_cache_capable=True)
    left = {URL: ["b", "c"], "http://second": ["c"]}
    asked: list[tuple[str, str, list[str]]] = []

    def post(target: Target, path: str, body: Mapping[str, Any], *, seconds: float) -> Any:
        assert seconds == 5.0
        asked.append((target.url, path, body["NodeNames"]))
        if path == "/filter":
            return {"NodeNames": left[target.url]}
        return [{"Host": "c", "Score": 7}]

    said = extending.ask((first, second), post, asking(), facts("a", "b", "c"))
    assert asked == [
        (URL, "/filter", ["a", "b", "c"]),
        ("http://second", "/filter", ["b", "c"]),
        (URL, "/prioritize", ["c"]),
        ("http://second", "/prioritize", ["c"]),
    ]
    assert set(said.denied) == {"a", "b"}
    assert [row.scores for row in said.rows] == [{"c": 7}, {"c": 7}]


def test_nobody_is_asked_once_no_node_is_left() -> None:
    """There is nothing to say."""
    post = FakePost(filter=names())
    extending.ask((extender(), extender(url="http://second")), post, asking(), facts("a"))
    assert [path for path, _ in post.asked] == [f"{URL}/filter"]


def test_verbs_that_are_not_configured_are_not_asked() -> None:
    """An extender may only rate."""
    post = FakePost(prioritize=[])
    extending.ask((extender(filter_verb=""),), post, asking(), facts("a"))
    assert [path for path, _ in post.asked] == [f"{URL}/prioritize"]


def test_an_ignorable_filter_may_fail() -> None:
    """Its nodes stay, and what went wrong is told."""
    post = FakePost(filter=NotAnswered("timed out"), prioritize=[])
    said = extending.ask((extender(ignorable=True),), post, asking(), facts("a"))
    assert said == Said(rows=(Extended(name=f"extender {URL}", weight=1, scores={}),), passed_over=("timed out",))


def test_a_filter_that_counts_must_not_fail() -> None:
    """Then nothing else is known."""
    post = FakePost(filter=NotAnswered("timed out"))
    assert extending.ask((extender(),), post, asking(), facts("a")) == Said(failure="timed out")


def test_scores_that_fail_are_left_out() -> None:
    """Even of an extender that counts: no score is worth a placement."""
    post = FakePost(filter=names("a"), prioritize=NotAnswered("no scores today"))
    assert extending.ask((extender(),), post, asking(), facts("a")) == Said(passed_over=("no scores today",))


@pytest.mark.parametrize(
    ("managed", "resources", "cares"),
    [
        ((), {}, True),
        (("x/gpu",), {}, False),
        (("x/gpu",), {"requests": {"cpu": "1", "x/gpu": 1}}, True),
        (("x/gpu",), {"limits": {"x/gpu": 1}}, True),
    ],
)
def test_who_manages_resources_hears_only_of_pods_that_use_them(
    managed: tuple[str, ...], resources: dict[str, Any], cares: bool
) -> None:
    """In a container or an init container."""
    using = Container(name="c", resources=ResourceNeeds(**resources))
    one = extender(managed_resources=managed)
    assert extending.interested(one, asking(containers=(using,))) is cares
    assert extending.interested(one, asking(init_containers=(using,))) is cares


def victims() -> dict[str, Victims]:
    """One candidate with two victims, one with one."""
    pods = [asking(name) for name in ("x", "y", "z")]
    return {"a": Victims(parties=alone(pods[:2]), violations=1), "b": Victims(parties=alone(pods[2:]))}


def test_preempt_may_leave_out_nodes_and_victims() -> None:
    """Who keeps nodes is asked by uid alone, the others with whole pods."""
    answer = {"nodeNameToMetaVictims": {"a": {"pods": [{"uid": "uid-y"}], "numPDBViolations": 0}}}
    post = FakePost(preempt=answer)
    for capable in (True, False):
        choosing = extending.preempting(extender(node_cache_capable=capable), post, asking())
        left = choosing.ask(victims())
        assert {node: [pod.metadata.name for pod in one.pods] for node, one in left.items()} == {"a": ["y"]}
        assert left["a"].violations == 0
    meta, whole = (body for _, body in post.asked)
    assert meta["NodeNameToMetaVictims"]["b"] == {"Pods": [{"UID": "uid-z"}], "NumPDBViolations": 0}
    assert whole["NodeNameToVictims"]["b"]["Pods"][0]["metadata"]["name"] == "z"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"nodeNameToMetaVictims": {"q": {}}}, "node 'q', which it was not asked about"),
        ({"nodeNameToMetaVictims": {"a": {"pods": [{"uid": "who"}]}}}, "victim 'who', which is none of node 'a'"),
        ({"nodeNameToMetaVictims": ["a"]}, "no map of nodes to victims"),
    ],
)
def test_preempt_cannot_invent_victims(answer: Any, said: str) -> None:
    """Nobody goes whom we have not named."""
    with pytest.raises(NotAnswered, match=said):
        extending.preempting(extender(), FakePost(preempt=answer), asking()).ask(victims())


class Stage:
    """A services, inline unless told, with everything that it is asked to do kept."""

    def __init__(self, post: Callable[..., Any], *, threads: bool = False, clock: Any = None) -> None:
        self.clock = clock or VirtualClock()
        self.woken: list[str] = []
        self.awake = threading.Event()
        self.services = HookServices(clock=self.clock, wake=self._wake, post=post, threads=threads)

    def _wake(self, uid: str) -> None:
        self.woken.append(uid)
        self.awake.set()


def ask(told: ExtenderDesk, snapshot: ClusterSnapshot, *nodes: str, key: bytes = b"k") -> Said | Wait:
    """What a pass hears."""
    chosen = frozenset(nodes) or snapshot.names
    return told.said("uid", key, asking(), chosen, snapshot.columns)


def test_a_pass_does_not_wait_for_an_answer() -> None:
    """It hears that there is none yet, and is woken by it; the next one has it."""
    let = threading.Event()

    def slow(_body: Any) -> Any:
        let.wait(30)
        return names("a", b="no")

    stage = Stage(FakePost(filter=slow, prioritize=[]), threads=True, clock=SystemClock())
    told, snapshot = ExtenderDesk((extender(),), stage.services), machines("a", "b")
    try:
        first = ask(told, snapshot)
        assert first == Wait(reason="Extender", message=f"waits for {URL}")
        assert ask(told, snapshot) == first
        let.set()
        assert stage.awake.wait(30)
        said = ask(told, snapshot)
        assert isinstance(said, Said)
        assert said.denied == {"b": "no"}
        assert stage.woken == ["uid"]
    finally:
        let.set()
        told.close()


def test_without_threads_the_answer_is_there_at_once() -> None:
    """As simulations and explanations need it."""
    told = ExtenderDesk((extender(),), Stage(FakePost(filter=names("a"), prioritize=[])).services)
    assert isinstance(ask(told, machines("a", "b")), Said)


def test_a_fresh_answer_serves_fewer_nodes_too() -> None:
    """More nodes, or another shape, are another question."""
    post = FakePost(filter=lambda body: {"Nodes": body["Nodes"]}, prioritize=[])
    told, snapshot = ExtenderDesk((extender(prioritize_verb=""),), Stage(post).services), machines("a", "b", "c")
    for nodes, key, questions in (
        (("a", "b"), b"k", 1),
        (("a",), b"k", 1),
        (("a", "b", "c"), b"k", 2),
        (("a",), b"other", 3),
    ):
        ask(told, snapshot, *nodes, key=key)
        assert len(post.asked) == questions


def test_an_old_answer_is_asked_for_again() -> None:
    """The cluster has changed since; until then the later phases of a pass still have what was said."""
    post = FakePost(filter=names("a"))
    stage = Stage(post)
    told, snapshot = ExtenderDesk((extender(prioritize_verb=""),), stage.services), machines("a", "b")
    ask(told, snapshot)
    stage.clock.advance(desk.FRESH_SECONDS + 1)
    assert told.known("uid", b"k").denied == {"b": wire.UNSAID}
    ask(told, snapshot)
    assert len(post.asked) == 2
    assert told.known("nobody", b"k") == Said()


def test_a_failure_holds_the_workload_and_is_tried_again() -> None:
    """Its message names what happened."""
    post = FakePost(filter=NotAnswered(f"{URL}/filter: timed out"))
    stage = Stage(post)
    told, snapshot = ExtenderDesk((extender(),), stage.services), machines("a")
    expected = Wait(reason="Extender", message=f"{URL}/filter: timed out", retry_after=desk.RETRY_SECONDS)
    assert ask(told, snapshot) == expected
    assert ask(told, snapshot) == expected
    assert len(post.asked) == 1
    stage.clock.advance(desk.RETRY_SECONDS + 1)
    post.answers["filter"] = names("a")
    post.answers["prioritize"] = []
    assert isinstance(ask(told, snapshot), Said)


def test_a_defect_holds_the_workload_as_a_failure_does() -> None:
    """Nobody waits for an answer that never comes."""
    stage = Stage(FakePost(filter=RuntimeError("a bug")))
    waits = ask(ExtenderDesk((extender(),), stage.services), machines("a"))
    assert isinstance(waits, Wait)
    assert waits.message == "extenders could not be asked: RuntimeError: a bug"
    assert stage.woken == ["uid"]


def test_without_an_interested_extender_nobody_is_asked() -> None:
    """And nobody waits."""
    post = FakePost()
    told = ExtenderDesk((extender(managed_resources=("x/gpu",)),), Stage(post).services)
    assert ask(told, machines("a")) == Said()
    assert post.asked == []


def test_a_closed_desk_asks_nobody() -> None:
    """Its workloads wait and are tried again, by the chain that takes its place."""
    told = ExtenderDesk((extender(),), Stage(FakePost(), threads=True).services)
    told.close()
    waits = ask(told, machines("a"))
    assert isinstance(waits, Wait)
    assert waits.retry_after == desk.RETRY_SECONDS


@contextlib.contextmanager
def served(answers: Mapping[str, tuple[int, Any]]) -> Iterator[tuple[str, list[Any]]]:
    """A service on this machine that answers by path, and what it was sent."""
    heard: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            status, answer = answers[self.path]
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/ext/", heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def test_over_real_http_filter_and_scores_arrive() -> None:
    """Through the process's own connections."""
    answers = {
        "/ext/filter": (200, {"nodenames": ["a"], "failedNodes": {"b": "no licence"}, "error": ""}),
        "/ext/prioritize": (200, [{"host": "a", "score": 9}]),
    }
    with served(answers) as (url, heard):
        json_client = JsonClient(SystemClock())
        said = extending.ask((extender(url=url, node_cache_capable=True),), json_client, asking("web"), facts("a", "b"))
        json_client.close()
    assert said.denied == {"b": "no licence"}
    assert said.rows[0].scores == {"a": 9}
    assert [body["NodeNames"] for body in heard] == [["a", "b"], ["a"]]


def test_over_real_http_a_failing_service_is_a_failure() -> None:
    """With its status and address in the message."""
    with served({"/ext/filter": (500, {"error": "broken"})}) as (url, _):
        json_client = JsonClient(SystemClock())
        said = extending.ask((extender(url=url),), json_client, asking(), facts("a"))
        json_client.close()
    assert "500" in said.failure
    assert url.rstrip("/") in said.failure


def test_a_process_that_asks_nobody_says_so() -> None:
    """As `explain --offline`."""
    said = extending.ask((extender(),), services.nowhere, asking(), facts("a"))
    assert "this process asks no service" in said.failure
