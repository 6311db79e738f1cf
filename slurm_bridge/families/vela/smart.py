"""2-Smart sampling in whole numbers: how many agents, which, how many of their nodes, and all answers as one."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from slurm_bridge.cluster.columns import Whole
from slurm_bridge.families.vela import dice, samples
from slurm_bridge.families.vela.dice import Dice
from slurm_bridge.families.vela.loop import LoopStatus
from slurm_bridge.families.vela.samples import NO_NUMBERS, USUAL_NODES_BP, Picked, SamplingResponse
from slurm_bridge.runtime import frozen_records

T = TypeVar("T")

ALL_PERCENT = 100
ALL_BP = 10_000


def cluster_count(clusters: int, percent: int) -> int:
    """So many percent of the clusters, rounded up; at least one where there is one."""
    within = min(max(percent, 0), ALL_PERCENT)
    return min(clusters, max(1, -(-within * clusters // ALL_PERCENT)))


def choose_clusters(
    clusters: Sequence[T], percent: int, draw: Dice, willing: Callable[[T], bool] = lambda _: True
) -> tuple[T, ...]:
    """All in their order where all are needed, else as many as needed in the order in which they were drawn.

    How many are needed is a matter of all of them; drawn are those that are willing, as long as there are any.
    """
    among = tuple(filter(willing, clusters)) or tuple(clusters)
    if len(among) == 1:
        return among
    count = cluster_count(len(clusters), percent)
    if count >= len(among):
        return among
    return tuple(among[place] for place in dice.distinct(len(among), count, draw).tolist())


def sample_size(total_nodes: int, nodes_bp: int) -> int:
    """So many basis points of the nodes of one cluster, rounded down, and at least one."""
    within = min(nodes_bp or USUAL_NODES_BP, ALL_BP)
    return max(1, within * total_nodes // ALL_BP)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AgentFailure:
    """An agent without an answer, and why."""

    why: str


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Merged:
    """All answers as one, by place. `sizes` says how many nodes each cluster gave, `failed` why one gave no answer.

    `repeats`: a node may be named more than once.
    """

    sizes: Mapping[str, int]
    nodes: Sequence[str]
    uids: Sequence[str]
    accumulated: Whole
    plugins: Whole
    failed: Mapping[str, str]
    repeats: bool = True

    @property
    def answered(self) -> tuple[str, ...]:
        """The clusters with an answer."""
        return tuple(self.sizes)

    @property
    def status(self) -> LoopStatus:
        """Without any node it is unschedulable."""
        return LoopStatus.SUCCESS if len(self.nodes) else LoopStatus.UNSCHEDULABLE

    @property
    def qualified(self) -> list[str]:
        """The nodes as CLUSTER/NODE."""
        clusters = [name for name, size in self.sizes.items() for _ in range(size)]
        return [f"{cluster}/{node}" for cluster, node in zip(clusters, self.nodes, strict=True)]


def merge(answers: Mapping[str, SamplingResponse | AgentFailure]) -> Merged:
    """The nodes of all clusters that answered, one after the other; the others are reported, and otherwise left out."""
    if len(answers) == 1 and isinstance(only := next(iter(answers.values())), SamplingResponse):
        return _alone(only)
    given = {name: answer for name, answer in answers.items() if isinstance(answer, SamplingResponse)}
    return Merged(
        sizes={name: len(answer.nodes) for name, answer in given.items()},
        nodes=samples.joined([answer.nodes for answer in given.values()]),
        uids=samples.joined([answer.uids for answer in given.values()]),
        accumulated=np.concatenate([NO_NUMBERS, *(answer.accumulated for answer in given.values())]),
        plugins=np.concatenate([NO_NUMBERS, *(answer.plugins for answer in given.values())]),
        failed={name: answer.why for name, answer in answers.items() if isinstance(answer, AgentFailure)},
    )


def _alone(answer: SamplingResponse) -> Merged:
    """An agent in this process, whose nodes are those of a snapshot, names none of them twice."""
    return Merged(
        sizes={answer.cluster: len(answer.nodes)},
        nodes=answer.nodes,
        uids=answer.uids,
        accumulated=answer.accumulated,
        plugins=answer.plugins,
        failed={},
        repeats=not isinstance(answer.nodes, Picked),
    )
