"""Extenders asked beside the passes: a pass takes the answer that is there, or waits to be woken by it.

no answer, or an old one, or about other nodes ─► asked beside it, Wait    the answer wakes the workload
answer about at least these nodes, still fresh ─► taken
an extender that counts did not answer         ─► Wait, asked again once it is old
"""

import dataclasses
import hashlib
from collections.abc import Sequence

from slurm_bridge.cluster.columns import NodeColumns
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.cluster.recent_answers import Recent
from slurm_bridge.families.kube_scheduler.extenders import verdicts
from slurm_bridge.families.kube_scheduler.extenders.verdicts import Said
from slurm_bridge.families.kube_scheduler.options import ExtenderOptions
from slurm_bridge.families.shared.worker_pool import KeyedWorkerPool
from slurm_bridge.hooks.base import Nodes
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait

REASON = "Extender"

#: An answer is about the cluster of the moment at which it was asked for; it is used for as long as this.
FRESH_SECONDS = 30.0

#: After a failure, and when there are too many questions already.
RETRY_SECONDS = 15.0

#: So many questions wait at most, and so many answers are kept.
MOST_QUESTIONS = 256
MOST_ANSWERS = 1024

WORKERS = 4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _ExtenderAnswer:
    """What was said, of which nodes, and when."""

    said: Said
    nodes: Nodes
    at: float


class ExtenderDesk:
    """The extenders of one configuration."""

    def __init__(self, extenders: Sequence[ExtenderOptions], services: HookServices) -> None:
        self._extenders = tuple(one for one in extenders if one.filter_verb or one.prioritize_verb)
        self._services = services
        self._desk = KeyedWorkerPool("extenders", services, workers=WORKERS, most=MOST_QUESTIONS)
        self._answers: Recent[str, _ExtenderAnswer] = Recent(MOST_ANSWERS)

    def said(self, workload: WorkloadKey, key: bytes, pod: Pod, nodes: Nodes, columns: NodeColumns) -> Said | Wait:
        """What they say of these nodes. `workload` is the uid to wake, `key` tells its shapes apart."""
        caring = [extender for extender in self._extenders if verdicts.interested(extender, pod)]
        if not caring or not nodes:
            return Said()
        name = _name(workload, key)
        answer = self._usable(name, nodes)
        if answer is None:
            facts = [one for row in columns.mask(nodes).nonzero()[0].tolist() if (one := columns.facts[row])]
            if not self._desk.submit(name, lambda: self._ask(name, workload, pod, nodes, facts)):
                return _wait("too many questions wait for the extenders already", RETRY_SECONDS)
            answer = self._usable(name, nodes)
        if answer is None:
            return _wait(f"waits for {', '.join(extender.url for extender in caring)}")
        if answer.said.failure:
            return _wait(answer.said.failure, RETRY_SECONDS)
        return answer.said

    def known(self, workload: WorkloadKey, key: bytes) -> Said:
        """What they said last, however long ago: for the later phases of a pass that has found it fresh before."""
        answer = self._answers.get(_name(workload, key))
        return answer.said if answer is not None else Said()

    def close(self) -> None:
        """End the threads: there are no more questions."""
        self._desk.close()

    def _usable(self, name: str, nodes: Nodes) -> _ExtenderAnswer | None:
        answer = self._answers.get(name)
        if answer is None:
            return None
        lasts = RETRY_SECONDS if answer.said.failure else FRESH_SECONDS
        if self._services.clock.now() - answer.at > lasts:
            return None
        return answer if answer.nodes is nodes or nodes <= answer.nodes else None

    def _ask(self, name: str, workload: WorkloadKey, pod: Pod, nodes: Nodes, facts: Sequence[NodeFacts]) -> None:
        try:
            said = verdicts.ask(self._extenders, self._services.post, pod, facts)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, a workload waits for this answer
            said = Said(failure=f"extenders could not be asked: {type(error).__name__}: {error}")
        for problem in (*said.passed_over, *([said.failure] if said.failure else [])):
            self._services.log.warning(problem)
        self._answers.put(name, _ExtenderAnswer(said=said, nodes=nodes, at=self._services.clock.now()))
        self._services.wake(workload)


def _name(workload: WorkloadKey, key: bytes) -> str:
    return f"{workload}/{hashlib.blake2s(key, digest_size=8).hexdigest()}"


def _wait(message: str, retry_after: float | None = None) -> Wait:
    return Wait(reason=REASON, message=message, retry_after=retry_after)
