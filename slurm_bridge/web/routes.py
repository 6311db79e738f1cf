"""Requests, and the table of routes: by method and path; segments of a path may be variable."""

import dataclasses
import http
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, unquote

from slurm_bridge.web.replies import Reply


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A complete request. Header names are in lower case; `names` has the values of the path's variable segments.

    Headers, query and body are not in the repr, because they can contain tokens.
    """

    method: str
    path: str
    query: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    body: bytes = dataclasses.field(default=b"", repr=False)
    client: str = ""
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)


#: Makes the answer to a request.
Route = Callable[[Request], Reply]

#: By method and path; a segment `{name}` matches any one segment. `GET` also answers `HEAD`.
Routes = Mapping[tuple[str, str], Route]


class RouteTable:
    """Finds the route of a request; a fixed path comes before one with variable segments."""

    def __init__(self, routes: Routes) -> None:
        self._paths = sorted({path for _, path in routes})
        self._routes = dict(routes)
        self._plain = {path for path in self._paths if "{" not in path}
        self._free = [(path, path.split("/")) for path in self._paths if path not in self._plain]

    def answer(self, request: Request) -> Reply:
        """The answer of the route; 404 or 405 without one."""
        path, names = self._found(request.path)
        if not path:
            known = ", ".join(self._paths)
            return Reply.text(f"nothing here; there is {known}\n", http.HTTPStatus.NOT_FOUND)
        route = self._routes.get(("GET" if request.method == "HEAD" else request.method, path))
        if route is None:
            status = http.HTTPStatus.METHOD_NOT_ALLOWED
            methods = {method for method, known in self._routes if known == path}
            allowed = sorted(methods | ({"HEAD"} if "GET" in methods else set()))
            return Reply.text(f"{status.phrase}\n", status, allow=", ".join(allowed))
        return route(dataclasses.replace(request, path=unquote(request.path), names=names))

    def _found(self, asked: str) -> tuple[str, Mapping[str, str]]:
        """The registered path that matches, and the values of its variable segments."""
        if asked in self._plain:
            return asked, {}
        segments = asked.split("/")
        for path, pattern in self._free:
            names = _matched(pattern, segments)
            if names is not None:
                return path, names
        return "", {}


def bounded(routes: Routes, most: int) -> Routes:
    """The same routes with their own limit for bodies; the server's limit is the largest of all its routes."""

    def within(route: Route) -> Route:
        def answer(request: Request) -> Reply:
            if len(request.body) <= most:
                return route(request)
            words = f"the body has {len(request.body)} bytes; at most {most} are allowed"
            status = http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            return Reply.json({"reason": "TooLarge", "message": words}, status)

        return answer

    return {key: within(route) for key, route in routes.items()}


def query(text: str) -> Mapping[str, str]:
    """Parse a query string; if a name occurs twice, its last value counts."""
    return dict(parse_qsl(text, keep_blank_values=True))


def _matched(pattern: list[str], segments: list[str]) -> Mapping[str, str] | None:
    if len(pattern) != len(segments):
        return None
    names: dict[str, str] = {}
    for wanted, given in zip(pattern, segments, strict=True):
        if wanted.startswith("{") and wanted.endswith("}") and given:
            names[wanted[1:-1]] = unquote(given)
        elif wanted != given:
            return None
    return names
