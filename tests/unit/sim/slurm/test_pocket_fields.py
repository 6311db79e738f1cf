"""How leniently, and how strictly, the JSON of a job is read."""

from typing import Any

import pytest

from slurm_bridge.sim.slurm import fields


def read(version: str = "v0.0.45", **body: Any) -> fields.ReadFields:
    """Read the fields of a submit."""
    return fields.read(body, where="#/job/", version=version)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ({"tasks": 2}, 2),
        ({"tasks": "2"}, 2),
        ({"tasks": 1.5}, 1),
        ({"time_limit": 5}, 5),
        ({"time_limit": {"set": True, "number": 5}}, 5),
        ({"time_limit": {"infinite": True}}, None),
        ({"name": 5}, "5"),
        ({"hold": "yes"}, True),
        ({"hold": "false"}, False),
        ({"required_nodes": "a,b"}, ["a,b"]),
        ({"required_nodes": {"x": 1}}, ["1"]),
        ({"shared": ["none"]}, ["none"]),
        ({"shared": ["exclusive"]}, ["none"]),
        ({"flags": ["EXTERNAL_JOB", "WHAT"]}, ["EXTERNAL_JOB"]),
    ],
)
def test_values_are_cast(body: dict[str, Any], value: Any) -> None:
    """What can be understood is."""
    reading = read(**body)
    assert reading.values == {next(iter(body)): value}
    assert not reading.void


@pytest.mark.parametrize(
    ("body", "numbers"),
    [
        ({"tasks": "abc"}, []),
        ({"tasks": None}, []),
        ({"name": {"a": 1}}, []),
        ({"nodes": {"a": 1}}, [9202]),
        ({"nodes": "abc"}, [9202]),
        ({"time_limit": "abc"}, [9202]),
    ],
)
def test_values_that_make_all_void(body: dict[str, Any], numbers: list[int]) -> None:
    """Nothing is done then, whether or not there is an error to show for it."""
    reading = read(**body)
    assert reading.void
    assert [error.number for error in reading.errors] == numbers


def test_a_number_that_is_not_set_says_nothing() -> None:
    """As if it had been left out."""
    assert read(time_limit={"set": False, "number": 5}).values == {}


def test_wrong_types_are_named() -> None:
    """In the words of both notations, with the place."""
    (warning,) = read(tasks="2").warnings
    assert "format=int32" in warning.description
    assert 'Slurm type=string): "2"' in warning.description
    assert warning.source == "#/job/tasks/"


def test_unknown_fields_are_ignored_with_a_warning() -> None:
    """What a later version knows is unknown to an earlier one."""
    assert "Ignoring unknown field" in read(no_such_field=1).warnings[0].description
    assert read(version="v0.0.43", step_id={}).warnings
    assert not read(version="v0.0.44", step_id={}).warnings
