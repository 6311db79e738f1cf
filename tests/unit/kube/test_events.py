import pytest

from slurm_bridge import ports
from slurm_bridge.kube import events


def a_note(**changes: object) -> ports.Note:
    """A note about a pod."""
    fields = {"kind": "Pod", "api_version": "v1", "namespace": "ns", "name": "a", "uid": "u", "reason": "Why"}
    return ports.Note(**{"message": "words", **fields, **changes})


def test_manifest() -> None:
    """A note becomes an Event that names its object, its reporter and its moment."""
    made = events.manifest(a_note(), wall=1_700_000_000.25, instance="one")
    assert made["eventTime"] == "2023-11-14T22:13:20.250000Z"
    assert made["regarding"] == {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "a", "uid": "u"}
    assert (made["reportingController"], made["reportingInstance"]) == ("slurm-bridge", "one")
    assert (made["type"], made["reason"], made["note"]) == ("Normal", "Why", "words")


def test_warning() -> None:
    """A warning says so."""
    assert events.manifest(a_note(warning=True), wall=0, instance="one")["type"] == "Warning"


def test_cluster_wide_object() -> None:
    """Notes about objects without a namespace go to the default one."""
    assert events.manifest(a_note(namespace=""), wall=0, instance="one")["metadata"]["namespace"] == "default"


@pytest.mark.parametrize("message", ["x" * 3000, "é" * 3000, "x" + "é" * 3000])
def test_long_note(message: str) -> None:
    """A note is cut between characters to what the API takes."""
    note = events.manifest(a_note(message=message), wall=0, instance="one")["note"]
    assert len(note.encode()) <= events.MOST_NOTE
    assert note.endswith("…")
