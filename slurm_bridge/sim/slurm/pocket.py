"""A whole pocket Slurm: the world, the routes to it, the control for tests, and the server in real time."""

import threading
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from slurm_bridge.ports import Clock
from slurm_bridge.runtime import clock as clocks
from slurm_bridge.sim import faults as faults_
from slurm_bridge.sim import http, runner
from slurm_bridge.sim.slurm import api, control, defaults, failures, replies, schedule, state
from slurm_bridge.sim.slurm.call import SlurmCall
from slurm_bridge.sim.slurm.world import World
from slurm_bridge.sim.wire import Request, Response

OPERATOR_TOKEN, ALICE_TOKEN = "pocket-operator-token", "pocket-alice-token"
TOKENS = {OPERATOR_TOKEN: "root", ALICE_TOKEN: "alice"}
#: With an operator that may own jobs: the bridge withdraws jobs of root.
TOKENS_OF_SLURM = {**TOKENS, OPERATOR_TOKEN: "slurm"}

#: About 6 000 ids in a query work, 8 000 do not.
_LONGEST_TARGET = 100_000


class PocketSlurm:
    """slurmrestd and slurmctld in one; every call and every tick is one step under one lock."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        nodes: Sequence[state.Node] | None = None,
        partitions: Sequence[state.Partition] | None = None,
        reservations: Iterable[state.Reservation] | None = None,
        tokens: Mapping[str, str] | None = None,
        config: state.PocketConfig | None = None,
    ) -> None:
        machines = defaults.nodes() if nodes is None else nodes
        self.world = World(
            clock or clocks.SystemClock(),
            config or state.PocketConfig(),
            nodes=machines,
            partitions=defaults.partitions(machines) if partitions is None else partitions,
            reservations=defaults.reservations(machines) if reservations is None else reservations,
        )
        self.tokens = dict(TOKENS if tokens is None else tokens)
        self.lock = threading.RLock()
        self.control = control.Control(self.world, self.lock)

    @property
    def secret(self) -> str:
        """A token of an operator."""
        operators = self.world.config.operators
        return next(token for token, user in self.tokens.items() if user in operators)

    def tick(self) -> None:
        """One pass of the scheduler, and everything that has fallen due."""
        if self.control.outage is None:
            with self.lock:
                schedule.tick(self.world)

    def handler(self, request: Request) -> Response:
        """Answer one request; called by `sim.http.Server`."""
        config = self.world.config
        caller = api.caller(request.headers, self.tokens, config.operators)
        if caller is None:
            return replies.encode(replies.NO_CREDENTIALS, {})
        if request.path == "/openapi/v3":
            return Response(body=msgspec.json.encode(api.document(config.release, config.versions)))
        if len(request.target) > _LONGEST_TARGET:
            return replies.encode(replies.TOO_LONG, {})
        found = api.find(request, config.versions)
        if found is None:
            return replies.encode(replies.NOWHERE, {})
        reply = api.misread(found) or self._answer(request, found, caller)
        return replies.encode(reply, self._meta(found.version, caller or config.default_user))

    def _answer(self, request: Request, found: api.FoundRoute, caller: str) -> replies.SlurmReply | replies.Plain:
        body = api.decode(request)
        if isinstance(body, (replies.Plain, replies.SlurmReply)):
            return body
        call = SlurmCall(
            world=self.world,
            version=found.version,
            caller=caller,
            params=found.params,
            query=request.query,
            body=body,
        )
        if not caller:
            return failures.answer(found.route.name, call, failures.WRONG_TOKEN)
        if self.control.outage is not None:
            return self._fail(found.route, call, self.control.outage)
        if found.route.name == "cancel" and self._deadlocks(call):
            self.control.hang()
            return self._fail(found.route, call, failures.HUNG)
        with self.lock:
            return found.route.verb(call)

    def _fail(self, route: api.Route, call: SlurmCall, outage: int) -> replies.SlurmReply:
        """A hung slurmctld executes the request when it wakes up, long after slurmrestd has given up."""
        config = self.world.config
        delay = config.hang_delay if outage == failures.HUNG else config.down_delay
        if outage == failures.HUNG and route.method != "GET":
            self.control.remember(lambda: route.verb(call))
        self.control.linger(delay * failures.patience(route.name, outage))
        return failures.answer(route.name, call, outage)

    def _deadlocks(self, call: SlurmCall) -> bool:
        """Without accounting, slurmctld stops if a plain user cancels another user's job."""
        if call.operator or not self.world.config.hang_on_foreign_cancel:
            return False
        ids = [call.params["job_id"]] if "job_id" in call.params else call.fields.get("jobs", [])
        jobs = [self.world.jobs.get(int(str(job_id).partition("+")[0])) for job_id in ids]
        return any(job is not None and job.user != call.caller and not job.over for job in jobs)

    def _meta(self, version: str, user: str) -> dict[str, object]:
        config = self.world.config
        major, minor, micro = config.release.split(".")
        return {
            "plugin": {
                "type": "openapi/slurmctld",
                "name": "Slurm OpenAPI slurmctld",
                "data_parser": f"data_parser/{version}",
                "accounting_storage": "",
            },
            "client": {"source": "127.0.0.1", "user": user, "group": user},
            "command": [],
            "slurm": {
                "version": {"major": major, "micro": micro, "minor": minor},
                "release": config.release,
                "cluster": config.cluster,
            },
        }


class PocketSlurmServer(runner.RunningServer):
    """Serves a pocket Slurm; jobs start within `period` of their submission."""

    def __init__(self, slurm: PocketSlurm, *, faults: faults_.Faults | None = None, period: float = 0.02) -> None:
        self.slurm = slurm
        self._period = period
        super().__init__(http.Server(slurm.handler, faults=faults), self._tick, name="pocket-slurm")

    def _tick(self, stopping: threading.Event) -> None:
        while not stopping.wait(self._period):
            self.slurm.tick()
