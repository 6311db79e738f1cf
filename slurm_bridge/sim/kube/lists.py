"""Lists: selectors, and pages that all show the same moment."""

import base64
import binascii
import bisect
import dataclasses
from collections.abc import Iterable

import msgspec

from slurm_bridge.sim import http
from slurm_bridge.sim.kube import refusals, selectors
from slurm_bridge.sim.kube.store import Compacted, ObjectStore, StoredObject, StoreSnapshot
from slurm_bridge.sim.kube.views import ResourceView

_TOO_OLD = "The resourceVersion for the provided list is too old."
_PAGE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class _Token(msgspec.Struct, frozen=True):
    """A continue token as the real server writes it; `start` is the key of the last object of the previous page."""

    v: str
    rv: int
    start: str


_tokens = msgspec.json.Decoder(_Token)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which objects a list or a watch asks for."""

    view: ResourceView
    namespace: str | None
    name: str = ""
    selector: selectors.Selector

    def accepts(self, stored: StoredObject) -> bool:
        """Whether the query selects the object."""
        if self.namespace is not None and stored.namespace != self.namespace:
            return False
        if self.name and stored.name != self.name:
            return False
        return self.selector.accepts(stored.labels, stored.fields)


def query(view: ResourceView, namespace: str | None, request: http.Request, name: str = "") -> Query:
    """Read the selectors of a request."""
    selector = selectors.parse(view.resource.key, request.asked("labelSelector"), request.asked("fieldSelector"))
    return Query(view=view, namespace=namespace, name=name, selector=selector)


def answer(store: ObjectStore, asked: Query, request: http.Request) -> bytes:
    """One page, or everything."""
    limit = number("limit", request)
    token = request.asked("continue")
    exact = request.asked("resourceVersionMatch")
    version = version_of(request)
    if exact and not request.asked("resourceVersion"):
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise _options_refused(refusals.forbidden_value("resourceVersionMatch", why))
    if token:
        snapshot, after = _continued(store, asked, _decode(token))
        return _page(asked, snapshot, limit, after)
    if version > store.version:
        raise refusals.from_the_future(version, store.version)
    if exact == "Exact":
        try:
            recalled = store.recall(asked.view.resource, version)
        except Compacted:
            raise refusals.expired(_TOO_OLD) from None
        return _page(asked, recalled, limit)
    # A list from the cache (version 0) comes as a whole, whatever the limit.
    return _page(asked, store.snapshot(asked.view.resource), 0 if request.asked("resourceVersion") == "0" else limit)


def number(name: str, request: http.Request) -> int:
    """A number in the query parameters."""
    text = request.asked(name, "0")
    if not text.lstrip("-").isdigit():
        raise refusals.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def version_of(request: http.Request) -> int:
    """The requested resourceVersion; an invalid one gets a plain error, as from the real server."""
    text = request.asked("resourceVersion") or "0"
    if not text.isdigit():
        problem = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise refusals.plain_error(f'resourceVersion: Invalid value: "{text}": {problem}')
    return int(text)


def _options_refused(cause: refusals.StatusCause) -> refusals.StatusError:
    details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": [cause.shown()]}
    message = f'ListOptions.meta.k8s.io "" is invalid: {cause.field}: {cause.message}'
    return refusals.StatusError(422, "Invalid", message, details)


def initial_events_refused() -> refusals.StatusError:
    """A streamed list requires resourceVersionMatch."""
    why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    return _options_refused(refusals.forbidden_value("resourceVersionMatch", why))


def _continued(store: ObjectStore, asked: Query, token: _Token) -> tuple[StoreSnapshot, str]:
    if token.rv < 0:
        return store.snapshot(asked.view.resource), token.start
    if token.rv > store.version:
        raise refusals.from_the_future(token.rv, store.version)
    try:
        return store.recall(asked.view.resource, token.rv), token.start
    except Compacted:
        raise refusals.expired(_PAGE_TOO_OLD, go_on=_encode(-1, token.start)) from None


def _page(asked: Query, snapshot: StoreSnapshot, limit: int, after: str = "") -> bytes:
    items = _within(asked.namespace, snapshot.items)
    if after:
        items = items[bisect.bisect_right(items, _key(asked, after), key=_place) :]
    found = _matching(asked, items, limit)
    metadata: dict[str, object] = {"resourceVersion": str(snapshot.version)}
    if limit and len(found) > limit:
        metadata["continue"] = _encode(snapshot.version, _start(asked, found[limit - 1]))
        if asked.selector.everything:
            metadata["remainingItemCount"] = len(items) - limit
    return asked.view.show_list(found[:limit] if limit else found, metadata)


def _place(item: StoredObject) -> tuple[str, str]:
    return item.key


def _within(namespace: str | None, items: tuple[StoredObject, ...]) -> tuple[StoredObject, ...]:
    """The objects of one namespace; they are adjacent."""
    if namespace is None:
        return items
    first = bisect.bisect_left(items, (namespace, ""), key=_place)
    return items[first : bisect.bisect_left(items, (namespace + "\0", ""), key=_place)]


def _matching(asked: Query, items: Iterable[StoredObject], limit: int) -> list[StoredObject]:
    """The first matching objects: one more than the limit, to know whether there is another page."""
    found = []
    for item in items:
        if asked.accepts(item):
            found.append(item)
            if limit and len(found) > limit:
                break
    return found


def _start(asked: Query, last: StoredObject) -> str:
    if asked.namespace is None and asked.view.resource.namespaced:
        return f"/{last.namespace}/{last.name}\0"
    return f"/{last.name}\0"


def _key(asked: Query, start: str) -> tuple[str, str]:
    path = start.strip("/\0").rpartition("/")
    return path[0] or asked.namespace or "", path[2]


def _encode(version: int, start: str) -> str:
    token = _Token(v="meta.k8s.io/v1", rv=version, start=start)
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decode(text: str) -> _Token:
    try:
        token = _tokens.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError) as problem:
        raise refusals.bad_request(f"invalid continue token: continue key is not valid: {problem}") from None
    if ".." in token.start.split("/"):
        raise refusals.bad_request(f"invalid continue token: continue key is not valid: {token.start}")
    return token
