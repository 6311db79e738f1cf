"""The API over HTTP: maps requests to verbs on objects, and writes the answers."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from slurm_bridge import ports
from slurm_bridge.sim import http
from slurm_bridge.sim.kube import access, discovery, lists, pods, refusals, resources, watch, writes
from slurm_bridge.sim.kube.objects import Objects, ObjectTarget
from slurm_bridge.sim.kube.views import ResourceView

_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
_HEALTH = ("/healthz", "/livez", "/readyz")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCall:
    """A request for objects with its path parsed; no namespace means all of them."""

    request: http.Request
    view: ResourceView
    namespace: str | None = None
    name: str = ""
    subresource: str = ""

    @property
    def target(self) -> ObjectTarget:
        return ObjectTarget(
            resource=self.view.resource,
            namespace=self.namespace or "",
            name=self.name,
            subresource=self.subresource,
        )


class Api:
    """Answers requests."""

    def __init__(
        self,
        objects: Objects,
        clock: ports.Clock,
        views: Mapping[tuple[str, str, str], ResourceView],
        users: access.TokenUsers,
    ) -> None:
        self._objects = objects
        self._clock = clock
        self._views = views
        self._users = users

    def handle(self, request: http.Request) -> http.Response:
        """Answer one request; a refusal is answered with a Status."""
        try:
            return self._answer(request)
        except refusals.StatusError as refusal:
            wait = (refusal.details or {}).get("retryAfterSeconds")
            headers = {"Retry-After": str(wait)} if wait else {}
            return http.Response(status=refusal.code, body=msgspec.json.encode(refusal.status()), headers=headers)

    def _answer(self, request: http.Request) -> http.Response:
        user = self._users.user(request.headers)
        if request.path in _HEALTH:
            return http.Response(body=b"ok", content_type="text/plain; charset=utf-8")
        call = self._call(request)
        if call is None:
            return _json(200, discovery.answer(request.path, self._views))
        if call.view.resource == resources.ACCESS_REVIEWS:
            return self._review_access(user, call)
        verb, act = self._verb(call)
        self._users.check(
            user,
            access.Deed(
                verb=verb,
                resource=call.view.resource,
                subresource=call.subresource,
                namespace=call.namespace or "",
                name=call.name,
            ),
        )
        return act(call)

    def _call(self, request: http.Request) -> ObjectCall | None:
        """None for pages about the API itself."""
        match request.path.strip("/").split("/"):
            case ["api", version, first, *rest]:
                return self._call_for(request, self._view("", version, first, *rest), first, *rest)
            case ["apis", group, version, first, *rest]:
                return self._call_for(request, self._view(group, version, first, *rest), first, *rest)
        return None

    def _view(self, group: str, version: str, *parts: str) -> ResourceView:
        match parts:
            case ["namespaces", _, ("status" | "finalize")]:
                plural = "namespaces"
            case ["namespaces", _, plural, *_] | [plural, *_]:
                pass
        view = self._views.get((group, version, plural))
        if view is None:
            raise refusals.no_such_page()
        return view

    def _call_for(self, request: http.Request, view: ResourceView, *parts: str) -> ObjectCall:
        namespace = None
        if view.resource.namespaced and parts[0] == "namespaces":
            namespace, parts = parts[1], parts[2:]
        match parts[1:]:
            case []:
                return ObjectCall(request=request, view=view, namespace=namespace)
            case [name]:
                return ObjectCall(request=request, view=view, namespace=namespace, name=name)
            case [name, subresource]:
                return ObjectCall(request=request, view=view, namespace=namespace, name=name, subresource=subresource)
        raise refusals.no_such_page()

    def _verb(self, call: ObjectCall) -> tuple[str, Callable[[ObjectCall], http.Response]]:
        method = call.request.method
        if call.subresource not in ("", "status"):
            return "create", self._special(call)
        if not call.name:
            return self._collection_verb(call, method)
        verbs: dict[str, tuple[str, Callable[[ObjectCall], http.Response]]] = {
            "GET": ("get", self._get),
            "PUT": ("update", functools.partial(self._write, writes.replace)),
            "PATCH": ("patch", functools.partial(self._write, writes.change)),
            "DELETE": ("delete", self._delete),
        }
        if method not in verbs or (call.subresource and not call.view.resource.has_status):
            raise refusals.no_such_page()
        return verbs[method]

    def _collection_verb(self, call: ObjectCall, method: str) -> tuple[str, Callable[[ObjectCall], http.Response]]:
        watching = call.request.asked("watch") in ("true", "1")
        verbs: dict[str, tuple[str, Callable[[ObjectCall], http.Response]]] = {
            "GET": ("watch", self._watch) if watching else ("list", self._list),
            "POST": ("create", self._create),
            "DELETE": ("deletecollection", self._delete_all),
        }
        if call.view.resource == resources.TOKEN_REVIEWS:
            verbs = {"POST": ("create", self._review)}
        if method not in verbs:
            raise refusals.method_not_allowed()
        return verbs[method]

    def _special(self, call: ObjectCall) -> Callable[[ObjectCall], http.Response]:
        doors = {"binding": pods.bind, "eviction": pods.evict}
        if call.view.resource.key != "pods" or call.request.method != "POST" or call.subresource not in doors:
            raise refusals.no_such_page()
        return functools.partial(self._through, doors[call.subresource])

    def _through(self, door: Callable[[Objects, str, str, dict[str, Any]], None], call: ObjectCall) -> http.Response:
        body = writes.decoded(call.request.body, call.subresource.capitalize())
        door(self._objects, call.namespace or "", call.name, body)
        return _json(201, {**_SUCCESS, "code": 201})

    def _get(self, call: ObjectCall) -> http.Response:
        return http.Response(body=call.view.show(self._objects.existing(call.target)))

    def _list(self, call: ObjectCall) -> http.Response:
        asked = lists.query(call.view, call.namespace, call.request)
        return http.Response(body=lists.answer(self._objects.store, asked, call.request))

    def _watch(self, call: ObjectCall) -> http.Response:
        asked = lists.query(call.view, call.namespace, call.request)
        watching = watch.WatchStream(self._objects.store, self._clock, asked, call.request)
        return http.Response(body=watching.pieces())

    def _create(self, call: ObjectCall) -> http.Response:
        manifest = writes.sent(call.view, call.request)
        made = self._objects.create(call.view.resource, call.namespace or "", manifest)
        return http.Response(status=201, body=call.view.show(made))

    def _review(self, call: ObjectCall) -> http.Response:
        """Review a token. The review is authorized like any other request, and not stored."""
        review = writes.sent(call.view, call.request)
        token = review.get("spec", {}).get("token")
        if not token:
            raise refusals.bad_request("token is required for TokenReview in authentication")
        return _json(201, {**review, "status": self._users.review(token)})

    def _review_access(self, user: access.User, call: ObjectCall) -> http.Response:
        """What the caller may do: every user may ask that of itself. The review is not stored."""
        if call.name or call.request.method != "POST":
            raise refusals.method_not_allowed()
        if user is access.ANONYMOUS:
            self._users.check(user, access.Deed(verb="create", resource=call.view.resource))
        review = writes.sent(call.view, call.request)
        allowed = self._users.allows(user, review.get("spec", {}).get("resourceAttributes") or {})
        return _json(201, {**review, "status": {"allowed": allowed}})

    def _write(self, write: Callable[..., tuple[int, Any]], call: ObjectCall) -> http.Response:
        status, stored = write(self._objects, call.target, call.view, call.request)
        return http.Response(status=status, body=call.view.show(stored))

    def _delete(self, call: ObjectCall) -> http.Response:
        resource = call.view.resource
        stored, gone = self._objects.delete(call.target, pods.deletion(_options(call.request)))
        if not gone or resource.deleted_is_shown:
            return http.Response(body=call.view.show(stored))
        details = {"name": stored.name, "group": resource.group, "kind": resource.plural, "uid": stored.uid}
        return _json(200, {**_SUCCESS, "details": {name: value for name, value in details.items() if value}})

    def _delete_all(self, call: ObjectCall) -> http.Response:
        asked = lists.query(call.view, call.namespace, call.request)
        found = [item for item in self._objects.store.all(call.view.resource) if asked.accepts(item)]
        options = pods.deletion(_options(call.request))
        for item in found:
            target = dataclasses.replace(call.target, namespace=item.namespace, name=item.name)
            with contextlib.suppress(
                refusals.StatusError
            ):  # another writer was faster: the object is gone, as requested
                self._objects.delete(target, options)
        return http.Response(body=call.view.show_list(found, {"resourceVersion": str(self._objects.store.version)}))


def _options(request: http.Request) -> dict[str, Any]:
    """DeleteOptions travel in the body or, some of them, in the query."""
    options: dict[str, Any] = writes.decoded(request.body, "DeleteOptions") if request.body else {}
    if request.asked("propagationPolicy"):
        options["propagationPolicy"] = request.asked("propagationPolicy")
    if request.asked("gracePeriodSeconds"):
        options["gracePeriodSeconds"] = lists.number("gracePeriodSeconds", request)
    return options


def _json(status: int, body: object) -> http.Response:
    return http.Response(status=status, body=msgspec.json.encode(body))
