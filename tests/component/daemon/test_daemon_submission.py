"""Pods handed in to a running daemon, against the pocket world over HTTP, with tokens that may do this and that."""

import contextlib
import http.client
import json
import pathlib
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from loguru import logger

from slurm_bridge import app, errors
from slurm_bridge.demo import pocket
from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from slurm_bridge.sim.kube.access import AccessRule, User
from tests import wait
from tests.component.daemon.running import NAMESPACE, Running, configuration, running

SAID = names.JOB_PREFIX
ON = {"web": {"submission": {"enabled": True}}}
MAKES_PODS = (AccessRule(verbs=("create",), resources=("pods",), namespaces=(NAMESPACE,)),)

Answer = tuple[int, Mapping[str, str], Any]


class Desk:
    """A client of a daemon's HTTP server."""

    def __init__(self, daemon: Running) -> None:
        self.daemon = daemon

    def token(self, name: str, *rules: AccessRule) -> str:
        """A new one, for a user of this name."""
        token = secrets.token_urlsafe(24)
        self.daemon.world.kube.access.grant(token, User(name=name, rules=rules, uid=f"uid-{name}"))
        return token

    def send(self, body: str | bytes | Mapping[str, Any], token: str = "") -> Answer:
        """Status, headers, and what the JSON says."""
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.daemon.server.port, timeout=20)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with contextlib.closing(connection):
            sent = json.dumps(body) if isinstance(body, Mapping) else body
            connection.request("POST", "/pods", body=sent, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, json.loads(answer.read())

    def number(self, name: str) -> float:
        """What the metrics say, 0 where they do not."""
        lines = (line.rpartition(" ") for line in self.daemon.get("/metrics")[1].splitlines())
        return next((float(value) for key, _, value in lines if key == f"slurm_bridge_{name}"), 0.0)


def pod(name: str, *, annotations: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod of one CPU that names no scheduler."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "100Mi"}}}
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": dict(annotations or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A daemon that takes pods in, ready; each test has pods of its own."""
    file = tmp_path_factory.mktemp("handing") / "bridge.yaml"
    with pocket.world(nodes=4) as world, running(world, file, **ON) as made:
        made.until_ready()
        yield Desk(made)


@pytest.fixture
def log() -> Iterator[list[str]]:
    """Every line that is logged meanwhile, however fine."""
    lines: list[str] = []
    sink = logger.add(lines.append, level=0, format="{message} {extra} {exception}", backtrace=True, diagnose=True)
    yield lines
    logger.remove(sink)


def test_a_pod_that_is_handed_in_is_scheduled(desk: Desk) -> None:
    """It is created for our scheduler and gets its node from Slurm like any other; the answer names it."""
    before = desk.number('submissions_total{status="201"}')
    status, _, said = desk.send(pod("handed"), desk.token("maker", *MAKES_PODS))
    stored = desk.daemon.world.kube.get(kinds.PODS, NAMESPACE, "handed")
    assert stored is not None
    assert (status, said) == (201, {"namespace": NAMESPACE, "name": "handed", "uid": stored["metadata"]["uid"]})
    assert stored["spec"]["schedulerName"] == names.SCHEDULER_NAME
    wait.until(lambda: desk.daemon.bound("handed"), "a node", 20, every=0.02)
    assert desk.number('submissions_total{status="201"}') == before + 1
    wait.until(lambda: desk.number("submissions_pending") == 0, "an empty buffer", 10, every=0.02)


def test_a_caller_without_the_right_is_told_so_by_the_api_server(desk: Desk) -> None:
    """The daemon's own rights, which are an administrator's here, are of no use to its callers."""
    status, _, said = desk.send(pod("refused"), desk.token("weak"))
    assert (status, said["reason"]) == (403, "Forbidden")
    assert 'User "weak" cannot create resource "pods"' in said["message"]
    assert desk.daemon.world.kube.get(kinds.PODS, NAMESPACE, "refused") is None


@pytest.mark.parametrize("token", ["", "made-up", "not a token", "ü"])
def test_without_a_good_token_nothing_is_read(desk: Desk, token: str) -> None:
    """401 says how to ask."""
    status, headers, said = desk.send(b"{", token)
    assert (status, headers["www-authenticate"], said["reason"]) == (401, "Bearer", "Unauthorized")


def test_a_name_is_taken_once(desk: Desk) -> None:
    """409, in the API server's words."""
    token = desk.token("maker", *MAKES_PODS)
    assert desk.send(pod("twice"), token)[0] == 201
    status, _, said = desk.send(pod("twice"), token)
    assert (status, said["reason"], said["name"]) == (409, "AlreadyExists", "twice")
    assert 'pods "twice" already exists' in said["message"]


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (pod("wrong", annotations={f"{SAID}timelimit": "soon"}), f'annotation {SAID}timelimit="soon"'),
        (pod("wrong", annotations={f"{SAID}colour": "red"}), f'annotation {SAID}colour="red"'),
        (pod("wrong", annotations={f"{SAID}min-nodes": "4"}), "one pod cannot span nodes: use 1"),
        (pod("wrong", annotations={f"{SAID}timelimit": 5}), "5 has to be a string: put it in quotes"),
        (pod("wrong", annotations={names.GROUP: "g", names.GROUP_SIZE: "many"}), f"{names.GROUP_SIZE}='many'"),
        (pod("wrong", schedulerName="default-scheduler"), "spec.schedulerName: 'default-scheduler', use"),
        (pod("wrong", nodeName="node-1"), "spec.nodeName: 'node-1', leave it out"),
        ({**pod("wrong"), "kind": "Job"}, "kind: 'Job', use Pod"),
        (pod("wrong", containers=[{"name": "a", "resources": {"requests": {"cpu": "x"}}}]), "container a: cpu: 'x'"),
        ({**pod("wrong"), "spec": {"containers": {}}}, "spec.containers: expected `array`, got `object`"),
        ({**pod("wrong"), "spec": {}}, "spec.containers: Required value"),
        ({"kind": "Pod", "spec": {}}, "metadata: is required"),
        ("[1]", "has to be one object"),
        ("kind: [", "is not YAML: did not find expected node content"),
        ('{"kind": ', "is not JSON"),
        ("a: &a [1]\nb: *a", "aliases are not taken"),
        ("[" * 100_000, "nested too deeply"),
        (b"\xff\xfe\xff", "is not UTF-8"),
        ("? {a: b}\n: c", "line 1: is not YAML: found unhashable key"),
        ("null: c", "is not YAML that could be JSON"),
    ],
)
def test_what_is_wrong_is_told_in_words_that_name_the_field(desk: Desk, manifest: Any, words: str) -> None:
    """Ours, the translator's, or the API server's; nothing is created."""
    status, _, said = desk.send(manifest, desk.token("maker", *MAKES_PODS))
    assert (status, said["reason"]) == (400, "Invalid")
    assert words in said["message"]
    assert desk.daemon.world.kube.get(kinds.PODS, NAMESPACE, "wrong") is None


def test_yaml_is_taken_too(desk: Desk) -> None:
    """As people write it; without a namespace it is `default`, and a name may be a stem."""
    text = "kind: Pod\nmetadata: {generateName: made-, labels: null}\nspec:\n  containers: [{name: a, image: b}]\n"
    status, _, said = desk.send(text, desk.token("maker", *MAKES_PODS))
    assert (status, said["namespace"]) == (201, "default")
    assert said["name"].startswith("made-")
    assert len(said["name"]) == len("made-") + 5


def test_members_of_groups_are_judged_by_themselves(desk: Desk) -> None:
    """How many nodes a group may have is said where the whole group is known."""
    many = {f"{SAID}min-nodes": "4"}
    maker = desk.token("maker", *MAKES_PODS)
    ours = pod("ours", annotations={names.GROUP: "g", names.GROUP_SIZE: "4", **many})
    theirs = pod("theirs", annotations=many)
    theirs["metadata"]["labels"] = {names.LABEL_COSCHEDULING: "group"}
    assert [desk.send(one, maker)[0] for one in (ours, theirs)] == [201, 201]


def test_a_lost_answer_is_not_taken_for_a_failure(desk: Desk) -> None:
    """504 names the pod: it exists, and a second submission says so."""
    desk.daemon.world.kube_calls.plan(faults.Drop(), method="POST", target=r"/namespaces/default/pods(\?|$)")
    maker = desk.token("maker", *MAKES_PODS)
    status, _, said = desk.send(pod("lost"), maker)
    assert (status, said["reason"], said["name"], said["namespace"]) == (504, "Unknown", "lost", NAMESPACE)
    assert "may have been created" in said["message"]
    assert desk.send(pod("lost"), maker)[0] == 409


def test_a_token_is_in_no_log_and_in_no_answer(desk: Desk, log: list[str]) -> None:
    """Neither a good one nor a bad one, nor a part of it, whatever happens."""
    good, weak = desk.token("maker", *MAKES_PODS), desk.token("weak")
    answers = [desk.send(pod("a"), good), desk.send(pod("b"), weak), desk.send(pod("c"), "made-up-token-words")]
    desk.daemon.world.kube_calls.plan(faults.Answer(status=500, body=b"oh"), target="tokenreviews")
    answers += [desk.send(pod("d"), good), desk.send("{", good), desk.send(pod("a"), good)]
    assert [status for status, _, _ in answers] == [201, 403, 401, 503, 400, 409]
    told = "".join(log) + repr(answers)
    assert "maker" in told
    assert not [token for token in (good, weak, "made-up-token-words") if token[:12] in told]


def test_nothing_is_taken_in_unless_the_configuration_says_so(tmp_path: pathlib.Path) -> None:
    """Off by default: there is no such page."""
    with pocket.world(nodes=1) as world, running(world, tmp_path / "bridge.yaml") as made:
        made.until_ready()
        connection = http.client.HTTPConnection("127.0.0.1", made.daemon.server.port, timeout=20)
        with contextlib.closing(connection):
            connection.request("POST", "/pods", body="{}")
            assert connection.getresponse().status == 404


def test_tokens_do_not_travel_in_the_open(tmp_path: pathlib.Path) -> None:
    """A configuration that would let them is refused before anything listens."""
    with pocket.world(nodes=1) as world:
        made = configuration(world, tmp_path / "bridge.yaml", **ON)
        opened = app.Configuration(path=made.path, environ={}, overrides=(*made.overrides, "web.host=0.0.0.0"))
        with pytest.raises(errors.BadConfiguration, match=r"web\.submission: needs web\.tls"):
            opened.load()
