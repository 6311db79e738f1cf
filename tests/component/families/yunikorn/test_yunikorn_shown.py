"""The queues as they are shown: as values, as text, as metrics, and over HTTP."""

import json
import pathlib

import pytest
import responses
import yaml

from slurm_bridge import cli, errors
from slurm_bridge.cli import queue_client
from slurm_bridge.daemon import queue_view
from slurm_bridge.families.yunikorn import text
from slurm_bridge.telemetry.metrics import Metrics
from slurm_bridge.web.administration import CheckedConfiguration
from slurm_bridge.web.routes import Request, RouteTable
from tests.component.families.yunikorn.yunikorn_scenes import Queues, document, queue
from tests.component.scheduler.whole_core import Bridge

URL = "http://127.0.0.1:8080"


@pytest.fixture
def shown(tmp_path: pathlib.Path) -> Queues:
    """One runs, one waits, and one was refused."""
    limited = {"guaranteed": {"vcore": "1"}, "max": {"vcore": "2"}}
    made = Queues(Bridge(tmp_path), queue("a", resources=limited), queue("b"))
    made.pod("runs", cpu="2")
    made.bridge.run(3)
    made.pod("waits")
    made.pod("lost", "root.nowhere")
    made.bridge.run(3)
    return made


def test_the_tree_has_what_is_used_of_what(shown: Queues) -> None:
    """With those who wait, and why."""
    found = shown.hook.picture()
    assert found is not None
    first, second = found["queues"]["queues"]
    assert (first["path"], first["running"], first["waiting"]) == ("root.a", 1, 1)
    assert (first["used"]["vcore"], first["max"], first["guaranteed"]) == (2000, {"vcore": 2000}, {"vcore": 1000})
    assert first["pending"]["vcore"] == 1000
    assert second["used"] == {}
    (waiting,) = found["waiting"]
    assert waiting["workload"].endswith("/waits")
    assert "root.a uses 2 of 2 vcore" in waiting["why"]


def test_who_was_refused_is_listed_with_the_reason(shown: Queues) -> None:
    """By the workload's own name."""
    found = shown.hook.picture()
    assert found is not None
    (rejected,) = found["rejected"]
    assert rejected["application"].endswith("/lost")
    assert "root.nowhere does not exist" in rejected["reason"]


def test_people_see_a_tree(shown: Queues) -> None:
    """A line for each queue, then those who wait."""
    found = shown.hook.picture()
    assert found is not None
    said = "\n".join(text.lines(found))
    assert "mode local, partition default, ahead in Slurm 0 of 16" in said
    assert "vcore 2" in next(line for line in said.splitlines() if line.startswith("  a "))
    assert "waiting:\n" in said
    assert "rejected:\n" in said


def test_an_application_is_shown_with_its_asks(shown: Queues) -> None:
    """How many of them were let in, and which one waits; one pod alone is no line of its own."""
    for name in ("one", "two"):
        shown.pod(name, "root.b" if name == "one" else "root.B", labels={"applicationId": "app-1"})
        shown.bridge.run(2)
    shown.pod("three", "root.b", cpu="20", labels={"applicationId": "app-1"})
    shown.configure(queue("a"), queue("b", resources={"max": {"vcore": "21"}}))
    shown.bridge.run(3)
    found = shown.hook.picture()
    assert found is not None
    first = next(one for one in found["applications"] if one["application"] == "default/app-1")
    assert (first["queue"], first["runs"], first["waits"]) == ("root.b", 2, 1)
    assert first["user"] == "system:serviceaccount:default:default"
    lines = list(text.lines(found))
    assert lines[lines.index("applications:") + 1 :][:1] == ["  default/app-1  root.b: 2 let in, 1 waits"]
    assert any(line.startswith("  default/three of default/app-1  root.b: queue root.b uses") for line in lines)


def test_the_door_has_a_page(shown: Queues) -> None:
    """The same, as JSON."""
    table = RouteTable(queue_view.routes(lambda: shown.bridge.core.context.config.chain, str))
    reply = table.answer(Request(method="GET", path="/queues"))
    assert json.loads(reply.body) == json.loads(json.dumps(shown.hook.picture()))


def test_without_queues_the_page_says_so(shown: Queues) -> None:
    """It is there all the same: configuration may bring some."""
    table = RouteTable(queue_view.routes(lambda: shown.base.chain, str))
    reply = table.answer(Request(method="GET", path="/queues"))
    assert reply.status == 404
    assert b"there are no queues" in reply.body


def test_a_replica_that_does_not_lead_names_the_one_that_does() -> None:
    """It has no queues to show, although the configuration has some."""
    table = RouteTable(queue_view.routes(lambda: None, lambda: "this replica is not the leader: ask bridge-7"))
    reply = table.answer(Request(method="GET", path="/queues"))
    assert (reply.status, reply.body) == (503, b"this replica is not the leader: ask bridge-7\n")


def test_each_queue_has_metrics(shown: Queues) -> None:
    """Those of a queue that is gone are gone."""
    metrics = Metrics()
    queue_view.refresh(metrics, shown.bridge.core.context.config.chain)
    page = metrics.page()[0].decode()
    assert 'slurm_bridge_queue_used{queue="root.a",resource="vcore"} 2000.0' in page
    assert 'slurm_bridge_queue_waiting{queue="root.a"} 1.0' in page
    queue_view.refresh(metrics, shown.base.chain)
    assert "root.a" not in metrics.page()[0].decode()


def test_a_file_is_checked_without_a_daemon(tmp_path: pathlib.Path) -> None:
    """By the same rules, one line for each problem."""
    file = tmp_path / "queues.yaml"
    file.write_text("partitions: [{name: default, queues: [{name: root, queues: [{name: 'a b'}]}]}]")
    assert "a b" in queue_client.check(file).problems[0]
    file.write_text("partitions: [{name: default, queues: [{name: root, queues: [{name: a}]}]}]")
    assert queue_client.check(file) == CheckedConfiguration(problems=())


def test_a_warning_is_shown_and_keeps_no_file_from_being_used(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command succeeds."""
    file = tmp_path / "queues.yaml"
    file.write_text(yaml.safe_dump(document(queue("a", properties={"colour": "red"}))))
    assert cli.main(["queues", "validate", str(file)]) == 0
    warning, good = capsys.readouterr().out.splitlines()
    assert warning.startswith("warning: partitions[0].queues[0].queues[0].properties.colour: of queue root.a is no")
    assert good == f"{file}: nothing is wrong"


def test_a_name_with_several_places_is_checked_as_the_hook_is_configured(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file does not say it."""
    file = tmp_path / "queues.yaml"
    file.write_text(yaml.safe_dump(document(queue("test"), queue("parent", queue("test")))))
    assert cli.main(["queues", "validate", str(file)]) == 1
    assert "[queue_place]" in capsys.readouterr().out
    assert cli.main(["queues", "validate", "--several-places", str(file)]) == 0


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((404, b"there are no queues"), errors.NotFound),
        ((200, b"[]"), errors.BadAnswer),
        ((200, b"nonsense"), errors.BadAnswer),
        ((503, b"this replica is not the leader"), errors.Unavailable),
        ((500, b""), errors.BadAnswer),
    ],
)
def test_a_door_without_queues_is_told_apart(answer: tuple[int, bytes], error: type[Exception]) -> None:
    """From one that answers nonsense."""
    status, body = answer
    with responses.RequestsMock() as door:
        door.get(f"{URL}{queue_view.PATH}", status=status, body=body)
        with pytest.raises(error):
            queue_client.ask(URL)


@responses.activate
def test_the_command_shows_the_tree(shown: Queues, capsys: pytest.CaptureFixture[str]) -> None:
    """And, for machines, what the door said."""
    body = json.dumps(shown.hook.picture()).encode()
    responses.get(f"{URL}{queue_view.PATH}", body=body)
    assert cli.main(["queues", "--url", URL]) == 0
    assert "root.a uses 2 of 2 vcore" in capsys.readouterr().out
    assert cli.main(["queues", "--url", URL, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(body)


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://x:port"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """With what is allowed."""
    with pytest.raises(errors.BadConfiguration, match="--url"):
        queue_client.ask(url)
