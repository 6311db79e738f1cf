"""Manifests are read as kubectl reads them, and what is none is named with its source."""

import pytest

from slurm_bridge import errors
from slurm_bridge.kube import manifests

POD = {"kind": "Pod", "metadata": {"name": "a"}}


def test_empty_documents_are_passed_over() -> None:
    """A file often begins with a separator."""
    text = "---\n---\nkind: Pod\nmetadata: {name: a}\n---\nkind: Job\nmetadata: {name: b}\n"
    assert [one["kind"] for one in manifests.documents(text, "f")] == ["Pod", "Job"]


def test_a_list_is_its_items() -> None:
    """What `kubectl get --output yaml` writes; JSON is YAML."""
    text = '{"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "a"}}]}'
    assert manifests.documents(text, "f") == (POD,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [\n", r"f: line 2: is not YAML"),
        ("a: \x00", r"f: is not YAML"),
        ("just text", r"f: .*has no kind"),
        ("kind: 7", r"f: .*has no kind"),
        ("kind: Pod", r"f: Pod has no metadata"),
        ("{kind: List, items: [7]}", r"f: .*has no kind"),
    ],
)
def test_what_is_no_manifest_is_refused_with_its_place(text: str, words: str) -> None:
    """The line, where the parser knows it."""
    with pytest.raises(errors.BadConfiguration, match=words):
        manifests.documents(text, "f")


def test_a_file_without_objects_is_nothing() -> None:
    """Whoever asked says what that means."""
    assert manifests.documents("# nothing\n", "f") == ()
