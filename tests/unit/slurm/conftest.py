"""Fixtures of the adapter's tests: a token file, clients that wait in virtual time, a scripted slurmrestd."""

import pathlib
import threading
from collections.abc import Iterator

import pytest

from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.slurm import client, dialogue, settings
from tests.unit.slurm.samples import URL, MakeClient, Script


@pytest.fixture
def token(tmp_path) -> pathlib.Path:
    """A token file."""
    path = tmp_path / "token"
    path.write_text("SLURM_JWT=first.secret.token\n")
    return path


@pytest.fixture
def clock() -> VirtualClock:
    """Time that only waiting moves."""
    return VirtualClock()


@pytest.fixture
def slurm() -> Script:
    """A slurmrestd that speaks the newest version and nothing else yet."""
    return Script()


@pytest.fixture
def make(token, clock, slurm) -> Iterator[MakeClient]:
    """Makes clients that wait in virtual time: of the scripted slurmrestd, or of a real address."""
    made: list[client.SlurmClient] = []

    def build(url: str = URL, **changes) -> client.SlurmClient:
        known = settings.SlurmSettings(url=url, token_file=token, **changes)
        way = dialogue.pool if url != URL else lambda _: slurm.pool(clock)
        made.append(client.SlurmClient(known, clock=clock, stop=threading.Event(), connect=way))
        return made[-1]

    yield build
    for each in made:
        each.close()
