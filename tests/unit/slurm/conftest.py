"""Fixtures of the adapter's tests: a token file, clients that wait in virtual time, a mocked slurmrestd."""

import pathlib
import threading
from collections.abc import Iterator

import pytest
import responses

from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.slurm import client, settings
from tests.unit.slurm.samples import URL, MakeClient, Mocked


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
def make(token, clock) -> Iterator[MakeClient]:
    """Makes clients that wait in virtual time."""
    made: list[client.SlurmClient] = []

    def build(url: str = URL, **changes) -> client.SlurmClient:
        known = settings.SlurmSettings(url=url, token_file=token, **changes)
        made.append(client.SlurmClient(known, clock=clock, stop=threading.Event()))
        return made[-1]

    yield build
    for each in made:
        each.close()


@pytest.fixture
def slurm() -> Iterator[Mocked]:
    """A slurmrestd that speaks the newest version and nothing else yet."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as calls:
        yield Mocked(calls)
