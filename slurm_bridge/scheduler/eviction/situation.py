"""What the scheduler tells a hook that looks for victims."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks.base import Ask, HookPhase, Mode, Nodes
from slurm_bridge.hooks.chain import Chain, asked
from slurm_bridge.hooks.evictions import Answers, Site
from slurm_bridge.hooks.needs import Need
from slurm_bridge.hooks.pass_context import Stopped
from slurm_bridge.mirror.table import Table
from slurm_bridge.model.budget import PodDisruptionBudget
from slurm_bridge.model.job import JobRequest
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.eviction import sites
from slurm_bridge.scheduler.eviction.sites import NodeSites
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.workload_pods import PLACED
from slurm_bridge.translate.rules import Rules

#: What Slurm says is in use may be so old when a pod is evicted because of it.
FRESH_SECONDS = 5.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSituation:
    """Implements hooks.evictions.Situation from what the daemon has heard of both sides; `wall` is Unix time."""

    ask: Ask
    submitted: bool
    avoided: Nodes
    snapshot: ClusterSnapshot
    chain: Chain
    rules: Rules
    table: Table
    pod_index: PodIndex
    wall: float

    def answers(self, snapshot: ClusterSnapshot) -> Answers | None:
        """All hooks, in a simulated pass; a workload without a job passes all gates first, as before a submission."""
        with self.chain.session(snapshot, now=self.wall, mode=Mode.SIMULATED) as session:
            try:
                if not self.submitted:
                    session.pass_gate(HookPhase.ADMIT, self.ask)
                    session.pass_demands(self.ask)
                    session.pass_gate(HookPhase.CAPACITY, self.ask)
                nodes = session.filter_nodes(self.ask, snapshot.names)
                sets = session.subset_nodes(self.ask, self.ask.workload.pods, nodes)
                request = session.express(self.ask).request
            except Stopped:
                return None
            known = session.view(Need.PDBS).all() if Need.PDBS in self.chain.needs else ()
        budgets = tuple(one for one in known if isinstance(one, PodDisruptionBudget))
        # A workload that has to stay in one of several sets gets room in one of them; a mere preference moves no pod.
        bound = not sets or any(one.required for one in sets)
        within = tuple(one.nodes for one in sets) if bound else (nodes,)
        return Answers(request=request, nodes=nodes, sets=within, budgets=budgets)

    def evictable(self) -> Mapping[str, Sequence[Pod]]:
        """By node, the running pods of a lower priority, those on their way out among them."""
        return sites.evictable(self.table, self.pod_index, self.ask.workload.priority)

    def on_node(self, node: str) -> Iterable[Pod]:
        """All pods that are bound there and not over."""
        return self.pod_index.on_node(node)

    def placed(self, workload: WorkloadKey) -> Sequence[Pod]:
        """The pods of a workload that have nodes."""
        members = self.pod_index.workload(workload)
        return members.pods(*PLACED) if members is not None else ()

    def sites(self, request: JobRequest, nodes: Iterable[str]) -> Sequence[Site]:
        """Those of these nodes on which the job could start, in their order."""
        return NodeSites(self.table, self.pod_index, self.rules, self.snapshot, request).of(nodes)


def of_ask(context: SchedulerContext, pod_index: PodIndex, ask: Ask, *, submitted: bool) -> ClusterSituation | None:
    """For this workload; None where Slurm has to be asked first what is in use."""
    if context.clock.now() - context.facts_at > FRESH_SECONDS:
        context.refresh_facts()
        return None
    return ClusterSituation(
        ask=ask,
        submitted=submitted,
        avoided=frozenset({*context.avoid(ask.workload), *context.promised.nodes}),
        snapshot=context.keeper.snapshot(),
        chain=context.config.chain,
        rules=context.config.rules,
        table=context.table,
        pod_index=pod_index,
        wall=context.clock.wall(),
    )


def of_queued(context: SchedulerContext, pod_index: PodIndex, key: WorkloadKey) -> ClusterSituation | None:
    """For a workload that waits in a queue of a hook: what hooks say of its nodes counts, not that it has to wait."""
    desired = context.states.desired(key)
    if desired is None or context.mirror.failing:
        return None
    return of_ask(context, pod_index, asked(desired.workload, desired.translated), submitted=True)
