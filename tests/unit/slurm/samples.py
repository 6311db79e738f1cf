"""What the tests of the adapter are made of: requests, answers, and a mocked address that says what it is told."""

import json
import pathlib
from collections.abc import Callable

import responses

from slurm_bridge.model.job import JobRequest, Memory
from slurm_bridge.model.marks import Owner
from slurm_bridge.slurm import client, transport

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


def answer(body: object, status: int = 200, content_type: str = "application/json") -> transport.Answer:
    """An answer with this JSON, or with this very text."""
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return transport.Answer(status=status, body=raw, content_type=content_type)


def problem(number: int, words: str = "words") -> dict[str, object]:
    """One entry of `errors`."""
    return {"description": words, "error_number": number, "error": words, "source": "somewhere"}


def recorded(version: str, name: str) -> transport.Answer:
    """An answer of a real slurmrestd, trimmed."""
    kept = json.loads((RECORDED / f"{version}.json").read_text())[name]
    return answer(kept["body"], kept["status"], kept["content_type"])


class Mocked:
    """The mocked address, in the newest version."""

    def __init__(self, calls: responses.RequestsMock) -> None:
        self.mock = calls
        self.says("GET", "/ping/", {"pings": [{"hostname": "c", "responding": True}]})

    def says(self, method: str, path: str, body: object, status: int = 200, version: str = "v0.0.45", **more) -> None:
        text = body if isinstance(body, str | Exception) else json.dumps(body)
        more.setdefault("content_type", "application/json")
        self.mock.add(method, f"{URL}/slurm/{version}{path}", body=text, status=status, **more)

    def asked(self, method: str, path: str) -> list[bytes]:
        """The bodies of the calls to this path."""
        sent = [call.request for call in self.mock.calls]
        return [each.body for each in sent if each.method == method and each.path_url.split("/", 3)[3] == path[1:]]
