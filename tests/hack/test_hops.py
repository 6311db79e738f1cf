"""hack/hops.py: which modules a call goes through."""

import importlib
import pathlib
import sys

import hops
import pytest

ONE = """
from followed import two


class Cycle:
    def step(self, times):
        self.again(times)
        return [two.ask(self) for _ in range(times)]

    def again(self, times):
        pass

    def answer(self):
        return 1


def outside():
    two.ask(Cycle())
"""
TWO = """
from followed.sim import server


def ask(cycle):
    return sorted([2, 1], key=lambda one: kept(one, cycle))


def kept(one, cycle):
    return server.ask(cycle.answer)
"""
SERVER = """
def ask(answer):
    return answer()
"""


@pytest.fixture
def followed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A package of two modules, and a stand-in for a server."""
    for name, text in {"__init__": "", "one": ONE, "two": TWO, "sim/__init__": "", "sim/server": SERVER}.items():
        file = tmp_path / "followed" / f"{name}.py"
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("followed")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def test_each_change_of_module_is_a_hop(followed: pathlib.Path) -> None:
    """Calls inside a module are none, calls back into the first one are, and so are those that a library or a
    stand-in makes.
    """
    one = importlib.import_module("followed.one")
    with hops.Hops("followed.one:Cycle.step", followed) as seen:
        one.Cycle().step(1)
        one.outside()
        one.Cycle().step(2)
    assert seen.calls == [
        {"followed/two.py": 1, "followed/one.py": 2},
        {"followed/two.py": 2, "followed/one.py": 4},
    ]
    assert list(hops.report([*seen.calls, seen.calls[-1]])) == [
        "call 1: 2 modules, 3 hops",
        "call 2 to 3: 2 modules, 6 hops",
        "visits of the longest:",
        "     4 followed/one.py",
        "     2 followed/two.py",
    ]


def test_nothing_is_followed_afterwards(followed: pathlib.Path) -> None:
    """Tests that follow are not slowed down."""
    before = sys.getprofile()
    with hops.Hops("followed.one:Cycle.step", followed):
        assert sys.getprofile() is not before
    assert sys.getprofile() is None
