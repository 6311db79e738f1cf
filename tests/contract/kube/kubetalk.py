"""How contract cases talk to an apiserver, pocket or real: plain HTTP, so that no client hides what the server says."""

import base64
import contextlib
import dataclasses
import itertools
import json
import pathlib
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import urllib3
import yaml

Body = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

#: No scheduler and no kubelet touches what cases create, unless they ask for it.
NOBODY = "nobody-schedules-this"

#: Longer than any case should take on a busy machine.
PATIENCE = 20.0
#: A watch ends after so many seconds, unless it is asked for fewer.
WATCHED = 15


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Status, headers and decoded body."""

    status: int
    body: Body
    headers: Mapping[str, str]

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]


class Talk:
    """A connection to one apiserver as one user."""

    def __init__(self, url: str, pool: urllib3.PoolManager, *, token: str = "") -> None:
        self.url = url
        self._pool = pool
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    @classmethod
    def from_kubeconfig(cls, path: pathlib.Path) -> Self:
        """As the first user of that file."""
        content = yaml.safe_load(path.read_text())
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        files = {
            option: _file(path.parent, holder, field)
            for option, holder, field in (
                ("ca_certs", cluster, "certificate-authority"),
                ("cert_file", user, "client-certificate"),
                ("key_file", user, "client-key"),
            )
        }
        pool = urllib3.PoolManager(**{option: file for option, file in files.items() if file})
        return cls(cluster["server"], pool, token=user.get("token", ""))

    def as_token(self, token: str) -> "Talk":
        """The same server as somebody else; without a token as nobody (client certificates are left at home)."""
        options = {"ca_certs": self._pool.connection_pool_kw.get("ca_certs")}
        return Talk(self.url, urllib3.PoolManager(**options), token=token)

    def ask(
        self, method: str, path: str, body: Any = None, *, media: str = "application/json", **query: object
    ) -> Answer:
        """One call."""
        headers = {**self._headers, "Content-Type": media}
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        fields = urllib.parse.urlencode(query) if query else ""
        target = f"{self.url}{path}{'?' + fields if fields else ''}"
        answer = self._pool.request(method, target, body=data, headers=headers, timeout=PATIENCE, retries=False)
        try:
            decoded = json.loads(answer.data)
        except ValueError:
            decoded = {"text": answer.data.decode()}
        return Answer(status=answer.status, body=decoded, headers=answer.headers)

    @contextlib.contextmanager
    def watching(self, path: str, **query: object) -> Iterator[Iterator[Body]]:
        """A watch whose events come as they happen."""
        fields = urllib.parse.urlencode({"watch": "true", "timeoutSeconds": str(WATCHED), **query})
        timeout = urllib3.Timeout(connect=PATIENCE, read=PATIENCE)
        answer = self._pool.request(
            "GET", f"{self.url}{path}?{fields}", headers=self._headers, preload_content=False, timeout=timeout
        )
        assert answer.status == 200, answer.data
        try:
            yield _lines(answer)
        finally:
            answer.close()

    def watch(self, path: str, count: int, **query: object) -> list[Body]:
        """So many events of a watch."""
        with self.watching(path, **query) as events:
            return list(itertools.islice(events, count))


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[Body]:
    buffer = b""
    for piece in answer.stream(65536):
        *lines, buffer = (buffer + piece).split(b"\n")
        yield from (json.loads(line) for line in lines if line)


def _file(folder: pathlib.Path, holder: Mapping[str, str], field: str) -> str:
    """The name of a file with this part of a kubeconfig, written beside it when it stands inline."""
    if field in holder:
        return holder[field]
    if field + "-data" not in holder:
        return ""
    target = folder / field
    target.touch(mode=0o600)
    target.write_bytes(base64.b64decode(holder[field + "-data"]))
    return str(target)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A namespace for the cases of one module."""

    talk: Talk
    namespace: str

    def path(self, group_version: str, plural: str, *rest: str) -> str:
        """Where a resource is ("v1" is the core group)."""
        root = "/api" if "/" not in group_version else "/apis"
        return "/".join((root, group_version, "namespaces", self.namespace, plural, *rest))

    def pods(self, *rest: str) -> str:
        return self.path("v1", "pods", *rest)

    def pod(self, **changes: Any) -> Answer:
        """A new pod that nobody touches, its name made up."""
        answer = self.talk.ask("POST", self.pods(), pod(**changes))
        assert answer.status == 201, answer.body
        return answer

    def bind(self, name: str, node: str = "no-such-node", **metadata: Any) -> Answer:
        """Ask for a binding."""
        body = {"metadata": {"name": name, **metadata}, "target": {"kind": "Node", "name": node}}
        return self.talk.ask("POST", self.pods(name, "binding"), body)

    def merge(self, path: str, changes: Body) -> Answer:
        """A merge patch."""
        return self.talk.ask("PATCH", path, changes, media=MERGE)

    def apply(self, path: str, manifest: Body, manager: str, **query: object) -> Answer:
        """A server-side apply."""
        return self.talk.ask("PATCH", path, manifest, media=APPLY, fieldManager=manager, **query)

    def now(self) -> str:
        """The version of the room's pods at this moment."""
        return self.talk.ask("GET", self.pods()).version


def pod(*, name: str = "", spec: Body | None = None, **metadata: Any) -> Body:
    """A small pod."""
    inside = {"schedulerName": NOBODY, "containers": [{"name": "main", "image": "pause:1"}], **(spec or {})}
    return {"metadata": {"name": name or fresh("pod"), **metadata}, "spec": inside}


def fresh(stem: str) -> str:
    """A name that nothing has yet."""
    return f"{stem}-{uuid.uuid4().hex[:10]}"


def wait_for(check: Callable[[], Any], what: str) -> Any:
    """The first true answer; fails when there is none for long."""
    end = time.monotonic() + PATIENCE
    while not (found := check()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)
    return found
