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


@pytest.mark.parametrize("body", [b'{"kind": "Pod"}', b"kind: Pod\n", b"---\nkind: 'Pod'\n", b"{kind: Pod}"])
def test_what_is_handed_in_may_be_json_or_yaml(body: bytes) -> None:
    """As its sender likes; one that begins like JSON is taken for it."""
    if body.startswith(b"{k"):
        with pytest.raises(errors.BadConfiguration, match="is not JSON"):
            manifests.handed_in(body)
    else:
        assert manifests.handed_in(body) == {"kind": "Pod"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "has to be one object"),
        (b"[]", "has to be one object"),
        (b"a: 1\n---\nb: 2\n", "line 2: is not YAML: but found another document"),
        (b"a: &x 1\nb: *x\n", "aliases are not taken"),
        (b"a: !!python/object/apply:os.system [x]\n", "could not determine a constructor"),
        (b"a: [\n", "is not YAML"),
        (b"a: \x00", "is not YAML"),
        (b"\xff", "is not UTF-8"),
        (b"null: 1", "is not YAML that could be JSON: TypeError"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "nested too deeply"),
        (b"- " * 100_000, "nested too deeply"),
        (b"a: " + b"[" * 101 + b"]" * 101, "nested too deeply"),
    ],
)
def test_what_cannot_be_one_object_is_refused_in_words(body: bytes, words: str) -> None:
    """Whatever it was meant to do to us."""
    with pytest.raises(errors.BadConfiguration, match=words):
        manifests.handed_in(body)


def test_times_and_other_values_of_yaml_become_json() -> None:
    """A date that stands there without quotes is a text to the API server."""
    found = manifests.handed_in(b"a: 2026-01-02\nb: 0x10\nc: yes\nd: !!binary aGk=\n")
    assert found == {"a": "2026-01-02", "b": 16, "c": True, "d": "aGk="}
