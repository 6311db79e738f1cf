"""What happens beside the passes: from the sampling queue through samplers and the decision queue to an outcome.

ask ─► sampling queue ─► sampler pool ─► decision queue ─► decision pipelines ─► told(question, outcome)
       (sort plugin)     (as many pods     (bounded)        (snapshot only)
                          at once)
"""

import dataclasses
import itertools
import random
from collections.abc import Callable, Mapping

from slurm_bridge.families.shared.inline import InlineBudget
from slurm_bridge.families.shared.worker_pool import KeyedWorkerPool
from slurm_bridge.families.vela import loop, sample_order, smart
from slurm_bridge.families.vela.counts import HOOK
from slurm_bridge.families.vela.decision import DROPPED, Decider, SamplingDecision, every_filter
from slurm_bridge.families.vela.options import VelaOptions
from slurm_bridge.families.vela.pipeline import Agent
from slurm_bridge.families.vela.queue import Empty, Entry, SamplingQueue
from slurm_bridge.families.vela.sample_order import Moment
from slurm_bridge.families.vela.samplers import SampleNodesPlugin
from slurm_bridge.families.vela.samples import SamplingRequest
from slurm_bridge.families.vela.scene import SamplingScene, UnreadablePod
from slurm_bridge.families.vela.smart import Merged
from slurm_bridge.hooks.emitter import Emitter
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime import frozen_records

#: At most so many pods wait to be sampled; others are looked at again later.
MOST_WAITING = 100_000

#: The last look, as an agent; no configured one can have this name.
EVERYWHERE = "all nodes here"
_ANY = "random"
#: It ends when all nodes were looked at, which takes much less.
_LOOK_MS = 60_000

#: Of nodes that no filter here rejects.
NOT_SAMPLED = "could take it, and were not sampled or not offered"


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SamplingQuestion:
    """For which pod of which workload nodes are wanted: it stands for all that are alike. `number` is never reused.

    `partition` is what its job is asked for, None: the default one of Slurm.
    """

    workload: WorkloadKey
    pod: Pod
    priority: int
    created: Moment
    nodes_bp: int
    number: int
    partition: str | None = None

    @property
    def request(self) -> SamplingRequest:
        """For agents."""
        return SamplingRequest(pod=self.pod, nodes_bp=self.nodes_bp, partition=self.partition or "")

    @property
    def key(self) -> str:
        """In the queue."""
        return f"{self.pod.metadata.namespace}.{self.pod.metadata.name}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Nowhere:
    """Agents answered, and had no node (or none that is of use here)."""

    message: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AgentsUnavailable:
    """No agent answered."""

    message: str


Outcome = SamplingDecision | Nowhere | AgentsUnavailable
Told = Callable[[SamplingQuestion, Outcome], None]


class SamplingService:
    """Queues and pools; without threads everything is done within `ask`."""

    def __init__(self, options: VelaOptions, services: HookServices, sampler: SampleNodesPlugin, told: Told) -> None:
        self._services = services
        self._sampler = sampler
        self._told = told
        self._decider = Decider(options.decision, options.sampling)
        self._everywhere = _everywhere(options, services)
        self._emitter = Emitter()
        self._queue: SamplingQueue[SamplingQuestion] = SamplingQueue(sample_order.sort(options.sort[0]))
        self._samplers = KeyedWorkerPool("vela-sampler", services, workers=options.sampling_at_once, most=MOST_WAITING)
        self._deciders = KeyedWorkerPool(
            "vela-decision", services, workers=options.decision.pipelines, most=options.decision.queue
        )
        self._numbers = itertools.count()
        self._inline = InlineBudget(services.clock)

    def ask(self, question: SamplingQuestion) -> bool:
        """Let it wait for its turn, when no thread has time for it at once; False when there is no room."""
        number = str(next(self._numbers))
        # The calling thread has the sample sooner if it draws it itself, and takes no other pod's turn.
        inline = self._sampler.near and not self._queue and self._inline.pays
        if inline and self._samplers.run_inline(number, lambda: self._sampled_here(question)):
            return True
        entry = Entry(key=question.key, priority=question.priority, created=question.created, item=question)
        if len(self._queue) >= MOST_WAITING:
            return False
        self._queue.enqueue(entry)
        # A piece of work samples the pod that is first by then, not necessarily the one that it was made for.
        return self._samplers.submit(number, self._sample_first)

    def _sampled_here(self, question: SamplingQuestion) -> None:
        begun = self._inline.begin()
        try:
            self._sample_once(question)
        except Exception as error:  # noqa: BLE001 - plugins are foreign code
            self._failed(question, error)
        finally:
            self._inline.end(begun)

    def _sample_once(self, question: SamplingQuestion) -> None:
        merged = self._sampler.sample(question.request)
        self._count("sampled")
        self._count("agents-failed", len(merged.failed))
        for name, why in merged.failed.items():
            self._services.log.debug(f"agent {name} is left out: {why}")
        if not merged.answered:
            self._told(question, AgentsUnavailable(message=f"no agent answered: {_failures(merged.failed)}"))
        elif not merged.nodes:
            self._told(question, self._looked(question) or Nowhere(message=self._nothing(question, merged)))
        else:
            self._hand_on(question, merged)

    def close(self) -> None:
        """No answer is reported from now on."""
        self._queue.close()
        self._sampler.close()
        self._samplers.close()
        self._deciders.close()

    def _sample_first(self) -> None:
        try:
            entry = self._queue.dequeue(seconds=0)
        except Empty:
            # Its entry was replaced by a younger one, which another piece of work has taken.
            return
        if entry is not None:
            self._sampled_here(entry.item)

    def _hand_on(self, question: SamplingQuestion, merged: Merged) -> None:
        """To a decision pipeline: to one that is idle in this very thread, else to the first that will be.

        Where even the decision queue is full the sampler decides itself, and takes no other pod meanwhile.
        """
        key = str(question.number)

        def decide() -> None:
            try:
                self._told(question, self._decided(question, merged))
            except Exception as error:  # noqa: BLE001 - plugins are foreign code
                self._failed(question, error)

        if not self._deciders.run_inline(key, decide) and not self._deciders.submit(key, decide):
            decide()

    def _decided(self, question: SamplingQuestion, merged: Merged) -> Outcome:
        decision = self._decider.decide(merged, self._scene(question))
        for reason, number in decision.dropped.items():
            self._count(DROPPED[reason], number)
            self._services.log.info(f"{number} nodes that agents named were dropped: {reason}")
        if decision.nodes:
            return decision
        if found := self._looked(question):
            return found
        parts = [f"{number} were {reason}" for reason, number in decision.dropped.items()]
        if kept := decision.sampled - sum(decision.dropped.values()):
            parts.append(f"{kept} cannot take the pod")
        return Nowhere(message=f"none of {decision.sampled} sampled nodes is left: {', '.join(parts)}")

    def _looked(self, question: SamplingQuestion) -> SamplingDecision | None:
        """Before it is said that there is no node, all nodes here are looked at; None where there is none indeed."""
        merged = smart.merge({EVERYWHERE: self._everywhere.sample(question.request, _ANY)})
        if not merged.nodes:
            return None
        decision = self._decider.decide(merged, self._scene(question))
        self._count("found-by-last-look", bool(decision.nodes))
        return decision if decision.nodes else None

    def _nothing(self, question: SamplingQuestion, merged: Merged) -> str:
        """Agents do not say why: what the filters of the decision say of all nodes here is the nearest there is."""
        counts = self._decider.reasons(self._scene(question))
        every = sum(counts.values())
        said = [f"{number} {words or NOT_SAMPLED}" for words, number in counts.items()]
        parts = [
            f"no node of {', '.join(merged.answered)}: {loop.NOTHING_LEFT}",
            f"of {every} nodes here {', '.join(said)}",
        ]
        return "; ".join([*parts[: 1 + bool(every)], *([_failures(merged.failed)] if merged.failed else [])])

    def _scene(self, question: SamplingQuestion) -> SamplingScene:
        snapshot, now = self._services.snapshot(), self._services.clock.wall()
        return SamplingScene(question.pod, snapshot.columns, now, self._emitter.inside(question.partition, snapshot))

    def _failed(self, question: SamplingQuestion, error: Exception) -> None:
        """A plugin that raises costs its pod a try, and never the pod itself."""
        wrong = str(error) if isinstance(error, UnreadablePod) else f"{type(error).__name__}: {error}"
        self._services.log.warning(f"sampling for {question.key} failed: {wrong}")
        self._told(question, Nowhere(message=f"sampling failed: {wrong}"))

    def _count(self, what: str, amount: int = 1) -> None:
        if amount:
            self._services.counters.happened(HOOK, what, amount)


def _everywhere(options: VelaOptions, services: HookServices) -> Agent:
    """All nodes that this daemon sees are its shard, and it looks until it has found enough or has seen all of them."""
    pipelines = options.sampling.model_copy(
        update={
            "filters": every_filter(options.decision, options.sampling),
            "strategies": (_ANY,),
            "parallel_sampling_pipelines": options.sampling_at_once + options.decision.pipelines,
            "max_rounds": None,
            "timeout_ms": _LOOK_MS,
        }
    )
    own = random.Random(services.dice.getrandbits(64))  # noqa: S311 - no secret
    return Agent(EVERYWHERE, services.snapshot, clock=services.clock, options=pipelines, dice=own)


def _failures(failed: Mapping[str, str]) -> str:
    return "; ".join(f"agent {name}: {why}" for name, why in failed.items())
