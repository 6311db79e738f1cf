"""What the chains of one process share beside their hooks: clock, dice, logs, limits, and the way to the outside."""

import dataclasses
import random
from collections.abc import Callable

from slurm_bridge import ports
from slurm_bridge.cluster.snapshot import EMPTY, ClusterSnapshot
from slurm_bridge.hooks import attempts, background, calls
from slurm_bridge.hooks.background import Backstage, Heirloom, HookCounters, Post
from slurm_bridge.hooks.base import Nodes
from slurm_bridge.hooks.layers import LogOf
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.translate.translator import Translated

#: The request as Slurm's partitions and resources let it be; runs after hooks have had their say about the fields.
#: The third argument are the eligible nodes: for each shape of the translated workload in order, or for all its pods.
Settle = Callable[[Translated, ClusterSnapshot, tuple[Nodes, ...]], Translated | Wait | Reject]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a chain needs beside its hooks; chains of one process share it. `settle` None: requests come settled."""

    clock: ports.Clock
    dice: random.Random = dataclasses.field(default_factory=random.Random)
    observer: calls.Observer = dataclasses.field(default_factory=calls.Unobserved)
    logs: LogOf = lambda _: background.Silent()
    limits: attempts.Limits = attempts.DEFAULTS
    settle: Settle | None = None
    #: Whether pods wait that ask for what no hook honours; else that is told, and they go on without it.
    strict: bool = True
    left: calls.Left = dataclasses.field(default_factory=calls.Left)
    #: For hooks whose answers take time: to look at a workload again, the cluster now, JSON over HTTP, counters.
    wake: Callable[[WorkloadKey], None] = lambda _: None
    seen: Callable[[], ClusterSnapshot] = lambda: EMPTY
    post: Post = background.nowhere
    tally: HookCounters = dataclasses.field(default_factory=background.Untold)
    finest: background.Finest = background.unheard
    #: Somebody reads how scores came about, also those from which nothing follows.
    shows_scores: Callable[[], bool] = lambda: True
    #: False: everything is done where it is asked for, at once.
    threads: bool = True
    #: What hooks hand on when a chain takes the place of another, by their names.
    heirlooms: dict[str, Heirloom] = dataclasses.field(default_factory=dict)

    def backstage(self, hook: str) -> Backstage:
        """What one hook is given of it."""
        return Backstage(
            clock=self.clock,
            dice=self.dice,
            log=self.logs(hook),
            wake=self.wake,
            snapshot=self.seen,
            post=self.post,
            tally=self.tally,
            finest=self.finest,
            threads=self.threads,
            heirloom=self.heirlooms.setdefault(hook, Heirloom()),
        )
