"""Of a pod that a family of hooks holds the explanation says which one, why, and what nodes it would be offered."""

import http.server
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from slurm_bridge.demo import pocket
from slurm_bridge.explain import text
from slurm_bridge.explain.explanation import Explanation
from tests.component.explain import explained

Explain = Callable[..., Explanation]

HOST = "kubernetes.io/hostname"


def hooks(*configured: Mapping[str, Any]) -> str:
    """The override that configures these beside those that are always there."""
    return f"hooks={json.dumps(configured)}"


def kube(**options: Any) -> str:
    """kube-scheduler's hook with these options."""
    return hooks({"name": "kube-scheduler", "options": options})


def vela(**options: Any) -> str:
    """Vela's."""
    return hooks({"name": "vela", "options": options})


def near(app_: str) -> dict[str, Any]:
    """Affinity to pods of this application."""
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app_}}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def preferring(*nodes: str) -> dict[str, Any]:
    """Affinity that would rather have these nodes."""
    match = {"matchExpressions": [{"key": HOST, "operator": "In", "values": nodes}]}
    preferred = [{"weight": 10, "preference": match}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


class Server:
    """A service on loopback that answers every question with the same, and keeps what it was asked."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.asked: list[tuple[str, Any]] = []
        outer, body = self, json.dumps(answer).encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                said = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.asked.append((self.path, said))
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """The log is not read."""

        self._server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        """It answers no longer."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[[Mapping[str, Any]], Server]]:
    """Services that end with the test."""
    made: list[Server] = []

    def start(answer: Mapping[str, Any]) -> Server:
        made.append(Server(answer))
        return made[-1]

    yield start
    for one in made:
        one.close()


def shown(found: Explanation, *, verbose: bool = False) -> str:
    """As people read it."""
    return text.render(found, verbose=verbose)


# -- kube-scheduler --------------------------------------------------------------------------------------------------


def test_an_impossible_predicate_holds_the_pod_with_its_sentence(explain: Explain) -> None:
    """The condition's own words, the hook by name, and the nodes by reason."""
    found = explain(explained.pod(affinity=near("database")), kube())
    assert found.status == 3
    assert "kube-scheduler" in found.held_by
    assert found.obstacle is not None
    assert "node(s) didn't match pod affinity rules" in found.obstacle.message
    (reasons,) = found.reasons
    assert len(reasons.excluded["node(s) didn't match pod affinity rules"]) == 9
    assert "hook kube-scheduler" in shown(found).splitlines()[2]


def test_a_hook_that_took_no_node_does_not_hold_the_pod(explain: Explain) -> None:
    """Eligibility has ruled all of them out before the predicates were asked."""
    assert explain(explained.pod(nodeSelector={"disk": "ssd"}), kube()).held_by == ("eligibility",)


def test_nobody_holds_a_pod_that_would_be_submitted(explain: Explain) -> None:
    """Though nodes were ruled out."""
    found = explain(explained.pod(), kube())
    assert (found.status, found.held_by) == (0, ())
    assert "held by" not in shown(found)


def test_what_no_hook_honours_holds_the_pod_by_its_field(explain: Explain) -> None:
    """The same words as on the pod."""
    found = explain(explained.pod(affinity=near("database")))
    assert found.status == 3
    assert found.obstacle is not None
    assert found.obstacle.reason == "NotHonoured"
    assert "needs hook kube-scheduler" in found.obstacle.message
    assert "NotHonoured" in shown(found)
    assert explain(explained.pod(affinity=near("database")), "unhonoured=ignore").status == 0
    offline = explain(explained.pod(affinity=near("database")), offline=True)
    assert (offline.status, offline.obstacle) == (3, found.obstacle)
    assert explain(explained.pod(affinity=near("database")), kube(), offline=True).status == 0


def test_scores_are_shown_as_a_matrix(explain: Explain) -> None:
    """A row for each priority with its weight, and the sum."""
    found = explain(explained.pod(affinity=preferring("ext003")), kube())
    matrix = found.matrices["kube-scheduler"]
    (affinity,) = (row for row in matrix.rows if row.name == "NodeAffinity")
    assert (affinity.scores["ext003"], affinity.scores["ext001"]) == (10, 0)
    assert matrix.combined["ext003"] == matrix.combined["ext001"] + 10
    assert "scores of kube-scheduler" in shown(found)
    assert text.document(found, verbose=False)["scores"]["kube-scheduler"]["combined"]["ext003"] > 0


def test_tiers_are_shown_as_attempts(explain: Explain) -> None:
    """The best first, then more, in the end every node."""
    found = explain(explained.pod(affinity=preferring("ext003")), kube(first_tier=1, widen_after_seconds=7))
    first, *_, last = found.tries
    assert (first.nodes, first.seconds, first.now) == (frozenset({"ext003"}), 7.0, True)
    assert (last.nodes, last.seconds, last.now) == (None, None, False)
    assert "tier 1  1 node: ext003, for 7 s after Slurm has considered the job (now)" in shown(found)
    machine = text.document(found, verbose=False)["attempts"]
    assert [one["nodes"] for one in (machine[0], machine[-1])] == [["ext003"], None]


def test_one_attempt_is_none_to_show(explain: Explain) -> None:
    """All nodes are offered at once."""
    found = explain(explained.pod())
    assert found.tries == ()
    assert "attempts" not in shown(found)


def test_an_extender_is_asked_and_its_words_are_told(explain: Explain, serve: Callable[..., Server]) -> None:
    """Within the explanation, as the daemon would ask it beside the passes."""
    extender = serve({"nodenames": [], "failedNodes": {"ext001": "no licence here"}})
    options = {"url": extender.url, "filter_verb": "filter", "node_cache_capable": True}
    found = explain(explained.pod(), kube(extenders=[options]))
    assert [path for path, _ in extender.asked] == ["/filter"]
    (reasons,) = found.reasons
    assert reasons.excluded["no licence here"] == {"ext001"}
    assert found.held_by[-1] == "kube-scheduler"


def test_an_extender_that_does_not_answer_holds_the_pod(explain: Explain, serve: Callable[..., Server]) -> None:
    """By its address, which an operator can look at."""
    gone = serve({})
    gone.close()
    found = explain(explained.pod(), kube(extenders=[{"url": gone.url, "filter_verb": "filter"}]))
    assert found.obstacle is not None
    assert (found.obstacle.reason, found.held_by) == ("Extender", ("kube-scheduler",))
    assert gone.url in found.obstacle.message


# -- vela ------------------------------------------------------------------------------------------------------------


def test_vela_samples_for_the_explanation(explain: Explain) -> None:
    """The pod would be submitted with what was drawn; operators see which agent answered."""
    found = explain(explained.pod(), vela(nodes_bp=10_000, strategy="round-robin"))
    assert found.status == 0
    assert [one.name for one in found.tries] == ["candidate 1", "candidate 2", "candidate 3", "any"]
    assert "sampled nodes are left, from local" in shown(found, verbose=True)


def test_a_sample_without_any_node_says_so_and_what_all_nodes_lack(explain: Explain) -> None:
    """Vela holds it, and what the others say of all nodes is shown beneath."""
    found = explain(explained.pod(nodeSelector={"disk": "ssd"}), vela())
    assert found.obstacle is not None
    assert (found.obstacle.reason, found.held_by) == ("Unschedulable", ("vela",))
    assert "no node of local" in found.obstacle.message
    (reasons,) = found.reasons
    assert sum(map(len, reasons.excluded.values())) == 10
    assert any("the other hooks were asked about all nodes" in note for note in found.notes)


def test_agents_that_do_not_answer_are_named(explain: Explain, serve: Callable[..., Server]) -> None:
    """All of them failed, which is none of the pod's doing."""
    gone = serve({})
    gone.close()
    found = explain(explained.pod(), vela(agents=[{"name": "east", "url": gone.url}]))
    assert found.obstacle is not None
    assert (found.obstacle.reason, found.held_by) == ("AgentsUnavailable", ("vela",))
    assert "agent east" in found.obstacle.message
    assert found.status == 3


def test_an_agent_is_asked_and_its_node_is_the_candidate(explain: Explain, serve: Callable[..., Server]) -> None:
    """By the path of its strategy, with the pod."""
    node = {"node": {"metadata": {"name": "ext002"}}, "samplingScore": {"accumulated": 90, "plugins": 1}}
    agent = serve({"nodes": [node]})
    found = explain(explained.pod(), vela(agents=[{"name": "east", "url": agent.url}]))
    ((path, said),) = agent.asked
    assert (path, said["podInfo"]["pod"]["metadata"]["name"]) == ("/v1/samples/random", "a")
    assert found.tries[0].nodes == frozenset({"ext002"})


def test_an_agent_that_hangs_does_not_silence_the_others(explain: Explain, serve: Callable[..., Server]) -> None:
    """They are asked one after the other here, each with its own deadline."""
    with socket.create_server(("127.0.0.1", 0)) as hangs:
        east = {"name": "east", "url": f"http://127.0.0.1:{hangs.getsockname()[1]}", "timeout_seconds": 0.2}
        west = {"name": "west", "url": serve({"nodes": [{"node": {"metadata": {"name": "ext002"}}}]}).url}
        agents = [east, {**west, "timeout_seconds": 30}]
        found = explain(explained.pod(), vela(agents=agents, clusters_percent=100))
    assert found.tries[0].nodes == frozenset({"ext002"})
    assert "from west; agent east is left out" in shown(found, verbose=True)


def test_what_agents_name_that_is_of_no_use_is_told(explain: Explain, serve: Callable[..., Server]) -> None:
    """A node of another cluster; the last look at all nodes here finds none either."""
    agent = serve({"nodes": [{"node": {"metadata": {"name": "elsewhere"}}}]})
    found = explain(explained.pod(nodeSelector={"disk": "ssd"}), vela(agents=[{"name": "east", "url": agent.url}]))
    assert found.obstacle is not None
    assert "none of 1 sampled nodes is left: 1 were not a node of this cluster" in found.obstacle.message


# -- all -------------------------------------------------------------------------------------------------------------


def test_all_families_together_are_explained(explain: Explain) -> None:
    """The scores of one, the candidates of the other."""
    chain = ({"name": "vela", "options": {"nodes_bp": 10_000}}, {"name": "kube-scheduler"}, {"name": "preemption"})
    found = explain(explained.pod(), hooks(*chain))
    assert found.status == 0
    assert "kube-scheduler" in found.matrices
    assert found.tries[0].name.startswith("candidate ")


def test_offline_no_family_asks_anybody(explain: Explain, serve: Callable[..., Server]) -> None:
    """Neither agents nor extenders."""
    service = serve({})
    chain = (
        {"name": "vela", "options": {"agents": [{"name": "east", "url": service.url}]}},
        {"name": "kube-scheduler", "options": {"extenders": [{"url": service.url, "filter_verb": "filter"}]}},
    )
    found = explain(explained.pod(), hooks(*chain), offline=True)
    assert (found.status, service.asked) == (0, [])


def test_offline_hooks_that_choose_nodes_are_named_under_what_is_to_know(explain: Explain) -> None:
    """The policy is asked as always."""
    chain = ({"name": "policy"}, {"name": "eligibility"}, {"name": "kube-scheduler"})
    found = explain(explained.pod(), hooks(*chain), offline=True)
    assert "offline: not asked about nodes and capacity: hook eligibility, hook kube-scheduler" in found.notes
    assert not any("policy" in note for note in found.notes)
    assert not any("not asked" in note for note in explain(explained.pod(), hooks(*chain)).notes)


def test_an_explanation_changes_nothing_in_slurm_and_leaves_no_thread(
    explain: Explain, world: pocket.PocketWorld
) -> None:
    """What hooks do beside the passes they do within it."""
    before, jobs = set(threading.enumerate()), dict(world.slurmctld.control.jobs())
    explain(explained.pod(), hooks({"name": "vela"}, {"name": "kube-scheduler"}))
    assert world.slurmctld.control.jobs().keys() == jobs.keys()
    ours = {one for one in threading.enumerate() if one.name.startswith(("vela", "extenders"))}
    assert not ours - before
