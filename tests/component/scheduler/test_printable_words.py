"""What users write is quoted in messages and named in Slurm: never with characters that a terminal obeys."""

import json
from collections.abc import Iterator

import pytest

from slurm_bridge.model import kinds, names, texts
from slurm_bridge.model.verdict import Reject, Wait
from tests.component.scheduler.whole_core import Bridge

ESC = "a\x1b[31m\nJOBID fake\x9b\u202e\r"


def said(bridge: Bridge) -> Iterator[str]:
    """Every condition and event that there is, and every text of every job."""
    for pod in bridge.kube.list(kinds.PODS):
        yield from (one.get("message", "") for one in pod["status"].get("conditions", ()))
    yield from (one.get("note", "") for one in bridge.kube.list(kinds.EVENTS))
    for job in bridge.jobs():
        yield job.ask.name
        yield job.ask.text("comment")


@pytest.mark.security("rights")
@pytest.mark.parametrize(
    "changes",
    [
        {"annotations": {names.GROUP: ESC, names.GROUP_SIZE: "1"}},
        {"annotations": {names.GROUP: "g" * 60_000, names.GROUP_SIZE: "1"}},
        {"annotations": {names.GROUP: "g", names.GROUP_SIZE: ESC}},
        {"annotations": {names.JOB_PREFIX + "job-name": ESC}},
        {"annotations": {names.JOB_PREFIX + "partition": ESC}},
        {"annotations": {"kai.scheduler/topology-required-placement": ESC}},
        {"annotations": {names.JOB_PREFIX + "licenses": f"matlab{ESC}"}},
        {"ownerReferences": [{"apiVersion": "x.example/v9", "kind": ESC, "name": ESC, "uid": "u", "controller": True}]},
        {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": ESC, "uid": "u", "controller": True}]},
    ],
    ids=lambda changes: json.dumps(changes)[:40],
)
def test_nothing_that_a_terminal_obeys_is_repeated(bridge: Bridge, changes: dict[str, object]) -> None:
    """Control characters of users reach neither a job's name nor any message, and long texts are cut."""
    bridge.slurm.control.pause()
    bridge.pod("a", **changes)
    bridge.run(40)
    texts = list(said(bridge))
    assert any(texts), "somebody said something"
    assert not [one for one in texts if not one.isprintable() or len(one) > 1100]


def test_pods_of_a_group_without_a_proper_name_wait(bridge: Bridge) -> None:
    """Their condition says what is allowed; the name is no job's."""
    bridge.pod("a", annotations={names.GROUP: "x\ny", names.GROUP_SIZE: "1"})
    bridge.run(5)
    reason, message = bridge.condition("a")
    assert reason == "GroupNameInvalid"
    assert message == (f'Pod default/a: {names.GROUP}="x?y": use printable characters of at most 255 bytes')
    assert not bridge.jobs()


def test_a_group_may_have_any_name_that_can_be_printed(bridge: Bridge) -> None:
    """As it could before."""
    bridge.pod("a", annotations={names.GROUP: "die Gruppe ä", names.GROUP_SIZE: "1"})
    bridge.until(lambda: bridge.node_of("a"))


@pytest.mark.parametrize("kind", [Wait, Reject])
def test_an_obstacle_says_only_what_can_be_printed(kind: type[Wait] | type[Reject]) -> None:
    """Wherever it is shown afterwards."""
    assert kind(reason="X", message="a\x1bb\nc").message == "a?b?c"
    assert kind(reason="X", message="größer").message == "größer"


def test_a_value_is_shown_by_its_beginning() -> None:
    """On one line."""
    assert texts.shown("a\tb") == "a?b"
    assert texts.shown("x" * 61) == "x" * 60 + "..."
    assert texts.shown("x" * 60) == "x" * 60
