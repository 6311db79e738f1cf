"""What the machine has to have is told exactly."""

import pytest

from localcluster import packages
from localcluster.part import PartError

ABSENT = packages.Tool(program="no-such-program", packages=("newer-name", "older-name"))


def test_advice_names_programs_and_packages() -> None:
    """A person learns what is missing, and what to type; no package is named twice."""
    text = packages.advice([packages.DOCKER, packages.DOCKERD, packages.OPENSSL])
    assert "not installed: docker, dockerd, openssl." in text
    assert "apt-get install docker.io openssl " in text


def test_what_is_there_is_not_asked_for() -> None:
    """A program on PATH, or something else that is as good, needs no installation."""
    packages.require(packages.Tool(program="sh", packages=("dash",)))
    packages.require(packages.Tool(program="no-such-program", packages=("x",), otherwise=lambda: True))


def test_people_without_rights_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the right to install, the advice is an error."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(PartError, match=r"no-such-program.*apt-get install older-name"):
        packages.require(ABSENT)


def test_machines_without_apt_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed where the package manager is another one."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PartError, match="not installed: no-such-program"):
        packages.require(ABSENT)
