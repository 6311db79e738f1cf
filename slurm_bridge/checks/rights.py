"""Our rights at the API server: to read groups, change nodes, lead and review tokens; nothing is tried out."""

from collections.abc import Iterator
from typing import Any, Final, Protocol, TypeVar

from slurm_bridge.checks.facts import CheckFacts, Expectations, Right
from slurm_bridge.checks.findings import Remark, failure, ok
from slurm_bridge.model import kinds
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest, Object, Record
from slurm_bridge.workloads import kind_table

T = TypeVar("T", bound=Object)


class ReviewStatus(Record, frozen=True, kw_only=True):
    """Without the right, `allowed` is false."""

    allowed: bool = False


class Review(Object, frozen=True, kw_only=True):
    """A SelfSubjectAccessReview; the API server answers it and does not store it."""

    status: ReviewStatus = ReviewStatus()


REVIEWS: Final = Kind(
    group="authorization.k8s.io",
    versions=("v1",),
    plural="selfsubjectaccessreviews",
    kind="SelfSubjectAccessReview",
    record=Review,
    namespaced=False,
)

_TOKEN_REVIEWS: Final = Kind(
    group="authentication.k8s.io",
    versions=("v1",),
    plural="tokenreviews",
    kind="TokenReview",
    record=Object,
    namespaced=False,
)


class AccessReviewer(Protocol):
    """The part of ports.Cluster that is used here."""

    def served(self, kind: Kind[T], /) -> str | None: ...

    def create(self, kind: Kind[T], namespace: str, manifest: Manifest, /) -> T: ...


def may_review_tokens(cluster: AccessReviewer) -> bool:
    """The submission API, the admin API and the live view need this right."""
    return _right(cluster, _TOKEN_REVIEWS, "create").allowed


def reviewed(facts: CheckFacts, wanted: Expectations) -> Iterator[Remark]:
    """Without this right every caller is told that the bridge is misconfigured."""
    if not wanted.reviews:
        yield ok("not needed: web.submission and web.administration are off, and so is web.live_view beyond loopback")
    elif facts.reviews:
        yield ok("may review callers' tokens")
    else:
        yield failure("not allowed: create tokenreviews.authentication.k8s.io")


def on_nodes(cluster: AccessReviewer, wanted: Expectations) -> tuple[Right, ...]:
    """The node controller needs these rights."""
    written = (("get", ""), ("patch", ""), ("patch", "status"))
    devices = ("list", "watch") if wanted.device_gres else ()
    return (
        *(_right(cluster, kinds.NODES, verb, subresource) for verb, subresource in written),
        *(_right(cluster, kinds.RESOURCESLICES, verb) for verb in devices),
    )


def nodes_written(facts: CheckFacts, wanted: Expectations) -> Iterator[Remark]:
    """Without these rights no node that is gone is deleted from Slurm, and none is marked."""
    denied = [str(right) for right in facts.node_rights if not right.allowed]
    if not wanted.node_controller:
        yield ok("not needed: nodes.enabled is off")
    elif denied:
        yield failure(f"not allowed: {', '.join(denied)}")
    else:
        yield ok("may read and change nodes")


def on_leases(cluster: AccessReviewer, wanted: Expectations) -> tuple[Right, ...]:
    """A replica needs these rights to lead."""
    if not wanted.lease:
        return ()
    namespace, name = wanted.lease
    if wanted.parts:
        written = [("get", ""), ("list", ""), ("create", ""), ("update", ""), ("delete", "")]
        read = [_right(cluster, kinds.NAMESPACES, verb) for verb in ("get", "list", "watch")]
    else:
        written, read = [("get", name), ("create", ""), ("update", name)], []
    leases = (_right(cluster, kinds.LEASES, verb, namespace=namespace, name=name) for verb, name in written)
    return (*leases, *read)


def led(facts: CheckFacts, wanted: Expectations) -> Iterator[Remark]:
    """Without these rights no replica ever leads."""
    denied = [str(right) for right in facts.lead_rights if not right.allowed]
    if not wanted.lease:
        yield ok("not needed: leader_election.enabled is off")
    elif denied:
        missing = "; the component deploy/parts has them" if wanted.parts else ""
        yield failure(f"not allowed: {', '.join(denied)}{missing}")
    else:
        yield ok("may read and write the leases" + (" of parts and namespaces" if wanted.parts else ""))


def ask(cluster: AccessReviewer) -> tuple[Right, ...]:
    """For each served kind whether we may list and watch it, and write the status that its users read."""
    served = [kind for kind in kind_table.WATCHED if cluster.served(kind) is not None]
    told = (kind for kind, how in kind_table.ANNOUNCEMENTS.items() if how is not None and kind in served)
    followed = [_right(cluster, kind, verb) for kind in served for verb in ("list", "watch")]
    return (*followed, *(_right(cluster, kind, "patch", "status") for kind in told))


def _right(
    cluster: AccessReviewer, kind: Kind[Any], verb: str, subresource: str = "", *, namespace: str = "", name: str = ""
) -> Right:
    attributes = {"group": kind.group, "resource": kind.plural, "verb": verb, "subresource": subresource}
    attributes |= {key: value for key, value in (("namespace", namespace), ("name", name)) if value}
    manifest = {
        "apiVersion": f"{REVIEWS.group}/{REVIEWS.versions[0]}",
        "kind": REVIEWS.kind,
        "spec": {"resourceAttributes": attributes},
    }
    answer = cluster.create(REVIEWS, "", manifest)
    within = f"{kind.plural}/{subresource}" if subresource else kind.plural
    where = "/".join(filter(None, (namespace, name)))
    resource = f"{within}.{kind.group}".rstrip(".")
    return Right(verb=verb, resource=resource, allowed=answer.status.allowed, where=where)
