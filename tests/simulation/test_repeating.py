"""A failed run of the simulation says how it is repeated."""

import pytest

from tests.simulation import repeat_command

OPTIONS = repeat_command.Options(runs=200, first=31, every_call=True)


@pytest.fixture(autouse=True)
def _order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "4711")


def test_a_random_run_is_repeated_by_its_seed() -> None:
    """And by the order in which Python goes through sets."""
    assert repeat_command.command("tests/simulation/test_chaos.py::test_random_run[761]", 761, OPTIONS) == (
        "PYTHONHASHSEED=4711 .venv/bin/pytest tests/simulation/test_chaos.py::test_random_run --seed 761"
    )


def test_another_case_is_repeated_among_as_many_runs() -> None:
    """Some take as many acts as there are runs."""
    assert repeat_command.command("tests/simulation/test_gangs.py::test_state_machine[3]", None, OPTIONS) == (
        "PYTHONHASHSEED=4711 .venv/bin/pytest 'tests/simulation/test_gangs.py::test_state_machine[3]'"
        " --runs 200 --first-seed 31 --every-call"
    )


def test_a_hash_seed_that_was_not_chosen_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs do not depend on it."""
    monkeypatch.setenv("PYTHONHASHSEED", "random")
    assert repeat_command.command("a.py::test_b[1]", 1, OPTIONS) == ".venv/bin/pytest a.py::test_b --seed 1"
