"""One contestant places workloads: each goes through a whole chain, and the cluster changes before the next comes."""

import dataclasses
import itertools
import queue
import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence

from hooksbench.contestants import Contestant
from hooksbench.shelf import SHELVES
from hooksbench.workloads import Asked
from hooksbench.world import World
from slurm_bridge.daemon import slurm_fit
from slurm_bridge.hooks import registry
from slurm_bridge.hooks.chain import Plan
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model.verdict import Wait
from slurm_bridge.runtime.clock import SystemClock

#: So many passes are worth making for one workload: more would mean that nothing comes of them.
MOST_PASSES = 20
#: When nothing has been woken for so long, nothing will be; where nothing works beside the passes it has been already.
SILENT_SECONDS = 30.0


class Stuck(Exception):
    """A contestant did not place a workload; the message says which, and what it waits for."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What placing some workloads took. `waits` are passes that ended without a plan.

    `inside` are the seconds in each phase of each hook, as `kube-scheduler.score`.
    """

    seconds: float
    cpu_seconds: float
    waits: int
    inside: Mapping[str, float]


class Stopwatch:
    """Adds up how long hooks take."""

    def __init__(self) -> None:
        self.inside: defaultdict[str, float] = defaultdict(float)

    def called(self, hook: str, phase: str, outcome: str, seconds: float) -> None:
        if outcome not in ("ok", "slow"):
            raise Stuck(f"hook {hook}: {outcome} in phase {phase}")
        self.inside[f"{hook}.{phase}"] += seconds


class Passes:
    """A chain over a world. Workloads that wait are taken up again when their hooks wake them, as the daemon does."""

    def __init__(self, contestant: Contestant, world: World) -> None:
        self._world = world
        self._patience = SILENT_SECONDS if contestant.threads else 0.0
        self._watch = Stopwatch()
        self._woken: queue.SimpleQueue[str] = queue.SimpleQueue()
        around = ChainServices(
            clock=SystemClock(),
            # Made-up pods ask for what only some of the families look at.
            strict=False,
            dice=random.Random(1),
            observer=self._watch,
            shows_scores=lambda: False,
            keeps_lines=False,
            settle=slurm_fit.SlurmFit(),
            wake=self._woken.put,
            seen=world.keeper.snapshot,
            threads=contestant.threads,
        )
        self._chain = registry.build(contestant.hooks, around, installed={})
        self._chain.see({need: SHELVES[need] for need in self._chain.needs})
        self._chain.restore((), fresh=True)

    def close(self) -> None:
        """End what works beside the passes."""
        self._chain.close()

    def play(self, asked: Sequence[Asked]) -> Spent:
        """Place all of them."""
        self._watch.inside.clear()
        began, cpu = time.perf_counter(), time.process_time()
        waits = self._place({one.workload.root.key: one for one in asked})
        spent = Spent(
            seconds=time.perf_counter() - began,
            cpu_seconds=time.process_time() - cpu,
            waits=waits,
            inside=dict(self._watch.inside),
        )
        self._end(asked)
        return spent

    def _end(self, asked: Sequence[Asked]) -> None:
        """For the hooks they are over; on their nodes they stay until others come."""
        for one, hook in itertools.product(asked, self._chain.hooks):
            hook.ended(one.workload.root.key)

    def _place(self, asked: Mapping[str, Asked]) -> int:
        left = {uid: wait for uid, one in asked.items() if (wait := self._pass(one)) is not None}
        passes = dict.fromkeys(asked, 1)
        due = {uid: at for uid, wait in left.items() if (at := _due(wait)) is not None}
        while left:
            uid = self._next(left, due)
            if uid not in left:
                continue
            passes[uid] += 1
            wait, _ = self._pass(asked[uid]), due.pop(uid, None)
            if wait is None:
                del left[uid]
            elif passes[uid] >= MOST_PASSES:
                raise Stuck(f"{uid}: {wait.reason}: {wait.message}")
            elif (at := _due(wait)) is not None:
                due[uid] = at
        return sum(passes.values()) - len(passes)

    def _next(self, left: Mapping[str, Wait], due: Mapping[str, float]) -> str:
        """A workload that is woken, or whose time has come."""
        first = min(due, key=due.__getitem__, default=None)
        patience = max(0.0, due[first] - time.monotonic()) if first is not None else self._patience
        try:
            return self._woken.get(timeout=patience)
        except queue.Empty:
            if first is not None:
                return first
            uid, wait = next(iter(left.items()))
            raise Stuck(f"{len(left)} are not woken; {uid}: {wait.reason}: {wait.message}") from None

    def _pass(self, one: Asked) -> Wait | None:
        """Everything that the daemon asks the chain from a workload to its binding; None when it is placed."""
        keeper, now = self._world.keeper, time.time()
        plan = self._chain.plan(one.workload, one.translated, keeper.snapshot(), now=now)
        if isinstance(plan, Wait):
            return plan
        if not isinstance(plan, Plan):
            raise Stuck(f"{one.workload.root}: {plan}")
        self._agreed(one, self._chain.commit(one.workload, plan, keeper.snapshot()))
        tried = plan.course.attempts[plan.state.attempt].nodes
        placement = self._world.seat(one.workload.pods, tried, plan.request.excluded_nodes)
        self._agreed(one, self._chain.verify(one.workload, placement, keeper.snapshot()))
        self._world.settle(one.workload.pods, placement)
        for hook in self._chain.hooks:
            hook.forget(one.workload.root.key)
        return None

    def _agreed(self, one: Asked, obstacle: object) -> None:
        if obstacle is not None:
            raise Stuck(f"{one.workload.root}: {obstacle}")


def _due(wait: Wait) -> float | None:
    return time.monotonic() + wait.retry_after if wait.retry_after is not None else None
