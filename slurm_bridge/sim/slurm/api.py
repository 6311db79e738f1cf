"""The routes of slurmrestd: paths, versions, tokens, bodies; each leads to one verb."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from slurm_bridge.sim.slurm import (
    cancellation,
    fields,
    node_updates,
    queries,
    replies,
    reservations,
    submission,
    updates,
)
from slurm_bridge.sim.slurm.call import Verb
from slurm_bridge.sim.wire import Request


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One route: the name in its error answers, and the first version that has it."""

    method: str
    pattern: str
    name: str
    verb: Verb
    since: str = "v0.0.42"
    handler: str = "op_handler_job"


#: The first match is taken: `job/submit` is no job.
ROUTES = (
    Route(method="GET", pattern="ping", name="ping", verb=queries.ping, since="v0.0.40"),
    Route(method="GET", pattern="diag", name="diag", verb=queries.diag),
    Route(method="GET", pattern="conf", name="conf", verb=queries.conf, since="v0.0.45"),
    Route(method="POST", pattern="job/submit", name="submit", verb=submission.submit),
    Route(method="GET", pattern="jobs", name="jobs", verb=queries.jobs),
    Route(method="DELETE", pattern="jobs", name="cancel", verb=cancellation.cancel_many),
    Route(method="GET", pattern="jobs/state", name="jobs/state", verb=queries.job_states),
    Route(method="GET", pattern="job/{job_id}", name="job", verb=queries.job),
    Route(method="POST", pattern="job/{job_id}", name="update", verb=updates.update),
    Route(method="DELETE", pattern="job/{job_id}", name="cancel", verb=cancellation.cancel),
    Route(method="GET", pattern="job/{job_id}/requeue", name="requeue", verb=cancellation.requeue, since="v0.0.45"),
    Route(method="POST", pattern="jobs/requeue", name="requeue", verb=cancellation.requeue_many, since="v0.0.45"),
    Route(
        method="GET",
        pattern="resources/{job_id}",
        name="resources",
        verb=queries.resources,
        since="v0.0.44",
        handler="op_handler_resources",
    ),
    Route(method="GET", pattern="nodes", name="nodes", verb=queries.nodes),
    Route(method="POST", pattern="nodes", name="update-nodes", verb=node_updates.update_many),
    Route(method="GET", pattern="node/{node_name}", name="node", verb=queries.node),
    Route(method="POST", pattern="node/{node_name}", name="update-node", verb=node_updates.update_one),
    Route(method="DELETE", pattern="node/{node_name}", name="delete-node", verb=node_updates.delete),
    Route(method="POST", pattern="new/node", name="create-node", verb=node_updates.create, since="v0.0.44"),
    Route(method="GET", pattern="partitions", name="partitions", verb=queries.partitions),
    Route(method="GET", pattern="partition/{partition_name}", name="partition", verb=queries.partition),
    Route(method="GET", pattern="reservations", name="reservations", verb=queries.reservations),
    Route(method="GET", pattern="reservation/{reservation_name}", name="reservations", verb=queries.reservation),
    Route(method="POST", pattern="reservation", name="reserve", verb=reservations.put, since="v0.0.43"),
    Route(method="DELETE", pattern="reservation/{reservation_name}", name="unreserve", verb=reservations.delete),
    Route(method="GET", pattern="licenses", name="licenses", verb=queries.licenses),
    Route(method="GET", pattern="reconfigure", name="reconfigure", verb=node_updates.reconfigure),
)

#: Verbs whose documented path has no trailing slash, although it ends without an identifier.
_NO_SLASH = ("submit", "conf", "reserve")

_PATH = re.compile(r"/slurm/(v\d+\.\d+\.\d+)/(.*?)/?")
_JOB_ID = re.compile(r"\d+(\+\d+)?")


_COMPILED = tuple((route, re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", route.pattern))) for route in ROUTES)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FoundRoute:
    """The route of a request, with its version."""

    route: Route
    version: str
    params: Mapping[str, str]


def caller(headers: Mapping[str, str], tokens: Mapping[str, str], operators: frozenset[str]) -> str | None:
    """The name of the user. The token is in a header of its own or a bearer token.

    None without a token: slurmrestd refuses that (401) before it asks slurmctld. Empty for a token that slurmctld does
    not accept: slurmrestd learns that by asking (511, and 200 on ping). Only an operator may act for another user.
    """
    token = headers.get("x-slurm-user-token") or headers.get("authorization", "").removeprefix("Bearer ")
    if not token:
        return None
    owner = tokens.get(token, "")
    wanted = headers.get("x-slurm-user-name") or owner
    return wanted if owner and (wanted == owner or owner in operators) else ""


def find(request: Request, versions: tuple[str, ...]) -> FoundRoute | None:
    """The route of a request, None without one (a wrong method counts as none, too)."""
    path = _PATH.fullmatch(request.path)
    if path is None or path[1] not in versions:
        return None
    for route, pattern in _COMPILED:
        match = pattern.fullmatch(path[2])
        if match is not None and route.method == request.method and route.since <= path[1]:
            return FoundRoute(route=route, version=path[1], params=match.groupdict())
    return None


def misread(found: FoundRoute) -> replies.SlurmReply | None:
    """The warning about an invalid job id."""
    job_id = found.params.get("job_id")
    if job_id is None or _JOB_ID.fullmatch(job_id):
        return None
    return replies.refusal(9000, "Rejecting request. Failure parsing parameters", found.route.handler)


def decode(request: Request) -> Any | replies.Plain | replies.SlurmReply:
    """The body of a request as JSON, or what is wrong with it."""
    if not request.body:
        return None
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/json":
        return UNKNOWN_TYPE if kind else replies.UNSPECIFIED
    try:
        body = msgspec.json.decode(request.body)
    except msgspec.DecodeError:
        return NOT_JSON
    if body is None:
        return NOT_JSON
    if not isinstance(body, dict):
        return replies.refusal(9209, f"Rejecting {fields.kind(body)} when dictionary expected", "#/")
    return body


UNKNOWN_TYPE = replies.Plain(status=415, text="MIME type is unknown to any loaded plugins")
NOT_JSON = replies.Plain(status=400, text="Failure during parsing")


def document(release: str, versions: tuple[str, ...]) -> dict[str, Any]:
    """The part of /openapi/v3 that is read to negotiate a version."""
    major, minor, micro = release.split(".")
    paths = {
        f"/slurm/{version}/{route.pattern}{'' if '{' in route.pattern or route.name in _NO_SLASH else '/'}": {
            route.method.lower(): {"tags": ["slurm"]}
        }
        for version in versions
        for route in ROUTES
        if route.since <= version
    }
    plugins = [{"plugin": version, "flags": ["NONE"]} for version in versions]
    slurm = {
        "data_parsers": plugins,
        "openapi": ["openapi/slurmctld"],
        "version": {"major": major, "micro": micro, "minor": minor},
        "release": release,
    }
    info = {"title": "Slurm REST API", "version": f"Slurm-{release}", "x-slurm": slurm}
    return {"openapi": "3.0.3", "info": info, "paths": paths, "components": {"schemas": {}}}
