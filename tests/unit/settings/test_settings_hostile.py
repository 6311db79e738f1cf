"""Configuration files that YAML's library cannot take."""

import pathlib

import pytest

from slurm_bridge.settings import sources

ODD = {
    "a: 1\nb: !!bool maybe\n": "bridge.yaml:2: is not YAML: 'maybe' is no bool",
    "[" * 3000: "bridge.yaml:1: is not YAML: is nested too deeply; at most 100 levels are allowed",
    "a: &a [*a]\n": "bridge.yaml:1: is not YAML: *a holds itself",
}


@pytest.mark.security("input")
@pytest.mark.parametrize("text", ODD)
def test_a_file_that_ends_the_library_is_a_problem_with_its_line(tmp_path: pathlib.Path, text: str) -> None:
    """Every error in the configuration is reported with its file and line."""
    file = tmp_path / "bridge.yaml"
    file.write_text(text)
    problems = sources.file(file).problems
    assert [str(one).removeprefix(f"{tmp_path}/") for one in problems] == [ODD[text]]


def test_a_date_that_is_none_is_a_text(tmp_path: pathlib.Path) -> None:
    """What it means is for the key to say."""
    file = tmp_path / "bridge.yaml"
    file.write_text("since: 2026-02-30\n")
    source = sources.file(file)
    assert (dict(source.tree.values), list(source.problems)) == ({"since": "2026-02-30"}, [])
    source = sources.environment({"SLURM_BRIDGE__SINCE": "2026-02-30"})
    assert (dict(source.tree.values), list(source.problems)) == ({"since": "2026-02-30"}, [])
