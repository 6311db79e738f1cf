"""A chain with the hook, and a sampler that answers as told."""

from typing import Any

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.hooks.base import Denied
from slurm_bridge.hooks.chain import Plan
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.translate import resources
from tests.unit.families.vela.support_vela import Stage, limited
from tests.unit.hooks.builders import hook, node, partition, pod, slurm_node, translated, workload

EAST = [{"name": "east", "url": "http://east"}]


class Bench:
    """A chain with the hook, and the cluster that it sees."""

    def __init__(self, snapshot: ClusterSnapshot, *others: Any, post: Any = None, **options: Any) -> None:
        self.stage = Stage(snapshot, post=post)
        self.options = options
        self.others = others
        self.restart()

    def restart(self) -> None:
        """Nothing of the hook is in memory any more."""
        self.vela = self.stage.hook(**self.options)
        self.chain = self.stage.chain(self.vela, *self.others)

    def plan(self, one: Workload | None = None, previous: PlanState | None = None, **fields: Any) -> Plan | Wait:
        """One pass."""
        found = self.chain.plan(
            one or workload(limited()),
            translated(**fields),
            self.stage.now,
            now=self.stage.clock.wall(),
            previous=previous,
        )
        assert isinstance(found, Plan | Wait)
        return found

    def planned(self, one: Workload | None = None, previous: PlanState | None = None, **fields: Any) -> Plan:
        """One that gives a plan."""
        found = self.plan(one, previous, **fields)
        assert isinstance(found, Plan), found
        return found

    def waits(self, one: Workload | None = None, **fields: Any) -> Wait:
        """One that gives none."""
        found = self.plan(one, **fields)
        assert isinstance(found, Wait)
        return found

    def allowed(self, plan: Plan) -> set[str]:
        """The nodes that the request can have."""
        return set(self.stage.now.names) - plan.excluded

    def counted(self, what: str) -> int:
        """How often it happened."""
        return self.stage.counters.counted.get(what, 0)


def allowing(*names: str) -> Any:
    """Another hook, which can use only these nodes."""
    return hook(
        "other", filter=lambda session, *_: Denied.because("is not wanted", session.snapshot.names - set(names))
    )


def partly_used(number: int, cpus: dict[str, str], gpu: tuple[str, ...] = ()) -> ClusterSnapshot:
    """Nodes of which some are in use, and some in a partition of their own."""
    made = cluster_cache.ClusterCache(resources.requests_of)
    names = [f"n{place:02}" for place in range(number)]
    for name in names:
        made.on_node(None, node(name))
    for name, cpu in cpus.items():
        there: Pod = pod(f"on-{name}", requests={"cpu": cpu}, node_name=name, phase="Running")
        made.on_pod(None, there)
    rest = tuple(name for name in names if name not in gpu)
    known = [slurm_node(name, partitions=("gpu",) if name in gpu else ("debug",)) for name in names]
    made.set_slurm(known, (partition("debug", *rest, default=True), partition("gpu", *gpu)))
    return made.snapshot()
