"""An agent: a shard of the nodes, strategies, and pipelines that draw, filter and score.

    request ─► an idle pipeline ─► strategy ─► filters ─► … until there is enough ─► scores ─► response

The same class samples in the daemon and in the service of its own: `Agent.sample` may be called from any thread.
"""

import random
from collections.abc import Callable

import numpy as np

from slurm_bridge import ports
from slurm_bridge.cluster import selection
from slurm_bridge.cluster.columns import NodeColumns, Whole
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.vela import catalogue, loop, samples, smart, strategies
from slurm_bridge.families.vela import scores as scoring
from slurm_bridge.families.vela.dice import Places
from slurm_bridge.families.vela.idle import Idle
from slurm_bridge.families.vela.joint_filter import Sift
from slurm_bridge.families.vela.loop import Collected, LoopStatus
from slurm_bridge.families.vela.options import PipelineOptions, ShardOptions
from slurm_bridge.families.vela.samples import SamplingRequest, SamplingResponse
from slurm_bridge.families.vela.scene import Rows, SamplingScene, SceneCache, UnreadablePod, inside
from slurm_bridge.families.vela.scores import Weighted
from slurm_bridge.families.vela.strategies import Draw, Shared
from slurm_bridge.hooks import emitter
from slurm_bridge.model import selectors

ZONE = "topology.kubernetes.io/zone"


class NotSampled(Exception):
    """An agent has no sample to give; the message says why."""


class UnknownStrategy(NotSampled):
    """There is no such strategy; the message lists those that there are."""


class Busy(NotSampled):
    """No pipeline became idle in time."""


class PipelineFailed(NotSampled):
    """A strategy or a plugin raised."""


class PodRefused(NotSampled):
    """The pod cannot be read, by this agent or any other: the agent is well."""


def alike(one: NodeFacts, other: NodeFacts) -> bool:
    """A shard has both or none of them."""
    there, here = one.slurm, other.slurm
    if one.node is not other.node or (there is None) is not (here is None):
        return False
    return there is None or here is None or there.partitions == here.partitions


class Shard:
    """The nodes that meet all that is configured."""

    def __init__(self, options: ShardOptions) -> None:
        self._partition = options.partition
        self._wanted = selectors.parse(options.selector)
        self._zone = options.zone

    def rows(self, nodes: NodeColumns) -> Rows:
        """Where they are, in the order of the columns."""
        found = selection.all_met(nodes, self._wanted)
        if self._zone:
            found = found & nodes.label(ZONE).among((self._zone,))
        if self._partition:
            found = found & inside(nodes, (self._partition,))
        return np.flatnonzero(found)


class Pipeline:
    """One set of plugins, used for one request at a time."""

    def __init__(self, options: PipelineOptions, clock: ports.Clock) -> None:
        self._sift = Sift(catalogue.filters(options.filters))
        self.scorers = catalogue.scorers(options.scores)
        self._max_rounds = options.max_rounds
        self._timeout = options.timeout_ms / 1000
        self._clock = clock

    def collect(
        self, scene: SamplingScene, shard: Rows, strategy: Shared, size: int, most: float | None = None
    ) -> Collected:
        """The rows of so many of these nodes that pass, as far as the time goes; none of them is looked at twice."""
        seconds = self._timeout if most is None else min(self._timeout, most)
        until, sieve = self._clock.now() + seconds, self._sift.of(scene)
        # Where there is every row places are rows.
        whole = len(shard) == len(scene.nodes)

        def useful(places: Places) -> Places:
            """What a filter of all nodes rejects anyway is not drawn."""
            return places[sieve.known(places if whole else shard[places])]

        draw = Draw(strategy, len(shard), useful)
        return loop.collect(
            lambda missing: draw.next(missing) if whole else shard[draw.next(missing)],
            sieve.kept,
            size,
            max_rounds=self._max_rounds,
            repeats=strategy.repeats,
            expired=lambda: draw.done or self._clock.now() >= until,
        )

    def scores(self, scene: SamplingScene, rows: Rows) -> Whole:
        """What the plugins say of these nodes together, with their weights."""
        if len(self.scorers) == 1 == self.scorers[0].weight:
            return self.scorers[0].plugin.score(scene, rows)
        said = [Weighted(weight=one.weight, scores=one.plugin.score(scene, rows)) for one in self.scorers]
        return scoring.accumulated(said, len(rows))


class Agent:
    """See above. `cluster` is the name under which its nodes are returned, `snapshot` its own view of them.

    ValueError names a strategy that is configured and cannot be had.
    """

    def __init__(
        self,
        cluster: str,
        snapshot: Callable[[], ClusterSnapshot],
        *,
        clock: ports.Clock,
        options: PipelineOptions | None = None,
        shard: ShardOptions | None = None,
        dice: random.Random | None = None,
    ) -> None:
        chosen = options or PipelineOptions()
        self.cluster = cluster
        self._snapshot = snapshot
        self._clock = clock
        self._wait_seconds = chosen.wait_seconds
        self._shard = Shard(shard or ShardOptions())
        self._emitter = emitter.Emitter()
        self._rows: SceneCache[str, Rows] = SceneCache(alike)
        self._strategies = strategies.load(chosen.strategies, dice or random.Random())  # noqa: S311 - no secret
        self._idle: Idle[Pipeline] = Idle(Pipeline(chosen, clock) for _ in range(chosen.parallel_sampling_pipelines))

    @property
    def strategies(self) -> tuple[str, ...]:
        """What can be asked for."""
        return tuple(self._strategies)

    @property
    def nodes_count(self) -> int:
        """How many nodes its shard has now."""
        return len(self._covered(self._snapshot().columns))

    def sample(self, request: SamplingRequest, strategy: str) -> SamplingResponse:
        """Nodes that pass, in the order in which they were found; none is an answer too. Raises NotSampled."""
        shared = self._strategies.get(strategy)
        if shared is None:
            raise UnknownStrategy(f"strategy {strategy!r} is not offered here; there are {', '.join(self.strategies)}")
        seen = self._snapshot()
        # A caller that has gone needs no answer: the other half of its time is for the sample and the way.
        wait = self._wait_seconds if request.seconds is None else min(self._wait_seconds, request.seconds / 2)
        pipeline = self._idle.take(wait)
        if pipeline is None:
            raise Busy(f"no pipeline became idle within {wait:g} s")
        try:
            return self._sample(request, shared, seen, pipeline)
        except UnreadablePod as error:
            raise PodRefused(str(error)) from error
        finally:
            self._idle.give(pipeline)

    def _sample(
        self, request: SamplingRequest, strategy: Shared, seen: ClusterSnapshot, pipeline: Pipeline
    ) -> SamplingResponse:
        nodes = seen.columns
        scene, shard = SamplingScene(request.pod, nodes, self._clock.wall()), self._covered(nodes)
        size = smart.sample_size(len(shard), request.nodes_bp)
        # Half of what is left after the longest wait.
        most = None if request.seconds is None else request.seconds / 4
        found = pipeline.collect(scene, self._inside(seen, request.partition), strategy, size, most)
        if found.status is LoopStatus.INTERNAL_ERROR:
            raise PipelineFailed(found.reason)
        rows = found.found
        try:
            accumulated = pipeline.scores(scene, rows)
        except UnreadablePod:
            raise
        except Exception as error:  # a plugin: its failure is the answer
            raise PipelineFailed(f"{type(error).__name__}: {error}") from error
        return SamplingResponse(
            cluster=self.cluster,
            nodes=samples.names(nodes, rows),
            uids=samples.uids(nodes, rows),
            accumulated=accumulated,
            plugins=scoring.alike(len(pipeline.scorers), len(rows)),
        )

    def _inside(self, seen: ClusterSnapshot, partition: str | None) -> Rows:
        """Those of its nodes that the job's partitions have; all of them where it is not known which these are."""
        nodes = seen.columns
        covered = self._covered(nodes)
        if partition is None or not seen.partitions:
            return covered
        meant = sorted(one.name for one in emitter.meant(seen, partition))
        key = f"partitions {','.join(meant)}"
        return self._rows.get(nodes, key, lambda: covered[self._emitter.inside(partition, seen)[covered]])

    def _covered(self, nodes: NodeColumns) -> Rows:
        return self._rows.get(nodes, "", lambda: self._shard.rows(nodes))
