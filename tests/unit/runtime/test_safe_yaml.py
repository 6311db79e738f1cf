"""YAML of anybody: what it says is plain data, and what it costs is bounded."""

import time

import pytest
import yaml

from slurm_bridge.runtime import safe_yaml
from slurm_bridge.runtime.safe_yaml import NotYaml

#: Texts that end a reader, burn its time or fill its memory, and the line that is to blame.
HOSTILE = {
    "bool": ("a: 1\nb: !!bool maybe\n", 2),
    "date": ("a: !!timestamp 2026-02-30\n", 1),
    "word": ("a: !!int soon\n", 1),
    "base 60": ("a: !!int " + ":".join(["1"] * 1000) + "\n", 1),
    "digits": ("a: " + "9" * 5000 + "\n", 1),
    "deep": ("[" * 3000, 1),
    "deep block": ("\n".join("  " * level + "a:" for level in range(300)), 101),
    "itself": ("a: &a [*a]\n", 1),
    "itself later": ("a: &a\n  b:\n    - *a\n", 3),
    "laughs": ("\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10) if n else 'x'}]" for n in range(12)), 7),
    "deep by aliases": ("\n".join(f"a{n}: &a{n} [{f'*a{n - 1}' if n else 'x'}]" for n in range(200)), 100),
    "nobody": ("a: *nobody\n", 1),
    "key": ("? [a]\n: b\n", 1),
    "set": ("a: !!set {b}\n", 1),
    "python": ("a: !!python/object/apply:os.system ['true']\n", 1),
    "open": ("a: [1,\n", 2),
    "tab": ("a:\n\tb: 1\n", 2),
}


@pytest.mark.security("input")
@pytest.mark.parametrize("name", HOSTILE)
def test_every_text_is_either_read_or_refused_with_its_line(name: str) -> None:
    """No YAML, of a configuration, a queue file or a manifest, ends the daemon or costs more than a moment."""
    text, line = HOSTILE[name]
    began = time.thread_time()
    with pytest.raises(NotYaml) as refused:
        safe_yaml.load(text)
    assert refused.value.line == line
    assert refused.value.what
    assert time.thread_time() - began < 1.0


@pytest.mark.parametrize("text", [b"a: \xff", "a: \ud800", "a: \x00", "x" * (safe_yaml.MOST_BYTES + 1)])
def test_odd_bytes_and_sizes_are_refused(text: str | bytes) -> None:
    """Before anything is read."""
    with pytest.raises(NotYaml):
        safe_yaml.load(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-02-30", "2026-02-30"),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("1:30", "1:30"),
        ("1:30.5", "1:30.5"),
        (":".join(["1"] * 100_000), ":".join(["1"] * 100_000)),
    ],
)
def test_dates_and_numbers_of_base_60_stay_text(text: str, value: object) -> None:
    """Nobody means them, and they cost what their text costs."""
    began = time.thread_time()
    assert safe_yaml.load(f"a: {text}") == {"a": value}
    assert time.thread_time() - began < 1.0


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb: -17\nc: 0x1F\nd: 0b11\ne: 017\nf: 1_000",
        "a: 1.5\nb: .5\nc: 1.0e+3\nd: -.inf\ne: 1e3",
        "a: yes\nb: No\nc: on\nd: ~\ne: null\nf: true",
        "a: '1'\nb: \"x\"\nc: |\n  y\n",
        "base: &b {x: 1}\nmore:\n  <<: *b\n  y: 2\nlist: [*b, *b]",
        "!!str 7",
        "!!float 3",
        "!!int '12'",
        "",
        "--- {}\n",
    ],
)
def test_everything_else_means_what_it_has_always_meant(text: str) -> None:
    """Booleans, null, octal numbers, anchors and merged keys."""
    assert safe_yaml.load(text) == yaml.safe_load(text)


def test_several_documents_are_read_likewise() -> None:
    """Empty ones are left out."""
    assert safe_yaml.documents("a: 1\n---\n---\nb: 2026-02-30\n") == [{"a": 1}, {"b": "2026-02-30"}]


def test_aliases_of_strangers_are_not_taken() -> None:
    """They are told what to write."""
    with pytest.raises(NotYaml, match=r"line 2: YAML aliases are not taken, write \*a out"):
        safe_yaml.load("a: &a 1\nb: *a\n", aliases=False)


def test_nodes_know_their_lines() -> None:
    """For messages about a key."""
    [(node, value)] = safe_yaml.composed("a: 1\nb: 2\n")
    assert isinstance(node, yaml.MappingNode)
    assert ([key.start_mark.line for key, _ in node.value], value) == ([0, 1], {"a": 1, "b": 2})
