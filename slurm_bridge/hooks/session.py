"""One pass over one chain: each phase over all layers, what was said on the way, and an end of it all."""

from collections.abc import Mapping

from slurm_bridge.cluster.outside import Outside
from slurm_bridge.hooks import base, combined, explain, honoured_demands
from slurm_bridge.hooks.base import Ask, Audience, Denied, HookPhase, Nodes, NodeSet, Scores
from slurm_bridge.hooks.calls import Hook, HookAnswer, HookFailed, OnError
from slurm_bridge.hooks.explain import Line
from slurm_bridge.hooks.pass_context import Pass, Stopped
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload

#: Why a node that no hook looked at is not among those that are left.
NOT_SAMPLED = "node(s) were not sampled in this attempt"

#: So many sets within preferred ones are tried where a later hook leaves its own sets to no other nodes.
MOST_PREFERRED = 2

#: After how many seconds a workload whose hook failed is tried again.
RETRY_SECONDS = 60.0

#: What answers mostly are: none of these ends a pass.
_GOING = (base.Admit, base.Denied, base.Fields, Scores, base.Sample, base.Subsets)


class Session(Pass):
    """See `base.Session`, which is what hooks see of it."""

    __slots__ = ()

    @property
    def moving(self) -> bool:
        """What runs on the nodes is part of why some of them are denied, or of which sets are tried first."""
        return self.shifting or any(one.moving for one in self.denied)

    def pass_gate(self, phase: HookPhase, ask: Ask) -> None:
        """Admit, capacity or commit: every hook has to let the workload go on."""
        for hook in self._layers.by_phase[phase]:
            answer = self._ask(hook, phase, ask)
            if answer is not None:
                self._say(hook, phase, answer, audience=answer.value.audience)

    def pass_demands(self, ask: Ask) -> str:
        """What the pods ask of their place has to be honoured by some hook; what of it is ignored, in words."""
        self._alive()
        layers = self._layers
        lacking = (
            honoured_demands.missing(ask.demands, layers.honoured, layers.views, self._given) if ask.demands else ()
        )
        obstacle = honoured_demands.obstacle(lacking, strict=layers.strict)
        if obstacle is not None:
            self._line("chain", HookPhase.ADMIT, obstacle.message, Audience.USER)
            raise Stopped(obstacle)
        return honoured_demands.ignored(lacking)

    def _given(self, resource: str) -> bool:
        """Some node has any of it to give."""
        return bool((self.columns.allocatable(resource) > 0).any())

    def sample_nodes(self, ask: Ask, nodes: Nodes) -> Nodes:
        """The nodes that are looked at in this pass."""
        for hook in self._layers.by_phase[HookPhase.SAMPLE] if not self.whole else ():
            answer = self._ask(hook, HookPhase.SAMPLE, ask, nodes)
            if answer is not None:
                sampled = nodes if answer.value.nodes is nodes else self._both(nodes, answer.value.nodes)
                if answer.value.given_up:
                    self.given_up, self.retry_after = answer.value.given_up, answer.value.retry_after
                self._say(hook, HookPhase.SAMPLE, answer, (len(nodes), len(sampled)), audience=Audience.OPERATOR)
                if len(sampled) < len(nodes):
                    self.partial, self.retry_after = True, answer.value.retry_after
                    self.denied.append(Denied(nodes=Outside(nodes, sampled, NOT_SAMPLED)))
                nodes = sampled
        return nodes

    def look_at_all(self, why: str) -> None:
        """Begin again with all nodes, in place of a sample of them; operators read why."""
        self.whole, self.partial, self.retry_after = True, False, None
        self.denied.clear()
        self.wanted.clear()
        self.given_up = ""
        self.memos.clear()
        self._line("chain", HookPhase.SAMPLE, f"{why}: all nodes are looked at", Audience.OPERATOR)

    def _both(self, nodes: Nodes, others: Nodes) -> Nodes:
        """By way of the columns, so that equal samples are one set: much is remembered by it."""
        columns = self.columns
        if nodes is columns.members.every and columns.members.knows(others):
            return others
        return columns.nodes(columns.mask(nodes) & columns.mask(others))

    def filter_nodes(self, ask: Ask, nodes: Nodes) -> Nodes:
        self._alive()
        for hook in self._layers.by_phase[HookPhase.FILTER]:
            answer = self._ask(hook, HookPhase.FILTER, ask, nodes)
            if answer is not None:
                nodes = self._deny(hook, answer, nodes)
        return nodes

    def score_nodes(self, ask: Ask, nodes: Nodes) -> Mapping[str, float]:
        return self.rate_nodes(ask, nodes).nodes

    def rate_nodes(self, ask: Ask, nodes: Nodes) -> Scores:
        """The same with what the hooks want to be made of it.

        Once one wants a single tier nothing follows from scores: the others are asked only where scores are shown.
        """
        self._alive()
        said: list[Scores] = []
        for hook in self._layers.by_phase[HookPhase.SCORE]:
            if combined.single_tier(said) and not self._layers.shows_scores():
                break
            answer = self._ask(hook, HookPhase.SCORE, ask, nodes)
            if answer is not None:
                said.append(answer.value)
                self._say(hook, HookPhase.SCORE, answer, (len(nodes), len(nodes)), audience=Audience.OPERATOR)
                if answer.value.matrix is not None:
                    self.matrices[hook.name] = answer.value.matrix
        return combined.added(said, nodes)

    def subset_nodes(self, ask: Ask, tasks: tuple[Pod, ...], nodes: Nodes) -> tuple[NodeSet, ...]:
        """A failing layer that may be skipped ends the division, but for sets that another one requires."""
        self._alive()
        whole, skipped = NodeSet(nodes=nodes), False
        sets: tuple[NodeSet, ...] = (whole,)
        for hook in self._layers.by_phase[HookPhase.SUBSET]:
            divided = self._divide(hook, ask, tasks, sets)
            if divided is None:
                skipped = True
                continue
            if combined.leaves_out(sets, divided, nodes):
                # What was only preferred must not keep it from all other nodes.
                divided = (*divided[:MOST_PREFERRED], *(self._divide(hook, ask, tasks, (whole,)) or ()))
            sets = divided
        if skipped and sets and not any(one.required for one in sets):
            return (whole,)
        return tuple(sorted(sets, key=lambda one: one.again)) if any(one.again for one in sets) else sets

    def express(self, ask: Ask) -> Ask:
        """The request with the fields that hooks give it, each layer seeing what the one before made of it."""
        for hook in self._layers.by_phase[HookPhase.EXPRESS]:
            answer = self._ask(hook, HookPhase.EXPRESS, ask)
            if answer is not None and (given := answer.value.given()):
                ask = combined.merge(ask, given, answer.value.source or f"hook {hook.name}")
                if self._layers.keeps_lines:
                    said = ", ".join(f"{field}={value}" for field, value in given.items())
                    self._say(hook, HookPhase.EXPRESS, answer, audience=Audience.OPERATOR, reason=said)
        return ask

    def verify(self, workload: Workload, nodes: Mapping[str, str]) -> base.Deny | None:
        """The first denial of an allocation."""
        for hook in self._layers.by_phase[HookPhase.VERIFY]:
            answer = self._ask(hook, HookPhase.VERIFY, workload, nodes)
            if answer is not None:
                if isinstance(answer.value, base.Deny):
                    return answer.value
                self._say(hook, HookPhase.VERIFY, answer, audience=answer.value.audience)
        return None

    def deny(self, name: str, denied: Denied, nodes: Nodes) -> Nodes:
        """What is left of these nodes after a denial that comes from the bridge itself."""
        left = denied.left(nodes)
        self.denied.append(denied)
        if self._layers.keeps_lines:
            reason = explain.summary(explain.counted(denied, nodes, len(nodes) - len(left)))
            self._line(name, HookPhase.FILTER, reason, Audience.USER, (len(nodes), len(left)))
        return left

    def _ask(self, hook: Hook, phase: HookPhase, *arguments: object) -> HookAnswer | None:
        """The hook's answer; None when it failed and may be skipped. An obstacle ends the pass."""
        if self._over:
            self._alive()
        before, self._running = self._running, hook
        try:
            answer = self._layers.caller.call(hook, phase, self, *arguments)
        except HookFailed as failed:
            self._failed(failed)
            return None
        finally:
            self._running = before
        if answer.value.__class__ not in _GOING and isinstance(answer.value, (Wait, Reject)):
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

    def _deny(self, hook: Hook, answer: HookAnswer, nodes: Nodes) -> Nodes:
        denied: Denied = answer.value
        version = self._snapshot.version
        # The answer holds the set that it is about, so that no other one can have its number meanwhile.
        _, left = self._layers.left.get(version, (id(nodes), denied), lambda: (nodes, denied.left(nodes)))
        if len(left) < len(nodes):
            self.denied.append(denied)
        if self._layers.keeps_lines:
            said = self._layers.said.get(version, denied, lambda: explain.summary(denied.counts()))
            self._say(hook, HookPhase.FILTER, answer, (len(nodes), len(left)), audience=denied.audience, reason=said)
        return left

    def _divide(
        self, hook: Hook, ask: Ask, tasks: tuple[Pod, ...], sets: tuple[NodeSet, ...]
    ) -> tuple[NodeSet, ...] | None:
        """One layer of division over all sets of the layer before; None when it failed and may be skipped."""
        name, log = hook.name, self._layers.logs[hook.name]
        log.debug(f"Performing {name} logic")
        found: list[NodeSet] = []
        for place, outer in enumerate(sets, 1):
            answer = self._ask(hook, HookPhase.SUBSET, ask, tasks, outer.nodes)
            if answer is None:
                return None
            if not answer.value.relevant:
                log.debug(f"{name} logic is not relevant")
            inner = combined.layer(outer, answer.value)
            said: base.Subsets = answer.value
            if said.memo:
                # Of a hook that divides several sets the first memo counts: it is asked about each of them alike.
                self.memos.setdefault(name, said.memo)
            self.wanted.update(dict.fromkeys(said.wanted))
            self.shifting = self.shifting or said.moving
            if self._layers.keeps_lines:
                count = f"{len(said.sets)} subsets" if said.relevant else "not relevant"
                self._say(
                    hook,
                    HookPhase.SUBSET,
                    answer,
                    (len(outer.nodes), combined.covered(outer, inner)),
                    audience=Audience.OPERATOR,
                    reason=f"{count}; {said.note}" if said.note else count,
                )
            found += inner
            if said.everywhere and not said.relevant:
                found += sets[place:]
                break
        log.debug(f"Result of {name} logic is {len(found)} subsets")
        log.trace(combined.Result(name, tuple(found)))
        return tuple(found)

    def _say(
        self,
        hook: Hook,
        phase: HookPhase,
        answer: HookAnswer,
        counts: tuple[int, int] = (0, 0),
        *,
        audience: Audience = Audience.USER,
        reason: str | None = None,
    ) -> None:
        if not self._layers.keeps_lines:
            return
        said: str = getattr(answer.value, "note", "") if reason is None else reason
        self.lines.append(
            explain.line((hook.name, phase, *counts, said, answer.seconds * 1000, audience, self.members))
        )

    def _line(
        self,
        name: str,
        phase: HookPhase,
        reason: str,
        audience: Audience,
        counts: tuple[int, int] = (0, 0),
        seconds: float = 0.0,
    ) -> None:
        if self._layers.keeps_lines:
            self.lines.append(Line(name, phase, *counts, reason, seconds * 1000, audience, self.members))
