"""The submission API: `POST /pods` creates the pod in the body with the caller's own rights.

    1 take a slot          the buffer is full: 429            5 the translator rejects it: 400
    2 no bearer token, or an invalid one: 401                 6 ask the API server, with the caller's own token:
    3 read the manifest, JSON or YAML: 400                      created 201, exists 409, forbidden 403, invalid 400
    4 one pod, for our scheduler, with a name: 400              not done 503, unknown 504

Nothing is scheduled here: the pod reaches the scheduler through the watch like any other pod, on the leader. So every
replica may answer, and a pod that was created does not depend on the replica that created it.
"""

import dataclasses
import http
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.informers.source import Changed, PodSource
from slurm_bridge.model.callers import Caller, Token
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Pod
from slurm_bridge.web import buffer, callers, drafts, refusals
from slurm_bridge.web.buffer import BufferSlot
from slurm_bridge.web.drafts import Draft
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request, Routes

PODS: Final = ("POST", "/pods")

#: Attempts to find a free name if the name is generated.
_NAMES: Final = 4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionBackend:
    """What the daemon provides.

    `read`: decodes the one object in a body, or raises BadConfiguration. `judge`: why the translator will reject a pod,
    "" if it will not. `closing`: the daemon is stopping. `count`: called with the status of each answer.
    """

    callers: ports.Callers
    read: Callable[[bytes], Manifest]
    judge: Callable[[Pod], str]
    closing: Callable[[], bool]
    count: Callable[[http.HTTPStatus], None]
    clock: ports.Clock
    dice: random.Random
    scheduler_names: Sequence[str]
    limits: buffer.BufferLimits


class PodSubmissionApi:
    """A PodSource with an HTTP API for submissions; its pods are those of the watch beneath it."""

    def __init__(self, watched: PodSource, backend: SubmissionBackend) -> None:
        self._watched, self._backend = watched, backend
        self._buffer = buffer.SubmissionBuffer(backend.limits, backend.clock)

    def subscribe(self, changed: Changed) -> None:
        def told(old: Pod | None, new: Pod | None) -> None:
            changed(old, new)
            if new is not None:
                self._buffer.hear(new.key)

        self._watched.subscribe(told)

    def problem(self) -> str:
        return self._watched.problem()

    @property
    def pending(self) -> int:
        """The number of slots in use."""
        return len(self._buffer)

    def routes(self) -> Routes:
        """The routes for the web server."""

        def counted(request: Request) -> Reply:
            reply = self._answer(request)
            self._backend.count(reply.status)
            return reply

        return {PODS: counted}

    def _answer(self, request: Request) -> Reply:
        token = callers.bearer(request)
        if token is None:
            return refusals.unknown("a bearer token of the Kubernetes cluster is required")
        problem = "this replica is stopping" if self._backend.closing() else self.problem()
        if problem:
            return refusals.later(f"no pod is accepted now: {problem}")
        with self._buffer.take() as slot:
            if slot is None:
                most = self._backend.limits.most
                words = f"too many pods are being submitted: at most {most} may wait until the scheduler has seen them"
                return refusals.crowded(words)
            return self._within(request, token, slot)

    def _within(self, request: Request, token: Token, slot: BufferSlot) -> Reply:
        """Handle a request that has a slot; slots bound the calls to the API server."""
        caller = callers.reviewed(self._backend.callers, token)
        if isinstance(caller, Reply):
            return caller
        try:
            made = self._draft(request.body)
        except drafts.Unacceptable as problem:
            return refusals.refused(http.HTTPStatus.BAD_REQUEST, "Invalid", str(problem))
        for _ in range(_NAMES - 1):
            reply = self._create(made, token, slot)
            taken = reply.status is http.HTTPStatus.CONFLICT
            if not (taken and made.generated) or self._backend.closing():
                return _told(reply, made, caller)
            made = drafts.renamed(made, self._backend.dice)
        return _told(self._create(made, token, slot), made, caller)

    def _draft(self, body: bytes) -> Draft:
        try:
            manifest = self._backend.read(body)
        except errors.BadConfiguration as problem:
            raise drafts.Unacceptable(str(problem)) from problem
        made = drafts.draft(manifest, self._backend.scheduler_names, self._backend.dice)
        wrong = self._backend.judge(made.pod)
        if wrong:
            raise drafts.Unacceptable(wrong)
        return made

    def _create(self, made: Draft, token: Token, slot: BufferSlot) -> Reply:
        namespace, name = made.key
        # The watch may be faster than the answer.
        self._buffer.name(slot, made.key)
        try:
            pod = self._backend.callers.create_pod(namespace, made.manifest, token)
        except errors.BridgeError as error:
            slot.accepted = refusals.may_have_happened(error)
            return refusals.of(error, namespace, name)
        slot.accepted = True
        body: dict[str, Any] = {"namespace": pod.metadata.namespace, "name": pod.metadata.name, "uid": pod.uid}
        return Reply.json(body, http.HTTPStatus.CREATED)


def _told(reply: Reply, made: Draft, caller: Caller) -> Reply:
    journal = logger.bind(namespace=made.key[0], pod=made.key[1], caller=caller.name)
    journal.info("a pod was submitted: {} {}", reply.status.value, reply.status.phrase)
    return reply
