"""Which route a request comes to."""

import pytest

from slurm_bridge.web import routes
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request, Route, RouteTable


def says(word: str) -> Route:
    """A route that answers its word and what stands in the free segments."""
    return lambda request: Reply.text(f"{word} {dict(request.names)} {request.path}")


TABLE = RouteTable(
    {
        ("GET", "/pods"): says("all"),
        ("POST", "/pods"): says("new"),
        ("GET", "/pods/{name}"): says("one"),
        ("GET", "/pods/status"): says("status"),
        ("PUT", "/pods/{name}/{part}"): says("part"),
    }
)


def ask(method: str, path: str) -> Reply:
    """The answer of the table."""
    return TABLE.answer(Request(method=method, path=path))


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        ("GET", "/pods", "all {} /pods"),
        ("HEAD", "/pods", "all {} /pods"),
        ("POST", "/pods", "new {} /pods"),
        ("GET", "/pods/a", "one {'name': 'a'} /pods/a"),
        ("GET", "/pods/a%2Fb%20c", "one {'name': 'a/b c'} /pods/a/b c"),
        ("GET", "/pods/status", "status {} /pods/status"),
        ("PUT", "/pods/a/b", "part {'name': 'a', 'part': 'b'} /pods/a/b"),
    ],
)
def test_method_and_path_choose(method: str, path: str, said: str) -> None:
    """A segment in braces stands for any one segment; one that is written out comes first."""
    assert ask(method, path).body.decode() == said


@pytest.mark.parametrize("path", ["/", "", "/pod", "/pods/", "/pods/a/b/c", "//pods", "/pods//b"])
def test_a_path_that_is_not_there_is_not_found(path: str) -> None:
    """An empty segment is none, and nothing is guessed."""
    reply = ask("GET", path)
    assert reply.status == 404
    assert b"/pods/{name}/{part}" in reply.body


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("DELETE", "/pods", "GET, HEAD, POST"), ("GET", "/pods/a/b", "PUT"), ("POST", "/pods/a", "GET, HEAD")],
)
def test_another_method_is_told_the_right_ones(method: str, path: str, allowed: str) -> None:
    """Of this path alone."""
    reply = ask(method, path)
    assert (reply.status, reply.headers["Allow"]) == (405, allowed)


def test_a_query_is_read_by_name() -> None:
    """Decoded; the last of several values counts, an empty one is one."""
    assert routes.query("a=1&b=x%20y&a=2&c=") == {"a": "2", "b": "x y", "c": ""}


def test_a_request_shows_no_token() -> None:
    """Not in headers, query or body."""
    secret = {"authorization": "Bearer s3cret"}
    request = Request(method="GET", path="/a", query={"token": "s3cret"}, headers=secret, body=b"s3cret")
    assert "s3cret" not in repr(request)
    assert "'/a'" in repr(request)


def test_a_header_cannot_begin_another() -> None:
    """Whatever a route puts into one."""
    with pytest.raises(ValueError, match="characters that cannot be sent"):
        Reply.text("x", allow="GET\r\nSet-Cookie: a")
