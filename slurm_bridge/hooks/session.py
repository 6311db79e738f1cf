"""One pass over one chain: each phase over all layers, what was said on the way, and an end of it all."""

import random
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from slurm_bridge.hooks import base, division, explain
from slurm_bridge.hooks.base import Ask, Audience, Denied, Log, Mode, Nodes, NodeSet, Phase
from slurm_bridge.hooks.calls import Answer, Caller, Hook, HookFailed, OnError
from slurm_bridge.hooks.explain import Line
from slurm_bridge.hooks.memo import Memo
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.hooks.snapshot import ClusterSnapshot
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Obstacle, Reject, Wait
from slurm_bridge.model.workload import Workload

LogOf = Callable[[str], Log]

#: After how many seconds a workload whose hook failed is tried again.
RETRY_SECONDS = 60.0


class SessionOver(RuntimeError):
    """A hook used the session of a pass that has ended."""


class Stopped(Exception):
    """A hook's answer, or its failure, ends the pass here."""

    def __init__(self, obstacle: Obstacle) -> None:
        super().__init__(obstacle.message)
        self.obstacle = obstacle


class Layers:
    """The hooks of a chain by phase, and what outlives a pass: who calls them, where they log, what they may see."""

    def __init__(self, hooks: tuple[Hook, ...], caller: Caller, logs: LogOf, dice: random.Random) -> None:
        self.hooks = hooks
        self.caller = caller
        self.dice = dice
        self.views: Mapping[Need, View] = {}
        self.own_log = logs("chain")
        self.logs = {hook.name: logs(hook.name) for hook in hooks}
        self.by_phase = {phase: tuple(hook for hook in hooks if phase in hook.phases) for phase in Phase}
        self.left: Memo[tuple[Nodes, Denied], Nodes] = Memo()
        self.said: Memo[Denied, str] = Memo()


class Session:
    """See `base.Session`, which is what hooks see of it. A context manager: its end is the end of the pass."""

    __slots__ = ("_layers", "_mode", "_now", "_over", "_running", "_snapshot", "denied", "lines", "members")

    def __init__(self, layers: Layers, snapshot: ClusterSnapshot, *, now: float, mode: Mode = Mode.REAL) -> None:
        self._layers = layers
        self._snapshot = snapshot
        self._now = now
        self._mode = mode
        self._over = False
        self._running: Hook | None = None
        self.lines: list[Line] = []
        self.denied: list[Denied] = []
        #: Whom the lines are about from now on, "" for the whole workload.
        self.members = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True

    @property
    def snapshot(self) -> ClusterSnapshot:
        self._alive()
        return self._snapshot

    @property
    def now(self) -> float:
        self._alive()
        return self._now

    @property
    def mode(self) -> Mode:
        self._alive()
        return self._mode

    @property
    def dice(self) -> random.Random:
        self._alive()
        return self._layers.dice

    @property
    def log(self) -> Log:
        self._alive()
        return self._layers.logs[self._running.name] if self._running else self._layers.own_log

    def view(self, need: Need) -> View:
        self._alive()
        if self._running is not None and need not in self._running.needs:
            raise LookupError(f"hook {self._running.name} has not declared {need} in its needs")
        if need not in self._layers.views:
            raise LookupError(f"{need.value} are not watched")
        return self._layers.views[need]

    def pass_gate(self, phase: Phase, ask: Ask) -> None:
        """Admit, capacity or commit: every hook has to let the workload go on."""
        for hook in self._layers.by_phase[phase]:
            answer = self._ask(hook, phase, ask)
            if answer is not None:
                self._note(hook, phase, answer)

    def sample_nodes(self, ask: Ask, nodes: Nodes) -> Nodes:
        """The nodes that are looked at in this pass."""
        for hook in self._layers.by_phase[Phase.SAMPLE]:
            answer = self._ask(hook, Phase.SAMPLE, ask, nodes)
            if answer is not None:
                sampled = nodes & answer.value.nodes
                self._say(hook, Phase.SAMPLE, answer, (len(nodes), len(sampled)), audience=Audience.OPERATOR)
                self.denied.append(Denied.because("node(s) were not sampled in this attempt", nodes - sampled))
                nodes = sampled
        return nodes

    def filter_nodes(self, ask: Ask, nodes: Nodes) -> Nodes:
        self._alive()
        for hook in self._layers.by_phase[Phase.FILTER]:
            answer = self._ask(hook, Phase.FILTER, ask, nodes)
            if answer is not None:
                nodes = self._deny(hook, answer, nodes)
        return nodes

    def score_nodes(self, ask: Ask, nodes: Nodes) -> Mapping[str, float]:
        self._alive()
        total: Mapping[str, float] = {}
        for hook in self._layers.by_phase[Phase.SCORE]:
            answer = self._ask(hook, Phase.SCORE, ask, nodes)
            if answer is not None:
                scores: Mapping[str, float] = answer.value.nodes
                total = {name: total.get(name, 0.0) + scores.get(name, 0.0) for name in nodes}
                self._say(hook, Phase.SCORE, answer, (len(nodes), len(nodes)), audience=Audience.OPERATOR)
        return total

    def subset_nodes(self, ask: Ask, tasks: tuple[Pod, ...], nodes: Nodes) -> tuple[NodeSet, ...]:
        self._alive()
        whole = NodeSet(nodes=nodes)
        sets: tuple[NodeSet, ...] = (whole,)
        for hook in self._layers.by_phase[Phase.SUBSET]:
            divided = self._divide(hook, ask, tasks, sets)
            if divided is None:
                return (whole,)
            sets = divided
        return sets

    def express(self, ask: Ask) -> Ask:
        """The request with the fields that hooks give it, each layer seeing what the one before made of it."""
        for hook in self._layers.by_phase[Phase.EXPRESS]:
            answer = self._ask(hook, Phase.EXPRESS, ask)
            if answer is not None and (given := answer.value.given()):
                ask = division.merge(ask, given, answer.value.source or f"hook {hook.name}")
                said = ", ".join(f"{field}={value}" for field, value in given.items())
                self._say(hook, Phase.EXPRESS, answer, audience=Audience.OPERATOR, reason=said)
        return ask

    def verify(self, workload: Workload, nodes: Mapping[str, str]) -> base.Deny | None:
        """The first denial of an allocation."""
        for hook in self._layers.by_phase[Phase.VERIFY]:
            answer = self._ask(hook, Phase.VERIFY, workload, nodes)
            if answer is not None:
                if isinstance(answer.value, base.Deny):
                    return answer.value
                self._note(hook, Phase.VERIFY, answer)
        return None

    def deny(self, name: str, denied: Denied, nodes: Nodes) -> Nodes:
        """What is left of these nodes after a denial that comes from the bridge itself."""
        left = nodes.difference(denied.nodes)
        self.denied.append(denied)
        reason = explain.summary(reason for name in nodes & denied.nodes.keys() for reason in denied.nodes[name])
        self._line(name, Phase.FILTER, reason, Audience.USER, (len(nodes), len(left)))
        return left

    def _alive(self) -> None:
        if self._over:
            raise SessionOver("this session's pass has ended; keep nothing of it")

    def _ask(self, hook: Hook, phase: Phase, *arguments: object) -> Answer | None:
        """The hook's answer; None when it failed and may be skipped. An obstacle ends the pass."""
        self._alive()
        before, self._running = self._running, hook
        try:
            answer = self._layers.caller.call(hook, phase, self, *arguments)
        except HookFailed as failed:
            self._failed(failed)
            return None
        finally:
            self._running = before
        if isinstance(answer.value, Wait | Reject):
            self._say(hook, phase, answer, reason=answer.value.message)
            raise Stopped(answer.value)
        return answer

    def _failed(self, failed: HookFailed) -> None:
        """What was wrong is for operators; the user is told which hook it was, and whether that matters."""
        name, phase = failed.hook.name, failed.phase
        self._layers.own_log.warning(f"hook {name} failed in phase {phase.value}: {failed}")
        self._line(name, phase, f"failed: {failed}", Audience.OPERATOR)
        message = f"hook {name} failed in phase {phase.value}; the operators of this cluster find the cause in the log"
        if failed.hook.on_error is OnError.HOLD:
            raise Stopped(Wait(reason="HookFailed", message=message, retry_after=RETRY_SECONDS)) from failed
        if failed.hook.on_error is OnError.REJECT:
            raise Stopped(Reject(reason="HookFailed", message=message)) from failed

    def _deny(self, hook: Hook, answer: Answer, nodes: Nodes) -> Nodes:
        denied: Denied = answer.value
        version = self._snapshot.version
        left = self._layers.left.get(version, (nodes, denied), lambda: nodes.difference(denied.nodes))
        if len(left) < len(nodes):
            self.denied.append(denied)
        said = self._layers.said.get(version, denied, lambda: explain.summary(_reasons(denied)))
        self._say(hook, Phase.FILTER, answer, (len(nodes), len(left)), audience=denied.audience, reason=said)
        return left

    def _divide(
        self, hook: Hook, ask: Ask, tasks: tuple[Pod, ...], sets: tuple[NodeSet, ...]
    ) -> tuple[NodeSet, ...] | None:
        """One layer of division over all sets of the layer before; None when it failed and may be skipped."""
        name, log = hook.name, self._layers.logs[hook.name]
        log.debug(f"Performing {name} logic")
        found: list[NodeSet] = []
        for outer in sets:
            answer = self._ask(hook, Phase.SUBSET, ask, tasks, outer.nodes)
            if answer is None:
                return None
            if not answer.value.relevant:
                log.debug(f"{name} logic is not relevant")
            inner = division.layer(outer, answer.value)
            self._say(
                hook,
                Phase.SUBSET,
                answer,
                (len(outer.nodes), len(frozenset().union(*(one.nodes for one in inner)))),
                audience=Audience.OPERATOR,
                reason=f"{len(inner)} subsets" if answer.value.relevant else "not relevant",
            )
            found += inner
        log.debug(f"Result of {name} logic is {len(found)} subsets")
        log.trace(f"Result of {name} logic is {division.names(found)}")
        return tuple(found)

    def _note(self, hook: Hook, phase: Phase, answer: Answer) -> None:
        self._say(hook, phase, answer, audience=answer.value.audience)

    def _say(
        self,
        hook: Hook,
        phase: Phase,
        answer: Answer,
        counts: tuple[int, int] = (0, 0),
        *,
        audience: Audience = Audience.USER,
        reason: str | None = None,
    ) -> None:
        said = getattr(answer.value, "note", "") if reason is None else reason
        self._line(hook.name, phase, said, audience, counts, answer.seconds)

    def _line(
        self,
        name: str,
        phase: Phase,
        reason: str,
        audience: Audience,
        counts: tuple[int, int] = (0, 0),
        seconds: float = 0.0,
    ) -> None:
        self.lines.append(
            Line(
                hook=name,
                phase=phase,
                nodes_in=counts[0],
                nodes_out=counts[1],
                reason=reason,
                milliseconds=seconds * 1000,
                audience=audience,
                members=self.members,
            )
        )


def _reasons(denied: Denied) -> Any:
    return (reason for reasons in denied.nodes.values() for reason in reasons)
