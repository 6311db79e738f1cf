"""What the tests of the adapter are made of: requests, answers, and a mocked address that says what it is told."""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Mapping

from slurm_bridge.model.job import JobRequest, Memory
from slurm_bridge.model.marks import Owner
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.runtime.http import messages
from slurm_bridge.sim import wire
from slurm_bridge.slurm import client
from tests.direct_line import Line
from tests.direct_pool import DirectPool

URL = "http://slurm.test:6820"
VERSIONS = ("v0.0.43", "v0.0.44", "v0.0.45")
RECORDED = pathlib.Path(__file__).parent / "recorded"

MakeClient = Callable[..., client.SlurmClient]


def owner(uid: str = "uid-1") -> Owner:
    """The owner of every sample."""
    return Owner(cluster="c", kind="Job", namespace="ns", name="train", uid=uid)


def request(**changes) -> JobRequest:
    """The smallest request, with changes."""
    return JobRequest(**({"name": "train", "owner": owner(), "memory": Memory(mib=500)} | changes))


def answer(body: object, status: int = 200, content_type: str = "application/json") -> messages.HttpAnswer:
    """An answer with this JSON, or with this very text."""
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return messages.HttpAnswer(status=status, body=raw, content_type=content_type)


def problem(number: int, words: str = "words") -> dict[str, object]:
    """One entry of `errors`."""
    return {"description": words, "error_number": number, "error": words, "source": "somewhere"}


def recorded(version: str, name: str) -> messages.HttpAnswer:
    """An answer of a real slurmrestd, trimmed."""
    kept = json.loads((RECORDED / f"{version}.json").read_text())[name]
    return answer(kept["body"], kept["status"], kept["content_type"])


Said = str | bytes | wire.Response | Mapping[str, object] | Exception | Callable[[], "Said"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """What is said to calls of one kind; a path with a query is for that query alone."""

    method: str
    path: str
    said: Said
    status: int
    content_type: str

    def suits(self, asked: wire.Request) -> bool:
        """Whether this call is meant."""
        return asked.method == self.method and self.path == (asked.target if "?" in self.path else asked.path)

    def answer(self) -> wire.Response:
        """Say it; an exception is how the call ends."""
        said = self.said() if callable(self.said) else self.said
        if isinstance(said, Exception):
            raise said
        if isinstance(said, wire.Response):
            return said
        text = said if isinstance(said, str | bytes) else json.dumps(said)
        body = text.encode() if isinstance(text, str) else text
        return wire.Response(status=self.status, body=body, content_type=self.content_type)


class Script:
    """A slurmrestd in this very process that says what it is told, of several lines for one call each once, in order;
    the last is said for ever. It begins with the newest version's ping.
    """

    def __init__(self) -> None:
        self.calls: list[wire.Request] = []
        self._lines: list[_Line] = []
        self.says("GET", "/ping/", {"pings": [{"hostname": "c", "responding": True}]})

    def says(
        self,
        method: str,
        path: str,
        said: Said,
        status: int = 200,
        *,
        version: str = "v0.0.45",
        content_type: str = "application/json",
    ) -> None:
        """Add a line."""
        path = f"/slurm/{version}{path}"
        self._lines.append(_Line(method=method, path=path, said=said, status=status, content_type=content_type))

    def forgets(self, path: str) -> None:
        """Take back every line for this path."""
        self._lines = [line for line in self._lines if not line.path.endswith(path)]

    def asked(self, method: str, path: str) -> list[bytes]:
        """The bodies of the calls to this path, with whatever query."""
        return [call.body for call in self.calls if call.method == method and call.path.split("/", 3)[3] == path[1:]]

    def pool(self, clock: VirtualClock) -> DirectPool:
        """The way to it."""
        return DirectPool(Line(self._answer, clock=clock))

    def _answer(self, asked: wire.Request) -> wire.Response:
        self.calls.append(asked)
        suitable = [line for line in self._lines if line.suits(asked)]
        if not suitable:
            raise AssertionError(f"nobody was told what to say to {asked.method} {asked.target}")
        if len(suitable) > 1:
            self._lines.remove(suitable[0])
        return suitable[0].answer()
