"""What a route is asked, and which route is asked: by method and path, of which segments may be free."""

import dataclasses
import http
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, unquote

from slurm_bridge.web.replies import Reply


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One whole request. Header names are in lower case; `names` holds what stands in the free segments of the path.

    Headers, query and body stay out of its repr: tokens travel in them.
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

#: By method and path; a segment `{name}` of a path stands for any one segment. `GET` answers `HEAD` too.
Routes = Mapping[tuple[str, str], Route]


class Table:
    """Finds the route of a request; a path without free segments comes before one that has some."""

    def __init__(self, routes: Routes) -> None:
        self._paths = sorted({path for _, path in routes})
        self._routes = dict(routes)
        self._plain = {path for path in self._paths if "{" not in path}
        self._free = [(path, path.split("/")) for path in self._paths if path not in self._plain]

    def answer(self, request: Request) -> Reply:
        """Of the route, or that there is none."""
        path, names = self._found(request.path)
        if not path:
            known = ", ".join(self._paths)
            return Reply.text(f"nothing here; there is {known}\n", http.HTTPStatus.NOT_FOUND)
        route = self._routes.get(("GET" if request.method == "HEAD" else request.method, path))
        if route is None:
            status = http.HTTPStatus.METHOD_NOT_ALLOWED
            return Reply.text(f"{status.phrase}\n", status, allow=", ".join(self._allowed(path)))
        return route(dataclasses.replace(request, path=unquote(request.path), names=names))

    def _found(self, asked: str) -> tuple[str, Mapping[str, str]]:
        """The path as it was registered, and what its free segments hold."""
        if asked in self._plain:
            return asked, {}
        segments = asked.split("/")
        for path, pattern in self._free:
            names = _matched(pattern, segments)
            if names is not None:
                return path, names
        return "", {}

    def _allowed(self, path: str) -> list[str]:
        methods = {method for method, known in self._routes if known == path}
        return sorted(methods | ({"HEAD"} if "GET" in methods else set()))


def bounded(routes: Routes, most: int) -> Routes:
    """The same, for bodies of at most so many bytes: a door has one bound for all that it serves, the largest."""

    def within(route: Route) -> Route:
        def answer(request: Request) -> Reply:
            if len(request.body) <= most:
                return route(request)
            words = f"the body has {len(request.body)} bytes, allowed are {most}"
            status = http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            return Reply.json({"reason": "TooLarge", "message": words}, status)

        return answer

    return {key: within(route) for key, route in routes.items()}


def query(text: str) -> Mapping[str, str]:
    """The part behind the question mark; of a name given twice the last value counts."""
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
